/* file: cured.file, an array in a file: .npy, a member of a .npz, or raw elements of a type that is named. It is read where it is
 * reduced: by the daemon from the descriptor, or in this process where nobody listens, and where source.c must read it.
 *
 * Thread: with the GIL. Owner: a File owns its descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/format.h"
#include "client/cli/npy.h"
#include "client/cli/unpack.h"
#include "client/python/extension.h"
#include "kernels/core/dtype.h"

typedef struct cr_py_file {
    PyObject_HEAD int fd;
    uint64_t from, size; /* the part of the file that counts, unpacked */
    npy_header header;   /* its offset is of the whole file, as if nothing were packed */
    npz_member member;   /* if deflated */
    bool packed;
} cr_py_file;

PyTypeObject *cr_py_file_type;

void cr_py_file_input(PyObject *file, cr_py_input *in) {
    const cr_py_file *f = (const cr_py_file *)file;
    const npy_header *h = &f->header;
    in->kind = CR_PY_FILE;
    in->dtype = h->dtype;
    in->size = (uint8_t)cured_dtype_size(h->dtype);
    in->swap = false;
    in->file = (cr_py_file_part){.fd = f->fd,
                                 .big = h->big_endian,
                                 .fortran = h->fortran_order,
                                 .offset = h->data_offset,
                                 .packed = f->packed ? &f->member : NULL,
                                 .shape = h->shape};
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

/* More bytes of the beginning; *n is 0 at the end. */
static cured_status read_more(const cr_py_file *f, unpacker *u, uint8_t *out, size_t have, size_t most, size_t *n,
                              cured_error *error) {
    ssize_t got;
    if (u != NULL) return unpack_next(u, out, most, n, error);
    do got = pread(f->fd, out, most, (off_t)(f->from + have));
    while (got < 0 && errno == EINTR);
    *n = got > 0 ? (size_t)got : 0;
    return got >= 0 ? CURED_OK : npy_fail(error, CURED_DATA_LOSS, "file: it cannot be read: %s", strerror(errno));
}

/* The header of a .npy file. */
static cured_status parse_header(cr_py_file *f, unpacker *u, uint8_t *text, cured_error *error) {
    const size_t most = f->size < NPY_MAX_HEADER ? (size_t)f->size : NPY_MAX_HEADER;
    size_t need = NPY_MAGIC_BYTES, have = 0, n = 1;
    while (need > have && n != 0) {
        /* Of deflated bytes one more is asked for: there is none, unless the directory lies. */
        const size_t room = have < most ? most - have : u != NULL;
        cured_status status = read_more(f, u, text + have, have, room, &n, error);
        have += n;
        if (status == CURED_OK) status = npy_parse(text, have, &f->header, &need, error);
        if (status != CURED_OK) return status;
    }
    if (need > have)
        return npy_fail(error, CURED_INVALID_ARGUMENT,
                        "the file ends before its .npy header does; raw elements want dtype=");
    /* Of an array without elements nothing more will be read. */
    return u != NULL && f->header.count == 0 ? unpack_next(u, text, 1, &n, error) : CURED_OK;
}

/* An archive whose member is not named: says what it holds, as no NOT_FOUND of a file. */
static bool is_archive(const cr_py_file *f, const uint8_t *text, cured_error *error) {
    npz_member m;
    return !f->packed && f->size >= 4 && memcmp(text, "PK\3\4", 4) == 0 &&
           npz_find(f->fd, f->size, NULL, &m, error) == CURED_NOT_FOUND;
}

static bool read_header(cr_py_file *f) {
    cured_error error;
    uint8_t *text = PyMem_Malloc(NPY_MAX_HEADER);
    unpacker *u = f->packed ? unpack_begin(f->fd, &f->member) : NULL;
    const bool ready = text != NULL && (u != NULL || !f->packed);
    if (!ready)
        PyErr_NoMemory();
    else if (parse_header(f, u, text, &error) != CURED_OK) {
        if (is_archive(f, text, &error)) error.code = CURED_INVALID_ARGUMENT;
        cr_py_raise(&error);
    }
    PyMem_Free(text);
    unpack_end(u);
    if (f->header.dtype == CURED_DTYPE_DEFAULT) { /* as NumPy writes them */
        f->header.dtype = f->header.size == 2 ? CURED_BF16 : CURED_F8_E4M3;
    }
    f->header.data_offset += f->from;
    return !PyErr_Occurred();
}

/* Raw elements from a byte on to the end, in one axis. */
static bool take_raw(cr_py_file *f, PyObject *dtype, uint64_t offset) {
    npy_header *h = &f->header;
    const uint64_t size = f->size;
    if (!cr_py_dtype(dtype, &h->dtype, &h->big_endian)) return false;
    size_t width = cured_dtype_size(h->dtype);
    char byte;
    const ssize_t holds = size == 0 ? pread(f->fd, &byte, 1, 0) : 0;
    if (size == (uint64_t)sysconf(_SC_PAGESIZE) && pread(f->fd, &byte, 1, (off_t)size - 1) == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "file: it has fewer bytes than its size says, as in /sys: read them into memory");
        return false;
    }
    if (holds < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return false;
    }
    if (holds > 0) {
        PyErr_SetString(PyExc_ValueError, "file: its size is said to be 0, but it holds bytes: read them into memory");
        return false;
    }
    if (!cr_dtype_is_input((cr_dtype)h->dtype) || offset > size || (size - offset) % width != 0) {
        PyErr_Format(PyExc_ValueError, "file: %llu bytes from offset %llu on are no whole elements of %s",
                     (unsigned long long)(offset <= size ? size - offset : 0), (unsigned long long)offset,
                     cured_dtype_name(h->dtype));
        return false;
    }
    h->data_offset = f->from + offset;
    h->dims = 1;
    h->count = h->shape[0] = (size - offset) / width;
    return true;
}

static bool check_size(const cr_py_file *f) {
    const npy_header *h = &f->header;
    const uint64_t bytes = h->count * cured_dtype_size(h->dtype), head = h->data_offset - f->from;
    if (head <= f->size && bytes == f->size - head) return true;
    PyErr_Format(PyExc_ValueError, "file: it has %llu bytes, its header and shape want %llu",
                 (unsigned long long)f->size, (unsigned long long)(head + bytes));
    return false;
}

/* The member of the archive that is open. */
static bool take_member(cr_py_file *f, const char *name) {
    cured_error error;
    npz_member m;
    if (npz_find(f->fd, f->size, name, &m, &error) != CURED_OK) {
        if (error.code == CURED_NOT_FOUND)
            PyErr_SetString(PyExc_FileNotFoundError, error.text);
        else
            cr_py_raise_as_it_is(&error);
        return false;
    }
    f->from = m.offset;
    f->size = m.bytes;
    f->packed = m.deflated;
    f->member = m;
    return true;
}

/* Opens the file, or the archive of "a.npz:x" where no file has that name. */
static bool open_file(cr_py_file *f, PyObject *path) {
    struct stat s;
    PyObject *name;
    if (!PyUnicode_FSConverter(path, &name)) return false;
    char *text = PyBytes_AsString(name);
    const char *member = npz_member_name(text);
    f->fd = open(text, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool archive = f->fd < 0 && npz_may_be(errno) && member != NULL;
    if (archive) {
        PyObject *whole = PyBytes_FromStringAndSize(text, member - 1 - text);
        f->fd = whole != NULL ? open(PyBytes_AsString(whole), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        Py_XDECREF(whole);
    }
    bool good = !PyErr_Occurred();
    if (good && (f->fd < 0 || fstat(f->fd, &s) != 0)) {
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
        good = false;
    }
    if (good && !S_ISREG(s.st_mode)) {
        PyErr_Format(PyExc_ValueError, "file: %R is no regular file", path);
        good = false;
    }
    if (good) f->size = (uint64_t)s.st_size;
    good = good && (!archive || take_member(f, member));
    Py_DECREF(name);
    return good;
}

/* Numbers written out are no raw elements, whatever dtype says. A name in .bin says that the bytes are meant. */
static bool check_numbers(const cr_py_file *f, PyObject *path) {
    uint8_t head[NUMBERS_BYTES];
    PyObject *name;
    if (!PyUnicode_FSConverter(path, &name)) return false;
    const bool binary = format_ends_with(PyBytes_AsString(name), ".bin");
    const size_t most = f->size < sizeof head ? (size_t)f->size : sizeof head;
    const ssize_t n = binary ? 0 : pread(f->fd, head, most, (off_t)f->from);
    Py_DECREF(name);
    if (n <= 0 || !format_numbers(head, (size_t)n, true)) return true;
    PyErr_Format(PyExc_ValueError, "file: %R is %s, not raw elements: %s (raw=True takes its bytes for elements)", path,
                 format_text()->what, format_text()->advice);
    return false;
}

PyObject *cr_py_file_open(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"path", "dtype", "offset", "raw", NULL};
    PyObject *path, *dtype = Py_None, *from = NULL;
    uint64_t offset = 0;
    int raw = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$Op:file", names, &path, &dtype, &from, &raw)) return NULL;
    if (from != NULL && !cr_py_number(from, "offset", &offset)) return NULL;
    cr_py_file *f = PyObject_New(cr_py_file, cr_py_file_type);
    if (f == NULL) return NULL;
    f->fd = -1;
    f->from = f->size = 0;
    f->packed = false;
    memset(&f->header, 0, sizeof f->header);
    bool good = open_file(f, path);
    if (good && dtype != Py_None)
        good = (raw || offset || check_numbers(f, path)) && take_raw(f, dtype, offset);
    else if (good)
        good = read_header(f) && check_size(f);
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

static PyObject *file_repr(PyObject *self) {
    PyObject *shape = file_shape(self, NULL);
    PyObject *text = shape != NULL ? PyUnicode_FromFormat("<cured.File of %s, shape %S>",
                                                          cured_dtype_name(((cr_py_file *)self)->header.dtype), shape)
                                   : NULL;
    Py_XDECREF(shape);
    return text;
}

bool cr_py_file_ready(PyObject *module) {
    static PyMethodDef own[] = {{NULL, NULL, 0, NULL}};
    static PyGetSetDef properties[] = {{"dtype", file_dtype, NULL, "The elements' type.", NULL},
                                       {"shape", file_shape, NULL, "The array's shape.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    PyMethodDef *methods = cr_py_ops_methods(own, CR_PY_OF_FILE);
    if (methods == NULL) return false;
    PyType_Slot slots[] = {{Py_tp_dealloc, file_dealloc},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, properties},
                           {Py_tp_repr, file_repr},
                           {Py_tp_doc, "An array in a file, reduced where it lies."},
                           {0, NULL}};
    PyType_Spec spec = {"cured.File", sizeof(cr_py_file), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        slots};
    cr_py_file_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return cr_py_file_type != NULL && PyModule_AddType(module, cr_py_file_type) == 0;
}
