/* many: reduces several files and prints a line for each; --total prints one more, for all files as one array.
 *
 * The total costs no second look at the files: each is reduced to a partial, which is finished here for its own line and
 * merged for the total. So indices count through all files then. Ops by rank have no partials: their total is searched for (search.c).
 *
 * Thread: one. Owner: the connection and the total live inside cli_run_many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "client/cli/table.h"

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

/* Prints what a partial comes to. */
static int print_partial(const cli_options *o, const cured_op *ops, size_t op_count, const void *partial, size_t bytes,
                         const char *name, uint64_t *count) {
    cured_error error;
    cured_values *values;
    cli_answer answer = {.file = name};
    if (cured_partial_check(partial, bytes, &answer.dtype, &answer.count, &error) != CURED_OK ||
        cured_partial_finish(partial, bytes, ops, op_count, &o->call, &values, &error) != CURED_OK)
        return merge_failed(name != NULL ? name : "total", &error);
    answer.values = values;
    *count = answer.count;
    int code = cli_print(o, &answer, true);
    cured_values_free(values);
    return code;
}

/* The line of one file whose partial has come, and its share of the total. */
static int add_partial(const cli_options *o, const cured_op *ops, size_t op_count, const cured_call *call,
                       cured_dtype dtype, struct total *total) {
    cured_error error;
    size_t bytes;
    uint64_t count = 0;
    const void *partial = cured_call_partial(call, &bytes);
    cured_bytes both[] = {{partial, bytes}, {total->bytes, total->len}};
    int code = print_partial(o, ops, op_count, partial, bytes, o->file, &count);
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

static int run_one(const cli_options *o, cured_conn *conn, const cured_op *ops, size_t op_count, struct total *total,
                   cured_dtype *type) {
    cured_call *call;
    cli_layout layout;
    int code = cli_reduce(o, conn, ops, op_count, &call, type, &layout);
    if (code != EXIT_OK) return code;
    if (total != NULL) {
        code = add_partial(o, ops, op_count, call, *type, total);
        if (o->timing) cli_print_timing(call);
    } else {
        const cli_answer answer = {.call = call, .dtype = *type, .count = cured_call_count(call), .file = o->file};
        code = cli_print(o, &answer, true);
    }
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
        int result = print_partial(o, ops, op_count, total->bytes, total->len, NULL, &total->first);
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
    int code = cli_connect(o, false, &conn);
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
