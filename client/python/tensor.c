/* tensor: arrays that speak DLPack or have __cuda_array_interface__: host tensors without the buffer protocol (torch's bf16),
 * and CUDA memory, which a daemon reads through a region. The region is kept as long as the tensor is referenced, by a weak
 * reference to it.
 *
 * What a tensor's own stream still has to write must be there before a daemon reads, so that stream is waited for; in this process
 * (cuda.c) the answer is put in it. exchange.c says which stream that is, or cured/_streams.py does. libcuda is the one that the
 * program has loaded; nothing is linked with it.
 *
 * Thread: with the GIL, but for the wait. Owner: `tensors` below owns the regions; an input owns its DLPack capsule. */
#include <dlfcn.h>
#include <string.h>

#include "client/python/tensor.h"
#include "kernels/core/dtype.h"

enum { PER_THREAD_STREAM = 2, POINTER_CONTEXT = 1, NOT_READY = 600 };

/* DLPack's ABI, of capsules named "dltensor". */
typedef struct dl_managed {
    cr_py_dl tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;

/* ---- CUDA memory ---- */

static PyObject *tensors; /* id(tensor): (weak reference, capsule of what is kept) */

typedef struct kept_tensor {
    const void *data;
    uint64_t bytes;
    cr_py_kept *regions;
} kept_tensor;

/* Of each tensor two: what is read, and what is written. */
static void kept_tensor_free(PyObject *capsule) {
    kept_tensor *kept = PyCapsule_GetPointer(capsule, NULL);
    cr_py_kept_drop(&kept[0].regions);
    cr_py_kept_drop(&kept[1].regions);
    PyMem_Free(kept);
}

/* The weak reference's callback; self is id(tensor). */
static PyObject *tensor_gone(PyObject *self, PyObject *reference) {
    (void)reference;
    if (PyDict_DelItem(tensors, self) != 0) PyErr_Clear();
    Py_RETURN_NONE;
}

/* A new entry for the tensor; borrowed. Without weak references (*entry stays NULL) its regions cannot be kept. */
static bool remember(PyObject *tensor, PyObject *id, PyObject **entry) {
    static PyMethodDef gone = {"tensor_gone", tensor_gone, METH_O, NULL};
    *entry = NULL;
    PyObject *callback = PyCFunction_New(&gone, id);
    PyObject *reference = callback != NULL ? PyWeakref_NewRef(tensor, callback) : NULL;
    Py_XDECREF(callback);
    if (reference == NULL) {
        PyErr_Format(PyExc_TypeError, "%R cannot be weakly referenced, so its region could not end with it",
                     (PyObject *)Py_TYPE(tensor));
        return false;
    }
    kept_tensor *kept = PyMem_Calloc(2, sizeof *kept);
    PyObject *capsule = kept != NULL ? PyCapsule_New(kept, NULL, kept_tensor_free) : PyErr_NoMemory();
    if (capsule == NULL) PyMem_Free(kept);
    PyObject *pair = capsule != NULL ? PyTuple_Pack(2, reference, capsule) : NULL;
    bool good = pair != NULL && PyDict_SetItem(tensors, id, pair) == 0;
    if (good) *entry = pair; /* the dict has it */
    Py_XDECREF(pair);
    Py_XDECREF(capsule);
    Py_DECREF(reference);
    return good;
}

cured_region *cr_py_tensor_region(const cr_py_input *in, const void *data, uint64_t bytes, bool writable,
                                  cr_py_link *link) {
    cured_error error;
    cured_region *region = NULL;
    if (tensors == NULL && (tensors = PyDict_New()) == NULL) return NULL;
    PyObject *id = PyLong_FromVoidPtr(in->owner), *entry = id != NULL ? PyDict_GetItemWithError(tensors, id) : NULL;
    bool good = id != NULL && !PyErr_Occurred() && (entry != NULL || remember(in->owner, id, &entry));
    Py_XDECREF(id);
    if (!good) return NULL;
    kept_tensor *kept = PyCapsule_GetPointer(PyTuple_GetItem(entry, 1), NULL);
    kept += writable;
    if (kept->data != data || kept->bytes != bytes) cr_py_kept_drop(&kept->regions); /* the tensor took other memory */
    kept->data = data;
    kept->bytes = bytes;
    region = cr_py_kept_find(kept->regions, link);
    if (region != NULL) return region;
    cured_status status = writable ? cured_region_cuda_pointer_writable(link->conn, data, bytes, NULL, &region, &error)
                                   : cured_region_cuda_pointer(link->conn, data, bytes, NULL, &region, &error);
    if (status != CURED_OK) {
        cr_py_raise(&error);
        return NULL;
    }
    return cr_py_kept_add(&kept->regions, link, region) ? region : NULL;
}

Py_ssize_t cr_py_tensor_count(void) { return tensors != NULL ? PyDict_Size(tensors) : 0; }

/* The driver's functions, once the program has loaded it. */
static struct {
    int (*attribute)(void *, int, unsigned long long), (*push)(void *), (*pop)(void **), (*query)(void *),
        (*wait)(void *);
} driver;

static bool driver_there(void) {
    if (driver.wait != NULL) return true;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); /* kept open: the functions stay */
    if (library == NULL) return false;
    *(void **)&driver.attribute = dlsym(library, "cuPointerGetAttribute");
    *(void **)&driver.push = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&driver.pop = dlsym(library, "cuCtxPopCurrent_v2");
    *(void **)&driver.query = dlsym(library, "cuStreamQuery");
    void *wait = dlsym(library, "cuStreamSynchronize");
    if (driver.attribute != NULL && driver.push != NULL && driver.pop != NULL && driver.query != NULL)
        *(void **)&driver.wait = wait;
    if (driver.wait == NULL) dlclose(library);
    return driver.wait != NULL;
}

/* One that is idle is not waited for. */
bool cr_py_tensor_wait(const cr_py_input *in) {
    const void *data = in->data;
    const uintptr_t number = in->stream;
    if (!driver_there()) return true; /* no driver: no stream; the region's error says the rest */
    void *context = NULL, *stream = cr_py_stream_of(number);
    const bool pushed = number <= PER_THREAD_STREAM && /* a stream of the context that is current; others know theirs */
                        driver.attribute(&context, POINTER_CONTEXT, (unsigned long long)(uintptr_t)data) == 0 &&
                        context != NULL && driver.push(context) == 0;
    int result = driver.query(stream);
    if (result == NOT_READY) {
        PyThreadState *thread = PyEval_SaveThread();
        result = driver.wait(stream);
        PyEval_RestoreThread(thread);
    }
    if (pushed) driver.pop(&context);
    if (result != 0) PyErr_Format(cr_py_error, "waiting for the tensor's stream failed: CUDA error %d", result);
    return result == 0;
}

/* ---- DLPack ---- */

/* Tensors come in many of one type: the last is kept. */
static cured_dtype dl_dtype(const cr_py_dl *t) {
    static uint8_t code, bits; /* of no type at first */
    static cured_dtype dtype = CURED_DTYPE_DEFAULT;
    if (t->lanes != 1) return CURED_DTYPE_DEFAULT;
    if (t->code == code && t->bits == bits) return dtype;
    code = t->code;
    bits = t->bits;
    return dtype = (cured_dtype)cr_dtype_of_dlpack(code, bits);
}

static void capsule_done(PyObject *capsule) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace); /* the deleter may run Python code */
    dl_managed *t = PyCapsule_GetPointer(capsule, "cured.tensor");
    if (t != NULL && t->deleter != NULL) t->deleter(t);
    PyErr_Restore(type, error, trace);
}

static bool take_tensor(cr_py_input *in, const cr_py_dl *t, int device) {
    in->dtype = dl_dtype(t);
    if (in->dtype == CURED_DTYPE_DEFAULT) {
        PyErr_Format(PyExc_TypeError,
                     "the tensor's type (DLPack code %d, %d bits) is not reduced: convert it to float32 or float64",
                     t->code, t->bits);
        return false;
    }
    if (t->ndim < 0 || t->ndim > CR_PY_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "the tensor has %d axes, the limit is %d", t->ndim, CR_PY_MAX_DIMS);
        return false;
    }
    if (t->device_type != device || (t->ndim != 0 && t->shape == NULL)) {
        PyErr_SetString(PyExc_ValueError,
                        "__dlpack__: the tensor is on another device than __dlpack_device__ says, or it has no shape");
        return false;
    }
    in->kind = device == CR_PY_DL_CUDA ? CR_PY_CUDA : CR_PY_HOST;
    in->size = (uint8_t)cured_dtype_size(in->dtype);
    in->swap = false;
    in->ndim = t->ndim;
    in->data = (const char *)t->data + t->byte_offset;
    Py_ssize_t step = in->size;
    for (int i = t->ndim - 1; i >= 0; i--) {
        in->shape[i] = (Py_ssize_t)t->shape[i];
        in->strides[i] = t->strides != NULL ? cr_py_step(in->size, t->strides[i]) : step;
        step = cr_py_step(step, in->shape[i]);
    }
    return true;
}

static int take_dlpack(cr_py_input *in, PyObject *array, int device);

/* What __dlpack__ refused, as bytes, where it has a type of one byte that an older torch does not hand on; else the exception stays. */
static int take_bytes(cr_py_input *in, PyObject *array, int device) {
    PyObject *type, *error, *trace, *bytes = NULL, *name = NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyObject *pair = cr_py_helper("cured._adapt", "eight_bits", array);
    int taken = -1;
    cured_dtype dtype;
    if (pair == NULL || pair == Py_None) {
        PyErr_Clear();
        PyErr_Restore(type, error, trace);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
        if (PyArg_ParseTuple(pair, "OO", &bytes, &name) && cr_py_dtype(name, &dtype, NULL))
            taken = take_dlpack(in, bytes, device);
        if (taken == 1) in->dtype = dtype;
    }
    Py_XDECREF(pair);
    return taken;
}

static int take_dlpack(cr_py_input *in, PyObject *array, int device) {
    const bool cuda = device == CR_PY_DL_CUDA;
    PyObject *function = PyObject_GetAttrString(array, "__dlpack__"), *none = PyTuple_New(0);
    PyObject *stream = cuda ? cr_py_helper("cured._streams", "current", array) : NULL;
    PyObject *options = stream != NULL ? Py_BuildValue("{s:O}", "stream", stream) : NULL;
    PyObject *capsule = NULL;
    if (stream != NULL) in->stream = (uintptr_t)PyLong_AsSize_t(stream);
    if (function != NULL && none != NULL && (!cuda || options != NULL))
        capsule = PyObject_Call(function, none, options);
    Py_XDECREF(function);
    Py_XDECREF(none);
    Py_XDECREF(options);
    Py_XDECREF(stream);
    if (capsule == NULL) return take_bytes(in, array, device);
    dl_managed *t = PyCapsule_IsValid(capsule, "dltensor") ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (t == NULL) PyErr_SetString(PyExc_TypeError, "__dlpack__: a capsule named 'dltensor' is wanted");
    if (t == NULL || PyCapsule_SetName(capsule, "used_dltensor") != 0) {
        Py_DECREF(capsule);
        return -1;
    }
    Py_DECREF(capsule);
    PyObject *held = PyCapsule_New(t, "cured.tensor", capsule_done);
    if (held == NULL) {
        if (t->deleter != NULL) t->deleter(t);
        return -1;
    }
    cr_py_input_hold(in, held);
    return take_tensor(in, &t->tensor, device) ? 1 : -1;
}

/* ---- __cuda_array_interface__ ---- */

static PyObject *entry(PyObject *interface, const char *name) {
    PyObject *value = PyDict_GetItemString(interface, name);
    return value == Py_None ? NULL : value;
}

static bool take_numbers(PyObject *tuple, int ndim, Py_ssize_t *out) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != ndim) {
        PyErr_SetString(PyExc_ValueError, "__cuda_array_interface__: shape and strides must be tuples of one length");
        return false;
    }
    for (int i = 0; i < ndim; i++) {
        out[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
        if (out[i] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

static bool take_interface(cr_py_input *in, PyObject *interface) {
    PyObject *shape = entry(interface, "shape"), *strides = entry(interface, "strides");
    PyObject *data = entry(interface, "data"), *type = entry(interface, "typestr"),
             *stream = entry(interface, "stream");
    if (shape == NULL || !PyTuple_Check(shape) || data == NULL || !PyTuple_Check(data) || type == NULL ||
        PyTuple_Size(data) != 2 || PyTuple_Size(shape) > CR_PY_MAX_DIMS) {
        PyErr_SetString(PyExc_ValueError, "__cuda_array_interface__: shape, data or typestr is missing or malformed");
        return false;
    }
    if (entry(interface, "mask") != NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "__cuda_array_interface__: masks are not read: pass the one of the array by where=");
        return false;
    }
    bool big;
    if (!cr_py_dtype(type, &in->dtype, &big)) return false;
    if (big) {
        PyErr_SetString(PyExc_TypeError, "__cuda_array_interface__: big-endian elements are not read");
        return false;
    }
    in->kind = CR_PY_CUDA;
    in->swap = false;
    in->size = (uint8_t)cured_dtype_size(in->dtype);
    in->ndim = (int)PyTuple_Size(shape);
    in->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    if (PyErr_Occurred() || !take_numbers(shape, in->ndim, in->shape)) return false;
    Py_ssize_t step = in->size;
    for (int i = in->ndim - 1; i >= 0; i--) {
        in->strides[i] = step;
        step = cr_py_step(step, in->shape[i]);
    }
    if (strides != NULL && !take_numbers(strides, in->ndim, in->strides)) return false;
    in->stream = stream != NULL ? cr_py_stream(PyLong_AsSize_t(stream)) : CR_PY_LEGACY_STREAM;
    return !PyErr_Occurred();
}

PyObject *cr_py_maybe(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return value;
}

/* Whether the device is one that is read; a TypeError otherwise. */
static bool is_read(int type) {
    if (type == CR_PY_DL_CPU || type == CR_PY_DL_CUDA || type == CR_PY_DL_CUDA_HOST || type == CR_PY_DL_CUDA_MANAGED)
        return true;
    PyErr_Format(PyExc_TypeError, "the tensor lies on a device (DLPack type %d) that is not read: move it to the CPU",
                 type);
    return false;
}

/* What exchange.c found. A CUDA tensor is held by its own object, which costs less than a tensor more of its memory. */
static bool take_found(cr_py_input *in, PyObject *array, const cr_py_exchange *exchange) {
    cr_py_dl borrowed;
    const cr_py_dl *t = &borrowed;
    if (cr_py_exchange_borrow(exchange, array, &borrowed) && borrowed.device_type == CR_PY_DL_CUDA)
        cr_py_input_hold(in, Py_NewRef(array));
    else
        t = cr_py_exchange_tensor(exchange, in, array);
    if (t == NULL || !is_read(t->device_type) || !take_tensor(in, t, t->device_type)) return false;
    return in->kind != CR_PY_CUDA || cr_py_exchange_stream(exchange, t, &in->stream);
}

/* The method of a type by which its tensors say that their memory holds the negatives of their values, which DLPack does not say: torch's.
 * Looked up once a type; a new reference, or NULL, perhaps with an exception. */
static PyObject *negation_of(PyTypeObject *type) {
    static PyTypeObject *known; /* kept for ever, as exchange.c keeps types */
    static PyObject *method;
    if (type != known) {
        PyObject *found = cr_py_maybe((PyObject *)type, "is_neg"), *before = method, *of = (PyObject *)known;
        if (found == NULL && PyErr_Occurred()) return NULL;
        method = found;
        known = (PyTypeObject *)Py_NewRef((PyObject *)type);
        Py_XDECREF(before); /* which may run code that comes here again */
        Py_XDECREF(of);
    }
    return method != NULL ? Py_NewRef(method) : NULL;
}

/* False with a TypeError. */
static bool has_its_sign(PyObject *array) {
    PyObject *method = negation_of(Py_TYPE(array));
    if (method == NULL) return !PyErr_Occurred();
    PyObject *is_negated = PyObject_CallFunctionObjArgs(method, array, NULL);
    Py_DECREF(method);
    const int negated = is_negated != NULL ? PyObject_IsTrue(is_negated) : -1;
    Py_XDECREF(is_negated);
    if (negated == 1)
        PyErr_SetString(PyExc_TypeError,
                        "the tensor's memory holds the negatives of its values (is_neg): pass t.resolve_neg()");
    return negated == 0;
}

/* Whether a tensor of the type is asked: what torch negates so is the imaginary part of a complex one, whose memory it lets nobody view as of
 * another type. Neither the shape tells (as_strided() closes the gaps) nor __dlpack__, which hands the memory on as it is. */
static bool may_be_negated(cured_dtype dtype) { return dtype == CURED_F32 || dtype == CURED_F64 || dtype == CURED_F16; }

/* False of what take_tensor() refuses, too. */
static bool is_contiguous(const cr_py_dl *t, uint64_t *count) {
    int64_t step = 1;
    bool packed = true;
    if (t->ndim < 0 || t->ndim > CR_PY_MAX_DIMS || (t->ndim != 0 && t->shape == NULL)) return false;
    for (int i = t->ndim - 1; i >= 0; i--) {
        packed = packed && (t->shape[i] == 1 || t->strides == NULL || t->strides[i] == step);
        if (t->shape[i] < 0 || __builtin_mul_overflow(step, t->shape[i], &step)) return false;
    }
    *count = (uint64_t)step;
    return packed || step == 0;
}

int cr_py_tensor_borrow(PyObject *tensor, bool even, cured_cuda_array *array, int *device, uintptr_t *stream) {
    cr_py_dl t;
    uint64_t count;
    const cr_py_exchange *exchange = cr_py_exchange_of(Py_TYPE(tensor));
    if (exchange == NULL) return PyErr_Occurred() ? -1 : 0;
    if (!cr_py_exchange_borrow(exchange, tensor, &t) || t.device_type != CR_PY_DL_CUDA) return 0;
    const cured_dtype dtype = dl_dtype(&t);
    if (dtype == CURED_DTYPE_DEFAULT || !is_contiguous(&t, &count)) return 0;
    if (stream != NULL && !cr_py_exchange_stream(exchange, &t, stream)) return -1;
    *device = t.device_id;
    *array = (cured_cuda_array){count ? (const char *)t.data + t.byte_offset : NULL, count, dtype};
    return even || !may_be_negated(dtype) || has_its_sign(tensor) ? 1 : -1; /* Python code runs, so it comes last */
}

int cr_py_input_tensor(cr_py_input *in, PyObject *array) {
    int type = 0, id = 0;
    if (cr_py_input_arrow(in, array) > 0) return 1;
    const cr_py_exchange *exchange = cr_py_exchange_of(Py_TYPE(array));
    if (exchange != NULL)
        return take_found(in, array, exchange) && (!may_be_negated(in->dtype) || has_its_sign(array)) ? 1 : -1;
    if (PyErr_Occurred() || !has_its_sign(array)) return -1;
    PyObject *device = cr_py_maybe(array, "__dlpack_device__");
    if (device != NULL) {
        PyObject *where = PyObject_CallNoArgs(device);
        Py_DECREF(device);
        bool good = where != NULL && PyTuple_Check(where) && PyTuple_Size(where) == 2 &&
                    PyArg_ParseTuple(where, "ii", &type, &id);
        if (where != NULL && !good && !PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "__dlpack_device__: a tuple of two integers is wanted");
        Py_XDECREF(where);
        return good && is_read(type) ? take_dlpack(in, array, type) : -1;
    }
    if (PyErr_Occurred()) return -1;
    PyObject *interface = cr_py_maybe(array, "__cuda_array_interface__");
    if (interface == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *own = PyDict_Check(interface) ? PyDict_Copy(interface) : NULL; /* a type's name may run Python code */
    bool good = own != NULL && take_interface(in, own);
    Py_XDECREF(own);
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "__cuda_array_interface__: a dict is wanted");
    Py_DECREF(interface);
    return good ? 1 : -1;
}
