/* finish: which options an op takes, and the way from a partial to its answers.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns partial and value. */
#include "kernels/core/finish.h"

#include <string.h>

/* Whether op takes a result_dtype at all. */
static bool takes_result(cr_op op) {
    return cr_op_result(op) == CR_RESULT_EXACT || cr_op_result(op) == CR_RESULT_FLOAT;
}

static bool takes_ddof(cr_op op) { return cr_op_divisor(op) == CR_DIVISOR_COUNT_LESS_DDOF; }

/* Products of integers may wrap: no other exact integer can. */
static bool takes_overflow(cr_op op, cr_dtype dtype) {
    return cr_op_closing(op) == CR_CLOSING_PRODUCT && cr_dtype_kind(dtype) != CR_KIND_FLOAT;
}

static cr_status check_result_dtype(cr_op op, cr_dtype dtype, cr_dtype result, cr_error *error) {
    bool is_float = cr_dtype_kind(result) == CR_KIND_FLOAT;
    if (!takes_result(op)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s takes no result_dtype", cr_op_name(op));
    }
    if (!cr_dtype_is_input(result) && result != CR_I128) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "result_dtype %s (%d) cannot be asked for", cr_dtype_name(result),
                       (int)result);
    }
    if (is_float && cr_dtype_size(result) == 1) {
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "op %s takes a float as result_dtype of f16, bf16, f32 or f64, not %s: eight bits are too few",
                       cr_op_name(op), cr_dtype_name(result));
    }
    if (!is_float && (cr_op_result(op) == CR_RESULT_FLOAT || cr_dtype_kind(dtype) == CR_KIND_FLOAT)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s of %s takes a result_dtype of f16, bf16, f32 or f64, not %s",
                       cr_op_name(op), cr_dtype_name(dtype), cr_dtype_name(result));
    }
    return CR_OK;
}

cr_status cr_finish_check(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, cr_error *error) {
    cr_status status = cr_op_supports(op, dtype, error);
    if (status != CR_OK) return status;
    if (opts->nan != CR_NAN_PROPAGATE && opts->nan != CR_NAN_SKIP) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "unknown nan policy %d", (int)opts->nan);
    }
    if (opts->overflow != CR_OVERFLOW_ERROR && opts->overflow != CR_OVERFLOW_WRAP) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "unknown overflow rule %d", (int)opts->overflow);
    }
    if (opts->ddof != 0 && !takes_ddof(op)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s takes no ddof", cr_op_name(op));
    }
    if (opts->overflow != CR_OVERFLOW_ERROR && !takes_overflow(op, dtype)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s of %s takes no overflow rule", cr_op_name(op),
                       cr_dtype_name(dtype));
    }
    if (opts->nan == CR_NAN_SKIP && cr_op_closing(op) == CR_CLOSING_DIGEST) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "op %s is of all bytes: no NaN can be skipped", cr_op_name(op));
    }
    if (opts->result_dtype == CR_DTYPE_NONE) return CR_OK;
    if (opts->overflow == CR_OVERFLOW_WRAP && opts->result_dtype != CR_I64 && opts->result_dtype != CR_U64) {
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "op %s with overflow wrap takes a result_dtype of i64 or u64, not %s", cr_op_name(op),
                       cr_dtype_name(opts->result_dtype));
    }
    return check_result_dtype(op, dtype, opts->result_dtype, error);
}

cr_finish_opts cr_finish_share(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, uint32_t *taken) {
    cr_finish_opts share = {.nan = opts->nan};
    uint32_t given = 0;
    if (opts->overflow != CR_OVERFLOW_ERROR && takes_overflow(op, dtype)) {
        share.overflow = opts->overflow;
        given |= CR_OPT_OVERFLOW;
    }
    if (opts->result_dtype != CR_DTYPE_NONE && takes_result(op)) {
        share.result_dtype = opts->result_dtype;
        given |= CR_OPT_RESULT_DTYPE;
    }
    if (opts->ddof != 0 && takes_ddof(op)) {
        share.ddof = opts->ddof;
        given |= CR_OPT_DDOF;
    }
    if (taken != NULL) *taken = given;
    return share;
}

void cr_value_bits(cr_value *v, cr_dtype dtype, uint64_t bits) {
    v->dtype = dtype;
    v->len = (uint8_t)cr_dtype_size(dtype);
    for (unsigned i = 0; i < 8 && i < v->len; i++) v->bytes[i] = (uint8_t)(bits >> (8 * i));
}

/* Whether ±magnitude fits `bits` bits, signed or not. */
static bool fits(const cr_big *magnitude, bool negative, bool is_signed, unsigned bits) {
    unsigned have = cr_big_bits(magnitude);
    if (!is_signed) return !negative && have <= bits;
    if (have < bits) return true;
    if (!negative || have > bits) return false;
    /* −2^(bits−1) is the one value with as many bits as the type that still fits. */
    cr_big edge;
    cr_big_set(&edge, 1);
    cr_big_shift_left(&edge, bits - 1);
    return cr_big_compare(magnitude, &edge) == 0;
}

static void put_twos_complement(cr_value *v, bool negative, const cr_big *magnitude) {
    unsigned carry = 1;
    for (unsigned i = 0; i < v->len; i++) {
        unsigned byte = i / 4 < magnitude->n ? (magnitude->d[i / 4] >> (8 * (i % 4))) & 0xff : 0;
        if (negative) {
            byte = (~byte & 0xff) + carry;
            carry = byte >> 8;
        }
        v->bytes[i] = (uint8_t)byte;
    }
}

void cr_value_integer(cr_value *v, cr_dtype dtype, bool signed_input, bool negative, cr_big *magnitude) {
    if (magnitude->n == 0) negative = false;
    if (dtype == CR_DTYPE_NONE) {
        dtype = signed_input ? CR_I64 : CR_U64;
        if (!fits(magnitude, negative, signed_input, 64)) dtype = CR_BIGINT;
    }
    v->dtype = dtype;
    if (dtype == CR_BIGINT) {
        v->len = 9;
        while (!fits(magnitude, negative, true, 8u * v->len)) v->len++;
    } else {
        v->len = (uint8_t)cr_dtype_size(dtype);
        unsigned bits = dtype == CR_BOOL ? 1 : 8u * v->len;
        if (!fits(magnitude, negative, cr_dtype_kind(dtype) == CR_KIND_SINT, bits)) {
            char decimal[96];
            cr_big_decimal(magnitude, negative, decimal, sizeof decimal);
            cr_fail(&v->error, CR_OUT_OF_RANGE, "%s is %s, which does not fit %s", cr_op_name(v->op), decimal,
                    cr_dtype_name(dtype));
            return;
        }
    }
    put_twos_complement(v, negative, magnitude);
}

void cr_partial_finish(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *value) {
    cr_dtype dtype = (cr_dtype)p->dtype;
    value->op = op;
    value->error.code = CR_OK; /* not all of the sentence's bytes: small arrays feel it */
    value->error.text[0] = '\0';
    value->dtype = CR_DTYPE_NONE;
    value->len = value->at_len = 0;
    memset(value->bytes, 0, sizeof value->bytes);
    memset(value->at, 0, sizeof value->at);
    cr_finish_opts own = cr_finish_share(op, dtype, opts, NULL);
    opts = &own;
    if (cr_finish_check(op, dtype, opts, &value->error) != CR_OK) return;
    if ((cr_op_needs(op, dtype) & ~p->families) != 0) {
        cr_fail(&value->error, CR_INTERNAL, "op %s was not folded", cr_op_name(op));
        return;
    }
    switch (cr_op_closing(op)) {
        case CR_CLOSING_SUMS:
            cr_finish_sums(p, op, opts, value);
            break;
        case CR_CLOSING_EXTREMA:
            cr_finish_extrema(p, op, opts, value);
            break;
        case CR_CLOSING_COUNTS:
            cr_finish_counts(p, op, opts, value);
            break;
        case CR_CLOSING_BITS:
            cr_finish_bits(p, op, opts, value);
            break;
        case CR_CLOSING_PRODUCT:
            cr_finish_prod(p, op, opts, value);
            break;
        case CR_CLOSING_DIGEST:
            cr_finish_digest(p, op, opts, value);
            break;
        case CR_CLOSING_ORDER:
            cr_finish_order(p, op, opts, value);
            break;
    }
    if (value->error.code != CR_OK) value->dtype = CR_DTYPE_NONE, value->len = value->at_len = 0;
}
