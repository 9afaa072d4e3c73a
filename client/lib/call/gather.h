/* gather: the input of a call that is walked in the caller's memory, block by block (kernels/core/strided.h).
 *
 * Thread: the one that uses the connection. Owner: the call. */
#ifndef CURED_CLIENT_LIB_CALL_GATHER_H
#define CURED_CLIENT_LIB_CALL_GATHER_H

#include "client/lib/call/call.h"
#include "kernels/core/strided.h"

enum { CR_CL_GATHER_BYTES = 256 * 1024 };

typedef struct cr_cl_gather {
    cr_strided array;
    cr_strided_plan plan;
    cr_walk walk;
    cr_strided_order order;
    char *marks;    /* a mask in the order of the plan; NULL: there is none of our own */
    char *second;   /* the same of a second array */
    uint8_t *block; /* what is handed over; NULL: nothing is gathered */
} cr_cl_gather;

/* A try of the call begins: from the first element on. */
void cr_cl_gather_restart(cured_call *call);
/* Whether elements are left. */
bool cr_cl_gather_left(const cured_call *call);
/* Hands the next block over, once the one before is sent. */
void cr_cl_gather_next(cured_call *call);
/* The next elements, as many as there are and there is room for: bytes. */
size_t cr_cl_gather_into(cured_call *call, void *to, uint64_t room);
void cr_cl_gather_free(cr_cl_gather *gather);

#endif
