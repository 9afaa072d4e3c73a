/* number: an element of any type as an integer and an exponent, for the generic ways of the exact sums.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CPU_FAMILY_NUMBER_H
#define CURED_KERNELS_CPU_FAMILY_NUMBER_H

#include <string.h>

#include "kernels/core/dtype.h"
#include "kernels/core/float.h"
#include "kernels/core/limbs.h"

/* An element: ±magnitude·2^bit in units of its type's grid, or one that is counted and never added. */
typedef struct number {
    uint64_t magnitude;
    unsigned bit;
    bool negative, infinite, nan;
} number;

#ifndef CURED_SUM_ALONE
static inline number integer_of(cr_dtype dtype, uint64_t bits) {
    const unsigned above = 64 - 8 * (unsigned)cr_dtype_size(dtype);
    switch (cr_dtype_kind(dtype)) {
        case CR_KIND_BOOL:
            return (number){.magnitude = bits != 0};
        case CR_KIND_SINT: {
            const int64_t value = (int64_t)(bits << above) >> above;
            return (number){.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, .negative = value < 0};
        }
        case CR_KIND_UINT:
        case CR_KIND_FLOAT:
        case CR_KIND_NONE:
            break;
    }
    return (number){.magnitude = bits};
}
#endif

/* The element of a float type that has these bits. */
static inline number float_of(cr_dtype dtype, uint64_t bits) {
    unsigned mantissa = 0, top = 0, lowest = 0, one_nan = 0, width = 0;
#define CR_FLOAT(SYMBOL, bytes, stored, field, SUMMED, NANS) \
    if (dtype == CR_##SYMBOL) {                              \
        mantissa = CR_##SYMBOL##_MANTISSA;                   \
        top = CR_##SYMBOL##_TOP;                             \
        lowest = CR_##SYMBOL##_LEAST - CR_##SYMBOL##_GRID;   \
        one_nan = CR_##SYMBOL##_ONE_NAN;                     \
        width = 8 * CR_##SYMBOL##_BYTES;                     \
    }
#include "kernels/core/float.def"
#undef CR_FLOAT
    const unsigned exponent = (unsigned)(bits >> mantissa) & top;
    const uint64_t ones = ((uint64_t)1 << mantissa) - 1, fraction = bits & ones;
    const bool special = exponent == top && (!one_nan || fraction == ones);
    number x;
    x.magnitude = fraction | (uint64_t)(exponent != 0) << mantissa;
    x.bit = lowest + (exponent == 0 ? 0 : exponent - 1);
    x.negative = bits >> (width - 1) & 1;
    x.infinite = special && fraction == 0;
    x.nan = special && fraction != 0;
    return x;
}

#ifndef CURED_SUM_ALONE
/* The element at p. */
static inline number number_at(cr_dtype dtype, const uint8_t *p) {
    uint64_t bits = 0;
    memcpy(&bits, p, cr_dtype_size(dtype));
    return (cr_dtype_kind(dtype) == CR_KIND_FLOAT ? float_of : integer_of)(dtype, bits);
}
#endif

/* NaNs and infinities are counted, and never added. */
static inline void number_count(cr_specials *special, bool nan, bool infinite, bool negative) {
    special->nans += nan;
    special->ninfs += !nan && infinite && negative;
    special->pinfs += !nan && infinite && !negative;
}

/* Whether x·y is no number: one is none, or it is infinity times zero. */
static inline bool number_no_product(const number *x, const number *y) {
    return x->nan || y->nan || (x->infinite && y->magnitude == 0) || (y->infinite && x->magnitude == 0);
}

/* Adds x·y to limbs, or counts it. */
static inline void number_product(int64_t *limb, unsigned limbs, uint32_t *pending, cr_specials *special,
                                  const number *x, const number *y) {
    const bool negative = x->negative != y->negative, none = number_no_product(x, y);
    const unsigned __int128 product = (unsigned __int128)x->magnitude * y->magnitude;
    if (none || x->infinite || y->infinite)
        number_count(special, none, true, negative);
    else if (product != 0)
        cr_limbs_put(limb, limbs, pending, product, negative, x->bit + y->bit);
}

#endif
