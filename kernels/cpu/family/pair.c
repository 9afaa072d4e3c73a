/* pair: the generic way of the exact sums of pairs.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#include "kernels/cpu/family/pair.h"

#include "kernels/core/limbs.h"
#include "kernels/cpu/family/number.h"

/* Adds a·b·2^(more bits), or takes it away. */
static void put(cr_partial *part, cr_sum_at at, const number *a, const number *b, bool negative, unsigned more) {
    cr_sum *sum = &part->sums[at];
    const unsigned __int128 product = (unsigned __int128)a->magnitude * b->magnitude;
    if (product == 0) return;
    cr_limbs_put(sum->limbs, cr_sum_limbs(at, (cr_dtype)part->dtype), &sum->pending, product, negative,
                 a->bit + b->bit + more);
}

static void add_product(cr_partial *part, const number *x, const number *y) {
    cr_sum *sum = &part->sums[CR_AT_DOT];
    number_product(sum->limbs, cr_sum_limbs(CR_AT_DOT, (cr_dtype)part->dtype), &sum->pending, &sum->special, x, y);
}

/* (x − y)² as x² − 2·x·y + y². */
static void add_distance(cr_partial *part, const number *x, const number *y) {
    const bool same = x->negative == y->negative;
    if (x->nan || y->nan || x->infinite || y->infinite) {
        number_count(&part->sums[CR_AT_SQDIST].special, x->nan || y->nan || (x->infinite && y->infinite && same), true,
                     false);
        return;
    }
    put(part, CR_AT_SQDIST, x, x, false, 0);
    put(part, CR_AT_SQDIST, y, y, false, 0);
    put(part, CR_AT_SQDIST, x, y, same, 1);
}

/* y, where x·y is a number. */
static void add_weight(cr_partial *part, const number *x, const number *y) {
    static const number one = {.magnitude = 1};
    if (number_no_product(x, y)) return;
    if (y->infinite)
        number_count(&part->sums[CR_AT_WEIGHTS].special, false, true, y->negative);
    else
        put(part, CR_AT_WEIGHTS, y, &one, y->negative, 0);
}

void cr_pair_fold(cr_partial *part, uint32_t families, const uint8_t *p, const uint8_t *second, size_t n) {
    const cr_dtype dtype = (cr_dtype)part->dtype;
    const size_t size = cr_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        const number x = number_at(dtype, p + i * size), y = number_at(dtype, second + i * size);
        if (families & CR_FAM_DOT) add_product(part, &x, &y);
        if (families & CR_FAM_SQDIST) add_distance(part, &x, &y);
        if (families & CR_FAM_WEIGHTS) add_weight(part, &x, &y);
    }
}
