/* linear: partials as vectors of int64 that add up, for programs whose processes meet in an Allreduce (docs/PARTIALS.md, "Linear form").
 *
 * The elementwise sum of such vectors is the vector of the merged partial, and so the answer needs one Allreduce(SUM) of 64-bit
 * integers. A writer carries its digits first, into [0, 2^32) but for the top one, which has the sign: so 2^31 vectors add up
 * without an overflow. Extrema do not add up; they have a vector of their own, for Allreduce(MAX). Products and bits have none.
 * (The superaccumulator is Kulisch's and Miranker's, see limbs.h; that it is linear in the elements is all that is used here.)
 *
 * Thread: any; the caller owns every buffer; nothing here allocates. */
#ifndef CURED_KERNELS_CORE_LINEAR_H
#define CURED_KERNELS_CORE_LINEAR_H

#include "kernels/core/partial.h"

enum {
    CR_LINEAR_SPECIALS = 3, /* NaNs, +inf, -inf */
    CR_LINEAR_MAXIMA = 4,   /* int64 of a vector for MAX: some element, some NaN, the greatest key, the least */
    CR_LINEAR_ADDED = (1ull << 31) - 1, /* vectors that may be added at most */
};

/* Refused (INVALID_ARGUMENT) where a family has no linear form: products and bits. */
cr_status cr_linear_check(uint32_t families, cr_error *error);
/* int64 of the vector for SUM in front of the sum `at`, or, for CR_SUMS, of what comes behind all sums: its limbs come there, and then, of
 * floats, CR_LINEAR_SPECIALS numbers. */
size_t cr_linear_place(cr_dtype dtype, uint32_t families, unsigned at);
/* int64 of the vector for SUM: at least one, the number of elements. */
size_t cr_linear_sums(cr_dtype dtype, uint32_t families);
/* The same of the vector for MAX: CR_LINEAR_MAXIMA, or 0 without extrema. */
size_t cr_linear_maxima(uint32_t families);
/* Writes both vectors of a partial, whose families cr_linear_check takes. */
void cr_linear_write(const cr_partial *p, int64_t *sums, int64_t *maxima);
/* The partial of sums that were added, and maxima that were compared: without positions, an index is 0 or UINT64_MAX. What no
 * partials add up to is refused as far as it can be told here; cr_share_unpack checks the rest. */
cr_status cr_linear_read(cr_dtype dtype, uint32_t families, const int64_t *sums, const int64_t *maxima, cr_partial *p,
                         cr_error *error);

#endif
