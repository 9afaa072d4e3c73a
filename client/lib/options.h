/* options: what a program asks for, as this library knows it, checked before anything is made of it.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_CLIENT_LIB_OPTIONS_H
#define CURED_CLIENT_LIB_OPTIONS_H

#include "cured/cured.h"
#include "kernels/core/view.h"
#include "proto/status.h"

/* *o: the options given, of whatever version of this library; NULL: the defaults. */
cr_status cr_cl_take_options(const cured_options *given, cured_options *o, cr_error *error);
/* Each is an op, and none is named twice. */
/* The mask as folds know it, of `elements` elements (UINT64_MAX: not known yet); NULL: of all, none. */
cr_status cr_cl_take_mask(const cured_mask *given, uint64_t elements, cr_mask *mask, cr_error *error);
cr_status cr_cl_check_ops(const cured_op *ops, size_t op_count, cr_error *error);

#endif
