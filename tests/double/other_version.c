/* other_version: a libcured-cuda of another version, or of the same but of another build (OTHER_BUILD), as far as libcured looks at one. Thread: any; nothing here holds state. */
#include "kernels/cuda/caller/caller.h"

__attribute__((visibility("default"))) const cr_caller_api *cured_cuda_library(void) {
    static const cr_caller_api api = {
        .runtime = "13.0",
        .partial_bytes = sizeof(cr_partial),
        .gpu_bytes = sizeof(cr_gpu_api),
#if defined(OTHER_BUILD)
        .version = CURED_VERSION,
        .api_bytes = sizeof(cr_caller_api) - sizeof(void *),
#else
        .version = "0.0.7",
        .api_bytes = sizeof(cr_caller_api),
#endif
    };
    return &api;
}
