/* digests: what the host and the kernels of many digests share, in plain C: one for each output along an axis or each segment by offsets,
 * each of its own bytes from word 0 on; and one of a block, whose runs each have their place in a larger array.
 *
 * Outputs whose bytes lie together are read by warps: the array is cut into pieces of about one length, whatever the outputs' lengths are,
 * and a warp has all that lies in its piece. Where a border of pieces cuts an output, its parts are added up by atomics. Columns, and short
 * rows, are threads' own.
 *
 *   zeros ──▶ parts, each times the power of its place ──▶ who adds an output's last bytes writes its residues in their least form
 *
 * Thread: one at a time for the answers. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_DIGESTS_DIGESTS_H
#define CURED_KERNELS_CUDA_DIGESTS_DIGESTS_H

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/core/axis.h"
#include "kernels/core/digest.h"
#include "kernels/core/layout.h"
#include "kernels/core/offsets.h"

enum {
    CR_DIGESTS_WORDS = 3,     /* of an answer, 64 bits each: H_1, H_2, the bytes */
    CR_DIGESTS_THREADS = 256, /* of a block */
    CR_DIGESTS_BLOCKS = 3,    /* on a multiprocessor */
    CR_DIGESTS_PIECE = 4096,  /* bytes of a warp's, at least */
    CR_DIGESTS_SHORT = 128,   /* bytes of a row that a thread has to itself, at most */
    CR_DIGESTS_COLUMN = 1024, /* elements of a thread's part of a column, at least */
    CR_DIGESTS_WAVES = 2      /* pieces for each warp that a GPU holds at a time, at most */
};

/* Where outputs lie whose bytes are together. */
typedef enum cr_digests_source {
    CR_DIGESTS_ROWS,    /* side by side, of one length */
    CR_DIGESTS_OFFSETS, /* segments; bytes in none of them are nobody's */
    CR_DIGESTS_RUNS     /* of a block: all add up to one answer */
} cr_digests_source;

typedef struct cr_digests_args {
    const uint8_t *data;
    unsigned long long *to;     /* zeros before; of a block two residues, neither in its least form */
    uint64_t outputs, pieces;   /* outputs: rows, segments, runs or columns */
    uint64_t bytes, per;        /* of all outputs; of a piece. Of columns per is elements */
    uint64_t row;               /* bytes of a row or a run */
    uint64_t n, inner;          /* of columns */
    uint32_t source, size;      /* size: of an element */
    uint32_t odd;               /* elements lie at any address */
    uint32_t narrow, is_signed; /* offsets are of 4 bytes; of these, they may be negative, which is beyond all */
    const uint8_t *offsets;     /* of elements, at a multiple of their size */
    const unsigned long long
        *wrong; /* other than 0: the offsets are wrong, and nothing is to be read. NULL: they are right */
    cr_layout block;
} cr_digests_args;

/* Enqueues; each gives a cudaError_t. data is in device memory, as is `to`: an answer for each output, at a multiple of 8. */
int cr_digests_axis(const void *data, const cr_shape *shape, cr_dtype dtype, void *to, uint32_t multiprocessors,
                    void *stream);
/* Offsets in device memory. wrong: as above, 8 bytes of device memory. */
int cr_digests_offsets(const void *data, uint64_t n, cr_dtype dtype, const cr_offsets *offsets,
                       const unsigned long long *wrong, void *to, uint32_t multiprocessors, void *stream);
/* Both residues, to 16 bytes of `to`: cr_digest_least() makes each the block's. */
int cr_digests_block(const void *data, cr_dtype dtype, const cr_layout *block, void *to, uint32_t multiprocessors,
                     void *stream);

/* Of digests.cu. */
int cr_digests_launch_rows(const cr_digests_args *args, void *stream);
int cr_digests_launch_columns(const cr_digests_args *args, void *stream);
int cr_digests_launch_runs(const cr_digests_args *args, uint32_t blocks, void *stream);

#ifdef __cplusplus
}
#endif
#endif
