/* finish_sums: answers from exact sums: root?(term / divisor), as op.def says.
 *
 * Everything up to the last step is integer arithmetic on the sum's own grid; the last step rounds once.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/close.h"
#include "kernels/core/finish.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.h"

/* A quotient or root is formed from the operand's leading digits; what was cut off below them is sticky. */
enum {
    LEADING_BITS = 288, /* less a divisor of 128 bits, still as many as a root needs */
    ROOT_BITS = 127     /* or one more; the root then has 64, and what was cut off below is sticky */
};

static cr_dtype float_result(const cr_finish_opts *opts) {
    return opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
}

static void answer_nan(cr_value *v, cr_dtype dtype) { cr_value_bits(v, dtype, cr_float_nan(dtype)); }

/* Answers that NaNs and infinities decide before the finite part is looked at. */
static bool decided_by_specials(const cr_specials *s, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    cr_dtype dtype = float_result(opts);
    bool nan = s->nans != 0 && opts->nan == CR_NAN_PROPAGATE;
    switch (cr_close_specials(cr_op_term(op), nan, s->pinfs != 0, s->ninfs != 0)) {
        case CR_DECIDED_FINITE:
            return false;
        case CR_DECIDED_NAN:
            answer_nan(v, dtype);
            break;
        case CR_DECIDED_PLUS:
            cr_value_bits(v, dtype, cr_float_infinity(dtype, false));
            break;
        case CR_DECIDED_MINUS:
            cr_value_bits(v, dtype, cr_float_infinity(dtype, true));
            break;
    }
    return true;
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

/* One of the sums of a partial, as a number: |sum| = x·2^exponent, without digits that are 0 at its end; returns whether it is negative. */
static bool sum_of(const cr_partial *p, cr_sum_at at, cr_big *x, int *exponent) {
    const unsigned limbs = cr_sum_limbs(at, (cr_dtype)p->dtype);
    unsigned zeros = 0;
    while (zeros < limbs && p->sums[at].limbs[zeros] == 0) zeros++;
    *exponent = cr_sum_grid(at, (cr_dtype)p->dtype) + 32 * (int)zeros;
    return cr_big_from_limbs(x, p->sums[at].limbs + zeros, limbs - zeros);
}

/* n·Σx² − (Σx)²: the spread of n elements, times n. Turns x·2^exponent, the sum of their squares, into it. */
static void spread(const cr_partial *p, uint64_t n, cr_big *x, int *exponent) {
    cr_big total, count, square;
    int below;
    sum_of(p, CR_AT_SUM, &total, &below);
    cr_big_multiply(&square, &total, &total);
    cr_big_set(&count, n);
    cr_big_multiply(&total, x, &count);
    const int shift = *exponent - 2 * below;
    if (shift > 0) {
        cr_big_shift_left(&total, (unsigned)shift);
        *exponent = 2 * below;
    } else {
        cr_big_shift_left(&square, (unsigned)-shift);
    }
    /* Never negative (Cauchy and Schwarz), unless the memory changed between the two sums. */
    if (cr_big_compare(&total, &square) < 0) total.n = square.n = 0;
    cr_big_subtract(&total, &square);
    *x = total;
}

/* ±(a/b)·2^exponent, rounded once, for b that is not 0. Changes both. */
static uint64_t rounded_ratio(cr_dtype dtype, bool negative, cr_big *a, cr_big *b, int exponent) {
    enum { BITS = 66, LEAST = 64 }; /* of the quotient, or one more; of the divisor */
    if (a->n == 0) return 0;
    int up = LEAST - (int)cr_big_bits(b);
    if (up < 0) up = (int)(-cr_big_bits(b) % 32);
    cr_big_shift_left(b, (unsigned)up);
    exponent += up;
    const int shift = (int)(cr_big_bits(b) + BITS) - (int)cr_big_bits(a);
    bool sticky = false;
    if (shift > 0)
        cr_big_shift_left(a, (unsigned)shift);
    else
        sticky = cr_big_shift_right(a, (unsigned)-shift);
    cr_big quotient;
    cr_big_set(&quotient, cr_big_divide_long(a, b));
    return cr_round(dtype, negative, &quotient, exponent - shift, sticky || a->n != 0);
}

/* The sum of the products, divided by that of the weights. A weight whose product is NaN is in neither. */
static void finish_average(const cr_partial *p, const cr_finish_opts *opts, cr_value *v) {
    const cr_dtype result = float_result(opts);
    const cr_specials *products = &p->sums[CR_AT_DOT].special, *weights = &p->sums[CR_AT_WEIGHTS].special;
    cr_big a, b;
    int of_a, of_b;
    const bool a_negative = sum_of(p, CR_AT_DOT, &a, &of_a), b_negative = sum_of(p, CR_AT_WEIGHTS, &b, &of_b);
    const bool nan = products->nans != 0 && opts->nan == CR_NAN_PROPAGATE;
    if (nan || weights->pinfs != 0 || weights->ninfs != 0 || b.n == 0 || (products->pinfs && products->ninfs)) {
        answer_nan(v, result);
    } else if (products->pinfs || products->ninfs) {
        cr_value_bits(v, result, cr_float_infinity(result, (products->ninfs != 0) != b_negative));
    } else {
        cr_value_bits(v, result, rounded_ratio(result, a_negative != b_negative, &a, &b, of_a - of_b));
    }
}

void cr_finish_sums(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    cr_dtype dtype = (cr_dtype)p->dtype, result = float_result(opts);
    bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT, is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
    cr_term term = cr_op_term(op);
    if (term == CR_TERM_WEIGHTED) {
        finish_average(p, opts, v);
        return;
    }
    /* A spread is that of the squares, less. It is NaN wherever a value is none, which the sum of the values knows. */
    const cr_sum_at at = term == CR_TERM_SPREAD ? CR_AT_SUMSQ : cr_sum_of(cr_op_needs(op, dtype));
    const cr_specials *special = &p->sums[term == CR_TERM_SPREAD ? CR_AT_SUM : at].special;
    if (is_float && decided_by_specials(special, op, opts, v)) return;
    uint64_t n = p->n - (is_float && opts->nan == CR_NAN_SKIP ? special->nans : 0);
    uint64_t divisor = cr_close_divisor(cr_op_divisor(op), n, opts->ddof);
    if (divisor == 0) {
        answer_nan(v, result);
        return;
    }
    cr_big x;
    int exponent;
    bool negative = sum_of(p, at, &x, &exponent);
    if (cr_op_result(op) == CR_RESULT_EXACT && !is_float && cr_dtype_kind(opts->result_dtype) != CR_KIND_FLOAT) {
        cr_big_shift_left(&x, (unsigned)exponent);
        cr_value_integer(v, opts->result_dtype, is_signed, negative, &x);
        return;
    }
    uint64_t more = 1;
    if (term == CR_TERM_SPREAD) {
        spread(p, n, &x, &exponent);
        more = n;
    }
    uint64_t bits;
    if (divisor != 1 || more != 1) {
        bits = rounded_quotient(result, negative, &x, exponent, divisor, more, cr_op_is_root(op));
    } else if (cr_op_is_root(op)) {
        bits = rounded_root(result, &x, exponent, false);
    } else {
        bits = cr_round(result, negative, &x, exponent, false);
    }
    cr_value_bits(v, result, bits);
}
