/* pair: exact sums of pairs by the generic way: each term as an integer and an exponent, straight into the limbs. It takes every type.
 * It is slow, and what the fast ways (products.h) are tested against.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PAIR_H
#define CURED_KERNELS_CPU_FAMILY_PAIR_H

#include "kernels/core/partial.h"
#include "kernels/cpu/family/number.h"

/* What a pair adds to one of the sums of pairs: terms, or a NaN or an infinity, which is counted. */
enum { CR_PAIR_TERMS = 3, CR_PAIR_NUMBER = -1 };
typedef struct cr_pair_terms {
    struct {
        unsigned __int128 magnitude;
        unsigned bit; /* of the sum's grid */
        bool negative;
    } term[CR_PAIR_TERMS];
    unsigned count;
    int special; /* CR_PAIR_NUMBER, or 0 a NaN, 1 +inf, 2 −inf */
} cr_pair_terms;

/* at: CR_AT_DOT, CR_AT_SQDIST or CR_AT_WEIGHTS. */
void cr_pair_terms_of(cr_sum_at at, const number *x, const number *y, cr_pair_terms *terms);

/* Adds the terms of n elements at p, and n at second, to those of the partial's sums of pairs that are in families. Does not count
 * the elements. */
void cr_pair_fold(cr_partial *part, uint32_t families, const uint8_t *p, const uint8_t *second, size_t n);

#endif
