/* warp: what a warp of the pack kernel needs: its unit's bytes in registers, and a place for what it found.
 *
 * A lane holds vectors lane, lane + 32, … of the unit, eight of 16 bytes; what is not there is zero. An address that is no
 * multiple of 16 has its vectors put together from two; bytes beyond the unit's ends are never read.
 * Thread: GPU; the warp is together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_PACK_WARP_CUH
#define CURED_KERNELS_CUDA_PACK_WARP_CUH

#include "kernels/cuda/pack/pack.h"
#include "kernels/cuda/thread/simt.cuh"

enum {
    CR_PACK_VECTORS = CR_PACK_UNIT_BYTES / (CR_GPU_VECTOR * CR_WARP),
    CR_PACK_STRIDE = CR_GPU_VECTOR * CR_WARP, /* bytes from a lane's vector to its next */
};

#if !defined(CR_PACK_WARPS)
#define CR_PACK_WARPS 4 /* of a block */
#endif

/* A unit, as its warp knows it. It lies in shared memory and is read again when it is wanted again: registers. */
struct cr_pack_job {
    const uint8_t *data;
    uint64_t *found, *more;
    uint32_t n, wants; /* wants: of the extrema; of a sum, not 0: of the magnitudes */
    uint32_t dtype, family;
};
__shared__ cr_pack_job cr_pack_jobs[CR_PACK_WARPS];

/* Room for each warp, in 32-bit words at a multiple of eight bytes: digits of 16 bits, of which 4,096 fit 32 with a sign. */
enum { CR_PACK_DIGITS = 4 * CR_F64_LIMBS };
__shared__ uint32_t cr_pack_room[CR_PACK_WARPS][CR_PACK_DIGITS] __attribute__((aligned(8)));

CR_DEVICE const volatile cr_pack_job &cr_pack_mine() { return cr_pack_jobs[threadIdx.x / CR_WARP]; }

CR_DEVICE uint32_t cr_lane() { return threadIdx.x % CR_WARP; }

/* A vector of one element, over and over. */
template <unsigned WIDTH>
CR_DEVICE uint4 cr_pack_repeat(uint64_t bits) {
    const uint32_t low = (uint32_t)bits * (WIDTH == 1 ? 0x01010101u : WIDTH == 2 ? 0x00010001u : 1u);
    const uint32_t high = WIDTH == 8 ? (uint32_t)(bits >> 32) : low;
    return make_uint4(low, high, low, high);
}

template <unsigned WIDTH>
CR_DEVICE uint64_t cr_pack_one(const uint8_t *p, bool aligned) {
    if (!aligned) return cr_load_one<(int)WIDTH>(p);
    return WIDTH == 8 ? *(const uint64_t *)p : WIDTH == 4 ? *(const uint32_t *)p : WIDTH == 2 ? *(const uint16_t *)p : *p;
}

/* The vector at byte `at` of the unit, one element after the other. */
template <unsigned WIDTH>
CR_DEVICE uint4 cr_pack_edge(const uint8_t *data, uint32_t bytes, uint32_t at, uint64_t fill) {
    uint64_t half[2] = {0, 0};
    const bool aligned = (uintptr_t)data % WIDTH == 0;
#pragma unroll
    for (unsigned i = 0; i < CR_GPU_VECTOR; i += WIDTH) {
        uint64_t x = fill;
        if (at + i < bytes) x = cr_pack_one<WIDTH>(data + at + i, aligned);
        half[i / 8] |= x << 8 * (i % 8);
    }
    return make_uint4((uint32_t)half[0], (uint32_t)(half[0] >> 32), (uint32_t)half[1], (uint32_t)(half[1] >> 32));
}

/* The same for cr_pack_load. Called, because every fold has it and few units need it. */
template <unsigned WIDTH>
CR_CALLED uint4 cr_call_edge(const uint8_t *data, uint32_t bytes, uint32_t at, uint64_t fill) {
    return cr_pack_edge<WIDTH>(data, bytes, at, fill);
}

/* Two at a time: their neighbours need registers too. v[0] of the first lane is there already. */
CR_DEVICE void cr_pack_load_shifted(uint4 (&v)[CR_PACK_VECTORS], const uint4 *from, uint32_t shift, uint32_t bytes) {
    const uint32_t first = cr_lane() * CR_GPU_VECTOR;
#pragma unroll
    for (unsigned j = 0; j < CR_PACK_VECTORS; j += 2) {
        uint4 next[2];
        bool inside[2];
#pragma unroll
        for (unsigned k = 0; k < 2; k++) {
            const uint32_t at = first + (j + k) * CR_PACK_STRIDE;
            inside[k] = at != 0 && at - shift + 2 * CR_GPU_VECTOR <= bytes;
            next[k] = v[j + k];
            if (inside[k]) v[j + k] = from[(j + k) * CR_WARP], next[k] = from[(j + k) * CR_WARP + 1];
        }
#pragma unroll
        for (unsigned k = 0; k < 2; k++)
            if (inside[k]) v[j + k] = cr_join(v[j + k], next[k], shift);
    }
}

/* The unit; elements that it lacks are `fill`, or its first one when `first` is so. */
template <unsigned WIDTH>
CR_DEVICE void cr_pack_load(uint4 (&v)[CR_PACK_VECTORS], uint64_t fill, bool first) {
    const uint8_t *const data = cr_pack_mine().data;
    const uint32_t bytes = cr_pack_mine().n * WIDTH, shift = (uint32_t)((uintptr_t)data % CR_GPU_VECTOR);
    const uint4 *from = (const uint4 *)(data - shift) + cr_lane();
    if (shift == 0 && bytes == CR_PACK_UNIT_BYTES) {
#pragma unroll
        for (unsigned j = 0; j < CR_PACK_VECTORS; j++) v[j] = from[j * CR_WARP];
        return;
    }
    if (first) fill = cr_pack_one<WIDTH>(data, (uintptr_t)data % WIDTH == 0);
    const uint4 nothing = cr_pack_repeat<WIDTH>(fill);
    /* The vectors at the ends: the last, what the one before it would read beyond, and the first. */
    const uint32_t last = (bytes - 1) / CR_GPU_VECTOR, none = UINT32_MAX;
    const uint32_t mine = last % CR_WARP == cr_lane()                                    ? last
                          : shift != 0 && last != 0 && (last - 1) % CR_WARP == cr_lane() ? last - 1
                                                                                         : none;
    uint4 edge = nothing;
    v[0] = nothing;
    if (mine != none) edge = cr_call_edge<WIDTH>(data, bytes, mine * CR_GPU_VECTOR, fill);
    if (shift != 0 && cr_lane() == 0) v[0] = cr_call_edge<WIDTH>(data, bytes, 0, fill);
    __syncwarp();
#pragma unroll
    for (unsigned j = 1; j < CR_PACK_VECTORS; j++) v[j] = nothing;
    if (shift != 0) {
        cr_pack_load_shifted(v, from, shift, bytes);
    } else {
#pragma unroll
        for (unsigned j = 0; j < CR_PACK_VECTORS; j++)
            if ((cr_lane() + j * CR_WARP + 1) * CR_GPU_VECTOR <= bytes) v[j] = from[j * CR_WARP];
    }
#pragma unroll
    for (unsigned j = 0; j < CR_PACK_VECTORS; j++) v[j] = cr_choose(mine != none && j == mine / CR_WARP, edge, v[j]);
}

/* Nothing computed from v before is to be kept for what comes: registers. */
CR_DEVICE void cr_pack_forget(uint4 (&v)[CR_PACK_VECTORS]) {
#pragma unroll
    for (unsigned j = 0; j < CR_PACK_VECTORS; j++) asm volatile("" : "+r"(v[j].x), "+r"(v[j].y), "+r"(v[j].z), "+r"(v[j].w));
}

/* What the unit found, the same in all lanes; d has 60 bits. The words say by themselves that they are there. */
CR_DEVICE void cr_pack_leave(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    const uint32_t lane = cr_lane();
    d |= a >> 63 << 60 | b >> 63 << 61 | c >> 63 << 62;
    const uint64_t word = lane == 0 ? a : lane == 1 ? b : lane == 2 ? c : d;
    if (lane < CR_PACK_WORDS) ((volatile uint64_t *)cr_pack_mine().found)[lane] = word | CR_PACK_THERE;
}

/* Before that, when the words set aside hold something. */
CR_DEVICE void cr_pack_more() {
    __threadfence_system();
    __syncwarp();
}

#endif
