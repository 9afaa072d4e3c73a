/* linear: linear forms that are written and finished in device memory (cured/cuda.h), by the code of kernels/cuda/axis/linear.h.
 *
 * Thread: any; nothing here holds state. Owner: the program, of every buffer. */
#include "kernels/core/linear.h"
#include "client/lib/cuda/ask.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/partial.h"

static cr_status check_vector(const char *name, const int64_t *vector, cr_error *error) {
    if (vector == NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "%s is NULL", name);
    if ((uintptr_t)vector % sizeof *vector == 0) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %p is no multiple of 8", name, (const void *)vector);
}

cured_status cured_cuda_linear(const cured_cuda_ask *of, cured_dtype as, int64_t *sums, int64_t *maxima,
                               cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_cl_cuda_ask ask;
    uint32_t families = 0;
    cr_status status = cr_cl_cuda_take(&ask, of, CR_CUDA_LINEAR, &e);
    if (status == CR_OK) status = cr_cl_linear_families((cured_dtype)ask.dtype, of->ops, of->op_count, &families, &e);
    if (status == CR_OK && as != CURED_DTYPE_DEFAULT && !cr_dtype_is_input((cr_dtype)as))
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "as: dtype is %u, an array's is " CR_CL_INPUTS, (unsigned)as);
    if (status == CR_OK) status = check_vector("sums", sums, &e);
    if (status == CR_OK && families & CR_FAM_EXTREMA) status = check_vector("maxima", maxima, &e);
    if (status == CR_OK) {
        const cr_linear_to to = {as == CURED_DTYPE_DEFAULT ? ask.dtype : (cr_dtype)as, sums, maxima};
        const cr_caller_fold fold = {.dtype = ask.dtype,
                                     .families = families,
                                     .arrays = (const cr_caller_array *)(const void *)of->arrays,
                                     .count = of->array_count,
                                     .stream = of->stream};
        ask.api->linear(&fold, &to, &e);
    }
    return cr_cl_give(error, &e, 0);
}

/* The answers that are wanted, as one row of some elements: how many there are is in the vector. */
static cr_status take_answers(cr_gpu_axis *axis, cr_op *ops, void **to, const cured_op *given, size_t op_count,
                              void *const *places, cr_error *error) {
    cr_status status = CR_OK;
    axis->op_count = 0;
    for (size_t k = 0; k < op_count && status == CR_OK; k++) {
        const cr_op op = (cr_op)given[k];
        if (places[k] == NULL) continue;
        const cr_finish_opts own = cr_finish_share(op, axis->dtype, &axis->finish, NULL);
        status = cr_axis_check(op, axis->dtype, &axis->shape, &own, error);
        const size_t bytes = status == CR_OK ? cr_dtype_size(cr_axis_dtype(op, axis->dtype, &own)) : 1;
        if (status == CR_OK && (uintptr_t)places[k] % bytes != 0)
            status = cr_fail(error, CR_INVALID_ARGUMENT, "to[%zu]: %p is no multiple of %zu", k, places[k], bytes);
        ops[axis->op_count] = op;
        to[axis->op_count++] = places[k];
    }
    return status;
}

cured_status cured_cuda_from_linear(cured_dtype dtype, const cured_op *ops, size_t op_count,
                                    const cured_options *options, const int64_t *sums, void *const *to, void *state,
                                    void *stream, cured_error *error) {
    cr_error e = {CR_OK, ""};
    cr_op own[CURED_MAX_OPS];
    void *places[CURED_MAX_OPS];
    cured_options o;
    uint32_t families = 0;
    cr_gpu_axis axis = {.dtype = (cr_dtype)dtype, .shape = {1, 1, 1}, .ops = own, .to = places};
    cr_status status = cr_cl_linear_families(dtype, ops, op_count, &families, &e);
    if (status == CR_OK) status = cr_cl_take_options(options, &o, &e);
    if (status == CR_OK) status = check_vector("sums", sums, &e);
    if (status == CR_OK && (uintptr_t)state % sizeof(uint64_t) != 0)
        status = cr_fail(&e, CR_INVALID_ARGUMENT, "status: %p is no multiple of 8", state);
    if (status == CR_OK) {
        axis.finish = (cr_finish_opts){(cr_nan_policy)o.nan, (cr_overflow)o.overflow, (cr_dtype)o.result_dtype, o.ddof};
        status = take_answers(&axis, own, places, ops, op_count, to, &e);
    }
    const cr_caller_api *api = status == CR_OK ? cr_cl_cuda(&e) : NULL;
    if (api != NULL && axis.op_count != 0) api->from_linear(&axis, families, sums, stream, state, &e);
    return cr_cl_give(error, &e, 0);
}
