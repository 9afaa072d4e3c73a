/* stats: the answers for each of many CUDA tensors, for cured/torch.py: a partial becomes answers while the GPU is at the next ones, and
 * answers become Python's objects when all are there.
 *
 * Thread: with the GIL, but for the wait and what is made during it. Owner: the call. */
#include <stdlib.h>

#include "client/python/tensor.h"
#include "kernels/core/dtype.h"

typedef struct stats {
    const cr_py_request *request;
    const cr_py_tensor_list *list;
    cured_values **values; /* of each tensor; NULL: error says why */
    cured_error error;     /* the first */
} stats;

/* Without the GIL. What NaNs do is said of floats alone. */
static void found(void *user, size_t number, const void *partial, size_t bytes) {
    stats *s = user;
    cured_error error;
    cured_options options = s->request->options;
    options.unplaced = false;
    if (cr_dtype_kind((cr_dtype)s->list->arrays[number].dtype) != CR_KIND_FLOAT) options.nan = CURED_NAN_PROPAGATE;
    const cured_status status = cured_partial_finish(partial, bytes, s->request->ops, s->request->op_count, &options,
                                                     &s->values[number], &error);
    if (status != CURED_OK && s->error.code == CURED_OK) s->error = error;
}

static PyObject *run(stats *s) {
    cured_error error;
    cured_options options = s->request->options; /* the partial's: what becomes of it is said when it is finished */
    options.nan = CURED_NAN_PROPAGATE;
    options.ddof = 0;
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(s->list, s->request, &options);
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_partial_each(&ask, found, s, &error);
    PyEval_RestoreThread(thread);
    if (status == CURED_OK && s->error.code == CURED_OK) {
        cured_values **values = s->values;
        s->values = NULL;
        return cr_py_results_new(s->request, values, s->list->count);
    }
    cr_py_raise(status == CURED_OK ? &s->error : &error);
    return NULL;
}

/* _cuda_stats(list, ops, nan=, ddof=): a Result for each; None where their streams differ. */
PyObject *cr_py_cuda_stats(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    cr_py_request r = {.partial = true};
    cr_py_tensor_list list;
    PyObject *answer = NULL;
    (void)module;
    if (nargs != 2 || !PyList_Check(args[0])) return PyErr_Format(PyExc_TypeError, "a list and the ops are wanted");
    if (!cr_py_request_ops(&r, args[1]) || !cr_py_request_options(&r, args + 2, 0, kwnames)) return NULL;
    r.options.unplaced = true;
    if (!cr_py_cuda_take_list(&list, args[0], &r)) return NULL;
    stats s = {&r, &list, calloc(list.count, sizeof *s.values), {.code = CURED_OK}};
    if (list.mixed)
        answer = Py_NewRef(Py_None);
    else
        answer = s.values != NULL ? run(&s) : PyErr_NoMemory();
    for (size_t i = 0; i < list.count && s.values != NULL; i++) cured_values_free(s.values[i]);
    free(s.values);
    cr_py_cuda_end_list(&list);
    return answer;
}
