/* parts: what the states of folds by key say of a cell, as a partial: exact sums from the digits of the window and of the limbs, on the
 * grids that the CPU's have (kernels/core/sum.h).
 *
 * Thread: any; nothing here holds state. */
#include "kernels/cuda/keys/keys.h"

enum { DIGIT = 32, NANS = 0, PLUS = 1, MINUS = 2 };

/* A cell of one state. */
typedef struct view {
    const unsigned long long *planes;
    uint64_t cells, cell;
    const cr_keys_planes *at;
    int32_t window;
} view;

static uint64_t word(const view *v, int32_t number) { return v->planes[(uint64_t)number * v->cells + v->cell]; }

static uint64_t special(const view *v, int32_t kind) {
    return v->at->special != CR_KEYS_NONE ? word(v, v->at->special + kind) : 0;
}

/* Squares and magnitudes have no −inf. */
static void fill_sum(const view *v, uint32_t family, cr_partial *p) {
    const cr_sum_at at = cr_sum_of(family);
    const bool has_sign = (family & CR_FAM_SIGNED) != 0;
    p->sums[at].special = (cr_specials){special(v, NANS), special(v, PLUS) + (has_sign ? 0 : special(v, MINUS)),
                                        has_sign ? special(v, MINUS) : 0};
    for (int32_t i = 0; i < v->at->limb_count; i++)
        cr_partial_put(p, at, (int64_t)word(v, v->at->limbs + i), (unsigned)(DIGIT * i));
    for (int32_t i = 0; i < v->at->limbs - v->at->window; i++)
        cr_partial_put(p, at, (int64_t)word(v, v->at->window + i), (unsigned)(v->window + DIGIT * i));
}

/* Of some elements; they have no position. */
static void fill_extrema(const view *v, cr_partial *p) {
    const uint64_t all = UINT64_MAX >> (64 - 8 * cr_dtype_size((cr_dtype)p->dtype)), nans = special(v, NANS);
    if (nans != 0) p->first_nan = 0;
    if (nans == p->n) return;
    p->max = (cr_extremum){word(v, v->at->window), 0};
    p->min = (cr_extremum){~word(v, v->at->window + 1) & all, 0};
}

static void fill_bits(const view *v, cr_partial *p) {
    p->bit_or = word(v, v->at->window);
    p->bit_and = ~word(v, v->at->window + 1);
    p->bit_xor = word(v, v->at->window + 2);
}

void cr_keys_part_fill(const cr_gpu_keys *keys, const cr_keys_part *parts, uint32_t count, const uint8_t *states,
                       uint64_t cell, cr_partial *p) {
    uint32_t families = 0;
    for (uint32_t i = 0; i < count; i++) families |= parts[i].family;
    if (parts[0].at.nonzero != CR_KEYS_NONE) families |= CR_FAM_COUNTS;
    for (uint32_t i = 0; i < count; i++) {
        cr_keys_head head;
        const cr_keys_part *part = &parts[i];
        view v = {cr_keys_part_planes(states + part->place, &head), cr_keys_answers(&keys->keys), cell, &part->at, 0};
        v.window = head.window;
        if (i == 0) {
            p->n = word(&v, part->at.count);
            if (p->n == 0) return;
            const uint64_t n = p->n;
            cr_partial_init(p, keys->axis.dtype, families);
            p->n = n;
        }
        if (i == 0 && part->at.nonzero != CR_KEYS_NONE) {
            p->nans = special(&v, NANS);
            p->nonzero = word(&v, part->at.nonzero);
        }
        if (part->family & CR_FAM_SUMS) fill_sum(&v, part->family, p);
        if (part->family == CR_FAM_EXTREMA) fill_extrema(&v, p);
        if (part->family == CR_FAM_BITS) fill_bits(&v, p);
    }
}
