/* slow: the chunks of the list, or all, by the bins of float64 (fold/bins.cuh), whose time hardly depends on the data: of any type of
 * floats, since each is one of float64's numbers. A warp folds the segments of a part of a chunk one after the other, for a variance twice:
 * were the part all of the chunk, one element that no window takes would take a millisecond.
 *
 * The last block leaves the list empty, and the states zero where offsets were wrong.
 * Thread: GPU; a part is a warp's. Owner: the kernel; `Shared` the block. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_SLOW_CUH
#define CURED_KERNELS_CUDA_OFFSETS_SLOW_CUH

#include "kernels/cuda/fold/bins.cuh"
#include "kernels/cuda/offsets/close.cuh"

struct cr_segments_slow_shared {
    union {
        cr_bins<cr_f64, CR_SUM_PLAIN>::Shared plain;
        cr_bins<cr_f64, CR_SUM_SQUARE>::Shared square;
    } bins;
    cr_segments_digits digits[CR_WARPS];
};

/* The bits of float64 for those of another type. */
template <class E> CR_DEVICE uint64_t cr_as_f64(uint64_t bits) {
    const uint64_t sign = bits >> (8 * E::SIZE - 1), magnitude = bits & ((1ull << (8 * E::SIZE - 1)) - 1);
    if (magnitude < E::INFINITE) return (uint64_t)__double_as_longlong(E::value(bits));
    return sign << 63 | (magnitude == E::INFINITE ? 0x7ff0000000000000u : 0x7ff8000000000000u);
}
CR_DEVICE uint64_t cr_segments_element(const cr_segments_args &args, uint64_t i) {
    if (args.dtype == CR_F64) return args.odd ? cr_load_one<8>(args.data + i * 8) : reinterpret_cast<const uint64_t *>(args.data)[i];
    if (args.dtype == CR_F32) return cr_as_f64<cr_f32>(cr_load_one<4>(args.data + i * 4));
    const uint64_t half = cr_load_one<2>(args.data + i * 2);
    return args.dtype == CR_F16 ? cr_as_f64<cr_f16>(half) : cr_as_f64<cr_bf16>(half);
}

template <int KIND> struct cr_segments_slow_sum {
    using Bins = cr_bins<cr_f64, KIND>;
    static constexpr int LIMBS = cr_axis_hard_sum<KIND>::LIMBS, TOGETHER = 4;
    typename Bins::Shared &bins;
    long long *digit;
    unsigned long long special[3]; /* NaNs, +inf, −inf: of the warp, in the end */

    /* What the table has, to the digits; it is empty then. */
    CR_DEVICE void gather() {
        constexpr int COUNT = (int)(sizeof bins.digit[0] / sizeof bins.digit[0][0]), COPIES = (int)(sizeof bins.digit[0][0] / 4);
        const uint32_t warp = threadIdx.x / CR_WARP;
        __syncwarp();
        for (int limb = (int)(threadIdx.x % CR_WARP); limb < COUNT / 2; limb += CR_WARP) {
            long long low = 0, high = 0;
            for (int copy = 0; copy < COPIES; copy++) {
                low += (int)bins.digit[warp][2 * limb][copy];
                high += (int)bins.digit[warp][2 * limb + 1][copy];
                bins.digit[warp][2 * limb][copy] = bins.digit[warp][2 * limb + 1][copy] = 0;
            }
            if (limb < LIMBS) digit[limb] += low + high * 65536;
        }
        __syncwarp();
    }
    CR_DEVICE void put(uint64_t bits) {
        cr_parts<cr_f64> parts;
        if (parts.split(bits)) {
            Bins::element(bins, bits);
            return;
        }
        const int which = parts.special();
#pragma unroll
        for (int i = 0; i < 3; i++) special[i] += which == i;
    }
    /* Elements [low, high). */
    CR_DEVICE void fold(const cr_segments_args &args, uint64_t low, uint64_t high) {
        const uint32_t lane = threadIdx.x % CR_WARP;
        const uint64_t mask = args.absolute ? (uint64_t)INT64_MAX : ~0ull;
        uint32_t fill = 0;
        special[0] = special[1] = special[2] = 0;
        for (int i = (int)lane; i < LIMBS; i += CR_WARP) digit[i] = 0;
        for (uint64_t at = low; at < high; at += TOGETHER * CR_WARP) {
            uint64_t bits[TOGETHER];
#pragma unroll
            for (uint32_t i = 0; i < (uint32_t)TOGETHER; i++) {
                const uint64_t place = at + i * CR_WARP + lane;
                bits[i] = place < high ? cr_segments_element(args, place) & mask : 0;
            }
            fill += Bins::adds(TOGETHER);
            if (fill > (uint32_t)Bins::MOST) {
                gather();
                fill = Bins::adds(TOGETHER);
            }
#pragma unroll
            for (int i = 0; i < TOGETHER; i++) put(bits[i]);
        }
        gather();
#pragma unroll
        for (int i = 0; i < 3; i++) {
            for (uint32_t step = CR_WARP / 2; step > 0; step /= 2) special[i] += __shfl_xor_sync(CR_EVERYONE, special[i], step);
        }
    }
    CR_DEVICE void leave(cr_sum_state *state) const {
        for (int i = (int)(threadIdx.x % CR_WARP); i < LIMBS; i += CR_WARP) cr_limb_add(state, i, digit[i]);
    }
};

/* A warp at a part of a chunk. */
struct cr_segments_slow {
    const cr_segments_args &args;
    cr_segments_slow_shared &shared;
    cr_segments_digits &digits;
    uint32_t parts; /* of a chunk */

    /* Elements [low, high) of a segment of n. alone: it has no others. */
    CR_DEVICE void part(uint64_t segment, uint64_t low, uint64_t high, uint64_t from, uint64_t n, bool alone, bool ended, uint32_t owner) {
        cr_segments_slow_sum<CR_SUM_PLAIN> sum = {shared.bins.plain, digits.sum, {0, 0, 0}};
        cr_segments_slow_sum<CR_SUM_SQUARE> square = {shared.bins.square, digits.square, {0, 0, 0}};
        (void)from;
        if (args.kind != CR_SEGMENTS_SQUARE) sum.fold(args, low, high);
        if (args.kind != CR_SEGMENTS_SUM) square.fold(args, low, high);
        const unsigned long long *special = args.kind != CR_SEGMENTS_SQUARE ? sum.special : square.special;
        if (alone) {
            const uint64_t marks = (special[0] & CR_MARK_NANS) | (special[1] != 0 ? (uint64_t)CR_MARK_PLUS : 0) | (special[2] != 0 ? (uint64_t)CR_MARK_MINUS : 0);
            cr_segments_close(args, segment, n, digits, marks);
            return;
        }
        if (args.kind != CR_SEGMENTS_SQUARE) sum.leave(cr_segments_state(args, owner, false));
        if (args.kind != CR_SEGMENTS_SUM) square.leave(cr_segments_state(args, owner, true));
        cr_segments_add_marks(cr_segments_state(args, owner, false), special[0], special[1] != 0, special[2] != 0);
        cr_segments_arrive(args, owner, segment, n, high - low, ended, digits);
    }
    /* A part of a chunk; args.parted: all of it. */
    template <int SIZE> CR_DEVICE void chunk(uint32_t number) {
        const cr_segments_chunk c = cr_segments_cut<SIZE>(args, number, parts);
        if (number == 0 && cr_offset_at(args, 0) > args.n) cr_segments_head(args)->wrong = 1;
        uint64_t low = c.low, from = c.from;
        for (uint64_t i = c.first; i <= c.last; i++) {
            const bool ends = i < c.last;
            if (!ends && (i >= args.count || low >= c.high)) break;
            const uint64_t end = cr_offset_at(args, i + 1), high = ends ? max(low, min(end, c.high)) : c.high;
            if (ends && (end < low || end > c.high)) cr_segments_head(args)->wrong = 1;
            const bool alone = ends && from >= c.low;
            if (args.parted && !alone && cr_segments_parts(args)[2 * (uint64_t)number + (from >= c.low)].hard == 0) {
                low = from = high;
                continue;
            }
            part(i, low, high, from, min(end, args.n) - from, alone, ends, alone ? 0 : cr_segments_owner<SIZE>(args, i, from));
            low = from = high;
        }
    }
};

/* The last block: what wrong offsets left in the states goes, all answers become NaNs, and the caller is told. */
CR_DEVICE void cr_segments_tidy(const cr_segments_args &args, cr_axis_head *head) {
    const bool wrong = __ldcg(&head->wrong) != 0;
    __syncthreads();
    if (!wrong && __ldcg(&head->open) == 0) return;
    for (uint32_t square = 0; square < 2; square++) {
        for (uint32_t i = 0; i < args.owners; i++) {
            uint32_t *word = reinterpret_cast<uint32_t *>(cr_segments_state(args, i, square != 0));
            for (uint32_t k = threadIdx.x; k < sizeof(cr_sum_state) / 4; k += CR_GPU_THREADS) word[k] = 0;
        }
    }
    for (uint32_t k = 0; k < args.out_count; k++) {
        for (uint64_t i = threadIdx.x; i < args.count; i += CR_GPU_THREADS) cr_put_bits(args.out[k].to, i, args.out[k].result, cr_nan_bits(args.out[k].result));
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    head->wrong = head->open = 0;
    *args.wrong = 1;
}

static __global__ void __launch_bounds__(CR_GPU_THREADS, CR_SEGMENTS_SLOW_BLOCKS) cr_segments_slowly(const __grid_constant__ cr_segments_args args) {
    __shared__ cr_segments_slow_shared shared;
    __shared__ uint32_t last;
    cr_after_the_last();
    cr_axis_head *head = cr_segments_head(args);
    const uint32_t chunks = args.all ? args.chunks : __ldcg(&head->hard), lane = threadIdx.x % CR_WARP;
    const uint32_t parts = chunks < gridDim.x * CR_WARPS ? args.slow_parts : 1, works = chunks * parts; /* where every warp has a chunk, parts only cost cuts */
    if (works == 0 && (__ldcg(&head->wrong) | __ldcg(&head->open)) == 0) return; /* for no block is there anything */
    for (uint32_t i = threadIdx.x; i < sizeof shared.bins / 4; i += CR_GPU_THREADS) reinterpret_cast<uint32_t *>(&shared.bins)[i] = 0;
    __syncthreads();
    cr_segments_slow slow = {args, shared, shared.digits[threadIdx.x / CR_WARP], parts};
    for (;;) { /* as warps come */
        uint32_t work = works;
        if (lane == 0 && works != 0) work = atomicAdd(&head->taken, 1u);
        work = __shfl_sync(CR_EVERYONE, work, 0);
        if (work >= works) break;
        const uint32_t chunk = args.all ? work : cr_segments_list(args)[work / parts] * parts + work % parts;
        if (args.dtype == CR_F64) slow.chunk<8>(chunk);
        else if (args.dtype == CR_F32) slow.chunk<4>(chunk);
        else slow.chunk<2>(chunk);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(&head->hard_blocks, 1u) + 1 == gridDim.x;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    cr_segments_tidy(args, head);
    if (threadIdx.x == 0) head->hard_blocks = head->taken = head->hard = 0;
}

#endif
