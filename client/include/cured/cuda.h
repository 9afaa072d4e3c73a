/* cuda.h: reductions of device memory in the program's own process, in the order of its own stream. No daemon is asked.
 *
 *     const cured_cuda_array array = {device_pointer, count, CURED_F32};
 *     const cured_op op = CURED_OP_SUM;
 *     cured_cuda_ask ask = {.struct_bytes = sizeof ask, .arrays = &array, .array_count = 1, .ops = &op, .op_count = 1, .stream = stream};
 *     cured_values *values;
 *     if (cured_cuda_reduce(&ask, &values, &error) != CURED_OK) …
 *
 * The kernels are in a library of their own, libcured-cuda.so.0, which is loaded when the first of these functions is called: the one
 * that the environment variable CURED_CUDA_LIBRARY names, or one beside this library, or where libraries are. A program with libcured
 * linked in finds one beside itself only if it was started by its whole path. UNAVAILABLE says that the library is missing, or names its
 * version and libcured's where they differ; or that the driver is missing, or older than the CUDA runtime (both versions are named).
 *
 * What is enqueued stands in the caller's stream like any kernel: it reads what the stream's earlier work wrote, and whatever comes
 * later on the stream waits for it. No other stream is used, but for a moment beside a capture, where one of the call's own fills the
 * memory of the graph. The device is never waited for as a whole, no thread is started, and the thread's current device is afterwards
 * what it was. The arrays and the stream are of one device and of its primary context, which is
 * the one that CUDA's runtime, torch and CuPy use; FAILED_PRECONDITION names another. An array must stay as it is until the stream
 * has come past the call.
 *
 * A stream's first call makes its workspace. Sums of floats need less than 1 MB of device memory. Answers along an axis, and other
 * ops whose answers stay in device memory, need 20 MB and more; by key the states of all groups, of which up to 256 MiB are kept. The
 * workspaces are kept for the 64 streams of each device that were
 * used last. cured_cuda_trim() gives back what idle streams have. A child of fork() gets FAILED_PRECONDITION where
 * its parent has used these functions, and so do calls that were under way when cudaDeviceReset() was called; later ones begin anew.
 *
 * Thread: any, also several at once on one stream. */
#ifndef CURED_CUDA_H
#define CURED_CUDA_H

#include "cured/cured.h"

#ifdef __cplusplus
extern "C" {
#endif

/* count elements of device memory (cudaMalloc, a pool, managed, or mapped host memory), at any byte address. No elements may be NULL. */
typedef struct cured_cuda_array {
    const void *data;
    uint64_t count;
    cured_dtype dtype;
} cured_cuda_array;

typedef struct cured_cuda_ask {
    size_t struct_bytes;            /* sizeof(cured_cuda_ask) */
    const cured_cuda_array *arrays; /* several are one array, in this order */
    size_t array_count;             /* 1 and more */
    const cured_op *ops;
    size_t op_count; /* 1 to CURED_MAX_OPS */
    /* NULL: the defaults. Of them nan, overflow, result_dtype, ddof, axis, offsets, keys, first, unplaced, mask, second, layout, parameters and
     * method count; the others are refused. axis and offsets: with one array only. Offsets lie in host memory, or in memory of the array's device
     * at a multiple of their size, and stay as the array does. mask: in memory of the array's device, of one array; with an axis, offsets or
     * keys, too. Under it, by offsets and by key there are sums, means, norm1, extrema, their indices, ptp and counts of f16, bf16, f32,
     * f64 and integers, sumsq, norm2, var and std of these floats, and prod and bits of integers, of fewer than 2^30 elements; by offsets
     * without a mask also squares of integers, extrema and counts of floats of one byte, and all but prod of more elements; other ops are
     * UNIMPLEMENTED. second: likewise, in memory of the array's device at any byte address, for dot, sqdist and average of one whole
     * array of f16, bf16, f32 or f64, whose answers may stay in device memory; with a mask, an axis of more outputs or offsets, and of
     * other types, they are UNIMPLEMENTED. layout: of one array, which is the block, for cured_cuda_partial() alone.
     * keys: of one array, in memory of its device at a multiple of their size, of any integer type; they stay as the array does. */
    const cured_options *options;
    void *stream; /* a cudaStream_t, which is a CUstream: NULL or 1 the legacy default stream, 2 the thread's */
} cured_cuda_ask;

/* ---- Answers in host memory ----
 *
 * Arrays of several dtypes are one array of the narrowest dtype that holds all their elements: of f16 and bf16 that is f32, of u8 and i8
 * i16. INVALID_ARGUMENT where there is none (floats and integers, u64 and a signed type), and for prod of floats. One launch or more for
 * each dtype; where an answer is an index, or a place of a partial, each array by itself, and start waits too, as it does for more than 16
 * arrays of ops other than sums of floats. */

/* Enqueues, and waits for the answers: without sleeping, as torch's item() does. *values: one for each op, freed by
 * cured_values_free(). INVALID_ARGUMENT with an axis. FAILED_PRECONDITION while the stream is captured: a graph has nobody who waits. */
CURED_API cured_status cured_cuda_reduce(const cured_cuda_ask *ask, cured_values **values, cured_error *error);

/* The same in two steps, between which the program may do something else. The call holds memory of the library's until it is
 * waited for; the ask and what it points to may go when start returns. */
typedef struct cured_cuda_call cured_cuda_call;
CURED_API cured_status cured_cuda_start(const cured_cuda_ask *ask, cured_cuda_call **call, cured_error *error);
/* Whether cured_cuda_finish() would not wait. A call that failed is done, too. */
CURED_API bool cured_cuda_done(cured_cuda_call *call);
/* Waits, gives the answers and frees the call. values NULL: drops them. */
CURED_API cured_status cured_cuda_finish(cured_cuda_call *call, cured_values **values, cured_error *error);

/* Medians and quantiles are found in several reads: 1 of types of 8 bits, 2 of 16, 3 of 32, 5 of 64; of more than four different places
 * of 32 bits (one of 64) each read but the first goes by four (one). Once few elements are left they come to the host. Each read ends with
 * a wait. They are answered by cured_cuda_reduce() of whole arrays of one dtype without a mask, beside other ops, and by
 * cured_cuda_reduce_axis() along an axis of one output; elsewhere in this header they are UNIMPLEMENTED. So are extrema, bits and
 * products of a whole array under a mask by cured_cuda_start(). */

/* What a search (cured.h, "Searches") asks of the arrays, which are of its dtype: ask->ops is median alone, ask->options->asked the bytes of
 * cured_search_asked(), and count what that said. counts is filled, and may be added to those of other parts. Waits. */
CURED_API cured_status cured_cuda_count(const cured_cuda_ask *ask, uint64_t *counts, size_t count, cured_error *error);

/* The partial of the arrays, as cured_call_partial() gives it: out has room for *out_bytes (CURED_PARTIAL_BYTES is enough), which
 * becomes its size. Waits. Under a mask it has no position: options->unplaced is set; UNIMPLEMENTED: prod, and extrema of types of 8 bits
 * that are floats. */
CURED_API cured_status cured_cuda_partial(const cured_cuda_ask *ask, void *out, size_t *out_bytes, cured_error *error);

/* The partial by key of one array (cured/by_key.h), with the bytes of the CPU's partial of the same elements: with options->keys, whose
 * drop counts as for answers, and a mask or none. *partial, with *bytes, is the caller's until cured_by_key_free(); NULL after an error.
 * Waits; so FAILED_PRECONDITION while the stream is captured. The states of all groups come to the host, and take 1 GiB at most
 * (RESOURCE_EXHAUSTED says how much a group takes). UNIMPLEMENTED: ops without kernels by key, and prod of integers, of which a GPU keeps
 * 64 bits. INVALID_ARGUMENT: argmin and argmax; a key outside, which is named. */
CURED_API cured_status cured_cuda_partial_by_key(const cured_cuda_ask *ask, void **partial, size_t *bytes,
                                                 cured_error *error);

/* A partial of each array, each of which begins at options->first, or nowhere where that says so. found is called by this thread for each,
 * in any order, while the GPU may be at others; the bytes are there until it returns, and it calls no function of this header. The arrays
 * may differ in dtype. Where this fails, found may have been called for some. */
typedef void cured_cuda_found(void *user, size_t number, const void *partial, size_t bytes);
CURED_API cured_status cured_cuda_partial_each(const cured_cuda_ask *ask, cured_cuda_found *found, void *user,
                                               cured_error *error);

/* Answers for each array: values[i], one of array_count pointers, has those of arrays[i] and is freed by cured_values_free(). The arrays
 * may differ in dtype, and each op must go with each. Waits. Where this fails all of values are NULL. */
CURED_API cured_status cured_cuda_reduce_each(const cured_cuda_ask *ask, cured_values **values, cured_error *error);

/* Along ask->options->axis: results[k] is host memory for outer·inner answers of ops[k], each of cured_axis_dtype(). Waits. OUT_OF_RANGE
 * names the first output whose integer does not fit its type. With ask->options->offsets: an answer for each segment; INVALID_ARGUMENT names
 * the first offset that is wrong. With ask->options->keys: an answer for each group;
 * INVALID_ARGUMENT names the first key outside or extremum of no elements, and RESOURCE_EXHAUSTED how much the states of all groups may take. */
CURED_API cured_status cured_cuda_reduce_axis(const cured_cuda_ask *ask, void *const *results, cured_error *error);

/* ---- Answers in device memory ---- */

/* Enqueues, and waits for nothing: the stream's next kernel may use the answers. to[k]: device memory for the answers of ops[k],
 * outer·inner of them along an axis, one for each segment by offsets, one for each group by key and one otherwise, of cured_axis_dtype(),
 * at a multiple of its size (a digest at one of 8).
 * status: 8 bytes of device memory at a multiple of 8, which become 0, or something else where an integer does not fit its type (that
 * output then holds any value), an offset is wrong (all outputs then hold any values), a key is outside (its row is then for no group), or
 * an extremum by key is of no elements; NULL: nobody asks. Several arrays are one, of sums of floats, their means and norms. In a stream
 * that is captured, the call has a workspace of its own, which the graph owns; so the graph may be replayed beside other calls.
 * UNIMPLEMENTED, with a sentence, for
 * what a GPU cannot finish. Offsets in host memory are refused in a stream that is captured. */
CURED_API cured_status cured_cuda_enqueue(const cured_cuda_ask *ask, void *const *to, void *status, cured_error *error);

/* The same, and waits for the status alone, for which there is a word of this library's: what comes to the host is 8 bytes. Answers that lack
 * a value are an error with the sentence that cured_cuda_reduce_axis() has of it; all outputs then hold any values. Extrema of only NaNs
 * that are skipped are no error: such an output holds a NaN, and of an index 2^64 - 1. FAILED_PRECONDITION while the stream is captured. */
CURED_API cured_status cured_cuda_reduce_to(const cured_cuda_ask *ask, void *const *to, cured_error *error);

/* ---- Linear forms in device memory (docs/PARTIALS.md, "Linear form") ----
 *
 * For programs whose ranks meet in an Allreduce of GPU buffers (NCCL, MPI, gloo): each rank writes a vector of int64, the Allreduce adds
 * the vectors up, and the sum is finished, all in the stream's order and without a wait of the host. */

/* Enqueues, and waits for nothing: the linear form of the arrays' partial for the ask's ops. sums: device memory for as many int64 as
 * cured_linear_size() says of `as` and the ops, and maxima likewise, which may be NULL without extrema. as: the arrays' dtype
 * (CURED_DTYPE_DEFAULT says so), or of floats a wider one, so that ranks whose arrays differ in dtype may add up; extrema have the arrays'
 * alone. Options: none but the defaults. Several arrays are one, of sums of floats and what is made of them. No elements are as good as
 * some. Under capture as cured_cuda_enqueue(). UNIMPLEMENTED: digest; INVALID_ARGUMENT: prod, bits, argmin and argmax. */
CURED_API cured_status cured_cuda_linear(const cured_cuda_ask *ask, cured_dtype as, int64_t *sums, int64_t *maxima,
                                         cured_error *error);

/* Enqueues the answers of vectors that were added up, and waits for nothing. dtype, ops: what the vectors were written for (`as`). to[k]:
 * device memory for the one answer of ops[k], as for cured_cuda_enqueue(); NULL: it is not wanted. Sums, means and norms of floats are
 * finished on the device, others are UNIMPLEMENTED: copy the vector, and call cured_linear_partial(). Of options nan, result_dtype and
 * ddof count. status: NULL, or 8 bytes of device memory at a multiple of 8, which become 0, or something else where no elements have such
 * a vector (the answers then hold any values). sums stays as it is until the stream has come past the call. */
CURED_API cured_status cured_cuda_from_linear(cured_dtype dtype, const cured_op *ops, size_t op_count,
                                              const cured_options *options, const int64_t *sums, void *const *to,
                                              void *status, void *stream, cured_error *error);

/* What is put in the stream `after` from now on waits until `before` has come as far as it is now; the host waits for nothing. For answers
 * in device memory that belongs to another stream than the array. data: memory of the device of `before`. */
CURED_API cured_status cured_cuda_order(const void *data, void *before, void *after, cured_error *error);

/* What is put in the stream from now on waits until the event, a cudaEvent_t of the program's, has happened; the host waits for nothing.
 * here: the calling thread waits instead, and nothing is put in the stream. With here an event of NULL is all that the stream has now
 * (FAILED_PRECONDITION while it is captured). For memory whose producer tells by an event when it is
 * written, as Arrow's device arrays do. data: that memory, or NULL for the current device. */
CURED_API cured_status cured_cuda_wait(const void *data, void *event, void *stream, bool here, cured_error *error);

/* Bools that lie a bit each, as Arrow's do, from bit number `first` on, the lowest of a byte first: enqueues a byte of 0 or 1 for each, and
 * waits for nothing. *bytes: device memory for an array of CURED_BOOL, NULL of no bools. cured_cuda_bits_free() frees it in the order of
 * the stream that it names; while that is captured, at the next of these two calls that names it (by the same thread, if it is
 * cudaStreamPerThread), which the stream must live to see. INVALID_ARGUMENT: 2^40 bools and more;
 * RESOURCE_EXHAUSTED: the device has no memory for the bytes; FAILED_PRECONDITION: the stream is captured. */
CURED_API cured_status cured_cuda_bits(const void *bits, uint64_t first, uint64_t count, void *stream, void **bytes,
                                       cured_error *error);
CURED_API void cured_cuda_bits_free(void *bytes, void *stream);

/* Gives back the workspaces of streams on which nothing of this library is under way. */
CURED_API void cured_cuda_trim(void);

/* The version of the library that was loaded, and of the CUDA runtime that it has; UNAVAILABLE as above. Static strings. */
CURED_API cured_status cured_cuda_version(const char **library, const char **runtime, cured_error *error);

#ifdef __cplusplus
}
#endif
#endif
