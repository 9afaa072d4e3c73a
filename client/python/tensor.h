/* tensor: regions of CUDA tensors, and DLPack's exchange in C; how a tensor becomes an input is declared in extension.h.
 *
 * Thread: with the GIL. */
#ifndef CURED_CLIENT_PYTHON_TENSOR_H
#define CURED_CLIENT_PYTHON_TENSOR_H

#include <stdint.h>

#include "client/python/extension.h"
#include "cured/cuda.h"

/* The region of these bytes on a link, made if need be and kept with the input's owner: one to be read, or one to be written. NULL
 * with an exception. */
cured_region *cr_py_tensor_region(const cr_py_input *in, const void *data, uint64_t bytes, bool writable,
                                  cr_py_link *link);
/* Waits until what was queued on the tensor's stream is done. False with an exception. */
bool cr_py_tensor_wait(const cr_py_input *in);
/* A contiguous CUDA tensor whose type tells it by functions in C: what libcured takes, valid while the caller holds the tensor. stream:
 * NULL, or set to the one on which its library works now. even: it is all the same if its memory holds the negatives of its values. 1: taken;
 * 0: it is none of these; -1: exception. */
int cr_py_tensor_borrow(PyObject *tensor, bool even, cured_cuda_array *array, int *device, uintptr_t *stream);
/* Tensors whose regions are kept. */
Py_ssize_t cr_py_tensor_count(void);

/* The attribute, or NULL without an exception where there is none. */
PyObject *cr_py_maybe(PyObject *object, const char *name);

/* ---- placed.c, cuda.c ---- */

/* A stream's number is a pointer in CUDA's interface. */
static inline void *cr_py_stream_of(uintptr_t number) { return (void *)number; } /* NOLINT */
/* The answer of the op of that term, of an array on a GPU; waits for it without the GIL. NULL with *error. The caller frees it. */
cured_values *cr_py_cuda_one(const cured_cuda_array *array, cr_term term, uintptr_t stream, cured_error *error);

/* Where a tensor's stream is another than the call's, each waits for the other: the call's before it comes to the tensor, and then, behind,
 * the tensor's. The host does not. data: memory of the device of the call's stream. */
cured_status cr_py_cuda_order(const cr_py_input *in, uintptr_t stream, const void *data, bool behind,
                              cured_error *error);

/* The same of offsets, keys and a second tensor that the request reads. */
cured_status cr_py_cuda_order_read(const cr_py_request *r, bool behind, cured_error *error);
/* Puts the ask in its stream, without the GIL. waits: until it is known whether all answers have values. */
cured_status cr_py_cuda_enqueue(const cured_cuda_ask *ask, void *const *to, bool waits, cured_error *error);
/* Whether some answer may have no value, which a tensor cannot say. */
bool cr_py_cuda_may_lack(const cr_py_request *r);
/* Whether the error is of an output without a value, which fails its op alone: not of a key outside or a wrong offset. */
bool cr_py_cuda_is_lacking(const cr_py_request *r, const cured_error *error);
/* Answers of the ask's ops, which are the request's from number `first` on, to their tensors. waits: until it is known whether all have
 * values, but for NaNs that are skipped. UNIMPLEMENTED: no kernel puts them there. */
cured_status cr_py_cuda_to_tensors(const cr_py_request *r, const cured_cuda_ask *ask, size_t first, bool waits,
                                   cured_error *error);
/* Whether some answers in the tensor of ops[i] are of only NaNs, which were skipped: such an element is a NaN, such an index 2^64 - 1, and no
 * other answer is. Waits. */
cured_status cr_py_cuda_look_for_none(const cr_py_request *r, size_t i, bool *some, cured_error *error);
/* What lies in the tensor of ops[i], to host memory. Waits. */
cured_status cr_py_cuda_fetch(const cr_py_request *r, size_t i, void *values, cured_error *error);

/* Lists of CUDA tensors. */

typedef struct cr_py_tensor_list {
    cured_cuda_array *arrays;
    size_t count;
    uintptr_t stream;
    bool even;      /* as in cr_py_tensor_borrow() */
    bool mixed;     /* they are not all of one stream, and were not all taken */
    PyObject *held; /* owned: NULL, or what keeps the tensors, where another thread may change the list */
} cr_py_tensor_list;

/* The tensors of a Python list, which nobody else has; false with an exception. Where list->mixed is true each goes by itself. r: the ops
 * and options. */
bool cr_py_cuda_take_list(cr_py_tensor_list *list, PyObject *tensors, cr_py_request *r);
void cr_py_cuda_end_list(cr_py_tensor_list *list);
/* What libcured is asked of a list: r's ops. */
cured_cuda_ask cr_py_cuda_ask_of_list(const cr_py_tensor_list *list, const cr_py_request *r,
                                      const cured_options *options);

/* What the request says of how ops are finished. */
static inline cr_finish_opts cr_py_finish_of(const cr_py_request *r) {
    return (cr_finish_opts){.nan = (cr_nan_policy)r->options.nan,
                            .overflow = (cr_overflow)r->options.overflow,
                            .result_dtype = (cr_dtype)r->options.result_dtype,
                            .ddof = r->options.ddof};
}

/* by_key.c: the partial by key that is asked. */
PyObject *cr_py_cuda_partial_by_key(const cured_cuda_ask *ask);

/* ---- exchange.c ---- */

/* CUDA has two numbers for its legacy default stream, and here it has one: equal streams are not ordered one behind the other. */
enum { CR_PY_LEGACY_STREAM = 1 };
static inline uintptr_t cr_py_stream(uintptr_t number) { return number != 0 ? number : CR_PY_LEGACY_STREAM; }

enum { CR_PY_DL_CPU = 1, CR_PY_DL_CUDA = 2, CR_PY_DL_CUDA_HOST = 3, CR_PY_DL_CUDA_MANAGED = 13 };

/* DLTensor of DLPack's ABI (dlpack.h, since version 0.2). */
typedef struct cr_py_dl {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* strides in elements; NULL: C order */
    uint64_t byte_offset;
} cr_py_dl;

/* The functions of a type of tensors. */
typedef struct cr_py_exchange cr_py_exchange;

/* Those of a type; NULL: it has none that are known here, or with an exception. */
const cr_py_exchange *cr_py_exchange_of(PyTypeObject *type);
/* What the array is. The input holds it until it is released; NULL with the exception that the type raised. */
const cr_py_dl *cr_py_exchange_tensor(const cr_py_exchange *exchange, cr_py_input *in, PyObject *array);
/* The same without holding it: valid while the caller holds the array, and runs nothing of Python's. False: not so, without an exception. */
bool cr_py_exchange_borrow(const cr_py_exchange *exchange, PyObject *array, cr_py_dl *tensor);
/* The CUDA stream on which the type's work goes now, on the tensor's device. False with an exception. */
bool cr_py_exchange_stream(const cr_py_exchange *exchange, const cr_py_dl *tensor, uintptr_t *stream);

#endif
