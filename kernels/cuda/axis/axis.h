/* axis: what the host and the kernels of reductions along an axis share, in plain C: the plan of a launch, its arguments, one
 * launcher per family and type. Unlike a fold of a whole array these give finished answers, since a partial per short row would
 * take more memory than the row: the one rounding is integer arithmetic, which a GPU does as well.
 *
 * The array is (outer, n, inner). An output is one column of one block. A unit is what a thread loads at once: 4 or 8 bytes that
 * hold one or more elements (mode WIDE), or one element at any address. A team of p_tile·m threads walks p_tile neighbouring
 * units of a line, m lines at a time; with inner = 1 a row is cut into units, and its lines are those. A tile is what a block
 * folds at a time: 256/(p_tile·m) teams, each over one of `splits` runs of its lines, or over `rounds` rows.
 *
 * Float sums: where a thread's window of exponents does not take some element, the output is `hard`: it goes to a list, and a
 * second launch folds the outputs of the list again by integer bins, in a time that does not depend on the data.
 * Memory: scratch is device memory that begins with a cr_axis_head.
 * Thread: one at a time for a scratch. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_AXIS_AXIS_H
#define CURED_KERNELS_CUDA_AXIS_AXIS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/plan/fold.h"

enum {
    CR_AXIS_OUTS = 12,       /* answers that one family gives */
    CR_AXIS_RECORD = 96,     /* bytes that a split leaves of an output, at most */
    CR_AXIS_SLOT = 64,       /* of an output's sum, for its variance */
    CR_AXIS_SLOTS = 1 << 24, /* outputs whose variance may be asked for */
    CR_AXIS_PRODS = 1024,    /* outputs, at least, of products of floats with more lines than: */
    CR_AXIS_PROD_LINES = 1 << 16,
    CR_AXIS_LINES = 1 << 20,       /* a thread's at most, so that no accumulator overflows */
    CR_AXIS_STRIP = 256,           /* vectors of a piece of a strip (strips.cuh) */
    CR_AXIS_STRIP_LINES = 1 << 16, /* elements of a row of it, at most */
    CR_AXIS_HARD_LINES = 1024,     /* of a hard output, one warp's at most, while there are few of them */
    CR_AXIS_TILES = 65536,         /* that are split */
    CR_AXIS_STATES = 192 * 32,     /* for as many multiprocessors */
};

/* What a scratch begins with: zero before its first use, left zero by every launch. After it lie the list of hard outputs'
 * numbers, and the records. */
typedef struct cr_axis_head {
    uint32_t hard, hard_blocks, taken,
        pad[9]; /* tiles or outputs in the list; blocks that are done with it; what has been taken from it */
    uint32_t next, open, wrong, spare; /* of segments by offsets (kernels/cuda/offsets) */
    uint32_t tickets[CR_AXIS_TILES];
    /* Of warps, or of listed outputs that several fold; then of warps' second sums. */
    cr_sum_state states[2 * CR_AXIS_STATES];
} cr_axis_head;

typedef struct cr_axis_out {
    int32_t op, result;          /* cr_op, cr_dtype */
    int32_t term, divisor, root; /* the op's row: kernels know these, not ops */
    void *to;                    /* device memory: one value for each output */
} cr_axis_out;

/* An integer that does not fit its type. In device memory, zero before; key: 2^32 − 1 less the lowest such output's number, then
 * the op and the type of its result in a byte each. */
typedef struct cr_axis_failure {
    unsigned long long key;
} cr_axis_failure;
enum {
    CR_AXIS_NO_VALUE = 1 << 16
}; /* a bit of a key: an extremum of no elements, by segments, keys or under a mask, is what has no value */

typedef struct cr_axis_launch {
    uint64_t outer, n, inner;
    uint64_t line;      /* bytes from one line to the next: of a unit, for rows */
    uint64_t units;     /* of a line; 1 for rows */
    uint64_t tiles;     /* without splits */
    uint64_t per_split; /* lines */
    uint32_t unit;      /* bytes */
    uint32_t wide;      /* a unit holds 4/size elements, of types of 1 and 2 bytes */
    uint32_t odd;       /* elements lie at any address */
    uint32_t rows;      /* inner is 1 */
    uint32_t vector;    /* units that a thread takes side by side, by one load: 1, or rows' 16 bytes */
    uint32_t ahead;     /* threads have one run of lines or vectors each, so that loads may run ahead (ahead.cuh) */
    uint32_t together;  /* a warp's lanes are at neighbouring rows or units, and load for each other */
    uint32_t
        rounds; /* rows: that a team takes one after the other, before their answers are made together; a power of two */
    uint32_t strips,
        strip_log; /* rows of floats that may go by strips: pieces of a row (0: no), log2 of the lanes that share it */
    uint32_t p_tile, m, p_log, m_log; /* powers of two */
    uint32_t splits, blocks;
    uint32_t hard_blocks;
    uint64_t records, slots, scratch_bytes; /* the records' and slots' offsets in the scratch; its size */
} cr_axis_launch;

/* address: of the array, which decides how it may be loaded; slots: whether a variance is asked for. */
void cr_axis_launch_make(cr_axis_launch *launch, uintptr_t address, const cr_shape *shape, cr_dtype dtype, bool slots,
                         uint32_t multiprocessors);

/* The same laid over the GPU for strips (strips.cuh), where at->strips is set: one wave of blocks. */
void cr_axis_launch_by_strips(cr_axis_launch *at, uint64_t size, uint32_t multiprocessors);

/* The same laid out anew for squares of float64 (quarters.cuh), for which the scratch has room. */
void cr_axis_launch_for_quarters(cr_axis_launch *at, uintptr_t address, uint32_t multiprocessors);

/* The same for loads that run ahead (ahead.cuh), which columns that are cut among blocks have, too. False, and as it was: they do not. */
bool cr_axis_launch_ahead(cr_axis_launch *at, uint64_t size, uint32_t multiprocessors);

typedef struct cr_axis_args {
    cr_axis_launch at;
    const uint8_t *data;
    uint8_t *scratch;
    cr_axis_failure *failure;
    uint32_t family, skip, out_count; /* skip: of NaNs */
    uint32_t keep;                    /* the list, for another launch */
    uint32_t wrap;                    /* products modulo 2^64 */
    uint64_t ddof;
    const uint64_t *counts; /* elements of each output that count, where not all n do; NULL: all do */
    cr_mask mask;           /* as cr_axis_counted has it */
    uint64_t fill;          /* cr_axis_counted's, repeated in all 8 bytes */
    uint64_t first;         /* the number of the first output, for a failure */
    cr_axis_out out[CR_AXIS_OUTS];
} cr_axis_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
typedef int (*cr_axis_launcher)(const cr_axis_args *args, void *stream);

/* The families whose kernels answer op, the lowest first. */
uint32_t cr_axis_families(cr_op op, cr_dtype dtype);

/* Enqueues all kernels of axis. out[k]: device memory for the answers of ops[k]. Gives a cudaError_t. */
int cr_axis_enqueue(const cr_gpu_axis *axis, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                    cr_axis_failure *failure, void *stream);

/* Of outputs whose elements do not all count (kernels/cuda/swaths), as in cr_axis_args. What does not count is an element that changes no
 * sum and no bits; or a mask leaves it out, which cr_axis_takes_mask takes. */
typedef struct cr_axis_counted {
    const uint64_t *counts;
    uint64_t first;
    cr_mask mask;  /* of no kind: there is none */
    uint64_t fill; /* the bits of an element that what is left out becomes, to extrema; to sums, zeros */
} cr_axis_counted;
/* Whether op has kernels that read axis->data beside this mask (masked.cuh). */
bool cr_axis_takes_mask(const cr_gpu_axis *axis, cr_op op, const cr_mask *mask);
int cr_axis_enqueue_counted(const cr_gpu_axis *axis, const cr_axis_counted *counted, uint32_t multiprocessors,
                            void *const *out, uint8_t *scratch, cr_axis_failure *failure, void *stream);
/* How many bytes of `kept`, which has that shape, are not 0, for each output. */
int cr_axis_enqueue_kept(const uint8_t *kept, const cr_shape *shape, uint32_t multiprocessors, uint64_t *to,
                         uint8_t *scratch, void *stream);

/* What a stream has for its reductions along an axis: made when the first is asked for, larger when a larger one is. Zero-initialise it. */
typedef struct cr_axis_room {
    uint8_t *scratch, *device, *host; /* device: a cr_axis_failure, then the answers; host: pinned, likewise */
    uint64_t scratch_bytes, bytes;
    cr_gpu_axis asked;
    bool may_fail;                /* asked may fail: otherwise the failure is neither cleared nor copied */
    uint64_t at[CR_GPU_AXIS_OPS]; /* where the answers of each op begin */
} cr_axis_room;
/* Enqueues axis and the copy of its answers. Gives a cudaError_t; *error says what was asked wrongly, its code CR_OK otherwise. */
int cr_axis_ask(cr_axis_room *room, const cr_gpu_axis *axis, uint32_t multiprocessors, void *stream, cr_error *error);
/* When that is done. */
cr_status cr_axis_answers(const cr_axis_room *room, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                          cr_error *error);
/* While nothing is under way: keeps no more than most bytes for answers, nor of scratch for their sake. */
void cr_axis_room_trim(cr_axis_room *room, uint64_t most);
void cr_axis_room_free(cr_axis_room *room);
bool cr_axis_takes(const cr_gpu_axis *axis);
/* Whether an answer may be an integer that does not fit its type. */
bool cr_axis_may_fail(const cr_gpu_axis *axis);
/* Bytes of the answers to op number k. */
uint64_t cr_axis_bytes(const cr_gpu_axis *axis, uint32_t k);
/* How the answers of op number k are closed. They go to `to`, in device memory. */
cr_axis_out cr_axis_out_of(const cr_gpu_axis *axis, uint32_t k, void *to);
/* Where the answers to each op lie behind a failure that comes first, in memory of the host's or on the way there; gives the bytes of all. */
uint64_t cr_axis_lay_out(const cr_gpu_axis *axis, uint64_t at[CR_GPU_AXIS_OPS]);
/* Whether an op of axis is a variance, or its root. */
bool cr_axis_is_variance(const cr_gpu_axis *axis);

#ifdef __cplusplus
}
#endif
#endif
