/* many: reduces several files and prints a line for each; --total prints one more, for all files as one array.
 *
 * The total costs no second look at the files: each is reduced to a partial, which is finished here for its own line and
 * merged for the total. So indices count through all files then. A digest alone is looked for twice, because a file's own begins at
 * element 0, and its share of the total where the files before it end. Ops by rank have no partials: their total is searched for (search.c).
 *
 * Thread: one. Owner: the connection and the total live inside cli_run_many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/cli.h"
#include "client/cli/table.h"
#include "kernels/core/op.h"

struct total {
    uint8_t bytes[CURED_PARTIAL_BYTES];
    size_t len, files; /* files in it; 0: none yet */
    uint64_t first;    /* of the next file */
    cured_dtype dtype; /* of those in it */
};

static int not_one_array(const cli_options *o, cured_dtype dtype, cured_dtype before) {
    return cli_fail(EXIT_DATA, "%s holds %s, the files before it %s: they are not one array%s", o->file,
                    cured_dtype_name(dtype), cured_dtype_name(before),
                    o->text ? " (--dtype f64 rounds every number to f64)" : "");
}

static int merge_failed(const char *name, const cured_error *error) {
    return cli_fail(error->code == CURED_RESOURCE_EXHAUSTED ? EXIT_AGAIN : EXIT_DATA, "%s: %s (%s)", name, error->text,
                    cured_status_name(error->code));
}

/* Where the digest is among the ops; their number: nowhere. */
static size_t digest_of(const cured_op *ops, size_t op_count) {
    size_t i = 0;
    while (i < op_count && cr_op_closing((cr_op)ops[i]) != CR_CLOSING_DIGEST) i++;
    return i;
}

/* Prints what a partial comes to. digest: a call that answers the digest in the partial's place; NULL: the partial does. */
static int print_partial(const cli_options *o, const cured_op *ops, size_t op_count, const void *partial, size_t bytes,
                         const cured_call *digest, const char *name, uint64_t *count) {
    cured_error error;
    cured_values *values = NULL;
    cured_op own[CURED_MAX_OPS];
    size_t own_count = 0;
    cli_answer answer = {.file = name, .digest = digest, .digest_at = digest_of(ops, op_count)};
    for (size_t i = 0; i < op_count; i++)
        if (digest == NULL || i != answer.digest_at) own[own_count++] = ops[i];
    if (cured_partial_check(partial, bytes, &answer.dtype, &answer.count, &error) != CURED_OK ||
        (own_count != 0 && cured_partial_finish(partial, bytes, own, own_count, &o->call, &values, &error) != CURED_OK))
        return merge_failed(name != NULL ? name : "total", &error);
    answer.values = values;
    *count = answer.count;
    int code = cli_print(o, &answer, true);
    cured_values_free(values);
    return code;
}

/* The line of one file whose partial has come, and its share of the total. */
static int add_partial(const cli_options *o, const cured_op *ops, size_t op_count, const cured_call *call,
                       const cured_call *digest, cured_dtype dtype, struct total *total) {
    cured_error error;
    size_t bytes;
    uint64_t count = 0;
    const void *partial = cured_call_partial(call, &bytes);
    cured_bytes both[] = {{partial, bytes}, {total->bytes, total->len}};
    int code = print_partial(o, ops, op_count, partial, bytes, digest, o->file, &count);
    size_t len = sizeof total->bytes;
    if (total->files != 0 && dtype != total->dtype) return not_one_array(o, dtype, total->dtype);
    if (cured_partial_merge(both, total->files != 0 ? 2 : 1, total->bytes, &len, &error) != CURED_OK)
        return merge_failed(o->file, &error);
    total->len = len;
    total->dtype = dtype;
    total->files++;
    total->first += count;
    return code;
}

/* The digest of a file by itself, if it is asked for. */
static int reduce_alone(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count,
                        cured_call **call) {
    const size_t at = digest_of(ops, op_count);
    cli_options one = *o;
    cli_layout layout;
    cured_dtype type;
    one.call.partial = false;
    one.call.first = 0;
    return at == op_count ? EXIT_OK : cli_reduce(&one, conn, &ops[at], 1, call, &type, &layout);
}

static int run_one(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, struct total *total,
                   cured_dtype *type) {
    cured_call *call, *digest = NULL;
    cli_layout layout;
    int code = EXIT_OK;
    if (total != NULL && total->first != 0) code = reduce_alone(o, conn, ops, op_count, &digest);
    if (code == EXIT_OK) code = cli_reduce(o, conn, ops, op_count, &call, type, &layout);
    if (code != EXIT_OK) {
        cured_call_free(digest);
        return code;
    }
    if (total != NULL) {
        code = add_partial(o, ops, op_count, call, digest, *type, total);
        if (o->timing) cli_print_timing(call);
    } else {
        const cli_answer answer = {.call = call, .dtype = *type, .count = cured_call_count(call), .file = o->file};
        code = cli_print(o, &answer, true);
    }
    cured_call_free(digest);
    cured_call_free(call);
    return code;
}

/* One of the files, and where a table is gathered its row, whatever happened. */
static int run_row(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, struct total *total,
                   cured_dtype *type) {
    const size_t before = o->rows != NULL ? o->rows->count : 0;
    const int code = run_one(o, conn, ops, op_count, total, type);
    if (code != EXIT_OK && o->rows != NULL && o->rows->count == before) cli_rows_lack(o->rows, o->file);
    return code;
}

/* Whether a total of ops by rank can be found, before anything is printed: a daemon counts for no search. */
static int check_ranked(const cli_options *o, const cured_conn *conn, const cured_op *ops, size_t op_count) {
    const int code = cli_search_check(o, ops, op_count);
    if (code != EXIT_OK || strncmp(cured_server(conn), "embedded/", strlen("embedded/")) == 0) return code;
    return cli_fail(EXIT_USAGE, "--total: %s of several files is found in this process: give --connect embedded:",
                    cured_op_name(ops[0]));
}

/* Of ops by rank: a line for each file, and that of all by a search. */
static int run_ranked(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count) {
    cured_dtype first = CURED_DTYPE_DEFAULT, type;
    int code = EXIT_OK;
    for (size_t i = 0; i < o->file_count; i++) {
        cli_options one = *o;
        one.file = o->files[i];
        const int result = run_row(&one, conn, ops, op_count, NULL, &type);
        if (code == EXIT_OK) code = result;
        if (result == EXIT_CONNECT || result == EXIT_PROTOCOL) break;
        if (result == EXIT_OK && first == CURED_DTYPE_DEFAULT) first = type;
        if (code == EXIT_OK && type != first) code = not_one_array(&one, type, first);
    }
    if (code == EXIT_OK) return cli_search_total(o, conn, first, ops, op_count);
    cli_warn("no total: a file is missing in it");
    return code;
}

/* Whether all files but the first can be read twice, where a digest wants that. */
static int check_twice(const cli_options *o, const cured_op *ops, size_t op_count) {
    struct stat st;
    for (size_t i = 1; o->total && digest_of(ops, op_count) != op_count && i < o->file_count; i++) {
        const bool standard = strcmp(o->files[i], "-") == 0;
        if (standard || (stat(o->files[i], &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode)))
            return cli_fail(EXIT_USAGE,
                            "%s is read twice for a digest with --total, and can be read once: give it first",
                            standard ? "standard input" : o->files[i]);
    }
    return EXIT_OK;
}

/* A line for each file, and that of all. */
static int run_files(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count) {
    cured_dtype type = CURED_DTYPE_DEFAULT;
    int code = EXIT_OK;
    struct total *total = o->total ? calloc(1, sizeof *total) : NULL;
    if (o->total && total == NULL) code = cli_fail(EXIT_IO, "out of memory");
    if (total != NULL) total->first = o->call.first;
    for (size_t i = 0; i < o->file_count && (total != NULL || !o->total); i++) {
        cli_options one = *o;
        one.file = o->files[i];
        one.call.partial = total != NULL;
        if (total != NULL) one.call.first = total->first;
        int result = run_row(&one, conn, ops, op_count, total, &type);
        if (code == EXIT_OK) code = result; /* the first that failed says how all ends */
        if (result == EXIT_CONNECT || result == EXIT_PROTOCOL) break;
    }
    if (total != NULL && total->files == o->file_count) {
        int result = print_partial(o, ops, op_count, total->bytes, total->len, NULL, NULL, &total->first);
        if (code == EXIT_OK) code = result;
    } else if (total != NULL) {
        cli_warn("no total: %zu of %zu files are missing in it", o->file_count - total->files, o->file_count);
    }
    free(total);
    return code;
}

int cli_run_many(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    cured_conn *conn;
    cli_options with = *o;
    cli_rows rows = {.columns = 1 + op_count};
    int code = check_twice(o, ops, op_count);
    if (code == EXIT_OK) code = cli_connect(o, false, &conn);
    if (code != EXIT_OK) return code;
    const bool ranked = o->total && cli_goes_by_rank(o);
    if (ranked) code = check_ranked(o, conn, ops, op_count);
    if (o->table) with.rows = &rows;
    if (code == EXIT_OK && (named || o->table) && !o->json) code = cli_print_names(&with, ops, op_count);
    if (code == EXIT_OK) code = (ranked ? run_ranked : run_files)(&with, conn, ops, op_count);
    if (o->table) cli_rows_end(&rows);
    cured_close(conn);
    return code == EXIT_OK ? cli_flush() : code;
}
