/* ops: the functions that Python calls: one for each op of op.def, reduce, describe and partial. The same functions are the
 * module's, where the first argument is the array; Client's, whose methods answer by that client; and File's, which is the
 * array itself.
 *
 * Thread: with the GIL. Owner: method tables live as long as the process. */
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/float_state.h"
#include "kernels/core/op.h"

/* A list of numbers is the array that NumPy makes of it; one of arrays goes to _lists.py. */
static bool take_array(cr_py_request *r, PyObject *array) {
    r->array = array;
    r->made = NULL;
    if (!cr_py_is_of_numbers(array)) return true;
    r->made = cr_py_helper("cured._adapt", "numbers", array);
    r->array = r->made;
    return r->made != NULL;
}

/* Behind begin() that was true. */
static void leave(cr_py_request *r) {
    Py_CLEAR(r->made);
    cr_py_leave();
}

/* What a function was called on: the module, a client, or a file. Moves args on behind the array. True: end() must follow. */
static bool begin(cr_py_request *r, PyObject *self, PyObject *const **args, Py_ssize_t *nargs) {
    r->axis = r->where = r->initial = r->out = NULL;
    r->out_count = 0;
    r->out_tensors = NULL;
    r->client = NULL;
    r->async = NULL;
    r->keepdims = r->partial = r->single = r->has_first = r->listed = false;
    r->takes_fraction = true;
    r->op_count = 0; /* so that what a failed call knows of its arguments may be looked at */
    r->min_count = 0;
    r->second = NULL;
    r->has_ddof = false;
    r->options.parameters = NULL;
    if (self != NULL && Py_TYPE(self) == cr_py_file_type) {
        r->array = self;
        r->made = NULL;
        return cr_py_enter();
    }
    if (self != NULL && Py_TYPE(self) == cr_py_client_type) r->client = (cr_py_client *)self;
    if (self != NULL && Py_TYPE(self) == cr_py_async_type) r->async = (cr_py_async *)self;
    if (*nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "an array is missing");
        return false;
    }
    PyObject *const array = (*args)[0];
    ++*args;
    --*nargs;
    if (!cr_py_enter()) return false;
    if (take_array(r, array)) return true;
    cr_py_leave();
    return false;
}

/* The arguments of a call behind its array and its ops. */
typedef struct arguments {
    PyObject *const *values;
    Py_ssize_t count; /* of those without names */
    PyObject *names;  /* of those behind them; NULL: there are none */
} arguments;

static bool is_list(const cr_py_request *r) { return cr_py_is_sequence(r->array); }

static PyObject *op_names(const cr_py_request *r) {
    PyObject *names = PyList_New(0);
    bool good = names != NULL;
    for (size_t i = 0; i < r->op_count && good; i++) {
        PyObject *name = PyUnicode_FromString(cured_op_name(r->ops[i]));
        good = name != NULL && PyList_Append(names, name) == 0;
        Py_XDECREF(name);
    }
    if (!good) Py_CLEAR(names);
    return names;
}

/* As bytes, which quantile takes for several. */
static bool give_shares(const cr_py_request *r, PyObject *options) {
    PyObject *q = PyBytes_FromStringAndSize((const char *)r->shares, (Py_ssize_t)(r->op_count * sizeof r->shares[0]));
    const bool good = q != NULL && PyDict_SetItemString(options, "q", q) == 0;
    Py_XDECREF(q);
    return good;
}

/* One of Python's files answers by a function. */
static PyObject *run_there(cr_py_request *r, const char *file, const char *function, const arguments *a) {
    const char *what = r->partial ? "partial" : r->single ? "" : "reduce";
    PyObject *names = op_names(r), *options = PyDict_New(), *all = NULL, *answer = NULL;
    bool good = names != NULL && options != NULL;
    if (good && a->count == 1) good = PyDict_SetItemString(options, "axis", a->values[0]) == 0;
    for (Py_ssize_t i = 0; a->names != NULL && i < PyTuple_Size(a->names) && good; i++)
        good = PyDict_SetItem(options, PyTuple_GetItem(a->names, i), a->values[a->count + i]) == 0;
    if (good && r->second != NULL) good = PyDict_SetItemString(options, "second", r->second) == 0;
    if (good && r->has_ddof) good = cr_py_ddof_give(r, options);
    if (good && r->options.parameters != NULL) good = give_shares(r, options);
    if (good)
        all = Py_BuildValue("(sOOOO)", what, r->array, names, r->client != NULL ? (PyObject *)r->client : Py_None,
                            options);
    if (all != NULL) answer = cr_py_helper(file, function, all);
    Py_XDECREF(all);
    Py_XDECREF(options);
    Py_XDECREF(names);
    return answer;
}

/* _lists.py a list of arrays, or what is none; _chunks.py a container. */
static PyObject *run_in_python(cr_py_request *r, const char *file, const arguments *a) {
    return run_there(r, file, "answer", a);
}

/* min_count: _counted.py asks for the count, too; of an AsyncClient it says what is to be awaited. */
static PyObject *run_counted(cr_py_request *r, const arguments *a) {
    if (r->partial) return PyErr_Format(PyExc_TypeError, "min_count: a partial takes none");
    return run_there(r, "cured._counted", r->async != NULL ? "later" : "answer", a);
}

/* Whether an array has rows, and all of them are of no elements. */
static bool has_hollow_rows(PyObject *array) {
    PyObject *shape = PyObject_GetAttrString(array, "shape");
    if (shape == NULL) PyErr_Clear();
    const Py_ssize_t ndim = shape != NULL && PyTuple_Check(shape) ? PyTuple_Size(shape) : 0;
    bool hollow = false;
    for (Py_ssize_t i = 1; i < ndim && !hollow; i++) {
        PyObject *n = PyTuple_GetItem(shape, i);
        hollow = n != NULL && PyLong_Check(n) && PyLong_AsLong(n) == 0;
    }
    PyErr_Clear();
    Py_XDECREF(shape);
    return hollow;
}

/* An array in memory, or a file. */
static PyObject *run_here(cr_py_request *r) {
    PyObject *held[CR_PY_BESIDE], *answer = NULL, *const second = r->second;
    if (cr_py_beside_take(r, held)) /* a call that goes on holds what it reads */
        answer = r->async != NULL ? cr_py_async_start(r->async, r) : cr_py_request_run(r);
    cr_py_beside_release(held);
    r->second = second; /* the caller's again, for run_complex() */
    return answer;
}

static bool has_ranked(const cr_py_request *r) {
    for (size_t i = 0; i < r->op_count; i++)
        if (cr_op_closing((cr_op)r->ops[i]) == CR_CLOSING_ORDER) return true;
    return false;
}

static PyObject *run_request(cr_py_request *r, const arguments *a) {
    const bool listed = is_list(r), stored = !listed && cr_py_is_stored(r->array);
    if ((listed || stored) && r->async != NULL)
        return PyErr_Format(PyExc_TypeError, "AsyncClient takes no %s: cured.Client does",
                            listed ? "lists" : "containers that are read in blocks");
    if (r->async != NULL && r->client != NULL)
        return PyErr_Format(PyExc_TypeError, "client: an AsyncClient answers by itself");
    if (r->min_count != 0 && has_ranked(r)) return PyErr_Format(PyExc_TypeError, "min_count: a quantile takes none");
    if (r->min_count != 0) return run_counted(r, a);
    if (r->fraction != NULL && (r->async != NULL || r->partial))
        return PyErr_Format(PyExc_TypeError, "ddof: %s takes a whole number", r->partial ? "a partial" : "AsyncClient");
    if (r->fraction != NULL) return run_in_python(r, "cured._fraction", a);
    if (listed) {
        PyObject *quick = cr_py_cuda_list(r);
        return quick != NULL || PyErr_Occurred() ? quick : run_in_python(r, "cured._lists", a);
    }
    if (stored) return run_in_python(r, "cured._chunks", a);
    if (r->keys != NULL && !r->partial && has_hollow_rows(r->array)) {
        if (r->async != NULL && r->out != NULL)
            return PyErr_Format(PyExc_TypeError, "AsyncClient takes no out: cured.Client does");
        return run_in_python(r, "cured._hollow", a); /* at once: there is nothing to wait for */
    }
    return run_here(r);
}

/* Whether the exception may come of the type of the array, which libraries of tensors refuse in several ways, or of that of dtype=. An array
 * whose attributes call cured again is not asked for its type once more: each call would double the calls. */
static bool may_be_complex(const cr_py_request *r, bool good, const arguments *a) {
    const bool of_type = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_BufferError) ||
                         PyErr_ExceptionMatches(PyExc_RuntimeError);
    return of_type && !PyErr_ExceptionMatches(PyExc_RecursionError) && r->op_count != 0 && a->count <= 1 &&
           (r->min_count == 0 || !good); /* or else run_counted() has called again */
}

/* Whether a function of Python's says yes to the subject, so that the exception gives way to another answer; else it stays. It is kept
 * before anything is asked, which would clear it. of_arrays: only an array alone is asked about, no list and no container. */
static bool gives_way(const cr_py_request *r, bool of_arrays, const char *file, const char *function,
                      PyObject *subject) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const bool asked = !of_arrays || (!is_list(r) && !cr_py_is_stored(r->array));
    PyObject *found = asked ? cr_py_helper(file, function, subject) : NULL;
    const bool yes = found == Py_True;
    Py_XDECREF(found);
    if (yes) {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    }
    return yes;
}

/* What was refused is _complex.py's where the array is of complex numbers. Where it is not, or is one that an AsyncClient does not take, the
 * exception stays. */
static PyObject *run_complex(cr_py_request *r, bool good, const arguments *a) {
    if (!may_be_complex(r, good, a) || !gives_way(r, r->async != NULL, "cured._adapt", "has_complex", r->array))
        return NULL;
    r->has_ddof = false; /* it takes the arguments as they are, because not all have been looked at */
    return run_there(r, "cured._complex", r->async != NULL ? "later" : "answer", a);
}

/* Two arrays that were refused are _alike.py's where one type holds the elements of both, or elements of the second are missing. Else the
 * exception stays. */
static PyObject *run_alike(cr_py_request *r, const arguments *a) {
    const bool of_arrays = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError);
    if (!of_arrays || r->second == NULL || a->count > 1) return NULL;
    PyObject *pair = PyTuple_Pack(2, r->array, r->second);
    const bool unlike = pair != NULL && gives_way(r, true, "cured._alike", "is_unlike", pair);
    Py_XDECREF(pair);
    return unlike ? run_there(r, "cured._alike", r->async != NULL ? "later" : "answer", a) : NULL;
}

/* Of a good request the answer. What Python's files compute of floats counts too, such as casts to the type of out=. */
static PyObject *end(cr_py_request *r, bool good, const arguments *a) {
    const uint64_t state = cr_float_enter();
    PyObject *answer = good ? run_request(r, a) : NULL;
    if (answer == NULL) answer = run_complex(r, good, a);
    if (answer == NULL && good) answer = run_alike(r, a);
    cr_float_leave(state);
    leave(r);
    return answer;
}

/* Several shares: cured/_order.py asks for each. */
static PyObject *spread(PyObject *self, PyObject *array, const arguments *a) {
    PyObject *given = PyTuple_New(a->count), *options = PyDict_New(), *all = NULL, *answer = NULL;
    bool good = given != NULL && options != NULL;
    for (Py_ssize_t i = 0; i < a->count && good; i++) {
        Py_INCREF(a->values[i]);
        good = PyTuple_SetItem(given, i, a->values[i]) == 0;
    }
    for (Py_ssize_t i = 0; a->names != NULL && i < PyTuple_Size(a->names) && good; i++)
        good = PyDict_SetItem(options, PyTuple_GetItem(a->names, i), a->values[a->count + i]) == 0;
    if (good) all = Py_BuildValue("(OOOO)", self, array, given, options);
    if (all != NULL) answer = cr_py_helper("cured._order", "spread", all);
    Py_XDECREF(all);
    Py_XDECREF(options);
    Py_XDECREF(given);
    return answer;
}

static PyObject *run_quantile(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, cured_op op) {
    cr_py_request r;
    if (!begin(&r, self, &args, &nargs)) return NULL;
    const bool leads = nargs > 0; /* q, without its name */
    const arguments a = {args, nargs, kwnames}, behind = {args + leads, nargs - leads, kwnames};
    r.single = true;
    r.ops[0] = op;
    r.op_count = 1;
    const bool stored = cr_py_is_stored(r.array);
    if (stored && r.async != NULL) {
        leave(&r);
        return PyErr_Format(PyExc_TypeError,
                            "AsyncClient takes no containers that are read in blocks: cured.Client does");
    }
    if (stored || is_list(&r) || cr_py_order_spreads(args, nargs, kwnames)) {
        PyObject *answer = spread(self, r.array, &a);
        leave(&r);
        return answer;
    }
    return end(&r, cr_py_order_options(&r, args, nargs, kwnames), &behind);
}

/* Of an op of two arrays the second, which comes first, and the options. */
static bool take_pair(cr_py_request *r, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const bool leads = nargs > 0;
    const bool good = cr_py_request_options(r, args + leads, nargs - leads, kwnames),
               twice = leads && r->second != NULL;
    if (leads) r->second = args[0];
    if (!good) return false;
    const char *why = is_list(r)          ? "a list of arrays has no pairs: ask for each of them"
                      : twice             ? "the second array is given twice"
                      : r->second == NULL ? "it is of two arrays, and the second is missing"
                                          : NULL;
    if (why != NULL) PyErr_Format(PyExc_TypeError, "%s: %s", cured_op_name(r->ops[0]), why);
    return why == NULL;
}

static PyObject *run_one(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, cured_op op) {
    cr_py_request r;
    if (cr_op_takes_share((cr_op)op)) return run_quantile(self, args, nargs, kwnames, op);
    if (!begin(&r, self, &args, &nargs)) return NULL;
    r.single = true;
    r.ops[0] = op;
    r.op_count = 1;
    if (cr_op_inputs((cr_op)op) == 2)
        return end(&r, take_pair(&r, args, nargs, kwnames),
                   &(arguments){args + (nargs > 0), nargs - (nargs > 0), kwnames});
    return end(&r, cr_py_request_options(&r, args, nargs, kwnames), &(arguments){args, nargs, kwnames});
}

/* The ops, which come first, and the options. */
static bool take_several(cr_py_request *r, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    if (nargs < 1) {
        PyErr_SetString(PyExc_TypeError, "ops are missing, such as ['sum', 'max']");
        return false;
    }
    if (!cr_py_request_ops(r, args[0]) || !cr_py_request_options(r, args + 1, nargs - 1, kwnames)) return false;
    if (r->initial != NULL) PyErr_SetString(PyExc_TypeError, "initial: only sum, prod, min and max take it");
    return r->initial == NULL;
}

static PyObject *run_several(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, bool partial) {
    cr_py_request r;
    if (!begin(&r, self, &args, &nargs)) return NULL;
    r.partial = partial;
    const bool good = take_several(&r, args, nargs, kwnames);
    return end(&r, good, &(arguments){args + 1, nargs - 1, kwnames});
}

static PyObject *run_reduce(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return run_several(self, args, nargs, kwnames, false);
}

static PyObject *run_partial(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return run_several(self, args, nargs, kwnames, true);
}

static PyObject *run_describe(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    static const cured_op ops[] = {
#define CR_DESCRIBE(symbol) CURED_OP_##symbol,
#include "kernels/core/describe.def"
#undef CR_DESCRIBE
    };
    cr_py_request r;
    if (!begin(&r, self, &args, &nargs)) return NULL;
    memcpy(r.ops, ops, sizeof ops);
    r.op_count = sizeof ops / sizeof ops[0];
    if (nargs != 0) PyErr_SetString(PyExc_TypeError, "describe takes the array alone");
    const bool good = nargs == 0 && cr_py_request_options(&r, args, nargs, kwnames);
    return end(&r, good, &(arguments){args, nargs, kwnames});
}

#define CR_OP(symbol, id, ...)                                                                                  \
    static PyObject *run_##symbol(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) { \
        return run_one(self, args, nargs, kwnames, (cured_op)(id));                                             \
    }
#include "kernels/core/op.def"
#undef CR_OP

#define METHOD(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS
static const PyMethodDef ops[] = {
#define CR_OP(symbol, id, name, term, divisor, root, result, empty, help, elements, dtype, bytes, answer) \
    {name, METHOD(run_##symbol), name ": " help ". Of " elements " it is " answer "."},
#include "kernels/core/op.def"
#undef CR_OP
    {"reduce", METHOD(run_reduce), "Several operations over one pass: a Result."},
    {"describe", METHOD(run_describe), "Counts, extrema and their indices, sum, mean and std: a Result."},
    {"partial", METHOD(run_partial), "The exact unfinished state of a part of an array: a Partial."},
};

PyMethodDef *cr_py_ops_methods(PyMethodDef *more, cr_py_owner owner) {
    static const int ids[] = {
#define CR_OP(symbol, id, ...) id,
#include "kernels/core/op.def"
#undef CR_OP
    };
    size_t own = sizeof ops / sizeof ops[0], named = sizeof ids / sizeof ids[0], count = 0;
    while (more[count].ml_name != NULL) count++;
    PyMethodDef *all = PyMem_Calloc(own + count + 1, sizeof *all);
    if (all == NULL) return (void)PyErr_NoMemory(), NULL;
    memcpy(all, ops, sizeof ops);
    memcpy(all + own, more, count * sizeof *all);
    for (size_t i = 0; i < own; i++)
        if (!cr_py_sign(&all[i], owner, i < named ? ids[i] : 0)) return NULL;
    return all;
}
