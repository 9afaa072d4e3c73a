/* shapes: how a fold is laid over a GPU, as a value. A pure function of the array's place, length and type and of the GPU's
 * size, so that it is tested without one.
 *
 * The array is a head of single elements, a body of 16-byte vectors, and a tail of single elements. Block b takes vectors
 * [b·per_block, (b + 1)·per_block) of the body, and block 0 the single elements as well. Folds to which it is all the same what a
 * block takes cut long arrays into chunks of per_block vectors instead: block b takes chunks b and b + blocks, and then the next
 * that nobody has taken.
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CUDA_PLAN_SHAPES_H
#define CURED_KERNELS_CUDA_PLAN_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CR_GPU_THREADS = 256,
    CR_GPU_VECTOR = 16, /* bytes */
    CR_GPU_UNROLL = 8,  /* vectors in flight in each thread */
    CR_GPU_SHIFTED = 2, /* where each is put together from two, and in short arrays */
    CR_GPU_TILE = CR_GPU_THREADS * CR_GPU_UNROLL,
    CR_GPU_LEAST = CR_GPU_THREADS * 2,    /* vectors of the smallest blocks, when there are several */
    CR_GPU_ALONE = CR_GPU_TILE,           /* vectors that one block takes alone: it needs to tell nobody */
    CR_GPU_RUN = 1 << 17,                 /* vectors of the longest run, while there may be more blocks: 2 MiB */
    CR_GPU_CHUNK = CR_GPU_THREADS * 4,    /* vectors of the smallest chunk, */
    CR_GPU_CHUNK_MOST = CR_GPU_CHUNK * 4, /* and of the largest, if a block then has CR_GPU_CHUNKS of them */
    CR_GPU_CHUNKS = 4,
    CR_GPU_BLOCKS_PER_SM = 4,
    CR_GPU_MAX_BLOCKS = 4096,
    CR_GPU_MAX_RUNS = 1 << 15, /* blocks of a fold whose blocks share words only */
};

typedef struct cr_fold_plan {
    uint32_t blocks;     /* 0 for no elements */
    uint32_t chunks;     /* as many as blocks, or at least twice as many. Beside blocks: so both are one load */
    uint32_t head, tail; /* elements before and after the body; 48 at most together */
    uint32_t shift;      /* how far, in bytes, the body lies beyond a 16-byte boundary: not 0 only for odd addresses */
    uint64_t vectors, per_block;
} cr_fold_plan;

/* size: of an element, in bytes: 1, 2, 4 or 8. */
cr_fold_plan cr_fold_plan_make(uintptr_t address, uint64_t n, uint32_t size, uint32_t multiprocessors);

/* Longer runs for a kernel of which only `resident` blocks find room on a multiprocessor. */
void cr_fold_plan_fit(cr_fold_plan *plan, uint32_t resident);

/* Makes a plan of chunks of it, for a kernel of which `resident` blocks find room on each of so many multiprocessors. */
void cr_fold_plan_chunks(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t resident);

/* Makes a plan of it in which each thread of blocks of so many has its vectors, CR_GPU_UNROLL at most, in flight at once, all blocks
 * resident: per_block is 1, 2, 4 or 8 times `threads`. false: it is too long or at an odd address, and stays as it was. */
bool cr_fold_plan_burst(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t threads);

/* Whether blocks of so many threads are enough for a burst: one has all of it under way. */
bool cr_fold_takes_few_threads(const cr_fold_plan *plan, uint32_t threads);

/* Makes a plan of long runs of it, for a kernel of which `resident` blocks find room on a multiprocessor: as many blocks as there is
 * room for at once, or runs of `run` vectors and as many blocks as that takes. Shorter ones stay as they were. */
void cr_fold_plan_runs(cr_fold_plan *plan, uint32_t multiprocessors, uint32_t resident, uint32_t run);

#endif
