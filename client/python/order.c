/* order: quantile, which is told a share of the way beside what every op takes. A number gives one answer. What is no number
 * (a list, an array) goes to cured/_order.py, which comes back with the bytes of up to 32 doubles: then the answer is a list.
 *
 * Thread: with the GIL. Owner: a request lies on its function's stack; arguments are borrowed from the caller. */
#include <string.h>

#include "client/python/extension.h"
#include "kernels/core/op.h"
#include "kernels/core/quantile.h"

static bool is_named(PyObject *name, const char *word) { return PyUnicode_CompareWithASCIIString(name, word) == 0; }

/* The value of a keyword argument; NULL: it is not there. */
static PyObject *keyword(PyObject *const *args, Py_ssize_t nargs, PyObject *names, const char *name) {
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++)
        if (is_named(PyTuple_GetItem(names, i), name)) return args[nargs + i];
    return NULL;
}

static bool take_method(cr_py_request *r, PyObject *value) {
    cr_quantile_method method = CR_QUANTILE_LINEAR;
    cr_error error = {CR_OK, ""};
    if (value != NULL && !PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "method: a name is wanted, such as 'linear', not %R", (PyObject *)Py_TYPE(value));
        return false;
    }
    const char *name = value != NULL ? PyUnicode_AsUTF8AndSize(value, NULL) : "linear";
    if (name == NULL) return false;
    r->options.method =
        cr_quantile_method_parse(name, &method, &error) == CR_OK ? (cured_method)method : CURED_METHOD_LINEAR;
    if (error.code != CR_OK) PyErr_SetString(PyExc_ValueError, error.text);
    return error.code == CR_OK;
}

/* A share by itself, or several as bytes. */
static bool take_shares(cr_py_request *r, PyObject *q) {
    if (PyBytes_Check(q)) {
        const Py_ssize_t count = PyBytes_Size(q) / (Py_ssize_t)sizeof r->shares[0];
        if (count < 1 || count > CURED_MAX_OPS) {
            PyErr_Format(PyExc_ValueError, "q: %zd shares, must be 1 to %d", count, CURED_MAX_OPS);
            return false;
        }
        memcpy(r->shares, PyBytes_AsString(q), (size_t)count * sizeof r->shares[0]);
        for (Py_ssize_t i = 0; i < count; i++) r->ops[i] = r->ops[0];
        r->op_count = (size_t)count;
        r->single = false;
        r->listed = true;
    } else {
        r->shares[0] = PyFloat_AsDouble(q);
        if (PyErr_Occurred()) return false;
    }
    for (size_t i = 0; i < r->op_count; i++) {
        if (r->shares[i] >= 0 && r->shares[i] <= 1) continue;
        PyErr_SetString(PyExc_ValueError, "Quantiles must be in the range [0, 1]"); /* NumPy's words */
        return false;
    }
    r->options.parameters = r->shares;
    return true;
}

bool cr_py_order_spreads(PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    PyObject *q = nargs > 0 ? args[0] : keyword(args, nargs, names, "q");
    return q != NULL && !PyFloat_Check(q) && !PyLong_Check(q) && !PyBytes_Check(q);
}

bool cr_py_order_options(cr_py_request *r, PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    PyObject *rest[CR_PY_MOST_WORDS], *words = names != NULL ? PyList_New(0) : NULL, *left = NULL;
    PyObject *q = nargs > 0 ? args[0] : keyword(args, nargs, names, "q");
    PyObject *method = keyword(args, nargs, names, "method");
    const Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0, first = nargs > 0 ? 1 : 0;
    Py_ssize_t count = 0;
    bool good = (names == NULL || words != NULL) && nargs + named <= CR_PY_MOST_WORDS;
    if (q == NULL) PyErr_SetString(PyExc_TypeError, "q is missing: a share from 0 to 1, or several");
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "too many arguments");
    for (Py_ssize_t i = first; i < nargs && good; i++) rest[count++] = args[i];
    for (Py_ssize_t i = 0; i < named && good; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (is_named(name, "method") || (first == 0 && is_named(name, "q"))) continue;
        rest[count++] = args[nargs + i];
        good = PyList_Append(words, name) == 0;
    }
    if (good && words != NULL) good = (left = PyList_AsTuple(words)) != NULL;
    if (good) good = q != NULL && cr_py_request_options(r, rest, nargs - first, left);
    if (good) good = take_method(r, method) && take_shares(r, q);
    Py_XDECREF(words);
    Py_XDECREF(left);
    return good;
}

bool cr_py_wants_order(const cr_py_request *r) {
    for (size_t i = 0; i < r->op_count; i++)
        if (cr_op_closing((cr_op)r->ops[i]) == CR_CLOSING_ORDER) return true;
    return false;
}
