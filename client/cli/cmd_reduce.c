/* cured-client OP FILE... and cured-client reduce FILE... --ops A,B,C. Ops are asked for by name: one without a value is an error.
 *
 * Thread: one. */
#include <string.h>

#include "client/cli/cli.h"

static cli_array array_of(const cured_call *call, size_t index) {
    cli_array a = {.statuses = cured_call_array_statuses(call, index, NULL)};
    a.values = cured_call_array(call, index, &a.dtype, &a.count);
    if (cured_call_array_status(call, index, &a.why) == CURED_OK) a.statuses = NULL;
    return a;
}

int cli_run(const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    cured_conn *conn;
    cured_call *call;
    cured_dtype dtype;
    cli_layout layout;
    if (o->file_count > 1 || o->total) return cli_run_many(o, ops, op_count, named);
    int code = cli_connect(o, false, &conn);
    if (code != EXIT_OK) return code;
    code = cli_reduce(o, conn, ops, op_count, &call, &dtype, &layout);
    if (code == EXIT_OK && o->axis_given) {
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

int cmd_reduce(const cli_options *o) { return cli_run(o, o->ops, o->op_count, strcmp(o->command, "reduce") == 0); }
