/* partial: how a partial's bytes reach the program.
 *
 * Thread: any; nothing here holds state. Owner: the caller, of the memory. */
#ifndef CURED_CLIENT_LIB_PARTIAL_H
#define CURED_CLIENT_LIB_PARTIAL_H

#include "cured/cured.h"
#include "kernels/core/serial.h"

/* The share's bytes to out, which has room for *out_bytes; that becomes their number. INVALID_ARGUMENT where it is too small: out is not
 * touched then. */
cr_status cr_cl_give_share(const cr_share *share, void *out, size_t *out_bytes, cr_error *error);
/* INVALID_ARGUMENT where memory that a caller speaks of is NULL. */
cr_status cr_cl_check_partials(const cured_bytes *partials, size_t count, cr_error *error);
/* The numbers of the partials, in the order in which they are merged: by their places, because neighbours' ranges join. So parts that are one
 * array together merge, however many they are and however they come. NULL: no memory; the caller frees it. */
size_t *cr_cl_merge_order(const cured_bytes *partials, size_t count);
/* The families of ops that may be asked of partials without a position, and have a linear form. */
cr_status cr_cl_linear_families(cured_dtype dtype, const cured_op *ops, size_t op_count, uint32_t *families,
                                cr_error *error);

#endif
