/* partial: how a partial's bytes reach the program.
 *
 * Thread: any; nothing here holds state. Owner: the caller, of the memory. */
#ifndef CURED_CLIENT_LIB_PARTIAL_H
#define CURED_CLIENT_LIB_PARTIAL_H

#include "kernels/core/serial.h"

/* The share's bytes to out, which has room for *out_bytes; that becomes their number. INVALID_ARGUMENT where it is too small: out is not
 * touched then. */
cr_status cr_cl_give_share(const cr_share *share, void *out, size_t *out_bytes, cr_error *error);

#endif
