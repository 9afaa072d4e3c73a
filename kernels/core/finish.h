/* finish: what the finishing files share. Private to kernels/core.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_FINISH_H
#define CURED_KERNELS_CORE_FINISH_H

#include "kernels/core/big.h"
#include "kernels/core/partial.h"

/* A value of `len` bytes taken from bits. */
void cr_value_bits(cr_value *v, cr_dtype dtype, uint64_t bits);
/* An exact integer in type dtype (CR_DTYPE_NONE: i64 for signed inputs and u64 for the others, CR_BIGINT where that is
 * too narrow). OUT_OF_RANGE, with the decimal value, when it does not fit. */
void cr_value_integer(cr_value *v, cr_dtype dtype, bool signed_input, bool negative, cr_big *magnitude);

/* One per group of ops; opts are checked and p has the families. */
void cr_finish_sums(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
void cr_finish_extrema(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
void cr_finish_bits(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
void cr_finish_prod(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
void cr_finish_digest(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
/* Of no elements only: a partial has no order. */
void cr_finish_order(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);
void cr_finish_counts(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v);

#endif
