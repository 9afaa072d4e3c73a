/* grouped: short segments as rows. Segments of one length are rows of a block, and the folds of short rows take many of those at a time
 * (rows/rows.h). Neighbours of one length lie as rows already; the others of a batch are sorted by length and copied side by side. Sums of
 * floats take rows that differ in length, too, so that nothing is copied.
 * Private to kernels/cpu/offsets.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#ifndef CURED_KERNELS_CPU_OFFSETS_GROUPED_H
#define CURED_KERNELS_CPU_OFFSETS_GROUPED_H

#include "kernels/cpu/rows/rows.h"

enum {
    CR_BATCH = 2048,       /* segments that are looked at together */
    CR_GROUP_BYTES = 1024, /* of a segment that is copied, at most: a longer one is a row where it lies */
    CR_GROUP_PAD = 64,     /* a copy may write so many bytes more, */
    CR_GROUP_RUN = 8       /* and so many neighbours of one length need none */
};

/* Segments of a batch, and where their answers go. */
typedef struct cr_batch {
    const cr_axis_plan *plan;
    cr_axis_spec *row;       /* plan->spec; its n is set for each group */
    const uint8_t *data;     /* element low of the array, */
    uint64_t low, high;      /* and up to where there are elements */
    uint64_t first;          /* number of the batch's first segment */
    uint64_t count;          /* CR_BATCH at most */
    const uint64_t *borders; /* of the batch's segments, checked */
    uint64_t at;             /* where the batch's answers begin in out */
    void *const *out;
} cr_batch;

typedef struct cr_grouped cr_grouped;

size_t cr_grouped_bytes(const cr_axis_plan *plan);
/* Before the first batch of a call. */
void cr_grouped_init(const cr_axis_plan *plan, cr_grouped *own);
/* Answers plan->strip_ops of the batch's segments, but for `others`, which are empty or too long for rows. When it fails the sentence may
 * name another segment than the first that lacks a value. */
cr_status cr_grouped_fold(cr_grouped *own, const cr_batch *batch, uint16_t others[CR_BATCH], unsigned *other_count,
                          cr_error *error);

#endif
