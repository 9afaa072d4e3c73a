/* fold: what the host and the kernels of a fold share, in plain C: arguments, the state between blocks, the result, and one
 * launcher per family and type. gpu.h's streams and the benchmark both launch through here, also into a graph.
 *
 * A fold of several families is one launch per family, or a fused one where there is one (fused.cu). Each launch leaves its
 * families' members in the slot's partial; the float sums leave words, which cr_fold_result puts into the limbs.
 *
 * Memory: a state is device memory, zero before its first use and left zero by every launch; launches that share one run
 * one after the other. A slot is written by the device: device memory or mapped pinned host memory.
 * Thread: one at a time for a state and its slots. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_FOLD_H
#define CURED_KERNELS_CUDA_FOLD_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/core/partial.h"
#include "kernels/cuda/plan.h"

enum {
    CR_GPU_SLOT_BYTES = 128, /* what a block may leave for the last one to merge */
    CR_SUM_LEVELS = 4,
    CR_SUM_WORDS = 3 * CR_SUM_LEVELS,
};

/* One float sum, between blocks: of each anchor's integer three words, sums of its digits of 22, 21 and 21 bits, the number of
 * blocks that have added to a word in its upper 16 bits; and limbs for what no anchor takes. */
typedef struct cr_sum_state {
    unsigned long long words[CR_SUM_WORDS];
    unsigned long long control;    /* blocks << 48 | blocks that have put something into the limbs */
    unsigned long long special[3]; /* NaNs, +inf, -inf */
    unsigned long long limbs[CR_SUMSQ_LIMBS];
} cr_sum_state;

/* A product, between blocks: factors of integers' magnitudes, or what floats are beside numbers. */
enum { CR_PROD_FACTORS = 1024 };
typedef struct cr_prod_state {
    uint32_t factors, pad; /* listed; CR_PROD_FACTORS and more: too many */
    unsigned long long list[CR_PROD_FACTORS];
    unsigned long long special[4]; /* NaNs, zeros, infinities, negative elements but for multiples of two */
} cr_prod_state;

/* What a block tells the last one, in words that say by themselves that they are there (none of them is zero): so no block
 * waits for its writes to be seen, and only the last block waits for the others. Whoever reads one leaves zero behind. */
typedef struct cr_mail {
    unsigned long long word[8];
} cr_mail;

typedef struct cr_gpu_state {
    uint32_t ticket, pad[3];
    cr_mail mail[CR_GPU_MAX_BLOCKS];
    cr_sum_state sums[3];
    cr_prod_state prod;
    struct {
        uint64_t align;
        uint8_t bytes[CR_GPU_SLOT_BYTES - 8];
    } blocks[CR_GPU_MAX_BLOCKS];
} cr_gpu_state;

/* What a float sum leaves; see cr_fold_result. */
typedef struct cr_sum_found {
    uint64_t words[CR_SUM_WORDS];
    uint64_t control;
    int64_t anchor; /* exponent of the first anchor's unit */
    uint64_t bias;  /* what all blocks together have added to each signed digit's word */
    uint64_t special[3];
    int64_t limbs[CR_SUMSQ_LIMBS];
} cr_sum_found;

typedef struct cr_fold_slot {
    cr_partial partial;
    cr_sum_found sums[3]; /* Σx, Σ|x|, Σx² */
    uint32_t blocks;
} cr_fold_slot;

/* A kernel's argument, passed by value. */
typedef struct cr_fold_args {
    const uint8_t *data;
    uint64_t n, index; /* index: the input's index of data[0] */
    cr_fold_plan plan;
    uint64_t bias; /* cr_sum_bias(plan.blocks) */
    cr_gpu_state *state;
    cr_fold_slot *slot;
} cr_fold_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
typedef int (*cr_fold_launcher)(const cr_fold_args *args, void *stream);

/* One file per family; NULL where there is no kernel for the type. */
cr_fold_launcher cr_launch_counts(cr_dtype dtype);
cr_fold_launcher cr_launch_extrema(cr_dtype dtype);
cr_fold_launcher cr_launch_bits(cr_dtype dtype);
cr_fold_launcher cr_launch_prod(cr_dtype dtype);
/* family: CR_FAM_SUM, CR_FAM_SUMABS or CR_FAM_SUMSQ */
cr_fold_launcher cr_launch_int_sum(cr_dtype dtype, uint32_t family);
cr_fold_launcher cr_launch_sum_f16(uint32_t family);
cr_fold_launcher cr_launch_sum_bf16(uint32_t family);
cr_fold_launcher cr_launch_sum_f32(uint32_t family);
cr_fold_launcher cr_launch_sum_f64(uint32_t family);

/* Sets of families that have a kernel of their own. */
enum {
    CR_FUSED_SPREAD = CR_FAM_SUM | CR_FAM_SUMSQ,
    CR_FUSED_SUMMARY = CR_FAM_SUM | CR_FAM_COUNTS | CR_FAM_EXTREMA,
    CR_FUSED_DESCRIBE = CR_FUSED_SPREAD | CR_FUSED_SUMMARY,
};
cr_fold_launcher cr_launch_fused_f32(uint32_t families);
cr_fold_launcher cr_launch_fused_f64(uint32_t families);
/* CR_FUSED_SPREAD, with CR_FAM_EXTREMA or without */
cr_fold_launcher cr_launch_fused_int(cr_dtype dtype, uint32_t families);

/* The launches of a fold: fills at most 7 launchers, gives their number. UNIMPLEMENTED names what has no kernel. */
enum { CR_FOLD_LAUNCHES = 7 };
cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES], uint32_t *count,
                            cr_error *error);
/* Sets up args for n elements at data (device or mapped host memory). */
void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot);
/* Once, of a slot in host memory whose launches are done: makes slot->partial the partial of those n elements. */
void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n);

/* What each block adds to the signed digit's word, so that it is never negative, for up to CR_FOLD_MAX elements in all. */
static inline unsigned long long cr_sum_bias(uint32_t blocks) {
    unsigned long long bias = 1ull << 47;
    while (blocks > 1) {
        bias >>= 1;
        blocks = (blocks + 1) / 2;
    }
    return bias;
}
#define CR_FOLD_MAX ((uint64_t)1 << 37)
/* How far apart a float sum's anchors are: cr_window in kernels/cuda/sum_type.cuh, and the one below. */
static inline int cr_sum_step(cr_dtype dtype, bool squares) { return dtype != CR_F64 ? 50 : squares ? 52 : 51; }

#ifdef __cplusplus
}
#endif
#endif
