/* offsets: what the host and the kernels of segments by offsets share, in plain C: an answer for each segment of an array.
 *
 * The way through all elements and all ends of segments, an end behind its segment's last element, is cut into chunks of the same cost:
 * so segments of any lengths, empty ones too, cost what they move. A warp has a chunk. It answers the segments that lie wholly in it; of
 * one that a cut parts it adds its sum to a state of the scratch, and whoever brings the segment's last element there answers it.
 *
 * Sums of floats:
 *   pieces.cuh: a chunk by windows of exponents ──▶ what no window takes: the chunk's number to a list ──▶ slow.cuh: by bins
 * Sums of integers, counts, bits and extrema, which any order of elements makes alike:
 *   teams.cuh: teams of lanes have a segment each ──▶ what a chunk has of segments that cuts part, to parts ──▶ teams.cu: joined
 *
 * Memory: scratch begins with a cr_axis_head, whose states are the segments'; behind it lie the list, and the parts.
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
    CR_SEGMENTS_TEAM_BLOCKS = 8,
    CR_SEGMENTS_JOIN_BLOCKS = 8,
    CR_SEGMENTS_JOINERS = 128, /* threads of a block that joins parts */
};

/* Of the kernels' families, which are folded at once. */
typedef enum cr_segments_kind {
    CR_SEGMENTS_SUM, /* of floats */
    CR_SEGMENTS_SQUARE,
    CR_SEGMENTS_MOMENTS,  /* both */
    CR_SEGMENTS_QUARTERS, /* the same, of float64 by teams */
    CR_SEGMENTS_INTEGERS, /* sums of integers, of their squares, or both */
    CR_SEGMENTS_COUNTS,
    CR_SEGMENTS_BITS,
    CR_SEGMENTS_EXTREMA,
} cr_segments_kind;

/* What teams are told of elements, a bit each; of what is asked, likewise. */
enum { CR_ELEMENTS_FLOAT = 1, CR_ELEMENTS_SIGNED = 2, CR_ELEMENTS_BOOL = 4 };
enum {
    CR_WANTS_SUM = 1,
    CR_WANTS_SQUARE = 2,
    CR_WANTS_PLACES = 4,
    CR_WANTS_INFINITIES = 8 /* all that counts may want */
};

/* What a chunk has of a segment that a cut parts: of the one that is open where it begins, then of the one that is where it ends. What the
 * words are depends on the kind (terms.cuh). */
typedef enum cr_segments_part_state {
    CR_PART_NONE,
    CR_PART_ENDS,    /* the segment's last */
    CR_PART_GOES_ON, /* the next chunk has more of it */
} cr_segments_part_state;
enum { CR_PART_WORDS = 12 };
typedef struct cr_segments_part {
    uint64_t word[CR_PART_WORDS];
    uint32_t segment, state;
    uint32_t hard;   /* the segment is, so that the slow kernel adds it up */
    uint32_t listed; /* of a chunk's first part: the chunk is in the list */
} cr_segments_part;

typedef struct cr_segments_args {
    const uint8_t *data, *offsets;
    uint8_t *scratch;
    unsigned long long *wrong; /* becomes other than 0 if an offset is wrong */
    uint64_t n, count;         /* elements, segments */
    uint64_t path, per_chunk;  /* what all elements and ends cost; of a chunk */
    uint64_t whole, per_owner; /* a cut parts only segments of more elements; a parted one costs more than per_owner */
    uint32_t owners;           /* states that parted segments may have */
    uint32_t chunks, blocks, slow_blocks;
    uint32_t slow_parts;       /* of a chunk, which the slow kernel takes one by one; per_chunk is a multiple of them */
    uint32_t odd;              /* elements lie at any address */
    uint32_t narrow;           /* offsets have 4 bytes */
    uint32_t is_signed;        /* offsets may be negative, which is wrong */
    uint32_t dtype, kind, all; /* all: the slow kernel takes every chunk, not those of the list */
    uint32_t parted;           /* of segments that cuts part it takes those whose parts are hard, not all */
    uint32_t absolute, skip, out_count; /* absolute: of magnitudes */
    uint32_t size, elements, wants;     /* of teams: bytes of an element; bits, as above */
    uint32_t spread,
        flip; /* of teams: what of a word becomes another in a key (kernels/core/key.h): as its sign says, and always */
    uint64_t infinite; /* of teams, of floats: magnitudes above it are NaNs */
    uint64_t ddof;
    cr_axis_out out[CR_AXIS_OUTS];
} cr_segments_args;

/* Enqueues on a cudaStream_t; gives a cudaError_t. */
typedef int (*cr_segments_launcher)(const cr_segments_args *args, void *stream);

/* Whether there are kernels for op. */
bool cr_segments_takes(cr_op op, cr_dtype dtype, const cr_finish_opts *finish);
uint64_t cr_segments_scratch(const cr_gpu_segments *segments, uint32_t multiprocessors);
/* Enqueues all kernels. out[k]: device memory for offsets.count answers of ops[k]; wrong: zero before, 1 where an offset is wrong, or what
 * an answer lacks, as cr_keys_close_args has it. */
int cr_segments_enqueue(const cr_gpu_segments *segments, uint32_t multiprocessors, void *const *out, uint8_t *scratch,
                        unsigned long long *wrong, void *stream);
int cr_segments_launch_slow(const cr_segments_args *args, void *stream);
int cr_segments_launch_teams(const cr_segments_args *args, void *stream);

#ifdef __cplusplus
}
#endif
#endif
