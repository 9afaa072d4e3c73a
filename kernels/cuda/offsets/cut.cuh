/* cut: where a chunk of the way through elements and ends begins and ends (offsets.h), by a search among the offsets.
 *
 * A cut never parts a short segment, because two parts have to meet (close.cuh), which takes longer than the segment's sum.
 * Offsets may be wrong, or be changed meanwhile: whatever they are, no access leaves the arrays, and of neighbouring chunks the ends of
 * one are followed by those of the next. So every offset is looked at by some chunk.
 * Thread: GPU; a warp together. Owner: none. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_CUT_CUH
#define CURED_KERNELS_CUDA_OFFSETS_CUT_CUH

#include "kernels/cuda/offsets/offsets.h"
#include "kernels/cuda/thread/simt.cuh"

/* ---- The scratch ---- */

CR_DEVICE cr_axis_head *cr_segments_head(const cr_segments_args &args) { return reinterpret_cast<cr_axis_head *>(args.scratch); }
CR_DEVICE uint32_t *cr_segments_list(const cr_segments_args &args) { return reinterpret_cast<uint32_t *>(cr_segments_head(args) + 1); }
/* Two for each chunk. */
CR_DEVICE cr_segments_part *cr_segments_parts(const cr_segments_args &args) {
    return reinterpret_cast<cr_segments_part *>(cr_segments_list(args) + (args.chunks + 1) / 2 * 2);
}

/* ---- Numbers of chunks ---- */

/* Warps begin with the chunks as they lie, and then take those that nobody has. A number is taken late, since multiprocessors are not equally
 * fast. Where all have one, nobody asks: thousands that add to one place take microseconds. */
CR_DEVICE uint32_t cr_segments_first() { return blockIdx.x * CR_SEGMENTS_WARPS + threadIdx.x / CR_WARP; }
CR_DEVICE bool cr_segments_has_more(const cr_segments_args &args) { return args.chunks > gridDim.x * CR_SEGMENTS_WARPS; }
/* To lane 0: a number, which cr_segments_next makes the next chunk's. */
CR_DEVICE uint32_t cr_segments_take(const cr_segments_args &args) {
    return cr_segments_has_more(args) && threadIdx.x % CR_WARP == 0 ? atomicAdd(&cr_segments_head(args)->next, 1u) : 0;
}
CR_DEVICE uint32_t cr_segments_next(const cr_segments_args &args, uint32_t taken) {
    if (!cr_segments_has_more(args)) return args.chunks;
    if (taken + 1 == args.chunks && threadIdx.x % CR_WARP == 0) cr_segments_head(args)->next = 0; /* whoever is given the last number of all */
    return gridDim.x * CR_SEGMENTS_WARPS + __shfl_sync(CR_EVERYONE, taken, 0);
}

/* ---- Offsets ---- */

/* Offset i as it lies in memory now. Nothing waits for it before cr_offset_of. */
CR_DEVICE uint64_t cr_offset_load(const cr_segments_args &args, uint64_t i) {
    if (args.narrow) return reinterpret_cast<const uint32_t *>(args.offsets)[i];
    return reinterpret_cast<const uint64_t *>(args.offsets)[i];
}
/* A negative one is beyond 2^63. */
CR_DEVICE uint64_t cr_offset_of(const cr_segments_args &args, uint64_t loaded) {
    return args.narrow && args.is_signed ? (uint64_t)(int64_t)(int32_t)(uint32_t)loaded : loaded;
}
CR_DEVICE uint64_t cr_offset_at(const cr_segments_args &args, uint64_t i) { return cr_offset_of(args, cr_offset_load(args, i)); }
CR_DEVICE uint64_t cr_offset_within(const cr_segments_args &args, uint64_t i) { return min(cr_offset_at(args, i), args.n); }

/* Ends [first, last) and elements [low, high) are the chunk's. from: where the segment that is open at its beginning begins. */
struct cr_segments_chunk {
    uint64_t first, last, low, high, from;
};

CR_DEVICE uint64_t cr_from_lane(uint64_t x, uint32_t lane) { return __shfl_sync(CR_EVERYONE, x, lane); }

/* Each half of the warp looks for one of both cuts. It begins where it would be if all segments were alike. parts: how many a chunk has;
 * `chunk` is then the number of a part, among those of all chunks. */
template <int SIZE> CR_DEVICE cr_segments_chunk cr_segments_cut(const cr_segments_args &args, uint32_t chunk, uint32_t parts = 1) {
    constexpr uint32_t HALF = CR_WARP / 2, TOGETHER = 64 / SIZE; /* elements that a cut does not part */
    const uint32_t lane = threadIdx.x % CR_WARP, own = lane % HALF, cut = chunk + lane / HALF;
    const uint64_t place = cut * (args.per_chunk / parts);
    const bool all = cut >= args.chunks * parts;
    uint64_t low = all ? args.count : 0, high = cut == 0 ? 0 : args.count, step = 1;
    uint64_t from = (uint64_t)((double)place / (double)args.path * (double)args.count);
    from = from > low + HALF / 2 ? min(from - HALF / 2, high) : low;
    while (__any_sync(CR_EVERYONE, low < high)) {
        const uint64_t probe = from + (own + 1) * step - 1;
        const bool before = probe < high && cr_offset_within(args, probe + 1) * SIZE + (probe + 1) * CR_SEGMENTS_END <= place;
        const uint32_t count = (uint32_t)__popc(__ballot_sync(CR_EVERYONE, before) >> (lane - own) & ((1u << HALF) - 1));
        if (count < HALF) high = min(high, from + (count + 1) * step - 1);
        if (count > 0) low = min(from + count * step, high);
        from = low;
        step = (high - low + HALF - 1) / HALF;
        if (step == 0) step = 1;
    }
    uint64_t begin = cr_offset_within(args, low);
    const uint64_t end = low < args.count ? cr_offset_within(args, low + 1) : begin;
    const uint64_t ends = low * CR_SEGMENTS_END, shift = args.odd ? 0 : (uintptr_t)args.data % CR_GPU_VECTOR / SIZE;
    uint64_t element = all ? begin : place > ends ? (place - ends) / SIZE : 0;
    if (element >= end) element = end;
    else if (element + shift >= TOGETHER) element = (element + shift) / TOGETHER * TOGETHER - shift;
    if (element < begin) element = begin;
    if (!all && element != begin && end - begin <= args.whole) { /* the chunk before takes the whole segment */
        begin = element = end;
        low++;
    }
    cr_segments_chunk found;
    found.first = cr_from_lane(low, 0);
    found.last = cr_from_lane(low, HALF);
    found.low = cr_from_lane(element, 0);
    found.high = max(found.low, cr_from_lane(element, HALF));
    found.from = cr_from_lane(begin, 0);
    return found;
}

/* The number of the state of a segment that a cut parts: no two of them have the same, since each has more than per_owner. */
template <int SIZE> CR_DEVICE uint32_t cr_segments_owner(const cr_segments_args &args, uint64_t segment, uint64_t from) {
    return (uint32_t)min((from * SIZE + segment * CR_SEGMENTS_END) / args.per_owner, (uint64_t)args.owners - 1);
}

#endif
