/* cured-client OP FILE... and cured-client reduce FILE... --ops A,B,C. Ops are asked for by name: one without a value is an error.
 *
 * Thread: one. */
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"

static cli_array array_of(const cured_call *call, size_t index) {
    cli_array a = {.statuses = cured_call_array_statuses(call, index, NULL)};
    a.values = cured_call_array(call, index, &a.dtype, &a.count);
    if (cured_call_array_status(call, index, &a.why) == CURED_OK) a.statuses = NULL;
    return a;
}

static int run_one(const cli_options *o, const cli_segments *segments, const cured_op *ops, size_t op_count,
                   bool named) {
    cured_conn *conn;
    cured_call *call;
    cured_dtype dtype;
    cli_layout layout;
    int code = cli_connect(o, false, &conn);
    if (code != EXIT_OK) return code;
    code = cli_reduce(o, conn, ops, op_count, &call, &dtype, &layout);
    if (code == EXIT_OK && o->offsets != NULL) cli_segments_layout(segments, &layout);
    if (code == EXIT_OK && !o->call.partial && (o->axis_given || o->offsets != NULL || o->keys != NULL)) {
        cli_array arrays[CURED_MAX_OPS];
        const cli_answer answer = {.call = call, .dtype = dtype, .count = cured_call_count(call)};
        for (size_t i = 0; i < op_count; i++) arrays[i] = array_of(call, i);
        code = cli_arrays_put(o, &answer, arrays, ops, op_count, &layout, named);
    } else if (code == EXIT_OK && o->call.partial) {
        cli_piece piece;
        size_t bytes;
        piece.data = cured_call_partial(call, &bytes);
        piece.bytes = bytes;
        code = cli_write(o->output, &piece, 1);
        if (o->timing) cli_print_timing(call);
    } else if (code == EXIT_OK) {
        const cli_answer answer = {.call = call, .dtype = dtype, .count = cured_call_count(call)};
        code = cli_print(o, &answer, named);
    }
    cured_call_free(call);
    cured_close(conn);
    return code;
}

static int run_by_key(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    cli_options with = *o;
    cli_keys keys;
    int code = cli_keys_read(o, &keys);
    with.call.keys = &keys.keys;
    if (code == EXIT_OK) code = run_one(&with, NULL, ops, op_count, named);
    free(keys.file);
    return code;
}

static int run_by_offsets(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    cli_options with = *o;
    cli_segments segments;
    int code = cli_segments_read(o->offsets, &segments);
    with.call.offsets = &segments.offsets;
    if (code == EXIT_OK) code = run_one(&with, &segments, ops, op_count, named);
    free(segments.file);
    return code;
}

static int run_placed(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    if (o->keys != NULL) return run_by_key(o, ops, op_count, named);
    if (o->offsets != NULL) return run_by_offsets(o, ops, op_count, named);
    return run_one(o, NULL, ops, op_count, named);
}

static int run_masked(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    if (o->where == NULL) return run_placed(o, ops, op_count, named);
    cli_options with = *o;
    cli_where where;
    int code = cli_where_read(o->where, &where);
    with.mask = &where;
    with.call.mask = &where.mask;
    with.call.unplaced = o->call.partial;
    if (code == EXIT_OK) code = run_placed(&with, ops, op_count, named);
    free(where.file);
    return code;
}

static bool is_standard(const char *file) {
    for (size_t i = 0; file != NULL && i < 2; i++) {
        const char *const form = i == 0 ? "bits:" : "bytes:";
        if (strncmp(file, form, strlen(form)) == 0) file += strlen(form);
    }
    return file != NULL && strcmp(file, "-") == 0;
}

/* Standard input ends once: the first that reads it leaves nothing to the others. */
static int check_standard(const cli_options *o) {
    int times = is_standard(o->where) + is_standard(o->second) + is_standard(o->keys) + is_standard(o->offsets);
    const bool beside = times != 0;
    for (size_t i = 0; i < o->file_count; i++) times += strcmp(o->files[i], "-") == 0;
    if (times < 2 || !beside) return EXIT_OK;
    return cli_fail(EXIT_USAGE, "standard input is read once, and - stands for it %d times: give files for the others",
                    times);
}

int cli_run(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    const int standard = check_standard(o);
    if (standard != EXIT_OK) return standard;
    if (o->file_count > 1 || o->total) return cli_run_many(o, ops, op_count, named);
    if (o->second == NULL) return run_masked(o, ops, op_count, named);
    cli_options with = *o;
    cli_second second;
    int code = cli_second_read(o->second, &second);
    with.second_array = &second;
    with.call.second = &second.of;
    if (code == EXIT_OK) code = run_masked(&with, ops, op_count, named);
    free(second.file);
    return code;
}

int cmd_reduce(const cli_options *o) { return cli_run(o, o->ops, o->op_count, strcmp(o->command, "reduce") == 0); }
