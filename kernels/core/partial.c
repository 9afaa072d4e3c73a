/* partial: making, merging and normalising partial states.
 *
 * Thread: any; a partial is used by one thread at a time. Owner: the caller; nothing here allocates. */
#include "kernels/core/partial.h"

#include <string.h>

#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"

void cr_partial_init(cr_partial *p, cr_dtype dtype, uint32_t families) {
    p->dtype = (uint8_t)dtype;
    p->wants = CR_WANTS_ALL;
    p->families = families;
    p->n = 0;
    if (families & CR_FAM_COUNTS) p->nans = p->nonzero = 0;
    if (families & CR_FAM_EXTREMA) {
        p->min = (cr_extremum){.key = UINT64_MAX, .index = UINT64_MAX};
        p->max = (cr_extremum){.key = 0, .index = UINT64_MAX};
        p->first_nan = UINT64_MAX;
    }
    if (families & CR_FAM_BITS) {
        p->bit_and = UINT64_MAX;
        p->bit_or = p->bit_xor = 0;
    }
    if (families & CR_FAM_DIGEST) p->digest[0] = p->digest[1] = p->cover = 0;
    if (families & CR_FAM_PROD) {
        if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
            cr_float_prod_init(&p->float_prod);
        } else {
            cr_int_prod_init(&p->prod);
        }
    }
    for (unsigned at = 0; at < CR_SUMS; at++) {
        cr_sum *sum = &p->sums[at];
        if (!(families & cr_sum_rows[at].family)) continue;
        sum->special = (cr_specials){0};
        sum->pending = 0;
        memset(sum->limbs, 0, cr_sum_limbs((cr_sum_at)at, dtype) * sizeof sum->limbs[0]);
    }
}

void cr_partial_want(cr_partial *p, uint32_t wants) { p->wants = (uint8_t)(wants & CR_WANTS_ALL); }

static void merge_sum(cr_sum *into, const cr_sum *from, unsigned limbs) {
    into->special.nans += from->special.nans;
    into->special.pinfs += from->special.pinfs;
    into->special.ninfs += from->special.ninfs;
    /* Limbs fresh from a carry pass count as one more raw addition. Both sides stay below 2^30 + 1, so no limb
     * overflows before the carry pass. */
    for (unsigned i = 0; i < limbs; i++) into->limbs[i] += from->limbs[i];
    into->pending += from->pending + 1;
    if (into->pending >= CR_PENDING_MAX) cr_limbs_carry(into->limbs, limbs, &into->pending);
}

/* The better of two extrema; sign says which way "better" goes. An empty one loses; ties go to the lowest index. */
static void merge_extremum(cr_extremum *into, const cr_extremum *from, bool want_max) {
    if (from->index == UINT64_MAX) return;
    bool take = into->index == UINT64_MAX;
    if (!take && from->key == into->key) take = from->index < into->index;
    if (!take && from->key != into->key) take = (from->key > into->key) == want_max;
    if (take) *into = *from;
}

void cr_partial_merge(cr_partial *into, const cr_partial *from) {
    cr_dtype dtype = (cr_dtype)into->dtype;
    uint32_t families = into->families;
    into->n += from->n;
    if (families & CR_FAM_COUNTS) {
        into->nans += from->nans;
        into->nonzero += from->nonzero;
    }
    if (families & CR_FAM_EXTREMA) {
        merge_extremum(&into->min, &from->min, false);
        merge_extremum(&into->max, &from->max, true);
        if (from->first_nan < into->first_nan) into->first_nan = from->first_nan;
    }
    if (families & CR_FAM_BITS) {
        into->bit_and &= from->bit_and;
        into->bit_or |= from->bit_or;
        into->bit_xor ^= from->bit_xor;
    }
    if (families & CR_FAM_DIGEST) {
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++)
            into->digest[j] = cr_digest_add(into->digest[j], from->digest[j]);
        into->cover = cr_digest_add(into->cover, from->cover);
    }
    if (families & CR_FAM_PROD) {
        if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
            cr_float_prod_merge(&into->float_prod, &from->float_prod);
        } else {
            cr_int_prod_merge(&into->prod, &from->prod);
        }
    }
    for (unsigned at = 0; at < CR_SUMS; at++)
        if (families & cr_sum_rows[at].family)
            merge_sum(&into->sums[at], &from->sums[at], cr_sum_limbs((cr_sum_at)at, dtype));
}

static bool has_float_prod(cr_dtype dtype, uint32_t families) {
    return (families & CR_FAM_PROD) && cr_dtype_kind(dtype) == CR_KIND_FLOAT;
}

uint64_t cr_partial_grain(cr_dtype dtype, uint32_t families) {
    return has_float_prod(dtype, families) ? CR_PROD_BLOCK : 1;
}
