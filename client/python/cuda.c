/* cuda: CUDA tensors that are answered in this process, on their own current stream: cured/cuda.h by Python's requests. With client= a
 * daemon answers instead.
 *
 * Answers of Python's own wait for the GPU, without the GIL. Tensors in out= wait for nothing: what follows on the stream may use them. So
 * a tensor may be freed after the call, as after any of its library's own operations.
 * Thread: with the GIL, but for the waits. Owner: the request holds its tensors; a list of them is the caller's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/python/tensor.h"
#include "cured/cuda.h"
#include "kernels/core/axis.h"
#include "kernels/core/widen.h"

bool cr_py_cuda_wanted(const cr_py_request *r) {
    return r->input.kind == CR_PY_CUDA && r->client == NULL && r->async == NULL;
}

static bool check(const cr_py_request *r) {
    const char *why = NULL;
    if (r->initial != NULL)
        why = "initial: not with CUDA tensors: put a tensor of one element in a list with it";
    else if (r->plan.mask != NULL || (r->input.is_masked && r->input.cuda_mask.data == NULL && r->plan.count != 0))
        why = "where: the mask of a CUDA tensor is a bool tensor on the same GPU";
    if (why != NULL) PyErr_SetString(PyExc_TypeError, why);
    if (why == NULL && !r->plan.contiguous) {
        why = cr_py_input_in_c_order(&r->input)
                  ? "axis: axes of a CUDA tensor go together where they are neighbours: reduce one after "
                    "the other, or move them side by side and pass t.contiguous()"
                  : "the CUDA tensor has gaps, or its order matters: pass a contiguous one";
        PyErr_SetString(PyExc_ValueError, why);
    }
    return why == NULL;
}

/* What libcured is asked, of an array that has elements: the array and the options must live as long. */
static cured_cuda_ask ask_of(const cr_py_request *r, cured_cuda_array *array, cured_options *options) {
    *array = (cured_cuda_array){r->plan.data, r->plan.count, r->input.dtype};
    *options = r->options;
    options->axis = r->plan.whole || r->keys != NULL ? NULL : &r->along;
    if (r->input.cuda_mask.data != NULL) options->mask = &r->input.cuda_mask;
    return (cured_cuda_ask){sizeof(cured_cuda_ask),          array, 1, r->ops, r->op_count, options,
                            cr_py_stream_of(r->input.stream)};
}

cured_values *cr_py_cuda_one(const cured_cuda_array *array, cr_term term, uintptr_t stream, cured_error *error) {
    const cured_op op = (cured_op)cr_op_of_term(term);
    const cured_cuda_ask ask = {sizeof ask, array, 1, &op, 1, NULL, cr_py_stream_of(stream)};
    cured_values *values = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_reduce(&ask, &values, error);
    PyEval_RestoreThread(thread);
    return status == CURED_OK ? values : NULL;
}

static PyObject *failed(const cured_error *error) {
    cr_py_raise(error);
    return NULL;
}

static PyObject *run_partial(const cured_cuda_ask *ask) {
    cured_error error;
    size_t bytes = CURED_PARTIAL_BYTES;
    uint8_t *out = PyMem_Malloc(bytes);
    if (out == NULL) return PyErr_NoMemory();
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_partial(ask, out, &bytes, &error);
    PyEval_RestoreThread(thread);
    PyObject *partial = status == CURED_OK ? cr_py_partial_new(out, bytes) : failed(&error);
    PyMem_Free(out);
    return partial;
}

static PyObject *run_values(cr_py_request *r, const cured_cuda_ask *ask) {
    cured_values *values = NULL;
    cured_error error;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_reduce(ask, &values, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK) return failed(&error);
    PyObject *answer = cr_py_answer_values(r, values);
    cured_values_free(values);
    return answer;
}

/* What a search asks, of the tensor. */
static PyObject *run_counts(const cr_py_request *r, const cured_cuda_ask *ask) {
    const size_t words = cr_py_search_words(r);
    const Py_ssize_t length = (Py_ssize_t)words;
    cured_error error;
    cr_py_memory *memory = words != 0 ? cr_py_memory_new(CURED_U64, 1, &length, false) : NULL;
    if (memory == NULL) return NULL;
    uint64_t *counts = cr_py_memory_data(memory);
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_count(ask, counts, words, &error);
    PyEval_RestoreThread(thread);
    if (status == CURED_OK) return cr_py_memory_array(memory);
    Py_DECREF((PyObject *)memory);
    return failed(&error);
}

/* Answers that all have values go to tensors, and nothing waits. */
static PyObject *enqueue(cr_py_request *r, const cured_cuda_ask *ask) {
    cured_error error;
    PyObject *values[CURED_MAX_OPS];
    if (cr_py_cuda_to_tensors(r, ask, 0, false, &error) != CURED_OK) return failed(&error);
    if (r->single) return cr_py_out_item(r, 0);
    for (size_t i = 0; i < r->op_count; i++) values[i] = cr_py_out_item(r, i);
    return cr_py_answer_result(r, values);
}

static PyObject *run_whole(cr_py_request *r, const cured_cuda_ask *ask) {
    if (r->out != NULL && cr_py_cuda_may_place(r)) {
        if (!cr_py_out_places(r, 0, NULL)) return NULL;
        if (r->out_tensors != NULL) return enqueue(r, ask);
        cr_py_out_release(r); /* host memory: by a copy, as any value */
    }
    return run_values(r, ask);
}

/* Answers of the ask's ops, which are the request's from number `first` on: to its tensors, or to host memory. */
static cured_status answer(const cr_py_request *r, const cured_cuda_ask *ask, size_t first, void *const *values,
                           cured_error *error) {
    if (r->out_tensors != NULL) return cr_py_cuda_to_tensors(r, ask, first, true, error);
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_reduce_axis(ask, values, error);
    PyEval_RestoreThread(thread);
    return status;
}

/* One op of an ask, with what it takes of the options: who asks for several gives each its own. */
static cured_status answer_alone(const cr_py_request *r, const cured_cuda_ask *ask, size_t i, cured_op op,
                                 void **values, cured_error *error) {
    const cr_finish_opts all = cr_py_finish_of(r);
    const cr_finish_opts share = cr_finish_share((cr_op)op, (cr_dtype)r->input.dtype, &all, NULL);
    cured_options options = *ask->options;
    cured_cuda_ask one = *ask;
    options.overflow = (cured_overflow)share.overflow;
    options.result_dtype = (cured_dtype)share.result_dtype;
    options.ddof = share.ddof;
    one.options = &options;
    one.ops = &op;
    one.op_count = 1;
    return answer(r, &one, i, values, error);
}

/* The answers that tell where there are only NaNs: an op's own; those of min for a range, which is a NaN of infinities, too, and goes to no
 * tensor then. To be freed unless they are the op's own in host memory; NULL with an exception. */
static void *telling(const cr_py_request *r, const cured_cuda_ask *ask, size_t i, uint64_t count, cr_op *op) {
    const cured_op least = (cured_op)cr_op_of_term(CR_TERM_LEAST);
    const bool placed = r->out_tensors != NULL;
    cured_error error;
    if (!placed && cr_op_term((cr_op)r->ops[i]) != CR_TERM_RANGE) return r->pointers[i];
    void *values = PyMem_Calloc(count + 1, sizeof(uint64_t));
    if (values == NULL) return PyErr_NoMemory();
    if (!placed) *op = (cr_op)least;
    const cured_status status =
        placed ? cr_py_cuda_fetch(r, i, values, &error) : answer_alone(r, ask, i, least, &values, &error);
    if (status == CURED_OK) return values;
    PyMem_Free(values);
    return failed(&error);
}

/* Why an op's answers of only NaNs, which are skipped, are not there; false with an exception. */
static bool note_lacking(cr_py_request *r, const cured_cuda_ask *ask, size_t i) {
    const cr_finish_opts opts = cr_py_finish_of(r);
    const bool some = r->offsets != NULL || r->keys != NULL || r->input.is_masked; /* elements are an output's */
    const uint64_t n = r->offsets != NULL ? r->plan.count : r->plan.axis.n,
                   count = r->offsets != NULL ? r->segments.count - 1 : r->plan.axis.outer * r->plan.axis.inner;
    const cr_op op = (cr_op)r->ops[i];
    cr_axis_missing missing = {0};
    cr_error error = {CR_OK, ""};
    cured_error raised;
    bool lacks = true;
    if (!cr_axis_may_be_none(op, (cr_dtype)r->input.dtype, &opts)) return true;
    if (r->out_tensors != NULL && cr_py_cuda_look_for_none(r, i, &lacks, &raised) != CURED_OK)
        return cr_py_raise(&raised), false;
    if (!lacks) return true;
    uint8_t *status = PyMem_Calloc(count ? count : 1, 1);
    if (status == NULL) return PyErr_NoMemory() != NULL;
    cr_op of = op;
    void *values = telling(r, ask, i, count, &of);
    if (values != NULL) cr_axis_mark(of, (cr_dtype)r->input.dtype, &opts, 0, count, values, status, &missing);
    if (r->out_tensors != NULL || values != r->pointers[i]) PyMem_Free(values);
    PyMem_Free(status);
    if (values == NULL) return false;
    if (cr_axis_say(&missing, op, cr_axis_dtype(op, (cr_dtype)r->input.dtype, &opts), n, some, count, &error) == CR_OK)
        return true;
    raised.code = (cured_status)error.code;
    snprintf(raised.text, sizeof raised.text, "%s", error.text);
    cr_py_raise(&raised);
    r->lacking[i] = cr_py_answer_take_error();
    return true;
}

/* Some op has answers without a value, as the error says. Of several each goes by itself: those of the others are there. */
static bool run_one_by_one(cr_py_request *r, const cured_cuda_ask *ask, const cured_error *first) {
    cured_error error = *first;
    for (size_t i = 0; i < r->op_count; i++) {
        const cured_status status =
            r->op_count == 1 ? error.code : answer_alone(r, ask, i, r->ops[i], &r->pointers[i], &error);
        if (status == CURED_OK) continue;
        cr_py_raise(&error);
        if (status != CURED_OUT_OF_RANGE && status != CURED_INVALID_ARGUMENT) return false;
        r->lacking[i] = cr_py_answer_take_error();
    }
    return true;
}

/* Answers in host memory, which are copied to the tensors that were to have them. */
static bool give_up_tensors(cr_py_request *r) {
    PyObject *const out = r->out;
    cr_py_out_release(r);
    r->out = NULL;
    const bool good = cr_py_answer_room(r);
    r->out = out;
    return good;
}

static PyObject *run_axis(cr_py_request *r, const cured_cuda_ask *ask) {
    cured_error error;
    if (!cr_py_answer_room(r)) return NULL;
    if (r->out_tensors != NULL && !cr_py_cuda_may_lack(r)) return enqueue(r, ask);
    cured_status status = answer(r, ask, 0, r->pointers, &error);
    if (status == CURED_UNIMPLEMENTED && r->out_tensors != NULL) {
        if (!give_up_tensors(r)) return NULL;
        status = answer(r, ask, 0, r->pointers, &error);
    }
    if (status != CURED_OK && cr_py_cuda_is_lacking(r, &error)) {
        if (!run_one_by_one(r, ask, &error)) return NULL;
    } else if (status != CURED_OK) {
        return failed(&error);
    }
    for (size_t i = 0; i < r->op_count; i++)
        if (r->lacking[i] == NULL && !note_lacking(r, ask, i)) return NULL;
    return cr_py_answer_arrays(r);
}

PyObject *cr_py_cuda_run(cr_py_request *r) {
    cured_cuda_array array;
    cured_options options;
    cured_error error;
    if (!check(r)) return NULL;
    const cured_cuda_ask ask = ask_of(r, &array, &options);
    if (cr_py_cuda_order_read(r, false, &error) != CURED_OK) return failed(&error);
    if (r->partial) return r->keys != NULL ? cr_py_cuda_partial_by_key(&ask) : run_partial(&ask);
    if (r->options.asked != NULL) return run_counts(r, &ask);
    return r->plan.whole && r->offsets == NULL ? run_whole(r, &ask) : run_axis(r, &ask);
}

/* ---- Lists: for cured/_lists.py ---- */

typedef cr_py_tensor_list tensor_list;

cured_cuda_ask cr_py_cuda_ask_of_list(const tensor_list *list, const cr_py_request *r, const cured_options *options) {
    return (cured_cuda_ask){sizeof(cured_cuda_ask),       list->arrays, list->count, r->ops, r->op_count, options,
                            cr_py_stream_of(list->stream)};
}

void cr_py_cuda_end_list(tensor_list *list) {
    PyMem_Free(list->arrays);
    Py_CLEAR(list->held);
}

/* Whether an element and its negative are the same to all of the ops. */
static bool are_even(const cr_py_request *r) {
    uint32_t needs = 0;
    for (size_t i = 0; i < r->op_count; i++) needs |= cr_op_needs((cr_op)r->ops[i], CR_F32);
    return (needs & ~(uint32_t)(CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_COUNTS)) == 0;
}

/* One tensor more, which the list keeps alive. The tensors of a list are of one device, so one stream is the current one for all whose
 * library is the same. */
static bool add(tensor_list *list, PyObject *tensor, PyTypeObject **type, cr_py_request *r) {
    int device;
    const int borrowed = cr_py_tensor_borrow(tensor, list->even, &list->arrays[list->count], &device,
                                             list->count == 0 ? &list->stream : NULL);
    if (borrowed > 0 && (list->count == 0 || Py_TYPE(tensor) == *type)) {
        *type = Py_TYPE(tensor);
        list->count++;
        return true;
    }
    if (borrowed < 0) return false;
    cr_py_input in = {.owner = tensor};
    cr_py_plan plan;
    bool good = cr_py_input_tensor(&in, tensor) > 0;
    if (!good && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "a CUDA tensor is wanted, not %R", (PyObject *)Py_TYPE(tensor));
    if (good && in.kind != CR_PY_CUDA) {
        PyErr_SetString(PyExc_TypeError, "a CUDA tensor is wanted; this one lies in host memory");
        good = false;
    }
    r->input.dtype = in.dtype;
    good = good && cr_py_plan_make(&plan, &in, 0, true, cr_py_request_is_ordered(r));
    if (good && !plan.contiguous && plan.count != 0) {
        PyErr_Format(PyExc_ValueError, "tensor %zu of the list has gaps, or its order matters: pass contiguous ones",
                     list->count);
        good = false;
    }
    if (good && list->count != 0 && in.stream != list->stream) list->mixed = true;
    if (good && list->count == 0) list->stream = in.stream;
    if (good) list->arrays[list->count++] = (cured_cuda_array){plan.count ? plan.data : NULL, plan.count, in.dtype};
    cr_py_input_release(&in);
    return good;
}

bool cr_py_cuda_take_list(tensor_list *list, PyObject *tensors, cr_py_request *r) {
    const Py_ssize_t count = PyList_Size(tensors);
    PyTypeObject *type = NULL; /* of the tensors that were borrowed */
    *list = (tensor_list){.even = are_even(r)};
    if (count < 1) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the list has no tensors");
        return false;
    }
    list->arrays = PyMem_Malloc((size_t)count * sizeof list->arrays[0]);
    bool good = list->arrays != NULL;
    if (!good) PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && good && !list->mixed; i++)
        good = add(list, PyList_GetItem(tensors, i), &type, r);
    if (!good) cr_py_cuda_end_list(list);
    return good;
}

/* Borrows every tensor of a list or tuple. 1: all are of one library, device and dtype, or with types of dtypes that have a common one; 0:
 * some is not; -1: exception. */
static int borrow_all(tensor_list *list, PyObject *tensors, const cr_py_request *r, bool types) {
    PyTypeObject *type = NULL;
    *list = (tensor_list){.even = are_even(r), .held = PySequence_Tuple(tensors)};
    if (list->held == NULL) return -1;
    const Py_ssize_t count = PyTuple_Size(list->held);
    int taken = count > 0, first = 0;
    uint32_t found = 0; /* types: 1 << cr_dtype */
    if (taken) list->arrays = PyMem_Malloc((size_t)count * sizeof *list->arrays);
    if (taken && list->arrays == NULL) {
        PyErr_NoMemory();
        taken = -1;
    }
    for (Py_ssize_t i = 0; i < count && taken > 0; i++) {
        PyObject *tensor = PyTuple_GetItem(list->held, i);
        cured_cuda_array *to = &list->arrays[i];
        int device = 0;
        taken = cr_py_tensor_borrow(tensor, list->even, to, &device, i == 0 ? &list->stream : NULL);
        if (i == 0) type = Py_TYPE(tensor), first = device;
        if (taken > 0) taken = Py_TYPE(tensor) == type && device == first;
        if (taken > 0) found |= UINT32_C(1) << to->dtype;
        list->count += taken > 0;
    }
    cr_dtype wide;
    cr_error ignored;
    if (taken > 0 && (found & (found - 1)) != 0) taken = types && cr_widen_common(found, &wide, &ignored) == CR_OK;
    if (taken <= 0) cr_py_cuda_end_list(list);
    return taken;
}

PyObject *cr_py_cuda_list(cr_py_request *r) {
    tensor_list list;
    if (r->client != NULL || r->axis != NULL || r->where != NULL || r->initial != NULL || r->out != NULL ||
        r->keepdims || r->keys != NULL || r->groups != NULL || r->by_key.drop || r->offsets != NULL ||
        r->second != NULL || r->shape != NULL || r->start != NULL)
        return NULL; /* cured/_lists.py says why */
    if (borrow_all(&list, r->array, r, true) <= 0) return NULL;
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(&list, r, &r->options);
    PyObject *answer = r->partial ? run_partial(&ask) : run_values(r, &ask);
    cr_py_cuda_end_list(&list);
    return answer;
}

/* _cuda_whole(list, ops): the partial without a position; None: it is none of such a list. */
PyObject *cr_py_cuda_whole(PyObject *module, PyObject *args) {
    PyObject *tensors, *ops;
    cr_py_request r = {.partial = true};
    static const cured_options defaults = CURED_OPTIONS_INIT;
    cured_options options = defaults;
    tensor_list list;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &tensors, &ops) || !cr_py_request_ops(&r, ops)) return NULL;
    const int taken = borrow_all(&list, tensors, &r, false);
    if (taken <= 0) return taken < 0 ? NULL : Py_NewRef(Py_None);
    options.unplaced = true;
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(&list, &r, &options);
    PyObject *partial = run_partial(&ask);
    cr_py_cuda_end_list(&list);
    return partial;
}

/* 1: the stream will write r's one op of the list to out; 0: it cannot, or the answer is not of out's type; -1: exception. An op that
 * gives an element, as norminf, takes no type of its result. */
static int enqueue_list(const tensor_list *list, cr_py_request *r, const cured_cuda_array *out) {
    const cr_op op = (cr_op)r->ops[0];
    const cr_dtype dtype = (cr_dtype)list->arrays[0].dtype;
    cured_error error;
    r->options.result_dtype = out->dtype;
    const cr_finish_opts opts = cr_py_finish_of(r), share = cr_finish_share(op, dtype, &opts, NULL);
    if (cr_axis_dtype(op, dtype, &share) != (cr_dtype)out->dtype) return 0;
    r->options.result_dtype = (cured_dtype)share.result_dtype;
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(list, r, &r->options);
    const cured_status status =
        cr_py_cuda_enqueue(&ask, (void *const[]){(void *)out->data}, false, &error); /* NOLINT: written */
    if (status == CURED_OK || status == CURED_UNIMPLEMENTED) return status == CURED_OK;
    cr_py_raise(&error);
    return -1;
}

/* _cuda_to(list, op, out): the one op of all tensors, to the 0-d tensor out, of a float's type. False: it cannot be so. */
PyObject *cr_py_cuda_to(PyObject *module, PyObject *args) {
    PyObject *tensors, *op, *out;
    static const cured_options defaults = CURED_OPTIONS_INIT;
    cr_py_request r = {.single = true};
    tensor_list list, to;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO", &PyList_Type, &tensors, &op, &out) || !cr_py_request_ops(&r, op)) return NULL;
    r.options = defaults;
    PyObject *outs = PyTuple_Pack(1, out);
    int taken = outs != NULL ? borrow_all(&to, outs, &r, false) : -1;
    Py_XDECREF(outs);
    if (taken <= 0) return taken < 0 ? NULL : Py_NewRef(Py_False);
    taken = to.arrays[0].count == 1 ? borrow_all(&list, tensors, &r, false) : 0;
    if (taken > 0) {
        taken = enqueue_list(&list, &r, &to.arrays[0]);
        cr_py_cuda_end_list(&list);
    }
    cr_py_cuda_end_list(&to);
    return taken < 0 ? NULL : PyBool_FromLong(taken);
}

PyObject *cr_py_cuda_partial(PyObject *module, PyObject *args) {
    PyObject *tensors, *ops, *first, *answer = NULL;
    cr_py_request r = {.partial = true};
    static const cured_options defaults = CURED_OPTIONS_INIT;
    tensor_list list;
    cured_options options = defaults;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!OO", &PyList_Type, &tensors, &ops, &first)) return NULL;
    options.unplaced = first == Py_None;
    if (first != Py_None && !cr_py_number(first, "first", &options.first)) return NULL;
    r.options = options;
    if (!cr_py_request_ops(&r, ops) || !cr_py_cuda_take_list(&list, tensors, &r)) return NULL;
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(&list, &r, &options);
    answer = list.mixed ? Py_NewRef(Py_None) : run_partial(&ask);
    cr_py_cuda_end_list(&list);
    return answer;
}

/* _cuda_each(list, ops, alike, **options): alike: also a tuple, and None where the tensors are not all of one library, device and dtype. */
PyObject *cr_py_cuda_each(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    cr_py_request r = {.single = false};
    tensor_list list;
    cured_error error;
    PyObject *answer = NULL;
    (void)module;
    if (nargs != 3 || !(PyList_Check(args[0]) || (args[2] == Py_True && PyTuple_Check(args[0]))))
        return PyErr_Format(PyExc_TypeError, "a list, the ops and a bool are wanted");
    if (!cr_py_request_ops(&r, args[1]) || !cr_py_request_options(&r, args + 3, 0, kwnames)) return NULL;
    if (args[2] == Py_True) {
        const int taken = borrow_all(&list, args[0], &r, true);
        if (taken <= 0) return taken < 0 ? NULL : Py_NewRef(Py_None);
    } else if (!cr_py_cuda_take_list(&list, args[0], &r)) {
        return NULL;
    }
    cured_values **values = calloc(list.count, sizeof *values);
    const cured_cuda_ask ask = cr_py_cuda_ask_of_list(&list, &r, &r.options);
    if (list.mixed) {
        answer = Py_NewRef(Py_None);
    } else if (values != NULL) {
        PyThreadState *thread = PyEval_SaveThread();
        const cured_status status = cured_cuda_reduce_each(&ask, values, &error);
        PyEval_RestoreThread(thread);
        if (status == CURED_OK) {
            answer = cr_py_results_new(&r, values, list.count);
            values = NULL;
        } else {
            answer = failed(&error); /* which left no values */
        }
    } else {
        PyErr_NoMemory();
    }
    free(values);
    cr_py_cuda_end_list(&list);
    return answer;
}
