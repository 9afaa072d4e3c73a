/* order: one stream behind another, or behind an event; and bools of a bit each. Thread: any. Owner: nothing. */
#include "client/lib/cuda/library.h"
#include "client/lib/error.h"
#include "cured/cuda.h"

cured_status cured_cuda_order(const void *data, void *before, void *after, cured_error *error) {
    cr_error e = {CR_OK, ""};
    const cr_caller_api *api = cr_cl_cuda(&e);
    if (api != NULL) api->order(data, before, after, &e);
    return cr_cl_give(error, &e, 0);
}

cured_status cured_cuda_wait(const void *data, void *event, void *stream, bool here, cured_error *error) {
    cr_error e = {CR_OK, ""};
    const cr_caller_api *api = cr_cl_cuda(&e);
    if (api != NULL) api->wait(data, event, stream, here, &e);
    return cr_cl_give(error, &e, 0);
}

cured_status cured_cuda_bits(const void *bits, uint64_t first, uint64_t count, void *stream, void **bytes,
                             cured_error *error) {
    cr_error e = {CR_OK, ""};
    const cr_caller_api *api = cr_cl_cuda(&e);
    *bytes = NULL;
    if (api != NULL) api->bits(bits, first, count, stream, bytes, &e);
    return cr_cl_give(error, &e, 0);
}

void cured_cuda_bits_free(void *bytes, void *stream) {
    cr_error e;
    const cr_caller_api *api = bytes != NULL ? cr_cl_cuda(&e) : NULL;
    if (api != NULL) api->bits_free(bytes, stream);
}
