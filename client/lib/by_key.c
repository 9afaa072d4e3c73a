/* by_key: partials by key in this process: checked, merged and finished. Calls make them (embedded/work.c).
 *
 * Thread: any; nothing here holds state. Owner: the caller, as by_key.h says. */
#include "cured/by_key.h"

#include <stdlib.h>
#include <string.h>

#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/partial.h"
#include "kernels/core/ask.h"
#include "kernels/core/keyed.h"

cured_status cured_by_key_check(const void *partial, size_t bytes, cured_by_key *of, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_keyed found;
    uint64_t n;
    if (cr_cl_check_partials(&(cured_bytes){partial, bytes}, 1, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    if (cr_keyed_check(partial, bytes, &found, &n, &e) == CR_OK && of != NULL)
        *of = (cured_by_key){(cured_dtype)found.dtype, found.groups, found.columns, n, found.cells};
    return cr_cl_give(error, &e, 0);
}

cured_status cured_by_key_merge(const cured_bytes *partials, size_t count, void **merged, size_t *bytes,
                                cured_error *error) {
    static const char prefix[] = "partial: ";
    cr_error e = {CR_OK, ""};
    uint8_t *out;
    uint64_t length = 0;
    size_t which = 0;
    *merged = NULL;
    *bytes = 0;
    if (count == 0) return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is 0, must be at least 1");
    if (cr_cl_check_partials(partials, count, &e) != CR_OK) return cr_cl_give(error, &e, 0);
    cr_keyed_bytes *parts = count < SIZE_MAX / sizeof *parts ? malloc(count * sizeof *parts) : NULL;
    if (parts == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    for (size_t i = 0; i < count; i++) parts[i] = (cr_keyed_bytes){partials[i].data, partials[i].bytes};
    const cr_status status = cr_keyed_merge(parts, count, &out, &length, &which, &e);
    free(parts);
    if (status == CR_INVALID_ARGUMENT || status == CR_UNIMPLEMENTED) {
        const char *text = strncmp(e.text, prefix, sizeof prefix - 1) == 0 ? e.text + sizeof prefix - 1 : e.text;
        return cr_cl_fail(error, status, "partials[%zu]: %.200s", which, text);
    }
    *merged = out;
    *bytes = (size_t)length;
    return cr_cl_give(error, &e, 0);
}

void cured_by_key_free(void *merged) { free(merged); }

/* As a call by key does. */
static cr_status check_ops(const cr_keyed *of, const uint32_t *ops, uint32_t op_count, const cr_finish_opts *opts,
                           cr_error *error) {
    cr_needs needs;
    const cr_ask ask = {.dtype = of->dtype,
                        .ops = ops,
                        .op_count = op_count,
                        .geometry = CR_GEOMETRY_KEYS,
                        .statuses = true,
                        .partial = true,
                        .folded = true,
                        .finish = *opts};
    cr_status status = cr_ask_ops(&ask, &needs, error);
    for (uint32_t i = 0; i < op_count && status == CR_OK; i++) {
        const cr_finish_opts own = cr_finish_share((cr_op)ops[i], of->dtype, opts, NULL);
        const cr_dtype result = cr_axis_dtype((cr_op)ops[i], of->dtype, &own);
        if (cr_dtype_size(result) == 0)
            status = cr_fail(error, CR_INVALID_ARGUMENT, "result_dtype: %s has no fixed size, as answers by key need",
                             cr_dtype_name(result));
    }
    return status;
}

cured_status cured_by_key_finish(const void *partial, size_t bytes, const cured_op *ops, size_t op_count,
                                 const cured_options *options, void *const results[], uint8_t *const statuses[],
                                 cured_error *error) {
    uint32_t numbers[CURED_MAX_OPS];
    cr_error e = {CR_OK, ""};
    cured_options o;
    cr_keyed_reader r;
    if (cr_cl_take_options(options, &o, &e) != CR_OK || cr_cl_check_ops(ops, op_count, &e) != CR_OK ||
        cr_cl_check_partials(&(cured_bytes){partial, bytes}, 1, &e) != CR_OK ||
        cr_keyed_open(&r, partial, bytes, &e) != CR_OK)
        return cr_cl_give(error, &e, 0);
    const bool any = r.of.groups != 0;
    for (size_t i = 0; i < op_count; i++) {
        numbers[i] = (uint32_t)ops[i];
        if (!any) continue;
        if (results == NULL || results[i] == NULL || (statuses != NULL && statuses[i] == NULL))
            return cr_cl_fail(error, CR_INVALID_ARGUMENT, "results and statuses: the place of ops[%zu] is NULL", i);
    }
    const cr_finish_opts opts = {.nan = (cr_nan_policy)o.nan,
                                 .overflow = (cr_overflow)o.overflow,
                                 .result_dtype = (cr_dtype)o.result_dtype,
                                 .ddof = o.ddof};
    if (check_ops(&r.of, numbers, (uint32_t)op_count, &opts, &e) == CR_OK)
        cr_keyed_finish(partial, bytes, numbers, (uint32_t)op_count, &opts, results, statuses, &e);
    return cr_cl_give(error, &e, 0);
}
