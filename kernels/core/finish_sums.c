/* finish_sums: answers from exact sums: sum, mean, norm1, sumsq, norm2, var, std.
 *
 * Everything up to the last step is integer arithmetic on the sum's own grid; the last step rounds once.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/finish.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.h"

/* A quotient or root is formed from the operand's leading digits; what was cut off below them is sticky. */
enum {
    LEADING_BITS = 288, /* less a divisor of 128 bits, still more than a root needs */
    ROOT_BITS = 158     /* even; the root then has 79, and what was cut off below is sticky */
};

static cr_dtype float_result(const cr_finish_opts *opts) {
    return opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
}

static void answer_nan(cr_value *v, cr_dtype dtype) { cr_value_bits(v, dtype, cr_float_nan(dtype)); }

/* Answers that NaNs and infinities decide before the finite part is looked at. */
static bool decided_by_specials(const cr_specials *s, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    cr_dtype dtype = float_result(opts);
    bool nan = s->nans != 0 && opts->nan == CR_NAN_PROPAGATE, infinite = s->pinfs != 0 || s->ninfs != 0;
    if (op == CR_OP_VAR || op == CR_OP_STD) {
        nan |= infinite;
    } else if (op == CR_OP_SUM || op == CR_OP_MEAN) {
        nan |= s->pinfs != 0 && s->ninfs != 0;
    }
    if (nan) {
        answer_nan(v, dtype);
    } else if (infinite) {
        bool negative = (op == CR_OP_SUM || op == CR_OP_MEAN) && s->ninfs != 0;
        cr_value_bits(v, dtype, cr_float_infinity(dtype, negative));
    }
    return nan || infinite;
}

/* Brings x to `bits` bits, by an even shift if even, and moves exponent along; returns whether ones were cut off. */
static bool scale(cr_big *x, int *exponent, int bits) {
    int shift = (int)cr_big_bits(x) - bits;
    *exponent += shift;
    if (shift > 0) return cr_big_shift_right(x, (unsigned)shift);
    cr_big_shift_left(x, (unsigned)-shift);
    return false;
}

/* The square root of x·2^exponent (+ something smaller than its last bit if sticky), rounded once. */
static uint64_t rounded_root(cr_dtype dtype, cr_big *x, int exponent, bool sticky) {
    if (x->n == 0) return 0;
    int even = exponent + (int)cr_big_bits(x) - ROOT_BITS;
    sticky |= scale(x, &exponent, ROOT_BITS + (even & 1));
    sticky |= cr_big_root(x);
    return cr_round(dtype, false, x, exponent / 2, sticky);
}

/* ±(x·2^exponent)/(first·second), rounded once; its square root if root. */
static uint64_t rounded_quotient(cr_dtype dtype, bool negative, cr_big *x, int exponent, uint64_t first,
                                 uint64_t second, bool root) {
    if (x->n == 0) return 0;
    bool sticky = scale(x, &exponent, LEADING_BITS);
    if (cr_big_divide(x, first) != 0) sticky = true;
    if (second != 1 && cr_big_divide(x, second) != 0) sticky = true;
    if (root) return rounded_root(dtype, x, exponent, sticky);
    return cr_round(dtype, negative, x, exponent, sticky);
}

/* n·Σx² − (Σx)² over n·(n − ddof). */
static void finish_variance(const cr_partial *p, cr_op op, const cr_finish_opts *opts, uint64_t n, cr_value *v) {
    cr_dtype dtype = (cr_dtype)p->dtype, result = float_result(opts);
    if (n <= opts->ddof) {
        answer_nan(v, result);
        return;
    }
    cr_big sum, count, square, scaled;
    cr_big_from_limbs(&sum, p->sum, cr_sum_limbs(dtype));
    cr_big_multiply(&square, &sum, &sum);
    cr_big_from_limbs(&sum, p->sumsq, cr_sumsq_limbs(dtype));
    cr_big_set(&count, n);
    cr_big_multiply(&scaled, &sum, &count);
    /* Never negative (Cauchy and Schwarz), unless the memory changed between the two sums. */
    if (cr_big_compare(&scaled, &square) < 0) scaled.n = square.n = 0;
    cr_big_subtract(&scaled, &square);
    uint64_t bits = rounded_quotient(result, false, &scaled, cr_sumsq_grid(dtype), n, n - opts->ddof, op == CR_OP_STD);
    cr_value_bits(v, result, bits);
}

void cr_finish_sums(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    cr_dtype dtype = (cr_dtype)p->dtype, result = float_result(opts);
    bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT, is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
    bool squares = op == CR_OP_SUMSQ || op == CR_OP_NORM2, absolute = op == CR_OP_NORM1;
    const cr_specials *special = squares ? &p->sumsq_special : absolute ? &p->sumabs_special : &p->sum_special;
    if (is_float && decided_by_specials(special, op, opts, v)) return;
    uint64_t n = p->n - (is_float && opts->nan == CR_NAN_SKIP ? special->nans : 0);
    if (op == CR_OP_VAR || op == CR_OP_STD) {
        finish_variance(p, op, opts, n, v);
        return;
    }
    cr_big x;
    const int64_t *limb = squares ? p->sumsq : absolute ? p->sumabs : p->sum;
    bool negative = cr_big_from_limbs(&x, limb, squares ? cr_sumsq_limbs(dtype) : cr_sum_limbs(dtype));
    int grid = squares ? cr_sumsq_grid(dtype) : cr_sum_grid(dtype);
    if (op == CR_OP_MEAN) {
        cr_value_bits(v, result,
                      n == 0 ? cr_float_nan(result) : rounded_quotient(result, negative, &x, grid, n, 1, false));
    } else if (op == CR_OP_NORM2) {
        cr_value_bits(v, result, rounded_root(result, &x, grid, false));
    } else if (is_float || cr_dtype_kind(opts->result_dtype) == CR_KIND_FLOAT) {
        cr_value_bits(v, result, cr_round(result, negative, &x, grid, false));
    } else {
        cr_value_integer(v, opts->result_dtype, is_signed, negative, &x);
    }
}
