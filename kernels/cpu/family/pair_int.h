/* pair_int: exact sums of pairs of integers: each term's lower and upper half to a sum of its own.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PAIR_INT_H
#define CURED_KERNELS_CPU_FAMILY_PAIR_INT_H

#include "kernels/core/limbs.h"
#include "kernels/core/partial.h"
#include "kernels/cpu/family/int.h"

/* Σ term, of a block that is short enough for its sums. half: bits of a half; sum: what holds 2^10 halves. */
#define PAIR_INT(name, type, half, sum, unsigned_sum, ...)                                          \
    NEVER void name(cr_partial *part, cr_sum_at at, const uint8_t *x, const uint8_t *y, size_t n) { \
        unsigned_sum low = 0;                                                                       \
        sum high = 0;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                            \
            type a, b;                                                                              \
            memcpy(&a, x + i * sizeof a, sizeof a);                                                 \
            memcpy(&b, y + i * sizeof b, sizeof b);                                                 \
            const __auto_type term = (__VA_ARGS__);                                                 \
            low += (unsigned_sum)term & (((unsigned_sum)1 << (half)) - 1);                          \
            high += (sum)(term >> (half));                                                          \
        }                                                                                           \
        cr_partial_put(part, at, (__int128)low, 0);                                                 \
        cr_partial_put(part, at, (__int128)high, half);                                             \
    }
/* Of up to 32 bits. The square of a difference may take all 64 bits. */
#define PAIR_NARROW(name, type, product)                                      \
    PAIR_INT(name##_dot, type, 32, int64_t, uint64_t, (product)a *(product)b) \
    PAIR_INT(name##_sqdist, type, 32, int64_t, uint64_t,                      \
             (uint64_t)((int64_t)a - (int64_t)b) * (uint64_t)((int64_t)a - (int64_t)b))
#define PAIR_WIDE(name, type, product)                                                            \
    PAIR_INT(name##_dot, type, 64, __int128, unsigned __int128, (product)a *(product)b)           \
    PAIR_INT(name##_sqdist, type, 64, __int128, unsigned __int128,                                \
             (unsigned __int128)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a) * \
                 (a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a))
PAIR_INT(pair_bool_dot, uint8_t, 32, int64_t, uint64_t, (uint64_t)(a != 0 && b != 0))
PAIR_INT(pair_bool_sqdist, uint8_t, 32, int64_t, uint64_t, (uint64_t)((a != 0) != (b != 0)))
PAIR_NARROW(pair_u8, uint8_t, int64_t)
PAIR_NARROW(pair_i8, int8_t, int64_t)
PAIR_NARROW(pair_u16, uint16_t, int64_t)
PAIR_NARROW(pair_i16, int16_t, int64_t)
PAIR_NARROW(pair_u32, uint32_t, uint64_t)
PAIR_NARROW(pair_i32, int32_t, int64_t)
PAIR_WIDE(pair_u64, uint64_t, unsigned __int128)
PAIR_WIDE(pair_i64, int64_t, __int128)
#undef PAIR_INT
#undef PAIR_NARROW
#undef PAIR_WIDE

/* A block of at most 1,024 elements. */
static void pair_int(cr_partial *part, const uint8_t *x, const uint8_t *y, size_t n) {
#define PAIR_TYPE(symbol, name)                                                         \
    case CR_##symbol:                                                                   \
        if (part->families & CR_FAM_DOT) name##_dot(part, CR_AT_DOT, x, y, n);          \
        if (part->families & CR_FAM_SQDIST) name##_sqdist(part, CR_AT_SQDIST, x, y, n); \
        break;
    const cr_dtype dtype = (cr_dtype)part->dtype;
    switch (dtype) {
        PAIR_TYPE(BOOL, pair_bool)
        PAIR_TYPE(U8, pair_u8)
        PAIR_TYPE(I8, pair_i8)
        PAIR_TYPE(U16, pair_u16)
        PAIR_TYPE(I16, pair_i16)
        PAIR_TYPE(U32, pair_u32)
        PAIR_TYPE(I32, pair_i32)
        PAIR_TYPE(U64, pair_u64)
        PAIR_TYPE(I64, pair_i64)
        case CR_NO_INT:
            break;
    }
#undef PAIR_TYPE
    if (part->families & CR_FAM_WEIGHTS)
        cr_partial_put(part, CR_AT_WEIGHTS,
                       sum_int(y, n, dtype, false, (struct ahead){(uintptr_t)y, 63, (uintptr_t)y, 0}), 0);
}

#endif
