/* library: see library.h. Thread, owner: see there. */
#include "server/lanes/gpu/library.h"

#include "kernels/cuda/caller/caller.h"

const cr_gpu_api *cr_gpu_library(const cr_ladder_functions *ladder, cr_error *why) {
    cr_error found;
    const cr_caller_api *api = cr_caller_load(CURED_VERSION, &found);
    if (api == NULL && found.code == CR_NOT_FOUND)
        cr_fail(why, CR_NOT_FOUND, "libcured-cuda %s, which has the kernels of GPUs, is not here: %.300s",
                CURED_VERSION, found.text);
    else if (api == NULL)
        *why = found;
    else if (ladder != NULL)
        api->ladder(ladder);
    return api != NULL ? api->gpu : NULL;
}
