/* block: partials of blocks (shape=, start=): the array is a block of a larger one.
 *
 * Thread: with the GIL. Owner: the request holds the numbers. */
#include "client/python/extension.h"

/* A number for each axis of the array. */
static bool take_numbers(PyObject *given, const char *keyword, int ndim, uint64_t *numbers) {
    PyObject *items = given != NULL ? PySequence_Tuple(given) : NULL;
    bool good = items != NULL && PyTuple_Size(items) == ndim;
    for (int i = 0; i < ndim && good; i++) good = cr_py_number(PyTuple_GetItem(items, i), keyword, &numbers[i]);
    Py_XDECREF(items);
    if (!good && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: shape and start have %d numbers each here, one for each axis of the array",
                     keyword, ndim);
    return good;
}

bool cr_py_block_take(cr_py_request *r) {
    const cr_py_input *in = &r->input;
    if (r->shape == NULL && r->start == NULL) return true;
    const char *why =
        !r->partial                           ? "shape, start: only a partial is of a block of a larger array"
        : r->has_first || r->options.unplaced ? "first: shape and start say where a block lies"
        : in->is_masked
            ? "shape, start: a part under a mask has no position, because elements are left out: leave them away"
        : in->kind == CR_PY_CUDA && !cr_py_cuda_wanted(r)
            ? "shape, start: a block in a GPU's memory is reduced in this process: leave out client="
            : NULL;
    if (why != NULL) {
        PyErr_SetString(PyExc_TypeError, why);
        return false;
    }
    if (in->ndim > CURED_BLOCK_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "shape: %d axes, limit is %d", in->ndim, CURED_BLOCK_MAX_DIMS);
        return false;
    }
    uint64_t *shape = r->places[0], *start = r->places[1], *extent = r->places[2];
    for (int i = 0; i < in->ndim; i++) extent[i] = (uint64_t)in->shape[i];
    r->block = (cured_block){(size_t)in->ndim, shape, start, extent};
    r->options.layout = &r->block;
    return take_numbers(r->shape, "shape", in->ndim, shape) && take_numbers(r->start, "start", in->ndim, start);
}
