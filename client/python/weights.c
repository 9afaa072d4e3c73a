/* weights: what cured.weights asks of client/weights: a list of (name, type, shape, bytes, whether it is reduced, answers), and the digest of all.
 *
 * Thread: with the GIL, but while the tensors are reduced; the caller's thread looks after signals then. Owner: the table and the
 * answers live inside cr_py_weights(). */
#include <string.h>

#include "client/python/extension.h"
#include "client/weights/run.h"

struct asking {
    const char *address;
};

static cured_status connect_one(void *user, cured_conn **conn, cured_error *error) {
    const struct asking *a = user;
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    options.client = "cured.weights/" CURED_VERSION;
    options.threads = 1;
    return cured_connect(a->address, &options, conn, error);
}

/* Signals of Python: an exception ends the reading. */
static bool look(void *user, uint64_t done, uint64_t total) {
    (void)user;
    (void)done;
    (void)total;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool good = PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return good;
}

static PyObject *shape_of(const weights_tensor *t) {
    PyObject *shape = PyTuple_New((Py_ssize_t)t->dims);
    for (uint32_t i = 0; shape != NULL && i < t->dims; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(t->shape[i]);
        if (n != NULL && PyTuple_SetItem(shape, (Py_ssize_t)i, n) == 0) continue;
        Py_DECREF(shape);
        return NULL;
    }
    return shape;
}

static PyObject *answers_of(const weights_answers *a, size_t tensor) {
    PyObject *answers = PyDict_New();
    const cured_value *v;
    for (size_t i = 0;
         answers != NULL && a->values[tensor] != NULL && (v = cured_values_get(a->values[tensor], i)) != NULL; i++) {
        PyObject *answer = cr_py_answer_or_error(v);
        const bool good =
            answer != NULL && PyDict_SetItemString(answers, cured_op_name(cured_value_op(v)), answer) == 0;
        Py_XDECREF(answer);
        if (!good) Py_CLEAR(answers);
    }
    return answers;
}

/* (name, type, shape, bytes or None, whether the type is reduced, answers) */
static PyObject *row_of(const weights *w, const weights_answers *a, size_t tensor) {
    const weights_tensor *t = &w->tensors[tensor];
    PyObject *shape = shape_of(t), *answers = answers_of(a, tensor), *bytes = Py_None,
             *is_reduced = t->dtype != CURED_DTYPE_DEFAULT ? Py_True : Py_False;
    if (t->sized)
        bytes = PyLong_FromUnsignedLongLong(t->bytes);
    else
        Py_INCREF(bytes);
    PyObject *row = shape != NULL && answers != NULL && bytes != NULL
                        ? Py_BuildValue("(ssOOOO)", t->name, t->type, shape, bytes, is_reduced, answers)
                        : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(answers);
    Py_XDECREF(bytes);
    return row;
}

static PyObject *answer(const weights *w, const weights_answers *a, const cured_values *whole) {
    PyObject *rows = PyList_New(0), *digest = Py_None;
    bool good = rows != NULL;
    for (size_t i = 0; good && i < w->count; i++) {
        PyObject *row = row_of(w, a, i);
        good = row != NULL && PyList_Append(rows, row) == 0;
        Py_XDECREF(row);
    }
    if (good && whole != NULL)
        digest = cr_py_answer_value(cured_values_get(whole, 0));
    else
        Py_INCREF(digest);
    PyObject *both = good && digest != NULL ? PyTuple_Pack(2, rows, digest) : NULL;
    Py_XDECREF(rows);
    Py_XDECREF(digest);
    return both;
}

/* Without the GIL. */
static cured_status run(const char *path, const char *pattern, const weights_ask *ask, weights *w, weights_answers *a,
                        cured_values **whole, cured_error *error) {
    cured_status status = weights_open(path, w, error);
    if (status != CURED_OK) return status;
    if (pattern != NULL) weights_filter(w, pattern);
    status = weights_run(w, ask, a, error);
    return status == CURED_OK && ask->digest != 0 ? weights_digest(w, a, ask, whole, error) : status;
}

static bool take_ops(PyObject *names, cr_py_request *r, cured_op *digest) {
    cured_op op;
    if (names == Py_None)
        r->op_count = weights_own_ops(r->ops);
    else if (!cr_py_request_ops(r, names))
        return false;
    *digest = (cured_op)0;
    for (size_t i = 0; i < r->op_count && cured_op_parse("digest", &op, NULL) == CURED_OK; i++)
        if (r->ops[i] == op) *digest = op;
    return true;
}

PyObject *cr_py_weights(PyObject *module, PyObject *args) {
    PyObject *path = NULL, *names, *result = NULL;
    const char *pattern, *address;
    cr_py_request r = {.single = false};
    cured_op digest;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&Ozz", PyUnicode_FSConverter, &path, &names, &pattern, &address)) return NULL;
    if (take_ops(names, &r, &digest)) {
        struct asking asking = {address != NULL ? address : "auto:"};
        const cured_options options = CURED_OPTIONS_INIT;
        const weights_ask ask = {.ops = r.ops,
                                 .op_count = r.op_count,
                                 .digest = digest,
                                 .call = &options,
                                 .connect = connect_one,
                                 .look = look,
                                 .user = &asking};
        const char *text = PyBytes_AsString(path);
        weights w = {0};
        weights_answers a = {0};
        cured_values *whole = NULL;
        cured_error error;
        PyThreadState *thread = PyEval_SaveThread();
        const cured_status status = run(text, pattern, &ask, &w, &a, &whole, &error);
        PyEval_RestoreThread(thread);
        bool good = status == CURED_OK;
        for (size_t i = 0; good && i < WEIGHTS_MOST_NOTES && w.notes[i] != NULL; i++)
            good = PyErr_WarnEx(PyExc_UserWarning, w.notes[i], 2) == 0; /* or the filter makes it an exception */
        if (good)
            result = answer(&w, &a, whole);
        else if (status == CURED_NOT_FOUND && !PyErr_Occurred())
            PyErr_SetString(PyExc_FileNotFoundError, error.text);
        else if (!PyErr_Occurred()) /* else a signal's */
            cr_py_raise_as_it_is(&error);
        cured_values_free(whole);
        weights_answers_free(&a);
        weights_close(&w);
    }
    Py_DECREF(path);
    return result;
}
