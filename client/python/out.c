/* out: arrays of the caller's that answers go to (out=). Where their type, shape and order are those of the answers, libcured fills
 * them where they lie, and those of shared memory the daemon. Tensors of a GPU are filled by that GPU, if what is reduced lies there
 * too. Otherwise the answers are copied (cured/_out.py), as NumPy would.
 *
 * Thread: with the GIL. Owner: a request holds the buffers that are filled. */
#include <string.h>

#include "client/python/tensor.h"
#include "kernels/core/op.h"

static cured_dtype answer_type(const cr_py_request *r, size_t index) {
    return cured_axis_dtype(r->ops[index], r->input.dtype, r->options.result_dtype);
}

/* A tuple of a text for each op: its name, or the type of its answers. */
static PyObject *words_of(const cr_py_request *r, bool types) {
    PyObject *words = PyTuple_New((Py_ssize_t)r->op_count);
    for (size_t i = 0; words != NULL && i < r->op_count; i++) {
        const char *word = types ? cr_dtype_numpy((cr_dtype)answer_type(r, i)) : cured_op_name(r->ops[i]);
        PyObject *text = PyUnicode_FromString(word != NULL ? word : "");
        if (text == NULL || PyTuple_SetItem(words, (Py_ssize_t)i, text) != 0) Py_CLEAR(words);
    }
    return words;
}

/* Whether answers may go to tensors of a GPU in place. */
static bool may_place(const cr_py_request *r) {
    const bool here = cr_py_cuda_wanted(r);
    return r->input.kind == CR_PY_CUDA && (here || !r->plan.whole) && !r->plan.permuted &&
           (r->plan.whole || r->plan.axis.n != 0) && r->plan.count != 0 && !cr_py_request_in_slices(r) &&
           (!here || cr_py_cuda_may_place(r));
}

/* The room that was let go of last: it is larger than what Python's allocator keeps at hand. */
static cr_py_input *spare;
static size_t spare_count;

/* out_tensors for so many, not one of which is taken. False with an exception. */
static bool take_room(cr_py_request *r, size_t count) {
    if (spare == NULL || spare_count < count) {
        r->out_tensors = PyMem_Malloc(count * sizeof r->out_tensors[0]);
        r->out_room = count;
        if (r->out_tensors == NULL) PyErr_NoMemory();
    } else {
        r->out_tensors = spare;
        r->out_room = spare_count;
        spare = NULL;
    }
    return r->out_tensors != NULL;
}

static void give_room(cr_py_request *r) {
    cr_py_input *unused = r->out_tensors;
    if (unused != NULL && spare == NULL) {
        spare = unused;
        spare_count = r->out_room;
        unused = NULL;
    }
    PyMem_Free(unused);
    r->out_tensors = NULL;
}

static int take_tensor(cr_py_input *in, PyObject *tensor) {
    cr_py_input_begin(in, tensor);
    return cr_py_input_tensor(in, tensor);
}

/* Takes the one tensor of an op, if its type is asked by functions in C: cured/_out.py takes 10 µs of torch's attributes. A tensor that
 * does not do is left to cured/_out.py, which says why. False with an exception. */
static bool take_one(cr_py_request *r) {
    if (!may_place(r) || PyTuple_Check(r->out)) return true;
    if (cr_py_exchange_of(Py_TYPE(r->out)) == NULL) return !PyErr_Occurred();
    if (!take_room(r, 1)) return false;
    r->out_count = 1;
    const int taken = take_tensor(&r->out_tensors[0], r->out);
    if (taken > 0 && r->out_tensors[0].kind == CR_PY_CUDA) return true;
    cr_py_out_release(r);
    if (taken < 0 && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    return true;
}

/* What cured/_out.py says of the type. False with an exception. */
static bool ask_type(const cr_py_request *r, cured_dtype *dtype) {
    PyObject *name = cr_py_helper("cured._out", "default_type", r->out);
    const bool good = name != NULL && (name == Py_None || cr_py_dtype(name, dtype, NULL));
    Py_XDECREF(name);
    return good;
}

bool cr_py_out_type(cr_py_request *r) {
    cured_dtype dtype = CURED_DTYPE_DEFAULT;
    if (!r->single || r->initial != NULL) return true;
    if (!take_one(r)) return false;
    if (r->options.result_dtype != CURED_DTYPE_DEFAULT) return true;
    if (r->out_tensors != NULL && cr_dtype_kind((cr_dtype)r->out_tensors[0].dtype) == CR_KIND_FLOAT)
        dtype = r->out_tensors[0].dtype;
    if (r->out_tensors == NULL && !ask_type(r, &dtype)) return false;
    if (dtype != CURED_DTYPE_DEFAULT && dtype != answer_type(r, 0) &&
        cured_axis_dtype(r->ops[0], r->input.dtype, dtype) == dtype)
        r->options.result_dtype = dtype;
    return true;
}

/* Whether some byte of the input may be one of those. */
static bool meets_input(const cr_py_request *r, const Py_buffer *view) {
    const cr_py_input *in = &r->input;
    const char *low = in->data, *high = in->data + in->size, *from = view->buf;
    if (in->kind != CR_PY_HOST) return false;
    for (int i = 0; i < in->ndim; i++) {
        if (in->shape[i] == 0) return false;
        *(in->strides[i] < 0 ? &low : &high) += in->strides[i] * (in->shape[i] - 1);
    }
    return low < from + view->len && from < high;
}

static bool take_buffers(cr_py_request *r, PyObject *arrays) {
    for (size_t i = 0; i < r->op_count; i++) {
        if (PyObject_GetBuffer(PyList_GetItem(arrays, (Py_ssize_t)i), &r->out_views[i],
                               PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0)
            return false;
        r->out_count = i + 1;
        r->pointers[i] = r->out_views[i].buf;
    }
    for (size_t i = 0; i < r->out_count; i++)
        if (meets_input(r, &r->out_views[i])) cr_py_out_release(r);
    return true;
}

/* ---- Tensors of a GPU ---- */

static uint64_t tensor_bytes(const cr_py_input *t) {
    uint64_t bytes = t->size;
    for (int i = 0; i < t->ndim; i++) bytes *= (uint64_t)t->shape[i];
    return bytes;
}

/* Whether answers of op i have the same bits in this type. Indices and counts are below 2^63, and torch's integers of 64 bits have a sign. */
static bool is_alike(const cr_py_request *r, size_t i, cured_dtype dtype) {
    const cured_dtype own = answer_type(r, i);
    const bool counts = cr_op_closing((cr_op)r->ops[i]) == CR_CLOSING_COUNTS || cr_py_answer_is_index(r->ops[i]);
    return dtype == own || (own == CURED_U64 && dtype == CURED_I64 && counts);
}

/* Whether answers in the shape may lie there as they are, of a type of that size. */
static bool suits(const cr_py_input *t, int ndim, const Py_ssize_t *shape) {
    if (t->kind != CR_PY_CUDA || t->ndim != ndim || (uintptr_t)t->data % t->size != 0) return false;
    for (int i = 0; i < ndim; i++)
        if (t->shape[i] != shape[i]) return false;
    return cr_py_input_in_c_order(t);
}

/* All addresses of all GPUs are different. */
static bool apart(const char *a, uint64_t a_bytes, const char *b, uint64_t b_bytes) {
    return a + a_bytes <= b || b + b_bytes <= a;
}

/* Whether tensor number i takes its answers in place: its memory is neither the input's nor another's. */
static bool takes(const cr_py_request *r, size_t i, int ndim, const Py_ssize_t *shape) {
    const cr_py_input *t = &r->out_tensors[i];
    bool good = is_alike(r, i, t->dtype) && suits(t, ndim, shape) &&
                apart(t->data, tensor_bytes(t), r->plan.data, r->plan.count * r->input.size) &&
                (r->borders == NULL || apart(t->data, tensor_bytes(t), r->borders->data, tensor_bytes(r->borders))) &&
                (!r->has_keys || apart(t->data, tensor_bytes(t), r->of_keys.data, tensor_bytes(&r->of_keys)));
    for (size_t k = 0; good && k < i; k++)
        good = apart(t->data, tensor_bytes(t), r->out_tensors[k].data, tensor_bytes(&r->out_tensors[k]));
    return good;
}

/* Takes the tensors in the tuple. */
static bool take_tensors(cr_py_request *r, PyObject *tensors, int ndim, const Py_ssize_t *shape) {
    if (!may_place(r)) return true;
    if (!take_room(r, r->op_count)) return false;
    bool direct = true;
    for (size_t i = 0; direct && i < r->op_count; i++) {
        const int taken =
            take_tensor(&r->out_tensors[i], PyTuple_GetItem(tensors, (Py_ssize_t)i)); /* r->out has it, too */
        r->out_count = i + 1;
        if (taken < 0) return false;
        direct = taken == 1 && takes(r, i, ndim, shape);
    }
    if (!direct) cr_py_out_release(r);
    return true;
}

bool cr_py_out_places(cr_py_request *r, int ndim, const Py_ssize_t *shape) {
    bool good = true;
    if (r->out_tensors != NULL && takes(r, 0, ndim, shape)) return true;
    cr_py_out_release(r);
    if (r->plan.permuted || cr_py_request_in_slices(r)) return true;
    PyObject *sizes = PyTuple_New(ndim);
    for (int i = 0; sizes != NULL && i < ndim; i++) PyTuple_SetItem(sizes, i, PyLong_FromSsize_t(shape[i]));
    PyObject *names = words_of(r, false), *types = words_of(r, true), *arrays = NULL;
    PyObject *asked = sizes != NULL && names != NULL && types != NULL
                          ? PyTuple_Pack(5, r->out, r->single ? Py_True : Py_False, names, sizes, types)
                          : NULL;
    if (asked != NULL) arrays = cr_py_helper("cured._out", "places", asked);
    if (arrays == NULL)
        good = false;
    else if (arrays != Py_None)
        good = PyList_Check(arrays) ? take_buffers(r, arrays) : take_tensors(r, arrays, ndim, shape);
    if (!good) cr_py_out_release(r);
    Py_XDECREF(sizes);
    Py_XDECREF(names);
    Py_XDECREF(types);
    Py_XDECREF(asked);
    Py_XDECREF(arrays);
    return good;
}

void cr_py_out_release(cr_py_request *r) {
    for (size_t i = 0; i < r->out_count; i++)
        if (r->out_tensors != NULL)
            cr_py_input_release(&r->out_tensors[i]);
        else
            PyBuffer_Release(&r->out_views[i]);
    give_room(r);
    r->out_count = 0;
}

PyObject *cr_py_out_item(const cr_py_request *r, size_t index) {
    if (r->single && !PyTuple_Check(r->out)) return Py_NewRef(r->out);
    return PySequence_GetItem(r->out, (Py_ssize_t)index);
}

PyObject *cr_py_out_store(const cr_py_request *r, PyObject *answer) {
    PyObject *names = words_of(r, false);
    PyObject *asked = names != NULL ? PyTuple_Pack(4, answer, r->out, r->single ? Py_True : Py_False, names) : NULL;
    PyObject *stored = asked != NULL ? cr_py_helper("cured._out", "store", asked) : NULL;
    Py_XDECREF(names);
    Py_XDECREF(asked);
    Py_DECREF(answer);
    return stored;
}

static bool tensor_regions(const cr_py_request *r, cr_py_link *link, cured_output outputs[CURED_MAX_OPS]) {
    for (size_t i = 0; i < r->out_count; i++) {
        const cr_py_input *t = &r->out_tensors[i];
        if (!cr_py_tensor_wait(t)) return false;
        outputs[i] = (cured_output){cr_py_tensor_region(t, t->data, tensor_bytes(t), true, link), 0};
        if (outputs[i].region == NULL) return false;
    }
    return true;
}

bool cr_py_out_regions(const cr_py_request *r, cr_py_link *link, cured_output outputs[CURED_MAX_OPS]) {
    if (r->out_tensors != NULL) return tensor_regions(r, link, outputs);
    if (r->out_count == 0 || link->local || !cured_passes_fd(link->conn)) return false;
    for (size_t i = 0; i < r->out_count; i++) {
        const Py_buffer *view = &r->out_views[i];
        uint64_t offset;
        cr_py_memory *memory = cr_py_memory_find(view->buf, (uint64_t)view->len, &offset);
        if (memory == NULL) return false;
        outputs[i] = (cured_output){cr_py_memory_output(memory, link), offset};
        if (outputs[i].region != NULL) continue;
        PyErr_Clear(); /* the answers come through the socket, then */
        return false;
    }
    return true;
}
