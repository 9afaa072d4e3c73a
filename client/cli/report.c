/* report: sentences on stderr and what they mean as exit codes.
 *
 * Thread: one. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/cli.h"
#include "client/weights/json.h"

static bool in_json, quiet;
static cli_failure *kept; /* where the first error goes; NULL: printed */

void cli_report_as(bool json, bool only_errors) {
    in_json = json;
    quiet = only_errors;
}

void cli_report_into(cli_failure *failure) { kept = failure; }

/* Names of files are bytes, and a long sentence may be cut within a character. JSON is UTF-8. */
void cli_json_add_text(cJSON *object, const char *name, const char *text) {
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    size_t left = strlen(text), n = 0;
    char *out = malloc(left * (sizeof replacement - 1) + 1);
    if (out == NULL) return;
    for (size_t bytes; left > 0; text += bytes, left -= bytes) {
        const size_t good = weights_utf8_bytes(text, left), put = good != 0 ? good : sizeof replacement - 1;
        bytes = good != 0 ? good : 1;
        memcpy(out + n, good != 0 ? text : replacement, put);
        n += put;
    }
    out[n] = '\0';
    cJSON_AddStringToObject(object, name, out);
    free(out);
}

/* Bytes of an error; of a warning, which may name files of PATH_MAX; what the words of the command line add. */
enum { ERROR_BYTES = 1024, WARNING_BYTES = 16384, MORE_BYTES = 64 };

/* What libcured and a daemon say, in the words of the command line. */
static const char *in_words(const char *text, char *to, size_t room) {
    static const char rounds[] = "; --result-dtype f64 rounds it", drop[] = "; drop leaves such elements out";
    const bool unfit = strstr(text, "does not fit i64") != NULL || strstr(text, "does not fit u64") != NULL;
    const char *at = strstr(text, drop);
    if (at != NULL)
        snprintf(to, room, "%.*s; --%s", (int)(at - text), text, at + 2);
    else
        snprintf(to, room, "%s%s", text, unfit ? rounds : "");
    return to;
}

/* One sentence, on standard error; with --json also as a line on standard output. status: CURED_OK for errors found here. */
static int report(int code, cured_status status, const char *said) {
    char words[ERROR_BYTES + MORE_BYTES];
    const char *text = in_words(said, words, sizeof words);
    cli_progress_clear();
    if (kept != NULL) {
        if (kept->code != EXIT_OK) return code;
        kept->code = code;
        kept->status = status;
        snprintf(kept->text, sizeof kept->text, "%.*s", (int)sizeof kept->text - 1, text);
        return code;
    }
    fflush(stdout);
    fprintf(stderr, "%s: %s", cli_program_here.name, text);
    if (status != CURED_OK) fprintf(stderr, " (%s)", cured_status_name(status));
    fputc('\n', stderr);
    if (!in_json) return code;
    cJSON *root = cJSON_CreateObject();
    cli_json_add_text(root, "error", text);
    if (status != CURED_OK) cJSON_AddStringToObject(root, "status", cured_status_name(status));
    cJSON_AddNumberToObject(root, "exit", code);
    char *line = cJSON_PrintUnformatted(root);
    if (line != NULL) puts(line);
    cJSON_free(line);
    cJSON_Delete(root);
    fflush(stdout);
    return code;
}

int cli_fail(int code, const char *format, ...) {
    char text[ERROR_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return report(code, CURED_OK, text);
}

int cli_report_failure(const cli_failure *failure, const char *before) {
    char text[ERROR_BYTES];
    snprintf(text, sizeof text, "%s%s", before, failure->text);
    return report(failure->code, failure->status, text);
}

static void say(const char *format, va_list args) {
    cli_progress_clear();
    fflush(stdout);
    char text[WARNING_BYTES], words[WARNING_BYTES + MORE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    fprintf(stderr, "%s: %s\n", cli_program_here.name, in_words(text, words, sizeof words));
}

void cli_warn(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!quiet) say(format, args);
    va_end(args);
}

void cli_lacking(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_flush(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return EXIT_OK;
    return cli_fail(EXIT_IO, "cannot write to standard output");
}

/* What starts a daemon where none is named. A user without a folder for sockets, as after `su`, says where it listens. */
static const char *start_of_a_daemon(void) {
    const char *folder = getenv("XDG_RUNTIME_DIR");
    return geteuid() == 0 || (folder != NULL && *folder == '/')
               ? "cured"
               : "export CURED_CONNECT=unix:$HOME/cured.sock; cured --listen $CURED_CONNECT";
}

static bool begins(const char *word, const char *with) { return strncmp(word, with, strlen(with)) == 0; }

/* Nobody answers at the address that was given. The daemon takes no path without "unix:", and says of TLS elsewhere. */
static int nobody_there(const char *where, const cured_error *error) {
    if (begins(where, "tls:"))
        return cli_fail(EXIT_CONNECT,
                        "%s (start a daemon that listens there: cured --listen tcp:%s --tls-certificate FILE "
                        "--tls-key FILE, see docs/SECURITY.md; cured-client doctor says more)",
                        error->text, where + strlen("tls:"));
    const bool path = !begins(where, "unix:") && !begins(where, "tcp:");
    return cli_fail(EXIT_CONNECT, "%s (start a daemon: cured --listen %s%s &; cured-client doctor says more)",
                    error->text, path ? "unix:" : "", where);
}

/* What is wrong and what to do about it, on one line. */
static int connect_failed(const cli_options *o, const cured_error *error) {
    const char *where = o->connect != NULL ? o->connect : getenv("CURED_CONNECT");
    bool given = where != NULL && *where != '\0';
    switch (error->code) {
        case CURED_INVALID_ARGUMENT:
            return cli_fail(EXIT_USAGE, "%s", error->text);
        case CURED_UNIMPLEMENTED: /* embedded: in a build without */
            return cli_fail(EXIT_CONNECT, "%s", error->text);
        case CURED_PERMISSION_DENIED:
            return cli_fail(EXIT_DENIED,
                            "%s (its owner and its group may connect: for an installed daemon usermod -aG cured "
                            "USER and a new login; cured-client doctor says more)",
                            error->text);
        default:
            if (given) return nobody_there(where, error);
            return cli_fail(EXIT_CONNECT, "%s (start a daemon: %s &; cured-client doctor says more)", error->text,
                            start_of_a_daemon());
    }
}

/* Who looks on is told that no daemon answers; who may not use the one there is, always. */
static void report_auto(const cured_conn *conn) {
    cured_error error;
    cured_status reason = cured_auto_reason(conn, &error);
    if (reason == CURED_PERMISSION_DENIED)
        cli_warn("%s; answering without the daemon (to use it: usermod -aG cured USER and a new login)", error.text);
    else if (reason != CURED_OK && isatty(STDERR_FILENO))
        cli_warn("no daemon listens: answering in this process");
}

static cured_status try_to_connect(const cli_options *o, bool daemon, uint32_t threads, cured_conn **conn,
                                   cured_error *error) {
    cured_connect_options options = CURED_CONNECT_OPTIONS_INIT;
    const char *address = o->connect != NULL || daemon ? o->connect : "auto:", *given = getenv("CURED_CONNECT");
    char name[64];
    if (o->connect == NULL && (given == NULL || *given == '\0') && (cli_goes_by_rank(o) || cli_goes_by_pairs(o)))
        address = "embedded:";
    snprintf(name, sizeof name, "%s/%s", cli_program_here.name, CURED_VERSION);
    options.client = name;
    options.threads = threads;
    options.tls_ca = o->tls_ca;
    options.tls_certificate = o->tls_certificate;
    options.tls_key = o->tls_key;
    options.token_file = o->token_file;
    return cured_connect(address, &options, conn, error);
}

cured_status cli_connect_again(const cli_options *o, cured_conn **conn, cured_error *error) {
    return try_to_connect(o, false, 1, conn, error);
}

int cli_connect(const cli_options *o, bool daemon, cured_conn **conn) {
    cured_error error;
    if (try_to_connect(o, daemon, o->threads, conn, &error) != CURED_OK) return connect_failed(o, &error);
    report_auto(*conn);
    if (cured_connected(*conn, &error) == CURED_OK) return EXIT_OK;
    int code = connect_failed(o, &error);
    cured_close(*conn);
    *conn = NULL;
    return code;
}

int cli_exit_code(cured_status status) {
    switch (status) {
        case CURED_INVALID_ARGUMENT:
        case CURED_OUT_OF_RANGE:
        case CURED_UNIMPLEMENTED:
            return EXIT_DATA;
        case CURED_NOT_FOUND:
            return EXIT_NOINPUT;
        case CURED_DATA_LOSS:
            return EXIT_IO;
        case CURED_PERMISSION_DENIED:
        case CURED_UNAUTHENTICATED:
            return EXIT_DENIED;
        case CURED_FAILED_PRECONDITION: /* there is no GPU for a kernel asked for by name */
            return EXIT_CONNECT;
        case CURED_UNAVAILABLE:
        case CURED_RESOURCE_EXHAUSTED:
        case CURED_DEADLINE_EXCEEDED:
        case CURED_ABORTED:
        case CURED_CANCELLED:
            return EXIT_AGAIN;
        default:
            return EXIT_PROTOCOL;
    }
}

int cli_call_failed(const cli_options *o, const cured_conn *conn, const cured_error *error, const char *what) {
    char text[ERROR_BYTES];
    const char *why = error->text[0] != '\0' ? error->text : "the call failed";
    int code = cli_exit_code(error->code);
    /* The connection itself ended, and not for want of a daemon: the two do not understand each other. */
    cured_status ended = cured_conn_status(conn, NULL);
    if (ended == error->code && (ended == CURED_INVALID_ARGUMENT || ended == CURED_UNIMPLEMENTED)) code = EXIT_PROTOCOL;
    if (error->code == CURED_DEADLINE_EXCEEDED && o->timeout != NULL)
        snprintf(text, sizeof text, "%s%sno answer within --timeout %s", what != NULL ? what : "",
                 what != NULL ? ": " : "", o->timeout);
    else
        snprintf(text, sizeof text, "%s%s%s", what != NULL ? what : "", what != NULL ? ": " : "", why);
    return report(code, error->code, text);
}
