/* element: see element.h. Thread: any; nothing here holds state. */
#include "kernels/core/element.h"

#include "kernels/core/float.h"
#include "kernels/core/round.h"

static cr_element of_integer(cr_dtype dtype, uint64_t bits) {
    const unsigned unused = 64 - 8 * (unsigned)cr_dtype_size(dtype);
    const bool negative = cr_dtype_kind(dtype) == CR_KIND_SINT && (int64_t)(bits << unused) < 0;
    return (cr_element){.negative = negative, .mantissa = negative ? (~bits + 1) << unused >> unused : bits};
}

static cr_element of_float(cr_dtype dtype, uint64_t bits, unsigned mantissa, unsigned exponent) {
    const uint64_t fraction = bits & (((uint64_t)1 << mantissa) - 1);
    const int top = (1 << exponent) - 1, field = (int)(bits >> mantissa) & top;
    cr_element e = {.negative = bits >> (mantissa + exponent) & 1};
    if (field == top) { /* that of NaNs and infinities */
        e.nan = cr_float_is_nan(dtype, bits);
        if (e.nan) return e;
        const uint64_t magnitude = bits & (((uint64_t)1 << (mantissa + exponent)) - 1);
        e.infinite = magnitude == cr_float_infinity(dtype, false);
    }
    e.mantissa = fraction | (uint64_t)(field != 0) << mantissa;
    e.exponent = (field ? field : 1) - (top >> 1) - (int)mantissa;
    return e;
}

cr_element cr_element_of(cr_dtype dtype, uint64_t bits) {
    switch (cr_dtype_format(dtype)) {
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED, NANS) \
    case CR_FORMAT_##SYMBOL:                                      \
        return of_float(dtype, bits, mantissa, exponent);
#include "kernels/core/float.def"
#undef CR_FLOAT
        case CR_FORMAT_INT:
            break;
    }
    return of_integer(dtype, bits);
}

static void shift_up(cr_big *x, const cr_element *e, int exponent) {
    cr_big_set(x, e->mantissa);
    if (x->n) cr_big_shift_left(x, (unsigned)(e->exponent - exponent));
}

uint64_t cr_element_sum(cr_dtype result, const cr_element *a, const cr_big *first, const cr_element *b,
                        const cr_big *second, int scale) {
    if (a->nan || b->nan || (a->infinite && b->infinite && a->negative != b->negative)) return cr_float_nan(result);
    if (a->infinite || b->infinite) return cr_float_infinity(result, a->infinite ? a->negative : b->negative);
    cr_big low, high, x, y;
    int exponent = !b->mantissa || (a->mantissa && a->exponent < b->exponent) ? a->exponent : b->exponent;
    shift_up(&low, a, exponent);
    shift_up(&high, b, exponent);
    cr_big_multiply(&x, &low, first);
    cr_big_multiply(&y, &high, second);
    bool negative = a->negative;
    if (a->negative == b->negative) {
        cr_big_add(&x, &y);
    } else if (cr_big_compare(&x, &y) >= 0) {
        cr_big_subtract(&x, &y);
    } else {
        cr_big_subtract(&y, &x);
        x = y;
        negative = b->negative;
    }
    if (x.n == 0) return a->negative && b->negative ? cr_float_negative_zero(result) : 0;
    return cr_round(result, negative, &x, exponent - scale, false);
}
