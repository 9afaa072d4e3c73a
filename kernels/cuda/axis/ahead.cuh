/* ahead: loads along an axis that run ahead of what is folded: copies into shared memory, which take no registers and are under way
 * while a thread works, also those of the row after the one at work.
 *
 * A stage is A::U units of each thread, and two are under way. Where the lanes of a warp work on neighbouring
 * columns they copy 16 bytes each for all; in a row each copies what it will read.
 * Thread: GPU. Owner: the kernel; `Shared` the block. */
#ifndef CURED_KERNELS_CUDA_AXIS_AHEAD_CUH
#define CURED_KERNELS_CUDA_AXIS_AHEAD_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/thread/simt.cuh"

CR_DEVICE void cr_copy_begin(uint4 *to, const uint8_t *from) {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#else
    *to = *reinterpret_cast<const uint4 *>(from);
#endif
}
CR_DEVICE void cr_copies_end_group() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Until no more than PENDING of this thread's groups are under way. */
template <int PENDING> CR_DEVICE void cr_copies_wait() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

template <class A, class UNIT, bool AHEAD> struct cr_axis_ahead { /* none */
    struct Shared {};
    static constexpr bool on = false, together = false;
    uint32_t total;
    CR_DEVICE explicit cr_axis_ahead(Shared &) {}
    template <class SPOT> CR_DEVICE void open(const cr_axis_args &, const SPOT &, uint32_t) {}
    template <class SPOT> CR_DEVICE void go_on(const cr_axis_args &, const SPOT &, uint32_t) {}
    CR_DEVICE void get(const cr_axis_args &, UNIT (&)[A::U], int) {}
    CR_DEVICE void got(const cr_axis_args &) {}
    CR_DEVICE bool leave(bool wanted) { return wanted; }
    CR_DEVICE void close() {}
};

template <class A, class UNIT> struct cr_axis_ahead<A, UNIT, true> {
    static constexpr int U = A::U, V = CR_GPU_VECTOR / (int)sizeof(UNIT), N = U / V; /* N: vectors of a stage, for a thread */
    static constexpr uint32_t TEAM = 8; /* threads of a row, at least: shorter rows lose by what this costs */
    static constexpr uint32_t ACROSS = CR_WARP / V;                                  /* vectors that a warp has of a line */
    struct Shared {
        uint4 vector[2][N][CR_GPU_THREADS];
    };
    uint4 *const own; /* this thread's first place */
    const uint8_t *next;
    uint64_t jump;       /* from a row's last stage to the next row */
    uint32_t left, more; /* vectors (columns: lines) still to be asked for; rows after that */
    uint32_t each, turn, total; /* vectors of a row, or lanes that have any work; which stage is next; units that all lanes go through, where they go together */
    bool on, together, stale;

    CR_DEVICE explicit cr_axis_ahead(Shared &shared) : own(&shared.vector[0][0][threadIdx.x]), on(false), together(false), stale(false) {}

    /* From spot on, and then `others` rows of this team. The warp is together. */
    template <class SPOT> CR_DEVICE void open(const cr_axis_args &args, const SPOT &spot, uint32_t others) {
        const cr_axis_launch &at = args.at;
        together = at.together != 0;
        on = together || (at.vector > 1 && at.m >= TEAM);
        if (!on) return;
        cr_copies_wait<0>();
        stale = false;
        turn = more = 0;
        next = spot.from;
        total = spot.count;
        if (!together) {
            each = left = spot.count / V;
            more = others;
            jump = (uint64_t)(CR_GPU_THREADS >> at.m_log) * at.n * A::SIZE - (uint64_t)((each + N - 1) / N * N) * spot.stride;
        } else {
            const uint32_t lane = threadIdx.x % CR_WARP;
            const uint64_t first = __shfl_sync(CR_EVERYONE, (uint64_t)(uintptr_t)next, 0);
            total = __shfl_sync(CR_EVERYONE, spot.count, 0);
            left = total;
            next = reinterpret_cast<const uint8_t *>((uintptr_t)first) + lane % ACROSS * CR_GPU_VECTOR + lane / ACROSS * spot_stride(args);
            each = (uint32_t)__popc(__ballot_sync(CR_EVERYONE, spot.count != 0));
            __syncwarp();
        }
        ask(args);
        turn = 1;
        ask(args);
        turn = 0;
    }
    /* The next row, which is asked for already but where the one before it was left. */
    template <class SPOT> CR_DEVICE void go_on(const cr_axis_args &args, const SPOT &spot, uint32_t others) {
        if (on && stale) open(args, spot, others);
    }
    static CR_DEVICE uint64_t spot_stride(const cr_axis_args &args) { return args.at.line << args.at.m_log; }

    CR_DEVICE void ask(const cr_axis_args &args) {
        const cr_axis_launch &at = args.at;
        uint4 *to = own + turn * (N * CR_GPU_THREADS);
        if (!together) {
            const uint64_t stride = (uint64_t)CR_GPU_VECTOR << at.m_log;
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)N; k++, next += stride) {
                if (k < left) cr_copy_begin(to + k * CR_GPU_THREADS, next);
            }
            if (left > (uint32_t)N) {
                left -= N;
            } else {
                left = 0;
                if (more != 0) {
                    more--;
                    left = each;
                    next += jump;
                }
            }
        } else {
            const uint32_t lane = threadIdx.x % CR_WARP, line = lane / ACROSS;
            const uint64_t stride = spot_stride(args) * V;
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)N; k++, next += stride) {
                if (k * V + line < left && lane % ACROSS * V < each) cr_copy_begin(to + k * CR_GPU_THREADS, next);
            }
            left -= min(left, (uint32_t)U);
        }
        cr_copies_end_group();
    }
    /* A stage, of which this thread has `have` units; zeros beyond. Where lanes go together, all ask for it. */
    CR_DEVICE void get(const cr_axis_args &args, UNIT (&v)[U], int have) {
        cr_copies_wait<1>();
        if (together) __syncwarp();
        const uint4 *from = own + turn * (N * CR_GPU_THREADS);
        if (together) {
            const uint32_t lane = threadIdx.x % CR_WARP;
#pragma unroll
            for (int i = 0; i < U; i++)
                v[i] = reinterpret_cast<const UNIT *>(from - lane + i / V * CR_GPU_THREADS)[i % V * CR_WARP + lane];
        } else {
#pragma unroll
            for (int k = 0; k < N; k++) {
                const uint4 x = from[k * CR_GPU_THREADS];
#pragma unroll
                for (int i = 0; i < V; i++) v[k * V + i] = sizeof v[0] == 8 ? cr_word64(x, (unsigned)i) : cr_word(x, (unsigned)i);
            }
        }
        if (have < U) {
#pragma unroll
            for (int i = 0; i < U; i++) v[i] = i < have ? v[i] : 0;
        }
        if (together) __syncwarp();
    }
    /* After a stage: asks for the one after the next, into its place. */
    CR_DEVICE void got(const cr_axis_args &args) {
        ask(args);
        turn ^= 1;
    }
    /* Whether to leave the row: where lanes go together, if all want to. What is asked for of it comes to nothing. */
    CR_DEVICE bool leave(bool wanted) {
        if (together) return __all_sync(CR_EVERYONE, wanted);
        stale |= wanted;
        return wanted;
    }
    CR_DEVICE void close() { cr_copies_wait<0>(); }
};

#endif
