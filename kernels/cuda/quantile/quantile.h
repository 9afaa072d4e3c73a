/* quantile: what one read of quantiles (kernels/core/quantile.h) counts of an array in device memory.
 *
 * Thread: the stream's, of which the launch is put in it. Owner: the caller owns the array and the counts. */
#ifndef CURED_KERNELS_CUDA_QUANTILE_QUANTILE_H
#define CURED_KERNELS_CUDA_QUANTILE_QUANTILE_H

#include "kernels/core/quantile.h"
#include "kernels/core/turns.h"
#include "kernels/cuda/plan/shapes.h"

/* Bins that a block has in shared memory: of several groups, or several copies of those of a few. */
enum { CR_QUANTILE_SHARED = 8192, CR_QUANTILE_GROUPS = 32, CR_QUANTILE_FEW = 4 };

/* Which elements a read counts: all; those of one group; of a few; of up to CR_QUANTILE_GROUPS. */
enum { CR_QUANTILE_ALL, CR_QUANTILE_ONE, CR_QUANTILE_SOME, CR_QUANTILE_MANY };

typedef struct cr_quantile_args {
    const uint8_t *data;
    cr_fold_plan plan;
    unsigned long long *counts; /* as cr_quantile_words() says; its bins begin with the first group's here */
    cr_turns turns;
    uint32_t bits, below;
    uint32_t groups, copies; /* groups · 2^bits · copies are CR_QUANTILE_SHARED at most */
    bool is_float, is_bool;
    /* Of group g: the elements, as they lie in memory, are base[g] and what their lower bits say; of those the ones that are counted are a
     * key's but for flip[g]. Of a few groups that are fewer, the last ones are the first again. */
    uint64_t base[CR_QUANTILE_GROUPS];
    uint32_t flip[CR_QUANTILE_GROUPS];
} cr_quantile_args;

/* Elements that are sought go to `to` from its second word on, in any order, room of them at most; its first counts them. */
typedef struct cr_quantile_gather_args {
    const uint8_t *data;
    cr_fold_plan plan;
    unsigned long long *to;
    uint64_t room, span; /* span: of base[g] the elements below base[g] + span are sought */
    uint32_t groups;
    uint64_t base[CR_QUANTILE_RANKS];
} cr_quantile_gather_args;

/* Whether so many elements that are sought are gathered, in place of the reads that are left. */
bool cr_quantile_gathers(const cr_quantile *s, uint64_t left);
/* Gathers them from n elements, behind what `to` has. */
int cr_quantile_gather(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *to, uint64_t room,
                       uint32_t multiprocessors, void *stream);

/* Adds what the state's read counts of n elements to counts, in device memory; gives a cudaError_t. */
int cr_quantile_count(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *counts,
                      uint32_t multiprocessors, void *stream);

#if defined(__cplusplus)
extern "C"
#endif
    int
    cr_quantile_launch(const cr_quantile_args *args, uint32_t size, uint32_t mode, void *stream);
#if defined(__cplusplus)
extern "C"
#endif
    int
    cr_quantile_gather_launch(const cr_quantile_gather_args *args, uint32_t size, void *stream);

#endif
