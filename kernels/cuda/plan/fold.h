/* fold: what the host and the kernels of a fold share, in plain C: arguments, the state between blocks, the result, and
 * the launchers. gpu.h's streams and the benchmark both launch through here, also into a graph.
 *
 * A fold of several families is one launch for all of Σx, Σx², extrema and, of floats, counts that are asked for; every other family is a
 * launch of its own. Each launch leaves its families' members in the slot's partial, maybe more; the float sums leave words, which
 * cr_fold_result puts into the limbs.
 *
 * Memory: a state is device memory, zero before its first use and left zero by every launch; launches that share one run
 * one after the other. A slot is written by the device: device memory or mapped pinned host memory.
 * Thread: one at a time for a state and its slots. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_PLAN_FOLD_H
#define CURED_KERNELS_CUDA_PLAN_FOLD_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/core/mask.h"
#include "kernels/core/partial.h"
#include "kernels/cuda/plan/shapes.h"

enum {
    CR_GPU_SLOT_BYTES = 128, /* what a block may leave for the last one to merge */
    CR_SUM_DIGITS = 25,
    CR_DIGIT_BITS = 24,
};

/* What each block adds to a word beside its digit, so that none is ever negative. */
#define CR_DIGIT_BIAS ((uint64_t)1 << 37)

/* One float sum, between blocks: words of 24-bit digits (kernels/cuda/fold/digits.cuh), in their upper bits the number of blocks that
 * have added to them; and limbs for what found no place there. Lines of the L2 cache of its own. */
typedef struct cr_sum_state {
    unsigned long long words[CR_SUM_DIGITS];
    unsigned long long control, pad[6]; /* the number of blocks that have put something into the limbs */
    unsigned long long special[4];      /* NaNs, +inf, -inf */
    unsigned long long limbs[CR_F64_SQUARE_LIMBS], beyond[6];
} cr_sum_state;

/* A product, between blocks: factors of integers' magnitudes, or what floats are beside numbers. */
enum { CR_PROD_FACTORS = 1024 };
typedef struct cr_prod_state {
    uint32_t factors, pad; /* listed; CR_PROD_FACTORS and more: too many */
    unsigned long long list[CR_PROD_FACTORS];
    unsigned long long special[4]; /* NaNs, zeros, infinities, negative elements but for multiples of two */
} cr_prod_state;

enum { CR_MAIL_LETTERS = 3 };
enum { CR_GPU_COUNTERS = 32 };
typedef struct cr_gpu_state {
    uint32_t ticket, around_it[15];
    uint32_t next_in_turn,
        pad[15]; /* counts the chunks that have a block, of folds that wait for the one before; see cr_walk_chunks */
    uint32_t next[CR_GPU_COUNTERS]; /* of folds that do not wait: each of those that run at a time has one of them */
    unsigned long long counted[2],
        around[14]; /* an extremum of at most 32 bits each, and the blocks that have told theirs */
    /* What a block tells the last one, in letters of 16 bytes that are there as a whole or not (the second word of one is not zero):
     * so no block waits for its writes to be seen, and only the last block waits for the others. Whoever reads one leaves zero
     * behind. */
    unsigned long long mail[CR_MAIL_LETTERS][CR_GPU_MAX_BLOCKS][2];
    cr_sum_state sums[CR_KNOWN_SUMS];
    cr_prod_state prod;
    unsigned long long kept; /* elements that a mask lets count */
    struct {
        uint64_t align;
        uint8_t bytes[CR_GPU_SLOT_BYTES - 8];
    } blocks[CR_GPU_MAX_BLOCKS];
} cr_gpu_state;

/* Which of a state's and a slot's sums is that of a family of floats: pairs' begin with the first again. */
static inline unsigned cr_fold_sum_at(cr_sum_at at) { return (unsigned)at % CR_KNOWN_SUMS; }

/* What a float sum leaves; see cr_fold_result. */
typedef struct cr_sum_found {
    uint64_t words[CR_SUM_DIGITS];
    uint64_t control;
    int32_t unit;            /* exponent of digit 0's unit */
    uint32_t digits, blocks; /* words in use; whose biases are in them */
    uint32_t again;          /* of a burst: the first block met elements outside its window */
    uint64_t special[3];
    int64_t limbs[CR_F64_SQUARE_LIMBS];
} cr_sum_found;

typedef struct cr_fold_slot {
    cr_partial partial;
    cr_sum_found sums[CR_KNOWN_SUMS];
    uint32_t blocks;
    uint32_t awaited; /* the host's: by which of the sums it sees that all is there */
    uint64_t kept;    /* of a masked fold: how many elements count */
} cr_fold_slot;

/* A kernel's argument, passed by value. What every kernel asks for comes first: the constant cache has lines of 64 bytes, and the first
 * look at each takes a launch a way to memory. So does the first look at less than 32 bits of one (a load, and not an operand): nothing
 * that long folds ask for is narrower. */
typedef struct cr_fold_args {
    cr_gpu_state *state;
    cr_fold_slot *slot;
    cr_fold_plan plan;
    const uint8_t *data;
    uint64_t n, index; /* index: the input's index of data[0] */
    uint32_t *next;    /* one of state->next, if this fold need not wait */
    uint32_t multiprocessors;
    uint32_t apart; /* no fold that may still run has the same `next`: this one may work while that one ends */
    bool follows;   /* what was enqueued last on this stream is a fold too: this one may begin while that one ends */
    bool wary;      /* a fold before it was hard: by what loses least if this one is, too */
    cr_mask mask;   /* in device memory; an element of data, an element of it */
    const uint8_t *second; /* likewise: the second array's elements. NULL: there is none */
} cr_fold_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
typedef int (*cr_fold_launcher)(const cr_fold_args *args, void *stream);

/* Whether there are kernels for all of these families. */
bool cr_fold_takes(cr_dtype dtype, uint32_t families);
/* The launches of a fold: fills at most 8 launchers, gives their number. UNIMPLEMENTED names what has no kernel. wants:
 * as in cr_gpu_fold. */
enum { CR_FOLD_LAUNCHES = 8 };
cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, uint32_t wants, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                            uint32_t *count, cr_error *error);
/* The same for a masked fold, which has a launch for each family, and leaves slot->kept. */
cr_status cr_fold_masked_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                                   uint32_t *count, cr_error *error);
/* The same for a fold of pairs, whose sums lie in the slot from the first one on. */
cr_status cr_fold_paired_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                                   uint32_t *count, cr_error *error);
/* Whether there are kernels of pairs for all of these families. */
bool cr_fold_takes_pairs(cr_dtype dtype, uint32_t families);
/* Sets up args for n elements at data (device or mapped host memory), without a mask or a second array. */
void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot);
/* Once, of a slot in host memory whose launches are done: makes slot->partial the partial of those n elements. */
void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n);

/* The folds of floats that have a program for short arrays, and one for long ones. */
static inline bool cr_fold_is_float_sum(cr_dtype dtype, uint32_t families) {
    return families == CR_FAM_SUM && cr_dtype_kind(dtype) == CR_KIND_FLOAT;
}
/* Before the launches of a fold whose slot is in host memory: whether what it leaves can be seen to be there, sooner than the driver
 * says that the launches are done. A sum of floats can, of elements, magnitudes, squares or terms of pairs. The slot is made ready for it. */
bool cr_fold_await(const cr_fold_args *args, cr_dtype dtype, uint32_t families);
/* The same of a fold that leaves digits of a walk. */
bool cr_fold_await_walk(cr_fold_slot *slot, cr_dtype dtype, uint32_t families);
/* Whether the fold that the slot was last for took long, since its elements are of exponents of all sizes, or many are zero. False of what
 * has no faster way then. After cr_fold_result, of more than no element. */
bool cr_fold_was_hard(const cr_fold_slot *slot, cr_dtype dtype, uint32_t families);
/* Whether all is there. Never true of what is rare, and goes by limbs. The kernel has read all elements then, and writes no more to the
 * slot, but may not have ended. */
bool cr_fold_there(const cr_fold_slot *slot);

/* Elements of one fold at most. */
#define CR_FOLD_MAX ((uint64_t)1 << 37)
/* How far apart a float sum's anchors are: cr_window in kernels/cuda/thread/float.cuh, and the one below. */
static inline int cr_sum_step(cr_dtype dtype, bool squares) { return dtype != CR_F64 ? 50 : squares ? 52 : 51; }

#ifdef __cplusplus
}
#endif
#endif
