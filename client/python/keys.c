/* keys: reductions by key (keys=, groups=, drop=): the rows of an array are reduced along its first axis, each for the group of its key.
 *
 * Thread: with the GIL, except while the greatest key is looked for. Owner: the request holds the keys' memory. */
#include <stdio.h>

#include "client/python/tensor.h"
#include "kernels/core/keys.h"

/* Of what else is asked beside keys, what does not go with them; NULL: nothing. */
static const char *clash(const cr_py_request *r) {
    if (r->partial && r->has_first) return "first: a partial by key has no position";
    if (r->offsets != NULL) return "keys: not with offsets; leave out one of them";
    if (r->keepdims) return "keepdims: by key the first axis is that of the groups";
    if (r->initial != NULL) return "initial: not with keys: add it to the answers";
    if (r->input.ndim == 0) return "keys: the array has no axis";
    if (r->input.kind == CR_PY_CUDA && !cr_py_cuda_wanted(r))
        return "keys: a CUDA tensor is reduced by key in this process: leave out client=";
    if (r->input.kind == CR_PY_FILE && r->where != NULL)
        return "where: not with keys of a file: reduce numpy.load(path)";
    return NULL;
}

static bool axis_is_first(const cr_py_request *r) {
    if (r->axis == NULL) return true;
    const Py_ssize_t axis = PyIndex_Check(r->axis) ? PyNumber_AsSsize_t(r->axis, NULL) : -1;
    if (axis == 0 || (axis == -1 && PyIndex_Check(r->axis) && r->input.ndim == 1)) return true;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "axis: by key the rows are reduced, which is axis 0");
    return false;
}

static bool is_in_one_piece(const cr_py_input *in) { return !in->swap && cr_py_input_in_c_order(in); }

/* Keys that are not read where they lie are copied. */
static bool take_one_piece(cr_py_input *in, PyObject *keys) {
    if (!cr_py_input_take(in, keys)) return cr_py_input_refused("keys"), false;
    if (in->kind != CR_PY_HOST || in->ndim != 1 || (!in->is_masked && is_in_one_piece(in))) return true;
    cr_py_input_release(in);
    return cr_py_input_plain(in, "keys", keys);
}

static bool take_keys(cr_py_request *r) {
    cr_py_input *in = &r->of_keys;
    r->has_keys = true;
    if (!take_one_piece(in, r->keys)) return false;
    const bool here = r->input.kind != CR_PY_CUDA;
    const char *why = here && in->kind != CR_PY_HOST    ? "keys: an array in the memory of this process is wanted"
                      : !here && in->kind != CR_PY_CUDA ? "keys: those of a CUDA tensor are a tensor on the same GPU"
                      : in->ndim != 1                   ? "keys: an array of one axis is wanted, a key for each row"
                      : in->is_masked ? "keys: without nulls on a GPU: fill them, or pass a copy on the host"
                      : !is_in_one_piece(in)
                          ? "keys: they must lie one after the other on a GPU: pass keys.contiguous()"
                          : NULL;
    if (why != NULL) {
        PyErr_SetString(PyExc_ValueError, why);
        return false;
    }
    const cr_kind kind = cr_dtype_kind((cr_dtype)in->dtype);
    if (kind != CR_KIND_SINT && kind != CR_KIND_UINT) {
        PyErr_Format(PyExc_TypeError, "keys: their type is %s, it must be an integer's, i8 to u64",
                     cured_dtype_name(in->dtype));
        return false;
    }
    if (in->shape[0] == r->input.shape[0]) return true;
    PyErr_Format(PyExc_ValueError, "keys: %zd of them, the array has %zd rows", in->shape[0], r->input.shape[0]);
    return false;
}

/* The keys as the core knows them. */
static cr_keys core_keys(const cr_py_request *r) {
    const cured_keys *k = &r->by_key;
    return (cr_keys){k->data, k->count, k->groups, k->columns, (cr_dtype)k->dtype, k->drop};
}

/* Up to the greatest of keys on a GPU. */
static bool count_groups_there(cr_py_request *r) {
    const cured_cuda_array array = {r->by_key.data, r->by_key.count, r->by_key.dtype};
    cured_error error;
    r->by_key.groups = 0;
    if (array.count == 0) return true;
    cured_values *values = cr_py_cuda_one(&array, CR_TERM_GREATEST, r->of_keys.stream, &error);
    if (values == NULL) {
        cr_py_raise(&error);
        return false;
    }
    uint64_t most; /* not of a negative one */
    if (cured_value_uint64(cured_values_get(values, 0), &most) == CURED_OK)
        r->by_key.groups = most + (most != UINT64_MAX);
    cured_values_free(values);
    return true;
}

bool cr_py_keys_take(cr_py_request *r) {
    if (r->keys == NULL) {
        const char *alone = r->groups != NULL ? "groups" : r->by_key.drop ? "drop" : NULL;
        if (alone != NULL) PyErr_Format(PyExc_TypeError, "%s: only with keys", alone);
        return alone == NULL;
    }
    const char *why = clash(r);
    if (why != NULL) PyErr_SetString(PyExc_TypeError, why);
    if (why != NULL || !axis_is_first(r) || !take_keys(r)) return false;
    r->axis = NULL;
    r->by_key.data = r->of_keys.data;
    r->by_key.count = (uint64_t)r->of_keys.shape[0];
    r->by_key.dtype = r->of_keys.dtype;
    r->by_key.columns = 1;
    for (int i = 1; i < r->input.ndim; i++) r->by_key.columns *= (uint64_t)r->input.shape[i]; /* its bytes fit memory */
    if (r->by_key.columns == 0) {
        PyErr_SetString(PyExc_ValueError, "keys: the array's rows have no elements");
        return false;
    }
    if (r->groups != NULL) return cr_py_number(r->groups, "groups", &r->by_key.groups);
    if (r->of_keys.kind == CR_PY_CUDA) return count_groups_there(r);
    const cr_keys keys = core_keys(r);
    PyThreadState *thread = PyEval_SaveThread();
    r->by_key.groups = cr_keys_groups(&keys);
    PyEval_RestoreThread(thread);
    return true;
}

bool cr_py_keys_plan(cr_py_request *r) {
    if (r->keys == NULL) return true;
    const cr_keys keys = core_keys(r);
    cr_error why;
    if (cr_keys_check(&keys, (cr_dtype)r->input.dtype, &why) != CR_OK) { /* before there is room for the answers */
        cured_error error = {.code = (cured_status)why.code};
        snprintf(error.text, sizeof error.text, "%s", why.text);
        cr_py_raise(&error);
        return false;
    }
    r->plan.whole = false;
    r->plan.axis = (cr_shape){r->by_key.groups, r->by_key.count, r->by_key.columns};
    r->options.keys = &r->by_key;
    if (r->partial) r->options.unplaced = true;
    return cr_py_request_part_mask(r);
}

void cr_py_keys_release(cr_py_request *r) {
    if (r->has_keys) cr_py_input_release(&r->of_keys);
    r->has_keys = false;
}
