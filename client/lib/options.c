/* options: see options.h. Thread: any; nothing here holds state. */
#include "client/lib/options.h"

#include <string.h>

#include "kernels/core/op.h"
#include "proto/limits.h"

cr_status cr_cl_take_options(const cured_options *given, cured_options *o, cr_error *error) {
    static const cured_options defaults = CURED_OPTIONS_INIT;
    const size_t bytes = given == NULL ? 0 : given->struct_bytes < sizeof *o ? given->struct_bytes : sizeof *o;
    if (bytes < sizeof *o) *o = defaults;
    if (bytes != 0) memcpy(o, given, bytes);
    if (o->timeout_ms > CR_TIMEOUT_MAX_MS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "timeout_ms is %u, limit is %d", o->timeout_ms, CR_TIMEOUT_MAX_MS);
    if ((unsigned)o->nan > CURED_NAN_SKIP)
        return cr_fail(error, CR_INVALID_ARGUMENT, "nan policy is %u, must be 0 or 1", (unsigned)o->nan);
    if ((unsigned)o->overflow > CURED_OVERFLOW_WRAP)
        return cr_fail(error, CR_INVALID_ARGUMENT, "overflow rule is %u, must be 0 or 1", (unsigned)o->overflow);
    if (cr_quantile_method_name((uint32_t)o->method) == NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "method is %u, must be 0 to 4", (unsigned)o->method);
    if ((unsigned)o->result_dtype > CURED_F8_E5M2)
        return cr_fail(error, CR_INVALID_ARGUMENT, "result_dtype is %u, limit is %d", (unsigned)o->result_dtype,
                       CURED_F8_E5M2);
    if (o->first > INT64_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "first is %llu, must be below 2^63", (unsigned long long)o->first);
    if (o->kernel != NULL && strlen(o->kernel) > CR_NAME_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "kernel is a name of %zu bytes, limit is %d", strlen(o->kernel),
                       CR_NAME_MAX_BYTES);
    return CR_OK;
}

cr_status cr_cl_take_mask(const cured_mask *given, uint64_t elements, cr_mask *mask, cr_error *error) {
    *mask = (cr_mask){.kind = CR_MASK_NONE};
    if (given == NULL) return CR_OK;
    if (given->kind != CURED_MASK_BYTES && given->kind != CURED_MASK_BITS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: kind is %u, must be 1 (bytes) or 2 (bits)",
                       (unsigned)given->kind);
    if (given->data == NULL && given->count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: data is NULL with a count above 0");
    if (given->first > UINT64_MAX - given->count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: first and count add up to more than 2^64");
    if (elements != UINT64_MAX && given->count != elements)
        return cr_fail(error, CR_INVALID_ARGUMENT, "mask: it has %llu elements, the input %llu",
                       (unsigned long long)given->count, (unsigned long long)elements);
    *mask = (cr_mask){given->data, given->first, given->kind == CURED_MASK_BYTES ? CR_MASK_BYTES : CR_MASK_BITS,
                      given->leaves_out};
    return CR_OK;
}

cr_status cr_cl_check_second(const cured_second *given, cured_dtype dtype, uint64_t elements, cr_error *error) {
    if (given->data == NULL && given->count != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: data is NULL with a count above 0");
    if (given->dtype != dtype)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: it is of %s, the input of %s; convert one of them",
                       cr_dtype_name((cr_dtype)given->dtype), cr_dtype_name((cr_dtype)dtype));
    if (elements != UINT64_MAX && given->count != elements)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: it has %llu elements, the input %llu",
                       (unsigned long long)given->count, (unsigned long long)elements);
    return CR_OK;
}

cr_status cr_cl_take_items(const uint32_t *ops, size_t op_count, const cured_options *o, cr_quantile_item *items,
                           bool *any, cr_error *error) {
    static const cr_quantile_item middle = {0.5, CR_QUANTILE_LINEAR};
    bool taken = false;
    *any = false;
    for (size_t i = 0; i < op_count; i++) {
        items[i] = middle;
        *any |= cr_op_closing((cr_op)ops[i]) == CR_CLOSING_ORDER;
        if (!cr_op_takes_share((cr_op)ops[i])) continue;
        taken = true;
        items[i].method = (cr_quantile_method)o->method;
        if (o->parameters != NULL) items[i].share = o->parameters[i];
        if (cr_quantile_check(items[i].share, i, error) != CR_OK) return error->code;
    }
    if (taken || (o->parameters == NULL && o->method == CURED_METHOD_LINEAR)) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: none of the ops takes it",
                   o->parameters != NULL ? "parameters" : "method");
}

uint32_t cr_cl_ranked_items(const uint32_t *ops, size_t op_count, const cr_quantile_item *all, cr_quantile_item *items,
                            uint32_t *at) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < op_count; i++) {
        if (cr_op_closing((cr_op)ops[i]) != CR_CLOSING_ORDER) continue;
        items[count] = all[i];
        at[count++] = i;
    }
    return count;
}

cr_status cr_cl_check_ops(const cured_op *ops, size_t op_count, cr_error *error) {
    if (op_count < 1 || op_count > CURED_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "op_count is %zu, must be 1 to %d", op_count, CURED_MAX_OPS);
    if (ops == NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "ops is NULL with an op_count above 0");
    cr_ops seen = 0;
    for (size_t i = 0; i < op_count; i++) {
        unsigned op = (unsigned)ops[i];
        if (!cr_op_row_of(op)->name)
            return cr_fail(error, CR_INVALID_ARGUMENT, "ops[%zu] is %u, which is no op: see cured_op_list", i, op);
        if (cr_ops_has(seen, op) && !cr_op_takes_share((cr_op)op))
            return cr_fail(error, CR_INVALID_ARGUMENT, "ops names %s twice, limit is once", cr_op_name((cr_op)op));
        seen |= cr_ops_of(op);
    }
    return CR_OK;
}
