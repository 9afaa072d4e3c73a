/* sums: sums of pairs along an axis as sums of their terms (terms.h). Terms are written a tile at a time, and the folds of one array sum
 * them. Private to kernels/cpu.
 *
 * A line of columns is then `runs` lines of terms, and a row of n elements one of n·runs. What a sum of terms answers it rounds itself. An
 * average, and whatever is not usual, is answered from a partial of pairs, which is made of the sums.
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_PAIRS_SUMS_H
#define CURED_KERNELS_CPU_PAIRS_SUMS_H

#include "kernels/cpu/axis/plan.h"

enum {
    CR_PAIR_SUMS = 3,          /* of products, of squared differences, of weights */
    CR_PAIR_GROUP = 512,       /* columns whose state lies together, at most */
    CR_PAIR_TILE = 98304,      /* bytes of terms at once, */
    CR_PAIR_TILE_PAIRS = 16384 /* and pairs */
};

typedef struct cr_pair_sum {
    cr_sum_at at;
    unsigned runs;     /* terms of a pair */
    size_t size;       /* of a term */
    cr_axis_spec spec; /* of the terms: their sum, in the type of the answer */
} cr_pair_sum;

/* The sums that a plan's ops of pairs need. */
typedef struct cr_pair_sums {
    const cr_axis_plan *plan;
    unsigned count;
    bool exact; /* terms are all there is to a pair: those of float64s may have lost bits */
    cr_pair_sum sum[CR_PAIR_SUMS];
} cr_pair_sums;

/* The type of the terms; none: elements of this type have none. */
cr_dtype cr_pair_terms_dtype(cr_dtype dtype, cr_sum_at at);
/* Whether all ops of the plan are of pairs, of a type that has terms; then sums are they. */
bool cr_pair_sums_make(cr_pair_sums *sums, const cr_axis_plan *plan);
/* Whether the op is the sum of products divided by that of weights. */
bool cr_pair_is_average(cr_op op);
/* The sum that is the op's answer once it is rounded; NULL: none is. */
const cr_pair_sum *cr_pair_sum_of(const cr_pair_sums *sums, cr_op op);
/* Adds a partial of a sum's terms to one of pairs. */
void cr_pair_sum_put(const cr_pair_sum *sum, const cr_partial *terms, cr_partial *pairs);

/* A state of columns: that of the terms of each group and sum; then, where terms may lose bits, a partial for each column, initialised
 * once some did. For sums that were made for spec, whose shape says how many columns there are. */
size_t cr_pair_columns_bytes(const cr_pair_sums *sums);
void cr_pair_columns_init(const cr_pair_sums *sums, void *state);
/* As cr_cpu_columns_fold_view. */
void cr_pair_columns_fold(const cr_pair_sums *sums, void *state, const cr_view *view, uint64_t count, uint64_t at);
void cr_pair_columns_merge(const cr_pair_sums *sums, void *into, const void *from);
cr_status cr_pair_columns_finish(const cr_pair_sums *sums, const void *state, uint64_t output, uint64_t first,
                                 uint64_t count, void *const out[], cr_error *error);
/* Answers of columns [c, c + columns), at most CR_PAIR_GROUP, of a whole block to out[k][at …], the first being number output. *lost: terms
 * lost bits, and there are none. scratch: cr_pair_group_bytes, on a line of the cache. */
size_t cr_pair_group_bytes(const cr_pair_sums *sums);
cr_status cr_pair_group_answer(const cr_pair_sums *sums, const cr_view *block, uint64_t c, unsigned columns,
                               uint64_t output, uint64_t at, void *scratch, void *const out[], bool *lost,
                               cr_error *error);

/* Short rows. Rows at once, at most CR_ROWS; 0: they are too long for that, or no rows. */
unsigned cr_pair_rows_at_once(const cr_pair_sums *sums);
/* Answers of count rows, so many at most, to out[k][at …], the first being number output. view begins with them. hard[i]: row i has none.
 * scratch: cr_pair_rows_bytes, on a line of the cache; it is made ready once, and what one call learns serves the next. */
size_t cr_pair_rows_bytes(const cr_pair_sums *sums);
void cr_pair_rows_init(const cr_pair_sums *sums, void *scratch);
void cr_pair_rows_answer_all(const cr_pair_sums *sums, const cr_view *view, unsigned count, uint64_t output,
                             uint64_t at, void *scratch, void *const out[], uint8_t *hard);

#endif
