/* teams: launches the folds of teams.cuh, and behind each the kernel that joins the parts which chunks left of segments that cuts part.
 *
 * A block joins a segment: it begins at the chunk in which the segment does, and takes the parts of many chunks at once, because one
 * segment may be in all of them.
 * Thread: GPU; launches: the stream's thread. Owner: the kernel. */
#include "kernels/cuda/offsets/teams.cuh"

enum { CR_JOIN_EACH = 4 }; /* parts of a thread that are under way at once */

/* The parts of the chunks behind `chunk` that belong to the segment that is open at its end, and its own. `next`: of the block. after: the
 * first chunk behind the segment's. */
CR_DEVICE cr_segments_part cr_segments_gather(const cr_segments_args &args, uint32_t chunk, uint32_t *next, uint32_t &after) {
    const cr_segments_part *parts = cr_segments_parts(args);
    const int kind = (int)args.kind;
    cr_segments_part own = threadIdx.x == 0 ? parts[2 * (uint64_t)chunk + 1] : cr_segments_nothing(kind);
    uint32_t at = chunk + 1, end = 0; /* end: the first chunk behind the segment's, once that is found */
    do {
        uint32_t states[CR_JOIN_EACH], last = UINT32_MAX;
        if (threadIdx.x == 0) *next = UINT32_MAX;
        __syncthreads();
#pragma unroll
        for (uint32_t i = 0; i < CR_JOIN_EACH; i++) {
            const uint32_t k = at + i * CR_SEGMENTS_JOINERS + threadIdx.x;
            states[i] = k < args.chunks ? parts[2 * (uint64_t)k].state : CR_PART_NONE;
            if (states[i] != CR_PART_GOES_ON) last = min(last, k + (states[i] == CR_PART_ENDS));
        }
        if (last != UINT32_MAX) atomicMin(next, last);
        __syncthreads();
        end = *next;
#pragma unroll 1
        for (uint32_t i = 0; i < CR_JOIN_EACH; i++) {
            const uint32_t k = at + i * CR_SEGMENTS_JOINERS + threadIdx.x;
            if (k < end && k < args.chunks) cr_segments_join(kind, own, parts[2 * (uint64_t)k]);
        }
        at += CR_JOIN_EACH * CR_SEGMENTS_JOINERS;
        __syncthreads();
    } while (end == UINT32_MAX);
    if (threadIdx.x == 0 && (end - 1 == chunk || parts[2 * (uint64_t)(end - 1)].state != CR_PART_ENDS))
        cr_segments_head(args)->wrong = 1; /* nobody saw its end */
    after = end;
    return own;
}

/* What all threads have, to thread 0. */
CR_DEVICE void cr_segments_meet(int kind, cr_segments_part &own, cr_segments_part *room) {
    for (uint32_t half = CR_SEGMENTS_JOINERS / 2; half > 0; half /= 2) {
        if (threadIdx.x >= half && threadIdx.x < 2 * half) room[threadIdx.x - half] = own;
        __syncthreads();
        if (threadIdx.x < half) cr_segments_join(kind, own, room[threadIdx.x]);
        __syncthreads();
    }
}

static __global__ void __launch_bounds__(CR_SEGMENTS_JOINERS) cr_segments_join_parts(const __grid_constant__ cr_segments_args args) {
    __shared__ cr_segments_part room[CR_SEGMENTS_JOINERS / 2];
    __shared__ uint32_t next;
    cr_axis_head *head = cr_segments_head(args);
    cr_segments_part *parts = cr_segments_parts(args);
    for (uint32_t chunk = blockIdx.x; chunk < args.chunks; chunk += gridDim.x) {
        if (parts[2 * (uint64_t)chunk + 1].state == CR_PART_NONE) continue;
        uint32_t after;
        cr_segments_part own = cr_segments_gather(args, chunk, &next, after);
        cr_segments_meet((int)args.kind, own, room);
        if (threadIdx.x != 0) continue;
        const uint64_t segment = parts[2 * (uint64_t)chunk + 1].segment, begin = cr_offset_within(args, segment), end = cr_offset_within(args, segment + 1);
        if (cr_segments_answer(args, (int)args.kind, segment, end > begin ? end - begin : 0, begin, own)) continue;
        for (uint32_t k = chunk; k < after; k++) {
            parts[2 * (uint64_t)k + (k == chunk)].hard = 1;
            cr_segments_put_on_list(args, k);
        }
    }
    /* The last block tells what was wrong, if the slow kernel does not. */
    if (threadIdx.x != 0 || args.kind == CR_SEGMENTS_QUARTERS) return;
    __threadfence();
    if (atomicAdd(&head->hard_blocks, 1u) + 1 != gridDim.x) return;
    __threadfence();
    head->hard_blocks = 0;
    if (__ldcg(&head->wrong) == 0) return;
    head->wrong = 0;
    *args.wrong = 1;
}

template <class T> static int cr_segments_launch_team(const cr_segments_args *args, void *stream) {
    const int failure = CR_LAUNCH((cr_segments_by_teams<T>), args->blocks, CR_SEGMENTS_WARPS * CR_WARP, stream, *args);
    return failure != 0 ? failure : CR_LAUNCH(cr_segments_join_parts, args->slow_blocks, CR_SEGMENTS_JOINERS, stream, *args);
}
template <template <int> class T> static int cr_segments_launch_width(const cr_segments_args *args, void *stream) {
    return args->size == 8   ? cr_segments_launch_team<T<8>>(args, stream)
           : args->size == 4 ? cr_segments_launch_team<T<4>>(args, stream)
           : args->size == 2 ? cr_segments_launch_team<T<2>>(args, stream)
                             : cr_segments_launch_team<T<1>>(args, stream);
}

extern "C" int cr_segments_launch_teams(const cr_segments_args *args, void *stream) {
    return args->kind == CR_SEGMENTS_QUARTERS ? cr_segments_launch_team<cr_team_quarters>(args, stream)
           : args->kind == CR_SEGMENTS_INTEGERS    ? cr_segments_launch_width<cr_team_whole>(args, stream)
           : args->kind == CR_SEGMENTS_COUNTS ? cr_segments_launch_width<cr_team_counts>(args, stream)
           : args->kind == CR_SEGMENTS_BITS   ? cr_segments_launch_width<cr_team_bits>(args, stream)
                                              : cr_segments_launch_width<cr_team_extrema>(args, stream);
}
