/* round: from an exact number to the nearest value of a float type, once.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/round.h"

#include <string.h>

#include "kernels/core/float.h"

typedef struct format {
    int mantissa, exponent; /* bits of the fields */
    int bias;               /* of the exponent field */
    int top;                /* the highest exponent field */
    int one_nan;            /* it has no infinities, and one NaN */
} format;

/* In what C and C++ share, as all that client/sum takes is. */
static format format_of(cr_dtype dtype) {
    format f = {0, 0, 0, 0, 0};
#define CR_FLOAT(SYMBOL, bytes, stored, field, SUMMED, NANS) \
    if (dtype == CR_##SYMBOL) {                              \
        f.mantissa = CR_##SYMBOL##_MANTISSA;                 \
        f.exponent = CR_##SYMBOL##_EXPONENT;                 \
        f.bias = CR_##SYMBOL##_BIAS;                         \
        f.top = CR_##SYMBOL##_TOP;                           \
        f.one_nan = CR_##SYMBOL##_ONE_NAN;                   \
    }
#include "kernels/core/float.def"
#undef CR_FLOAT
    return f;
}

static uint64_t signed_bits(format f, bool negative, uint64_t bits) {
    return bits | (uint64_t)negative << (f.mantissa + f.exponent);
}

/* Magnitudes above this one are NaNs'. */
static uint64_t last_of(format f) {
    return (uint64_t)f.top << f.mantissa | (f.one_nan ? ((uint64_t)1 << f.mantissa) - 2 : 0);
}

#ifndef CURED_SUM_ALONE
bool cr_float_is_nan(cr_dtype dtype, uint64_t bits) {
    format f = format_of(dtype);
    return (bits & ~signed_bits(f, true, 0)) > last_of(f);
}
#endif

static uint64_t nan_of(format f) {
    return f.one_nan ? last_of(f) + 1 : (uint64_t)f.top << f.mantissa | (uint64_t)1 << (f.mantissa - 1);
}

static uint64_t infinity_of(format f, bool negative) {
    return f.one_nan ? nan_of(f) : signed_bits(f, negative, (uint64_t)f.top << f.mantissa);
}

uint64_t cr_float_infinity(cr_dtype dtype, bool negative) { return infinity_of(format_of(dtype), negative); }

uint64_t cr_float_nan(cr_dtype dtype) { return nan_of(format_of(dtype)); }

#ifndef CURED_SUM_ALONE
uint64_t cr_float_negative_zero(cr_dtype dtype) { return signed_bits(format_of(dtype), true, 0); }
#endif

static inline uint64_t round_as(format f, bool negative, unsigned __int128 magnitude, int exponent, bool sticky) {
    if (magnitude == 0) return 0;
    /* The unit of the result: the type's lowest bit, or 2^-mantissa of the number's leading bit. */
    const uint64_t upper = (uint64_t)(magnitude >> 64);
    int lead = exponent + 63 + (upper != 0 ? 64 - __builtin_clzll(upper) : -__builtin_clzll((uint64_t)magnitude));
    int unit = lead - f.mantissa;
    int lowest = 1 - f.bias - f.mantissa;
    if (unit < lowest) unit = lowest;
    if (lead > f.bias + f.one_nan) return infinity_of(f, negative);

    uint64_t kept, half = 0;
    if (unit > exponent) {
        unsigned cut = (unsigned)(unit - exponent) - 1;
        const unsigned __int128 whole = cut < 128 ? magnitude >> cut : 0;
        sticky |= cut < 128 ? whole << cut != magnitude : true;
        kept = (uint64_t)whole;
        half = kept & 1;
        kept >>= 1;
    } else {
        kept = (uint64_t)magnitude << (exponent - unit);
    }
    if (half && (sticky || (kept & 1))) kept++;
    /* kept may be 2^(mantissa+1) now; adding it to the field below carries into the exponent, up to infinity. */
    uint64_t field = (uint64_t)(unit - lowest), bits = (field << f.mantissa) + kept;
    return f.one_nan && bits > last_of(f) ? nan_of(f) : signed_bits(f, negative, bits);
}

uint64_t cr_round_short(cr_dtype dtype, bool negative, unsigned __int128 magnitude, int exponent, bool sticky) {
    if (dtype == CR_F64) return round_as(format_of(CR_F64), negative, magnitude, exponent, sticky); /* the usual one */
    return round_as(format_of(dtype), negative, magnitude, exponent, sticky);
}

uint64_t cr_round(cr_dtype dtype, bool negative, cr_big *magnitude, int exponent, bool sticky) {
    const int beyond = (int)cr_big_bits(magnitude) - 128;
    if (beyond > 0) {
        sticky |= cr_big_shift_right(magnitude, (unsigned)beyond);
        exponent += beyond;
    }
    return cr_round_short(dtype, negative, cr_big_low(magnitude), exponent, sticky);
}

#ifndef CURED_SUM_ALONE
static const format f64 = {CR_F64_MANTISSA, CR_F64_EXPONENT, CR_F64_BIAS, CR_F64_TOP, 0};

double cr_float_value(cr_dtype dtype, uint64_t bits) {
    const format f = format_of(dtype);
    const bool negative = bits >> (f.mantissa + f.exponent) & 1;
    const int field = (int)(bits >> f.mantissa) & f.top;
    uint64_t mantissa = bits & (((uint64_t)1 << f.mantissa) - 1), wide;
    if (field == f.top && (!f.one_nan || cr_float_is_nan(dtype, bits))) {
        wide = (uint64_t)f64.top << f64.mantissa | mantissa << (f64.mantissa - f.mantissa);
    } else if (f.mantissa == f64.mantissa || (field == 0 && mantissa == 0)) {
        wide = bits & (((uint64_t)1 << (f.mantissa + f.exponent)) - 1);
    } else {
        int exponent = field - f.bias; /* of the leading one, which a denormal first has to get */
        if (field == 0) {
            const int up = __builtin_clzll(mantissa) - (63 - f.mantissa);
            mantissa = mantissa << up & (((uint64_t)1 << f.mantissa) - 1);
            exponent = 1 - f.bias - up;
        }
        wide = (uint64_t)(exponent + f64.bias) << f64.mantissa | mantissa << (f64.mantissa - f.mantissa);
    }
    wide = signed_bits(f64, negative, wide);
    double value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint64_t cr_float_nearest(cr_dtype dtype, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool negative = bits >> 63 & 1;
    const int field = (int)(bits >> f64.mantissa) & f64.top;
    const uint64_t mantissa = bits & (((uint64_t)1 << f64.mantissa) - 1);
    if (field == f64.top) return mantissa ? cr_float_nan(dtype) : cr_float_infinity(dtype, negative);
    if (field == 0 && mantissa == 0) return signed_bits(format_of(dtype), negative, 0);
    cr_big magnitude;
    cr_big_set(&magnitude, mantissa | (uint64_t)(field != 0) << f64.mantissa);
    return cr_round(dtype, negative, &magnitude, (field ? field : 1) - f64.bias - f64.mantissa, false);
}
#endif
