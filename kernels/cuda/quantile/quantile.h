/* quantile: what one read of quantiles (kernels/core/quantile.h) counts of an array in device memory: a kernel for each width of elements.
 *
 * Thread: the stream's, of which the launch is put in it. Owner: the caller owns the array and the counts. */
#ifndef CURED_KERNELS_CUDA_QUANTILE_QUANTILE_H
#define CURED_KERNELS_CUDA_QUANTILE_QUANTILE_H

#include "kernels/core/quantile.h"
#include "kernels/core/turns.h"
#include "kernels/cuda/plan/shapes.h"

/* Bins that a block has in shared memory: of several groups, or several copies of those of a few. */
enum { CR_QUANTILE_SHARED = 8192, CR_QUANTILE_GROUPS = 32 };

typedef struct cr_quantile_args {
    const uint8_t *data;
    cr_fold_plan plan;
    unsigned long long *counts; /* as cr_quantile_words() says; its bins begin with the first group's here */
    cr_turns turns;
    uint32_t bits, below;
    uint32_t groups, copies; /* groups · 2^bits · copies are CR_QUANTILE_SHARED at most; copies is a power of two */
    bool first, is_bool;     /* first: the read that counts NaNs, too */
    uint64_t upper[CR_QUANTILE_GROUPS];
} cr_quantile_args;

/* Adds what the state's read counts of n elements to counts, in device memory; gives a cudaError_t. */
int cr_quantile_count(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *counts,
                      uint32_t multiprocessors, void *stream);

#if defined(__cplusplus)
extern "C"
#endif
    int
    cr_quantile_launch(const cr_quantile_args *args, uint32_t size, void *stream);

#endif
