/* results: the answers for each of many arrays, for cured.reduce_each and cured.torch.stats: a sequence whose Results are made when they are
 * asked for, because ten thousand objects take Python longer than their answers take. It compares as a list of them, and its slices, copies
 * and pickles are lists.
 *
 * Thread: with the GIL. Owner: the sequence owns libcured's values, and each Result once it is made. */
#include <stdlib.h>

#include "client/python/extension.h"
#include "kernels/core/float_state.h"

static PyTypeObject *results_type;

typedef struct results {
    PyObject_HEAD Py_ssize_t count;
    PyObject *names;       /* a tuple: the ops' */
    cured_values **values; /* NULL: all Results were given. They stay: what makes one may run code that asks for it */
    PyObject **made;       /* NULL: that Result was not asked for yet */
} results;

static void free_values(cured_values **values, size_t count) {
    for (size_t i = 0; values != NULL && i < count; i++) cured_values_free(values[i]);
    free(values);
}

/* Without values and names. */
static results *results_new(Py_ssize_t count) {
    results *all = (results *)PyType_GenericAlloc(results_type, 0);
    if (all == NULL) return NULL;
    all->made = PyMem_Calloc((size_t)count + 1, sizeof all->made[0]);
    if (all->made == NULL) {
        PyErr_NoMemory();
        Py_CLEAR(all);
    } else {
        all->count = count;
    }
    return all;
}

PyObject *cr_py_results_new(const cr_py_request *r, cured_values **values, size_t count) {
    results *all = results_new((Py_ssize_t)count);
    PyObject *names = all != NULL ? PyTuple_New((Py_ssize_t)r->op_count) : NULL;
    bool good = names != NULL;
    for (size_t i = 0; i < r->op_count && good; i++) {
        PyObject *name = PyUnicode_InternFromString(cured_op_name(r->ops[i]));
        good = name != NULL && PyTuple_SetItem(names, (Py_ssize_t)i, name) == 0;
    }
    if (!good) {
        free_values(values, count);
        Py_XDECREF(names);
        Py_XDECREF((PyObject *)all);
        return NULL;
    }
    all->names = names;
    all->values = values;
    return (PyObject *)all;
}

PyObject *cr_py_results_of(PyObject *module, PyObject *list) {
    (void)module;
    if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "a list of Results is wanted");
    results *all = results_new(PyList_Size(list));
    for (Py_ssize_t i = 0; all != NULL && i < all->count; i++) all->made[i] = Py_NewRef(PyList_GetItem(list, i));
    return (PyObject *)all;
}

/* The Result at a place that there is; a new reference. */
static PyObject *at(results *all, Py_ssize_t place) {
    if (all->made[place] == NULL) {
        const uint64_t state = cr_float_enter();
        PyObject *made = cr_py_answer_named(all->names, all->values[place]);
        cr_float_leave(state);
        if (made == NULL) return NULL;
        if (all->made[place] == NULL)
            all->made[place] = made;
        else
            Py_DECREF(made);
    }
    return Py_NewRef(all->made[place]);
}

static PyObject *item(PyObject *self, Py_ssize_t place) {
    results *all = (results *)self;
    if (place >= 0 && place < all->count) return at(all, place);
    return PyErr_Format(PyExc_IndexError, "there are %zd results, from index 0 on", all->count);
}

/* A list of so many, from one on. */
static PyObject *listed(results *all, Py_ssize_t from, Py_ssize_t step, Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = at(all, from + i * step);
        if (one == NULL)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, one);
    }
    return list;
}

static PyObject *whole(PyObject *self) { return listed((results *)self, 0, 1, ((results *)self)->count); }

static PyObject *subscript(PyObject *self, PyObject *key) {
    results *all = (results *)self;
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) != 0) return NULL;
        const Py_ssize_t count = PySlice_AdjustIndices(all->count, &start, &stop, step);
        return listed(all, start, step, count);
    }
    if (!PyIndex_Check(key))
        return PyErr_Format(PyExc_TypeError, "results: an integer or a slice is wanted, not %R",
                            (PyObject *)Py_TYPE(key));
    const Py_ssize_t place = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (place == -1 && PyErr_Occurred()) return NULL;
    return item(self, place < 0 ? place + all->count : place);
}

static Py_ssize_t length(PyObject *self) { return ((results *)self)->count; }

/* A list of what is one, or of results; a new reference, or Py_NotImplemented of others. */
static PyObject *as_list(PyObject *object) {
    if (Py_TYPE(object) == results_type) return whole(object);
    return Py_NewRef(PyList_Check(object) ? object : Py_NotImplemented);
}

static PyObject *compare(PyObject *self, PyObject *other, int op) {
    PyObject *theirs = as_list(other);
    if (theirs == NULL || theirs == Py_NotImplemented) return theirs;
    PyObject *own = whole(self), *answer = own != NULL ? PyObject_RichCompare(own, theirs, op) : NULL;
    Py_XDECREF(own);
    Py_DECREF(theirs);
    return answer;
}

/* One of the two is of results. */
static PyObject *add(PyObject *left, PyObject *right) {
    PyObject *a = as_list(left), *b = a != NULL ? as_list(right) : NULL, *sum = NULL;
    if (b != NULL && (a == Py_NotImplemented || b == Py_NotImplemented))
        sum = Py_NewRef(Py_NotImplemented);
    else if (b != NULL)
        sum = PySequence_Concat(a, b);
    Py_XDECREF(a);
    Py_XDECREF(b);
    return sum;
}

static PyObject *repr(PyObject *self) {
    PyObject *list = whole(self), *text = list != NULL ? PyObject_Repr(list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return whole(self);
}

static PyObject *reduce(PyObject *self, PyObject *unused) {
    PyObject *list = whole(self);
    (void)unused;
    return list != NULL ? Py_BuildValue("O(N)", (PyObject *)&PyList_Type, list) : NULL;
}

/* A method of the list's. */
static PyObject *by_list(PyObject *self, const char *name, PyObject *args) {
    PyObject *list = whole(self), *method = list != NULL ? PyObject_GetAttrString(list, name) : NULL;
    PyObject *answer = method != NULL ? PyObject_Call(method, args, NULL) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(list);
    return answer;
}

static PyObject *index_of(PyObject *self, PyObject *args) { return by_list(self, "index", args); }

static PyObject *count_of(PyObject *self, PyObject *args) { return by_list(self, "count", args); }

static int traverse(PyObject *self, visitproc visit, void *arg) {
    const results *all = (results *)self;
    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < all->count; i++) Py_VISIT(all->made[i]);
    return 0;
}

static void dealloc(PyObject *self) {
    results *all = (results *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < all->count; i++) Py_XDECREF(all->made[i]);
    PyMem_Free(all->made);
    free_values(all->values, (size_t)all->count);
    Py_XDECREF(all->names);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

bool cr_py_results_ready(PyObject *module) {
    static PyMethodDef methods[] = {{"copy", copy, METH_NOARGS, "copy($self, /)\n--\n\nA list of the Results."},
                                    {"index", index_of, METH_VARARGS,
                                     "index($self, value, start=0, stop=9223372036854775807, /)\n--\n\nAs list's."},
                                    {"count", count_of, METH_VARARGS, "count($self, value, /)\n--\n\nAs list's."},
                                    {"__reduce__", reduce, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                                  {Py_tp_traverse, traverse},
                                  {Py_tp_methods, methods},
                                  {Py_tp_richcompare, compare},
                                  {Py_tp_hash, PyObject_HashNotImplemented},
                                  {Py_tp_iter, PySeqIter_New},
                                  {Py_tp_repr, repr},
                                  {Py_sq_length, length},
                                  {Py_sq_item, item},
                                  {Py_mp_length, length},
                                  {Py_mp_subscript, subscript},
                                  {Py_nb_add, add},
                                  {Py_tp_doc, "The Result of each array, which is made when it is asked for."},
                                  {0, NULL}};
    static PyType_Spec spec = {"cured.Results", sizeof(results), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    results_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return results_type != NULL && PyModule_AddType(module, results_type) == 0;
}
