/* number: see number.h. Thread, owner: see there. */
#include "kernels/core/number.h"

#include "kernels/core/big.h"
#include "kernels/core/close.h"
#include "kernels/core/round.h"

bool cr_number_rule_make(cr_number_rule *rule, cr_op op, cr_dtype dtype, const cr_finish_opts *opts) {
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT || cr_op_closing(op) != CR_CLOSING_SUMS) return false;
    const uint32_t needs = cr_op_needs(op, dtype);
    const cr_finish_opts share = cr_finish_share(op, dtype, opts, NULL);
    if ((needs & ~(uint32_t)CR_FAM_KNOWN_SUMS) != 0 || cr_op_term(op) == CR_TERM_SPREAD) return false;
    *rule = (cr_number_rule){share.result_dtype == CR_DTYPE_NONE ? CR_F64 : share.result_dtype, cr_op_divisor(op),
                             cr_op_is_root(op), cr_sum_of(needs), share.ddof};
    /* The root of a quotient wants more of its bits than a short one has. */
    return !rule->root || rule->divisor == CR_DIVISOR_ONE;
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

uint64_t cr_number_answer(const cr_number_rule *rule, const cr_number *x, uint64_t n) {
    const uint64_t divisor = cr_close_divisor(rule->divisor, n, rule->ddof);
    if (divisor == 0) return cr_float_nan(rule->result);
    if (x->magnitude != 0 && rule->root) return rounded_root(rule->result, x->magnitude, x->exponent);
    if (x->magnitude != 0 && divisor != 1) return rounded_quotient(rule->result, x, divisor);
    return cr_round_short(rule->result, x->negative, x->magnitude, x->exponent, false);
}
