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

bool cr_py_beside_take(cr_py_request *r, PyObject *held[CR_PY_BESIDE]) {
    static const char *const names[CR_PY_BESIDE] = {"where", "keys", "offsets", "second"};
    PyObject **const given[CR_PY_BESIDE] = {&r->where, &r->keys, &r->offsets, &r->second};
    for (int i = 0; i < CR_PY_BESIDE; i++) held[i] = NULL;
    for (int i = 0; i < CR_PY_BESIDE; i++) {
        const bool is_file = *given[i] != NULL && Py_TYPE(*given[i]) == cr_py_file_type;
        if (*given[i] == NULL || (!is_file && !cr_py_is_stored(*given[i]))) continue;
        PyObject *pair = Py_BuildValue("(sO)", names[i], *given[i]);
        held[i] = pair != NULL ? cr_py_helper("cured._beside", "gathered", pair) : NULL;
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
