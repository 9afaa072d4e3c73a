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
    if (cr_py_wants_order(r)) return false; /* no kernel finishes by rank */
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

/* The answers in the op's tensor. One of i64 has the bits of u64. */
static cured_cuda_array array_of(const cr_py_request *r, size_t i) {
    const cr_py_input *out = &r->out_tensors[i];
    cured_cuda_array array = {out->data, 1, cr_py_answer_is_index(r->ops[i]) ? CURED_U64 : out->dtype};
    for (int k = 0; k < out->ndim; k++) array.count *= (uint64_t)out->shape[k];
    return array;
}

cured_status cr_py_cuda_look_for_none(const cr_py_request *r, size_t i, bool *some, cured_error *error) {
    const bool index = cr_py_answer_is_index(r->ops[i]);
    const cured_cuda_array array = array_of(r, i);
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

/* As extrema of one element each. */
cured_status cr_py_cuda_fetch(const cr_py_request *r, size_t i, void *values, cured_error *error) {
    const cured_cuda_array array = array_of(r, i);
    const cured_op op = (cured_op)cr_op_of_term(CR_TERM_GREATEST);
    const cured_axis each = {array.count, 1, 1};
    cured_options options = CURED_OPTIONS_INIT;
    options.axis = &each;
    const cured_cuda_ask ask = {sizeof ask, &array, 1, &op, 1, &options, cr_py_stream_of(r->input.stream)};
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_reduce_axis(&ask, &values, error);
    PyEval_RestoreThread(thread);
    return status;
}

bool cr_py_cuda_is_lacking(const cr_py_request *r, const cured_error *error) {
    if (error->code != CURED_INVALID_ARGUMENT) return error->code == CURED_OUT_OF_RANGE;
    if (r->offsets == NULL && r->keys == NULL && r->op_count > 1 && r->plan.axis.n == 0) return true;
    return strncmp(error->text, "output ", 7) == 0;
}

cured_status cr_py_cuda_to_tensors(const cr_py_request *r, const cured_cuda_ask *ask, size_t first, bool waits,
                                   cured_error *error) {
    void *to[CURED_MAX_OPS];
    cured_error late;
    for (size_t i = 0; i < ask->op_count; i++)
        to[i] = (void *)r->out_tensors[first + i].data; /* NOLINT: out is written */
    cured_status status = order(r, false, error);
    if (status != CURED_OK) return status;
    status = cr_py_cuda_enqueue(ask, to, waits, error);
    if (status != CURED_OK && !waits) return status;
    /* What has failed may be in the stream, too. */
    const bool ordered = order(r, true, &late) == CURED_OK && cr_py_cuda_order_read(r, true, &late) == CURED_OK;
    if (ordered || status != CURED_OK) return status;
    *error = late;
    return late.code;
}
