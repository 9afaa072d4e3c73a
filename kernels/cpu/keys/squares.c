/* squares: norms and variances of cells, rounded a vector of cells at a time (axis/round.h). What the digits of a cell's sums come to is
 * handed over as hi + lo; what stays in doubt, or has more than digits, becomes a partial (finish.c).
 *
 * Thread: as the state. Owner: the caller owns the answers. */
#include "kernels/core/fast.h"
#include "kernels/cpu/keys/state.h"
#include "kernels/cpu/rows/rows.h"

/* Of the lowest digit's unit, and of what is larger than all sums: squares of both, and what these leave, are in the range of float64. */
enum { LEAST = -450, MOST = 400, COUNT_MOST = 1 << 26 };

static bool is_within(const cr_key_sum *sum, int least, int most) {
    const int unit = sum->top - (int)(sum->levels - 1) * sum->step;
    return sum->placed && unit >= least && sum->top + 64 <= most;
}

bool cr_key_squares_take(const cr_by_key *s, cr_op op, const cr_finish_opts *share) {
    const cr_key_sum *sum = &s->sums[CR_AT_SUM], *square = &s->sums[CR_AT_SUMSQ];
    if (!cr_fast_on(CR_FAST_KEY_SQUARES) || cr_op_closing(op) != CR_CLOSING_SUMS) return false;
    if (share->result_dtype != CR_DTYPE_NONE && share->result_dtype != CR_F64) return false;
    if (cr_op_term(op) == CR_TERM_SPREAD)
        return cr_op_divisor(op) == CR_DIVISOR_COUNT_LESS_DDOF && is_within(sum, LEAST, MOST) &&
               is_within(square, 2 * LEAST, 2 * MOST);
    return cr_op_term(op) == CR_TERM_SQUARE && cr_op_is_root(op) && cr_op_divisor(op) == CR_DIVISOR_ONE &&
           is_within(square, 2 * LEAST, 2 * MOST);
}

/* x as two float64s, exactly: x has at most 106 bits. */
static double halves(__int128 x, double *rest) {
    const double high = (double)x;
    *rest = (double)(x - (__int128)high);
    return high;
}

static double two_sum(double a, double b, double *rest) {
    const double s = a + b, back = s - a;
    *rest = (a - (s - back)) + (b - back);
    return s;
}

/* A sum in units of its lowest digit as hi + lo, off by doubt at most, which is far below its own size: parts of both signs would not be. */
static double number_of(const cr_key_sum *sum, const int64_t *digit, double *lo, double *doubt) {
    *doubt = 0;
    if (sum->levels == 1) return halves(digit[0], lo);
    if (sum->levels == 2) return halves(digit[0] * ((__int128)1 << sum->step) + digit[1], lo);
    const double up = cr_key_power(2 * sum->step);
    unsigned __int128 lower;
    __int128 upper = cr_key_four(digit, sum->step, &lower);
    const double sign = upper < 0 ? -1 : 1;
    if (upper < 0 && lower != 0) lower = ((unsigned __int128)1 << 2 * sum->step) - lower, upper++;
    double rest, left, more, less, lost;
    const double high = halves(upper < 0 ? -upper : upper, &rest) * up, low = halves((__int128)lower, &left);
    const double middle = two_sum(rest * up, low, &more), hi = two_sum(high, middle, &less);
    *lo = sign * two_sum(less, more + left, &lost);
    *doubt = 2 * __builtin_fabs(lost) + __builtin_fabs(more + left) * 0x1p-51;
    return sign * hi;
}

/* Sums of count cells from cell `first` on, without what is beside their digits. */
static void load(const cr_key_sum *sum, uint64_t first, unsigned count, cr_row_sums *to) {
    const double unit = cr_key_power(sum->top - (int)(sum->levels - 1) * sum->step);
    const int64_t *digit = sum->digits + first * sum->levels;
    to->plain = to->special = false;
    for (unsigned i = 0; i < count; i++, digit += sum->levels) {
        double lo, doubt;
        to->hi[i] = number_of(sum, digit, &lo, &doubt) * unit;
        to->lo[i] = lo * unit;
        to->doubt[i] = doubt * unit;
    }
    for (unsigned i = count; i % CR_KEYS_LANES != 0; i++) to->hi[i] = to->lo[i] = to->doubt[i] = 0;
}

void cr_key_squares(const cr_by_key *s, cr_op op, uint64_t first, unsigned count, uint8_t *to, uint8_t *hard) {
    const bool spread = cr_op_term(op) == CR_TERM_SPREAD;
    const uint64_t ddof = s->spec.finish.ddof;
    cr_row_sums sum, square;
    double counts[CR_ROWS] = {0};
    load(&s->sums[CR_AT_SUMSQ], first, count, &square);
    if (spread) load(&s->sums[CR_AT_SUM], first, count, &sum);
    for (unsigned i = 0; spread && i < count; i++) counts[i] = (double)s->n[first + i];
    cr_axis_current()->round_squares(spread ? &sum : NULL, &square, count, 0, counts, ddof, cr_op_is_root(op), to,
                                     hard);
    for (unsigned i = 0; spread && i < count; i++) {
        const uint64_t n = s->n[first + i], known = n > ddof ? 0 : (uint64_t)0x7ff8 << 48;
        if (n > COUNT_MOST) hard[i] = 1;
        if (n > ddof && n != 1) continue;
        memcpy(to + i * sizeof known, &known, sizeof known); /* one element is 0 apart from itself */
        hard[i] = 0;
    }
}
