/* power: the generic way of the exact sums.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#include "kernels/cpu/family/power.h"

#include <string.h>

#include "kernels/core/limbs.h"

/* An element: ±magnitude·2^bit in units of its type's grid, or one that is counted and never added. */
typedef struct number {
    uint64_t magnitude;
    unsigned bit;
    bool negative, infinite, nan;
} number;

static number integer_of(cr_dtype dtype, uint64_t bits) {
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

static number float_of(cr_dtype dtype, uint64_t bits) {
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED, NANS) \
    [CR_##SYMBOL] = {mantissa, CR_##SYMBOL##_TOP, CR_##SYMBOL##_LEAST - CR_##SYMBOL##_GRID, CR_##SYMBOL##_ONE_NAN},
    static const struct {
        unsigned mantissa, top, lowest, one_nan;
    } formats[] = {
#include "kernels/core/float.def"
    };
#undef CR_FLOAT
    const unsigned mantissa = formats[dtype].mantissa, top = formats[dtype].top;
    const unsigned field = (unsigned)(bits >> mantissa) & top;
    const uint64_t ones = ((uint64_t)1 << mantissa) - 1, fraction = bits & ones;
    const bool special = field == top && (!formats[dtype].one_nan || fraction == ones);
    return (number){.magnitude = fraction | (uint64_t)(field != 0) << mantissa,
                    .bit = formats[dtype].lowest + (field == 0 ? 0 : field - 1),
                    .negative = bits >> (8 * cr_dtype_size(dtype) - 1) & 1,
                    .infinite = special && fraction == 0,
                    .nan = special && fraction != 0};
}

static void add(cr_sum *sum, unsigned limbs, const cr_sum_row *row, const number *x) {
    if (x->nan || x->infinite) {
        sum->special.nans += x->nan;
        sum->special.ninfs += x->infinite && x->negative;
        sum->special.pinfs += x->infinite && !x->negative;
        return;
    }
    uint64_t words[CR_SUM_POWER] = {x->magnitude};
    for (unsigned k = 1; k < row->power; k++) {
        unsigned __int128 carry = 0;
        for (unsigned i = 0; i <= k; i++) {
            carry += (unsigned __int128)words[i] * x->magnitude;
            words[i] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    const bool negative = x->negative && (row->family & CR_FAM_SIGNED);
    for (unsigned i = 0; i < row->power; i++)
        if (words[i]) cr_limbs_put(sum->limbs, limbs, &sum->pending, words[i], negative, x->bit * row->power + 64 * i);
}

void cr_power_fold(cr_partial *part, uint32_t families, const uint8_t *p, size_t n) {
    const cr_dtype dtype = (cr_dtype)part->dtype;
    const bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    const size_t size = cr_dtype_size(dtype);
    for (unsigned at = 0; at < CR_SUMS; at++) {
        const cr_sum_row *row = &cr_sum_rows[at];
        if (!(families & row->family)) continue;
        const unsigned limbs = cr_sum_limbs((cr_sum_at)at, dtype);
        for (size_t i = 0; i < n; i++) {
            uint64_t bits = 0;
            memcpy(&bits, p + i * size, size);
            const number x = (floats ? float_of : integer_of)(dtype, bits);
            add(&part->sums[at], limbs, row, &x);
        }
    }
}
