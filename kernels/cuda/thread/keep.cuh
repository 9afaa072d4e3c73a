/* keep: what a mask says of some elements that follow each other, as a word that keeps those which count.
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_THREAD_KEEP_CUH
#define CURED_KERNELS_CUDA_THREAD_KEEP_CUH

#include "kernels/core/mask.h"
#include "kernels/cuda/thread/array.cuh"
#include "kernels/cuda/thread/simt.cuh"

/* What a mask says of N elements that follow each other: 0x80 in the byte of each that counts. */
template <int N>
struct cr_keep {
    static constexpr int WORDS = (N + 3) / 4;
    uint32_t top[WORDS];

    /* A byte an element, from p on, which lies anywhere. Words of 4 bytes are read whole. The first one may begin before p, because
     * memory of a GPU begins at a multiple of 256 bytes; none ends behind the last byte. */
    CR_DEVICE void bytes(const uint8_t *p) {
        if constexpr (N < 4) {
            if (N == 2 && (uintptr_t)p % 2 == 0) {
                top[0] = *reinterpret_cast<const uint16_t *>(p);
            } else {
                top[0] = 0;
#pragma unroll
                for (int i = 0; i < N; i++) top[0] |= (uint32_t)p[i] << 8 * i;
            }
        } else {
            const uint32_t off = (uint32_t)((uintptr_t)p & 3);
            const uint32_t *from = reinterpret_cast<const uint32_t *>(p - off);
#pragma unroll
            for (int i = 0; i < WORDS; i++) top[i] = from[i];
            if (off != 0) {
                uint32_t last = 0; /* by bytes, because the mask may end within its word */
#pragma unroll
                for (uint32_t i = 0; i < 3; i++) {
                    if (i < off) last |= (uint32_t)p[N - off + i] << 8 * i;
                }
#pragma unroll
                for (int i = 0; i < WORDS; i++)
                    top[i] = __funnelshift_r(top[i], i + 1 < WORDS ? top[i + 1 < WORDS ? i + 1 : i] : last, 8 * off);
            }
        }
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = cr_nonzero_bytes(top[i]);
    }
    /* A bit an element, from bit `at` of p on. */
    CR_DEVICE void bits(const uint8_t *p, uint64_t at) {
        const uint32_t off = (uint32_t)at & 7;
        uint32_t found = 0;
        p += at >> 3;
#pragma unroll
        for (uint32_t i = 0; i < (N + 14) / 8; i++) {
            if (off + N > 8 * i) found |= (uint32_t)p[i] << 8 * i;
        }
        found >>= off;
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = ((found >> 4 * i & 15) * 0x00204081u & 0x01010101u) << 7;
    }
    /* Turns what is left out to what counts, where the mask says so. Gives how many count. */
    CR_DEVICE uint32_t turn(const cr_mask &mask) {
        constexpr uint32_t ALL = N < 4 ? 0x80808080u >> 8 * (4 - N) : 0x80808080u;
        const uint32_t other = mask.leaves_out ? ALL : 0;
        uint32_t count = 0;
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            top[i] = (top[i] ^ other) & ALL;
            count += (uint32_t)__popc(top[i]);
        }
        return count;
    }
    /* Of elements [at, at + N). Gives how many count. */
    CR_DEVICE uint32_t look(const cr_mask &mask, uint64_t at) {
        if (mask.kind == CR_MASK_BYTES)
            bytes(mask.data + mask.first + at);
        else
            bits(mask.data, mask.first + at);
        return turn(mask);
    }
    /* The same of bytes at p, a multiple of their number, in two steps: loads, of which several may be under way, and what they are. */
    CR_DEVICE void load(const uint8_t *p) {
        if constexpr (N == 16) {
            const uint4 v = *reinterpret_cast<const uint4 *>(p);
            top[0] = v.x, top[1 % WORDS] = v.y, top[2 % WORDS] = v.z, top[3 % WORDS] = v.w;
        } else if constexpr (N == 8) {
            const uint64_t v = *reinterpret_cast<const uint64_t *>(p);
            top[0] = (uint32_t)v, top[1 % WORDS] = (uint32_t)(v >> 32);
        } else {
            top[0] = N == 4 ? *reinterpret_cast<const uint32_t *>(p) : N == 2 ? *reinterpret_cast<const uint16_t *>(p) : *p;
        }
    }
    CR_DEVICE uint32_t settle(const cr_mask &mask) {
#pragma unroll
        for (int i = 0; i < WORDS; i++) top[i] = cr_nonzero_bytes(top[i]);
        return turn(mask);
    }
    /* All ones where word w of a vector of those elements counts. */
    CR_DEVICE uint32_t word(unsigned w) const {
        if (N == 16) return cr_sign_bytes(top[w % WORDS]);
        if (N == 8) return cr_signs(top[w / 2 % WORDS], w % 2 ? 0xbbaa : 0x9988);
        return cr_signs(top[0], 0x1111 * (8 + (N == 4 ? w : w / 2)));
    }
};

#endif
