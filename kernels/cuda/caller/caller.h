/* caller: folds in the process, the context and the stream of whoever calls: what libcured-cuda.so.0 exports. libcured loads it when a
 * program first has device memory (client/lib/cuda), and a daemon for its lanes.
 *
 * A stream is the caller's own: it may be captured, be the legacy default one (0 or 1) or the thread's (2). Calls put work in it, and
 * use no other; nothing here waits for a device as a whole, starts a thread, or leaves another device current.
 *
 *   start ──▶ folds in the stream ──▶ done? ──▶ finish: a partial, in host memory
 *   enqueue ──▶ one kernel or more in the stream, whose answers are values in device memory
 *
 * Thread: any, also several on one stream; not in a child of the process that asked first. Owner: this library owns the workspaces. */
#ifndef CURED_KERNELS_CUDA_CALLER_CALLER_H
#define CURED_KERNELS_CUDA_CALLER_CALLER_H

#include "kernels/core/layout.h"
#include "kernels/core/mask.h"
#include "kernels/core/number.h"
#include "kernels/core/quantile.h"
#include "kernels/cuda/axis/linear.h"
#include "kernels/cuda/gpu.h"
#include "kernels/cuda/keys/groups.h"
#include "kernels/cuda/offsets/segments.h"
#include "kernels/ladder/ladder.h"

/* One fold of arrays that lie one after the other. first: the index of the first element of all. An array is laid out as
 * cured_cuda_array, so that ten thousand of them need not be written again; its type is the fold's. */
typedef struct cr_caller_array {
    const void *data;
    uint64_t n;
    uint32_t dtype;
} cr_caller_array;
typedef struct cr_caller_fold {
    cr_dtype dtype;
    uint32_t families, wants; /* as in cr_gpu_fold */
    const cr_caller_array *arrays;
    size_t count;
    uint64_t first;
    void *stream;
    cr_mask mask; /* in device memory, of the only array */
    const void
        *second; /* likewise: the other elements of its pairs; families are those of pairs then. NULL: there is none */
} cr_caller_fold;

typedef struct cr_caller_call cr_caller_call;

/* Whom each tells of its folds, in any order. */
typedef struct cr_caller_told {
    void (*found)(void *user, size_t number, const cr_partial *partial);
    /* Instead, where the sums of a fold are numbers, by CR_AT_... of its families; false: it wants the partial. NULL: always. */
    bool (*numbers)(void *user, size_t number, const cr_number *sums);
    void *user;
} cr_caller_told;

/* Whom a partial by key tells of its cells, by rising numbers: of those alone that have elements. */
typedef struct cr_caller_cells {
    cr_status (*found)(void *user, uint64_t cell, const cr_partial *partial,
                       cr_error *error); /* other than CR_OK ends it */
    void *user;
} cr_caller_cells;

typedef struct cr_caller_api {
    const char *version;                        /* of the library; who loads it has the same, or does not go on */
    const char *runtime;                        /* of CUDA's, such as "13.0" */
    size_t partial_bytes, gpu_bytes, api_bytes; /* of cr_partial, cr_gpu_api and this, which both must see alike */
    const cr_gpu_api *gpu;                      /* a daemon's */
    void (*ladder)(const cr_ladder_functions *functions); /* gives gpu->kernel its kernels: before a device is open */
    /* Enqueues; the arrays are read when the stream comes to them. */
    cr_status (*start)(const cr_caller_fold *fold, cr_caller_call **call, cr_error *error);
    bool (*done)(cr_caller_call *call);
    /* Waits, and frees the call. partial NULL: nobody wants it. */
    cr_status (*finish)(cr_caller_call *call, cr_partial *partial, cr_error *error);
    /* A partial for each fold, as long as it is looked at, or its numbers. Waits. */
    cr_status (*each)(const cr_gpu_fold *folds, size_t count, void *stream, const cr_caller_told *told,
                      cr_error *error);
    /* Along an axis, of one block of at least one output, answers to host memory: results[k] for ops[k]. Waits. */
    cr_status (*axis)(const cr_gpu_axis *axis, void *stream, void *const *results, cr_error *error);
    /* To axis->to, in device memory, as is status: NULL, or 8 bytes that become 0, or not where an integer does not fit. Of several arrays
     * axis has one row, of the elements of all. */
    cr_status (*enqueue)(const cr_gpu_axis *axis, const cr_caller_array *arrays, size_t count, void *stream,
                         void *status, cr_error *error);
    /* An answer for each segment: results[k] for ops[k] in host memory, and waits; NULL: to axis.to in device memory, whose status is as
     * enqueue's, other than 0 where an offset is wrong. */
    cr_status (*segments)(const cr_gpu_segments *segments, void *stream, void *const *results, void *status,
                          cr_error *error);
    /* An answer for each group, likewise; status: other than 0 where a key is outside. */
    cr_status (*keys)(const cr_gpu_keys *keys, void *stream, void *const *results, void *status, cr_error *error);
    /* Of the ops' families, a partial of each group that has elements, without a position. Waits. */
    cr_status (*keys_partial)(const cr_gpu_keys *keys, void *stream, const cr_caller_cells *told, cr_error *error);
    /* The residues of a block of at least one element, each at its place in the larger array. Waits. */
    cr_status (*block)(const void *data, cr_dtype dtype, const cr_layout *block, void *stream, uint64_t *digest,
                       cr_error *error);
    /* The linear form of the fold, whose first, wants and mask do not count, to device memory; and answers of one that was added up, of these
     * families, to axis->to, whose n is any above 0. wrong: NULL, or 8 bytes that become 0, or not where no elements have it. */
    cr_status (*linear)(const cr_caller_fold *fold, const cr_linear_to *to, cr_error *error);
    cr_status (*from_linear)(const cr_gpu_axis *axis, uint32_t families, const int64_t *sums, void *stream, void *wrong,
                             cr_error *error);
    /* All reads of a state that has begun, of arrays of its type: it may be finished. Waits. */
    cr_status (*search)(cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream, cr_error *error);
    /* What the state's read counts of arrays of its type: cr_quantile_words(s) words of host memory. Waits. */
    cr_status (*quantile)(const cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream,
                          uint64_t *counts, cr_error *error);
    /* What is put in the stream `after` from now on waits for what is in `before` now. data: memory of that stream's device. */
    cr_status (*order)(const void *data, void *before, void *after, cr_error *error);
    /* What is put in the stream from now on waits until the event has happened; here: this thread waits instead, without an event for all
     * that is in the stream now. */
    cr_status (*wait)(const void *data, void *event, void *stream, bool here, cr_error *error);
    /* A byte of 0 or 1 for each of so many bits, in memory of the stream's that bits_free gives back; NULL of none. */
    cr_status (*bits)(const void *bits, uint64_t first, uint64_t count, void *stream, void **bytes, cr_error *error);
    void (*bits_free)(void *bytes, void *stream);
    /* A word of status for what goes to device memory: 8 bytes that are 0, in memory of the stream's. FAILED_PRECONDITION: it is captured. */
    cr_status (*word)(const void *data, void *stream, void **word, cr_error *error);
    /* What the stream's work has made of it, which is waited for; frees the word. */
    cr_status (*take_word)(void *word, void *stream, uint64_t *value, cr_error *error);
    /* Whether such a value says which answer has none, and of what op: the sentence then, as of answers in host memory. */
    bool (*lacks)(uint64_t value, cr_error *error);
    void (*trim)(void);
} cr_caller_api;

/* The only symbol of the library. */
const cr_caller_api *cured_cuda_library(void);
#define CR_CALLER_LIBRARY "libcured-cuda.so.0"
#define CR_CALLER_SYMBOL "cured_cuda_library"
/* load.c, for who does not link with it: the library that CURED_CUDA_LIBRARY names, or one beside this code, or where libraries are. NULL:
 * NOT_FOUND, or FAILED_PRECONDITION for one of another version, or something else. */
const cr_caller_api *cr_caller_load(const char *version, cr_error *error);

#endif
