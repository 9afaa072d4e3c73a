/* hide: copies of elements in which those that a mask leaves out are another, so that a fold of all of them needs no mask.
 *
 * Thread: any; pure functions. */
#ifndef CURED_KERNELS_CPU_VIEW_HIDE_H
#define CURED_KERNELS_CPU_VIEW_HIDE_H

#include "kernels/core/mask.h"
#include "kernels/cpu/widen.h"

/* The lowest VB bits of a word, a byte each: 255 or 0. */
ALWAYS vu8 keep_bits(uint64_t word) {
#if defined(VEC_AVX512)
    return (vu8)_mm512_movm_epi8(word);
#else
    const vu64 places = ALL(vu64, 0x8040201008040201);
    vu64 bytes;
#if defined(VEC_AVX2)
    const __m256i from = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    bytes = (vu64)_mm256_shuffle_epi8(_mm256_set1_epi32((int)word), from);
#elif defined(VEC_NEON)
    bytes = (vu64)vcombine_u8(vdup_n_u8((uint8_t)word), vdup_n_u8((uint8_t)(word >> 8)));
#else
    for (size_t i = 0; i < VB / 8; i++) bytes[i] = (word >> 8 * i & 0xff) * 0x0101010101010101;
#endif
    return (vu8)((vu8)(bytes & places) != 0);
#endif
}

/* A byte for each of n elements, from number `at` of the mask on: 255 where it counts, otherwise 0. */
static void keep(uint8_t *to, const cr_mask *mask, uint64_t at, size_t n) {
    enum { SOON = 2048 };
    const uint8_t *p = mask->data + mask->first + at; /* of bytes */
    const vu8 turned = ALL(vu8, (uint8_t)(mask->leaves_out ? 0xff : 0));
    size_t i = 0;
    for (; mask->kind == CR_MASK_BYTES && i + VB <= n; i += VB) {
        const vu8 kept = (vu8)(LOAD(vu8, p + i) != 0) ^ turned;
        __builtin_prefetch((const void *)((uintptr_t)p + i + SOON), 0, 2);
        memcpy(to + i, &kept, VB);
    }
    for (; i < n; i += 64) {
        const bool whole = n - i >= 64;
        const uint64_t word = whole ? cr_mask_word(mask, at + i, 64) : cr_mask_word(mask, at + i, (unsigned)(n - i));
        uint8_t kept[64];
        for (size_t k = 0; k < 64; k += VB) {
            const vu8 bytes = keep_bits(word >> k);
            memcpy(kept + k, &bytes, VB);
        }
        if (whole) {
            memcpy(to + i, kept, 64);
        } else {
            memcpy(to + i, kept, n - i);
        }
    }
}

/* n elements at p, of which those whose byte of `kept` is 0 become fill. What lies `ahead` bytes further on is wanted soon. */
#define HIDE(bits)                                                                                      \
    ALWAYS void hide_vector_##bits(uint8_t *to, const uint8_t *p, const uint8_t *kept, vu##bits fill) { \
        const vu##bits left = (vu##bits)(widen_s8_##bits(kept) == 0);                                   \
        const vu##bits x = SELECT(vu##bits, left, fill, LOAD(vu##bits, p));                             \
        memcpy(to, &x, VB);                                                                             \
    }                                                                                                   \
    NEVER void hide_##bits(uint8_t *to, const uint8_t *p, const uint8_t *kept, size_t n, uint64_t fill, \
                           size_t ahead) {                                                              \
        enum { SIZE = bits / 8, LANES = VB / SIZE, TURN = 64 };                                         \
        const vu##bits all = ALL(vu##bits, (uint##bits##_t)fill);                                       \
        size_t i = 0;                                                                                   \
        for (; i + TURN <= n; i += TURN) {                                                              \
            __builtin_prefetch((const void *)((uintptr_t)kept + i + ahead / SIZE), 0, 3);               \
            _Pragma("GCC unroll 8") for (size_t k = i; k < i + TURN; k += 64 / SIZE)                    \
                __builtin_prefetch((const void *)((uintptr_t)p + k * SIZE + ahead), 0, 3);              \
            _Pragma("GCC unroll 32") for (size_t k = i; k < i + TURN; k += LANES)                       \
                hide_vector_##bits(to + k * SIZE, p + k * SIZE, kept + k, all);                         \
        }                                                                                               \
        for (; i < n && n >= LANES; i += LANES) { /* the last ones some again */                        \
            const size_t k = i + LANES <= n ? i : n - LANES;                                            \
            hide_vector_##bits(to + k * SIZE, p + k * SIZE, kept + k, all);                             \
        }                                                                                               \
        for (; i < n; i++) {                                                                            \
            uint##bits##_t x, left = (uint##bits##_t)(0 - (uint64_t)(kept[i] == 0));                    \
            memcpy(&x, p + i * SIZE, SIZE);                                                             \
            x = (uint##bits##_t)((x & ~left) | ((uint##bits##_t)fill & left));                          \
            memcpy(to + i * SIZE, &x, SIZE);                                                            \
        }                                                                                               \
    }
HIDE(8)
HIDE(16)
HIDE(32)
HIDE(64)
#undef HIDE

static void hide(uint8_t *to, const uint8_t *p, const uint8_t *kept, size_t n, size_t size, uint64_t fill,
                 size_t ahead) {
    (size == 1 ? hide_8 : size == 2 ? hide_16 : size == 4 ? hide_32 : hide_64)(to, p, kept, n, fill, ahead);
}

#endif
