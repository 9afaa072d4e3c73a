/* shared: see shared.h. Thread: any. Owner: see shared.h. */
#include "base/shared.h"

#include <fcntl.h>

/* Linux's, which older headers and strict ones lack. */
enum { GET_SEALS = 1034, SEAL_WRITE = 0x0008, SEAL_FUTURE_WRITE = 0x0010 };

cr_status cr_shared_writable(int descriptor, cr_error *error) {
    const int flags = fcntl(descriptor, F_GETFL), seals = fcntl(descriptor, GET_SEALS);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "writable: the descriptor is not open for reading and writing (O_RDWR)");
    if (seals < 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "writable: answers go into shared memory only (memfd_create, shm_open), not into files");
    if (seals & (SEAL_WRITE | SEAL_FUTURE_WRITE))
        return cr_fail(error, CR_INVALID_ARGUMENT, "writable: the memory is sealed against writing (F_SEAL_WRITE)");
    return CR_OK;
}
