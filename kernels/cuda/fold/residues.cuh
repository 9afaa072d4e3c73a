/* residues: arithmetic modulo 2^61 - 1 on a GPU, and products of bytes on tensor cores, for whoever makes digests (kernels/core/digest.h).
 *
 * Thread: device code. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_RESIDUES_CUH
#define CURED_KERNELS_CUDA_FOLD_RESIDUES_CUH

#include "kernels/cuda/thread/array.cuh"
#include "kernels/cuda/thread/simt.cuh"

/* Times 2^bits: a turn of 61 bits. */
constexpr uint64_t cr_digest_turned(uint64_t x, unsigned bits) {
    return bits == 0 ? x : ((x << bits) & CR_DIGEST_P) | x >> (61 - bits);
}

/* Byte n of key · 2^(8·byte) in byte `byte`: a word of the tensor cores' B. */
constexpr uint32_t cr_digest_column(uint64_t key, unsigned n) {
    uint32_t word = 0;
    for (unsigned byte = 0; byte < CR_DIGEST_WORD; byte++)
        word |= (uint32_t)(cr_digest_turned(key, 8 * byte) >> (8 * n) & 0xff) << (8 * byte);
    return word;
}

/* a, b < 2^62; below 2^61 + 8. */
CR_DEVICE uint64_t cr_digest_product(uint64_t a, uint64_t b) {
    const uint64_t low = a * b, high = __umul64hi(a, b);
    return cr_digest_fold((low & CR_DIGEST_P) + (high << 3 | low >> 61));
}

/* d += A·B, of bytes. Where there are no tensor cores for it (the emulation) by the fragments' definition. */
CR_DEVICE void cr_digest_mma(uint32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1) {
#if defined(__CUDA_ARCH__)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
    const unsigned lane = threadIdx.x % CR_WARP, group = lane / 4, pair = lane % 4;
    for (unsigned t = 0; t < 4; t++) { /* two words at a time: a shuffle is slow there */
        const uint64_t first = __shfl_sync(CR_EVERYONE, cr_pair(a.x, a.y), 4 * group + t),
                       second = __shfl_sync(CR_EVERYONE, cr_pair(a.z, a.w), 4 * group + t);
        for (unsigned i = 0; i < 2; i++) {
            const uint64_t b = __shfl_sync(CR_EVERYONE, cr_pair(b0, b1), 4 * (2 * pair + i) + t);
            d[i] = __dp4a((uint32_t)second, (uint32_t)(b >> 32), __dp4a((uint32_t)first, (uint32_t)b, d[i]));
            d[2 + i] = __dp4a((uint32_t)(second >> 32), (uint32_t)(b >> 32), __dp4a((uint32_t)(first >> 32), (uint32_t)b, d[2 + i]));
        }
    }
#endif
}

/* Times 2^bits, below 2^62: a turn, of any x. */
CR_DEVICE uint64_t cr_digest_turn(uint64_t x, unsigned bits) { return ((x << bits) & CR_DIGEST_P) + (x >> (61 - bits)); }

#endif
