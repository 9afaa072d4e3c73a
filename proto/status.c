/* status: names of the codes and the one way to fill an error.
 *
 * Thread: any. Owner: the caller owns its cr_error. */
#include "proto/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

const char *cr_status_name(cr_status code) {
    switch (code) {
#define CR_STATUS(symbol, number, name) \
    case CR_##symbol:                   \
        return name;
#include "proto/status.def"
#undef CR_STATUS
    }
    return "UNKNOWN";
}

cr_status cr_fail(cr_error *error, cr_status code, const char *format, ...) {
    if (error != NULL) {
        va_list args;
        va_start(args, format);
        error->code = code;
        if (vsnprintf(error->text, sizeof error->text, format, args) < 0) error->text[0] = '\0';
        va_end(args);
    }
    return code;
}
