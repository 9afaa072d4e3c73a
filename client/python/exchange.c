/* exchange: what a tensor is, and on which stream its work goes, asked of C functions that its type names, as torch.Tensor does
 * since 2.10: DLPack 1.3, DLPackExchangeAPI in dlpack.h, in a capsule __dlpack_c_exchange_api__ of the type. No Python code runs,
 * where __dlpack__ of torch makes objects for two streams.
 *
 * Thread: with the GIL. Owner: types that were asked are kept for ever; an input holds the tensor that a type gave. */
#include "client/python/tensor.h"

enum { MAJOR = 1, TYPES = 16 };

typedef struct dl_version {
    uint32_t major, minor;
} dl_version;

/* DLManagedTensorVersioned. */
typedef struct dl_versioned {
    dl_version version;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    cr_py_dl tensor;
} dl_versioned;

/* DLPackExchangeAPI. */
struct cr_py_exchange {
    dl_version version;
    const cr_py_exchange *previous; /* of another major version */
    void *allocate;
    int (*tensor_of)(void *object, dl_versioned **out);
    int (*object_of)(dl_versioned *tensor, void **out);
    int (*borrow)(void *object, cr_py_dl *out);
    int (*stream)(int device_type, int32_t device_id, void **out);
};

/* Types that were asked. */
static struct {
    PyTypeObject *type;
    const cr_py_exchange *exchange; /* NULL: it has none */
} known[TYPES];
static size_t known_count;

/* NULL: none of a version that is known here. */
static const cr_py_exchange *of_capsule(PyObject *capsule) {
    static const char name[] = "dlpack_exchange_api";
    if (!PyCapsule_IsValid(capsule, name)) return NULL;
    const cr_py_exchange *exchange = PyCapsule_GetPointer(capsule, name);
    while (exchange != NULL && exchange->version.major != MAJOR) exchange = exchange->previous;
    return exchange != NULL && exchange->tensor_of != NULL && exchange->stream != NULL ? exchange : NULL;
}

const cr_py_exchange *cr_py_exchange_of(PyTypeObject *type) {
    for (size_t i = 0; i < known_count; i++)
        if (known[i].type == type) return known[i].exchange;
    PyObject *capsule = cr_py_maybe((PyObject *)type, "__dlpack_c_exchange_api__");
    if (capsule == NULL && PyErr_Occurred()) return NULL;
    const cr_py_exchange *exchange = capsule != NULL ? of_capsule(capsule) : NULL;
    Py_XDECREF(capsule); /* the table behind it stays as long as the process, as DLPack says */
    if (known_count < TYPES) {
        known[known_count].type = (PyTypeObject *)Py_NewRef((PyObject *)type);
        known[known_count++].exchange = exchange;
    }
    return exchange;
}

static void give_back(dl_versioned *t) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace); /* the deleter may run Python code */
    if (t->deleter != NULL) t->deleter(t);
    PyErr_Restore(type, error, trace);
}

static void capsule_done(PyObject *capsule) { give_back(PyCapsule_GetPointer(capsule, NULL)); }

const cr_py_dl *cr_py_exchange_tensor(const cr_py_exchange *exchange, cr_py_input *in, PyObject *array) {
    dl_versioned *t = NULL;
    if (exchange->tensor_of(array, &t) != 0 || t == NULL) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%R gave no tensor", (PyObject *)Py_TYPE(array));
        return NULL;
    }
    if (t->version.major != MAJOR) { /* only its deleter lies where it lies in version 1 */
        PyErr_Format(PyExc_TypeError, "%R speaks DLPack %u, and %d is read", (PyObject *)Py_TYPE(array),
                     t->version.major, MAJOR);
        give_back(t);
        return NULL;
    }
    PyObject *held = PyCapsule_New(t, NULL, capsule_done);
    if (held == NULL) {
        give_back(t);
        return NULL;
    }
    cr_py_input_hold(in, held);
    return &t->tensor;
}

bool cr_py_exchange_borrow(const cr_py_exchange *exchange, PyObject *array, cr_py_dl *tensor) {
    if (exchange->borrow == NULL) return false;
    if (exchange->borrow(array, tensor) == 0) return true;
    PyErr_Clear(); /* what it objects to is said by the longer way */
    return false;
}

bool cr_py_exchange_stream(const cr_py_exchange *exchange, const cr_py_dl *tensor, uintptr_t *stream) {
    void *current = NULL;
    if (exchange->stream(tensor->device_type, tensor->device_id, &current) != 0) {
        if (!PyErr_Occurred()) PyErr_SetString(cr_py_error, "the tensor's type does not say which stream it uses");
        return false;
    }
    *stream = cr_py_stream((uintptr_t)current);
    return true;
}
