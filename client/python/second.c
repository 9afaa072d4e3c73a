/* second: the second array of ops of two (second=): laid out in the order of the first one's plan.
 *
 * Thread: with the GIL. Owner: a request owns what it has of the array; the memory is that of the object that was given, or a copy where
 * that lies in another order. */
#include <stdlib.h>

#include "client/python/extension.h"
#include "kernels/core/op.h"

/* Why the request goes with no second array; NULL: it does. */
static const char *clash(const cr_py_request *r) {
    return r->listed ? "second: not with several quantiles"
           : r->input.kind == CR_PY_CUDA && !cr_py_cuda_wanted(r)
               ? "second: pairs of CUDA tensors are reduced in this process: call cured.dot and the like without a "
                 "client, or pass copies of both in host memory (a.cpu(), b.cpu())"
               : NULL;
}

/* What is wrong with the array itself; NULL: nothing is. */
static const char *unfit(const cr_py_request *r, const cr_py_input *in) {
    if (in->kind == CR_PY_FILE) return "second: a file is the first array alone: pass numpy.load(path, mmap_mode='r')";
    if (r->input.kind == CR_PY_CUDA && in->kind != CR_PY_CUDA)
        return "second: a tensor on the array's GPU is wanted: move one to where the other is";
    if (r->input.kind != CR_PY_CUDA && in->kind != CR_PY_HOST)
        return "second: an array in the memory of this process is wanted (of a GPU's b.cpu() or b.get())";
    if (in->is_masked)
        return "second: without nulls on a GPU: select the elements of both first, or pass copies on the host";
    bool same = in->ndim == r->input.ndim;
    for (int i = 0; i < in->ndim && same; i++) same = in->shape[i] == r->input.shape[i];
    return same ? NULL : "second: its shape is not the array's";
}

static bool take(cr_py_request *r) {
    cr_py_input *in = r->pair;
    if (!cr_py_input_take(in, r->second)) return cr_py_input_refused("second"), false;
    if (in->is_masked && in->kind == CR_PY_HOST) { /* perhaps nothing is missing */
        cr_py_input_release(in);
        if (!cr_py_input_plain(in, "second", r->second)) return false;
    }
    const char *why = unfit(r, in);
    if (why != NULL)
        PyErr_SetString(PyExc_ValueError, why);
    else if (in->dtype != r->input.dtype)
        PyErr_Format(PyExc_TypeError, "second: it is of %s, the array of %s: convert one of them",
                     cured_dtype_name(in->dtype), cured_dtype_name(r->input.dtype));
    return !PyErr_Occurred();
}

bool cr_py_second_take(cr_py_request *r) {
    if (r->second == NULL) return true;
    const char *why = clash(r);
    if (why != NULL) {
        PyErr_SetString(PyExc_TypeError, why);
        return false;
    }
    r->pair = PyMem_Calloc(1, sizeof *r->pair);
    if (r->pair == NULL) return PyErr_NoMemory(), false;
    return take(r);
}

/* Of tensors of a GPU nothing is copied: both lie alike. */
static bool plan_tensor(cr_py_request *r) {
    const cr_py_input *a = &r->input, *b = r->pair;
    bool same = true;
    for (int i = 0; i < a->ndim && r->plan.count != 0; i++)
        same = same && (a->shape[i] == 1 || a->strides[i] == b->strides[i]);
    if (!same) {
        PyErr_SetString(PyExc_ValueError, "second: its strides are not the array's: pass contiguous tensors of both");
        return false;
    }
    r->of_pair = (cured_second){b->data + (r->plan.count != 0 ? r->plan.data - a->data : 0), r->plan.count, b->dtype};
    r->options.second = &r->of_pair;
    return true;
}

bool cr_py_second_plan(cr_py_request *r, uint64_t axes, bool whole) {
    if (r->second == NULL) return true;
    if (r->input.kind == CR_PY_CUDA) return plan_tensor(r);
    cr_error error;
    const cr_strided array = cr_py_plan_array(&r->input), second = cr_py_plan_array(r->pair);
    const cr_strided_order order = r->ordered ? CR_STRIDED_REDUCED : CR_STRIDED_FREE;
    const cr_status status =
        cr_strided_second(&array, &second, axes, whole, order, &r->of_pair.data, &r->pair_own, &error);
    if (status != CR_OK) {
        PyErr_SetString(status == CR_RESOURCE_EXHAUSTED ? PyExc_MemoryError : PyExc_ValueError, error.text);
        return false;
    }
    r->of_pair.count = r->plan.count;
    r->of_pair.dtype = r->pair->dtype;
    r->options.second = &r->of_pair;
    return true;
}

void cr_py_second_release(cr_py_request *r) {
    free(r->pair_own);
    r->pair_own = NULL;
    if (r->pair == NULL) return;
    cr_py_input_release(r->pair);
    PyMem_Free(r->pair);
    r->pair = NULL;
}
