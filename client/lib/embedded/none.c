/* none: a library that was built without kernels (CURED_EMBEDDED=OFF). Thread: any. */
#include "client/lib/internal.h"

cr_status cr_cl_embedded_open(cured_conn *conn, uint32_t threads, cr_error *error) {
    (void)conn;
    (void)threads;
    return cr_fail(
        error, CR_UNIMPLEMENTED,
        "embedded: this libcured was built without its own kernels (CURED_EMBEDDED=OFF); give a daemon's address");
}
