/* linears: linear forms in device memory, written and finished in the stream's order: for cured/_linear.py.
 *
 * Nothing here waits for the GPU. Where vectors and arrays belong to several streams, each stream waits for the other, as for out=.
 * Thread: with the GIL, but while work is enqueued. Owner: the caller, of all tensors. */
#include "client/python/tensor.h"
#include "kernels/core/axis.h"

enum { VECTORS = 2 }; /* sums, maxima */

static PyObject *failed(const cured_error *error) {
    cr_py_raise(error);
    return NULL;
}

/* A vector of int64 on a GPU with so many numbers; None: none, where `count` is 0. False with an exception. */
static bool take_vector(cr_py_input *in, PyObject *tensor, const char *name, size_t count) {
    if (tensor == Py_None && count == 0) return true;
    if (tensor == Py_None) {
        PyErr_Format(PyExc_TypeError, "%s: a CUDA tensor of %zu int64 is wanted, because an op is an extremum", name,
                     count);
        return false;
    }
    if (!cr_py_input_take(in, tensor)) {
        cr_py_input_refused(name);
        return false;
    }
    const bool good = in->kind == CR_PY_CUDA && in->dtype == CURED_I64 && in->ndim == 1 && !in->is_masked &&
                      cr_py_input_in_c_order(in) && (size_t)in->shape[0] == count;
    if (!good)
        PyErr_Format(PyExc_TypeError, "%s: a contiguous CUDA tensor of int64 with one axis of %zu is wanted", name,
                     count);
    return good;
}

/* Of both vectors. */
static cured_status order_all(const cr_py_input *in, size_t count, uintptr_t stream, bool behind, cured_error *error) {
    cured_status status = CURED_OK;
    for (size_t i = 0; i < count && status == CURED_OK; i++)
        status = cr_py_cuda_order(&in[i], stream, in[i].data, behind, error);
    return status;
}

/* ---- Written ---- */

static PyObject *write_form(const cr_py_tensor_list *list, const cr_py_request *r, cured_dtype as, PyObject *sums,
                            PyObject *maxima) {
    static const cured_options defaults = CURED_OPTIONS_INIT;
    cr_py_input to[VECTORS] = {{.kind = CR_PY_HOST}, {.kind = CR_PY_HOST}};
    size_t adds = 0, compares = 0;
    cured_error error;
    if (as == CURED_DTYPE_DEFAULT) as = list->arrays[0].dtype;
    if (cured_linear_size(as, r->ops, r->op_count, &adds, &compares, &error) != CURED_OK) return failed(&error);
    PyObject *done = NULL;
    if (take_vector(&to[0], sums, "out", adds) && take_vector(&to[1], maxima, "maxima", compares)) {
        const cured_cuda_ask ask = cr_py_cuda_ask_of_list(list, r, &defaults);
        PyThreadState *thread = PyEval_SaveThread();
        cured_status status = order_all(to, VECTORS, list->stream, false, &error);
        if (status == CURED_OK)
            status = cured_cuda_linear(&ask, as, (int64_t *)(uintptr_t)to[0].data, (int64_t *)(uintptr_t)to[1].data,
                                       &error); /* NOLINT: vectors are written */
        if (status == CURED_OK) status = order_all(to, VECTORS, list->stream, true, &error);
        PyEval_RestoreThread(thread);
        done = status == CURED_OK ? Py_NewRef(Py_True) : failed(&error);
    }
    for (size_t i = 0; i < VECTORS; i++) cr_py_input_release(&to[i]);
    return done;
}

/* _cuda_linear(list, ops, dtype or None, sums, maxima): True; None: the tensors are of several streams. */
PyObject *cr_py_cuda_linear(PyObject *module, PyObject *args) {
    PyObject *tensors, *ops, *type, *sums, *maxima;
    cr_py_request r = {.partial = true};
    cr_py_tensor_list list;
    cured_dtype as = CURED_DTYPE_DEFAULT;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OOOO", &PyList_Type, &tensors, &ops, &type, &sums, &maxima)) return NULL;
    if (type != Py_None && !cr_py_dtype(type, &as, NULL)) return NULL;
    if (!cr_py_request_ops(&r, ops) || !cr_py_cuda_take_list(&list, tensors, &r)) return NULL;
    PyObject *done = list.mixed ? Py_NewRef(Py_None) : write_form(&list, &r, as, sums, maxima);
    cr_py_cuda_end_list(&list);
    return done;
}

/* ---- Finished ---- */

static bool is_one(const cr_py_input *in) {
    Py_ssize_t count = 1;
    for (int i = 0; i < in->ndim; i++) count = in->shape[i] == 1 ? count : 0;
    return count == 1;
}

/* The answer to op number k, of the type that `out` has. */
static bool finish_one(const cr_py_request *r, size_t k, cured_dtype dtype, const cr_py_input *sums, PyObject *out) {
    cr_py_input to = {.kind = CR_PY_HOST};
    void *places[CURED_MAX_OPS] = {NULL};
    cured_options options = r->options;
    cured_error error;
    bool good = cr_py_input_take(&to, out);
    if (!good) cr_py_input_refused("out");
    if (good && (to.kind != CR_PY_CUDA || to.is_masked || !is_one(&to))) {
        PyErr_Format(PyExc_TypeError, "out: a CUDA tensor of one element is wanted for op %s",
                     cured_op_name(r->ops[k]));
        good = false;
    }
    if (good) {
        options.result_dtype = to.dtype;
        const cr_finish_opts opts = {(cr_nan_policy)options.nan, CR_OVERFLOW_ERROR, (cr_dtype)to.dtype, options.ddof};
        const cr_finish_opts own = cr_finish_share((cr_op)r->ops[k], (cr_dtype)dtype, &opts, NULL);
        const cr_dtype gives = cr_axis_dtype((cr_op)r->ops[k], (cr_dtype)dtype, &own);
        if (gives != (cr_dtype)to.dtype) {
            PyErr_Format(PyExc_TypeError, "out: op %s of %s gives %s, the tensor is of %s", cured_op_name(r->ops[k]),
                         cured_dtype_name(dtype), cured_dtype_name((cured_dtype)gives), cured_dtype_name(to.dtype));
            good = false;
        }
    }
    if (good) {
        places[k] = (void *)(uintptr_t)to.data; /* NOLINT: out is written */
        PyThreadState *thread = PyEval_SaveThread();
        cured_status status = cr_py_cuda_order(&to, sums->stream, sums->data, false, &error);
        if (status == CURED_OK)
            status =
                cured_cuda_from_linear(dtype, r->ops, r->op_count, &options, (const int64_t *)(const void *)sums->data,
                                       places, NULL, cr_py_stream_of(sums->stream), &error);
        if (status == CURED_OK) status = cr_py_cuda_order(&to, sums->stream, sums->data, true, &error);
        PyEval_RestoreThread(thread);
        good = status == CURED_OK;
        if (!good) cr_py_raise(&error);
    }
    cr_py_input_release(&to);
    return good;
}

/* _cuda_from_linear(sums, dtype, ops, outs, skip, ddof): outs: a tuple with a tensor, or None, for each op. */
PyObject *cr_py_cuda_from_linear(PyObject *module, PyObject *args) {
    static const cured_options defaults = CURED_OPTIONS_INIT;
    PyObject *vector, *type, *ops, *outs;
    cr_py_request r = {.partial = true};
    cr_py_input sums = {.kind = CR_PY_HOST};
    unsigned long long ddof;
    size_t adds = 0, compares = 0;
    cured_dtype dtype;
    cured_error error;
    int skip;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!pK", &vector, &type, &ops, &PyTuple_Type, &outs, &skip, &ddof)) return NULL;
    if (!cr_py_dtype(type, &dtype, NULL) || !cr_py_request_ops(&r, ops)) return NULL;
    if (PyTuple_Size(outs) != (Py_ssize_t)r.op_count)
        return PyErr_Format(PyExc_ValueError, "out: %zd tensors, there are %zu ops", PyTuple_Size(outs), r.op_count);
    if (cured_linear_size(dtype, r.ops, r.op_count, &adds, &compares, &error) != CURED_OK) return failed(&error);
    r.options = defaults;
    r.options.nan = skip ? CURED_NAN_SKIP : CURED_NAN_PROPAGATE;
    r.options.ddof = ddof;
    bool good = take_vector(&sums, vector, "array", adds);
    for (size_t k = 0; k < r.op_count && good; k++) {
        PyObject *out = PyTuple_GetItem(outs, (Py_ssize_t)k);
        if (out != Py_None) good = finish_one(&r, k, dtype, &sums, out);
    }
    cr_py_input_release(&sums);
    return good ? Py_NewRef(Py_None) : NULL;
}
