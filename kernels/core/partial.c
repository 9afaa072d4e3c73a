/* partial: making, merging and normalising partial states.
 *
 * Thread: any; a partial is used by one thread at a time. Owner: the caller; nothing here allocates. */
#include "kernels/core/partial.h"

#include <string.h>

#include "kernels/core/float.h"
#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"

/* Integers: 64 bits, squares 128, of up to 2^63 elements, and a sign. */
enum { INTEGER_LIMBS = 5, INTEGER_SQUARE_LIMBS = 7 };

#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED) \
    [CR_##SYMBOL] = {CR_##SYMBOL##_GRID, CR_##SYMBOL##_LIMBS, CR_##SYMBOL##_SQUARE_LIMBS},
static const struct {
    int16_t grid;
    uint8_t limbs, square_limbs;
} floats[] = {
#include "kernels/core/float.def"
};
#undef CR_FLOAT

static bool is_float(cr_dtype dtype) { return dtype < sizeof floats / sizeof floats[0] && floats[dtype].limbs; }

unsigned cr_sum_limbs(cr_dtype dtype) { return is_float(dtype) ? floats[dtype].limbs : INTEGER_LIMBS; }

int cr_sum_grid(cr_dtype dtype) { return is_float(dtype) ? floats[dtype].grid : 0; }

unsigned cr_sumsq_limbs(cr_dtype dtype) { return is_float(dtype) ? floats[dtype].square_limbs : INTEGER_SQUARE_LIMBS; }

int cr_sumsq_grid(cr_dtype dtype) { return 2 * cr_sum_grid(dtype); }

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
    if (families & CR_FAM_PROD) {
        if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
            cr_float_prod_init(&p->float_prod);
        } else {
            cr_int_prod_init(&p->prod);
        }
    }
    if (families & CR_FAM_SUM) {
        p->sum_special = (cr_specials){0};
        p->sum_pending = 0;
        memset(p->sum, 0, cr_sum_limbs(dtype) * sizeof p->sum[0]);
    }
    if (families & CR_FAM_SUMABS) {
        p->sumabs_special = (cr_specials){0};
        p->sumabs_pending = 0;
        memset(p->sumabs, 0, cr_sum_limbs(dtype) * sizeof p->sumabs[0]);
    }
    if (families & CR_FAM_SUMSQ) {
        p->sumsq_special = (cr_specials){0};
        p->sumsq_pending = 0;
        memset(p->sumsq, 0, cr_sumsq_limbs(dtype) * sizeof p->sumsq[0]);
    }
}

void cr_partial_want(cr_partial *p, uint32_t wants) { p->wants = (uint8_t)(wants & CR_WANTS_ALL); }

static void merge_limbs(int64_t *into, uint32_t *into_pending, const int64_t *from, uint32_t from_pending,
                        unsigned count) {
    /* Limbs fresh from a carry pass count as one more raw addition. Both sides stay below 2^30 + 1, so no limb
     * overflows before the carry pass. */
    for (unsigned i = 0; i < count; i++) into[i] += from[i];
    uint32_t pending = *into_pending + from_pending + 1;
    *into_pending = pending;
    if (pending >= CR_PENDING_MAX) cr_limbs_carry(into, count, into_pending);
}

static void merge_specials(cr_specials *into, const cr_specials *from) {
    into->nans += from->nans;
    into->pinfs += from->pinfs;
    into->ninfs += from->ninfs;
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
    if (families & CR_FAM_PROD) {
        if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
            cr_float_prod_merge(&into->float_prod, &from->float_prod);
        } else {
            cr_int_prod_merge(&into->prod, &from->prod);
        }
    }
    if (families & CR_FAM_SUM) {
        merge_specials(&into->sum_special, &from->sum_special);
        merge_limbs(into->sum, &into->sum_pending, from->sum, from->sum_pending, cr_sum_limbs(dtype));
    }
    if (families & CR_FAM_SUMABS) {
        merge_specials(&into->sumabs_special, &from->sumabs_special);
        merge_limbs(into->sumabs, &into->sumabs_pending, from->sumabs, from->sumabs_pending, cr_sum_limbs(dtype));
    }
    if (families & CR_FAM_SUMSQ) {
        merge_specials(&into->sumsq_special, &from->sumsq_special);
        merge_limbs(into->sumsq, &into->sumsq_pending, from->sumsq, from->sumsq_pending, cr_sumsq_limbs(dtype));
    }
}

static bool has_float_prod(cr_dtype dtype, uint32_t families) {
    return (families & CR_FAM_PROD) && cr_dtype_kind(dtype) == CR_KIND_FLOAT;
}

uint64_t cr_partial_grain(cr_dtype dtype, uint32_t families) {
    return has_float_prod(dtype, families) ? CR_PROD_BLOCK : 1;
}
