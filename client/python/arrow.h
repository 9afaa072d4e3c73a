/* arrow: arrays and streams by Arrow's C data, stream and device interfaces, whose structs these are: their fields are the ABI that
 * the format publishes (arrow.apache.org, "The Arrow C data interface" and its neighbours), under its own names.
 *
 * Thread: with the GIL, but for a stream's functions. Owner: who holds a struct whose `release` is not NULL calls that once; a struct is
 * moved by copying it and setting `release` of the first to NULL. */
#ifndef CURED_CLIENT_PYTHON_ARROW_H
#define CURED_CLIENT_PYTHON_ARROW_H

#include <stdint.h>

#include "client/python/extension.h"

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

struct ArrowDeviceArray {
    struct ArrowArray array;
    int64_t device_id;
    int32_t device_type; /* numbered as DLPack's (tensor.h) */
    void *sync_event;
    int64_t reserved[3];
};

enum { CR_PY_ARROW_MASKS = 2 }; /* bitmaps of one column: its own, and that of the batch */

struct ArrowDeviceArrayStream {
    int32_t device_type;
    int (*get_schema)(struct ArrowDeviceArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowDeviceArrayStream *, struct ArrowDeviceArray *);
    const char *(*get_last_error)(struct ArrowDeviceArrayStream *);
    void (*release)(struct ArrowDeviceArrayStream *);
    void *private_data;
};

/* A column of an array, as the array's memory has it. */
typedef struct cr_py_column {
    const char *type; /* cured's name; "bits": bool, a bit each */
    uint64_t length;
    const void *data; /* NULL: there are no elements */
    uint64_t bytes;   /* that are there from data on */
    uint64_t first;   /* element of data */
    size_t masks;
    struct {
        const void *bits; /* a bit that is set: the element is there */
        uint64_t first;   /* bit */
    } mask[CR_PY_ARROW_MASKS];
} cr_py_column;

/* arrow.c: looks at an array of a schema, both of which may say anything. wanted: NULL for an array that is no struct; of a batch a column's name
 * or its number. here: the buffers lie in host memory, so bitmaps are looked at; elsewhere they are believed where they count no nulls.
 * False with an exception. */
bool cr_py_arrow_column(const struct ArrowSchema *schema, const struct ArrowArray *array, PyObject *wanted, bool here,
                        cr_py_column *column);

/* Of a schema alone the type's name. NULL with an exception. */
const char *cr_py_arrow_type(const struct ArrowSchema *schema, PyObject *wanted);

/* capsules.c: the functions for cured/_arrow.py. */
bool cr_py_arrow_ready(PyObject *module);

/* ---- device.c: arrays in the memory of a GPU ---- */

/* Whether the array's memory is a GPU's own. False with an exception where nobody here reads it. */
bool cr_py_arrow_on_gpu(const struct ArrowDeviceArray *array, bool *gpu);
/* Waits for the array's event where there is one: the stream on which GPUs' arrays are read, or, of host memory, this thread. data: memory of
 * the array, or NULL. False with an exception. */
bool cr_py_arrow_wait(const struct ArrowDeviceArray *array, bool gpu, const void *data);
/* An object that stands for the column, and keeps owner. NULL with an exception. */
PyObject *cr_py_arrow_device_new(const cr_py_column *column, PyObject *owner);
bool cr_py_arrow_device_ready(PyObject *module);

#endif
