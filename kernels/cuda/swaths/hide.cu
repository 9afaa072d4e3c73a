/* hide: writes elements under a mask, where those that are left out become another (swaths.h).
 *
 * The array is read once, and so asks the L2 cache to forget it; the swath stays there.
 * Thread: GPU; a thread has some vectors, or elements. Owner: none. */
#include "kernels/cuda/swaths/swaths.h"
#include "kernels/cuda/walk/masked.cuh"

enum { CR_HIDE_EACH = 4 }; /* vectors of a thread that are under way at once */

template <int SIZE> struct cr_hide {
    static constexpr int LANES = CR_GPU_VECTOR / SIZE;
    typedef cr_keep<LANES> Keep;
    const cr_hide_args &args;

    /* Where element or vector number i of all lies in the array: of `line` a line, `size` elements each. A swath has few enough for 32 bits. */
    CR_DEVICE uint64_t place(uint64_t i, uint32_t line, uint32_t size) const {
        if (args.lines == 1) return args.first + i * size;
        const uint32_t number = (uint32_t)i / line;
        return args.first + number * args.stride + ((uint32_t)i - number * line) * size;
    }
    CR_DEVICE static uint32_t filled(uint32_t v, uint32_t keep, uint32_t fill) { return (v & keep) | (fill & ~keep); }
    CR_DEVICE void put_kept(const Keep &keep, uint64_t i) const {
        if constexpr (LANES >= 4) {
#pragma unroll
            for (int w = 0; w < Keep::WORDS; w++) reinterpret_cast<uint32_t *>(args.kept)[i * Keep::WORDS + w] = keep.top[w] >> 7;
        } else {
            reinterpret_cast<uint16_t *>(args.kept)[i] = (uint16_t)(keep.top[0] >> 7);
        }
    }
    CR_DEVICE void put(uint64_t i, const uint4 &v, const Keep &keep, uint64_t fill) const {
        const uint32_t low = (uint32_t)fill, high = (uint32_t)(fill >> 32);
        reinterpret_cast<uint4 *>(args.to)[i] = make_uint4(filled(v.x, keep.word(0), low), filled(v.y, keep.word(1), high),
                                                           filled(v.z, keep.word(2), low), filled(v.w, keep.word(3), high));
        if (args.kept != nullptr) put_kept(keep, i);
    }
    /* All loads of a turn are asked for before one is waited for. */
    CR_DEVICE void turn(uint64_t i, uint64_t step, uint32_t line, uint64_t fill, bool first) const {
        const uint8_t *bytes = args.mask.data + args.mask.first;
        uint4 v[CR_HIDE_EACH];
        Keep keep[CR_HIDE_EACH];
#pragma unroll
        for (int j = 0; j < CR_HIDE_EACH; j++) {
            const uint64_t at = place(i + j * step, line, LANES);
            v[j] = __ldcs(reinterpret_cast<const uint4 *>(args.data + at * SIZE));
            keep[j].load(bytes + at);
        }
        if (first) cr_after_the_last();
#pragma unroll
        for (int j = 0; j < CR_HIDE_EACH; j++) {
            keep[j].settle(args.mask);
            put(i + j * step, v[j], keep[j], fill);
        }
    }
    CR_DEVICE void vectors(uint64_t count) const {
        const uint64_t step = (uint64_t)gridDim.x * CR_GPU_THREADS, begin = blockIdx.x * CR_GPU_THREADS + threadIdx.x;
        const uint32_t line = (uint32_t)(args.line / LANES);
        const bool quick = args.mask.kind == CR_MASK_BYTES && (uintptr_t)(args.mask.data + args.mask.first + args.first) % LANES == 0;
        uint64_t fill = args.fill, i = begin;
#pragma unroll
        for (int bits = 8 * SIZE; bits < 64; bits *= 2) fill |= fill << bits;
        for (; quick && i + (CR_HIDE_EACH - 1) * step < count; i += CR_HIDE_EACH * step) turn(i, step, line, fill, i == begin);
        if (i == begin) cr_after_the_last();
        for (; i < count; i += step) { /* what is left of a line, masks of bits, and bytes at any address */
            const uint64_t at = place(i, line, LANES);
            Keep keep;
            keep.look(args.mask, at);
            put(i, __ldcs(reinterpret_cast<const uint4 *>(args.data + at * SIZE)), keep, fill);
        }
    }
    CR_DEVICE void elements(uint64_t from, uint64_t count) const {
        for (uint64_t i = from + blockIdx.x * CR_GPU_THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * CR_GPU_THREADS) {
            const uint64_t at = place(i, (uint32_t)args.line, 1);
            cr_keep<1> keep;
            const bool counts = keep.look(args.mask, at) != 0;
            const uint64_t bits = counts ? cr_load_one<SIZE>(args.data + at * SIZE) : args.fill;
            if constexpr (SIZE == 8) reinterpret_cast<uint64_t *>(args.to)[i] = bits;
            else if constexpr (SIZE == 4) reinterpret_cast<uint32_t *>(args.to)[i] = (uint32_t)bits;
            else if constexpr (SIZE == 2) reinterpret_cast<uint16_t *>(args.to)[i] = (uint16_t)bits;
            else args.to[i] = (uint8_t)bits;
            if (args.kept != nullptr) args.kept[i] = counts;
        }
    }
    CR_DEVICE void all() const {
        const uint64_t count = args.lines * args.line, whole = args.vectors ? count / LANES : 0;
        vectors(whole);
        elements(whole * LANES, count);
    }
};

/* ---- Extrema of no elements ---- */

CR_DEVICE bool cr_lack_may(const cr_lack_args &args, uint64_t output) {
    const uint8_t *p = args.answers + output * args.size;
    return args.bits == (args.size == 8   ? *reinterpret_cast<const uint64_t *>(p)
                         : args.size == 4 ? *reinterpret_cast<const uint32_t *>(p)
                         : args.size == 2 ? *reinterpret_cast<const uint16_t *>(p)
                                          : *p);
}
/* Few outputs are what they may be, and of those most have an element that counts soon. So a warp looks for it together. */
__global__ void __launch_bounds__(CR_GPU_THREADS) cr_lack_kernel(const __grid_constant__ cr_lack_args args) {
    const uint64_t warp = (uint64_t)blockIdx.x * CR_WARPS + threadIdx.x / CR_WARP, lane = threadIdx.x % CR_WARP;
    for (uint64_t base = warp * CR_WARP; base < args.outputs; base += (uint64_t)gridDim.x * CR_WARPS * CR_WARP) {
        uint32_t these = __ballot_sync(CR_EVERYONE, base + lane < args.outputs && cr_lack_may(args, base + lane));
        for (; these != 0; these &= these - 1) {
            const uint64_t output = base + (uint32_t)__ffs((int)these) - 1, first = output / args.inner * args.n * args.inner + output % args.inner;
            bool found = false;
            for (uint64_t i = lane; i < args.n + lane && !found; i += CR_WARP) { /* as many turns for each lane */
                cr_keep<1> keep;
                found = __any_sync(CR_EVERYONE, i < args.n && keep.look(args.mask, first + i * args.inner) != 0);
            }
            if (found || lane != output - base) continue;
            for (uint32_t i = 0; i < args.size; i++) args.answers[output * args.size + i] = 0;
            atomicMax(args.wrong, (unsigned long long)(UINT32_MAX - (uint32_t)output) << 32 | CR_AXIS_NO_VALUE | args.op << 8 | args.result);
        }
    }
}

extern "C" int cr_lack_launch(const cr_lack_args *args, uint32_t multiprocessors, void *stream) {
    const uint64_t blocks = (args->outputs + CR_GPU_THREADS - 1) / CR_GPU_THREADS, most = (uint64_t)multiprocessors * 4;
    return CR_LAUNCH(cr_lack_kernel, (uint32_t)(blocks < most ? blocks : most), CR_GPU_THREADS, stream, *args);
}

/* ---- Swaths ---- */

template <int SIZE> __global__ void __launch_bounds__(CR_GPU_THREADS, 4) cr_hide_kernel(const __grid_constant__ cr_hide_args args) {
    const cr_hide<SIZE> hide = {args};
    hide.all();
}

extern "C" int cr_hide_launch(const cr_hide_args *args, void *stream) {
    const bool follows = args->follows != 0;
    if (args->size == 1) return cr_launch(cr_hide_kernel<1>, args->blocks, CR_GPU_THREADS, stream, follows, *args);
    if (args->size == 2) return cr_launch(cr_hide_kernel<2>, args->blocks, CR_GPU_THREADS, stream, follows, *args);
    if (args->size == 4) return cr_launch(cr_hide_kernel<4>, args->blocks, CR_GPU_THREADS, stream, follows, *args);
    return cr_launch(cr_hide_kernel<8>, args->blocks, CR_GPU_THREADS, stream, follows, *args);
}
