/* others: what a fold by key does an element at a time: sums by powers and of pairs, extrema, counts, bits and products of integers.
 *
 * Thread: as the state. Owner: the state. */
#include <string.h>

#include "kernels/core/prod.h"
#include "kernels/core/turns.h"
#include "kernels/cpu/family/pair.h"
#include "kernels/cpu/family/power.h"
#include "kernels/cpu/keys/state.h"

#define INLINE static inline __attribute__((always_inline))

/* The bits of an element; a bool is 0 or 1. */
INLINE uint64_t element(const uint8_t *p, cr_dtype dtype, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, p, size);
    return size == 1 && dtype == CR_BOOL ? bits != 0 : bits;
}

typedef struct kind {
    cr_dtype dtype;
    cr_kind is;
    size_t size;
    cr_turns turns;
} kind;

static kind kind_of(cr_dtype dtype) {
    return (kind){dtype, cr_dtype_kind(dtype), cr_dtype_size(dtype), cr_turns_of(dtype)};
}

INLINE bool is_nan(const cr_turns *turns, uint64_t bits) { return !cr_turns_number(turns, bits); }

/* The loops are compiled for each size: a load whose size is not known is a call. */
#define OF_EACH_SIZE(name)                                                         \
    static void name(cr_by_key *state, const cr_key_block *block, const kind *k) { \
        if (k->size == 1)                                                          \
            name##_of(state, block, k, 1);                                         \
        else if (k->size == 2)                                                     \
            name##_of(state, block, k, 2);                                         \
        else if (k->size == 4)                                                     \
            name##_of(state, block, k, 4);                                         \
        else                                                                       \
            name##_of(state, block, k, 8);                                         \
    }

INLINE void take_min(cr_key_end *end, uint64_t key, uint64_t index) {
    if (key < end->key || (key == end->key && index < end->index)) *end = (cr_key_end){key, index};
}

INLINE void take_max(cr_key_end *end, uint64_t key, uint64_t index) {
    if (key > end->key || (key == end->key && index < end->index)) *end = (cr_key_end){key, index};
}

INLINE void extrema_of(cr_by_key *state, const cr_key_block *block, const kind *k, size_t size) {
    const uint64_t columns = state->keys.columns;
    const cr_turns turns = k->turns;
    cr_key_end *const min = state->min, *const max = state->max;
    uint64_t row = block->at / columns, column = block->at % columns;
    for (unsigned i = 0; i < block->n; i++) {
        const uint64_t bits = element(block->p + i * size, k->dtype, size);
        const uint32_t cell = block->cell[i];
        if (is_nan(&turns, bits)) {
            if (row < state->first_nan[cell]) state->first_nan[cell] = row;
        } else {
            const uint64_t key = cr_turned(&turns, bits);
            if (min != NULL) take_min(&min[cell], key, row);
            if (max != NULL) take_max(&max[cell], key, row);
        }
        if (++column == columns) {
            column = 0;
            row++;
        }
    }
}
OF_EACH_SIZE(extrema)

INLINE void counts_of(cr_by_key *state, const cr_key_block *block, const kind *k, size_t size) {
    const uint64_t magnitude = k->is == CR_KIND_FLOAT ? k->turns.top - 1 : UINT64_MAX;
    const cr_turns turns = k->turns;
    cr_key_counts *const counts = state->counts;
    for (unsigned i = 0; i < block->n; i++) {
        const uint64_t bits = element(block->p + i * size, k->dtype, size);
        cr_key_counts *to = &counts[block->cell[i]];
        to->nans += is_nan(&turns, bits);
        to->nonzero += (bits & magnitude) != 0;
    }
}
OF_EACH_SIZE(counts)

INLINE void bits_of(cr_by_key *state, const cr_key_block *block, const kind *k, size_t size) {
    const uint64_t above = size == 8 ? 0 : UINT64_MAX << (8 * size);
    cr_key_bits *const all = state->bits;
    for (unsigned i = 0; i < block->n; i++) {
        const uint64_t bits = element(block->p + i * size, k->dtype, size);
        cr_key_bits *to = &all[block->cell[i]];
        to->all &= bits | above;
        to->any |= bits;
        to->odd ^= bits;
    }
}
OF_EACH_SIZE(bits)

INLINE void products_of(cr_by_key *state, const cr_key_block *block, const kind *k, size_t size) {
    const unsigned unused = 64 - 8 * (unsigned)size;
    for (unsigned i = 0; i < block->n; i++) {
        uint64_t x = element(block->p + i * size, k->dtype, size);
        cr_int_prod *to = &state->prods[block->cell[i]];
        if (k->is == CR_KIND_SINT) x = (uint64_t)((int64_t)(x << unused) >> unused);
        const bool negative = k->is == CR_KIND_SINT && x >> 63;
        const uint64_t magnitude = negative ? -x : x;
        to->zeros += x == 0;
        to->negative ^= negative;
        to->wrap *= x;
        if (magnitude > 1 && !to->over) cr_int_prod_times(to, magnitude);
    }
}
OF_EACH_SIZE(products)
#undef OF_EACH_SIZE

static void powers(cr_by_key *state, cr_key_sum *sum, const cr_key_block *block, const kind *k) {
    const cr_sum_row *row = &cr_sum_rows[sum->at];
    for (unsigned i = 0; i < block->n; i++) {
        const number x = number_at(k->dtype, block->p + i * k->size);
        uint64_t words[CR_SUM_POWER];
        if (block->cell[i] >= state->cells) continue;
        if (x.nan || x.infinite) {
            cr_key_put_special(state, sum, block->cell[i], x.nan ? 0 : x.negative ? 2 : 1);
            continue;
        }
        const bool negative = cr_power_term(row, &x, words);
        for (unsigned w = 0; w < row->power; w++)
            if (words[w] != 0)
                cr_key_put_bits(state, sum, block->cell[i], words[w], negative, x.bit * row->power + 64 * w);
    }
}

void cr_key_put_pair(cr_by_key *state, cr_key_sum *sum, const cr_key_block *block, unsigned i) {
    const cr_dtype dtype = state->spec.dtype;
    const number x = number_at(dtype, block->p + i * block->size),
                 y = number_at(dtype, block->second + i * block->size);
    const uint32_t cell = block->cell[i];
    cr_pair_terms terms;
    if (cell >= state->cells) return;
    cr_pair_terms_of(sum->at, &x, &y, &terms);
    if (terms.special != CR_PAIR_NUMBER) cr_key_put_special(state, sum, cell, terms.special);
    for (unsigned t = 0; t < terms.count; t++)
        cr_key_put_bits(state, sum, cell, terms.term[t].magnitude, terms.term[t].negative, terms.term[t].bit);
}

/* Of the elements of two arrays. */
static void pairs(cr_by_key *state, cr_key_sum *sum, const cr_key_block *block) {
    for (unsigned i = 0; i < block->n; i++) cr_key_put_pair(state, sum, block, i);
}

void cr_key_others(cr_by_key *state, const cr_key_block *block) {
    const kind k = kind_of(state->spec.dtype);
    for (unsigned at = 0; at < CR_SUMS; at++) {
        cr_key_sum *sum = &state->sums[at];
        if (sum->by_powers && cr_sum_rows[at].family & CR_FAM_PAIRS) pairs(state, sum, block);
        if (sum->by_powers && !(cr_sum_rows[at].family & CR_FAM_PAIRS)) powers(state, sum, block, &k);
    }
    if (state->first_nan != NULL || state->min != NULL || state->max != NULL) extrema(state, block, &k);
    if (state->counts != NULL) counts(state, block, &k);
    if (state->bits != NULL) bits(state, block, &k);
    if (state->prods != NULL) products(state, block, &k);
}
