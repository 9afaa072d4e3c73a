/* here: memory that is reduced before the function returns: no connection, no call, no clock. For arrays so small that a call costs
 * as much as its fold.
 *
 * Thread: any. Owner: the caller owns the values. */
#include <stdlib.h>

#include "client/lib/embedded/embedded.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/value.h"
#include "kernels/cpu/fold.h"

static cr_status check_options(const cured_options *o, cr_error *error) {
    if (o->axis != NULL || o->offsets != NULL || o->keys != NULL || o->partial || o->first != 0 || o->kernel != NULL ||
        o->outputs != NULL || o->layout != NULL || o->asked != NULL)
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "axis, offsets, keys, outputs, partial, first, layout, asked and kernel have no meaning here: start a call "
            "(cured_reduce_buffer)");
    return CR_OK;
}

static cr_status reduce(const cr_ask *ask, const cr_view *view, uint64_t count, const cr_quantile_item *items,
                        cured_values **out, cr_error *error) {
    cr_needs needs;
    uint64_t bits[CURED_MAX_OPS];
    cr_status status = cr_ask_ops(ask, &needs, error);
    if (status == CR_OK && items != NULL) status = cr_local_rank(ask, items, view, count, bits, error);
    if (status != CR_OK) return status;
    cured_values *values = cr_cl_values_new(ask->op_count);
    if (values == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    cr_partial partial;
    cr_partial_init(&partial, ask->dtype, needs.families);
    cr_partial_want(&partial, needs.wants);
    cr_cpu_fold_view(&partial, view, count, 0);
    for (uint32_t i = 0; i < ask->op_count; i++) {
        cr_value value;
        cr_local_value(ask, &partial, bits, i, &value);
        cr_cl_value_set(cr_cl_values_at(values, i), &value, partial.dtype);
    }
    *out = values;
    return CR_OK;
}

cured_status cured_reduce_here(cured_dtype dtype, const cured_op *ops, size_t op_count, const void *data,
                               uint64_t count, const cured_options *options, cured_values **values,
                               cured_error *error) {
    cr_error e;
    cured_options o;
    cr_view view = cr_view_plain(data);
    uint32_t numbers[CURED_MAX_OPS];
    cr_quantile_item items[CURED_MAX_OPS];
    bool ranked;
    e.code = CR_OK; /* the sentence is written only when something fails */
    *values = NULL;
    if (!cr_dtype_is_input((cr_dtype)dtype))
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
    if (count > PTRDIFF_MAX / cured_dtype_size(dtype))
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is %llu, limit is %zu elements of %s in memory",
                          (unsigned long long)count, PTRDIFF_MAX / cured_dtype_size(dtype), cured_dtype_name(dtype));
    if (data == NULL && count != 0) return cr_cl_fail(error, CR_INVALID_ARGUMENT, "data is NULL with a count above 0");
    if (cr_cl_take_options(options, &o, &e) != CR_OK || check_options(&o, &e) != CR_OK ||
        cr_cl_check_ops(ops, op_count, &e) != CR_OK || cr_cl_take_mask(o.mask, count, &view.mask, &e) != CR_OK ||
        (o.second != NULL && cr_cl_check_second(o.second, dtype, count, &e) != CR_OK) || cr_local_select(&e) != CR_OK)
        return cr_cl_give(error, &e, 0);
    if (o.second != NULL) view.second = o.second->data;
    for (size_t i = 0; i < op_count; i++) numbers[i] = (uint32_t)ops[i];
    if (cr_cl_take_items(numbers, op_count, &o, items, &ranked, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    const cr_ask ask = {.dtype = (cr_dtype)dtype,
                        .ops = numbers,
                        .op_count = (uint32_t)op_count,
                        .rereads = true,
                        .second = o.second != NULL,
                        .masked = view.mask.kind != CR_MASK_NONE,
                        .finish = {.nan = (cr_nan_policy)o.nan,
                                   .overflow = (cr_overflow)o.overflow,
                                   .result_dtype = (cr_dtype)o.result_dtype,
                                   .ddof = o.ddof}};
    reduce(&ask, &view, count, ranked ? items : NULL, values, &e);
    return cr_cl_give(error, &e, 0);
}
