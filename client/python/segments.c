/* segments: reductions by offsets (offsets=): an answer for each segment of an array of one axis.
 *
 * Thread: with the GIL. Owner: a request owns what it has of the offsets; the memory is that of the object that was given, or of a copy in
 * another type. */
#include "client/python/extension.h"

/* Whether the offsets are read where they lie. */
static bool suits(const cr_py_input *in) {
    const bool type =
        in->dtype == CURED_I32 || in->dtype == CURED_I64 || in->dtype == CURED_U32 || in->dtype == CURED_U64;
    return in->kind != CR_PY_FILE && in->ndim == 1 && type && !in->swap && !in->is_masked && cr_py_input_in_c_order(in);
}
/* Offsets on a GPU are for an array that this process reduces there. */
static bool is_read(const cr_py_request *r, const cr_py_input *in) {
    return in->kind == CR_PY_HOST || cr_py_cuda_wanted(r);
}

/* Looks at the offsets, or at an array that cured/_segments.py makes of them. */
static bool take(const cr_py_request *r, cr_py_input *in, PyObject *given) {
    if (cr_py_input_take(in, given) && suits(in) && is_read(r, in)) return true;
    PyErr_Clear();
    cr_py_input_release(in);
    PyObject *array = cr_py_helper("cured._segments", "as_offsets", given);
    const bool taken = array != NULL && cr_py_input_take(in, array) && suits(in);
    Py_XDECREF(array); /* the input's buffer holds it */
    return taken;
}

/* Why the request goes with no offsets; NULL: it does. */
static const char *no_segments(const cr_py_request *r) {
    return r->partial           ? "offsets: a partial is of a whole array"
           : r->axis != NULL    ? "axis: not with offsets, which name segments of an array of one axis"
           : r->keepdims        ? "keepdims: not with offsets: there is an answer for each segment"
           : r->initial != NULL ? "initial: not with offsets"
           : r->input.ndim != 1 ? "offsets: they name segments of an array of one axis: a.ravel() has one"
           : r->input.kind == CR_PY_CUDA && !cr_py_cuda_wanted(r)
               ? "offsets: segments of a CUDA tensor are reduced in this process: leave out client="
               : NULL;
}

bool cr_py_segments_take(cr_py_request *r) {
    if (r->offsets == NULL) return true;
    const char *why = no_segments(r);
    if (why != NULL) {
        PyErr_SetString(PyExc_TypeError, why);
        return false;
    }
    r->borders = PyMem_Calloc(1, sizeof *r->borders);
    if (r->borders == NULL) return PyErr_NoMemory(), false;
    if (!take(r, r->borders, r->offsets)) return false;
    r->segments = (cured_offsets){r->borders->data, (uint64_t)r->borders->shape[0], r->borders->dtype};
    r->options.offsets = &r->segments;
    if (r->segments.count != 0) return true;
    PyErr_SetString(PyExc_ValueError, "offsets: there are none; n segments have n + 1 of them, so at least 1");
    return false;
}

void cr_py_segments_release(cr_py_request *r) {
    if (r->borders == NULL) return;
    cr_py_input_release(r->borders);
    PyMem_Free(r->borders);
    r->borders = NULL;
}
