/* pair: exact sums of pairs by the generic way: each term as an integer and an exponent, straight into the limbs. It takes every type.
 * It is slow, and what the fast ways (products.h) are tested against.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PAIR_H
#define CURED_KERNELS_CPU_FAMILY_PAIR_H

#include "kernels/core/partial.h"

/* Adds the terms of n elements at p, and n at second, to those of the partial's sums of pairs that are in families. Does not count
 * the elements. */
void cr_pair_fold(cr_partial *part, uint32_t families, const uint8_t *p, const uint8_t *second, size_t n);

#endif
