/* error: how a status and its sentence reach the program.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns the memory of the error, which may be NULL. */
#ifndef CURED_CLIENT_LIB_ERROR_H
#define CURED_CLIENT_LIB_ERROR_H

#include "cured/cured.h"
#include "proto/status.h"

/* What a sentence says of the numbers that an array's type may have. */
#define CR_CL_INPUTS "1 to 13, 16 or 17"

cured_status cr_cl_give(cured_error *out, const cr_error *error, uint32_t retry_after_ms);
cured_status cr_cl_fail(cured_error *out, cr_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The daemon broke the protocol, in this way. detail: "", or what more is known; none of *error. */
cr_status cr_cl_broken(cr_error *error, const char *what, const char *detail);

#endif
