/* none: a library that was built without kernels (CURED_EMBEDDED=OFF). Thread: any. */
#include "client/lib/embedded/open.h"
#include "client/lib/error.h"

#define NO_KERNELS \
    "embedded: this libcured was built without its own kernels (CURED_EMBEDDED=OFF); give a daemon's address"

cured_status cured_reduce_here(cured_dtype dtype, const cured_op *ops, size_t op_count, const void *data,
                               uint64_t count, const cured_options *options, cured_values **values,
                               cured_error *error) {
    (void)dtype, (void)ops, (void)op_count, (void)data, (void)count, (void)options;
    *values = NULL;
    return cr_cl_fail(error, CR_UNIMPLEMENTED, NO_KERNELS);
}

cr_status cr_cl_embedded_open(cr_cl_calls *calls, uint32_t threads, cr_error *error) {
    (void)calls;
    (void)threads;
    return cr_fail(error, CR_UNIMPLEMENTED, NO_KERNELS);
}
