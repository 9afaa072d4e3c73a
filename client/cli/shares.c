/* shares: ops that are told a share (--q), each of which asks once for every share; and what such an answer is called.
 *
 * Thread: one. Owner: the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "kernels/core/op.h"
#include "kernels/core/partial.h"
#include "kernels/core/quantile.h"

int cli_take_shares(cli_options *o, const char *value) {
    o->share_count = 0;
    while (true) {
        char *end;
        if (o->share_count == CURED_MAX_OPS)
            return cli_fail(EXIT_USAGE, "--q names more than %d shares", CURED_MAX_OPS);
        const double share = strtod(value, &end);
        if (end == value || (*end != ',' && *end != '\0') || !(share >= 0 && share <= 1))
            return cli_fail(EXIT_USAGE, "--q is '%.60s', must be numbers from 0 to 1 with commas between them", value);
        o->shares[o->share_count++] = share;
        if (*end == '\0') return EXIT_OK;
        value = end + 1;
    }
}

int cli_take_method(cli_options *o, const char *value) {
    cr_quantile_method method;
    cr_error error;
    if (cr_quantile_method_parse(value, &method, &error) != CR_OK) return cli_fail(EXIT_USAGE, "--%s", error.text);
    o->call.method = (cured_method)method;
    o->method_given = true;
    return EXIT_OK;
}

int cli_check_taken(const cli_options *o) {
    const cr_finish_opts given = {.ddof = o->call.ddof,
                                  .overflow = (cr_overflow)o->call.overflow,
                                  .result_dtype = (cr_dtype)o->call.result_dtype};
    uint32_t taken = 0;
    for (size_t i = 0; i < o->op_count; i++)
        for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
            uint32_t own;
            cr_finish_share((cr_op)o->ops[i], (cr_dtype)dtype, &given, &own);
            taken |= own;
        }
    const char *stray = given.ddof != 0 && (taken & CR_OPT_DDOF) == 0                   ? "ddof"
                        : o->call.overflow != 0 && (taken & CR_OPT_OVERFLOW) == 0       ? "overflow"
                        : given.result_dtype != 0 && (taken & CR_OPT_RESULT_DTYPE) == 0 ? "result-dtype"
                                                                                        : NULL;
    if (o->op_count == 0 || stray == NULL) return EXIT_OK;
    return cli_fail(EXIT_USAGE, "--%s: none of the ops takes it", stray);
}

int cli_spread_shares(cli_options *o) {
    cured_op ops[CURED_MAX_OPS];
    double shares[CURED_MAX_OPS];
    size_t count = 0;
    bool taken = false;
    const size_t each = o->share_count != 0 ? o->share_count : 1;
    for (size_t i = 0; i < o->op_count; i++) {
        const bool takes = cr_op_takes_share((cr_op)o->ops[i]);
        const size_t now = takes ? each : 1;
        taken |= takes;
        if (now > CURED_MAX_OPS - count)
            return cli_fail(EXIT_USAGE, "--q makes more than %d answers of the ops", CURED_MAX_OPS);
        for (size_t k = 0; k < now; k++) {
            ops[count] = o->ops[i];
            shares[count++] = takes && o->share_count != 0 ? o->shares[k] : 0.5;
        }
    }
    if (!taken && (o->share_count != 0 || o->method_given))
        return cli_fail(EXIT_USAGE, "--%s: none of the ops takes it", o->share_count != 0 ? "q" : "method");
    if (!taken) return EXIT_OK;
    memcpy(o->ops, ops, count * sizeof ops[0]);
    memcpy(o->shares, shares, count * sizeof shares[0]);
    o->op_count = count;
    if (o->share_count == 0) return EXIT_OK; /* the default, under the op's own name */
    o->call.parameters = o->shares;
    return EXIT_OK;
}

const char *cli_label(const cli_options *o, cured_op op, size_t index, char out[CLI_LABEL]) {
    char text[CURED_TEXT_BYTES];
    const char *name = cured_op_name(op);
    if (o->call.parameters == NULL || !cr_op_takes_share((cr_op)op)) return name;
    cured_text(CURED_F64, &o->shares[index], sizeof o->shares[index], text, sizeof text);
    snprintf(out, CLI_LABEL, "%s_%.40s", name, text);
    return out;
}

bool cli_goes_by_rank(const cli_options *o) {
    for (size_t i = 0; i < o->op_count; i++)
        if (cr_op_closing((cr_op)o->ops[i]) == CR_CLOSING_ORDER) return true;
    return false;
}
