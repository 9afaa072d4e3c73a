/* power: an exact sum by the generic way: the power of each element, as an integer and an exponent, straight into the limbs. It
 * takes every row of sum.def and every type. It is slow, and what the fast ways are tested against.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_POWER_H
#define CURED_KERNELS_CPU_FAMILY_POWER_H

#include "kernels/core/partial.h"
#include "kernels/cpu/family/number.h"

/* The term of an element that is a number: |x|^power in words, the lowest first. Returns whether it is taken away. */
bool cr_power_term(const cr_sum_row *row, const number *x, uint64_t words[CR_SUM_POWER]);

/* Adds n elements at p to those of the partial's sums that are in families. Does not count them. */
void cr_power_fold(cr_partial *part, uint32_t families, const uint8_t *p, size_t n);

#endif
