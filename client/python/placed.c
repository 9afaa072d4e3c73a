/* placed: answers of CUDA tensors that go to tensors (out=): whether they may, in which order of streams, and whether all have values, which
 * a tensor cannot say. Where that is not known before, a word of status is waited for, and the answers stay on the GPU all the same.
 *
 * Thread: with the GIL, but for the waits. Owner: the request holds its tensors. */
#include <string.h>

#include "client/python/tensor.h"
#include "cured/cuda.h"
#include "kernels/core/axis.h"

bool cr_py_cuda_may_lack(const cr_py_request *r) {
    const cr_finish_opts opts = cr_py_finish_of(r);
    const bool may_be_empty = r->input.is_masked || r->keys != NULL || r->offsets != NULL;
    for (size_t i = 0; i < r->op_count; i++)
        if ((may_be_empty && cr_op_empty((cr_op)r->ops[i]) == CR_EMPTY_NONE) ||
            cr_axis_may_lack((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &opts) ||
            cr_axis_may_be_none((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &opts))
            return true;
    return false;
}

/* Whether a producer may free what the call reads when the call has returned. */
static bool reads_what_is_lent(const cr_py_request *r) {
    return r->input.is_lent || (r->has_keys && r->of_keys.is_lent) || (r->pair != NULL && r->pair->is_lent) ||
           (r->borders != NULL && r->borders->is_lent);
}

bool cr_py_cuda_may_place(const cr_py_request *r) {
    const cr_finish_opts opts = cr_py_finish_of(r);
    if (cr_py_order_asked(r)) return false; /* no kernel finishes by rank */
    if (reads_what_is_lent(r)) return false;
    if (r->plan.whole && r->offsets == NULL && r->keys == NULL)
        return !cr_py_cuda_may_lack(r);      /* one answer comes by the host */
    for (size_t i = 0; i < r->op_count; i++) /* a range of infinities is a NaN, as one of only NaNs */
        if (cr_op_term((cr_op)r->ops[i]) == CR_TERM_RANGE &&
            cr_axis_may_be_none((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &opts))
            return false;
    return true;
}

/* Another thread's call may hold the stream's workspace while it waits. */
cured_status cr_py_cuda_enqueue(const cured_cuda_ask *ask, void *const *to, bool waits, cured_error *error) {
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = waits ? cured_cuda_reduce_to(ask, to, error) : cured_cuda_enqueue(ask, to, NULL, error);
    PyEval_RestoreThread(thread);
    return status;
}

cured_status cr_py_cuda_order(const cr_py_input *in, uintptr_t stream, const void *data, bool behind,
                              cured_error *error) {
    void *const own = cr_py_stream_of(in->stream), *const main = cr_py_stream_of(stream);
    if (in->kind != CR_PY_CUDA || in->data == NULL || own == main) return CURED_OK;
    return behind ? cured_cuda_order(data, main, own, error) : cured_cuda_order(in->data, own, main, error);
}

/* Of outs, before the answers are written and behind them. */
static cured_status order(const cr_py_request *r, bool behind, cured_error *error) {
    cured_status status = CURED_OK;
    for (size_t i = 0; i < r->op_count && status == CURED_OK; i++)
        status = cr_py_cuda_order(&r->out_tensors[i], r->input.stream, r->plan.data, behind, error);
    return status;
}

cured_status cr_py_cuda_order_read(const cr_py_request *r, bool behind, cured_error *error) {
    const cr_py_input *const read[] = {r->borders, r->pair, r->has_keys ? &r->of_keys : NULL};
    cured_status status = CURED_OK;
    for (size_t i = 0; i < sizeof read / sizeof read[0] && status == CURED_OK; i++)
        if (read[i] != NULL) status = cr_py_cuda_order(read[i], r->input.stream, read[i]->data, behind, error);
    return status;
}

/* Whether some answers in the op's tensor are of only NaNs, which were skipped: such an element is a NaN, such an index 2^64 − 1, and no
 * other answer is. Waits. */
static cured_status look_for_none(const cr_py_request *r, size_t i, bool *some, cured_error *error) {
    const bool index = cr_py_answer_is_index(r->ops[i]);
    const cr_py_input *out = &r->out_tensors[i];
    /* A tensor of i64 has the same bits. */
    cured_cuda_array array = {out->data, 1, index ? CURED_U64 : out->dtype};
    for (int k = 0; k < out->ndim; k++) array.count *= (uint64_t)out->shape[k];
    *some = false;
    if (array.count == 0) return CURED_OK;
    cured_values *values = cr_py_cuda_one(&array, index ? CR_TERM_GREATEST : CR_TERM_NANS, r->input.stream, error);
    uint64_t most = 0;
    if (values == NULL) return error->code;
    const cured_status status = cured_value_uint64(cured_values_get(values, 0), &most);
    if (status != CURED_OK) *error = (cured_error){CURED_INTERNAL, 0, "out: a count of NaNs is no integer"};
    cured_values_free(values);
    *some = index ? most == UINT64_MAX : most != 0;
    return status;
}

/* Whether all answers in tensors have values, as far as their status does not tell. */
static cured_status look_at_all(const cr_py_request *r, bool *lacking, cured_error *error) {
    const cr_finish_opts opts = cr_py_finish_of(r);
    cured_status status = CURED_OK;
    *lacking = false;
    for (size_t i = 0; i < r->op_count && status == CURED_OK && !*lacking; i++)
        if (cr_axis_may_be_none((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &opts))
            status = look_for_none(r, i, lacking, error);
    return status;
}

bool cr_py_cuda_is_lacking(const cr_py_request *r, const cured_error *error) {
    if (error->code != CURED_INVALID_ARGUMENT) return error->code == CURED_OUT_OF_RANGE;
    if (r->offsets == NULL && r->keys == NULL && r->op_count > 1 && r->plan.axis.n == 0) return true;
    return strncmp(error->text, "output ", 7) == 0;
}

PyObject *cr_py_cuda_to_tensors(cr_py_request *r, const cured_cuda_ask *ask, bool *lacking) {
    void *to[CURED_MAX_OPS];
    cured_error error, late;
    const bool waits = lacking != NULL;
    for (size_t i = 0; i < r->op_count; i++) to[i] = (void *)r->out_tensors[i].data; /* NOLINT: out is written */
    if (order(r, false, &error) != CURED_OK) return cr_py_raise(&error), NULL;
    cured_status status = cr_py_cuda_enqueue(ask, to, waits, &error);
    if (waits && status == CURED_OK) status = look_at_all(r, lacking, &error);
    if (waits && status != CURED_OK) *lacking = status == CURED_UNIMPLEMENTED || cr_py_cuda_is_lacking(r, &error);
    if (status == CURED_OK || waits) { /* what has failed may be in the stream, too */
        const bool ordered = order(r, true, &late) == CURED_OK && cr_py_cuda_order_read(r, true, &late) == CURED_OK;
        if (!ordered && status == CURED_OK) error = late;
        if (!ordered && status == CURED_OK) status = late.code;
    }
    if (waits && *lacking) return NULL;
    if (status != CURED_OK) return cr_py_raise(&error), NULL;
    if (r->single) return cr_py_out_item(r, 0);
    PyObject *values[CURED_MAX_OPS];
    for (size_t i = 0; i < r->op_count; i++) values[i] = cr_py_out_item(r, i);
    return cr_py_answer_result(r, values);
}
