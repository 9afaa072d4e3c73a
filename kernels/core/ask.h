/* ask: whether a request for ops makes sense, and what has to be folded for it. One rule for everybody who answers requests.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_ASK_H
#define CURED_KERNELS_CORE_ASK_H

#include "kernels/core/axis.h"

typedef struct cr_ask {
    cr_dtype dtype;
    const uint32_t *ops; /* numbers of cr_op, each once */
    uint32_t op_count;
    cr_geometry geometry;
    cr_shape shape; /* of an axis; checked by cr_shape_check */
    bool statuses;  /* of many answers each has a status, so that extrema of no elements fail nothing */
    bool partial;   /* the answer is the partial */
    bool unplaced;  /* the partial has no position */
    bool masked;    /* some elements may not count */
    bool block;     /* the partial is of a block of a larger array */
    bool second;    /* there is a second array */
    bool folded;    /* it is finished from partials: there is no array at all */
    bool rereads;   /* the input can be read several times, as ops by rank need */
    uint64_t first; /* index of the input's first element */
    cr_finish_opts finish;
} cr_ask;

/* What folds must find: CR_FAM_... and CR_WANTS_.... */
typedef struct cr_needs {
    uint32_t families, wants;
} cr_needs;

/* Each op fits the type and takes its share of the options, and each option is for one op at least. Fills *needs. */
cr_status cr_ask_ops(const cr_ask *ask, cr_needs *needs, cr_error *error);
/* first, partial, unplaced and geometry go together, and first falls on the grain of the families. */
cr_status cr_ask_place(const cr_ask *ask, const cr_needs *needs, cr_error *error);

#endif
