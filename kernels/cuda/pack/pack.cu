/* pack: the kernel that folds many small arrays in one launch: a warp each.
 *
 * What has much code of its own has a function, which is called and not inlined: the kernel stays small, and no function pays for
 * the registers of another. ptxas compiles each for both kernels here, in more than linear time, so they are few. 64 registers let all warps of 4,096 units be on the GPU at once, each with all of its
 * loads under way.
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/pack/prods.cuh"
#include "kernels/cuda/pack/counts.cuh"
#include "kernels/cuda/pack/sums.cuh"
#include "kernels/cuda/pack/linger.h"

/* The unsigned integers of a width. */
constexpr cr_dtype cr_pack_uint(unsigned width) { return width == 1 ? CR_U8 : width == 2 ? CR_U16 : width == 4 ? CR_U32 : CR_U64; }

/* Whose extrema a type's are, once elements are made of that kind: see cr_pack_unsign and cr_pack_one_nan. */
constexpr cr_dtype cr_pack_ranked(cr_dtype d) {
    return !cr_is_float(d) ? cr_pack_uint(cr_width(d)) : cr_width(d) == 1 ? CR_F8_E4M3 : d;
}

template <class E, bool SQUARE> CR_CALLED void cr_call_float_sum() { cr_pack_sum<E, SQUARE>::fold(); }
template <cr_dtype D> CR_CALLED void cr_call_extrema() { cr_pack_extrema<D>(); }
template <unsigned WIDTH> CR_CALLED void cr_call_int_prod() { cr_pack_int_prod<WIDTH>(); }
template <cr_dtype D> CR_CALLED void cr_call_float_prod() { cr_pack_float_prod<D>(); }

template <cr_dtype D>
CR_DEVICE void cr_pack_int_sums(const uint4 (&v)[CR_PACK_VECTORS], cr_family family) {
    if (family == CR_FAMILY_SUMSQ) return cr_pack_int_sum<cr_sumsq_int<D>, false>(v);
    if (family == CR_FAMILY_SUMABS && cr_is_signed(D)) return cr_pack_int_sum<cr_sum_int<D, true>, false>(v);
    cr_pack_int_sum<cr_sum_int<D, false>, cr_is_signed(D)>(v);
}

/* What is short beside the load: counts, bits, and sums of integers. */
template <unsigned WIDTH>
CR_CALLED void cr_call_plain() {
    constexpr cr_dtype U = cr_pack_uint(WIDTH);
    const cr_dtype dtype = (cr_dtype)cr_pack_mine().dtype;
    const cr_family family = (cr_family)cr_pack_mine().family;
    uint4 v[CR_PACK_VECTORS];
    cr_pack_load<WIDTH>(v, 0, family == CR_FAMILY_BITS);
#define CASE(d) \
    if (cr_width(d) == WIDTH && dtype == d) return cr_pack_counts<cr_width(d) == WIDTH ? d : U>(v);
    CR_FLOAT_TYPES(CASE)
#undef CASE
    if (family == CR_FAMILY_COUNTS) return cr_pack_counts<U>(v);
    if (family == CR_FAMILY_BITS) return WIDTH == 1 && dtype == CR_BOOL ? cr_pack_bits<WIDTH == 1 ? CR_BOOL : U>(v) : cr_pack_bits<U>(v);
#define CASE(d) \
    if (cr_width(d) == WIDTH && dtype == d) return cr_pack_int_sums<cr_width(d) == WIDTH ? d : U>(v, family);
    CR_INTEGER_TYPES(CASE)
#undef CASE
}

CR_DEVICE void cr_pack_plain_of(cr_dtype dtype) {
    const unsigned width = cr_width(dtype);
    if (width == 1) return cr_call_plain<1>();
    if (width == 2) return cr_call_plain<2>();
    if (width == 4) return cr_call_plain<4>();
    cr_call_plain<8>();
}

template <bool SQUARE> CR_DEVICE void cr_pack_sum_of(cr_dtype dtype) {
    switch (dtype) {
        case CR_F8_E4M3:
            return cr_call_float_sum<cr_f8_e4m3, SQUARE>();
        case CR_F8_E5M2:
            return cr_call_float_sum<cr_f8_e5m2, SQUARE>();
        case CR_F16:
            return cr_call_float_sum<cr_f16, SQUARE>();
        case CR_BF16:
            return cr_call_float_sum<cr_bf16, SQUARE>();
        case CR_F32:
            return cr_call_float_sum<cr_f32, SQUARE>();
        case CR_F64:
            return cr_call_float_sum<cr_f64, SQUARE>();
        case CR_DTYPE_NONE: // these have no sums
        case CR_I128:
        case CR_BIGINT:
        case CR_DIGEST:
#define CASE(d) case d:
            CR_INTEGER_TYPES(CASE)
#undef CASE
            return cr_pack_plain_of(dtype);
    }
}

CR_DEVICE void cr_pack_extrema_of(cr_dtype dtype) {
    switch (dtype) {
#define CASE(d) \
    case d:     \
        return cr_call_extrema<cr_pack_ranked(d)>();
        CR_INTEGER_TYPES(CASE)
        CR_FLOAT_TYPES(CASE)
#undef CASE
        case CR_DTYPE_NONE: // these have none
        case CR_I128:
        case CR_BIGINT:
        case CR_DIGEST:
            return;
    }
}

CR_DEVICE void cr_pack_prod_of(cr_dtype dtype) {
    switch (dtype) {
#define CASE(d) \
    case d:     \
        return cr_call_int_prod<cr_width(d)>();
        CR_INTEGER_TYPES(CASE)
#undef CASE
#define CASE(d) \
    case d:     \
        return cr_call_float_prod<d>();
        CR_FLOAT_TYPES(CASE)
#undef CASE
        case CR_DTYPE_NONE: // these have none
        case CR_I128:
        case CR_BIGINT:
        case CR_DIGEST:
            return;
    }
}

#if !defined(CR_PACK_RESIDENT)
#define CR_PACK_RESIDENT 8 /* blocks on a multiprocessor */
#endif

static_assert(CR_LINGER_UNITS <= CR_PACK_WARPS && CR_LINGER_WORDS == 16, "a post has a warp for each unit, and one line");

/* Nanoseconds, from any beginning. */
CR_DEVICE uint64_t cr_gpu_ns() {
#if defined(__CUDA_ARCH__)
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
#else
    static uint64_t ns; /* on the host: it passes when it is looked at */
    return ns += 1000;
#endif
}

CR_DEVICE void cr_see_the_host() {
#if defined(__CUDA_ARCH__)
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

/* What a warp does about a unit, which is a cr_pack_unit. */
CR_DEVICE void cr_pack_fold(const uint4 unit, uint64_t *found, uint64_t *more) {
    const cr_dtype dtype = (cr_dtype)(unit.z >> 16 & 0xffu);
    const cr_family family = (cr_family)(unit.z >> 24 & ((1u << CR_PACK_WANTS) - 1));
    const uint32_t wants = family == CR_FAMILY_EXTREMA ? unit.z >> (24 + CR_PACK_WANTS) : family == CR_FAMILY_SUMABS;
    if (cr_lane() == 0) {
        cr_pack_jobs[threadIdx.x / CR_WARP] = {(const uint8_t *)cr_pair(unit.x, unit.y), found, more + unit.w,
                                                unit.z & 0xffffu, wants, (uint32_t)dtype, (uint32_t)family};
    }
    __syncwarp();
    switch (family) {
        case CR_FAMILY_SUM:
        case CR_FAMILY_SUMABS:
            return cr_pack_sum_of<false>(dtype);
        case CR_FAMILY_SUMSQ:
            return cr_pack_sum_of<true>(dtype);
        case CR_FAMILY_EXTREMA:
            return cr_pack_extrema_of(dtype);
        case CR_FAMILY_COUNTS:
        case CR_FAMILY_BITS:
            return cr_pack_plain_of(dtype);
        case CR_FAMILY_PROD:
            return cr_pack_prod_of(dtype);
        case CR_FAMILY_DIGEST: /* no unit is, nor of those below: see cr_fold_takes */
#define CR_SUM(symbol, power, sign)
#define CR_SUM_BY_POWERS(symbol, power, sign) case CR_FAMILY_##symbol:
#include "kernels/core/sum.def"
#undef CR_SUM
            break;
    }
}

__global__ void __launch_bounds__(CR_PACK_WARPS *CR_WARP, CR_PACK_RESIDENT)
    cr_pack_kernel(const __grid_constant__ cr_pack_args args) {
    const uint32_t at = blockIdx.x * (blockDim.x / CR_WARP) + threadIdx.x / CR_WARP;
    if (at >= args.count) return;
    cr_pack_fold(((const uint4 *)(args.units ? args.units : args.few))[at],
                  args.found + (uint64_t)at * CR_PACK_WORDS, args.more);
}

/* The first warp: waits for a post, whose words it leaves in shared memory without its number. False: nobody comes. */
CR_DEVICE bool cr_linger_wait(const cr_linger_args &args, uint64_t (&post)[CR_LINGER_WORDS], uint32_t &last, uint64_t begun) {
    const volatile uint64_t *word = args.box->word;
    const uint64_t since = cr_gpu_ns();
    const uint32_t lane = cr_lane();
    for (;;) {
        const uint64_t w = lane < CR_LINGER_WORDS ? word[lane] : 0;
        const uint32_t number = (uint32_t)(w >> CR_LINGER_SHIFT), now = __shfl_sync(CR_EVERYONE, number, CR_LINGER_COUNT);
        const bool quit = __shfl_sync(CR_EVERYONE, (uint32_t)w, CR_LINGER_QUIT) != 0;
        if (now != last && __all_sync(CR_EVERYONE, lane >= CR_LINGER_QUIT || number == now)) {
            if (lane < CR_LINGER_WORDS) post[lane] = w & ((1ull << CR_LINGER_SHIFT) - 1);
            last = now;
            cr_see_the_host(); /* what is read from here on is as it was when the post was made, or later */
            return true;
        }
        const uint64_t time = cr_gpu_ns();
        /* The clocks of lanes differ. */
        if (__any_sync(CR_EVERYONE, quit || time - since > args.linger_ns || time - begun > CR_LINGER_LIFE_NS)) return false;
    }
}

__global__ void __launch_bounds__(CR_PACK_WARPS *CR_WARP, 4)
    cr_linger_kernel(const __grid_constant__ cr_linger_args args) {
    __shared__ uint64_t post[CR_LINGER_WORDS];
    const uint32_t warp = threadIdx.x / CR_WARP;
    const uint64_t begun = cr_gpu_ns();
    uint32_t last = (uint32_t)args.number;
    for (;;) {
        if (warp == 0 && !cr_linger_wait(args, post, last, begun) && cr_lane() == 0) post[CR_LINGER_COUNT] = 0;
        __syncthreads();
        const uint32_t count = (uint32_t)post[CR_LINGER_COUNT];
        if (count == 0) break;
        if (warp < count) {
            const uint64_t *unit = &post[warp * CR_LINGER_UNIT_WORDS];
            const uint64_t data = unit[0] | unit[1] >> 32 << CR_LINGER_SHIFT;
            cr_pack_fold(make_uint4((uint32_t)data, (uint32_t)(data >> 32), (uint32_t)unit[1], (uint32_t)unit[2]),
                          (uint64_t *)post[CR_LINGER_FOUND] + warp * CR_PACK_WORDS, (uint64_t *)post[CR_LINGER_MORE]);
        }
        __syncthreads();
    }
    if (threadIdx.x != 0) return;
    __threadfence_system(); /* all answers come before this */
    *(volatile uint64_t *)&args.box->gone = 1;
}

extern "C" int cr_linger_launch(const cr_linger_args *args, void *stream) {
    return CR_LAUNCH(cr_linger_kernel, 1, CR_PACK_WARPS * CR_WARP, stream, *args);
}

/* A few units have a multiprocessor each. */
extern "C" int cr_pack_launch(const cr_pack_args *args, void *stream) {
    const uint32_t warps = args->count <= CR_PACK_FEW ? 1 : CR_PACK_WARPS;
    return CR_LAUNCH(cr_pack_kernel, (args->count + warps - 1) / warps, warps * CR_WARP, stream, *args);
}
