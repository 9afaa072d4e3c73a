/* stored: containers whose elements come in blocks: of h5py, zarr, netCDF4, xarray and Dask. Their calls are answered by
 * cured/_chunks.py, which asks this extension of each block. Here is how they are told from arrays, and read whole where they
 * stand beside one in memory.
 *
 * Thread: with the GIL. Owner: types that were looked at are kept for ever. */
#include "client/python/extension.h"

/* Types that cured/_adapt.py was asked about. Beyond these it is asked each time. */
enum { KNOWN_TYPES = 64 };
static struct {
    PyTypeObject *type;
    bool stored;
} known[KNOWN_TYPES];
static size_t known_count;

/* Whether it is what NumPy's functions make an array of. */
static bool is_listed(PyObject *given) {
    return PyList_Check(given) || PyTuple_Check(given) || Py_TYPE(given) == &PyRange_Type;
}

bool cr_py_is_sequence(PyObject *object) { return Py_TYPE(object) == &PyList_Type || Py_TYPE(object) == &PyTuple_Type; }

bool cr_py_is_of_numbers(PyObject *array) {
    enum { MOST_AXES = 64 };
    if (Py_TYPE(array) == &PyRange_Type) return true;
    if (!cr_py_is_sequence(array)) return false;
    for (int depth = 0; depth < MOST_AXES && cr_py_is_sequence(array); depth++) {
        if (PySequence_Size(array) == 0) return true;
        array = Py_TYPE(array) == &PyList_Type ? PyList_GetItem(array, 0) : PyTuple_GetItem(array, 0);
    }
    return PyFloat_Check(array) || PyLong_Check(array) || PyComplex_Check(array);
}

PyObject *cr_py_of_numbers(PyObject *self, PyObject *array) {
    (void)self;
    return PyBool_FromLong(cr_py_is_of_numbers(array));
}

bool cr_py_beside_take(cr_py_request *r, PyObject *held[CR_PY_BESIDE]) {
    static const char *const names[CR_PY_BESIDE] = {"where", "keys", "offsets", "second"};
    PyObject **const given[CR_PY_BESIDE] = {&r->where, &r->keys, &r->offsets, &r->second};
    for (int i = 0; i < CR_PY_BESIDE; i++) held[i] = NULL;
    for (int i = 0; i < CR_PY_BESIDE; i++) {
        if (*given[i] == NULL) continue;
        const bool is_list = is_listed(*given[i]);
        const bool is_file = Py_TYPE(*given[i]) == cr_py_file_type;
        if (!is_list && !is_file && !cr_py_is_stored(*given[i])) continue;
        PyObject *pair = Py_BuildValue("(sO)", names[i], *given[i]);
        held[i] = pair != NULL ? cr_py_helper("cured._beside", is_list ? "listed" : "gathered", pair) : NULL;
        Py_XDECREF(pair);
        if (held[i] == NULL) return false;
        *given[i] = held[i];
    }
    return true;
}

void cr_py_beside_release(PyObject *held[CR_PY_BESIDE]) {
    for (int i = 0; i < CR_PY_BESIDE; i++) Py_CLEAR(held[i]);
}

bool cr_py_is_stored(PyObject *array) {
    PyTypeObject *type = Py_TYPE(array);
    for (size_t i = 0; i < known_count; i++)
        if (known[i].type == type) return known[i].stored;
    PyObject *answer = cr_py_helper("cured._adapt", "is_stored", (PyObject *)type);
    const bool stored = answer == Py_True, settled = answer != NULL || PyErr_ExceptionMatches(PyExc_ImportError);
    PyErr_Clear(); /* without NumPy there are no containers */
    Py_XDECREF(answer);
    if (settled && known_count < KNOWN_TYPES) {
        known[known_count].type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        known[known_count++].stored = stored;
    }
    return stored;
}
