/* ranks: medians and quantiles of device memory: the GPU counts, and the host says what is counted next (kernels/core/quantile.h).
 *
 * Thread: any. Owner: whoever asks. */
#include "client/lib/cuda/ask.h"
#include "client/lib/error.h"
#include "client/lib/options.h"

static const cr_caller_array *arrays_of(const cr_cl_cuda_ask *ask) {
    return (const cr_caller_array *)(const void *)ask->of->arrays;
}

cr_status cr_cl_cuda_ranks(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *found, cr_error *error) {
    cr_quantile_item all[CURED_MAX_OPS], items[CR_QUANTILE_ITEMS];
    uint32_t at[CR_QUANTILE_ITEMS];
    cured_options o;
    bool any;
    cr_quantile s;
    cr_status status = cr_cl_take_options(ask->of->options, &o, error);
    if (status == CR_OK) status = cr_cl_take_items(ask->numbers, ask->of->op_count, &o, all, &any, error);
    if (status != CR_OK) return status;
    const uint32_t count = cr_cl_ranked_items(ask->numbers, ask->of->op_count, all, items, at);
    cr_quantile_begin(&s, ask->dtype, items, count, ask->finish.nan == CR_NAN_SKIP);
    status = ask->api->search(&s, arrays_of(ask), ask->of->array_count, ask->of->stream, error);
    for (uint32_t i = 0; i < count && status == CR_OK; i++) {
        const cr_op op = ask->ops[at[i]];
        const cr_finish_opts own = cr_finish_share(op, ask->dtype, &ask->finish, NULL);
        found->bits[at[i]] = cr_quantile_finish(&s, i, cr_axis_dtype(op, ask->dtype, &own));
        found->has[at[i]] = true;
    }
    return status;
}

cured_status cured_cuda_count(const cured_cuda_ask *of, uint64_t *counts, size_t count, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    cured_options o;
    cr_quantile s;
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_COUNT, &e);
    if (status == CR_OK) status = cr_cl_take_options(of->options, &o, &e);
    if (status == CR_OK && (o.asked == NULL || of->op_count != 1 || !ask.ranked))
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "asked: it must be there, and goes with the op median alone");
    if (status == CR_OK) status = cr_quantile_unpack(&s, o.asked->data, o.asked->bytes, &e);
    if (status == CR_OK && s.dtype != ask.dtype)
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "asked: it counts elements of %s, the arrays are of %s",
                         cr_dtype_name(s.dtype), cr_dtype_name(ask.dtype));
    if (status == CR_OK && count != cr_quantile_words(&s))
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "counts: there is room for %zu, and %zu are asked", count,
                         cr_quantile_words(&s));
    if (status == CR_OK) ask.api->quantile(&s, arrays_of(&ask), of->array_count, of->stream, counts, &e);
    return cr_cl_give(error, &e, 0);
}
