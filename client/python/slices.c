/* slices: reductions with a mask or a first value (initial=). A mask leaves each slice along an axis with a length of its own,
 * so every slice is a call. Indices count the elements under the mask, too (cr_py_answer_index). A first value of floats is one more element behind the slice; for integers it is combined with
 * the exact answer by _initial.py, because it need not be of the array's type.
 *
 * Thread: with the GIL. Owner: the request. */
#include <math.h>
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/op.h"
#include "kernels/core/round.h"

/* initial= as an element of a float type. Python's integers are compared as they are: none is rounded unseen. */
static bool float_element(PyObject *initial, cured_dtype dtype, uint8_t out[8]) {
    const double x = PyFloat_AsDouble(initial);
    if (x == -1 && PyErr_Occurred()) {
        const bool is_large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
        cr_py_input_refused("initial");
        if (is_large) PyErr_SetString(PyExc_ValueError, "initial: no element of a float type is so large");
        return false;
    }
    const uint64_t bits = cr_float_nearest((cr_dtype)dtype, x);
    memcpy(out, &bits, cured_dtype_size(dtype));
    PyObject *number = PyFloat_FromDouble(x);
    const bool same =
        number != NULL && (!PyLong_Check(initial) || PyObject_RichCompareBool(number, initial, Py_EQ) == 1);
    Py_XDECREF(number);
    if (same && (isnan(x) || cr_float_value((cr_dtype)dtype, bits) == x)) return true;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError,
                     "initial: %S is no value of %s, the array's type; convert the array or round initial", initial,
                     cured_dtype_name(dtype));
    return false;
}

static bool of_integers(const cr_py_request *r) { return cr_dtype_kind((cr_dtype)r->input.dtype) != CR_KIND_FLOAT; }

static bool is_integer(PyObject *initial) {
    PyObject *number = PyIndex_Check(initial) ? PyNumber_Index(initial) : NULL; /* arrays have the method, too */
    Py_XDECREF(number);
    if (number == NULL) PyErr_SetString(PyExc_TypeError, "initial: an integer is wanted for an array of integers");
    return number != NULL;
}

const char *cr_py_joining(cr_op op) {
    if (cr_op_divisor(op) != CR_DIVISOR_ONE || cr_op_is_root(op)) return NULL;
    switch (cr_op_term(op)) {
        case CR_TERM_VALUE:
            return "add";
        case CR_TERM_PRODUCT:
            return "multiply";
        case CR_TERM_LEAST:
            return "least";
        case CR_TERM_GREATEST:
            return "greatest";
        case CR_TERM_NONE:
        case CR_TERM_MAGNITUDE:
        case CR_TERM_SQUARE:
        case CR_TERM_SPREAD:
        case CR_TERM_INNER:
        case CR_TERM_APART:
        case CR_TERM_WEIGHTED:
        case CR_TERM_LEAST_INDEX:
        case CR_TERM_GREATEST_INDEX:
        case CR_TERM_GREATEST_MAGNITUDE:
        case CR_TERM_RANGE:
        case CR_TERM_ELEMENTS:
        case CR_TERM_NONZERO:
        case CR_TERM_NANS:
        case CR_TERM_INFINITIES:
        case CR_TERM_SOME:
        case CR_TERM_EVERY:
        case CR_TERM_BITS_AND:
        case CR_TERM_BITS_OR:
        case CR_TERM_BITS_XOR:
        case CR_TERM_DIGEST:
        case CR_TERM_MIDDLE:
        case CR_TERM_QUANTILE:
            break;
    }
    return NULL;
}

bool cr_py_initial_check(const cr_py_request *r) {
    uint8_t element[8];
    if (!r->single || cr_py_joining((cr_op)r->ops[0]) == NULL)
        PyErr_SetString(PyExc_TypeError, "initial: only sum, prod, min and max take it");
    else if (of_integers(r) && r->options.result_dtype != CURED_DTYPE_DEFAULT)
        PyErr_SetString(PyExc_ValueError,
                        "dtype: not with initial and integers, because the sum would be rounded twice");
    else if (!of_integers(r) && !PyNumber_Check(r->initial))
        PyErr_Format(PyExc_TypeError, "initial: a number is wanted, not %R", (PyObject *)Py_TYPE(r->initial));
    else
        return of_integers(r) ? is_integer(r->initial) : float_element(r->initial, r->input.dtype, element);
    return false;
}

/* An integer answer (NULL: there is none) with the first value; takes over `value`. */
static PyObject *combine(const cr_py_request *r, PyObject *value) {
    const char *kind = r->input.dtype == CURED_BOOL                              ? "b" /* as NumPy's dtype.kind */
                       : cr_dtype_kind((cr_dtype)r->input.dtype) == CR_KIND_SINT ? "i"
                                                                                 : "u";
    PyObject *all = Py_BuildValue("(sOOsi)", cr_py_joining((cr_op)r->ops[0]), value != NULL ? value : Py_None,
                                  r->initial, kind, r->options.overflow == CURED_OVERFLOW_WRAP);
    Py_XDECREF(value);
    PyObject *answer = all != NULL ? cr_py_helper("cured._initial", "combine", all) : NULL;
    Py_XDECREF(all);
    return answer;
}

/* Whether a product that no type holds is 0 with the first value. */
static bool is_nought(const cr_py_request *r, const cured_value *value) {
    return cured_value_status(value, NULL) == CURED_OUT_OF_RANGE && PyObject_IsTrue(r->initial) == 0;
}

/* The value of the first op, with the first value. */
static PyObject *with_initial(const cr_py_request *r, const cured_value *value) {
    bool nothing = cured_value_status(value, NULL) == CURED_INVALID_ARGUMENT; /* min, max of no elements */
    PyObject *answer = nothing ? NULL : is_nought(r, value) ? PyLong_FromLong(1) : cr_py_answer_value(value);
    return answer == NULL && !nothing ? NULL : combine(r, answer);
}

/* Of integers no type is asked for beside a first value. */
static bool is_product_of_integers(const cr_py_request *r) {
    return r->initial != NULL && of_integers(r) && r->options.overflow != CURED_OVERFLOW_WRAP &&
           cr_op_term((cr_op)r->ops[0]) == CR_TERM_PRODUCT;
}

/* Runs one slice; the call's answers are in job->call. */
static bool run_slice(cr_py_request *r, cr_py_job *job, const cr_py_plan *plan, cr_py_client *client,
                      cr_py_link *link) {
    job->has_extra = r->initial != NULL && !of_integers(r);
    if (job->has_extra && !float_element(r->initial, r->input.dtype, job->extra)) return false;
    /* With the first value a product may fit 64 bits that does not without it, as -1 and 2^63. */
    if (is_product_of_integers(r)) r->options.result_dtype = CURED_I128;
    const bool good = cr_py_job_do(job, r, plan, client, link);
    if (is_product_of_integers(r)) r->options.result_dtype = CURED_DTYPE_DEFAULT;
    return good;
}

static PyObject *run_whole(cr_py_request *r, cr_py_client *client, cr_py_link *link) {
    cr_py_job job;
    if (!run_slice(r, &job, &r->plan, client, link)) return NULL;
    PyObject *answer = r->initial != NULL && of_integers(r) ? with_initial(r, cured_call_value(job.call, 0))
                                                            : cr_py_answer(r, job.call);
    cr_py_job_end(&job);
    return answer;
}

/* Stores an integer answer as an element of the results' type. */
static bool store_integer(PyObject *answer, cured_dtype dtype, void *to) {
    PyObject *check = Py_BuildValue("(Os)", answer, cured_dtype_name(dtype));
    PyObject *bytes = check != NULL ? cr_py_helper("cured._initial", "element", check) : NULL;
    Py_XDECREF(check);
    if (bytes == NULL) return false;
    memcpy(to, PyBytes_AsString(bytes), cured_dtype_size(dtype));
    Py_DECREF(bytes);
    return true;
}

static bool store(const cr_py_request *r, size_t index, const cured_value *value, uint64_t at) {
    cured_error error;
    size_t bytes;
    cured_dtype dtype = cured_axis_dtype(r->ops[index], r->input.dtype, r->options.result_dtype);
    char *to = (char *)cr_py_memory_data(r->results[index]) + at * cured_dtype_size(dtype);
    if (r->initial != NULL && of_integers(r)) {
        PyObject *answer = with_initial(r, value);
        bool good = answer != NULL && store_integer(answer, dtype, to);
        Py_XDECREF(answer);
        return good;
    }
    if (cured_value_status(value, &error) != CURED_OK) {
        cr_py_raise(&error);
        return false;
    }
    if (cured_value_dtype(value) != dtype) {
        PyErr_Format(PyExc_OverflowError, "the %s of slice %llu does not fit %s; dtype='f8' rounds it",
                     cured_op_name(r->ops[index]), (unsigned long long)at, cured_dtype_name(dtype));
        return false;
    }
    if (cr_py_answer_is_index(r->ops[index])) {
        const uint64_t place = cr_py_answer_index(r, value);
        memcpy(to, &place, sizeof place);
        return true;
    }
    memcpy(to, cured_value_bytes(value, &bytes), cured_dtype_size(dtype));
    return true;
}

/* Stores a slice's answer of each op. The first of an op that has no value is noted, and its other slices are left out. */
static bool store_all(cr_py_request *r, const cured_call *call, uint64_t slice) {
    for (size_t i = 0; i < r->op_count; i++) {
        if (r->lacking[i] != NULL || store(r, i, cured_call_value(call, i), slice)) continue;
        if (r->single || (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_OverflowError)))
            return false;
        r->lacking[i] = cr_py_answer_take_error();
    }
    return true;
}

/* One call for every slice, in C order of the axes that stay. */
static bool run_slices(cr_py_request *r, cr_py_input *slice, cr_py_client *client, cr_py_link *link) {
    Py_ssize_t at[CR_PY_MAX_DIMS] = {0};
    int kept[CR_PY_MAX_DIMS], kept_count = 0;
    uint64_t slices = 1;
    slice->ndim = 0;
    for (int i = 0; i < r->input.ndim; i++) {
        if ((r->axes >> i & 1) == 0) {
            slices *= (uint64_t)r->input.shape[i];
            kept[kept_count++] = i;
            continue;
        }
        slice->shape[slice->ndim] = r->input.shape[i];
        slice->strides[slice->ndim] = r->input.strides[i];
        slice->mask.strides[slice->ndim++] = r->input.mask.data != NULL ? r->input.mask.strides[i] : 0;
    }
    for (uint64_t s = 0; s < slices; s++) {
        cr_py_job job;
        slice->data = r->input.data;
        slice->mask.data = r->input.mask.data;
        for (int k = 0; k < kept_count; k++) {
            slice->data += at[k] * r->input.strides[kept[k]];
            if (slice->mask.data != NULL) slice->mask.data += at[k] * r->input.mask.strides[kept[k]];
        }
        if (!cr_py_plan_make(&r->plan, slice, 0, true, r->ordered)) return false;
        if (!run_slice(r, &job, &r->plan, client, link)) return false;
        bool good = store_all(r, job.call, s);
        cr_py_job_end(&job);
        if (!good || PyErr_CheckSignals() != 0) return false; /* short calls look for none */
        for (int k = kept_count - 1; k >= 0 && ++at[k] == r->input.shape[kept[k]]; k--) at[k] = 0;
    }
    return true;
}

PyObject *cr_py_request_slices(cr_py_request *r, cr_py_client *client, cr_py_link *link) {
    if (r->input.kind != CR_PY_HOST) {
        PyErr_SetString(PyExc_TypeError, "where, initial: only arrays of this process take them");
        return NULL;
    }
    if (r->plan.whole) return run_whole(r, client, link);
    if (!cr_py_answer_room(r)) return NULL;
    cr_py_input *slice = PyMem_Calloc(1, sizeof *slice);
    if (slice == NULL) return PyErr_NoMemory();
    slice->kind = r->input.kind;
    slice->dtype = r->input.dtype;
    slice->size = r->input.size;
    slice->swap = r->input.swap;
    slice->mask.keeps = r->input.mask.keeps;
    bool good = run_slices(r, slice, client, link);
    PyMem_Free(slice);
    if (!good) return NULL;
    r->plan.permuted = false; /* they were asked for in C order */
    r->plan.whole = false;
    return cr_py_answer_arrays(r);
}
