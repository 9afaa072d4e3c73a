/* cuda: what has to be said of a CUDA pointer so that the daemon can open its memory.
 *
 * Thread: any; the driver's context of the calling thread is as it was afterwards. Owner: the caller owns what is found, and closes
 * its descriptor. */
#ifndef CURED_CLIENT_LIB_REGION_CUDA_H
#define CURED_CLIENT_LIB_REGION_CUDA_H

#include "cured/cured.h"

typedef struct cr_cl_cuda {
    cured_cuda_memory memory; /* fd -1: none. Its handles are these: */
    unsigned char handle[64], event_handle[64];
} cr_cl_cuda;

/* event NULL: none. */
cured_status cr_cl_cuda_find(const void *pointer, uint64_t bytes, void *event, cr_cl_cuda *found, cured_error *error);

#endif
