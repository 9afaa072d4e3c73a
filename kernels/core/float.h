/* float: what follows from a float type's format (float.def), once for the CPU and the GPU. For a type T:
 *
 *   CR_T_BYTES, CR_T_MANTISSA, CR_T_EXPONENT   of float.def
 *   CR_T_TOP      the highest exponent field
 *   CR_T_ONE_NAN  1: there are no infinities, and one NaN of each sign
 *   CR_T_BIAS     of the exponent field
 *   CR_INFINITY_OF(T)   the bits beyond which there are only NaNs: those of +inf, or where T has none, of its largest number
 *   CR_T_LEAST    log2 of the least value above 0
 *   CR_T_GRID     log2 of the unit of exact sums; CR_T_SPAN: bits from there to beyond the largest value
 *   CR_T_LIMBS    32-bit digits that hold the sum of 2^63 of the largest values
 *   CR_T_SQUARE_GRID, CR_T_SQUARE_LIMBS   the same for squares, which span twice as many bits; what is so for any power of
 *                 elements, cr_sum_limbs and cr_sum_grid say (sum.h)
 *
 * Thread: any; constants only. Owner: nothing. */
#ifndef CURED_KERNELS_CORE_FLOAT_H
#define CURED_KERNELS_CORE_FLOAT_H

#include <stdint.h>

/* 32-bit digits that hold the sum of 2^63 powers of elements that span so many bits. */
#define CR_POWER_LIMBS(span, power) (((power) * (span) + 63 + 31) / 32)

#define CR_INFINITY_OF(T) \
    (((int64_t)CR_##T##_TOP << CR_##T##_MANTISSA) + CR_##T##_ONE_NAN * (((int64_t)1 << CR_##T##_MANTISSA) - 2))

enum { CR_NANS_IEEE, CR_NANS_ONE };

enum {
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED, NANS)                                      \
    CR_##SYMBOL##_BYTES = bytes, CR_##SYMBOL##_MANTISSA = mantissa, CR_##SYMBOL##_EXPONENT = exponent, \
    CR_##SYMBOL##_TOP = (1 << exponent) - 1, CR_##SYMBOL##_BIAS = (1 << (exponent - 1)) - 1,           \
    CR_##SYMBOL##_ONE_NAN = CR_NANS_##NANS, CR_##SYMBOL##_LEAST = 2 - (1 << (exponent - 1)) - mantissa,
#include "kernels/core/float.def"
#undef CR_FLOAT
#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED, NANS)                                                     \
    CR_##SYMBOL##_GRID = CR_##SUMMED##_LEAST,                                                                         \
    CR_##SYMBOL##_SPAN = CR_##SYMBOL##_BIAS + 1 + CR_##SYMBOL##_ONE_NAN - CR_##SUMMED##_LEAST,                        \
    CR_##SYMBOL##_LIMBS = CR_POWER_LIMBS(CR_##SYMBOL##_SPAN, 1), CR_##SYMBOL##_SQUARE_GRID = 2 * CR_##SUMMED##_LEAST, \
    CR_##SYMBOL##_SQUARE_LIMBS = CR_POWER_LIMBS(CR_##SYMBOL##_SPAN, 2),
#include "kernels/core/float.def"
#undef CR_FLOAT
};

#endif
