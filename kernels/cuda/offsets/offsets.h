/* offsets: what the host and the kernels of segments by offsets share, in plain C: an answer for each segment of an array, of the exact
 * sums of floats.
 *
 * The way through all elements and all ends of segments, an end behind its segment's last element, is cut into chunks of the same cost:
 * so segments of any lengths, empty ones too, cost what they move. A warp has a chunk. It answers the segments that lie wholly in it; of
 * one that a cut parts it adds its sum to a state of the scratch, and whoever brings the segment's last element there answers it.
 *
 *   pieces.cuh: a chunk by windows of exponents ──▶ what no window takes: the chunk's number to a list ──▶ slow.cuh: by bins
 *
 * Memory: scratch begins with a cr_axis_head, whose states are the segments'; behind it lies the list.
 * Thread: one at a time for a scratch. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_OFFSETS_H
#define CURED_KERNELS_CUDA_OFFSETS_OFFSETS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/offsets/segments.h"

enum {
    CR_SEGMENTS_END = 16,        /* what the end of a segment costs, in bytes: it has an offset and an answer */
    CR_SEGMENTS_WARPS = 4,       /* of a block */
    CR_SEGMENTS_WHOLE = 1 << 14, /* bytes, about: shorter segments are not parted, if they are no longer than a chunk */
    /* On a multiprocessor. With one more, registers spill, to a cache that shared memory leaves small. */
    CR_SEGMENTS_BLOCKS = 4,
    CR_SEGMENTS_SLOW_BLOCKS = 2,
};

/* Of the kernels' families, which are summed at once. */
typedef enum cr_segments_kind {
    CR_SEGMENTS_SUM,
    CR_SEGMENTS_SQUARE,
    CR_SEGMENTS_MOMENTS, /* both */
} cr_segments_kind;

typedef struct cr_segments_args {
    const uint8_t *data, *offsets;
    uint8_t *scratch;
    unsigned long long *wrong; /* becomes other than 0 if an offset is wrong */
    uint64_t n, count;         /* elements, segments */
    uint64_t path, per_chunk;  /* what all elements and ends cost; of a chunk */
    uint64_t whole, per_owner; /* a cut parts only segments of more elements; a parted one costs more than per_owner */
    uint32_t owners;           /* states that parted segments may have */
    uint32_t chunks, blocks, slow_blocks;
    uint32_t odd;                       /* elements lie at any address */
    uint32_t narrow;                    /* offsets have 4 bytes */
    uint32_t is_signed;                 /* offsets may be negative, which is wrong */
    uint32_t dtype, kind, all;          /* all: the slow kernel takes every chunk, not those of the list */
    uint32_t absolute, skip, out_count; /* absolute: of magnitudes */
    uint64_t ddof;
    cr_axis_out out[CR_AXIS_OUTS];
} cr_segments_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
typedef int (*cr_segments_launcher)(const cr_segments_args *args, void *stream);

/* Whether there are kernels for op. */
bool cr_segments_takes(cr_op op, cr_dtype dtype, const cr_finish_opts *finish);
uint64_t cr_segments_scratch(const cr_gpu_segments *segments, uint32_t multiprocessors);
/* Enqueues all kernels. out[k]: device memory for offsets.count answers of ops[k]; wrong: zero before, other than 0 where an offset is
 * wrong. */
int cr_segments_enqueue(const cr_gpu_segments *segments, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                        unsigned long long *wrong, void *stream);
int cr_segments_launch_slow(const cr_segments_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
