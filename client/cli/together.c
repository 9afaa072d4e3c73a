/* together: options that do not go with each other, or not with the command.
 *
 * Thread: one. */
#include <string.h>

#include "client/cli/cli.h"

int cli_no_output(void) {
    return cli_fail(EXIT_USAGE, "--output is for the arrays of --axis, --offsets and --keys, and for --partial");
}

int cli_check_together(const cli_options *o, bool reduces, bool merge) {
    const bool arrays = o->axis_given || o->offsets != NULL || o->keys != NULL; /* of answers */
    if ((arrays || o->dims != 0 || o->call.partial || o->call.first != 0 || o->output != NULL) && !reduces)
        return cli_fail(EXIT_USAGE, "%s takes none of --axis, --offsets, --keys, --shape, --partial, --first, --output",
                        o->command);
    if (merge && (arrays || o->dims != 0 || o->call.first != 0 || o->offset_given || o->count_given ||
                  o->dtype != CURED_DTYPE_DEFAULT || o->raw || o->via != VIA_AUTO))
        return cli_fail(EXIT_USAGE,
                        "merge takes partials, not arrays: --dtype, --raw, --offset, --count, --shape, --axis, "
                        "--offsets, --keys, --first and --via are not for it");
    if (o->call.kernel != NULL && (!reduces || merge))
        return cli_fail(EXIT_USAGE, "--kernel belongs to reductions of one array");
    if (o->total && (!reduces || merge || o->call.kernel != NULL || arrays || o->call.partial))
        return cli_fail(
            EXIT_USAGE,
            "--total is for OP, reduce and describe, without --axis, --offsets, --keys, --partial, --kernel");
    if (reduces && !merge && o->file_count > 1 && (arrays || (o->call.partial && !cli_program_here.whole)))
        return cli_fail(EXIT_USAGE, "--axis, --offsets, --keys and --partial take one file at a time: '%s' and '%s'",
                        o->file, o->files[1]);
    if (o->where != NULL &&
        (!reduces || merge || o->total || o->file_count > 1 || o->call.kernel != NULL || o->call.first != 0))
        return cli_fail(EXIT_USAGE, "--where is for reductions of one file, without --total, --kernel and --first");
    if (o->where_first_given && o->where == NULL) return cli_fail(EXIT_USAGE, "--where-first belongs to --where");
    if (o->second != NULL && (!reduces || merge || o->total || o->file_count > 1 || o->call.kernel != NULL))
        return cli_fail(EXIT_USAGE, "--second is for reductions of one file, without --total and --kernel");
    if (o->local && !merge) return cli_fail(EXIT_USAGE, "--local belongs to merge");
    if (o->keepdims && !o->axis_given) return cli_fail(EXIT_USAGE, "--keepdims belongs to --axis");
    if (o->axis_given && o->offsets != NULL) return cli_fail(EXIT_USAGE, "--offsets goes without --axis");
    if (o->keys != NULL && (o->axis_given || o->offsets != NULL))
        return cli_fail(EXIT_USAGE, "--keys goes without --axis and --offsets");
    if ((o->groups_given || o->drop) && o->keys == NULL)
        return cli_fail(EXIT_USAGE, "--groups and --drop belong to --keys");
    if (arrays && o->keys == NULL && (o->call.partial || o->call.first != 0))
        return cli_fail(EXIT_USAGE, "--%s goes with neither --partial nor --first", o->axis_given ? "axis" : "offsets");
    if (o->keys != NULL && o->call.first != 0) return cli_fail(EXIT_USAGE, "--keys goes without --first");
    if (o->output != NULL && !arrays && !o->call.partial && !merge) return cli_no_output();
    if (o->table && (o->json || o->call.partial))
        return cli_fail(EXIT_USAGE,
                        "--output table goes with neither --json nor --partial (a file of that name: ./table)");
    if (o->json && (o->output != NULL || o->call.partial))
        return cli_fail(EXIT_USAGE, "--json goes with neither --output nor --partial");
    if (arrays && !o->call.partial && o->output != NULL && o->op_count != 1 && strstr(o->output, "{op}") == NULL)
        return cli_fail(EXIT_USAGE, "--output is '%s', must hold {op} when there are several ops", o->output);
    int code = cli_text_check(o);
    if (code == EXIT_OK) code = cli_block_check(o, reduces, merge);
    return code == EXIT_OK && o->call.partial ? cli_check_binary(o->output) : code;
}
