/* capsules: Arrow's structs from the capsules that Python's libraries hand out, and their memory as objects that export it. For
 * cured/_arrow.py.
 *
 * A struct is moved out of its capsule at once, so that it is released exactly once: by the object that it goes to, also after an error.
 *
 * Thread: with the GIL; a stream's functions run without it, one at a time. Owner: a buffer holds the array whose memory it is. */
#include <errno.h>
#include <string.h>

#include "client/python/arrow.h"
#include "client/python/tensor.h"

/* ---- Arrays that are held, and their memory ---- */

typedef struct holder {
    PyObject_HEAD struct ArrowArray array;
} holder;

typedef struct memory {
    PyObject_HEAD PyObject *owner;
    const void *data;
    Py_ssize_t bytes;
} memory;

typedef struct stream {
    PyObject_HEAD struct ArrowArrayStream stream; /* of the two the one that is told by on_device */
    struct ArrowDeviceArrayStream devices;
    struct ArrowSchema schema;
    bool on_device, busy, over;
} stream;

static PyTypeObject *holder_type, *memory_type, *stream_type;

static void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A producer's function may run Python and raise there: an exception that is set before stays. */
static void release_array(struct ArrowArray *a) {
    PyObject *type, *value, *trace;
    if (a->release == NULL) return;
    PyErr_Fetch(&type, &value, &trace);
    a->release(a);
    a->release = NULL;
    PyErr_Restore(type, value, trace);
}

static void release_schema(struct ArrowSchema *s) {
    PyObject *type, *value, *trace;
    if (s->release == NULL) return;
    PyErr_Fetch(&type, &value, &trace);
    s->release(s);
    s->release = NULL;
    PyErr_Restore(type, value, trace);
}

static void holder_dealloc(PyObject *self) {
    release_array(&((holder *)self)->array);
    free_object(self);
}

static void memory_dealloc(PyObject *self) {
    Py_XDECREF(((memory *)self)->owner);
    free_object(self);
}

static int memory_buffer(PyObject *self, Py_buffer *view, int flags) {
    const memory *m = (const memory *)self;
    return PyBuffer_FillInfo(view, self, (void *)(uintptr_t)m->data, m->bytes, 1, flags);
}

static PyObject *memory_new(PyObject *owner, const void *data, uint64_t bytes) {
    memory *m = PyObject_New(memory, memory_type);
    if (m == NULL) return NULL;
    m->owner = Py_NewRef(owner);
    m->data = data;
    m->bytes = (Py_ssize_t)bytes;
    return (PyObject *)m;
}

/* Takes over the array, which may be released already. NULL with an exception; the array is released then. */
static holder *hold(struct ArrowArray *array) {
    holder *h = PyObject_New(holder, holder_type);
    if (h == NULL)
        release_array(array);
    else
        h->array = *array;
    array->release = NULL;
    return h;
}

/* ---- Columns as tuples: (type, length, memory or None, first element, ((memory of a bitmap, first bit), …)) ---- */

static PyObject *masks_of(const cr_py_column *c, PyObject *owner) {
    PyObject *masks = PyTuple_New((Py_ssize_t)c->masks);
    for (size_t i = 0; masks != NULL && i < c->masks; i++) {
        const uint64_t first = c->mask[i].first;
        PyObject *bits = memory_new(owner, c->mask[i].bits, (first + c->length + 7) / 8);
        PyObject *pair = bits != NULL ? Py_BuildValue("(NK)", bits, (unsigned long long)first) : NULL;
        if (pair == NULL || PyTuple_SetItem(masks, (Py_ssize_t)i, pair) != 0) Py_CLEAR(masks);
    }
    return masks;
}

static PyObject *tuple_of(const cr_py_column *c, PyObject *owner) {
    PyObject *masks = masks_of(c, owner), *data = NULL;
    if (masks != NULL) data = c->data != NULL ? memory_new(owner, c->data, c->bytes) : Py_NewRef(Py_None);
    if (data == NULL) {
        Py_XDECREF(masks);
        return NULL;
    }
    return Py_BuildValue("(sKNKN)", c->type, (unsigned long long)c->length, data, (unsigned long long)c->first, masks);
}

/* Of an array that is moved to an object of its own. device: NULL, or where it lies. */
static PyObject *column_of(const struct ArrowSchema *schema, struct ArrowArray *array,
                           const struct ArrowDeviceArray *device, PyObject *wanted) {
    cr_py_column column;
    PyObject *found = NULL;
    bool gpu = false;
    holder *h = hold(array);
    const bool good = h != NULL && (device == NULL || cr_py_arrow_on_gpu(device, &gpu)) &&
                      (device == NULL || gpu || cr_py_arrow_wait(device, false, NULL)) &&
                      cr_py_arrow_column(schema, &h->array, wanted != Py_None ? wanted : NULL, !gpu, &column) &&
                      (!gpu || cr_py_arrow_wait(device, true, column.data));
    if (good) found = gpu ? cr_py_arrow_device_new(&column, (PyObject *)h) : tuple_of(&column, (PyObject *)h);
    Py_XDECREF((PyObject *)h);
    return found;
}

static void *struct_of(PyObject *capsule, const char *name) {
    void *pointer = PyCapsule_CheckExact(capsule) ? PyCapsule_GetPointer(capsule, name) : NULL;
    if (pointer != NULL) return pointer;
    PyErr_Format(PyExc_TypeError, "Arrow: a capsule called '%s' is wanted, not %R", name, capsule);
    return NULL;
}

/* schema, array or device array, column or None, whether it is a device array. A tuple, or of a GPU's memory device.c's object. */
static PyObject *import_array(PyObject *module, PyObject *args) {
    PyObject *schema_capsule, *array_capsule, *wanted, *found = NULL;
    int on_device;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOp", &schema_capsule, &array_capsule, &wanted, &on_device)) return NULL;
    struct ArrowSchema *from_schema = struct_of(schema_capsule, "arrow_schema");
    void *from =
        from_schema != NULL ? struct_of(array_capsule, on_device ? "arrow_device_array" : "arrow_array") : NULL;
    if (from == NULL) return NULL;
    struct ArrowArray *from_array = on_device ? &((struct ArrowDeviceArray *)from)->array : from;
    struct ArrowSchema schema = *from_schema;
    struct ArrowArray array = *from_array;
    from_schema->release = NULL;
    from_array->release = NULL;
    if (schema.release == NULL || array.release == NULL)
        PyErr_SetString(PyExc_ValueError, "Arrow: the capsule's struct was released: somebody has taken it already");
    else
        found = column_of(&schema, &array, on_device ? from : NULL, wanted);
    release_array(&array);
    release_schema(&schema);
    return found;
}

/* ---- Streams ---- */

static void stream_dealloc(PyObject *self) {
    stream *s = (stream *)self;
    PyObject *type, *value, *trace;
    release_schema(&s->schema);
    PyErr_Fetch(&type, &value, &trace);
    if (s->stream.release != NULL) s->stream.release(&s->stream);
    if (s->devices.release != NULL) s->devices.release(&s->devices);
    PyErr_Restore(type, value, trace);
    free_object(self);
}

static void raise_failed(stream *s, int status) {
    const char *why = NULL;
    if (s->stream.get_last_error != NULL) why = s->stream.get_last_error(&s->stream);
    if (s->devices.get_last_error != NULL) why = s->devices.get_last_error(&s->devices);
    PyErr_Format(PyExc_OSError, "the Arrow stream failed: %s", why != NULL && *why != '\0' ? why : strerror(status));
}

/* Fetches the schema. */
static bool begin(stream *s) {
    const bool of_devices = s->devices.get_schema != NULL && s->devices.get_next != NULL;
    if (s->stream.release == NULL && s->devices.release == NULL) {
        PyErr_SetString(PyExc_ValueError, "Arrow: the stream was released: somebody has taken it already");
        return false;
    }
    if (!of_devices && (s->stream.get_schema == NULL || s->stream.get_next == NULL)) {
        PyErr_SetString(PyExc_ValueError, "Arrow stream: get_schema or get_next is NULL");
        return false;
    }
    PyThreadState *thread = PyEval_SaveThread();
    const int status =
        of_devices ? s->devices.get_schema(&s->devices, &s->schema) : s->stream.get_schema(&s->stream, &s->schema);
    PyEval_RestoreThread(thread);
    if (status != 0) {
        s->schema.release = NULL;
        raise_failed(s, status);
    } else if (s->schema.release == NULL) {
        PyErr_SetString(PyExc_ValueError, "Arrow stream: its schema was released before it was given");
    }
    return !PyErr_Occurred();
}

/* The capsule, and whether it is one of arrays on devices. */
static PyObject *import_stream(PyObject *module, PyObject *args) {
    PyObject *capsule;
    int on_device;
    (void)module;
    if (!PyArg_ParseTuple(args, "Op", &capsule, &on_device)) return NULL;
    void *from = struct_of(capsule, on_device ? "arrow_device_array_stream" : "arrow_array_stream");
    stream *s = from != NULL ? PyObject_New(stream, stream_type) : NULL;
    if (s == NULL) return NULL;
    memset(&s->stream, 0, sizeof s->stream);
    memset(&s->devices, 0, sizeof s->devices);
    memset(&s->schema, 0, sizeof s->schema);
    s->busy = s->over = false;
    s->on_device = on_device;
    if (on_device) {
        s->devices = *(struct ArrowDeviceArrayStream *)from;
        ((struct ArrowDeviceArrayStream *)from)->release = NULL;
    } else {
        s->stream = *(struct ArrowArrayStream *)from;
        ((struct ArrowArrayStream *)from)->release = NULL;
    }
    if (begin(s)) return (PyObject *)s;
    Py_DECREF((PyObject *)s);
    return NULL;
}

/* The next array's column, or None behind the last. */
static PyObject *stream_next(PyObject *self, PyObject *wanted) {
    stream *s = (stream *)self;
    struct ArrowDeviceArray next;
    struct ArrowArray *array = &next.array;
    if (s->over) Py_RETURN_NONE;
    if (s->busy) return PyErr_Format(PyExc_RuntimeError, "the Arrow stream is read by another thread");
    memset(&next, 0, sizeof next);
    s->busy = true;
    PyThreadState *thread = PyEval_SaveThread();
    const int status = s->on_device ? s->devices.get_next(&s->devices, &next) : s->stream.get_next(&s->stream, array);
    PyEval_RestoreThread(thread);
    s->busy = false;
    if (status != 0) {
        s->over = true;
        raise_failed(s, status);
        return NULL;
    }
    s->over = array->release == NULL;
    if (s->over) Py_RETURN_NONE;
    return column_of(&s->schema, array, s->on_device ? &next : NULL, wanted);
}

static PyObject *stream_type_of(PyObject *self, PyObject *wanted) {
    const char *type = cr_py_arrow_type(&((stream *)self)->schema, wanted != Py_None ? wanted : NULL);
    return type != NULL ? PyUnicode_FromString(type) : NULL;
}

static PyObject *stream_on_gpu(PyObject *self, void *closure) {
    const stream *s = (stream *)self;
    (void)closure;
    const int type = s->devices.device_type;
    return PyBool_FromLong(s->on_device && (type == CR_PY_DL_CUDA || type == CR_PY_DL_CUDA_MANAGED));
}

static PyTypeObject *make(PyObject *module, const char *name, int bytes, PyType_Slot *slots) {
    PyType_Spec spec = {name, bytes, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

bool cr_py_arrow_ready(PyObject *module) {
    static PyMethodDef functions[] = {
        {"_arrow_array", import_array, METH_VARARGS, "A column of an Arrow array: for _arrow.py, as is the next."},
        {"_arrow_stream", import_stream, METH_VARARGS, "An Arrow stream."},
        {NULL, NULL, 0, NULL}};
    static PyMethodDef of_stream[] = {{"next", stream_next, METH_O, "A column of the next array, or None."},
                                      {"type", stream_type_of, METH_O, "The type of a column."},
                                      {NULL, NULL, 0, NULL}};
    static PyGetSetDef fields[] = {{"on_gpu", stream_on_gpu, NULL, "Whether its arrays lie in a GPU's memory.", NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot of_holder[] = {{Py_tp_dealloc, holder_dealloc}, {0, NULL}};
    PyType_Slot of_memory[] = {{Py_tp_dealloc, memory_dealloc}, {Py_bf_getbuffer, memory_buffer}, {0, NULL}};
    PyType_Slot streams[] = {
        {Py_tp_dealloc, stream_dealloc}, {Py_tp_methods, of_stream}, {Py_tp_getset, fields}, {0, NULL}};
    holder_type = make(module, "cured._ArrowArray", sizeof(holder), of_holder);
    memory_type = make(module, "cured._ArrowMemory", sizeof(memory), of_memory);
    stream_type = make(module, "cured._ArrowStream", sizeof(stream), streams);
    return holder_type != NULL && memory_type != NULL && stream_type != NULL &&
           PyModule_AddFunctions(module, functions) == 0 && cr_py_arrow_device_ready(module);
}
