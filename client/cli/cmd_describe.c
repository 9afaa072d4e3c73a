/* cured-client describe FILE: a fixed set of ops in one pass. One without a value (the minimum of nothing) is shown as "-",
 * with the reason on standard error, and exit status 65 as for every other command.
 *
 * Thread: one. */
#include "client/cli/cli.h"

static const cured_op ops[] = {
#define CR_DESCRIBE(symbol) CURED_OP_##symbol,
#include "kernels/core/describe.def"
#undef CR_DESCRIBE
};

size_t cli_describe_ops(const cured_op **all) {
    *all = ops;
    return sizeof ops / sizeof ops[0];
}

int cmd_describe(const cli_options *o) { return cli_run(o, ops, sizeof ops / sizeof ops[0], true); }
