/* file: cured.file, an array in a file: .npy, or raw elements of a type that is named. It is read where it is reduced: by the
 * daemon from the descriptor, or in this process where nobody listens.
 *
 * Thread: with the GIL. Owner: a File owns its descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/npy.h"
#include "client/python/extension.h"

typedef struct cr_py_file {
    PyObject_HEAD int fd;
    npy_header header;
} cr_py_file;

PyTypeObject *cr_py_file_type;

void cr_py_file_input(PyObject *file, cr_py_input *in) {
    const cr_py_file *f = (const cr_py_file *)file;
    const npy_header *h = &f->header;
    in->kind = CR_PY_FILE;
    in->dtype = h->dtype;
    in->size = (uint8_t)cured_dtype_size(h->dtype);
    in->swap = false;
    in->fd = f->fd;
    in->offset = h->data_offset;
    in->data = NULL;
    in->ndim = (int)h->dims;
    Py_ssize_t step = in->size;
    for (uint32_t i = 0; i < h->dims; i++) {
        uint32_t k = h->fortran_order ? i : h->dims - 1 - i;
        in->shape[k] = (Py_ssize_t)h->shape[k];
        in->strides[k] = step;
        step = cr_py_step(step, in->shape[k]);
    }
}

/* The header of a .npy file. */
static bool read_header(cr_py_file *f) {
    cured_error error;
    uint8_t *text = PyMem_Malloc(NPY_MAX_HEADER);
    size_t need = NPY_MAGIC_BYTES, have = 0;
    cured_status status = CURED_OK;
    if (text == NULL) return PyErr_NoMemory() != NULL;
    do {
        ssize_t got = pread(f->fd, text + have, NPY_MAX_HEADER - have, (off_t)have);
        if (got <= 0 && (got == 0 || errno != EINTR)) break;
        if (got > 0) have += (size_t)got;
        status = npy_parse(text, have, &f->header, &need, &error);
    } while (status == CURED_OK && need > have && have < NPY_MAX_HEADER);
    PyMem_Free(text);
    if (status != CURED_OK)
        cr_py_raise(&error);
    else if (need > have)
        PyErr_SetString(PyExc_ValueError, "the file ends before its .npy header does; raw elements want dtype=");
    if (f->header.dtype == CURED_DTYPE_DEFAULT) f->header.dtype = CURED_BF16; /* as NumPy writes it */
    return !PyErr_Occurred();
}

/* Raw elements from a byte on to the end, in one axis. */
static bool take_raw(cr_py_file *f, PyObject *dtype, uint64_t offset, uint64_t size) {
    npy_header *h = &f->header;
    if (!cr_py_dtype(dtype, &h->dtype)) return false;
    size_t width = cured_dtype_size(h->dtype);
    if (h->dtype > CURED_F64 || offset > size || (size - offset) % width != 0) {
        PyErr_Format(PyExc_ValueError, "file: %llu bytes from offset %llu on are no whole elements of %s",
                     (unsigned long long)(offset <= size ? size - offset : 0), (unsigned long long)offset,
                     cured_dtype_name(h->dtype));
        return false;
    }
    h->data_offset = offset;
    h->dims = 1;
    h->count = h->shape[0] = (size - offset) / width;
    return true;
}

static bool check_size(const cr_py_file *f, uint64_t size) {
    const npy_header *h = &f->header;
    uint64_t bytes = h->count * cured_dtype_size(h->dtype);
    if (h->data_offset <= size && bytes <= size - h->data_offset) return true;
    PyErr_Format(PyExc_ValueError, "file: it has %llu bytes, its header and shape want %llu", (unsigned long long)size,
                 (unsigned long long)(h->data_offset + bytes));
    return false;
}

static bool open_file(cr_py_file *f, PyObject *path) {
    struct stat s;
    PyObject *name;
    if (!PyUnicode_FSConverter(path, &name)) return false;
    f->fd = open(PyBytes_AsString(name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    Py_DECREF(name);
    if (f->fd < 0 || fstat(f->fd, &s) != 0) {
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        return false;
    }
    if (!S_ISREG(s.st_mode)) PyErr_Format(PyExc_ValueError, "file: %R is no regular file", path);
    return S_ISREG(s.st_mode);
}

PyObject *cr_py_file_open(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"path", "dtype", "offset", NULL};
    PyObject *path, *dtype = Py_None, *from = NULL;
    uint64_t offset = 0;
    struct stat s;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$O:file", names, &path, &dtype, &from)) return NULL;
    if (from != NULL && !cr_py_number(from, "offset", &offset)) return NULL;
    cr_py_file *f = PyObject_New(cr_py_file, cr_py_file_type);
    if (f == NULL) return NULL;
    f->fd = -1;
    memset(&f->header, 0, sizeof f->header);
    bool good = open_file(f, path);
    if (good && fstat(f->fd, &s) != 0) good = PyErr_SetFromErrno(PyExc_OSError) != NULL;
    if (good && dtype != Py_None)
        good = take_raw(f, dtype, offset, (uint64_t)s.st_size);
    else if (good)
        good = read_header(f) && check_size(f, (uint64_t)s.st_size);
    if (good) return (PyObject *)f;
    Py_DECREF(f);
    return NULL;
}

static void file_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    cr_py_file *f = (cr_py_file *)self;
    if (f->fd >= 0) close(f->fd);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *file_dtype(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(cured_dtype_name(((cr_py_file *)self)->header.dtype));
}

static PyObject *file_shape(PyObject *self, void *unused) {
    const npy_header *h = &((cr_py_file *)self)->header;
    PyObject *list = PyList_New(h->dims), *shape = NULL;
    (void)unused;
    bool good = list != NULL;
    for (uint32_t i = 0; i < h->dims && good; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(h->shape[i]);
        good = n != NULL && PyList_SetItem(list, i, n) == 0;
    }
    if (good) shape = PyList_AsTuple(list);
    Py_XDECREF(list);
    return shape;
}

bool cr_py_file_ready(PyObject *module) {
    static PyMethodDef own[] = {{NULL, NULL, 0, NULL}};
    static PyGetSetDef properties[] = {{"dtype", file_dtype, NULL, "The elements' type.", NULL},
                                       {"shape", file_shape, NULL, "The array's shape.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyMethodDef *methods = cr_py_ops_methods(own);
    if (methods == NULL) return false;
    PyType_Slot slots[] = {{Py_tp_dealloc, file_dealloc},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, properties},
                           {Py_tp_doc, "An array in a file, reduced where it lies."},
                           {0, NULL}};
    PyType_Spec spec = {"cured.File", sizeof(cr_py_file), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    cr_py_file_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return cr_py_file_type != NULL && PyModule_AddType(module, cr_py_file_type) == 0;
}
