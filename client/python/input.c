/* input: what an array is: its type, shape and strides, by the buffer protocol; tensors without it are dlpack.c's. What is
 * neither, and types that cured does not reduce, go to _adapt.py, which finds another view of them or says what to do.
 *
 * Thread: with the GIL. Owner: an input holds the buffers it looks at until it is released. */
#include <stdio.h>
#include <string.h>

#include "client/python/extension.h"

/* Types whose objects _adapt.py gave back as they were: they are not asked about again. */
enum { PLAIN_TYPES = 32 };
static PyTypeObject *plain[PLAIN_TYPES];
static size_t plain_count;

static bool is_plain(PyTypeObject *type) {
    for (size_t i = 0; i < plain_count; i++)
        if (plain[i] == type) return true;
    return false;
}

static void remember_plain(PyTypeObject *type) {
    if (plain_count == PLAIN_TYPES) return;
    plain[plain_count++] = (PyTypeObject *)Py_NewRef((PyObject *)type);
    cr_py_numpy_learn(type);
}

static cured_dtype integer_of(Py_ssize_t size, bool is_signed) {
    static const cured_dtype types[] = {0, CURED_U8, CURED_U16, 0, CURED_U32, 0, 0, 0, CURED_U64};
    return size > 8 || types[size] == 0 ? CURED_DTYPE_DEFAULT : (cured_dtype)(types[size] + (is_signed ? 1 : 0));
}

/* A format of one element: order and code. CURED_DTYPE_DEFAULT: not one of ours. */
static cured_dtype type_of(const char *format, Py_ssize_t size, bool *swap) {
    *swap = (*format == '>' || *format == '!') && size > 1;
    if (*format == '@' || *format == '=' || *format == '<' || *format == '>' || *format == '!') format++;
    if (format[0] == '\0' || format[1] != '\0') return CURED_DTYPE_DEFAULT;
    switch (*format) {
        case 'f':
            return size == 4 ? CURED_F32 : CURED_DTYPE_DEFAULT;
        case 'd':
            return size == 8 ? CURED_F64 : CURED_DTYPE_DEFAULT;
        case 'e':
            return size == 2 ? CURED_F16 : CURED_DTYPE_DEFAULT;
        case '?':
            return size == 1 ? CURED_BOOL : CURED_DTYPE_DEFAULT;
        default:
            if (strchr("bhilqn", *format) != NULL) return integer_of(size, true);
            return strchr("BHILQN", *format) != NULL ? integer_of(size, false) : CURED_DTYPE_DEFAULT;
    }
}

int cr_py_input_buffer(cr_py_input *in, PyObject *array) {
    if (PyObject_GetBuffer(array, &in->view, PyBUF_RECORDS_RO) != 0) return -1;
    in->has_view = true;
    const Py_buffer *v = &in->view;
    in->dtype = type_of(v->format != NULL ? v->format : "B", v->itemsize, &in->swap);
    if (in->dtype == CURED_DTYPE_DEFAULT) return 0;
    if (v->ndim > CR_PY_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "the array has %d axes, the limit is %d", v->ndim, CR_PY_MAX_DIMS);
        return -1;
    }
    in->kind = CR_PY_HOST;
    in->size = (uint8_t)v->itemsize;
    in->ndim = v->ndim;
    in->data = v->buf;
    Py_ssize_t step = v->itemsize; /* ctypes gives no strides */
    for (int i = v->ndim - 1; i >= 0; i--) {
        in->shape[i] = v->shape != NULL ? v->shape[i] : v->len / v->itemsize;
        in->strides[i] = v->strides != NULL ? v->strides[i] : step;
        step = cr_py_step(step, in->shape[i]);
    }
    return 1;
}

static void drop_view(cr_py_input *in) {
    if (in->has_view) PyBuffer_Release(&in->view);
    in->has_view = false;
}

void cr_py_input_hold(cr_py_input *in, PyObject *object) {
    PyObject *before = in->held;
    in->held = object;
    Py_XDECREF(before);
}

/* The type is not ours, or the object does not tell: _adapt.refused gives (another view of it, a type's name), or raises. */
static bool take_other(cr_py_input *in, PyObject *array) {
    PyErr_Clear();
    drop_view(in);
    PyObject *other = cr_py_helper("cured._adapt", "refused", array);
    if (other == NULL) return false;
    PyObject *view, *name;
    bool good = PyArg_ParseTuple(other, "OO", &view, &name);
    if (good) {
        cr_py_input_hold(in, Py_NewRef(view));
        cured_dtype dtype;
        int taken = cr_py_input_buffer(in, view);
        good = taken == 1 && cr_py_dtype(name, &dtype, NULL);
        if (taken == 0) PyErr_SetString(PyExc_TypeError, "the array's type is not one that cured reduces");
        if (good) in->dtype = dtype;
    }
    Py_DECREF(other);
    return good;
}

/* Whether the exception says that the object has no such buffer. */
static bool is_refusal(void) {
    return PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError);
}

/* _adapt.adapt gives (array, mask): what stands for a masked array, a column of a table, and other objects. */
static bool take_adapted(cr_py_input *in, PyObject **array) {
    PyObject *mask, *pair = cr_py_helper("cured._adapt", "adapt", *array);
    if (pair == NULL) return false;
    PyObject *given = *array;
    if (!PyArg_ParseTuple(pair, "OO", array, &mask)) {
        Py_DECREF(pair);
        return false;
    }
    in->held = pair; /* a tuple that holds both */
    if (*array == given && mask == Py_None) remember_plain(Py_TYPE(given));
    in->is_masked = mask != Py_None;
    if (mask == Py_None || mask == Py_False) return true;
    Py_INCREF(mask); /* take_other lets go of the pair */
    int taken = cr_py_input_buffer(in, *array);
    bool good = taken == 1 || ((taken == 0 || is_refusal()) && take_other(in, *array));
    good = good && cr_py_input_mask(in, mask, false);
    Py_DECREF(mask);
    return good;
}

/* CuPy's arrays have the buffer protocol, which refuses with a TypeError, and are tensors. That refusal stands for all others. */
static int take_behind_buffer(cr_py_input *in, PyObject *array) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const int taken = cr_py_input_tensor(in, array);
    if (taken == 0) {
        PyErr_Restore(type, value, trace);
        return -1;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return taken;
}

void cr_py_input_begin(cr_py_input *in, PyObject *array) {
    in->owner = array;
    in->held = in->mask_held = NULL;
    in->has_view = in->has_mask_view = false;
    in->mask.data = NULL;
    in->mask.keeps = true;
    in->cuda_mask.data = NULL;
    in->is_masked = in->is_lent = false;
}

bool cr_py_input_take(cr_py_input *in, PyObject *array) {
    cr_py_input_begin(in, array);
    if (cr_py_numpy_take(in, array)) return true;
    if (Py_TYPE(array) == cr_py_file_type) {
        cr_py_file_input(array, in);
        return true;
    }
    if (!is_plain(Py_TYPE(array))) {
        if (!take_adapted(in, &array)) return false;
        if (in->has_view) return true;
    }
    bool has_buffer = PyObject_CheckBuffer(array);
    int taken = has_buffer ? cr_py_input_buffer(in, array) : cr_py_input_tensor(in, array);
    if (taken < 0 && has_buffer && PyErr_ExceptionMatches(PyExc_TypeError)) taken = take_behind_buffer(in, array);
    if (taken == 1) return true;
    if (taken < 0 && !(has_buffer && is_refusal())) return false;
    return take_other(in, array);
}

void cr_py_input_refused(const char *name) {
    PyObject *type, *why, *trace;
    PyErr_Fetch(&type, &why, &trace);
    PyErr_Format(type, "%s: %S", name, why != NULL ? why : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(why);
    Py_XDECREF(trace);
}

bool cr_py_input_plain(cr_py_input *in, const char *name, PyObject *array) {
    PyObject *pair = Py_BuildValue("(sO)", name, array);
    PyObject *copy = pair != NULL ? cr_py_helper("cured._beside", "plain", pair) : NULL;
    Py_XDECREF(pair);
    if (copy == NULL) return false;
    const bool taken = cr_py_input_take(in, copy);
    if (!taken) cr_py_input_refused(name);
    Py_DECREF(copy); /* the input holds it */
    return taken;
}

/* What is wrong with a mask: why adapt refused it, or else what it is. */
static void refuse_mask(PyObject *mask) {
    if (PyErr_Occurred())
        cr_py_input_refused("where");
    else
        PyErr_Format(PyExc_TypeError, "where: a bool array is wanted, not %R", (PyObject *)Py_TYPE(mask));
}

/* The mask, or what stands for it, as of a column of a table. A new reference. A buffer knows nothing of what is missing. */
static PyObject *mask_array(PyObject *mask) {
    if (is_plain(Py_TYPE(mask))) return Py_NewRef(mask);
    PyObject *array = NULL, *own = NULL, *pair = cr_py_helper("cured._adapt", "adapt_mask", mask);
    const bool taken = pair != NULL && PyArg_ParseTuple(pair, "OO", &array, &own), good = taken && own == Py_None;
    if (good && array == mask) remember_plain(Py_TYPE(mask));
    if (good)
        Py_INCREF(array);
    else if (taken)
        PyErr_SetString(PyExc_TypeError,
                        "where: elements of it are missing: mask.fillna(False), or .filled(False), leaves them out");
    else
        refuse_mask(mask);
    Py_XDECREF(pair);
    return good ? array : NULL;
}

/* Its strides, broadcast to the array's shape. strides NULL: of one element. */
static bool take_mask(cr_py_input *in, const char *data, int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                      bool keeps) {
    int behind = in->ndim - ndim;
    bool fits = behind >= 0 && (ndim == 0 || (shape != NULL && strides != NULL));
    for (int i = 0; i < in->ndim && fits; i++) {
        Py_ssize_t n = i < behind ? 1 : shape[i - behind];
        in->mask.strides[i] = n == 1 ? 0 : strides[i - behind];
        fits = n == 1 || n == in->shape[i];
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "where: its shape does not broadcast to the array's");
        return false;
    }
    in->mask.data = data;
    in->mask.keeps = keeps;
    in->is_masked = true;
    return true;
}

static const char mask_of_cuda[] = "where: the mask of a CUDA tensor is a bool tensor on the same GPU";

/* A mask in the memory of the array's GPU, whose elements lie as the array's. */
static int take_mask_cuda(cr_py_input *in, const cr_py_input *mask, bool keeps) {
    bool alike = mask->ndim == in->ndim;
    uint64_t count = 1;
    for (int i = 0; i < in->ndim && alike; i++) {
        alike = mask->shape[i] == in->shape[i] &&
                (in->shape[i] < 2 || mask->strides[i] * (Py_ssize_t)in->size == in->strides[i]);
        count *= (uint64_t)in->shape[i];
    }
    const char *why = NULL;
    if (mask->kind != CR_PY_CUDA || mask->dtype != CURED_BOOL)
        why = mask_of_cuda;
    else if (mask->is_masked)
        why =
            "where: the mask has nulls, and on a GPU one mask is read: fill them with false, or pass a mask without "
            "nulls";
    else if (!alike)
        why = "where: the mask of a CUDA tensor has its shape and its strides: pass mask.expand_as(t).contiguous()";
    else if (mask->stream != in->stream)
        why = "where: the mask and the tensor are of libraries that work on two streams";
    if (why != NULL) PyErr_SetString(PyExc_TypeError, why);
    if (why != NULL) return -1;
    in->cuda_mask = (cured_mask){mask->data, count, 0, CURED_MASK_BYTES, !keeps};
    in->is_masked = true;
    in->is_lent |= mask->is_lent;
    return 1;
}

/* A mask that is a tensor. -1 with an exception, 0: it is none. */
static int take_mask_tensor(cr_py_input *in, PyObject *mask, bool keeps) {
    cr_py_input *t = PyMem_Calloc(1, sizeof *t);
    if (t == NULL) return PyErr_NoMemory(), -1;
    t->owner = mask;
    int taken = cr_py_input_tensor(t, mask);
    if (taken == 1 && in->kind == CR_PY_CUDA) {
        taken = take_mask_cuda(in, t, keeps);
    } else if (taken == 1 && (t->kind != CR_PY_HOST || t->dtype != CURED_BOOL)) {
        PyErr_SetString(PyExc_TypeError, t->kind != CR_PY_HOST ? "where: the mask lies on a GPU: pass mask.cpu()"
                                                               : "where: a bool array is wanted");
        taken = -1;
    } else if (taken == 1) {
        taken = take_mask(in, t->data, t->ndim, t->shape, t->strides, keeps) ? 1 : -1;
    }
    if (taken == 1) {
        in->mask_held = t->held;
        t->held = NULL;
    }
    cr_py_input_release(t);
    PyMem_Free(t);
    return taken;
}

static bool take_mask_buffer(cr_py_input *in, PyObject *array, bool keeps) {
    bool swap;
    if (PyObject_GetBuffer(array, &in->mask_view, PyBUF_RECORDS_RO) != 0) return false;
    in->has_mask_view = true;
    const Py_buffer *v = &in->mask_view;
    if (type_of(v->format != NULL ? v->format : "B", v->itemsize, &swap) != CURED_BOOL) {
        PyErr_SetString(PyExc_TypeError, "where: a bool array is wanted");
        return false;
    }
    return take_mask(in, v->buf, v->ndim, v->shape, v->strides, keeps);
}

bool cr_py_input_mask(cr_py_input *in, PyObject *mask, bool keeps) {
    static const char none[] = {0};
    const bool cuda = in->kind == CR_PY_CUDA;
    if (in->mask.data != NULL || in->cuda_mask.data != NULL) {
        PyErr_SetString(PyExc_TypeError, cuda ? "where: the array has nulls, and on a GPU one mask is read: pass a "
                                                "copy on the host, or one without nulls"
                                              : "where: the array has a mask of its own");
        return false;
    }
    if (mask == Py_False && !cuda) return take_mask(in, none, 0, NULL, NULL, keeps);
    if (cuda && mask == Py_False) {
        PyErr_SetString(PyExc_TypeError, mask_of_cuda);
        return false;
    }
    PyObject *array = mask_array(mask);
    if (array == NULL) return false;
    /* CuPy's arrays have buffers, too, which they refuse on most machines. */
    const bool has_buffer = PyObject_CheckBuffer(array);
    const int taken = has_buffer && !cuda ? take_mask_buffer(in, array, keeps) : take_mask_tensor(in, array, keeps);
    if (taken == 0 && has_buffer && cuda && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, mask_of_cuda);
    if (taken == 0 && !PyErr_Occurred()) refuse_mask(mask);
    Py_DECREF(array); /* the buffer holds it */
    return taken == 1;
}

static void drop_mask(cr_py_input *in) {
    if (in->has_mask_view) PyBuffer_Release(&in->mask_view);
    in->has_mask_view = false;
    Py_CLEAR(in->mask_held);
    in->mask.data = NULL;
}

bool cr_py_input_where(cr_py_input *in, PyObject *array, PyObject *where) {
    if (in->mask.data == NULL || in->kind == CR_PY_CUDA) return cr_py_input_mask(in, where, true);
    PyObject *pair = PyTuple_Pack(2, array, where);
    PyObject *both = pair != NULL ? cr_py_helper("cured._adapt", "both_masks", pair) : NULL;
    Py_XDECREF(pair);
    if (both == NULL) return false;
    drop_mask(in);
    bool good = cr_py_input_mask(in, both, true);
    if (good && both == where) { /* which knows nothing of the array's own */
        PyErr_Format(
            PyExc_TypeError,
            "where: beside the array's own mask a mask that NumPy reads is wanted, not %R: pass a bool array of "
            "NumPy's",
            (PyObject *)Py_TYPE(where));
        good = false;
    }
    Py_DECREF(both);
    return good;
}

void cr_py_input_release(cr_py_input *in) {
    drop_view(in);
    drop_mask(in);
    Py_CLEAR(in->held);
}

bool cr_py_dtype(PyObject *given, cured_dtype *dtype, bool *big) {
    cured_error error;
    char little[16];
    PyObject *name = PyUnicode_Check(given) ? Py_NewRef(given) : cr_py_helper("cured._adapt", "dtype_name", given);
    if (name == NULL) return false;
    PyObject *text = PyUnicode_AsUTF8String(name);
    Py_DECREF(name);
    if (text == NULL) return false;
    const char *word = PyBytes_AsString(text);
    cured_status status = cured_dtype_parse(word, dtype, &error);
    const bool known = status == CURED_UNIMPLEMENTED && *word == '>'; /* but for its order */
    if (known) {
        snprintf(little, sizeof little, "<%s", word + 1);
        status = cured_dtype_parse(little, dtype, &error);
    }
    if (big != NULL) *big = known;
    const bool good = status == CURED_OK;
    if (!good) PyErr_Format(PyExc_TypeError, "dtype: %s", error.text);
    Py_DECREF(text);
    return good;
}
