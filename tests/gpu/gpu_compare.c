/* gpu_compare: whether two partials say the same of the same elements.
 *
 * Thread: any. Owner: the caller. */
#include <string.h>

#include "kernels/core/limbs.h"
#include "tests/gpu/gpu_cases.h"

static bool same_sum(const cr_sum *a, const cr_sum *b, unsigned limbs) {
    cr_sum x = *a, y = *b;
    cr_limbs_carry(x.limbs, limbs, &x.pending);
    cr_limbs_carry(y.limbs, limbs, &y.pending);
    return memcmp(x.limbs, y.limbs, limbs * sizeof x.limbs[0]) == 0 && x.special.nans == y.special.nans &&
           x.special.pinfs == y.special.pinfs && x.special.ninfs == y.special.ninfs;
}

/* Without its index only whether there is one. */
static bool same_index(uint64_t a, uint64_t b, bool wanted) {
    return wanted ? a == b : (a == UINT64_MAX) == (b == UINT64_MAX);
}

static bool same_extremum(const cr_extremum *a, const cr_extremum *b, bool index) {
    return same_index(a->index, b->index, index) && (a->index == UINT64_MAX || a->key == b->key);
}

/* What a wants of them. */
static bool same_extrema(const cr_partial *a, const cr_partial *b) {
    const bool argmin = a->wants & CR_WANTS_ARGMIN, argmax = a->wants & CR_WANTS_ARGMAX;
    if (a->wants & CR_WANTS_MIN && !same_extremum(&a->min, &b->min, argmin)) return false;
    if (a->wants & CR_WANTS_MAX && !same_extremum(&a->max, &b->max, argmax)) return false;
    return same_index(a->first_nan, b->first_nan, argmin || argmax);
}

static bool same_floats(const cr_float_prod *a, const cr_float_prod *b) {
    return a->nans == b->nans && a->zeros == b->zeros && a->infs == b->infs && a->negative == b->negative &&
           a->lost == b->lost && a->count == b->count && memcmp(a->nodes, b->nodes, a->count * sizeof a->nodes[0]) == 0;
}

static bool same_ints(const cr_int_prod *a, const cr_int_prod *b) {
    return a->zeros == b->zeros && a->wrap == b->wrap && a->negative == b->negative && a->over == b->over &&
           a->words == b->words && memcmp(a->magnitude, b->magnitude, a->words * sizeof a->magnitude[0]) == 0;
}

uint32_t case_different(const cr_partial *a, const cr_partial *b) {
    cr_dtype dtype = (cr_dtype)a->dtype;
    uint32_t f = a->families, wrong = 0;
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    if (a->dtype != b->dtype || a->families != b->families || a->n != b->n) return CR_FAM_ALL;
    if ((f & CR_FAM_COUNTS) && (a->nans != b->nans || a->nonzero != b->nonzero)) wrong |= CR_FAM_COUNTS;
    if ((f & CR_FAM_EXTREMA) && !same_extrema(a, b)) wrong |= CR_FAM_EXTREMA;
    if ((f & CR_FAM_BITS) && (a->bit_and != b->bit_and || a->bit_or != b->bit_or || a->bit_xor != b->bit_xor))
        wrong |= CR_FAM_BITS;
    for (unsigned at = 0; at < CR_SUMS; at++)
        if ((f & cr_sum_rows[at].family) && !same_sum(&a->sums[at], &b->sums[at], cr_sum_limbs((cr_sum_at)at, dtype)))
            wrong |= cr_sum_rows[at].family;
    if ((f & CR_FAM_PROD) && !(floats ? same_floats(&a->float_prod, &b->float_prod) : same_ints(&a->prod, &b->prod)))
        wrong |= CR_FAM_PROD;
    if ((f & CR_FAM_DIGEST) && memcmp(a->digest, b->digest, sizeof a->digest) != 0) wrong |= CR_FAM_DIGEST;
    return wrong;
}
