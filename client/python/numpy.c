/* numpy: arrays whose type is numpy.ndarray itself, read by their fields. The buffer protocol says the same, but NumPy writes a
 * format and a shape anew for each buffer, which is a fifth of the time that a small array takes.
 *
 * The fields are those that NumPy's own headers publish (PyArrayObject_fields and PyArray_Descr in ndarraytypes.h): every
 * extension that is compiled against NumPy reads them, and they lie where they lie from 1.7 to 2.x. Before the first array is
 * read so, sample arrays of every type are held against their buffers; where one differs, NumPy's arrays go by their buffers.
 *
 * Thread: with the GIL. Owner: an input holds a reference to its array; the type is kept for ever. */
#include <string.h>

#include "client/python/extension.h"

typedef struct numpy_descr {
    PyObject_HEAD PyTypeObject *scalar;
    char kind, code, order, unused;
    int number;
} numpy_descr;

typedef struct numpy_array {
    PyObject_HEAD char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    const numpy_descr *descr;
} numpy_array;

enum { HALF = 23 /* NPY_HALF */ };

/* By NumPy's numbers of types, from NPY_BOOL on; the others are 0. */
static const cured_dtype types[] = {CURED_BOOL,
                                    CURED_I8,
                                    CURED_U8,
                                    CURED_I16,
                                    CURED_U16,
                                    CURED_I32,
                                    CURED_U32,
                                    sizeof(long) == 8 ? CURED_I64 : CURED_I32,
                                    sizeof(long) == 8 ? CURED_U64 : CURED_U32,
                                    CURED_I64,
                                    CURED_U64,
                                    CURED_F32,
                                    CURED_F64,
                                    [HALF] = CURED_F16};

static PyTypeObject *ndarray; /* NULL: it is not known, or its fields are not as they should be */

/* False: of a type that is none of ours, or with too many axes. */
static bool read_fields(cr_py_input *in, PyObject *object) {
    const numpy_array *a = (const numpy_array *)object;
    const unsigned number = (unsigned)a->descr->number;
    if (number >= sizeof types / sizeof types[0] || types[number] == CURED_DTYPE_DEFAULT) return false;
    if (a->ndim < 0 || a->ndim > CR_PY_MAX_DIMS) return false;
    in->kind = CR_PY_HOST;
    in->dtype = types[number];
    in->size = (uint8_t)cured_dtype_size(in->dtype);
    in->swap = a->descr->order == '>' && in->size > 1;
    in->ndim = a->ndim;
    in->data = a->data;
    for (int i = 0; i < a->ndim; i++) {
        in->shape[i] = a->shape[i];
        in->strides[i] = a->strides[i];
    }
    return true;
}

bool cr_py_numpy_take(cr_py_input *in, PyObject *array) {
    if (Py_TYPE(array) != ndarray || !read_fields(in, array)) return false;
    in->held = Py_NewRef(array);
    return true;
}

/* Whether an array's fields say what its buffer says. */
static bool agrees(PyObject *array) {
    cr_py_input fields, buffer;
    memset(&buffer, 0, sizeof buffer);
    if (!read_fields(&fields, array) || cr_py_input_buffer(&buffer, array) != 1) {
        cr_py_input_release(&buffer);
        return false;
    }
    bool same = fields.dtype == buffer.dtype && fields.size == buffer.size && fields.swap == buffer.swap &&
                fields.data == buffer.data && fields.ndim == buffer.ndim;
    for (int i = 0; i < fields.ndim && same; i++)
        same = fields.shape[i] == buffer.shape[i] && fields.strides[i] == buffer.strides[i];
    cr_py_input_release(&buffer);
    return same;
}

bool cr_py_numpy_known(void) { return ndarray != NULL; }

void cr_py_numpy_learn(PyTypeObject *type) {
    if (ndarray != NULL) return;
    PyObject *samples = cr_py_helper("cured._adapt", "samples", (PyObject *)type);
    const Py_ssize_t count = samples != NULL ? PyList_Size(samples) : 0;
    bool good = count > 0;
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *array = PyList_GetItem(samples, i); /* borrowed */
        good = Py_TYPE(array) == type && agrees(array);
    }
    Py_XDECREF(samples);
    PyErr_Clear();
    if (good) ndarray = (PyTypeObject *)Py_NewRef((PyObject *)type);
}
