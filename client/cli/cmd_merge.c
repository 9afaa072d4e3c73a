/* cured-client merge FILE... --ops A,B: partials, in any order, to answers or to one partial; by the daemon, or here. Those by key always
 * here, because no daemon takes them.
 *
 * Thread: one. Owner: the partials live inside cmd_merge. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "kernels/core/keyed.h"

/* Reads what follows the n bytes of a partial by key, which may be long. */
static int read_rest(FILE *file, uint8_t **data, size_t *n) {
    for (size_t room = *n, got; !feof(file) && !ferror(file); *n += got) {
        if (*n == room) {
            uint8_t *more = room <= SIZE_MAX / 2 ? realloc(*data, 2 * room) : NULL;
            if (more == NULL) return cli_fail(EXIT_IO, "out of memory");
            *data = more;
            room *= 2;
        }
        got = fread(*data + *n, 1, room - *n, file);
    }
    return EXIT_OK;
}

/* Reads a file that can only be a partial if it is short, or by key. */
static int read_partial(const char *path, cured_bytes *out) {
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    FILE *file = standard ? stdin : fopen(path, "rbe");
    if (file == NULL)
        return cli_fail(errno == EACCES || errno == EPERM ? EXIT_DENIED : EXIT_NOINPUT, "cannot open %s: %s", name,
                        strerror(errno));
    int code = EXIT_OK;
    uint8_t *data = malloc(CURED_PARTIAL_BYTES + 1);
    size_t n = data != NULL ? fread(data, 1, CURED_PARTIAL_BYTES + 1, file) : 0;
    const bool by_key = data != NULL && cr_keyed_is(data, n);
    if (by_key && n > CURED_PARTIAL_BYTES) code = read_rest(file, &data, &n);
    if (data == NULL)
        code = cli_fail(EXIT_IO, "out of memory");
    else if (ferror(file))
        code = cli_read_failed(name, errno);
    else if (n > CURED_PARTIAL_BYTES && !by_key)
        code = cli_fail(EXIT_DATA, "%s is not a partial: those have at most %d bytes", name, CURED_PARTIAL_BYTES);
    if (!standard) fclose(file);
    uint8_t *exact = code == EXIT_OK ? realloc(data, n + 1) : NULL; /* many files may come */
    if (code != EXIT_OK) free(data);
    *out = (cured_bytes){exact != NULL ? exact : code == EXIT_OK ? data : NULL, n};
    return code;
}

int cli_put_partial(const cli_options *o, const void *bytes, size_t n) {
    const cli_piece piece = {bytes, n};
    return cli_write(o->output, &piece, 1);
}

void cli_name_partial(const cli_options *o, const cured_error *why, cured_error *error) {
    size_t which;
    int begins = 0;
    if (sscanf(why->text, "partials[%zu]: %n", &which, &begins) != 1 || begins == 0 || which >= o->file_count) return;
    char text[sizeof error->text];
    snprintf(text, sizeof text, "%.110s: partial: %.100s", o->files[which], why->text + begins);
    memcpy(error->text, text, sizeof text);
}

/* Names the file of the partial that cannot be merged, or that was not made for the ops, where it is one. */
static void name_file(const cli_options *o, const cured_bytes *partials, size_t count, cured_error *error) {
    static uint8_t out[CURED_PARTIAL_BYTES];
    size_t n = sizeof out;
    cured_error why;
    if (error->code != CURED_INVALID_ARGUMENT) return;
    if (cured_partial_merge(partials, count, out, &n, &why) != CURED_OK) {
        cli_name_partial(o, &why, error);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        cured_values *values = NULL;
        const cured_status status =
            cured_partial_finish(partials[i].data, partials[i].bytes, o->ops, o->op_count, &o->call, &values, &why);
        cured_values_free(values);
        if (status != CURED_INVALID_ARGUMENT || strstr(error->text, why.text) == NULL) continue; /* another reason */
        snprintf(error->text, sizeof error->text, "%.110s: %.100s", o->files[i], why.text);
        return;
    }
}

static int merge_here(const cli_options *o, const cured_bytes *partials, size_t count) {
    cured_error error;
    cured_values *values = NULL;
    cli_answer answer = {0};
    static uint8_t out[CURED_PARTIAL_BYTES];
    cured_op ops[CURED_MAX_OPS];
    size_t n = sizeof out, op_count = 0;
    if (cured_partial_merge(partials, count, out, &n, &error) == CURED_OK)
        cured_partial_check(out, n, &answer.dtype, &answer.count, &error);
    for (size_t i = 0; i < o->op_count; i++) /* a partial that goes on need not be of a whole array, as a digest is */
        if (!o->call.partial || cured_axis_dtype(o->ops[i], answer.dtype, CURED_DTYPE_DEFAULT) != CURED_DIGEST)
            ops[op_count++] = o->ops[i];
    if (error.code == CURED_OK && op_count != 0) cured_partial_finish(out, n, ops, op_count, &o->call, &values, &error);
    if (error.code != CURED_OK) name_file(o, partials, count, &error);
    if (error.code != CURED_OK)
        return cli_fail(error.code == CURED_RESOURCE_EXHAUSTED ? EXIT_AGAIN : EXIT_DATA, "%s (%s)", error.text,
                        cured_status_name(error.code));
    answer.values = values;
    int code = o->call.partial ? cli_put_partial(o, out, n) : cli_print(o, &answer, true);
    cured_values_free(values);
    return code;
}

static int merge_there(const cli_options *o, const cured_bytes *partials, size_t count) {
    cured_conn *conn;
    cured_call *call = NULL;
    cured_error error;
    int code = cli_connect(o, false, &conn);
    if (code != EXIT_OK) return code;
    if (cured_merge(conn, partials, count, o->ops, o->op_count, &o->call, &call, &error) != CURED_OK ||
        cured_wait(call, &error) != CURED_OK) {
        name_file(o, partials, count, &error);
        code = cli_call_failed(o, conn, &error, NULL);
    } else if (o->call.partial) {
        size_t n;
        const void *bytes = cured_call_partial(call, &n);
        code = cli_put_partial(o, bytes, n);
    } else {
        cli_answer answer = {.call = call, .count = cured_call_count(call)};
        cured_partial_check(partials[0].data, partials[0].bytes, &answer.dtype, NULL, NULL);
        code = cli_print(o, &answer, true);
    }
    cured_call_free(call);
    cured_close(conn);
    return code;
}

int cmd_merge(const cli_options *o) {
    cured_bytes *partials = calloc(o->file_count, sizeof *partials);
    int code = partials != NULL ? EXIT_OK : cli_fail(EXIT_IO, "out of memory");
    for (size_t i = 0; code == EXIT_OK && i < o->file_count; i++) code = read_partial(o->files[i], &partials[i]);
    bool by_key = false;
    for (size_t i = 0; code == EXIT_OK && i < o->file_count; i++)
        by_key |= cr_keyed_is(partials[i].data, partials[i].bytes);
    if (code == EXIT_OK && !by_key && o->output != NULL && !o->call.partial) code = cli_no_output();
    if (code == EXIT_OK)
        code = (by_key ? cli_merge_by_key : o->local ? merge_here : merge_there)(o, partials, o->file_count);
    for (size_t i = 0; partials != NULL && i < o->file_count; i++) free((void *)(uintptr_t)partials[i].data);
    free(partials);
    return code;
}
