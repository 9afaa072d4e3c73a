/* search: medians and quantiles of several files as one array: each read of a search counts in every file (cured.h, "Searches").
 *
 * Thread: one. Owner: cli_search_run has the counts and the search; values are the caller's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/cli.h"
#include "kernels/core/op.h"

int cli_search_count(const cli_options *o, cured_conn *conn, cured_op op, const cured_bytes *asked, uint64_t *counts,
                     size_t count, uint64_t *elements, cured_dtype *dtype) {
    cli_options one = *o;
    cured_call *call;
    cli_layout layout;
    size_t own;
    one.call.asked = asked;
    one.call.parameters = NULL;
    one.call.method = CURED_METHOD_LINEAR;
    const int code = cli_reduce(&one, conn, &op, 1, &call, dtype, &layout);
    if (code != EXIT_OK) return code;
    const uint64_t *found = cured_call_counts(call, &own);
    for (size_t i = 0; i < own && i < count; i++) counts[i] += found[i];
    *elements += cured_call_count(call);
    cured_call_free(call);
    return EXIT_OK;
}

int cli_search_run(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count, cli_counter *counter,
                   void *user, cured_values **values) {
    cured_error error;
    cured_search *search;
    cured_bytes asked;
    size_t count;
    int code = EXIT_OK;
    if (cured_search_begin(dtype, ops, op_count, &o->call, &search, &error) != CURED_OK)
        return cli_fail(EXIT_DATA, "%s (%s)", error.text, cured_status_name(error.code));
    while (code == EXIT_OK && (asked = cured_search_asked(search, &count), count != 0)) {
        uint64_t *counts = calloc(count, sizeof *counts);
        code = counts != NULL ? counter(user, &asked, counts, count) : cli_fail(EXIT_IO, "out of memory");
        if (code == EXIT_OK) cured_search_next(search, counts, count, NULL);
        free(counts);
    }
    if (code == EXIT_OK && cured_search_values(search, values, &error) != CURED_OK)
        code = cli_fail(EXIT_DATA, "%s (%s)", error.text, cured_status_name(error.code));
    cured_search_free(search);
    return code;
}

int cli_search_check(const cli_options *o, const cured_op *ops, size_t op_count) {
    for (size_t i = 0; i < op_count; i++)
        if (cr_op_closing((cr_op)ops[i]) != CR_CLOSING_ORDER)
            return cli_fail(EXIT_USAGE,
                            "--ops: over several files medians and quantiles are found by several reads, %s by one: "
                            "ask for them apart",
                            cured_op_name(ops[i]));
    for (size_t i = 0; i < o->file_count; i++) {
        struct stat st;
        const bool standard = strcmp(o->files[i], "-") == 0;
        if (standard || (stat(o->files[i], &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
            return cli_fail(EXIT_USAGE, "%s is read once, and %s of several files takes several reads: store it first",
                            standard ? "standard input" : o->files[i], cured_op_name(ops[0]));
    }
    return EXIT_OK;
}

/* ---- --total ---- */

typedef struct total {
    const cli_options *o;
    cured_conn *conn;
    cured_op op;
    uint64_t elements;
    cured_dtype dtype;
} total;

static int count_files(void *user, const cured_bytes *asked, uint64_t *counts, size_t count) {
    total *t = user;
    int code = EXIT_OK;
    t->elements = 0;
    for (size_t i = 0; i < t->o->file_count && code == EXIT_OK; i++) {
        cli_options one = *t->o;
        cured_dtype dtype;
        one.file = t->o->files[i];
        if (one.text) one.dtype = t->dtype; /* known by now */
        code = cli_search_count(&one, t->conn, t->op, asked, counts, count, &t->elements, &dtype);
    }
    return code;
}

int cli_search_total(const cli_options *o, cured_conn *conn, cured_dtype dtype, const cured_op *ops, size_t op_count) {
    total t = {o, conn, ops[0], 0, dtype};
    cured_values *values;
    int code = cli_search_run(o, dtype, ops, op_count, count_files, &t, &values);
    if (code != EXIT_OK) return code;
    const cli_answer answer = {.values = values, .dtype = dtype, .count = t.elements};
    code = cli_print(o, &answer, true);
    cured_values_free(values);
    return code;
}
