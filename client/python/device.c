/* device: columns of Arrow in the memory of a GPU, as objects that stand for a CUDA tensor and its mask: they are answered in this process
 * (cuda.c), on the legacy default stream. The producer's event is waited for on that stream, in its order.
 *
 * Every call that reads one waits for its answers, because the producer may free the array once the object has gone.
 * Thread: with the GIL. Owner: an object keeps the array whose memory it is. */
#include "client/python/arrow.h"
#include "client/python/tensor.h"
#include "cured/cuda.h"

typedef struct device_column {
    PyObject_HEAD PyObject *owner;
    const char *data;
    uint64_t count;
    cured_dtype dtype;
    cured_mask mask; /* data NULL: there is none */
    void *bytes;     /* of bools, whose bits the producer has; NULL: there are none */
} device_column;

static PyTypeObject *column_type;

bool cr_py_arrow_on_gpu(const struct ArrowDeviceArray *array, bool *gpu) {
    const int type = array->device_type;
    *gpu = type == CR_PY_DL_CUDA || type == CR_PY_DL_CUDA_MANAGED;
    if (*gpu || type == CR_PY_DL_CPU || type == CR_PY_DL_CUDA_HOST) return true;
    PyErr_Format(PyExc_TypeError,
                 "Arrow array: device_type is %d (number %lld), must be 1 (CPU), 2 (CUDA), 3 (CUDA_HOST) or 13 "
                 "(CUDA_MANAGED): pass a copy on the host",
                 type, (long long)array->device_id);
    return false;
}

bool cr_py_arrow_wait(const struct ArrowDeviceArray *array, bool gpu, const void *data) {
    cured_error error;
    if (array->sync_event == NULL || (gpu && data == NULL) || array->device_type == CR_PY_DL_CPU) return true;
    void *const event = *(void **)array->sync_event, *const stream = cr_py_stream_of(CR_PY_LEGACY_STREAM);
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status = cured_cuda_wait(data, event, stream, !gpu, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK) cr_py_raise(&error);
    return status == CURED_OK;
}

static bool refuse(const char *why) {
    PyErr_SetString(PyExc_TypeError, why);
    return false;
}

/* A GPU's kernels take one mask. */
static bool is_read(const cr_py_column *c) {
    if (c->masks <= 1) return true;
    return refuse(
        "Arrow array: the batch and its column both have nulls, and on a GPU one bitmap is read: join "
        "them in the column, or pass a copy on the host");
}

/* A GPU's kernels take elements of whole bytes, so bools of a bit each get bytes of their own. */
static bool spread(device_column *self, const cr_py_column *c) {
    cured_error error;
    self->dtype = CURED_BOOL;
    PyThreadState *thread = PyEval_SaveThread();
    const cured_status status =
        cured_cuda_bits(c->data, c->first, c->length, cr_py_stream_of(CR_PY_LEGACY_STREAM), &self->bytes, &error);
    PyEval_RestoreThread(thread);
    if (status != CURED_OK) cr_py_raise(&error);
    self->data = self->bytes;
    return status == CURED_OK;
}

PyObject *cr_py_arrow_device_new(const cr_py_column *c, PyObject *owner) {
    cured_error error;
    device_column *self = is_read(c) ? PyObject_New(device_column, column_type) : NULL;
    if (self == NULL) return NULL;
    self->owner = Py_NewRef(owner);
    self->count = c->length;
    self->bytes = NULL;
    self->mask = (cured_mask){NULL, c->length, 0, CURED_MASK_BITS, false};
    if (cured_dtype_parse(c->type, &self->dtype, &error) == CURED_OK) {
        self->data = c->data != NULL ? (const char *)c->data + c->first * cured_dtype_size(self->dtype) : NULL;
    } else if (!spread(self, c)) { /* what is no type's name is bits */
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    if (c->masks == 0) return (PyObject *)self;
    self->mask.data = c->mask[0].bits;
    self->mask.first = c->mask[0].first;
    return (PyObject *)self;
}

int cr_py_input_arrow(cr_py_input *in, PyObject *array) {
    const device_column *c = (const device_column *)array;
    if (Py_TYPE(array) != column_type) return 0;
    in->kind = CR_PY_CUDA;
    in->dtype = c->dtype;
    in->size = (uint8_t)cured_dtype_size(c->dtype);
    in->swap = false;
    in->ndim = 1;
    in->data = c->data;
    in->shape[0] = (Py_ssize_t)c->count;
    in->strides[0] = in->size;
    in->stream = CR_PY_LEGACY_STREAM;
    in->is_lent = true;
    in->cuda_mask = c->mask;
    in->is_masked = c->mask.data != NULL;
    return 1;
}

static PyObject *get_size(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLongLong(((const device_column *)self)->count);
}

static PyObject *get_masked(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(((const device_column *)self)->mask.data != NULL);
}

/* Its bitmap, as a column of bools. */
static PyObject *get_lies(PyObject *self, void *closure) {
    const device_column *c = (const device_column *)self;
    (void)closure;
    if (c->mask.data == NULL) return Py_NewRef(Py_None);
    const cr_py_column bits = {
        .type = "bits", .length = c->count, .data = c->mask.data, .bytes = c->count / 8 + 1, .first = c->mask.first};
    return cr_py_arrow_device_new(&bits, self);
}

static PyObject *get_type(PyObject *self, void *closure) {
    (void)closure;
    const cured_dtype dtype = ((const device_column *)self)->dtype;
    return PyUnicode_FromString(dtype == CURED_BOOL ? "bits" : cured_dtype_name(dtype));
}

/* A call that was refused has waited for nothing, and the owner's bits are perhaps still read. */
static void wait_for_bytes(const device_column *c) {
    cured_error ignored;
    PyThreadState *thread = PyEval_SaveThread();
    cured_cuda_wait(c->bytes, NULL, cr_py_stream_of(CR_PY_LEGACY_STREAM), true, &ignored);
    PyEval_RestoreThread(thread);
}

static void column_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    device_column *c = (device_column *)self;
    if (c->bytes != NULL) wait_for_bytes(c);
    Py_XDECREF(c->owner);
    cured_cuda_bits_free(c->bytes, cr_py_stream_of(CR_PY_LEGACY_STREAM));
    PyObject_Free(self);
    Py_DECREF(type);
}

bool cr_py_arrow_device_ready(PyObject *module) {
    static PyGetSetDef fields[] = {{"type", get_type, NULL, "The elements' type.", NULL},
                                   {"size", get_size, NULL, "Elements.", NULL},
                                   {"lies", get_lies, NULL, "Where elements lie: a column of bools, or None.", NULL},
                                   {"masked", get_masked, NULL, "Whether elements may be missing.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_dealloc, column_dealloc}, {Py_tp_getset, fields}, {0, NULL}};
    PyType_Spec spec = {"cured._ArrowDevice", sizeof(device_column), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    column_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
    return column_type != NULL && PyModule_AddObjectRef(module, "_ArrowDevice", (PyObject *)column_type) == 0;
}
