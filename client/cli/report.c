/* report: sentences on stderr and what they mean as exit codes.
 *
 * Thread: one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"

int cli_fail(int code, const char *format, ...) {
    va_list args;
    fflush(stdout);
    fputs("cured-client: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

int cli_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_OK;
    return cli_fail(EXIT_IO, "cannot write to standard output");
}

/* What is wrong and what to do about it, on one line. */
static int connect_failed(const cli_options *o, const cured_error *error) {
    const char *where = o->connect != NULL ? o->connect : getenv("CURED_CONNECT");
    bool given = where != NULL && *where != '\0';
    switch (error->code) {
        case CURED_INVALID_ARGUMENT:
            return cli_fail(EXIT_USAGE, "%s", error->text);
        case CURED_PERMISSION_DENIED:
            return cli_fail(EXIT_DENIED,
                            "%s (its owner and its group may connect: for an installed daemon usermod -aG cured "
                            "USER and a new login; cured-client doctor says more)",
                            error->text);
        default:
            return cli_fail(EXIT_CONNECT, "%s (start a daemon: cured%s%s &; cured-client doctor says more)",
                            error->text, given ? " --listen " : "", given ? where : "");
    }
}

int cli_connect(const cli_options *o, cured_conn **conn) {
    cured_error error;
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    options.client = "cured-client/" CURED_VERSION;
    if (cured_connect(o->connect, &options, conn, &error) != CURED_OK) return connect_failed(o, &error);
    if (cured_connected(*conn, &error) == CURED_OK) return EXIT_OK;
    int code = connect_failed(o, &error);
    cured_close(*conn);
    *conn = NULL;
    return code;
}

int cli_call_failed(const cured_conn *conn, const cured_error *error, const char *what) {
    int code;
    switch (error->code) {
        case CURED_INVALID_ARGUMENT:
        case CURED_OUT_OF_RANGE:
        case CURED_UNIMPLEMENTED:
            code = EXIT_DATA;
            break;
        case CURED_NOT_FOUND:
            code = EXIT_NOINPUT;
            break;
        case CURED_DATA_LOSS:
            code = EXIT_IO;
            break;
        case CURED_PERMISSION_DENIED:
        case CURED_UNAUTHENTICATED:
            code = EXIT_DENIED;
            break;
        case CURED_UNAVAILABLE:
        case CURED_RESOURCE_EXHAUSTED:
        case CURED_DEADLINE_EXCEEDED:
        case CURED_ABORTED:
        case CURED_CANCELLED:
            code = EXIT_AGAIN;
            break;
        default:
            code = EXIT_PROTOCOL;
            break;
    }
    /* The connection itself ended, and not for want of a daemon: the two do not understand each other. */
    cured_status ended = cured_conn_status(conn, NULL);
    if (ended == error->code && (ended == CURED_INVALID_ARGUMENT || ended == CURED_UNIMPLEMENTED)) code = EXIT_PROTOCOL;
    return cli_fail(code, "%s%s%s (%s)", what != NULL ? what : "", what != NULL ? ": " : "",
                    error->text[0] != '\0' ? error->text : "the call failed", cured_status_name(error->code));
}
