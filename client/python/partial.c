/* partial: cured.Partial, the exact state of a reduction over a part of an array, and cured.merge. The bytes are those of
 * docs/PARTIALS.md.
 *
 * Thread: with the GIL. Owner: a Partial owns its bytes and does not change. */
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/keyed.h"
#include "kernels/core/serial.h"
#include "kernels/core/widen.h"

typedef struct cr_py_partial {
    PyObject_HEAD PyObject *bytes;
    cured_dtype dtype;
    uint64_t count;
    cured_by_key by_key; /* groups and columns; of a whole array 0 columns */
} cr_py_partial;

static PyTypeObject *partial_type;

static PyObject *make(PyTypeObject *type, const void *data, size_t size) {
    cured_error error;
    cured_by_key of = {.columns = 0};
    const cured_status status = cr_keyed_is(data, size) ? cured_by_key_check(data, size, &of, &error)
                                                        : cured_partial_check(data, size, &of.dtype, &of.count, &error);
    if (status != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    cr_py_partial *p = (cr_py_partial *)PyType_GenericAlloc(type, 0);
    if (p == NULL) return NULL;
    p->bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
    p->dtype = of.dtype;
    p->count = of.count;
    p->by_key = of;
    if (p->bytes != NULL) return (PyObject *)p;
    Py_DECREF(p);
    return NULL;
}

PyObject *cr_py_partial_new(const void *data, size_t bytes) { return make(partial_type, data, bytes); }

static PyObject *partial_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"", NULL};
    Py_buffer view;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*:Partial", names, &view)) return NULL;
    PyObject *p = make(type, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return p;
}

static void partial_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((cr_py_partial *)self)->bytes);
    freefunc free_self = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_self(self);
    Py_DECREF(type);
}

static bool is_by_key(const cr_py_partial *p) { return p->by_key.columns != 0; }

static PyObject *answer(const cr_py_partial *p, cr_py_request *r) {
    cured_values *values;
    cured_error error;
    PyObject *answers[CURED_MAX_OPS];
    if (is_by_key(p))
        return cr_py_by_key_finish(r, PyBytes_AsString(p->bytes), (size_t)PyBytes_Size(p->bytes), &p->by_key);
    if (cured_partial_finish(PyBytes_AsString(p->bytes), (size_t)PyBytes_Size(p->bytes), r->ops, r->op_count,
                             &r->options, &values, &error) != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    for (size_t i = 0; i < r->op_count; i++) answers[i] = cr_py_answer_or_error(cured_values_get(values, i));
    cured_values_free(values);
    return cr_py_answer_result(r, answers);
}

/* The option that is none of a finish; NULL: there is none. */
static const char *of_the_array(const cr_py_request *r) {
    const struct {
        bool given;
        const char *name;
    } options[] = {
        {r->axis != NULL, "axis"},        {r->keepdims, "keepdims"},       {r->where != NULL, "where"},
        {r->initial != NULL, "initial"},  {r->out != NULL, "out"},         {r->client != NULL, "client"},
        {r->keys != NULL, "keys"},        {r->groups != NULL, "groups"},   {r->by_key.drop, "drop"},
        {r->second != NULL, "second"},    {r->offsets != NULL, "offsets"}, {r->shape != NULL, "shape"},
        {r->start != NULL, "start"},      {r->has_first, "first"},         {r->strict, "nulls"},
        {r->min_count != 0, "min_count"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given) return options[i].name;
    return NULL;
}

static PyObject *finish(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    cr_py_request r = {.single = false};
    if (nargs != 1) return PyErr_Format(PyExc_TypeError, "finish takes the ops, such as ['sum', 'max']");
    if (!cr_py_enter()) return NULL;
    bool good = cr_py_request_ops(&r, args[0]) && cr_py_request_options(&r, args + 1, 0, kwnames);
    const char *of_array = good ? of_the_array(&r) : NULL;
    if (of_array != NULL) {
        PyErr_Format(PyExc_TypeError, "%s: a partial is finished with dtype, ddof, nan and overflow alone", of_array);
        good = false;
    }
    PyObject *result = good ? answer((const cr_py_partial *)self, &r) : NULL;
    cr_py_leave();
    return result;
}

static PyObject *merge_by_key(const cured_bytes *list, size_t count) {
    void *merged;
    size_t bytes;
    cured_error error;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_by_key_merge(list, count, &merged, &bytes, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK) cr_py_raise(&error);
    PyObject *partial = status == CURED_OK ? cr_py_partial_new(merged, bytes) : NULL;
    cured_by_key_free(merged);
    return partial;
}

static PyObject *merge_bytes(PyObject *parts, Py_ssize_t count) {
    cured_bytes *list = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *list);
    uint8_t *out = PyMem_Malloc(CURED_PARTIAL_BYTES);
    size_t bytes = CURED_PARTIAL_BYTES;
    PyObject *merged = NULL;
    cured_error error;
    bool good = list != NULL && out != NULL;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *part = PyTuple_GetItem(parts, i);
        good = PyObject_TypeCheck(part, partial_type);
        if (!good) {
            PyErr_Format(PyExc_TypeError, "merge: a cured.Partial is wanted, not %R", (PyObject *)Py_TYPE(part));
            break;
        }
        PyObject *own = ((cr_py_partial *)part)->bytes;
        list[i] = (cured_bytes){PyBytes_AsString(own), (size_t)PyBytes_Size(own)};
    }
    const bool by_key = good && cr_keyed_is(list[0].data, list[0].bytes);
    if (by_key) {
        merged = merge_by_key(list, (size_t)count);
        good = false;
    }
    if (good && cured_partial_merge(list, (size_t)count, out, &bytes, &error) != CURED_OK) {
        cr_py_raise(&error);
        good = false;
    }
    if (good) merged = cr_py_partial_new(out, bytes);
    PyMem_Free(list);
    PyMem_Free(out);
    return merged;
}

PyObject *cr_py_merge(PyObject *module, PyObject *parts) {
    (void)module;
    PyObject *all = PySequence_Tuple(parts);
    if (all == NULL) return NULL;
    const Py_ssize_t count = PyTuple_Size(all);
    PyObject *merged = count != 0 ? merge_bytes(all, count)
                                  : PyErr_Format(PyExc_ValueError, "parts is empty, must have one partial at least");
    Py_DECREF(all);
    return merged;
}

static const uint8_t *bytes_of(PyObject *part, size_t *size) {
    PyObject *own = ((cr_py_partial *)part)->bytes;
    *size = (size_t)PyBytes_Size(own);
    return (const uint8_t *)PyBytes_AsString(own);
}

/* The types of partials, which all of the list's items are: a mask, 1 << cr_dtype. 0 with an exception. */
static uint32_t types_of(PyObject *parts) {
    uint32_t types = 0;
    for (Py_ssize_t i = 0; i < PyList_Size(parts); i++) {
        size_t size;
        PyObject *part = PyList_GetItem(parts, i);
        if (!PyObject_TypeCheck(part, partial_type)) return PyErr_SetString(PyExc_TypeError, "Partials are wanted"), 0;
        types |= UINT32_C(1) << bytes_of(part, &size)[3];
    }
    if (types == 0) PyErr_SetString(PyExc_ValueError, "the list has no partials");
    return types;
}

/* A new reference. */
static PyObject *widen(PyObject *part, cr_dtype wide, cr_share *share, uint8_t *packed) {
    size_t size;
    cr_error error;
    const uint8_t *bytes = bytes_of(part, &size);
    if (bytes[3] == wide) return Py_NewRef(part);
    if (cr_share_unpack(bytes, size, share, &error) == CR_OK &&
        cr_partial_widen(&share->partial, wide, &error) == CR_OK)
        return cr_py_partial_new(packed, cr_share_pack(share, packed, CR_SERIAL_MAX_BYTES));
    PyErr_SetString(PyExc_ValueError, error.text);
    return NULL;
}

PyObject *cr_py_widened(PyObject *module, PyObject *args) {
    PyObject *parts, *all = NULL;
    const char *name = NULL;
    cr_dtype wide = CR_DTYPE_NONE;
    cr_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!|z", &PyList_Type, &parts, &name)) return NULL;
    const uint32_t types = types_of(parts);
    if (types == 0) return NULL;
    if ((name != NULL ? cr_dtype_parse(name, &wide, &error) : cr_widen_common(types, &wide, &error)) != CR_OK)
        return PyErr_Format(PyExc_TypeError, "%s", error.text);
    const Py_ssize_t count = PyList_Size(parts);
    struct {
        cr_share share;
        uint8_t packed[CR_SERIAL_MAX_BYTES];
    } *own = PyMem_Malloc(sizeof *own);
    bool good = own != NULL && (all = PyTuple_New(count)) != NULL;
    if (own == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && good; i++) {
        PyObject *one = widen(PyList_GetItem(parts, i), wide, &own->share, own->packed);
        good = one != NULL && PyTuple_SetItem(all, i, one) == 0;
    }
    PyObject *merged = good ? merge_bytes(all, count) : NULL;
    PyMem_Free(own);
    Py_XDECREF(all);
    return merged;
}

static PyObject *linear(PyObject *self, PyObject *unused) {
    (void)unused;
    return cr_py_linear(((cr_py_partial *)self)->bytes, false);
}

static PyObject *linear_max(PyObject *self, PyObject *unused) {
    (void)unused;
    return cr_py_linear(((cr_py_partial *)self)->bytes, true);
}

static PyObject *partial_bytes(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(((cr_py_partial *)self)->bytes);
}

static PyObject *partial_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("O(O)", (PyObject *)Py_TYPE(self), ((cr_py_partial *)self)->bytes);
}

static PyObject *partial_dtype(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(cured_dtype_name(((cr_py_partial *)self)->dtype));
}

static PyObject *partial_count(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(((cr_py_partial *)self)->count);
}

static PyObject *partial_groups(PyObject *self, void *unused) {
    const cr_py_partial *p = (const cr_py_partial *)self;
    (void)unused;
    return is_by_key(p) ? PyLong_FromUnsignedLongLong(p->by_key.groups) : Py_NewRef(Py_None);
}

static PyObject *partial_compare(PyObject *self, PyObject *other, int op) {
    if (!PyObject_TypeCheck(other, partial_type) || (op != Py_EQ && op != Py_NE)) return Py_NewRef(Py_NotImplemented);
    return PyObject_RichCompare(((cr_py_partial *)self)->bytes, ((cr_py_partial *)other)->bytes, op);
}

static Py_hash_t partial_hash(PyObject *self) { return PyObject_Hash(((cr_py_partial *)self)->bytes); }

static PyObject *partial_repr(PyObject *self) {
    cr_py_partial *p = (cr_py_partial *)self;
    if (is_by_key(p))
        return PyUnicode_FromFormat("<cured.Partial by key of %llu elements of %s, %llu groups, %zd bytes>",
                                    (unsigned long long)p->count, cured_dtype_name(p->dtype),
                                    (unsigned long long)p->by_key.groups, PyBytes_Size(p->bytes));
    return PyUnicode_FromFormat("<cured.Partial of %llu elements of %s, %zd bytes>", (unsigned long long)p->count,
                                cured_dtype_name(p->dtype), PyBytes_Size(p->bytes));
}

bool cr_py_partial_ready(PyObject *module) {
    static PyMethodDef methods[] = {
        {"finish", (PyCFunction)(void (*)(void))finish, METH_FASTCALL | METH_KEYWORDS,
         "finish($self, ops, /, *, dtype=None, ddof=0, nan='propagate', overflow='error')\n--\n\n"
         "Answers ops from this state: a Result."},
        {"linear", linear, METH_NOARGS, "linear($self, /)\n--\n\nCounts and sums as int64 numbers that add up."},
        {"linear_max", linear_max, METH_NOARGS,
         "linear_max($self, /)\n--\n\nExtrema as int64 numbers, of which the greatest counts."},
        {"__bytes__", partial_bytes, METH_NOARGS, NULL},
        {"__reduce__", partial_reduce, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef properties[] = {{"dtype", partial_dtype, NULL, "The array's type.", NULL},
                                       {"count", partial_count, NULL, "Elements seen.", NULL},
                                       {"groups", partial_groups, NULL, "Groups of one by key; else None.", NULL},
                                       {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, partial_new},
                                  {Py_tp_dealloc, partial_dealloc},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, properties},
                                  {Py_tp_richcompare, partial_compare},
                                  {Py_tp_hash, partial_hash},
                                  {Py_tp_repr, partial_repr},
                                  {Py_tp_doc, "Partial(bytes)\n--\n\nThe exact state of a reduction of a part."},
                                  {0, NULL}};
    static PyType_Spec spec = {"cured.Partial", sizeof(cr_py_partial), 0, Py_TPFLAGS_DEFAULT, slots};
    partial_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return partial_type != NULL && PyModule_AddType(module, partial_type) == 0;
}
