/* module: cured._cured, and how a status becomes an exception.
 *
 * Thread: with the GIL. Owner: types and caches live as long as the process. */
#include <string.h>

#include "client/python/arrow.h"
#include "client/python/extension.h"
#include "client/python/tensor.h"
#include "kernels/core/op.h"

PyObject *cr_py_error;

static PyObject *class_of(cured_status status) {
    switch (status) {
        case CURED_INVALID_ARGUMENT:
            return PyExc_ValueError;
        case CURED_UNIMPLEMENTED:
            return PyExc_NotImplementedError;
        case CURED_OUT_OF_RANGE:
            return PyExc_OverflowError;
        case CURED_DEADLINE_EXCEEDED:
            return PyExc_TimeoutError;
        case CURED_UNAVAILABLE:
            return PyExc_ConnectionError;
        case CURED_PERMISSION_DENIED:
            return PyExc_PermissionError;
        default:
            return cr_py_error;
    }
}

/* What libcured and a daemon call what Python's functions have under another name. */
static const struct {
    const char *there, *here;
} words[] = {{"result_dtype", "dtype"}, {"layout", "shape, start"}, {"mask:", "where:"}, {"unplaced:", "first:"}};

/* The length of the word of the list that `at` begins with, as a whole word; 0: it begins with none. */
static size_t word_at(const char *text, const char *at, const char **here) {
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i].there);
        if (strncmp(at, words[i].there, length) != 0 || (at != text && at[-1] != ' ')) continue;
        if (strchr(" ,:;", at[length]) == NULL) continue; /* the end is one, too */
        if (words[i].there[length - 1] == ':' && at != text)
            continue; /* an argument's name, and no mask that is spoken of */
        *here = words[i].here;
        return length;
    }
    return 0;
}

/* Writes the sentence in Python's words. No word becomes more than twice as long. */
static void translate(const char *text, char to[2 * CURED_ERROR_BYTES]) {
    for (const char *at = text; *at != '\0';) {
        const char *here;
        const size_t length = word_at(text, at, &here);
        if (length != 0) {
            const size_t bytes = strlen(here);
            memcpy(to, here, bytes);
            to += bytes;
            at += length;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}

static void raise_text(cured_status code, const char *sentence) {
    PyObject *class = class_of(code);
    PyObject *text = PyUnicode_DecodeUTF8(sentence, (Py_ssize_t)strlen(sentence), "replace"); /* it may name a path */
    if (text == NULL) return;
    if (class == cr_py_error)
        PyErr_Format(class, "%s: %U", cured_status_name(code), text);
    else
        PyErr_SetObject(class, text);
    Py_DECREF(text);
}

void cr_py_raise(const cured_error *error) {
    char sentence[2 * CURED_ERROR_BYTES + 32];
    translate(error->text, sentence);
    if (error->code == CURED_OUT_OF_RANGE &&
        (strstr(sentence, "does not fit i64") || strstr(sentence, "does not fit u64")))
        strcat(sentence, "; dtype='f8' rounds it");
    raise_text(error->code, sentence);
}

void cr_py_raise_as_it_is(const cured_error *error) { raise_text(error->code, error->text); }

static _Thread_local int depth;

bool cr_py_enter(void) {
    if (depth < CR_PY_MOST_DEPTH) {
        depth++;
        return true;
    }
    PyErr_Format(PyExc_RecursionError,
                 "cured was called from inside its own calls, by their arguments, %d deep: the limit",
                 CR_PY_MOST_DEPTH);
    return false;
}

void cr_py_leave(void) { depth--; }

PyObject *cr_py_helper(const char *file, const char *function, PyObject *argument) {
    PyObject *module = PyImport_ImportModule(file);
    PyObject *callable = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *answer = callable != NULL ? PyObject_CallFunctionObjArgs(callable, argument, NULL) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(callable);
    return answer;
}

static PyObject *tensor_count(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyLong_FromSsize_t(cr_py_tensor_count());
}

static PyObject *numpy_known(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyBool_FromLong(cr_py_numpy_known());
}

static bool add_error(PyObject *module) {
    cr_py_error = PyErr_NewExceptionWithDoc("cured.Error", "What no exception of Python's own is the name of.",
                                            PyExc_RuntimeError, NULL);
    return cr_py_error != NULL && PyModule_AddObjectRef(module, "Error", cr_py_error) == 0;
}

/* Whether a name is that of a type of floats: for _out.py. */
static PyObject *is_float(PyObject *module, PyObject *name) {
    cr_dtype dtype = CR_DTYPE_NONE;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    (void)module;
    if (text == NULL) return NULL;
    return PyBool_FromLong(cr_dtype_parse(text, &dtype, NULL) == CR_OK && cr_dtype_kind(dtype) == CR_KIND_FLOAT);
}

/* What a row of ops says, by its name: for blocks, lists and dask.py. A name that is none is false. */
static PyObject *ask_op(PyObject *name, bool (*says)(cr_op op)) {
    cr_op op = CR_OP_NONE;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    return text == NULL ? NULL : PyBool_FromLong(cr_op_parse(text, &op, NULL) == CR_OK && says(op));
}

static bool goes_by_rank(cr_op op) { return cr_op_closing(op) == CR_CLOSING_ORDER; }

static PyObject *is_index(PyObject *module, PyObject *name) {
    (void)module;
    return ask_op(name, cr_op_is_index);
}

static PyObject *is_ranked(PyObject *module, PyObject *name) {
    (void)module;
    return ask_op(name, goes_by_rank);
}

static bool goes_by_pairs(cr_op op) { return cr_op_inputs(op) == 2; }

static PyObject *is_paired(PyObject *module, PyObject *name) {
    (void)module;
    return ask_op(name, goes_by_pairs);
}

static PyObject *is_ordered(PyObject *module, PyObject *args) {
    cr_op op = CR_OP_NONE;
    cr_dtype dtype = CR_DTYPE_NONE;
    const char *op_name, *dtype_name;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss", &op_name, &dtype_name)) return NULL;
    return PyBool_FromLong(cr_op_parse(op_name, &op, NULL) == CR_OK &&
                           cr_dtype_parse(dtype_name, &dtype, NULL) == CR_OK && cr_op_is_ordered(op, dtype));
}

/* What Arrow calls the types whose elements lie as cured's do: for _adapt.py. */
static const char arrow_types[] =
#define CR_DTYPE(symbol, id, name, size, kind, numpy, code, dlpack, arrow, ...) " " arrow
#include "kernels/core/dtype.def"
#undef CR_DTYPE
    ;

/* The ops' names: for _result.py. */
static const char op_names[] =
#define CR_OP(symbol, id, name, ...) " " name
#include "kernels/core/op.def"
#undef CR_OP
    ;

#define WITH_KEYWORDS(function) (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS
PyMODINIT_FUNC PyInit__cured(void);

/* Types and caches are the process's, so only its main interpreter has the module. There it may be imported anew. */
static int fill(PyObject *module) {
    static PyObject *filled; /* what the first one has */
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) {
        PyErr_SetString(PyExc_ImportError, "cured works in the main interpreter alone: import it there");
        return -1;
    }
    if (filled != NULL) return PyDict_Merge(PyModule_GetDict(module), filled, 0);
    if (!add_error(module) || !cr_py_memory_ready(module) || !cr_py_client_ready(module) ||
        !cr_py_partial_ready(module) || !cr_py_file_ready(module) || !cr_py_async_ready(module) ||
        !cr_py_search_ready(module) || !cr_py_results_ready(module) || !cr_py_arrow_ready(module) ||
        PyModule_AddStringConstant(module, "__version__", cured_version()) != 0 ||
        PyModule_AddStringConstant(module, "_arrow_types", arrow_types) != 0 ||
        PyModule_AddStringConstant(module, "_ops", op_names) != 0)
        return -1;
    filled = PyDict_Copy(PyModule_GetDict(module));
    return filled != NULL ? 0 : -1;
}

PyMODINIT_FUNC PyInit__cured(void) {
    static PyMethodDef own[] = {
        {"from_linear", WITH_KEYWORDS(cr_py_from_linear),
         "from_linear(array, dtype, ops, maxima=None)\n--\n\nThe Partial of linear forms that were added, and "
         "compared."},
        {"_widened", cr_py_widened, METH_VARARGS, "A list's partials, of one type or several, as one: for _lists.py."},
        {"_is_of_numbers", cr_py_of_numbers, METH_O, "Whether a list stands for an array: for _pairs.py."},
        {"merge", cr_py_merge, METH_O, "merge($module, parts, /)\n--\n\nMerges partials, in any order: a Partial."},
        {"empty", WITH_KEYWORDS(cr_py_empty),
         "empty($module, shape, dtype='f64')\n--\n\nAn array in memory that the daemon reads without a copy."},
        {"file", WITH_KEYWORDS(cr_py_file_open),
         "file($module, path, dtype=None, *, offset=0, raw=False)\n--\n\nAn array in a file: .npy, or raw elements "
         "with dtype=."},
        {"_weights", cr_py_weights, METH_VARARGS, "The tensors of a checkpoint, and their answers."},
        {"_cuda_partial", cr_py_cuda_partial, METH_VARARGS, "The partial of a list of CUDA tensors, by their GPU."},
        {"_cuda_stats", (PyCFunction)(void (*)(void))cr_py_cuda_stats, METH_FASTCALL | METH_KEYWORDS,
         "A Result for each CUDA tensor of a list, made while the GPU is at the next ones."},
        {"_cuda_each", (PyCFunction)(void (*)(void))cr_py_cuda_each, METH_FASTCALL | METH_KEYWORDS,
         "A Result for each CUDA tensor of a list."},
        {"_results", cr_py_results_of, METH_O, "The Results of a list, as a sequence."},
        {"_cuda_to", cr_py_cuda_to, METH_VARARGS, "An op of a list of CUDA tensors, to a tensor of one element."},
        {"_cuda_linear", cr_py_cuda_linear, METH_VARARGS, "The linear form of CUDA tensors, to CUDA tensors."},
        {"_cuda_from_linear", cr_py_cuda_from_linear, METH_VARARGS,
         "Answers of linear forms, from and to CUDA tensors."},
        {"_cuda_whole", cr_py_cuda_whole, METH_VARARGS, "The partial of a list of CUDA tensors alike, or None."},
        {"_is_float", is_float, METH_O, "Whether a type's name is that of floats."},
        {"_is_index", is_index, METH_O, "Whether an operation's answer is an index."},
        {"_is_ranked", is_ranked, METH_O, "Whether an operation is found by a search."},
        {"_is_paired", is_paired, METH_O, "Whether an operation is of two arrays."},
        {"_is_ordered", is_ordered, METH_VARARGS, "Whether an operation's answer on a type depends on the order."},
        {"_tensor_count", tensor_count, METH_NOARGS, "CUDA tensors whose regions are kept: for tests."},
        {"_numpy_known", numpy_known, METH_NOARGS, "Whether NumPy's arrays are read by their fields: for tests."},
        {"_look_seats", cr_py_look_seats, METH_O, "How many more threads may look for answers: for tests."},
        {NULL, NULL, 0, NULL}};
    static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
    static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                            .m_name = "cured._cured",
                                            .m_doc = "The extension behind the package cured.",
                                            .m_slots = slots};
    if (definition.m_methods == NULL) definition.m_methods = cr_py_ops_methods(own, CR_PY_OF_MODULE);
    return definition.m_methods != NULL ? PyModuleDef_Init(&definition) : NULL;
}
