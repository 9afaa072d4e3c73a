/* linear: see linear.h. Thread: any; nothing here holds state. */
#include "kernels/core/linear.h"

#include <string.h>

#include "kernels/core/limbs.h"

enum {
    COUNTS = 2,
    RESIDUES = 2 * (CR_DIGEST_PARTS +
                    1), /* and the coverage: each as its low 31 bits and its upper 30: so 2^31 of them add up, too */
    RESIDUE_LOW = 31
};

cr_status cr_linear_check(uint32_t families, cr_error *error) {
    if (families & CR_FAM_PROD)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: products have no linear form, because they do not add up: merge partials");
    if (families & CR_FAM_BITS)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: bits have no linear form, because they do not add up: merge partials");
    return CR_OK;
}

static size_t specials_of(cr_dtype dtype) { return cr_dtype_kind(dtype) == CR_KIND_FLOAT ? CR_LINEAR_SPECIALS : 0; }

size_t cr_linear_place(cr_dtype dtype, uint32_t families, unsigned at) {
    size_t place = 1;
    for (unsigned i = 0; i < at; i++)
        if (families & cr_sum_rows[i].family) place += cr_sum_limbs((cr_sum_at)i, dtype) + specials_of(dtype);
    return place;
}

size_t cr_linear_sums(cr_dtype dtype, uint32_t families) {
    const size_t counts = families & CR_FAM_COUNTS ? COUNTS : 0, residues = families & CR_FAM_DIGEST ? RESIDUES : 0;
    return cr_linear_place(dtype, families, CR_SUMS) + counts + residues;
}

size_t cr_linear_maxima(uint32_t families) { return families & CR_FAM_EXTREMA ? CR_LINEAR_MAXIMA : 0; }

/* Unsigned keys in the order of signed integers. */
static int64_t signed_key(uint64_t key) { return (int64_t)(key ^ (uint64_t)1 << 63); }
static uint64_t unsigned_key(int64_t key) { return (uint64_t)key ^ (uint64_t)1 << 63; }

void cr_linear_write(const cr_partial *p, int64_t *sums, int64_t *maxima) {
    const cr_dtype dtype = (cr_dtype)p->dtype;
    *sums++ = (int64_t)p->n;
    for (unsigned at = 0; at < CR_SUMS; at++) {
        if (!(p->families & cr_sum_rows[at].family)) continue;
        const cr_sum *sum = &p->sums[at];
        const unsigned limbs = cr_sum_limbs((cr_sum_at)at, dtype);
        uint32_t pending;
        memcpy(sums, sum->limbs, limbs * sizeof *sums);
        cr_limbs_carry(sums, limbs, &pending);
        sums += limbs;
        if (specials_of(dtype) == 0) continue;
        *sums++ = (int64_t)sum->special.nans;
        *sums++ = (int64_t)sum->special.pinfs;
        *sums++ = (int64_t)sum->special.ninfs;
    }
    if (p->families & CR_FAM_COUNTS) {
        *sums++ = (int64_t)p->nans;
        *sums++ = (int64_t)p->nonzero;
    }
    const uint64_t residues[] = {p->digest[0], p->digest[1], p->cover};
    for (unsigned i = 0; i < RESIDUES / 2 && (p->families & CR_FAM_DIGEST); i++) {
        *sums++ = (int64_t)(residues[i] & (((uint64_t)1 << RESIDUE_LOW) - 1));
        *sums++ = (int64_t)(residues[i] >> RESIDUE_LOW);
    }
    if (!(p->families & CR_FAM_EXTREMA)) return;
    maxima[0] = p->min.index != UINT64_MAX;
    maxima[1] = p->first_nan != UINT64_MAX;
    maxima[2] = signed_key(maxima[0] ? p->max.key : 0);
    maxima[3] = signed_key(maxima[0] ? ~p->min.key : 0); /* the least key has the greatest complement */
}

static cr_status refuse(cr_error *error, const char *what) {
    return cr_fail(error, CR_INVALID_ARGUMENT, "linear form: %s", what);
}

static cr_status read_maxima(const int64_t *in, cr_partial *p, cr_error *error) {
    if (in[0] < 0 || in[0] > 1 || in[1] < 0 || in[1] > 1)
        return refuse(error, "the first two numbers of maxima are 0 or 1, and are compared, not added");
    if (in[1]) p->first_nan = 0;
    if (!in[0]) return CR_OK;
    p->max = (cr_extremum){.key = unsigned_key(in[2]), .index = 0};
    p->min = (cr_extremum){.key = ~unsigned_key(in[3]), .index = 0};
    return CR_OK;
}

cr_status cr_linear_read(cr_dtype dtype, uint32_t families, const int64_t *sums, const int64_t *maxima, cr_partial *p,
                         cr_error *error) {
    cr_status status = cr_linear_check(families, error);
    if (status != CR_OK) return status;
    if (*sums < 0) return refuse(error, "its number of elements is below 0: too many were added");
    cr_partial_init(p, dtype, families);
    p->n = (uint64_t)*sums++;
    for (unsigned at = 0; at < CR_SUMS; at++) {
        if (!(families & cr_sum_rows[at].family)) continue;
        cr_sum *sum = &p->sums[at];
        const unsigned limbs = cr_sum_limbs((cr_sum_at)at, dtype);
        if (!cr_limbs_take(sums, limbs, sum->limbs)) return refuse(error, "a sum is larger than its elements can give");
        sums += limbs;
        if (specials_of(dtype) == 0) continue;
        if (!cr_counts_take(sums, CR_LINEAR_SPECIALS, p->n))
            return refuse(error, "it counts more NaNs and infinities than elements");
        sum->special = (cr_specials){(uint64_t)sums[0], (uint64_t)sums[1], (uint64_t)sums[2]};
        sums += CR_LINEAR_SPECIALS;
    }
    if (families & CR_FAM_COUNTS) {
        if (!cr_counts_take(sums, COUNTS, p->n)) return refuse(error, "it counts more NaNs or non-zeros than elements");
        p->nans = (uint64_t)sums[0];
        p->nonzero = (uint64_t)sums[1];
        sums += COUNTS;
    }
    uint64_t *const residues[] = {&p->digest[0], &p->digest[1], &p->cover};
    for (unsigned i = 0; i < RESIDUES / 2 && (families & CR_FAM_DIGEST); i++, sums += 2) {
        if (sums[0] < 0 || sums[1] < 0) return refuse(error, "a residue of its digest is below 0: too many were added");
        *residues[i] = cr_digest_wide((unsigned __int128)(uint64_t)sums[0] +
                                      ((unsigned __int128)(uint64_t)sums[1] << RESIDUE_LOW));
    }
    return families & CR_FAM_EXTREMA ? read_maxima(maxima, p, error) : CR_OK;
}
