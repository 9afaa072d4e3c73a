/* options: what a program asks for, as this library knows it, checked before anything is made of it.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_CLIENT_LIB_OPTIONS_H
#define CURED_CLIENT_LIB_OPTIONS_H

#include "cured/cured.h"
#include "kernels/core/quantile.h"
#include "kernels/core/view.h"
#include "proto/status.h"

/* *o: the options given, of whatever version of this library; NULL: the defaults. */
cr_status cr_cl_take_options(const cured_options *given, cured_options *o, cr_error *error);
/* The mask as folds know it, of `elements` elements (UINT64_MAX: not known yet); NULL: of all, none. */
cr_status cr_cl_take_mask(const cured_mask *given, uint64_t elements, cr_mask *mask, cr_error *error);
/* Checks the second array, of `elements` elements (UINT64_MAX: not known yet) of dtype. */
cr_status cr_cl_check_second(const cured_second *given, cured_dtype dtype, uint64_t elements, cr_error *error);
/* What each op by rank asks, by its place among the ops; *any: one does. */
cr_status cr_cl_take_items(const uint32_t *ops, size_t op_count, const cured_options *o, cr_quantile_item *items,
                           bool *any, cr_error *error);
/* Of all ops' items those of ops by rank, which stand at `at` among all; how many. */
uint32_t cr_cl_ranked_items(const uint32_t *ops, size_t op_count, const cr_quantile_item *all, cr_quantile_item *items,
                            uint32_t *at);
/* Each is an op, and none is named twice, but those that take a parameter. */
cr_status cr_cl_check_ops(const cured_op *ops, size_t op_count, cr_error *error);

#endif
