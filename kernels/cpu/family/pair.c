/* pair: the generic way of the exact sums of pairs.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#include "kernels/cpu/family/pair.h"

#include "kernels/core/limbs.h"

static void special(cr_pair_terms *terms, bool nan, bool negative) { terms->special = nan ? 0 : negative ? 2 : 1; }

/* a·b·2^(more bits), or what is taken away. */
static void term(cr_pair_terms *terms, const number *a, const number *b, bool negative, unsigned more) {
    const unsigned __int128 product = (unsigned __int128)a->magnitude * b->magnitude;
    if (product == 0) return;
    terms->term[terms->count].magnitude = product;
    terms->term[terms->count].bit = a->bit + b->bit + more;
    terms->term[terms->count++].negative = negative;
}

static void of_product(const number *x, const number *y, cr_pair_terms *terms) {
    const bool negative = x->negative != y->negative, none = number_no_product(x, y);
    if (none || x->infinite || y->infinite)
        special(terms, none, negative);
    else
        term(terms, x, y, negative, 0);
}

/* (x − y)² as x² − 2·x·y + y². */
static void of_distance(const number *x, const number *y, cr_pair_terms *terms) {
    const bool same = x->negative == y->negative;
    if (x->nan || y->nan || x->infinite || y->infinite) {
        special(terms, x->nan || y->nan || (x->infinite && y->infinite && same), false);
        return;
    }
    term(terms, x, x, false, 0);
    term(terms, y, y, false, 0);
    term(terms, x, y, same, 1);
}

/* y, where x·y is a number. */
static void of_weight(const number *x, const number *y, cr_pair_terms *terms) {
    static const number one = {.magnitude = 1};
    if (number_no_product(x, y)) return;
    if (y->infinite)
        special(terms, false, y->negative);
    else
        term(terms, y, &one, y->negative, 0);
}

void cr_pair_terms_of(cr_sum_at at, const number *x, const number *y, cr_pair_terms *terms) {
    terms->count = 0;
    terms->special = CR_PAIR_NUMBER;
    if (at == CR_AT_DOT) of_product(x, y, terms);
    if (at == CR_AT_SQDIST) of_distance(x, y, terms);
    if (at == CR_AT_WEIGHTS) of_weight(x, y, terms);
}

static void add(cr_partial *part, cr_sum_at at, const number *x, const number *y) {
    cr_sum *sum = &part->sums[at];
    cr_pair_terms terms;
    cr_pair_terms_of(at, x, y, &terms);
    if (terms.special != CR_PAIR_NUMBER) number_count(&sum->special, terms.special == 0, true, terms.special == 2);
    for (unsigned i = 0; i < terms.count; i++)
        cr_limbs_put(sum->limbs, cr_sum_limbs(at, (cr_dtype)part->dtype), &sum->pending, terms.term[i].magnitude,
                     terms.term[i].negative, terms.term[i].bit);
}

void cr_pair_fold(cr_partial *part, uint32_t families, const uint8_t *p, const uint8_t *second, size_t n) {
    const cr_dtype dtype = (cr_dtype)part->dtype;
    const size_t size = cr_dtype_size(dtype);
    for (size_t i = 0; i < n; i++) {
        const number x = number_at(dtype, p + i * size), y = number_at(dtype, second + i * size);
        if (families & CR_FAM_DOT) add(part, CR_AT_DOT, &x, &y);
        if (families & CR_FAM_SQDIST) add(part, CR_AT_SQDIST, &x, &y);
        if (families & CR_FAM_WEIGHTS) add(part, CR_AT_WEIGHTS, &x, &y);
    }
}
