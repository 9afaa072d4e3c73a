/* total: what the host knows of a whole array when its pieces are back from a kernel of the ladder, and the value it makes of it.
 *
 * Thread: one. Owner: the caller. */
#ifndef CURED_KERNELS_LADDER_TOTAL_H
#define CURED_KERNELS_LADDER_TOTAL_H

#include "kernels/ladder/ladder.h"

typedef struct cr_ladder_total {
    __int128 sum;       /* of integers */
    double real;        /* sum or product of floats */
    uint64_t magnitude; /* product of integers; UINT64_MAX: that or more */
    uint64_t negative;  /* 0 or 1 */
    uint64_t
        key; /* extrema: the greatest (min: greatest complement); UINT64_MAX: a NaN, or the top of a 64-bit integer */
    uint64_t truths; /* elements that are not zero */
} cr_ladder_total;

/* The value of job->op, of job->n elements. */
void cr_ladder_value(const cr_ladder_job *job, const cr_ladder_total *total, cr_value *value);

#endif
