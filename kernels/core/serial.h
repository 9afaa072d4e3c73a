/* serial: partials as bytes, to be kept, sent and merged anywhere (docs/PARTIALS.md is the format).
 *
 * The form is canonical: one state, one byte string. A share is a partial together with the ranges of the array that its
 * elements came from, so that nothing is counted twice: merging shares whose ranges overlap is refused. A share without a
 * position has no ranges, no indices and no product of floats; who merges such shares counts each once. One of a block of an array of
 * several axes has no ranges and no product of floats either, because it may have more of them than fit; but its indices are true, and
 * the coverage of its digest tells whether each element is there once.
 *
 * Thread: any; the caller owns every struct and buffer; nothing here allocates. */
#ifndef CURED_KERNELS_CORE_SERIAL_H
#define CURED_KERNELS_CORE_SERIAL_H

#include "kernels/core/layout.h"
#include "kernels/core/partial.h"

enum {
    CR_SERIAL_VERSION = 1,
    CR_SERIAL_UNPLACED_VERSION = 2, /* of shares without a position */
    CR_SERIAL_BLOCK_VERSION = 3,    /* of shares of a block */
    CR_SHARE_MAX_RANGES = 1024,     /* gaps left by merging in any order; neighbours join */
    CR_SERIAL_MAX_BYTES = 64 * 1024,
};

typedef struct cr_share_range {
    uint64_t base, count; /* elements [base, base + count) */
} cr_share_range;

#define CR_UNPLACED UINT64_MAX /* a base: no position */

typedef struct cr_share {
    cr_partial partial;
    bool unplaced; /* it has no ranges, and index 0 stands for any */
    bool is_block; /* it has no ranges: its elements are some of an array that has `whole` */
    uint64_t whole;
    uint32_t range_count;
    cr_share_range ranges[CR_SHARE_MAX_RANGES]; /* rising, apart, not empty */
} cr_share;

/* The share of partial.n elements from base on (CR_UNPLACED: from somewhere). INVALID_ARGUMENT when base + n exceeds 2^63. */
cr_status cr_share_make(cr_share *share, const cr_partial *partial, uint64_t base, cr_error *error);
/* The share of a block's elements, which were folded from index 0 on; the digest by their places (cr_cpu_fold_layout). INVALID_ARGUMENT
 * where the partial is not of so many elements, or has a product of floats. */
cr_status cr_share_make_block(cr_share *share, const cr_partial *partial, const cr_layout *block, cr_error *error);
/* Whether a share of a block can be made for op. */
cr_status cr_share_block_takes(cr_op op, cr_dtype dtype, cr_error *error);
/* into becomes the share of both: of a block, if one is. Refused, with into as it was, when types or families differ, ranges overlap, or more than
 * CR_SHARE_MAX_RANGES ranges (RESOURCE_EXHAUSTED) would be left. */
cr_status cr_share_merge(cr_share *into, const cr_share *from, cr_error *error);
/* Whether all of these ops can be finished from the share: it has their families and, for indices, a position. To be finished now (it may
 * go on as a partial), a digest needs a whole array. */
cr_status cr_share_answers(const cr_share *share, const uint32_t *ops, uint32_t op_count, bool now, cr_error *error);
/* Whether a share without a position can be made for op. */
cr_status cr_share_unplaced_takes(cr_op op, cr_dtype dtype, cr_error *error);
/* Bytes written to out; 0 when cap is too small (CR_SERIAL_MAX_BYTES is enough). */
size_t cr_share_pack(const cr_share *share, uint8_t *out, size_t cap);
/* Where the first element lies, of bytes that nobody has checked; 0 where they do not say it. */
uint64_t cr_share_begins(const uint8_t *in, size_t len);
/* Checks everything that can be checked: hostile bytes give a refusal, or a share that some array could have given. */
cr_status cr_share_unpack(const uint8_t *in, size_t len, cr_share *share, cr_error *error);

#endif
