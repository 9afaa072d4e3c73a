/* teams: launches the folds of teams.cuh, and behind each the kernel that joins the parts which chunks left of segments that cuts part.
 *
 * A warp joins a segment of few parts. It begins at the chunk in which the segment does. One of many parts has the block.
 * Thread: GPU; launches: the stream's thread. Owner: the kernel. */
#include "kernels/cuda/offsets/teams.cuh"

enum {
    CR_JOIN_EACH = 8, /* parts of a thread at a time, of a segment that has more than a warp joins at once */
    CR_JOIN_WARPS = CR_SEGMENTS_JOINERS / CR_WARP,
};

/* Of THREADS threads. */
template <uint32_t THREADS> struct cr_joiner {
    const cr_segments_args &args;
    cr_segments_part *const room; /* THREADS / 2 */
    uint32_t &next;
    const uint32_t thread;

    CR_DEVICE cr_joiner(const cr_segments_args &of, cr_segments_part *parts, uint32_t &word) : args(of), room(parts), next(word), thread(threadIdx.x % THREADS) {}
    CR_DEVICE static void meet() {
        if (THREADS == CR_WARP) __syncwarp();
        else __syncthreads();
    }
    CR_DEVICE const cr_segments_part &head(uint32_t chunk) const { return cr_segments_parts(args)[2 * (uint64_t)chunk]; }
    /* The least of all threads' x. */
    CR_DEVICE uint32_t least(uint32_t x) const {
        if (THREADS == CR_WARP) return __reduce_min_sync(CR_EVERYONE, x);
        if (thread == 0) next = UINT32_MAX;
        meet();
        if (x != UINT32_MAX) atomicMin(&next, x);
        meet();
        x = next;
        meet();
        return x;
    }
    /* Joins the parts of EACH · THREADS chunks from `at` on, up to the segment's last; gives the chunk behind that, UINT32_MAX: it is none
     * of these. */
    template <uint32_t EACH> CR_DEVICE uint32_t some(uint32_t at, cr_segments_part &own) const {
        uint32_t behind = UINT32_MAX;
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            const uint32_t k = at + i * THREADS + thread, state = k < args.chunks ? head(k).state : (uint32_t)CR_PART_NONE;
            if (state != CR_PART_GOES_ON) behind = min(behind, k + (state == CR_PART_ENDS));
        }
        behind = least(behind);
#pragma unroll 1
        for (uint32_t k = at + thread; k < min(behind, at + EACH * THREADS) && k < args.chunks; k += THREADS) cr_segments_join((int)args.kind, own, head(k));
        return behind;
    }
    /* Thread 0 answers the segment that is open at the end of `chunk`, and whose parts are those before chunk `behind`. */
    CR_DEVICE void answer(uint32_t chunk, uint32_t behind, cr_segments_part &own) const {
        for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
            if (thread >= half && thread < 2 * half) room[thread - half] = own;
            meet();
            if (thread < half) cr_segments_join((int)args.kind, own, room[thread]);
            meet();
        }
        if (thread != 0) return;
        cr_segments_part *parts = cr_segments_parts(args);
        const uint64_t segment = parts[2 * (uint64_t)chunk + 1].segment, begin = cr_offset_within(args, segment), end = cr_offset_within(args, segment + 1);
        if (behind == chunk + 1 || head(behind - 1).state != CR_PART_ENDS) cr_segments_head(args)->wrong = 1; /* nobody saw its end */
        if (cr_segments_answer(args, (int)args.kind, segment, end > begin ? end - begin : 0, begin, own)) return;
        for (uint32_t k = chunk; k < behind; k++) {
            parts[2 * (uint64_t)k + (k == chunk)].hard = 1;
            cr_segments_put_on_list(args, k);
        }
    }
    CR_DEVICE cr_segments_part first(uint32_t chunk) const {
        return thread == 0 ? cr_segments_parts(args)[2 * (uint64_t)chunk + 1] : cr_segments_nothing((int)args.kind);
    }
};

static __global__ void __launch_bounds__(CR_SEGMENTS_JOINERS) cr_segments_join_parts(const __grid_constant__ cr_segments_args args) {
    __shared__ cr_segments_part room[CR_SEGMENTS_JOINERS / 2];
    __shared__ uint32_t many[CR_JOIN_WARPS], next;
    cr_after_the_last();
    const uint32_t warp = threadIdx.x / CR_WARP;
    const cr_joiner<CR_WARP> few(args, room + warp * (CR_WARP / 2), next);
    const cr_joiner<CR_SEGMENTS_JOINERS> all(args, room, next);
    for (uint32_t base = blockIdx.x * CR_JOIN_WARPS; base < args.chunks; base += gridDim.x * CR_JOIN_WARPS) {
        const uint32_t chunk = base + warp;
        bool is_long = false;
        if (chunk < args.chunks && cr_segments_parts(args)[2 * (uint64_t)chunk + 1].state != CR_PART_NONE) {
            cr_segments_part own = few.first(chunk);
            const uint32_t behind = few.some<1>(chunk + 1, own);
            is_long = behind == UINT32_MAX;
            if (!is_long) few.answer(chunk, behind, own);
        }
        if (threadIdx.x % CR_WARP == 0) many[warp] = is_long;
        __syncthreads();
        for (uint32_t k = 0; k < CR_JOIN_WARPS; k++) {
            if (!many[k]) continue;
            cr_segments_part own = all.first(base + k);
            uint32_t behind = UINT32_MAX;
            for (uint32_t at = base + k + 1; behind == UINT32_MAX; at += CR_JOIN_EACH * CR_SEGMENTS_JOINERS) behind = all.some<CR_JOIN_EACH>(at, own);
            all.answer(base + k, behind, own);
        }
        __syncthreads();
    }
    /* The last block tells what was wrong, if the slow kernel does not. */
    if (threadIdx.x != 0 || args.kind == CR_SEGMENTS_QUARTERS) return;
    cr_axis_head *head = cr_segments_head(args);
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
    return failure != 0 ? failure : cr_launch(cr_segments_join_parts, args->slow_blocks, CR_SEGMENTS_JOINERS, stream, true, *args);
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
