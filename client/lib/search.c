/* search: medians and quantiles of an array in parts, by the counts of reads that calls make of the parts (kernels/core/quantile.h).
 *
 * Thread: one at a time. Owner: the caller, as cured.h says. */
#include <stdlib.h>

#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/value.h"
#include "kernels/core/ask.h"

struct cured_search {
    cr_quantile state;
    cr_op ops[CURED_MAX_OPS];
    cr_dtype result;
    size_t asked_bytes; /* 0: it is over */
    uint8_t asked[CR_QUANTILE_ASKED_BYTES];
};

static cr_status begin(cured_search *s, cr_dtype dtype, const cured_op *ops, size_t op_count, const cured_options *o,
                       cr_error *error) {
    uint32_t numbers[CURED_MAX_OPS];
    cr_quantile_item items[CURED_MAX_OPS];
    cr_needs needs;
    bool ranked;
    cr_status status = cr_cl_check_ops(ops, op_count, error);
    for (size_t i = 0; i < op_count && status == CR_OK; i++) {
        s->ops[i] = (cr_op)(numbers[i] = (uint32_t)ops[i]);
        if (cr_op_closing(s->ops[i]) != CR_CLOSING_ORDER)
            status = cr_fail(error, CR_INVALID_ARGUMENT, "ops: op %s is not searched for: ask for its partial",
                             cr_op_name(s->ops[i]));
    }
    if (status == CR_OK) status = cr_cl_take_items(numbers, op_count, o, items, &ranked, error);
    const cr_ask ask = {.dtype = dtype,
                        .ops = numbers,
                        .op_count = (uint32_t)op_count,
                        .rereads = true,
                        .finish = {.nan = (cr_nan_policy)o->nan,
                                   .overflow = (cr_overflow)o->overflow,
                                   .result_dtype = (cr_dtype)o->result_dtype,
                                   .ddof = o->ddof}};
    if (status == CR_OK) status = cr_ask_ops(&ask, &needs, error);
    if (status != CR_OK) return status;
    s->result = ask.finish.result_dtype != CR_DTYPE_NONE ? ask.finish.result_dtype : CR_F64;
    cr_quantile_begin(&s->state, dtype, items, (uint32_t)op_count, o->nan == CURED_NAN_SKIP);
    s->asked_bytes = cr_quantile_pack(&s->state, s->asked);
    return CR_OK;
}

cured_status cured_search_begin(cured_dtype dtype, const cured_op *ops, size_t op_count, const cured_options *options,
                                cured_search **search, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *search = NULL;
    if (!cr_dtype_is_input((cr_dtype)dtype))
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)dtype);
    if (cr_cl_take_options(options, &o, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    cured_search *s = calloc(1, sizeof *s);
    if (s == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a search");
    if (begin(s, (cr_dtype)dtype, ops, op_count, &o, &e) == CR_OK)
        *search = s;
    else
        free(s);
    return cr_cl_give(error, &e, 0);
}

cured_bytes cured_search_asked(const cured_search *s, size_t *count) {
    *count = s->asked_bytes != 0 ? cr_quantile_words(&s->state) : 0;
    return (cured_bytes){s->asked_bytes != 0 ? s->asked : NULL, s->asked_bytes};
}

cured_status cured_search_next(cured_search *s, const uint64_t *counts, size_t count, cured_error *error) {
    cr_error e = {CR_OK, ""};
    size_t wanted;
    cured_search_asked(s, &wanted);
    if (count != wanted || wanted == 0)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "counts: %zu numbers, must be %zu", count, wanted);
    s->asked_bytes = cr_quantile_next(&s->state, counts) ? cr_quantile_pack(&s->state, s->asked) : 0;
    return cr_cl_give(error, &e, 0);
}

cured_status cured_search_values(const cured_search *s, cured_values **values, cured_error *error) {
    cr_error e = {CR_OK, ""};
    *values = NULL;
    if (s->asked_bytes != 0)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "search: it is not over: count what it asks");
    *values = cr_cl_values_new(s->state.count);
    if (*values == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the values");
    for (uint32_t i = 0; i < s->state.count; i++) {
        cr_value value;
        cr_quantile_value(s->ops[i], s->result, cr_quantile_finish(&s->state, i, s->result), &value);
        cr_cl_value_set(cr_cl_values_at(*values, i), &value, (uint8_t)s->state.dtype);
    }
    return cr_cl_give(error, &e, 0);
}

void cured_search_free(cured_search *s) { free(s); }
