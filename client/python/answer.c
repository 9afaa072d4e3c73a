/* answer: answers of libcured as Python objects. A value is an int, a float, a bool or a digest's text; along an axis the answers are an array,
 * which libcured fills where it stays.
 *
 * Thread: with the GIL. Owner: new references. */
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/dtype.h"
#include "kernels/core/op.h"
#include "kernels/core/round.h"

/* An integer of any width, by its exact decimal digits. */
static PyObject *integer(const cured_value *value) {
    char text[CURED_TEXT_BYTES];
    int64_t small;
    if (cured_value_int64(value, &small) == CURED_OK) return PyLong_FromLongLong(small);
    cured_value_text(value, text, sizeof text);
    return PyLong_FromString(text, NULL, 10);
}

static PyObject *text_of(const cured_value *value) {
    char text[CURED_TEXT_BYTES];
    cured_value_text(value, text, sizeof text);
    return PyUnicode_FromString(text);
}

PyObject *cr_py_answer_value(const cured_value *value) {
    double number;
    if (cured_value_status(value, NULL) != CURED_OK) { /* without a sentence, which would be made in any case */
        cured_error error;
        cured_value_status(value, &error);
        cr_py_raise(&error);
        return NULL;
    }
    const cured_dtype dtype = cured_value_dtype(value);
    if (dtype == CURED_BOOL) return PyBool_FromLong(*(const char *)cured_value_bytes(value, &(size_t){0}) != 0);
    if (dtype == CURED_DIGEST) return text_of(value);
    if (cr_dtype_kind((cr_dtype)dtype) != CR_KIND_FLOAT) return integer(value);
    cured_value_double(value, &number);
    return PyFloat_FromDouble(number);
}

/* Of quantiles, which have one name. The first that has no value raises. Takes over the references. */
static PyObject *list_of(const cr_py_request *r, PyObject **values) {
    PyObject *list = PyList_New((Py_ssize_t)r->op_count);
    bool good = list != NULL;
    for (size_t i = 0; i < r->op_count; i++) {
        if (good && values[i] != NULL && PyExceptionInstance_Check(values[i]))
            PyErr_SetObject((PyObject *)Py_TYPE(values[i]), values[i]);
        good = good && values[i] != NULL && !PyErr_Occurred();
        if (!good)
            Py_XDECREF(values[i]);
        else
            PyList_SetItem(list, (Py_ssize_t)i, values[i]);
    }
    if (!good) Py_CLEAR(list);
    return list;
}

PyObject *cr_py_answer_take_error(void) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return error;
}

PyObject *cr_py_answer_or_error(const cured_value *value) {
    PyObject *answer = cr_py_answer_value(value);
    return answer != NULL ? answer : cr_py_answer_take_error();
}

/* A Result over dict. Result's __init__ does the same, but is called by Python code. */
static PyObject *result_with(PyObject *dict) {
    static PyObject *type, *slot; /* looked up once, and kept */
    if (slot == NULL) slot = PyUnicode_InternFromString("_answers");
    if (type == NULL) {
        PyObject *file = PyImport_ImportModule("cured._result");
        type = file != NULL ? PyObject_GetAttrString(file, "Result") : NULL;
        Py_XDECREF(file);
    }
    PyObject *result = type != NULL && slot != NULL ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (result != NULL && PyObject_SetAttr(result, slot, dict) != 0) Py_CLEAR(result);
    return result;
}

PyObject *cr_py_answer_result(const cr_py_request *r, PyObject **values) {
    if (r->listed) return list_of(r, values);
    PyObject *dict = PyDict_New(), *result = NULL;
    bool good = dict != NULL;
    for (size_t i = 0; i < r->op_count && good; i++)
        good = values[i] != NULL && PyDict_SetItemString(dict, cured_op_name(r->ops[i]), values[i]) == 0;
    if (good) result = result_with(dict);
    Py_XDECREF(dict);
    for (size_t i = 0; i < r->op_count; i++) Py_XDECREF(values[i]);
    return result;
}

PyObject *cr_py_answer_named(PyObject *names, const cured_values *values) {
    PyObject *dict = PyDict_New(), *result = NULL;
    bool good = dict != NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(names) && good; i++) {
        PyObject *answer = cr_py_answer_or_error(cured_values_get(values, (size_t)i));
        good = answer != NULL && PyDict_SetItem(dict, PyTuple_GetItem(names, i), answer) == 0;
        Py_XDECREF(answer);
    }
    if (good) result = result_with(dict);
    Py_XDECREF(dict);
    return result;
}

bool cr_py_answer_is_index(cured_op op) { return cr_op_is_index((cr_op)op); }

uint64_t cr_py_answer_index(const cr_py_request *r, const cured_value *value) {
    uint64_t index;
    memcpy(&index, cured_value_bytes(value, &(size_t){0}), sizeof index);
    if (r->plan.mask == NULL) return index;
    if (r->plan.count <= CR_PY_SMALL_BYTES) return cr_walk_place(&r->plan, r->input.mask.keeps, index);
    PyThreadState *thread = PyEval_SaveThread();
    index = cr_walk_place(&r->plan, r->input.mask.keeps, index);
    PyEval_RestoreThread(thread);
    return index;
}

/* The answer of an op of a whole array. */
static PyObject *value_of(const cr_py_request *r, const cured_call *call, size_t op) {
    const cured_value *value = cured_call_value(call, op);
    if (!cr_py_answer_is_index(r->ops[op]) || cured_value_status(value, NULL) != CURED_OK)
        return cr_py_answer_value(value);
    return PyLong_FromUnsignedLongLong(cr_py_answer_index(r, value));
}

/* Notes which ops lack answers. */
static void note_lacking(cr_py_request *r, const cured_call *call) {
    cured_error error;
    for (size_t i = 0; i < r->op_count; i++) {
        if (cured_call_array_status(call, i, &error) == CURED_OK) continue;
        cr_py_raise(&error);
        r->lacking[i] = cr_py_answer_take_error();
    }
}

PyObject *cr_py_answer_values(const cr_py_request *r, const cured_values *values) {
    PyObject *all[CURED_MAX_OPS];
    if (r->single) return cr_py_answer_value(cured_values_get(values, 0));
    for (size_t i = 0; i < r->op_count; i++) all[i] = cr_py_answer_or_error(cured_values_get(values, i));
    return cr_py_answer_result(r, all);
}

PyObject *cr_py_answer(cr_py_request *r, const cured_call *call) {
    PyObject *values[CURED_MAX_OPS];
    size_t bytes;
    if (r->partial) {
        const void *partial = cured_call_partial(call, &bytes);
        return cr_py_partial_new(partial, bytes);
    }
    if (r->options.asked != NULL) return cr_py_search_counts(call);
    if (!cr_py_request_is_whole(r)) {
        note_lacking(r, call);
        return cr_py_answer_arrays(r);
    }
    if (r->single) return value_of(r, call, 0);
    for (size_t i = 0; i < r->op_count; i++) {
        values[i] = value_of(r, call, i);
        if (values[i] == NULL) values[i] = cr_py_answer_take_error();
    }
    return cr_py_answer_result(r, values);
}

/* ---- Along an axis ---- */

/* The shape of the answers, in C order of the axes that stay. */
static int answer_shape(const cr_py_request *r, Py_ssize_t shape[CR_PY_MAX_DIMS]) {
    int ndim = 0;
    if (r->offsets != NULL) {
        shape[0] = (Py_ssize_t)r->segments.count - 1;
        return 1;
    }
    if (r->keys != NULL) {
        memcpy(shape, r->input.shape, (size_t)r->input.ndim * sizeof shape[0]);
        shape[0] = (Py_ssize_t)r->by_key.groups;
        return r->input.ndim;
    }
    for (int i = 0; i < r->input.ndim; i++) {
        bool reduced = (r->axes >> i & 1) != 0;
        if (!reduced || r->keepdims) shape[ndim++] = reduced ? 1 : r->input.shape[i];
    }
    return ndim;
}

bool cr_py_answer_room(cr_py_request *r) {
    Py_ssize_t shape[CR_PY_MAX_DIMS];
    int ndim = answer_shape(r, shape);
    memset(r->results, 0, sizeof r->results[0] * r->op_count);
    memset(r->lacking, 0, sizeof r->lacking[0] * r->op_count);
    r->has_results = true;
    for (size_t i = 0; i < r->op_count; i++) {
        cr_error error;
        if (cr_op_supports((cr_op)r->ops[i], (cr_dtype)r->input.dtype, &error) == CR_OK) continue;
        PyErr_SetString(PyExc_ValueError, error.text); /* as without an axis */
        return false;
    }
    if (r->out != NULL && !cr_py_out_places(r, ndim, shape)) return false;
    for (size_t i = 0; i < r->op_count; i++) {
        cured_dtype dtype = cured_axis_dtype(r->ops[i], r->input.dtype, r->options.result_dtype);
        if (!cr_dtype_is_input((cr_dtype)dtype) && dtype != CURED_DIGEST) {
            PyErr_Format(PyExc_TypeError, "%s of %s has no answers of type %s along an axis", cured_op_name(r->ops[i]),
                         cured_dtype_name(r->input.dtype),
                         r->options.result_dtype != 0 ? cured_dtype_name(r->options.result_dtype) : "its own");
            return false;
        }
        if (i < r->out_count) continue;
        r->results[i] = cr_py_memory_new(dtype, ndim, shape, false);
        if (r->results[i] == NULL) return false;
        r->pointers[i] = cr_py_memory_data(r->results[i]);
    }
    return true;
}

/* No Python array holds bf16 or f8: as f32 they are exact. */
static cr_py_memory *widen(cr_py_memory *from, cured_dtype dtype, uint64_t count, int ndim, const Py_ssize_t *shape) {
    cr_py_memory *to = cr_py_memory_new(CURED_F32, ndim, shape, false);
    const size_t size = cured_dtype_size(dtype);
    for (uint64_t i = 0; to != NULL && i < count; i++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)cr_py_memory_data(from) + size * i, size);
        const float wide = (float)cr_float_value((cr_dtype)dtype, bits);
        memcpy((char *)cr_py_memory_data(to) + 4 * i, &wide, sizeof wide);
    }
    return to;
}

/* From the order of the plan's kept dims to C order: answers in the plan's order are walked as an array is. */
static void permute(const cr_py_request *r, size_t size, const void *from, void *to) {
    const size_t word = size < sizeof(uint64_t) ? size : sizeof(uint64_t), words = size / word; /* a digest has three */
    cr_py_plan order = {
        .data = from, .count = r->plan.axis.outer * r->plan.axis.inner * words, .ndim = r->plan.kept_count};
    cr_strided array = {.size = (uint8_t)word};
    cr_walk walk;
    Py_ssize_t step = (Py_ssize_t)size;
    const int kept = order.ndim;
    if (words > 1) order.dims[order.ndim++] = (cr_dim){(Py_ssize_t)words, (Py_ssize_t)word, 0, kept, false};
    for (int i = kept - 1; i >= 0; i--) {
        const cr_dim *d = &r->plan.kept[i];
        int k = 0; /* its place among the axes */
        for (int j = 0; j < kept; j++) k += r->plan.kept[j].axis < d->axis;
        order.dims[k] = (cr_dim){d->n, step, 0, d->axis, false};
        step *= d->n;
    }
    cr_walk_begin(&walk, &order, &array);
    while (walk.left != 0) to = (char *)to + word * cr_walk_next(&walk, to, order.count);
}

PyObject *cr_py_answer_arrays(cr_py_request *r) {
    Py_ssize_t shape[CR_PY_MAX_DIMS];
    PyObject *values[CURED_MAX_OPS];
    int ndim = answer_shape(r, shape);
    uint64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= (uint64_t)shape[i];
    for (size_t i = 0; i < r->op_count; i++) {
        cured_dtype dtype = cured_axis_dtype(r->ops[i], r->input.dtype, r->options.result_dtype);
        cr_py_memory *memory = r->results[i], *other = NULL;
        r->results[i] = NULL;
        if (r->lacking[i] != NULL) {
            Py_XDECREF((PyObject *)memory);
            values[i] = r->lacking[i];
            r->lacking[i] = NULL;
            continue;
        }
        if (r->out_count != 0) {
            values[i] = cr_py_out_item(r, i);
            continue;
        }
        if (r->plan.permuted) {
            other = cr_py_memory_new(dtype, ndim, shape, false);
            if (other != NULL) permute(r, cured_dtype_size(dtype), cr_py_memory_data(memory), cr_py_memory_data(other));
            Py_DECREF(memory);
            memory = other;
        }
        if ((dtype == CURED_BF16 || dtype == CURED_F8_E4M3 || dtype == CURED_F8_E5M2) && memory != NULL) {
            other = widen(memory, dtype, count, ndim, shape);
            Py_DECREF(memory);
            memory = other;
        }
        values[i] = memory != NULL ? cr_py_memory_array(memory) : NULL;
    }
    if (!r->single) return cr_py_answer_result(r, values);
    if (values[0] == NULL || !PyExceptionInstance_Check(values[0])) return values[0];
    PyErr_SetObject((PyObject *)Py_TYPE(values[0]), values[0]);
    Py_DECREF(values[0]);
    return NULL;
}
