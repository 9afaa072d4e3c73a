/* axis: what a reduction along one axis means: the array is (outer, n, inner) in C order, and output (o, i) reduces the n
 * elements (o, k, i), k = 0 … n−1, by the same exact rules as a whole array (docs/NUMERICS.md, "Axis").
 *
 * Thread: any; nothing here holds state or allocates. */
#ifndef CURED_KERNELS_CORE_AXIS_H
#define CURED_KERNELS_CORE_AXIS_H

#include "kernels/core/geometry.h"
#include "kernels/core/partial.h"

typedef struct cr_shape {
    uint64_t outer, n, inner;
} cr_shape;

/* Answers of each op, and elements of the input; of a shape that cr_shape_check took. */
static inline uint64_t cr_shape_answers(const cr_shape *shape) { return shape->outer * shape->inner; }
static inline uint64_t cr_shape_elements(const cr_shape *shape) { return shape->outer * shape->n * shape->inner; }

/* CR_OK when outer·n·inner elements, and outer·inner outputs, fit 2^62 bytes (checked by division). */
cr_status cr_shape_check(const cr_shape *shape, cr_dtype dtype, cr_error *error);
/* Like cr_finish_check, for array results: what each output holds must have a fixed size, and min, max and arg of n = 0 are
 * refused here (INVALID_ARGUMENT), before anything is sent. */
cr_status cr_axis_check(cr_op op, cr_dtype dtype, const cr_shape *shape, const cr_finish_opts *opts, cr_error *error);
/* The type of op's outputs: integer Σ-results are i64/u64, i128 on request. */
cr_dtype cr_axis_dtype(cr_op op, cr_dtype dtype, const cr_finish_opts *opts);
/* Finishes one output into out (cr_dtype_size(cr_axis_dtype(…)) bytes). Under nan: skip an all-NaN output is NaN, and its
 * index 2^64−1. OUT_OF_RANGE names the output's number. p's indices must be positions along the axis. */
cr_status cr_axis_store(const cr_partial *p, cr_op op, const cr_finish_opts *opts, uint64_t output, void *out,
                        cr_error *error);

/* The answers of one op that have no value. */
typedef struct cr_axis_missing {
    uint64_t count, first; /* the lowest number */
    cr_status status;      /* the first's */
} cr_axis_missing;

/* As cr_axis_store; but with status, an answer without a value is zeros, *status is why, and CR_OK is returned. */
cr_status cr_axis_store_or(const cr_partial *p, cr_op op, const cr_finish_opts *opts, uint64_t output, void *out,
                           uint8_t *status, cr_error *error);
/* Completes the status of count answers of op at values, over n elements each, those of first and on: extrema of only NaNs get theirs
 * here, because each kernel writes them as values. Adds those without a value to missing. */
void cr_axis_mark(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, uint64_t first, uint64_t count,
                  const void *values, uint8_t *status, cr_axis_missing *missing);
/* What is said of an op of which some answers, of so many over n elements each, have no value. some: who knows which elements count? */
cr_status cr_axis_say(const cr_axis_missing *missing, cr_op op, cr_dtype result, uint64_t n, bool masked,
                      uint64_t answers, cr_error *error);
/* Whether an answer over some elements may lack its value, other than extrema of only NaNs. */
bool cr_axis_may_lack(cr_op op, cr_dtype dtype, const cr_finish_opts *opts);
/* Whether it may be an extremum of only NaNs, which are skipped. */
bool cr_axis_may_be_none(cr_op op, cr_dtype dtype, const cr_finish_opts *opts);

#endif
