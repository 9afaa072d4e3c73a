/* shares: ops that are told a share (--q), each of which asks once for every share; and what such an answer is called.
 *
 * Thread: one. Owner: the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "kernels/core/keys.h"
#include "kernels/core/op.h"
#include "kernels/core/partial.h"
#include "kernels/core/quantile.h"

/* Each share's answer has a name and, with --output, a file of its own. */
static int add_share(cli_options *o, double share) {
    char text[CURED_TEXT_BYTES];
    share += 0.0; /* -0 is 0 */
    for (size_t i = 0; i < o->share_count; i++) {
        if (o->shares[i] != share) continue;
        cured_text(CURED_F64, &share, sizeof share, text, sizeof text);
        return cli_fail(EXIT_USAGE, "--q names %s twice", text);
    }
    o->shares[o->share_count++] = share;
    return EXIT_OK;
}

int cli_take_shares(cli_options *o, const char *value) {
    const char *given = value;
    o->share_count = 0;
    while (true) {
        char *end;
        if (o->share_count == CURED_MAX_OPS)
            return cli_fail(EXIT_USAGE, "--q names more than %d shares", CURED_MAX_OPS);
        const double share = strtod(value, &end);
        if (end == value || (*end != ',' && *end != '\0') || !(share >= 0 && share <= 1))
            return cli_fail(EXIT_USAGE, "--q is '%.60s', must be numbers from 0 to 1 with commas between them", given);
        const int code = add_share(o, share);
        if (code != EXIT_OK || *end == '\0') return code;
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

/* Whether partials by key can be made of an op, of some type at least; error says why not. */
static bool goes_by_key(cured_op op, cr_error *error) {
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++)
        if (cr_keys_takes((cr_op)op, (cr_dtype)dtype, error) == CR_OK) return true;
    return false;
}

/* Options that each of the ops has to take. */
static int check_each(const cli_options *o, const cured_op *ops, size_t op_count, bool reduces) {
    cr_error error;
    const char *pair = NULL;
    for (size_t i = 0; i < op_count; i++) {
        const char *name = cured_op_name(ops[i]);
        if (pair == NULL && cr_op_inputs((cr_op)ops[i]) == 2) pair = name;
        const bool ranked = cr_op_closing((cr_op)ops[i]) == CR_CLOSING_ORDER,
                   digest = cr_op_closing((cr_op)ops[i]) == CR_CLOSING_DIGEST;
        if (o->keys != NULL && !goes_by_key(ops[i], &error)) return cli_fail(EXIT_USAGE, "--keys: %s", error.text);
        if (ranked && (o->call.partial || strcmp(o->command, "merge") == 0))
            return cli_fail(EXIT_USAGE, "%s: op %s has none, because it takes several reads of the whole array",
                            o->call.partial ? "--partial" : "merge: partials", name);
        const bool weights = strcmp(o->command, "weights") == 0; /* there NaNs are skipped by the ops beside a digest */
        if (digest && !weights &&
            (o->call.nan == CURED_NAN_SKIP || o->where != NULL || (o->call.first != 0 && !o->call.partial)))
            return cli_fail(EXIT_USAGE, "--%s goes without %s, because a digest is of all elements of a whole array",
                            o->where != NULL                ? "where"
                            : o->call.nan == CURED_NAN_SKIP ? "nan skip"
                                                            : "first",
                            name);
    }
    if (!reduces || !cli_has_option("second") || (pair != NULL) == (o->second != NULL)) return EXIT_OK;
    return pair ? cli_fail(EXIT_USAGE, "%s is of two arrays: give the other as --second FILE", pair)
                : cli_fail(EXIT_USAGE, "--second: none of the ops takes it");
}

int cli_check_taken(const cli_options *o, const cured_op *ops, size_t op_count, bool reduces) {
    const cr_finish_opts given = {
        .ddof = 1, .overflow = CR_OVERFLOW_WRAP, .result_dtype = (cr_dtype)o->call.result_dtype};
    uint32_t taken = 0;
    for (size_t i = 0; i < op_count; i++)
        for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
            uint32_t own;
            cr_finish_share((cr_op)ops[i], (cr_dtype)dtype, &given, &own);
            taken |= own;
        }
    const char *stray = cli_given(o, "ddof") && (taken & CR_OPT_DDOF) == 0                   ? "ddof"
                        : cli_given(o, "overflow") && (taken & CR_OPT_OVERFLOW) == 0         ? "overflow"
                        : cli_given(o, "result-dtype") && (taken & CR_OPT_RESULT_DTYPE) == 0 ? "result-dtype"
                                                                                             : NULL;
    if (op_count == 0) return EXIT_OK;
    if (stray == NULL) return check_each(o, ops, op_count, reduces);
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
