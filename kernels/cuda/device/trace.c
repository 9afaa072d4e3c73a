/* trace: ranges that a tool sees beside copies and kernels (NVTX, which is headers only: they look for a tool when first called,
 * and without one every call here is a test of a pointer).
 *
 * Thread: any. Owner: the process. */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>

#include "kernels/cuda/device/internal.h"

static nvtxDomainHandle_t domain; /* NULL: nobody looks */

static void look_for_a_tool(void) { domain = nvtxDomainCreateA("cured"); }

bool cr_cuda_traced(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_a_tool);
    return domain != NULL;
}

uint64_t cr_cuda_trace_begin(const char *name) {
    if (!cr_cuda_traced()) return 0;
    const nvtxEventAttributes_t what = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                        .message.ascii = name};
    return nvtxDomainRangeStartEx(domain, &what);
}

void cr_cuda_trace_end(uint64_t trace_id) { nvtxDomainRangeEnd(domain, trace_id); }
