/* by_key: answers from partials by key: an array for each op, as the reduction by key of all rows answers; and those of CUDA tensors.
 *
 * Thread: with the GIL, except while cells are finished or a GPU is waited for. Owner: new references. */
#include <stdio.h>

#include "client/python/tensor.h"
#include "cured/by_key.h"
#include "kernels/core/keyed.h"

/* Notes which ops lack answers, as a call does. */
static void note_lacking(cr_py_request *r, const cured_by_key *of, const uint8_t *statuses, uint64_t answers) {
    const cr_keyed keyed = {(cr_dtype)of->dtype, 0, of->groups, of->columns, of->cells};
    for (size_t k = 0; k < r->op_count; k++, statuses += answers) {
        cr_error why;
        if (cr_keyed_say(&keyed, of->count, (cr_op)r->ops[k], (cr_dtype)r->options.result_dtype, statuses, &why) ==
            CR_OK)
            continue;
        cured_error error = {.code = (cured_status)why.code};
        snprintf(error.text, sizeof error.text, "%s", why.text);
        cr_py_raise(&error);
        r->lacking[k] = cr_py_answer_take_error();
    }
}

static bool finish(cr_py_request *r, const void *data, size_t bytes, const cured_by_key *of) {
    const uint64_t answers = of->groups * of->columns;
    uint8_t *statuses = PyMem_Calloc(r->op_count, answers != 0 ? (size_t)answers : 1), *each[CURED_MAX_OPS];
    cured_error error;
    if (statuses == NULL) return PyErr_NoMemory(), false;
    for (size_t k = 0; k < r->op_count; k++) each[k] = statuses + k * answers;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status =
        cured_by_key_finish(data, bytes, r->ops, r->op_count, &r->options, r->pointers, each, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK)
        cr_py_raise(&error);
    else
        note_lacking(r, of, statuses, answers);
    PyMem_Free(statuses);
    return status == CURED_OK;
}

PyObject *cr_py_by_key_finish(cr_py_request *r, const void *data, size_t bytes, const cured_by_key *of) {
    r->keys = Py_None; /* the shape of the answers is that of groups */
    r->by_key.groups = of->groups;
    r->input.dtype = of->dtype;
    r->input.ndim = of->columns == 1 ? 1 : 2;
    r->input.shape[1] = (Py_ssize_t)of->columns;
    r->plan.permuted = false;
    PyObject *answer = cr_py_answer_room(r) && finish(r, data, bytes, of) ? cr_py_answer_arrays(r) : NULL;
    for (size_t k = 0; r->has_results && k < r->op_count; k++) {
        Py_CLEAR(r->results[k]);
        Py_CLEAR(r->lacking[k]);
    }
    return answer;
}

PyObject *cr_py_cuda_partial_by_key(const cured_cuda_ask *ask) {
    cured_error error;
    void *bytes;
    size_t length;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_partial_by_key(ask, &bytes, &length, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    PyObject *partial = cr_py_partial_new(bytes, length);
    cured_by_key_free(bytes);
    return partial;
}
