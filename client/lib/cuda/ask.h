/* ask: what a program asks of device memory, checked before anything is enqueued.
 *
 * Thread: any; nothing here holds state. Owner: whoever asks; what is taken points into the ask. */
#ifndef CURED_CLIENT_LIB_CUDA_ASK_H
#define CURED_CLIENT_LIB_CUDA_ASK_H

#include "client/lib/cuda/library.h"
#include "cured/cuda.h"
#include "kernels/core/ask.h"
#include "kernels/core/keys.h"
#include "kernels/core/layout.h"
#include "kernels/core/offsets.h"

typedef struct cr_cl_cuda_ask {
    const cured_cuda_ask *of;
    const cr_caller_api *api;
    uint32_t types;    /* of the arrays, a bit each */
    uint64_t elements; /* of all arrays; more than memory has where they do not fit */
    cr_dtype dtype;    /* of the arrays, or the one that holds the elements of all */
    cr_op ops[CURED_MAX_OPS];
    uint32_t numbers[CURED_MAX_OPS];
    cr_finish_opts finish;
    cr_needs needs;
    uint64_t first;
    bool unplaced, has_axis, single; /* single: the axis has one output, so the array is a whole one */
    bool paired, ranked;             /* there is a second array; an op finds elements by their rank */
    bool cells;                      /* of a whole array under a mask an op goes by cells */
    bool mixed, by_place; /* mixed: the arrays are of several types. by_place: an answer says where an element lies */
    cr_shape shape;       /* with has_axis; else one row of all */
    cr_offsets offsets;   /* of segments; else of no type */
    cr_keys keys;         /* in device memory; else of no type */
    bool has_block;       /* the array is a block of a larger one: */
    cr_layout block;
    cr_mask mask;       /* in device memory, of the only array */
    const void *second; /* likewise: the other elements of its pairs */
} cr_cl_cuda_ask;

static inline bool cr_cl_cuda_by_offsets(const cr_cl_cuda_ask *ask) { return ask->offsets.dtype != CR_DTYPE_NONE; }

static inline bool cr_cl_cuda_by_key(const cr_cl_cuda_ask *ask) { return ask->keys.dtype != CR_DTYPE_NONE; }

/* What a function takes beside the arrays. */
typedef enum cr_cl_cuda_what {
    CR_CUDA_VALUES,       /* one answer an op, of the arrays together */
    CR_CUDA_EACH,         /* of each array */
    CR_CUDA_PARTIAL,      /* the partial */
    CR_CUDA_PARTIAL_EACH, /* of each array */
    CR_CUDA_PARTIAL_KEYS, /* the partial by key; keys must be there */
    CR_CUDA_AXIS,         /* arrays of answers; an axis, offsets or keys must be there */
    CR_CUDA_TO,     /* answers in device memory, with an axis, offsets, keys or none; the arrays are of one type */
    CR_CUDA_LINEAR, /* the linear form in device memory, of arrays of one type */
    CR_CUDA_COUNT,  /* what a search asks, likewise */
} cr_cl_cuda_what;

cr_status cr_cl_cuda_take(cr_cl_cuda_ask *ask, const cured_cuda_ask *of, cr_cl_cuda_what what, cr_error *error);
/* The needs of ask's ops for another type. */
cr_status cr_cl_cuda_needs(const cr_cl_cuda_ask *ask, cr_dtype dtype, cr_needs *needs, cr_error *error);
/* Under a mask, whether ops[k] goes by cells. */
bool cr_cl_cuda_by_cells(const cr_cl_cuda_ask *ask, size_t k);

/* Answers of a whole array that no fold makes: of ops[k], where it has one, the bits; and the partial of ops by cells. */
typedef struct cr_cl_cuda_beside {
    uint64_t bits[CURED_MAX_OPS];
    bool has[CURED_MAX_OPS];
    cr_partial cells;
    cr_error unfit; /* why a product has no value */
} cr_cl_cuda_beside;

/* A partial's answers to ask's ops, of which there are op_count, and those beside it (NULL: there are none): ask's own arrays may be gone. */
void cr_cl_cuda_set_values(const cr_cl_cuda_ask *ask, size_t op_count, const cr_partial *partial,
                           const cr_cl_cuda_beside *beside, cured_values *values);

/* ranks.c: the answers of ask's ops by rank. Reads the arrays several times, and waits for each. */
cr_status cr_cl_cuda_ranks(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *found, cr_error *error);
/* Whether ops[k] has no value, for it does not fit. */
static inline bool cr_cl_cuda_is_unfit(const cr_cl_cuda_ask *ask, const cr_cl_cuda_beside *beside, size_t k) {
    return beside->unfit.code != CR_OK && cr_op_term(ask->ops[k]) == CR_TERM_PRODUCT;
}

/* cells.c: the partial of which ask's ops by cells are finished, and no others. Waits. */
cr_status cr_cl_cuda_cells(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *found, cr_error *error);
/* by_key.c: likewise, all of its families; of an ask for a partial. */
cr_status cr_cl_cuda_partial_cells(const cr_cl_cuda_ask *ask, cr_partial *partial, cr_error *error);
/* Whether along an axis, or into device memory, an op has kernels by key alone. */
bool cr_cl_cuda_needs_cells(const cr_cl_cuda_ask *ask);
/* What the kernels by key are asked; to: where answers go in device memory. Without keys: of outputs along the axis. */
cr_gpu_keys cr_cl_cuda_keys(const cr_cl_cuda_ask *ask, void *const *to);
cr_gpu_axis cr_cl_cuda_axis(const cr_cl_cuda_ask *ask, void *const *to);

#endif
