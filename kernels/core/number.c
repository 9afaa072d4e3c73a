/* number: see number.h. Thread, owner: see there. */
#include "kernels/core/number.h"

#include <string.h>

#include "kernels/core/close.h"
#include "kernels/core/finish.h"
#include "kernels/core/round.h"

bool cr_number_takes(cr_op op, cr_dtype dtype) {
    const bool by_sum = cr_dtype_kind(dtype) == CR_KIND_FLOAT && cr_op_closing(op) == CR_CLOSING_SUMS &&
                        (cr_op_needs(op, dtype) & ~(uint32_t)CR_FAM_KNOWN_SUMS) == 0 && cr_op_term(op) != CR_TERM_SPREAD;
    /* The root of a quotient wants more of its bits than a short one has. */
    return by_sum && (cr_op_divisor(op) == CR_DIVISOR_ONE || !cr_op_is_root(op));
}

static int zeros_above(unsigned __int128 x) {
    const uint64_t upper = (uint64_t)(x >> 64);
    return upper != 0 ? __builtin_clzll(upper) : 64 + __builtin_clzll((uint64_t)x);
}

/* The root of x·2^exponent, which is not 0, rounded once: of 64 bits, where what is cut off below a whole number is sticky. */
static uint64_t rounded_root(cr_dtype dtype, unsigned __int128 x, int exponent) {
    int up = zeros_above(x);
    bool sticky = false;
    if ((exponent - up) % 2 != 0) up--;
    if (up < 0) {
        sticky = x & 1;
        x >>= 1;
    } else {
        x <<= up;
    }
    const unsigned __int128 root = cr_root_of_128(x);
    return cr_round_short(dtype, false, root, (exponent - up) / 2, sticky || root * root != x);
}

/* ±(x·2^exponent)/divisor, for x that is not 0, rounded once. */
static uint64_t rounded_quotient(cr_dtype dtype, const cr_number *x, uint64_t divisor) {
    const int up = zeros_above(x->magnitude);
    const unsigned __int128 dividend = x->magnitude << up, quotient = dividend / divisor;
    return cr_round_short(dtype, x->negative, quotient, x->exponent - up, quotient * divisor != dividend);
}

void cr_number_finish(const cr_number *x, uint64_t n, cr_op op, const cr_finish_opts *opts, cr_value *value) {
    const cr_dtype result = opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
    const uint64_t divisor = cr_close_divisor(cr_op_divisor(op), n, opts->ddof);
    uint64_t bits = 0;
    if (divisor == 0)
        bits = cr_float_nan(result);
    else if (x->magnitude != 0 && cr_op_is_root(op))
        bits = rounded_root(result, x->magnitude, x->exponent);
    else if (x->magnitude != 0 && divisor != 1)
        bits = rounded_quotient(result, x, divisor);
    else
        bits = cr_round_short(result, x->negative, x->magnitude, x->exponent, false);
    value->op = op;
    value->error.code = CR_OK;
    value->error.text[0] = '\0';
    value->at_len = 0;
    memset(value->bytes, 0, sizeof value->bytes);
    memset(value->at, 0, sizeof value->at);
    cr_value_bits(value, result, bits);
}
