/* ddof: what n is lessened by in variances, under either of its names (ddof=, correction=). libcured takes whole numbers from 0 on; others go
 * to cured/_fraction.py.
 *
 * Thread: with the GIL. Owner: arguments are borrowed from the caller. */
#include <math.h>

#include "client/python/extension.h"

bool cr_py_ddof_take(cr_py_request *r, PyObject *value) {
    const char *why = NULL;
    if (r->has_ddof) return PyErr_SetString(PyExc_TypeError, "ddof, correction: two names of one argument"), false;
    r->has_ddof = true;
    if (PyIndex_Check(value)) {
        if (cr_py_number(value, "ddof", &r->options.ddof)) return true;
        if (!r->takes_fraction || !PyErr_ExceptionMatches(PyExc_ValueError)) return false;
        PyErr_Clear(); /* below 0 */
    }
    if (!PyNumber_Check(value))
        return PyErr_Format(PyExc_TypeError, "ddof: a number is wanted, not %R", (PyObject *)Py_TYPE(value)), false;
    const double x = PyFloat_AsDouble(value);
    if (x == -1 && PyErr_Occurred()) return false;
    if (x >= 0 && x < 0x1p53 && x == (double)(uint64_t)x) {
        r->options.ddof = (uint64_t)x;
        return true;
    }
    if (!isfinite(x)) why = "ddof: it must be finite";
    if (why == NULL && !r->takes_fraction) why = "ddof: a whole number that is not negative is wanted here";
    if (why != NULL) PyErr_SetString(PyExc_ValueError, why);
    r->fraction = value;
    return why == NULL;
}

bool cr_py_ddof_give(const cr_py_request *r, PyObject *options) {
    PyObject *ddof = r->fraction != NULL ? Py_NewRef(r->fraction) : PyLong_FromUnsignedLongLong(r->options.ddof);
    const bool good = ddof != NULL && PyDict_SetItemString(options, "ddof", ddof) == 0;
    Py_XDECREF(ddof);
    if (good && PyDict_GetItemString(options, "correction") != NULL)
        return PyDict_DelItemString(options, "correction") == 0;
    return good;
}
