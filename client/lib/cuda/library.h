/* library: libcured-cuda as this library sees it: loaded once, when a program first asks for something of device memory, and kept.
 *
 * Thread: any. Owner: library.c. */
#ifndef CURED_CLIENT_LIB_CUDA_LIBRARY_H
#define CURED_CLIENT_LIB_CUDA_LIBRARY_H

#include "kernels/cuda/caller/caller.h"

/* The library's functions; NULL: *error says that it is missing, or which version it has where it is not this one's. */
const cr_caller_api *cr_cl_cuda(cr_error *error);

#endif
