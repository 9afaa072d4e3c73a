/* round: from an exact number to the nearest value of a float type, once.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/round.h"

#include "kernels/core/float.h"

typedef struct format {
    int mantissa, exponent; /* bits of the fields */
    int bias;               /* of the exponent field */
    int top;                /* exponent field of infinities */
} format;

static format format_of(cr_dtype dtype) {
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED) \
    [CR_##SYMBOL] = {mantissa, exponent, CR_##SYMBOL##_BIAS, CR_##SYMBOL##_TOP},
    static const format formats[] = {
#include "kernels/core/float.def"
    };
#undef CR_FLOAT
    return formats[dtype];
}

static uint64_t signed_bits(format f, bool negative, uint64_t bits) {
    return bits | (uint64_t)negative << (f.mantissa + f.exponent);
}

uint64_t cr_float_infinity(cr_dtype dtype, bool negative) {
    format f = format_of(dtype);
    return signed_bits(f, negative, (uint64_t)f.top << f.mantissa);
}

uint64_t cr_float_nan(cr_dtype dtype) {
    format f = format_of(dtype);
    return (uint64_t)f.top << f.mantissa | (uint64_t)1 << (f.mantissa - 1);
}

uint64_t cr_round(cr_dtype dtype, bool negative, cr_big *magnitude, int exponent, bool sticky) {
    format f = format_of(dtype);
    if (magnitude->n == 0) return 0;
    /* The unit of the result: the type's lowest bit, or 2^-mantissa of the number's leading bit. */
    int lead = exponent + (int)cr_big_bits(magnitude) - 1;
    int unit = lead - f.mantissa;
    int lowest = 1 - f.bias - f.mantissa;
    if (unit < lowest) unit = lowest;
    if (lead > f.bias) return cr_float_infinity(dtype, negative);

    uint64_t kept, half = 0;
    if (unit > exponent) {
        unsigned drop = (unsigned)(unit - exponent);
        sticky |= cr_big_shift_right(magnitude, drop - 1);
        kept = (uint64_t)cr_big_low(magnitude);
        half = kept & 1;
        kept >>= 1;
    } else {
        kept = (uint64_t)cr_big_low(magnitude) << (exponent - unit);
    }
    if (half && (sticky || (kept & 1))) kept++;
    /* kept may be 2^(mantissa+1) now; adding it to the field below carries into the exponent, up to infinity. */
    uint64_t field = (uint64_t)(unit - lowest);
    return signed_bits(f, negative, (field << f.mantissa) + kept);
}
