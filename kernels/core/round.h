/* round: from an exact number to the nearest value of a float type, once.
 *
 * Round to nearest, ties to even, on the type's own grid (IEEE 754-2019, 4.3.1): denormals are values like any other,
 * and what lies half a unit or more beyond the largest becomes an infinity.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_ROUND_H
#define CURED_KERNELS_CORE_ROUND_H

#include "kernels/core/big.h"
#include "kernels/core/dtype.h"

/* The bits, in float type dtype, of ±(magnitude·2^exponent + ε), where 0 < ε < 2^exponent if sticky, and ε = 0
 * otherwise. With sticky, magnitude must have at least 56 bits. Changes magnitude. An exact zero is +0. */
uint64_t cr_round(cr_dtype dtype, bool negative, cr_big *magnitude, int exponent, bool sticky);
/* The same of a magnitude that is short. */
uint64_t cr_round_short(cr_dtype dtype, bool negative, unsigned __int128 magnitude, int exponent, bool sticky);
/* +∞ or −∞ (of a type without: its NaN), and the one NaN that answers hold, in float type dtype. */
uint64_t cr_float_infinity(cr_dtype dtype, bool negative);
uint64_t cr_float_nan(cr_dtype dtype);
#ifndef CURED_SUM_ALONE
/* The greatest magnitude that is no NaN: an infinity, or where a type has none, its largest number. */
static inline uint64_t cr_float_greatest(cr_dtype dtype) { return cr_float_nan(dtype) & (cr_float_nan(dtype) - 1); }
uint64_t cr_float_negative_zero(cr_dtype dtype);
bool cr_float_is_nan(cr_dtype dtype, uint64_t bits);

/* The value of an element of float type dtype, exactly; NaNs stay NaNs. Integer arithmetic: the caller's float state is of no
 * matter. */
double cr_float_value(cr_dtype dtype, uint64_t bits);
/* The element of float type dtype nearest to x; a NaN becomes the one that answers hold. Integer arithmetic, too. */
uint64_t cr_float_nearest(cr_dtype dtype, double x);
#endif

#endif
