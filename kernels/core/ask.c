/* ask: the checks of a request's ops, options and place. Thread: any; nothing here holds state. */
#include "kernels/core/ask.h"

#include <stdint.h>

#include "kernels/core/keys.h"
#include "kernels/core/serial.h"

/* Options that are not at their defaults must concern one of the ops at least. */
static cr_status check_taken(const cr_finish_opts *opts, uint32_t taken, cr_error *error) {
    const char *unused = opts->ddof && !(taken & CR_OPT_DDOF)                                    ? "ddof"
                         : opts->overflow && !(taken & CR_OPT_OVERFLOW)                          ? "overflow"
                         : opts->result_dtype != CR_DTYPE_NONE && !(taken & CR_OPT_RESULT_DTYPE) ? "result_dtype"
                                                                                                 : NULL;
    return unused ? cr_fail(error, CR_INVALID_ARGUMENT, "%s: none of the ops takes it", unused) : CR_OK;
}

/* Ops by rank are found in several reads, and no state holds them. */
static cr_status check_order(const cr_ask *ask, cr_op op, cr_error *error) {
    if (cr_op_closing(op) != CR_CLOSING_ORDER) return CR_OK;
    if (ask->partial)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "partial: op %s has none, because it is found in several reads of the whole array",
                       cr_op_name(op));
    if (ask->rereads) return CR_OK;
    return cr_fail(
        error, CR_UNIMPLEMENTED,
        "ops: op %s takes several reads of its input: a connection to \"embedded:\" makes them, of memory and files",
        cr_op_name(op));
}

/* An op of two arrays wants both, and one of a single array would pass over the other. */
static cr_status check_inputs(const cr_ask *ask, cr_op op, cr_error *error) {
    if (ask->folded || cr_op_inputs(op) == 1u + ask->second) return CR_OK;
    if (ask->second)
        return cr_fail(error, CR_INVALID_ARGUMENT, "second: op %s is of one array; ask for it without a second one",
                       cr_op_name(op));
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "second: op %s is of two arrays, and only one is given; give the other as second", cr_op_name(op));
}

cr_status cr_ask_ops(const cr_ask *ask, cr_needs *needs, cr_error *error) {
    uint32_t taken = 0;
    *needs = (cr_needs){0, 0};
    for (uint32_t i = 0; i < ask->op_count; i++) {
        cr_op op = (cr_op)ask->ops[i];
        cr_status status = cr_op_supports(op, ask->dtype, error);
        if (status == CR_OK) status = check_order(ask, op, error);
        if (status == CR_OK) status = check_inputs(ask, op, error);
        if (status == CR_OK && ask->masked && cr_op_closing(op) == CR_CLOSING_DIGEST)
            status = cr_fail(error, CR_INVALID_ARGUMENT,
                             "op %s is of all bytes, and takes no mask: reduce a copy of the elements that count",
                             cr_op_name(op));
        if (status == CR_OK && ask->geometry == CR_GEOMETRY_KEYS) status = cr_keys_takes(op, ask->dtype, error);
        if (status != CR_OK) return status;
        uint32_t own;
        cr_finish_opts share = cr_finish_share(op, ask->dtype, &ask->finish, &own);
        status = ask->geometry == CR_GEOMETRY_AXIS && !ask->statuses
                     ? cr_axis_check(op, ask->dtype, &ask->shape, &share, error)
                     : cr_finish_check(op, ask->dtype, &share, error);
        if (status != CR_OK) return status;
        taken |= own;
        needs->families |= cr_op_needs(op, ask->dtype);
        needs->wants |= ask->partial ? CR_WANTS_ALL : cr_op_wants(op); /* who merges it may finish any of them */
    }
    return check_taken(&ask->finish, taken, error);
}

/* What is not handed on as a partial is of a whole array. */
static cr_status check_digest(const cr_ask *ask, cr_error *error) {
    for (uint32_t i = 0; i < ask->op_count && ask->first != 0 && !ask->partial; i++)
        if (cr_op_closing((cr_op)ask->ops[i]) == CR_CLOSING_DIGEST)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "first: op %s is of a whole array, from element 0 on: a part of one is a partial",
                           cr_op_name((cr_op)ask->ops[i]));
    return CR_OK;
}

static cr_status check_unplaced(const cr_ask *ask, cr_error *error) {
    cr_status status = CR_OK;
    if (!ask->unplaced) return CR_OK;
    if (!ask->partial) return cr_fail(error, CR_INVALID_ARGUMENT, "unplaced: only a partial can be without a position");
    if (ask->first) return cr_fail(error, CR_INVALID_ARGUMENT, "first: a partial without a position has none");
    for (uint32_t i = 0; i < ask->op_count && status == CR_OK; i++)
        status = cr_op_closing((cr_op)ask->ops[i]) == CR_CLOSING_DIGEST
                     ? cr_fail(error, CR_INVALID_ARGUMENT,
                               "unplaced: a part of a digest has a position: say first, the index of its first element")
                     : cr_share_unplaced_takes((cr_op)ask->ops[i], ask->dtype, error);
    return status;
}

static cr_status check_block(const cr_ask *ask, cr_error *error) {
    cr_status status = CR_OK;
    if (!ask->block) return CR_OK;
    if (ask->partial && ask->geometry == CR_GEOMETRY_KEYS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: a partial by key is of no block: leave out its shape");
    if (!ask->partial || ask->geometry != CR_GEOMETRY_WHOLE)
        return cr_fail(error, CR_INVALID_ARGUMENT, "layout: only a partial is of a block of a larger array");
    if (ask->unplaced)
        return cr_fail(error, CR_INVALID_ARGUMENT, "unplaced: a block has its place in the array, which layout says");
    if (ask->first) return cr_fail(error, CR_INVALID_ARGUMENT, "first: layout says where a block begins");
    if (ask->masked)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "mask: what it leaves of a block has no position: leave layout away, and set unplaced");
    if (ask->second)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "second: not with layout; reduce parts that lie one after the other");
    for (uint32_t i = 0; i < ask->op_count && status == CR_OK; i++)
        status = cr_share_block_takes((cr_op)ask->ops[i], ask->dtype, error);
    return status;
}

cr_status cr_ask_place(const cr_ask *ask, const cr_needs *needs, cr_error *error) {
    typedef unsigned long long ull;
    uint64_t grain = cr_partial_grain(ask->dtype, needs->families);
    const bool many = ask->geometry != CR_GEOMETRY_WHOLE;
    const char *way = cr_geometry_way(ask->geometry);
    if (ask->statuses && !many)
        return cr_fail(error, CR_INVALID_ARGUMENT, "statuses: they are for an axis; without one each op has its own");
    if (many && ask->partial && ask->geometry != CR_GEOMETRY_KEYS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there are none %s", way);
    if (many && ask->first) return cr_fail(error, CR_INVALID_ARGUMENT, "first: it has no meaning %s", way);
    if (ask->first > INT64_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "first: %llu is beyond 2^63", (ull)ask->first);
    if (ask->first % grain)
        return cr_fail(error, CR_INVALID_ARGUMENT, "first: %llu is not a multiple of %llu, as prod of floats needs",
                       (ull)ask->first, (ull)grain);
    cr_status status = check_block(ask, error);
    if (status == CR_OK) status = check_digest(ask, error);
    return status == CR_OK ? check_unplaced(ask, error) : status;
}
