/* cells: what goes by the kernels by key beside reductions by key: ops under a mask that no fold takes, and outputs along an axis under one.
 *
 * Thread: any. Owner: whoever asks. */
#include "client/lib/cuda/folds.h"
#include "kernels/core/axis.h"

cr_gpu_axis cr_cl_cuda_axis(const cr_cl_cuda_ask *ask, void *const *to) {
    return (cr_gpu_axis){.dtype = ask->dtype,
                         .shape = ask->shape,
                         .data = ask->of->arrays[0].data,
                         .second = ask->second,
                         .ops = ask->ops,
                         .op_count = (uint32_t)ask->of->op_count,
                         .finish = ask->finish,
                         .to = to};
}

cr_gpu_keys cr_cl_cuda_keys(const cr_cl_cuda_ask *ask, void *const *to) {
    cr_gpu_keys keys = {.axis = cr_cl_cuda_axis(ask, to), .keys = ask->keys, .by = ask->shape, .mask = ask->mask};
    keys.axis.shape = (cr_shape){1, ask->of->arrays[0].count, 1};
    if (!cr_cl_cuda_by_key(ask)) keys.keys = cr_keys_of_axis(&ask->shape);
    return keys;
}

const cr_partial *cr_cl_cuda_no_elements(const cr_cl_cuda_ask *ask, const cr_cl_cuda_beside *beside, size_t k,
                                         cr_partial *none) {
    cr_partial_init(none, ask->dtype, cr_op_needs(ask->ops[k], ask->dtype));
    none->n = beside->bits[k] != 0; /* NaNs alone */
    return none;
}

/* Whether the mask leaves no element. */
static bool is_empty(const cr_cl_cuda_ask *ask) {
    cr_cl_cuda_ask own = *ask;
    cr_cl_cuda_folds folds;
    cr_partial partial;
    cr_error ignored;
    own.needs = (cr_needs){CR_FAM_COUNTS, 0};
    return cr_cl_cuda_folds_start(&folds, &own, &ignored) == CR_OK &&
           cr_cl_cuda_folds_finish(&folds, &partial, &ignored) == CR_OK && partial.n == 0;
}

/* Whether the answer says that all elements were NaNs that were skipped. */
static bool is_none(const cr_cl_cuda_ask *ask, size_t k, const void *result) {
    const cr_finish_opts own = cr_finish_share(ask->ops[k], ask->dtype, &ask->finish, NULL);
    cr_axis_missing missing = {0};
    uint8_t status = 0;
    if (!cr_axis_may_be_none(ask->ops[k], ask->dtype, &own)) return false;
    cr_axis_mark(ask->ops[k], ask->dtype, &own, 0, 1, result, &status, &missing);
    return missing.count != 0;
}

/* All of them in one fold. Of no elements each is what no elements give. */
cr_status cr_cl_cuda_cells(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *found, cr_error *error) {
    cr_gpu_keys keys = cr_cl_cuda_keys(ask, NULL);
    cr_op ops[CURED_MAX_OPS];
    size_t at[CURED_MAX_OPS];
    void *results[CURED_MAX_OPS];
    uint32_t count = 0;
    cr_error why;
    for (size_t k = 0; k < ask->of->op_count; k++) {
        if (!cr_cl_cuda_by_cells(ask, k)) continue;
        ops[count] = ask->ops[k];
        results[count] = &found->bits[k];
        at[count++] = k;
    }
    keys.axis.ops = ops;
    keys.axis.op_count = count;
    const cr_status status = ask->api->keys(&keys, ask->of->stream, results, NULL, &why);
    if (status == CR_INVALID_ARGUMENT && is_empty(ask)) return CR_OK;
    if (status != CR_OK) {
        *error = why;
        return status;
    }
    for (uint32_t i = 0; i < count; i++) found->has[at[i]] = !is_none(ask, at[i], results[i]);
    return CR_OK;
}
