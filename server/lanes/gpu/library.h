/* library: where the functions of a GPU come from: libcured-cuda, which a daemon looks for as libcured does. It has no teaching kernels, and
 * is given the daemon's.
 *
 * Thread: the one that opens the lanes; a probe's. Owner: the process; the library stays open. */
#ifndef CURED_SERVER_LANES_GPU_LIBRARY_H
#define CURED_SERVER_LANES_GPU_LIBRARY_H

#include "kernels/cuda/gpu.h"
#include "kernels/ladder/ladder.h"

/* ladder: NULL: this build has none. NULL: *why is NOT_FOUND where the library is not here, FAILED_PRECONDITION where it is of another
 * version. */
const cr_gpu_api *cr_gpu_library(const cr_ladder_functions *ladder, cr_error *why);

#endif
