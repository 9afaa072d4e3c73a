/* linear: partials as vectors of int64 that add up in an Allreduce: Partial.linear, Partial.linear_max and cured.from_linear.
 *
 * Thread: with the GIL. Owner: new references. */
#include "client/python/extension.h"

PyObject *cr_py_linear(PyObject *bytes, bool maxima) {
    cured_error error;
    const void *data = PyBytes_AsString(bytes);
    const size_t size = (size_t)PyBytes_Size(bytes);
    size_t adds = 0, compares = 0;
    cured_status status = cured_partial_linear(data, size, NULL, &adds, NULL, &compares, &error);
    const Py_ssize_t count = (Py_ssize_t)(maxima ? compares : adds);
    cr_py_memory *memory = status == CURED_OK ? cr_py_memory_new(CURED_I64, 1, &count, false) : NULL;
    if (status == CURED_OK && memory == NULL) return NULL;
    if (status == CURED_OK) {
        int64_t *to = cr_py_memory_data(memory);
        status = cured_partial_linear(data, size, maxima ? NULL : to, &adds, maxima ? to : NULL, &compares, &error);
    }
    if (status == CURED_OK) return cr_py_memory_array(memory);
    Py_XDECREF((PyObject *)memory);
    cr_py_raise(&error);
    return NULL;
}

/* The numbers of a vector; NULL: none was given. False with an exception. */
static bool take_vector(cr_py_input *in, PyObject *array, const char *name, const int64_t **numbers, size_t *count) {
    *numbers = NULL;
    *count = 0;
    if (array == NULL || array == Py_None) return true;
    if (!cr_py_input_take(in, array)) return false;
    const bool good = in->kind == CR_PY_HOST && in->dtype == CURED_I64 && !in->swap && in->ndim == 1 &&
                      (in->strides[0] == (Py_ssize_t)sizeof **numbers || in->shape[0] < 2) &&
                      (uintptr_t)in->data % sizeof **numbers == 0;
    if (good) {
        *numbers = (const int64_t *)(const void *)in->data;
        *count = (size_t)in->shape[0];
    } else {
        PyErr_Format(PyExc_TypeError, "%s: a contiguous array of int64 with one axis is wanted", name);
    }
    return good;
}

static PyObject *read_vectors(const cr_py_request *r, cured_dtype dtype, PyObject *sums, PyObject *maxima) {
    cr_py_input adds = {.ndim = 0}, compares = {.ndim = 0};
    const int64_t *added, *compared;
    size_t added_count, compared_count, bytes = CURED_PARTIAL_BYTES;
    cured_error error;
    PyObject *partial = NULL;
    uint8_t *out = PyMem_Malloc(CURED_PARTIAL_BYTES);
    if (out == NULL) return PyErr_NoMemory();
    if (take_vector(&adds, sums, "array", &added, &added_count) &&
        take_vector(&compares, maxima, "maxima", &compared, &compared_count)) {
        if (cured_linear_partial(dtype, r->ops, r->op_count, added, added_count, compared, compared_count, out, &bytes,
                                 &error) == CURED_OK)
            partial = cr_py_partial_new(out, bytes);
        else
            cr_py_raise(&error);
    }
    cr_py_input_release(&adds);
    cr_py_input_release(&compares);
    PyMem_Free(out);
    return partial;
}

PyObject *cr_py_from_linear(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"", "dtype", "ops", "maxima", NULL};
    PyObject *sums, *type, *ops, *maxima = NULL, *partial = NULL;
    cr_py_request r = {.single = false};
    cured_dtype dtype;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|O:from_linear", names, &sums, &type, &ops, &maxima))
        return NULL;
    if (!cr_py_enter()) return NULL;
    if (cr_py_dtype(type, &dtype, NULL) && cr_py_request_ops(&r, ops)) partial = read_vectors(&r, dtype, sums, maxima);
    cr_py_leave();
    return partial;
}
