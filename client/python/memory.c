/* memory: memory as a Python object that exports its buffer: the answers along an axis, and what cured.empty makes.
 *
 * Shared memory is a cured_array, which a daemon reads without a copy. All shared memory is listed, because an array is
 * recognised by its address: slices and views of it count too. Regions of it are kept until the memory goes.
 *
 * Thread: with the GIL. Owner: Python's references; an exported buffer holds one. */
#include "client/python/extension.h"

struct cr_py_memory {
    PyObject_HEAD char *data;
    size_t bytes;
    cured_dtype dtype;
    cured_array *array;            /* NULL: data is of PyMem_Calloc */
    cr_py_kept *regions, *outputs; /* to read, and to write */
    cr_py_memory *next;            /* of the shared ones */
    int ndim;
    Py_ssize_t shape[CR_PY_MAX_DIMS], strides[CR_PY_MAX_DIMS];
};

PyTypeObject *cr_py_memory_type;
static cr_py_memory *shared;
static PyObject *asarray; /* numpy.asarray; None: there is no NumPy */

static const char *format_of(cured_dtype dtype) {
    static const char *const formats[] = {NULL, "?", "B", "b", "H", "h", "I", "i", "L", "l", "e", NULL, "f", "d"};
    if (dtype == CURED_DIGEST) return "T{<Q:h1:<Q:h2:<Q:bytes:}";
    return dtype >= 1 && dtype <= CURED_F64 ? formats[dtype] : NULL;
}

static bool memory_fill(cr_py_memory *m, int ndim, const Py_ssize_t *shape, bool is_shared) {
    size_t bytes = cured_dtype_size(m->dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] != 0 && bytes > (size_t)PY_SSIZE_T_MAX / (size_t)shape[i]) {
            PyErr_NoMemory();
            return false;
        }
        bytes *= (size_t)shape[i];
        m->shape[i] = shape[i];
    }
    Py_ssize_t step = (Py_ssize_t)cured_dtype_size(m->dtype);
    for (int i = ndim - 1; i >= 0; i--) {
        m->strides[i] = step;
        step = cr_py_step(step, shape[i]);
    }
    m->ndim = ndim;
    m->bytes = bytes;
    if (is_shared && bytes != 0) {
        cured_error error;
        if (cured_array_alloc(m->dtype, bytes / cured_dtype_size(m->dtype), &m->array, &error) != CURED_OK) {
            cr_py_raise(&error);
            return false;
        }
        m->data = cured_array_data(m->array);
        m->next = shared;
        shared = m;
        return true;
    }
    m->data = PyMem_Calloc(1, bytes != 0 ? bytes : 1);
    if (m->data == NULL) PyErr_NoMemory();
    return m->data != NULL;
}

cr_py_memory *cr_py_memory_new(cured_dtype dtype, int ndim, const Py_ssize_t *shape, bool is_shared) {
    cr_py_memory *m = PyObject_New(cr_py_memory, cr_py_memory_type);
    if (m == NULL) return NULL;
    m->data = NULL;
    m->array = NULL;
    m->regions = m->outputs = NULL;
    m->dtype = dtype;
    if (!memory_fill(m, ndim, shape, is_shared)) {
        Py_DECREF(m);
        return NULL;
    }
    return m;
}

void *cr_py_memory_data(cr_py_memory *memory) { return memory->data; }

cr_py_memory *cr_py_memory_find(const void *data, uint64_t bytes, uint64_t *offset) {
    for (cr_py_memory *m = shared; m != NULL; m = m->next) {
        const char *from = data;
        if (from < m->data || from >= m->data + m->bytes) continue;
        *offset = (uint64_t)(from - m->data);
        return bytes <= m->bytes - *offset ? m : NULL;
    }
    return NULL;
}

typedef cured_status register_memory(cured_conn *conn, int fd, cured_region **region, cured_error *error);

static cured_region *region_of(cr_py_kept **list, const cr_py_memory *memory, cr_py_link *link, register_memory *make) {
    cured_error error;
    cured_region *region = cr_py_kept_find(*list, link);
    if (region != NULL) return region;
    if (make(link->conn, cured_array_fd(memory->array), &region, &error) != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    return cr_py_kept_add(list, link, region) ? region : NULL;
}

cured_region *cr_py_memory_region(cr_py_memory *memory, cr_py_link *link) {
    return region_of(&memory->regions, memory, link, cured_region_fd);
}

cured_region *cr_py_memory_output(cr_py_memory *memory, cr_py_link *link) {
    return region_of(&memory->outputs, memory, link, cured_region_fd_writable);
}

static void memory_dealloc(PyObject *self) {
    cr_py_memory *m = (cr_py_memory *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (m->array != NULL) {
        cr_py_memory **at = &shared;
        while (*at != m) at = &(*at)->next;
        *at = m->next;
        cr_py_kept_drop(&m->regions);
        cr_py_kept_drop(&m->outputs);
        cured_array_free(m->array);
    } else {
        PyMem_Free(m->data);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

/* C order is Fortran order too where at most one axis has more than one element. */
static bool is_fortran(const cr_py_memory *m) {
    int long_axes = 0;
    for (int i = 0; i < m->ndim; i++) long_axes += m->shape[i] > 1;
    return long_axes < 2 || m->bytes == 0;
}

static int memory_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    cr_py_memory *m = (cr_py_memory *)self;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran(m)) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the memory is in C order, and Fortran order was asked for");
        return -1;
    }
    view->obj = Py_NewRef(self);
    view->buf = m->data;
    view->len = (Py_ssize_t)m->bytes;
    view->itemsize = (Py_ssize_t)cured_dtype_size(m->dtype);
    view->readonly = 0;
    view->ndim = m->ndim;
    view->format = (flags & PyBUF_FORMAT) != 0 ? (char *)(uintptr_t)format_of(m->dtype) : NULL;
    view->shape = (flags & PyBUF_ND) != 0 ? m->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? m->strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

PyObject *cr_py_memory_array(cr_py_memory *memory) {
    if (asarray == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        asarray = numpy != NULL ? PyObject_GetAttrString(numpy, "asarray") : NULL;
        Py_XDECREF(numpy);
        if (asarray == NULL) {
            if (!PyErr_ExceptionMatches(PyExc_ImportError)) goto failed;
            PyErr_Clear();
            asarray = Py_NewRef(Py_None);
        }
    }
    PyObject *array = asarray == Py_None ? PyMemoryView_FromObject((PyObject *)memory)
                                         : PyObject_CallFunctionObjArgs(asarray, memory, NULL);
    Py_DECREF(memory);
    return array;
failed:
    Py_DECREF(memory);
    return NULL;
}

/* A shape from an integer or a sequence of them. */
static bool take_shape(PyObject *given, int *ndim, Py_ssize_t shape[CR_PY_MAX_DIMS]) {
    PyObject *items = PyIndex_Check(given) ? PyTuple_Pack(1, given) : PySequence_Tuple(given);
    if (items == NULL) return false;
    bool good = PyTuple_Size(items) <= CR_PY_MAX_DIMS;
    if (!good) PyErr_Format(PyExc_ValueError, "shape: more than %d axes", CR_PY_MAX_DIMS);
    *ndim = (int)PyTuple_Size(items);
    for (int i = 0; good && i < *ndim; i++) {
        shape[i] = PyNumber_AsSsize_t(PyTuple_GetItem(items, i), PyExc_OverflowError);
        if (shape[i] == -1 && PyErr_Occurred()) good = false;
        if (good && shape[i] < 0) {
            PyErr_SetString(PyExc_ValueError, "shape: an axis cannot have less than 0 elements");
            good = false;
        }
    }
    Py_DECREF(items);
    return good;
}

PyObject *cr_py_empty(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"shape", "dtype", NULL};
    PyObject *given_shape, *given_dtype = NULL;
    Py_ssize_t shape[CR_PY_MAX_DIMS];
    int ndim;
    cured_dtype dtype = CURED_F64;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:empty", names, &given_shape, &given_dtype)) return NULL;
    if (given_dtype != NULL && !cr_py_dtype(given_dtype, &dtype, NULL)) return NULL;
    if (!take_shape(given_shape, &ndim, shape)) return NULL;
    if (format_of(dtype) == NULL)
        return PyErr_Format(PyExc_TypeError, "dtype: no Python array holds %s", cured_dtype_name(dtype));
    cr_py_memory *m = cr_py_memory_new(dtype, ndim, shape, true);
    return m != NULL ? cr_py_memory_array(m) : NULL;
}

bool cr_py_memory_ready(PyObject *module) {
    static PyType_Slot slots[] = {{Py_tp_dealloc, memory_dealloc},
                                  {Py_bf_getbuffer, memory_getbuffer},
                                  {Py_tp_doc, "Memory that exports its buffer."},
                                  {0, NULL}};
    static PyType_Spec spec = {"cured.Memory", sizeof(cr_py_memory), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    cr_py_memory_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return cr_py_memory_type != NULL;
}
