/* ahead: loads along an axis that run ahead of what is folded: copies into shared memory, which take no registers and are under way
 * while a thread works.
 *
 * A stage is A::U units of each thread, and two are under way. Where the lanes of a warp work on neighbouring
 * columns they copy 16 bytes each for all; in a row each copies what it will read.
 * Thread: GPU. Owner: the kernel; `Shared` the block. */
#ifndef CURED_KERNELS_CUDA_AXIS_AHEAD_CUH
#define CURED_KERNELS_CUDA_AXIS_AHEAD_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/thread/simt.cuh"

/* A place in shared memory, in as few bits as it takes, worked out once. */
#if defined(__CUDA_ARCH__)
typedef uint32_t cr_near;
CR_DEVICE cr_near cr_near_of(const void *p) {
    cr_near place;
    asm volatile("mov.u32 %0, %1;" : "=r"(place) : "r"((uint32_t)__cvta_generic_to_shared(p)));
    return place;
}
CR_DEVICE void cr_copy_begin(cr_near to, const uint8_t *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
CR_DEVICE void cr_near_load(uint4 &x, cr_near from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(from) : "memory");
}
CR_DEVICE void cr_near_load(uint32_t &x, cr_near from) { asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(from) : "memory"); }
CR_DEVICE void cr_near_load(uint64_t &x, cr_near from) { asm volatile("ld.shared.u64 %0, [%1];" : "=l"(x) : "r"(from) : "memory"); }
CR_DEVICE void cr_copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Until no more than PENDING of this thread's groups are under way. */
template <int PENDING> CR_DEVICE void cr_copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory"); }
#else
typedef uintptr_t cr_near;
CR_DEVICE cr_near cr_near_of(const void *p) { return (uintptr_t)p; }
CR_DEVICE void cr_copy_begin(cr_near to, const uint8_t *from) { memcpy((void *)to, from, CR_GPU_VECTOR); }
CR_DEVICE void cr_near_load(uint4 &x, cr_near from) { memcpy(&x, (const void *)from, sizeof x); }
CR_DEVICE void cr_near_load(uint32_t &x, cr_near from) { memcpy(&x, (const void *)from, sizeof x); }
CR_DEVICE void cr_near_load(uint64_t &x, cr_near from) { memcpy(&x, (const void *)from, sizeof x); }
CR_DEVICE void cr_copies_end_group() {}
template <int PENDING> CR_DEVICE void cr_copies_wait() {}
#endif

template <class A, class UNIT, bool AHEAD> struct cr_axis_ahead { /* none */
    struct Shared {};
    static constexpr bool on = false, together = false;
    uint32_t total;
    CR_DEVICE explicit cr_axis_ahead(Shared &) {}
    CR_DEVICE void close() {}
};

template <class A, class UNIT> struct cr_axis_ahead<A, UNIT, true> {
    static constexpr int U = A::U, V = CR_GPU_VECTOR / (int)sizeof(UNIT), N = U / V; /* N: vectors of a stage, for a thread */
    static constexpr uint32_t TEAM = 8; /* threads of a row, at least: shorter rows lose by what this costs */
    static constexpr uint32_t ACROSS = CR_WARP / V;                                  /* vectors that a warp has of a line */
    static constexpr uint32_t VECTORS = CR_GPU_VECTOR * CR_GPU_THREADS, STAGE = N * VECTORS; /* bytes: of a vector of each thread, of a stage */
    struct Shared {
        uint4 vector[2][N][CR_GPU_THREADS];
    };
    const cr_near own;   /* this thread's first place */
    const uint8_t *next;
    uint64_t stride; /* from a vector to the next */
    uint32_t left;   /* vectors still to be asked for */
    uint32_t turn, total; /* where the next stage lies; units that all lanes go through, where they go together */
    bool on, together;

    CR_DEVICE explicit cr_axis_ahead(Shared &shared) : own(cr_near_of(&shared.vector[0][0][threadIdx.x])), on(false), together(false) {}

    /* From spot on. The warp is together. */
    template <class SPOT> CR_DEVICE void open(const cr_axis_args &args, const SPOT &spot) {
        const cr_axis_launch &at = args.at;
        together = at.together != 0;
        on = together || (at.vector > 1 && at.m >= TEAM);
        if (!on) return;
        cr_copies_wait<0>();
        turn = 0;
        next = spot.from;
        total = spot.count;
        if (!together) {
            left = spot.count / V;
            stride = (uint64_t)CR_GPU_VECTOR << at.m_log;
        } else {
            const uint32_t lane = threadIdx.x % CR_WARP, line = lane / ACROSS;
            const uint64_t first = __shfl_sync(CR_EVERYONE, (uint64_t)(uintptr_t)next, 0), apart = at.line << at.m_log;
            total = __shfl_sync(CR_EVERYONE, spot.count, 0);
            next = reinterpret_cast<const uint8_t *>((uintptr_t)first) + lane % ACROSS * CR_GPU_VECTOR + line * apart;
            stride = apart * V;
            const uint32_t lanes = (uint32_t)__popc(__ballot_sync(CR_EVERYONE, spot.count != 0)); /* that have any work */
            left = line < total && lane % ACROSS * V < lanes ? (total - line + V - 1) / V : 0;
            __syncwarp();
        }
        ask();
        turn = STAGE;
        ask();
        turn = 0;
    }
    CR_DEVICE void ask() {
        const cr_near to = own + turn;
        if (left >= (uint32_t)N) {
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)N; k++, next += stride) cr_copy_begin(to + k * VECTORS, next);
            left -= N;
        } else {
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)N; k++, next += stride) {
                if (k < left) cr_copy_begin(to + k * VECTORS, next);
            }
            left = 0;
        }
        cr_copies_end_group();
    }
    /* A stage, of which this thread has `have` units; zeros beyond. Where lanes go together, all ask for it. */
    CR_DEVICE void get(UNIT (&v)[U], int have) {
        cr_copies_wait<1>();
        if (together) {
            const uint32_t lane = threadIdx.x % CR_WARP;
            const cr_near from = own + turn - lane * CR_GPU_VECTOR + lane * (uint32_t)sizeof(UNIT);
            __syncwarp();
#pragma unroll
            for (uint32_t i = 0; i < (uint32_t)U; i++) cr_near_load(v[i], from + i / V * VECTORS + i % V * (CR_WARP * (uint32_t)sizeof(UNIT)));
            __syncwarp();
        } else {
#pragma unroll
            for (uint32_t k = 0; k < (uint32_t)N; k++) {
                uint4 x;
                cr_near_load(x, own + turn + k * VECTORS);
#pragma unroll
                for (int i = 0; i < V; i++) v[(int)k * V + i] = sizeof(UNIT) == 8 ? cr_word64(x, (unsigned)i) : cr_word(x, (unsigned)i);
            }
        }
        if (have < U) {
#pragma unroll
            for (int i = 0; i < U; i++) v[i] = i < have ? v[i] : 0;
        }
    }
    /* Once a stage's units are in registers: asks for the one after the next, into its place. */
    CR_DEVICE void got() {
        ask();
        turn ^= STAGE;
    }
    /* Whether to leave the row: where lanes go together, if all want to. What is asked for of it comes to nothing. */
    CR_DEVICE bool leave(bool wanted) { return together ? __all_sync(CR_EVERYONE, wanted) : wanted; }
    CR_DEVICE void close() { cr_copies_wait<0>(); }
};

#endif
