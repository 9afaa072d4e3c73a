/* axis: what a reduction along one axis means: the array is (outer, n, inner) in C order, and output (o, i) reduces the n
 * elements (o, k, i), k = 0 … n−1, by the same exact rules as a whole array (docs/NUMERICS.md, "Axis").
 *
 * Thread: any; nothing here holds state or allocates. */
#ifndef CURED_KERNELS_CORE_AXIS_H
#define CURED_KERNELS_CORE_AXIS_H

#include "kernels/core/partial.h"

typedef struct cr_shape {
    uint64_t outer, n, inner;
} cr_shape;

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

#endif
