/* search: medians and quantiles of an array in parts (cured.h, "Searches"): the functions behind cured/_search.py, and the private argument
 * _asked of median, by which any array, mask, file or client gives the counts that a search asks.
 *
 * Thread: with the GIL. Owner: a capsule owns its search. */
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/op.h"
#include "kernels/core/quantile.h"
#include "kernels/core/widen.h"

static const char capsule_name[] = "cured.search";

static void forget(PyObject *capsule) { cured_search_free(PyCapsule_GetPointer(capsule, capsule_name)); }

static cured_search *search_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, capsule_name); }

/* _search(a's dtype, ops, shares as bytes or None, method, whether NaNs are skipped, the answers' dtype or None): a search. */
static PyObject *search_begin(PyObject *module, PyObject *args) {
    cr_py_request r = {.single = false};
    cured_options o = CURED_OPTIONS_INIT;
    cured_search *search;
    cured_error error;
    cured_dtype dtype;
    PyObject *type, *ops, *shares, *result;
    const char *method;
    int skips;
    cr_quantile_method taken;
    cr_error why;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOspO", &type, &ops, &shares, &method, &skips, &result)) return NULL;
    if (!cr_py_dtype(type, &dtype, NULL) || !cr_py_request_ops(&r, ops)) return NULL;
    if (result != Py_None && !cr_py_dtype(result, &o.result_dtype, NULL)) return NULL;
    if (cr_quantile_method_parse(method, &taken, &why) != CR_OK) return PyErr_Format(PyExc_ValueError, "%s", why.text);
    o.method = (cured_method)taken;
    o.nan = skips ? CURED_NAN_SKIP : CURED_NAN_PROPAGATE;
    if (shares != Py_None && PyBytes_Size(shares) != (Py_ssize_t)(r.op_count * sizeof r.shares[0]))
        return PyErr_Format(PyExc_ValueError, "q: %zu shares are wanted", r.op_count);
    if (shares != Py_None) {
        memcpy(r.shares, PyBytes_AsString(shares), r.op_count * sizeof r.shares[0]);
        o.parameters = r.shares;
    }
    if (cured_search_begin(dtype, r.ops, r.op_count, &o, &search, &error) != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(search, capsule_name, forget);
    if (capsule == NULL) cured_search_free(search);
    return capsule;
}

/* The bytes that parts are asked with; None: the search is over. */
static PyObject *search_asked(PyObject *module, PyObject *capsule) {
    size_t count;
    const cured_search *search = search_of(capsule);
    (void)module;
    if (search == NULL) return NULL;
    const cured_bytes asked = cured_search_asked(search, &count);
    if (count == 0) return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize(asked.data, (Py_ssize_t)asked.bytes);
}

static PyObject *search_next(PyObject *module, PyObject *args) {
    PyObject *capsule;
    Py_buffer counts;
    cured_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*", &capsule, &counts)) return NULL;
    cured_search *search = search_of(capsule);
    const bool aligned = (uintptr_t)counts.buf % sizeof(uint64_t) == 0;
    bool good = search != NULL && aligned;
    if (search != NULL && !aligned) PyErr_SetString(PyExc_ValueError, "counts: an array of uint64 is wanted");
    if (good && cured_search_next(search, counts.buf, (size_t)counts.len / sizeof(uint64_t), &error) != CURED_OK) {
        cr_py_raise(&error);
        good = false;
    }
    PyBuffer_Release(&counts);
    return good ? Py_NewRef(Py_None) : NULL;
}

/* A list of the ops' answers. */
static PyObject *search_values(PyObject *module, PyObject *capsule) {
    cured_values *values;
    cured_error error;
    const cured_value *value;
    const cured_search *search = search_of(capsule);
    (void)module;
    if (search == NULL) return NULL;
    if (cured_search_values(search, &values, &error) != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && (value = cured_values_get(values, i)) != NULL; i++) {
        PyObject *answer = cr_py_answer_value(value);
        if (answer == NULL || PyList_Append(list, answer) != 0) Py_CLEAR(list);
        Py_XDECREF(answer);
    }
    cured_values_free(values);
    return list;
}

/* The narrowest type that holds the elements of all types in a list. */
static PyObject *common_type(PyObject *module, PyObject *names) {
    uint32_t types = 0;
    cr_dtype wide;
    cr_error error;
    (void)module;
    for (Py_ssize_t i = 0; i < PyList_Size(names); i++) {
        cured_dtype dtype;
        if (!cr_py_dtype(PyList_GetItem(names, i), &dtype, NULL)) return NULL;
        types |= UINT32_C(1) << dtype;
    }
    if (PyErr_Occurred()) return NULL;
    if (cr_widen_common(types, &wide, &error) != CR_OK) return PyErr_Format(PyExc_TypeError, "%s", error.text);
    return PyUnicode_FromString(cr_dtype_name(wide));
}

/* What type an array's elements have. */
static PyObject *type_of(PyObject *module, PyObject *array) {
    cr_py_input in;
    (void)module;
    if (cr_py_is_stored(array)) return cr_py_helper("cured._stores", "type_name", array);
    const bool taken = cr_py_input_take(&in, array);
    PyObject *name = taken ? PyUnicode_FromString(cured_dtype_name(in.dtype)) : NULL;
    cr_py_input_release(&in);
    return name;
}

bool cr_py_search_ready(PyObject *module) {
    static PyMethodDef methods[] = {
        {"_search", search_begin, METH_VARARGS, "A search of medians and quantiles: for _search.py, as are the next."},
        {"_search_asked", search_asked, METH_O, "What its next read counts."},
        {"_search_next", search_next, METH_VARARGS, "The read is over, with these counts."},
        {"_search_values", search_values, METH_O, "Its answers."},
        {"_common_type", common_type, METH_O, "The narrowest type for the elements of several."},
        {"_type_of", type_of, METH_O, "The type of an array's elements."},
        {NULL, NULL, 0, NULL}};
    return PyModule_AddFunctions(module, methods) == 0;
}

bool cr_py_search_ask(cr_py_request *r, PyObject *asked) {
    if (!PyBytes_Check(asked) || r->async != NULL) {
        PyErr_SetString(PyExc_TypeError, "_asked: the bytes of a search are wanted, and no AsyncClient");
        return false;
    }
    r->asked = (cured_bytes){PyBytes_AsString(asked), (size_t)PyBytes_Size(asked)};
    r->options.asked = &r->asked;
    return true;
}

size_t cr_py_search_words(const cr_py_request *r) {
    cr_quantile s;
    cr_error error;
    const cr_status status = cr_quantile_unpack(&s, (const uint8_t *)r->asked.data, r->asked.bytes, &error);
    if (status == CR_OK) return cr_quantile_words(&s);
    PyErr_SetString(PyExc_ValueError, error.text);
    return 0;
}

PyObject *cr_py_search_counts(const cured_call *call) {
    size_t count;
    const uint64_t *counts = cured_call_counts(call, &count);
    const Py_ssize_t length = (Py_ssize_t)count;
    cr_py_memory *memory = cr_py_memory_new(CURED_U64, 1, &length, false);
    if (memory == NULL) return NULL;
    memcpy(cr_py_memory_data(memory), counts, count * sizeof *counts);
    return cr_py_memory_array(memory);
}
