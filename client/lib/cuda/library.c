/* library: see library.h. Thread: any. Owner: this file. */
#include "client/lib/cuda/library.h"

#include <pthread.h>

#include "client/lib/error.h"
#include "cured/cuda.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const cr_caller_api *api;
static cr_error refusal;

static void load(void) {
    cr_error why;
    api = cr_caller_load(CURED_VERSION, &why);
    if (api != NULL) return;
    if (why.code != CR_NOT_FOUND) {
        cr_fail(&refusal, CR_UNAVAILABLE, "%s", why.text);
        return;
    }
    cr_fail(&refusal, CR_UNAVAILABLE,
            "device memory is reduced by libcured-cuda %s, which is not there: install it, name it in "
            "CURED_CUDA_LIBRARY, or ask a daemon (in Python by client=): %.200s",
            CURED_VERSION, why.text);
}

const cr_caller_api *cr_cl_cuda(cr_error *error) {
    pthread_once(&once, load);
    if (api == NULL) *error = refusal;
    return api;
}

cured_status cured_cuda_version(const char **library, const char **runtime, cured_error *error) {
    cr_error e = {CR_OK, ""};
    const cr_caller_api *found = cr_cl_cuda(&e);
    if (found != NULL) {
        if (library != NULL) *library = found->version;
        if (runtime != NULL) *runtime = found->runtime;
    }
    return cr_cl_give(error, &e, 0);
}

void cured_cuda_trim(void) {
    cr_error e;
    const cr_caller_api *found = cr_cl_cuda(&e);
    if (found != NULL) found->trim();
}
