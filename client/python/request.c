/* request: what is asked, from the arguments of a call to a plan; and the way from there to the answer.
 *
 * Thread: with the GIL. Owner: a request lies on its function's stack; arguments are borrowed from the caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/python/extension.h"
#include "client/python/tensor.h"
#include "kernels/core/op.h"

/* ---- Arguments ---- */

enum keyword {
    AXIS,
    DTYPE,
    KEEPDIMS,
    WHERE,
    INITIAL,
    NAN_RULE,
    CLIENT,
    DDOF,
    OVERFLOW_RULE,
    FIRST,
    OUT,
    SHAPE,
    START,
    OFFSETS,
    KEYS,
    GROUPS,
    DROP,
    ASKED,
    SECOND,
    NULLS,
    MIN_COUNT,
    CORRECTION,
    KEYWORDS
};
static const char *const keyword_names[KEYWORDS] = {"axis",   "dtype",   "keepdims",  "where",     "initial", "nan",
                                                    "client", "ddof",    "overflow",  "first",     "out",     "shape",
                                                    "start",  "offsets", "keys",      "groups",    "drop",    "_asked",
                                                    "second", "nulls",   "min_count", "correction"};
static PyObject *interned[KEYWORDS];

/* Keyword names in calls are interned, so that comparing addresses is nearly always enough. */
static int keyword_of(PyObject *name) {
    for (int i = 0; i < KEYWORDS; i++) {
        if (interned[i] == NULL) interned[i] = PyUnicode_InternFromString(keyword_names[i]);
        if (interned[i] == name) return i;
    }
    for (int i = 0; i < KEYWORDS; i++)
        if (interned[i] != NULL && PyUnicode_Compare(interned[i], name) == 0) return i;
    PyErr_Format(PyExc_TypeError, "there is no argument '%U'", name);
    return -1;
}

/* One of two words; -1 with an exception. */
static int word_of(PyObject *value, const char *keyword, const char *zero, const char *one) {
    if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, zero) == 0) return 0;
    if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, one) == 0) return 1;
    PyErr_Format(PyExc_ValueError, "%s: %R, must be '%s' or '%s'", keyword, value, zero, one);
    return -1;
}

bool cr_py_number(PyObject *value, const char *keyword, uint64_t *out) {
    if (!PyIndex_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: an integer is wanted, not %R", keyword, (PyObject *)Py_TYPE(value));
        return false;
    }
    PyObject *number = PyNumber_Index(value);
    unsigned long long n = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "%s: must be 0 to 2^64 - 1", keyword);
    *out = n;
    return !PyErr_Occurred();
}

static bool take_object(PyObject **to, PyObject *value) {
    *to = value != Py_None ? value : NULL;
    return true;
}

/* An argument of two values. */
static bool take_word(cr_py_request *r, enum keyword keyword, PyObject *value) {
    const int word = keyword == NAN_RULE        ? word_of(value, "nan", "propagate", "skip")
                     : keyword == OVERFLOW_RULE ? word_of(value, "overflow", "error", "wrap")
                     : keyword == NULLS         ? word_of(value, "nulls", "skip", "error")
                                                : PyObject_IsTrue(value);
    const bool second = word == 1;
    if (keyword == NAN_RULE) r->options.nan = second ? CURED_NAN_SKIP : CURED_NAN_PROPAGATE;
    if (keyword == OVERFLOW_RULE) r->options.overflow = second ? CURED_OVERFLOW_WRAP : CURED_OVERFLOW_ERROR;
    if (keyword == NULLS) r->strict = second;
    if (keyword == KEEPDIMS) r->keepdims = second;
    if (keyword == DROP) r->by_key.drop = second;
    return word >= 0;
}

static bool take_option(cr_py_request *r, int keyword, PyObject *value) {
    switch ((enum keyword)keyword) {
        case AXIS:
            return take_object(&r->axis, value);
        case DTYPE:
            return value == Py_None || cr_py_dtype(value, &r->options.result_dtype, NULL);
        case WHERE:
            r->where = value != Py_None && value != Py_True ? value : NULL;
            return true;
        case INITIAL:
            return take_object(&r->initial, value);
        case OUT:
            return take_object(&r->out, value);
        case DDOF:
        case CORRECTION: /* the Array API's word */
            return cr_py_ddof_take(r, value);
        case FIRST:
            r->options.unplaced = r->partial && value == Py_None;
            r->has_first = !r->options.unplaced;
            if (r->options.unplaced) return true;
            if (r->partial) return cr_py_number(value, "first", &r->options.first);
            PyErr_SetString(PyExc_TypeError, "first: only a partial has one");
            return false;
        case SHAPE:
            return take_object(&r->shape, value);
        case START:
            return take_object(&r->start, value);
        case OFFSETS:
            return take_object(&r->offsets, value);
        case KEYS:
            return take_object(&r->keys, value);
        case GROUPS:
            return take_object(&r->groups, value);
        case SECOND:
            return take_object(&r->second, value);
        case KEEPDIMS:
        case DROP:
        case NAN_RULE:
        case OVERFLOW_RULE:
        case NULLS:
            return take_word(r, (enum keyword)keyword, value);
        case MIN_COUNT:
            return value == Py_None || cr_py_number(value, "min_count", &r->min_count);
        case ASKED:
            return cr_py_search_ask(r, value);
        case CLIENT:
            if (value == Py_None) return true;
            if (Py_TYPE(value) != cr_py_client_type) {
                PyErr_Format(PyExc_TypeError, "client: a cured.Client is wanted, not %R", (PyObject *)Py_TYPE(value));
                return false;
            }
            r->client = (cr_py_client *)value;
            return true;
        case KEYWORDS:
            break;
    }
    return true;
}

bool cr_py_request_options(cr_py_request *r, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const cured_options defaults = CURED_OPTIONS_INIT;
    r->options = defaults;
    r->marks.own = NULL;
    r->shape = r->start = r->offsets = r->keys = r->groups = r->second = NULL;
    r->borders = r->pair = NULL;
    r->pair_own = NULL;
    r->by_key.drop = r->has_keys = r->strict = r->has_ddof = false;
    r->fraction = NULL;
    r->min_count = 0;
    if (nargs > 1 || (nargs == 1 && r->partial)) {
        PyErr_SetString(PyExc_TypeError, "only the array, the ops and the axis go without their names");
        return false;
    }
    if (nargs == 1 && !take_option(r, AXIS, args[0])) return false;
    Py_ssize_t named = kwnames != NULL ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        int keyword = keyword_of(PyTuple_GetItem(kwnames, i));
        if (keyword < 0 || !take_option(r, keyword, args[nargs + i])) return false;
    }
    return true;
}

/* Raises what cured-client would say. */
static bool unknown_op(PyObject *name) {
    const char *op;
    PyObject *names = PyList_New(0);
    bool good = names != NULL;
    for (size_t i = 0; good && (op = cured_op_list(i)) != NULL; i++) {
        PyObject *text = PyUnicode_FromString(op);
        good = text != NULL && PyList_Append(names, text) == 0;
        Py_XDECREF(text);
    }
    PyObject *pair = good ? PyTuple_Pack(2, name, names) : NULL;
    if (pair != NULL) Py_XDECREF(cr_py_helper("cured._adapt", "unknown_op", pair));
    Py_XDECREF(pair);
    Py_XDECREF(names);
    return false;
}

/* One op's name, with spaces around it perhaps. */
static bool take_op(PyObject *name, cured_op *op) {
    cured_error error;
    char word[32];
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "ops: names are wanted, such as 'sum', not %R", (PyObject *)Py_TYPE(name));
        return false;
    }
    PyObject *text = PyUnicode_AsUTF8String(name);
    if (text == NULL) return false;
    const char *from = PyBytes_AsString(text);
    size_t bytes = strlen(from);
    while (*from == ' ') from++, bytes--;
    while (bytes > 0 && from[bytes - 1] == ' ') bytes--;
    if (bytes >= sizeof word) bytes = 0; /* no op's name is so long */
    memcpy(word, from, bytes);
    word[bytes] = '\0';
    Py_DECREF(text);
    return cured_op_parse(word, op, &error) == CURED_OK || unknown_op(name);
}

bool cr_py_request_ops(cr_py_request *r, PyObject *ops) {
    PyObject *comma = NULL, *items;
    if (PyUnicode_Check(ops)) {
        comma = PyUnicode_FromString(",");
        items = comma != NULL ? PyUnicode_Split(ops, comma, -1) : NULL;
        Py_XDECREF(comma);
    } else {
        items = PySequence_List(ops);
    }
    if (items == NULL) return false;
    Py_ssize_t n = PyList_Size(items);
    bool good = n >= 1 && n <= CURED_MAX_OPS;
    if (!good) PyErr_Format(PyExc_ValueError, "ops: %zd of them, must be 1 to %d", n, CURED_MAX_OPS);
    for (Py_ssize_t i = 0; i < n && good; i++) good = take_op(PyList_GetItem(items, i), &r->ops[i]);
    Py_DECREF(items);
    r->op_count = good ? (size_t)n : 0;
    return good;
}

/* ---- The plan ---- */

/* Raises NumPy's exception. */
static bool no_axis(Py_ssize_t k, int ndim) {
    PyObject *pair = Py_BuildValue("(ni)", k, ndim);
    PyObject *error = pair != NULL ? cr_py_helper("cured._adapt", "axis_error", pair) : NULL;
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(pair);
    Py_XDECREF(error);
    return false;
}

static bool add_axis(PyObject *item, int ndim, uint64_t *axes) {
    if (!PyIndex_Check(item)) {
        PyErr_Format(PyExc_TypeError, "axis: an integer or a tuple of integers is wanted, not %R",
                     (PyObject *)Py_TYPE(item));
        return false;
    }
    Py_ssize_t k = PyNumber_AsSsize_t(item, PyExc_ValueError);
    if (k == -1 && PyErr_Occurred()) return false;
    if (k < -ndim || k >= ndim) return no_axis(k, ndim);
    if (k < 0) k += ndim;
    if ((*axes >> k & 1) != 0) {
        PyErr_Format(PyExc_ValueError, "axis: %zd comes twice", k);
        return false;
    }
    *axes |= (uint64_t)1 << k;
    return true;
}

static bool take_axes(const cr_py_request *r, int ndim, uint64_t *axes) {
    *axes = 0;
    if (!PyTuple_Check(r->axis)) return add_axis(r->axis, ndim, axes);
    for (Py_ssize_t i = 0; i < PyTuple_Size(r->axis); i++)
        if (!add_axis(PyTuple_GetItem(r->axis, i), ndim, axes)) return false;
    return true;
}

static bool has_ordered(const cr_py_request *r) {
    for (size_t i = 0; i < r->op_count; i++)
        if (cr_op_is_ordered((cr_op)r->ops[i], (cr_dtype)r->input.dtype)) return true;
    return false;
}

bool cr_py_request_has_float_prod(const cr_py_request *r) {
    for (size_t i = 0; i < r->op_count; i++)
        if (cr_op_is_ordered((cr_op)r->ops[i], (cr_dtype)r->input.dtype) &&
            cr_op_closing((cr_op)r->ops[i]) == CR_CLOSING_PRODUCT)
            return true;
    return false;
}

bool cr_py_request_is_ordered(const cr_py_request *r) { return (r->partial && !r->options.unplaced) || has_ordered(r); }

/* Why a request has no partial; NULL: it has one. A part under a mask has no position, because elements are left out of it. */
static const char *no_partial(const cr_py_request *r, bool whole) {
    if (!whole) return "axis: a partial is of a whole array";
    if (r->out != NULL) return "out: a partial is no array";
    if (!r->input.is_masked) return NULL;
    if (r->has_first)
        return "first: a part under a mask has no position, because elements are left out: leave first away";
    if (cr_py_request_has_float_prod(r))
        return "ops: a part under a mask has no position, which prod of floats needs: ask cured.prod of the array";
    if (has_ordered(r))
        return "ops: a part under a mask has no position, which argmin, argmax and digest need: ask for them of the "
               "array";
    return NULL;
}

static bool check_partial(cr_py_request *r, bool whole) {
    const char *why = no_partial(r, whole);
    if (why != NULL) PyErr_SetString(PyExc_TypeError, why);
    if (r->input.is_masked) r->options.unplaced = true;
    return why == NULL;
}

/* A file is read as it lies, or in C order; nothing in between. */
static bool plan_file(cr_py_request *r, uint64_t axes, bool whole) {
    cr_py_input *in = &r->input;
    if (!cr_py_request_part_file(r)) return false;
    if (r->plan.contiguous) return true;
    if (in->file.fortran && in->file.packed == NULL) {
        Py_ssize_t step = in->size;
        for (int i = in->ndim - 1; i >= 0; i--) {
            in->strides[i] = step;
            step = cr_py_step(step, in->shape[i]);
        }
        in->file.in_c_order = true;
        if (!cr_py_plan_make(&r->plan, in, axes, whole, r->ordered) || !cr_py_request_part_file(r)) return false;
        if (r->plan.contiguous) return true;
    }
    PyErr_SetString(PyExc_ValueError,
                    in->file.packed != NULL && in->file.fortran
                        ? "the file's array is deflated and in Fortran order, and these ops count in C order: reduce "
                          "numpy.load(path)[name]"
                        : "axis: axes of a file go together where they are neighbours and the order of the file is "
                          "the array's: reduce numpy.load(path, mmap_mode='r')");
    return false;
}

/* nulls="error": nothing may be missing from the array itself. */
static bool check_nulls(const cr_py_request *r) {
    if (!r->strict || !r->input.is_masked) return true;
    PyObject *none = cr_py_helper("cured._adapt", "no_nulls", r->array);
    Py_XDECREF(none);
    return none != NULL;
}

bool cr_py_request_plan(cr_py_request *r) {
    uint64_t axes = 0;
    if (!cr_py_input_take(&r->input, r->array) || !check_nulls(r)) return false;
    if (r->where != NULL && !cr_py_input_where(&r->input, r->array, r->where)) return false;
    if (!cr_py_block_take(r) || !cr_py_segments_take(r) || !cr_py_keys_take(r) || !cr_py_second_take(r)) return false;
    if (r->initial != NULL && !cr_py_initial_check(r)) return false;
    bool whole = r->axis == NULL && !r->keepdims;
    if (!whole) {
        int ndim = r->input.ndim;
        uint64_t all = ndim > 63 ? ~(uint64_t)0 : ((uint64_t)1 << ndim) - 1;
        if (r->axis == NULL)
            axes = all;
        else if (!take_axes(r, ndim, &axes))
            return false;
        whole = axes == all && !r->keepdims;
        r->axes = axes;
    }
    if (r->partial && !check_partial(r, whole)) return false;
    r->ordered = r->offsets != NULL || r->keys != NULL || cr_py_request_is_ordered(r);
    const bool good = cr_py_plan_make(&r->plan, &r->input, axes, whole, r->ordered) &&
                      (r->input.kind != CR_PY_FILE || plan_file(r, axes, whole)) && cr_py_second_plan(r, axes, whole);
    if (good && !whole) r->along = (cured_axis){r->plan.axis.outer, r->plan.axis.n, r->plan.axis.inner};
    return good && cr_py_keys_plan(r);
}

void cr_py_request_release(cr_py_request *r) {
    free(r->marks.own);
    r->marks.own = NULL;
    cr_py_input_release(&r->input);
    cr_py_keys_release(r);
    cr_py_second_release(r);
    cr_py_out_release(r);
    cr_py_segments_release(r);
    if (!r->has_results) return;
    for (size_t i = 0; i < r->op_count; i++) {
        Py_CLEAR(r->results[i]);
        Py_CLEAR(r->lacking[i]);
    }
}

/* ---- The way ---- */

static uint64_t bytes_of(const cr_py_request *r) { return r->plan.count * r->input.size; }

/* Where it is folded: heap arrays, and files that are read in blocks, here; other files and shared memory by the daemon. */
static cr_py_client *client_of(const cr_py_request *r) {
    uint64_t offset;
    if (r->client != NULL) return r->client;
    if (cr_py_wants_order(r) && r->input.kind != CR_PY_CUDA) return cr_py_client_local(); /* no daemon reads twice */
    if (cr_py_source_wanted(&r->input) || r->options.mask != NULL || r->options.layout != NULL || r->offsets != NULL ||
        r->keys != NULL || r->second != NULL)
        return cr_py_client_local();
    if (r->input.kind != CR_PY_HOST) return cr_py_client_auto();
    bool is_shared = r->plan.contiguous && cr_py_memory_find(r->plan.data, bytes_of(r), &offset) != NULL;
    return is_shared ? cr_py_client_auto() : cr_py_client_local();
}

static PyObject *run_call(cr_py_request *r, cr_py_client *client, cr_py_link *link) {
    cr_py_job job;
    PyObject *answer = NULL;
    job.has_extra = false;
    if (!cr_py_request_is_whole(r) && !r->partial && !cr_py_answer_room(r)) return NULL;
    if (!cr_py_job_do(&job, r, &r->plan, client, link)) return NULL;
    answer = cr_py_answer(r, job.call);
    cr_py_job_end(&job);
    return answer;
}

/* A small array of the heap, whole: no call is made for it. */
static bool goes_here(const cr_py_request *r) {
    uint64_t offset;
    return r->client == NULL && r->input.kind == CR_PY_HOST && cr_py_request_is_whole(r) && r->plan.contiguous &&
           !r->partial && r->options.asked == NULL && r->plan.mask == NULL && r->initial == NULL &&
           bytes_of(r) <= CR_PY_SMALL_BYTES && cr_py_memory_find(r->plan.data, bytes_of(r), &offset) == NULL;
}

static PyObject *run_here(cr_py_request *r) {
    cured_values *values = NULL;
    cured_error error;
    if (cured_reduce_here(r->input.dtype, r->ops, r->op_count, r->plan.data, r->plan.count, &r->options, &values,
                          &error) != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    PyObject *answer = cr_py_answer_values(r, values);
    cured_values_free(values);
    return answer;
}

static PyObject *run_on(cr_py_request *r, cr_py_client *client, cr_py_link *link) {
    const cr_py_plan unparted = r->plan;
    if (cr_py_request_masks_beside(r, link) && !cr_py_request_part_mask(r)) return NULL;
    if (cr_py_request_in_slices(r)) return cr_py_request_slices(r, client, link);
    PyObject *answer = run_call(r, client, link);
    const bool is_old = answer == NULL && unparted.mask != NULL && r->offsets == NULL && r->keys == NULL &&
                        r->second == NULL && PyErr_ExceptionMatches(PyExc_NotImplementedError);
    if (!is_old || r->out != NULL || cr_py_request_has_float_prod(r)) return answer;
    PyErr_Clear(); /* a daemon that takes no masks */
    r->plan = unparted;
    r->options.mask = NULL;
    return cr_py_request_slices(r, client, link);
}

PyObject *cr_py_request_run(cr_py_request *r) {
    PyObject *answer = NULL;
    r->has_results = false;
    const bool planned = cr_py_request_plan(r) && (r->client != NULL || cr_py_request_part_mask(r)) &&
                         (r->out == NULL || cr_py_out_type(r));
    const bool here = r->borders == NULL || r->borders->kind != CR_PY_CUDA;
    if (planned && r->plan.count == 0 && r->client == NULL && r->input.kind == CR_PY_CUDA && here) {
        r->input.kind = CR_PY_HOST; /* there is nothing that a GPU could read, and a mask of no elements is one, too */
        if (r->input.is_masked && r->initial == NULL) r->options.mask = &r->input.cuda_mask;
    }
    if (planned && cr_py_cuda_wanted(r)) {
        answer = cr_py_cuda_run(r);
    } else if (planned && goes_here(r)) {
        answer = run_here(r);
    } else if (planned) {
        cr_py_client *client = client_of(r);
        cr_py_link *link = client != NULL ? cr_py_link_take(client) : NULL;
        if (link != NULL) {
            answer = run_on(r, client, link);
            cr_py_link_give(client, link);
        }
    }
    if (answer != NULL && r->out != NULL && r->out_count == 0) answer = cr_py_out_store(r, answer);
    cr_py_request_release(r);
    return answer;
}
