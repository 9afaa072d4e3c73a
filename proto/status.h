/* status: gRPC's status codes, and the one error value every room passes upward.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns its cr_error. */
#ifndef CURED_PROTO_STATUS_H
#define CURED_PROTO_STATUS_H

typedef enum cr_status {
#define CR_STATUS(symbol, number, name) CR_##symbol = (number),
#include "proto/status.def"
#undef CR_STATUS
} cr_status;

enum { CR_STATUS_MAX = CR_UNAUTHENTICATED, CR_ERROR_TEXT = 240 };

/* A status and the sentence a person reads. The sentence names the field and the limit; it holds no address and
 * nothing of another client. text is "" when code is CR_OK. */
typedef struct cr_error {
    cr_status code;
    char text[CR_ERROR_TEXT];
} cr_error;

/* The code's name ("INVALID_ARGUMENT"); "UNKNOWN" for a number outside the list. */
const char *cr_status_name(cr_status code);

/* Fills *error (may be NULL) with code and a printf-formatted sentence (cut to fit) and returns code, so that a check
 * reads `return cr_fail(error, CR_INVALID_ARGUMENT, "…", …);`. */
cr_status cr_fail(cr_error *error, cr_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
