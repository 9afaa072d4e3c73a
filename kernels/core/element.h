/* element: an element as a number, and the sum of two of them, weighted, rounded once: what ranges and quantiles are made of.
 *
 * Thread: any; nothing here holds state. Integer arithmetic: the caller's float state is of no matter. */
#ifndef CURED_KERNELS_CORE_ELEMENT_H
#define CURED_KERNELS_CORE_ELEMENT_H

#include "kernels/core/big.h"
#include "kernels/core/dtype.h"

/* ±mantissa·2^exponent, unless it is infinite or a NaN. */
typedef struct cr_element {
    bool negative, infinite, nan;
    uint64_t mantissa;
    int exponent;
} cr_element;

/* The element of any input type that has these bits, zero-extended; a bool is 0 or 1. */
cr_element cr_element_of(cr_dtype dtype, uint64_t bits);
/* The bits, in float type result, of (a·first + b·second)/2^scale, where first and second are natural numbers, one at least not 0, of
 * which the caller needs nothing more. An infinity with the weight 0 counts as one, and two of different signs make a NaN. The sum of
 * two negative zeros is one. */
uint64_t cr_element_sum(cr_dtype result, const cr_element *a, const cr_big *first, const cr_element *b,
                        const cr_big *second, int scale);

#endif
