/* shared: what memory of a client's must be so that answers may be written there; the daemon and libcured ask alike.
 *
 * Thread: any; nothing here holds state. Owner: the descriptor stays the caller's. */
#ifndef CURED_BASE_SHARED_H
#define CURED_BASE_SHARED_H

#include "proto/status.h"

/* INVALID_ARGUMENT, unless the descriptor is of shared memory, open for reading and writing, and not sealed against writing. It does
 * not block. */
cr_status cr_shared_writable(int descriptor, cr_error *error);

#endif
