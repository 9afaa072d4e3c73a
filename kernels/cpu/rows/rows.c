/* rows: answers of short rows. Sums are rounded a vector of rows at a time; what stays in doubt is folded again, as an
 * array of its own.
 *
 * Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/rows/rows.h"

#include <string.h>

#include "kernels/core/big.h"
#include "kernels/core/close.h"
#include "kernels/core/round.h"
#include "kernels/cpu/fold.h"

/* One op's answers of a batch. */
typedef struct finish {
    const cr_axis_plan *plan;
    const cr_axis_isa *isa;
    const cr_rows *rows;
    const cr_row_sums *sums;
    unsigned count;
    const double *counts; /* of each row, how many elements count; NULL: all */
    uint64_t output;      /* number of the first answer */
    cr_op op;
    cr_dtype result;
    uint8_t *to;
    uint8_t *status; /* NULL: not wanted */
} finish;

static uint8_t *status_of(const finish *f, unsigned i) { return f->status ? f->status + i : NULL; }

static cr_status store_slowly(const finish *f, unsigned i, cr_error *error) {
    const cr_axis_plan *plan = f->plan;
    const uint64_t *borders = f->rows->borders;
    const uint64_t n = borders ? borders[i + 1] - borders[i] : plan->spec->shape.n;
    const uint64_t before = borders ? borders[i] - borders[0] : i * n;
    cr_partial p;
    cr_partial_init(&p, plan->dtype, cr_op_needs(f->op, plan->dtype));
    cr_cpu_fold(&p, f->rows->data + before * plan->size, n, 0);
    if (f->counts) p.n = (uint64_t)f->counts[i]; /* the others are zeros */
    return cr_axis_store_or(&p, f->op, &plan->spec->finish, f->output + i, f->to + i * cr_dtype_size(f->result),
                            status_of(f, i), error);
}

void cr_undivided(const double *counts, unsigned count, cr_divisor_kind divisor, uint64_t ddof, cr_dtype result,
                  uint8_t *to, uint8_t *hard) {
    const uint64_t nan = cr_float_nan(result);
    const size_t size = cr_dtype_size(result);
    for (unsigned i = 0; i < count; i++) {
        if (cr_close_divisor(divisor, (uint64_t)counts[i], ddof) != 0) continue;
        memcpy(to + i * size, &nan, size);
        hard[i] = 0;
    }
}

/* Of values or magnitudes, divided by their number and no more. */
static bool is_mean(const finish *f) {
    const cr_term term = cr_op_term(f->op);
    return (term == CR_TERM_VALUE || term == CR_TERM_MAGNITUDE) && cr_op_divisor(f->op) == CR_DIVISOR_COUNT &&
           !cr_op_is_root(f->op);
}

/* What NaNs and infinities decide of a row; false: they do not. */
static bool special_answer(const finish *f, unsigned i, double *answer) {
    const cr_row_sums *s = f->sums;
    uint64_t nans = s->nans[i], n = cr_strip_n(f->plan, f->rows->strip, i) - nans;
    bool skip = f->plan->spec->finish.nan == CR_NAN_SKIP, mean = is_mean(f);
    cr_decided decided = cr_close_specials(cr_op_term(f->op), nans && !skip, s->pinfs[i] != 0, s->ninfs[i] != 0);
    if (decided == CR_DECIDED_FINITE && mean && n == 0) decided = CR_DECIDED_NAN;
    switch (decided) {
        case CR_DECIDED_NAN:
            *answer = __builtin_nan("");
            return true;
        case CR_DECIDED_PLUS:
            *answer = __builtin_inf();
            return true;
        case CR_DECIDED_MINUS:
            *answer = -__builtin_inf();
            return true;
        case CR_DECIDED_FINITE:
            break;
    }
    if (!nans || !mean || s->lo[i] != 0 || s->doubt[i] != 0) return false;
    *answer = s->hi[i] / (double)n;
    return true;
}

/* Rows with NaNs or infinities: decided here, or marked. */
static void store_specials(const finish *f, uint8_t *hard) {
    const cr_row_sums *s = f->sums;
    bool divided = cr_op_divisor(f->op) != CR_DIVISOR_ONE;
    const size_t size = cr_dtype_size(f->result);
    for (unsigned i = 0; i < f->count; i++) {
        if ((s->nans[i] | s->pinfs[i] | s->ninfs[i]) == 0) continue;
        double answer;
        /* A finite mean in float32 would be rounded twice. */
        bool known = special_answer(f, i, &answer) && (f->result == CR_F64 || answer != answer || answer - answer != 0);
        hard[i] = divided || hard[i] || known; /* a sum without its NaNs stands */
        if (!known) continue;
        uint64_t bits = answer != answer ? cr_float_nan(f->result) : cr_float_infinity(f->result, answer < 0);
        if (answer == answer && answer - answer == 0) memcpy(&bits, &answer, sizeof bits);
        memcpy(f->to + i * size, &bits, size);
        hard[i] = 0;
    }
}

/* hi + lo in a type narrower than f32: rounded to odd in float64 first (axis/round.h says why that is exact). */
static uint64_t narrow_number(double hi, double lo, cr_dtype result) {
    double s = hi + lo, b = s - hi, rest = (hi - (s - b)) + (lo - b);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    if (rest != 0 && (bits & 1) == 0) bits += (rest > 0) == (s > 0) ? 1 : UINT64_MAX;
    int field = (int)(bits >> 52 & 0x7ff);
    cr_big x;
    cr_big_set(&x, (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(field != 0) << 52);
    return cr_round(result, bits >> 63, &x, (field ? field : 1) - 1075, false);
}

static cr_status store_floats(const finish *f, cr_error *error) {
    uint8_t hard[CR_ROWS];
    const cr_divisor_kind divided = cr_op_divisor(f->op);
    const bool spread = cr_op_term(f->op) == CR_TERM_SPREAD, root = cr_op_is_root(f->op);
    uint64_t n = f->plan->spec->shape.n, divisor = divided == CR_DIVISOR_ONE ? 0 : n, ddof = f->plan->spec->finish.ddof;
    size_t size = cr_dtype_size(f->result);
    unsigned left = f->count;
    if (spread || root || divided == CR_DIVISOR_COUNT_LESS_DDOF) {
        /* Vectors know a spread over n - ddof, and the root of a sum of squares. */
        const bool known = spread ? divided == CR_DIVISOR_COUNT_LESS_DDOF && n > ddof
                                  : cr_op_term(f->op) == CR_TERM_SQUARE && root && divided == CR_DIVISOR_ONE;
        const cr_row_sums *sum = spread ? &f->rows->sums[0] : NULL, *square = &f->rows->sums[2];
        if (f->result == CR_F64 && known) {
            left = f->isa->round_squares(sum, square, f->count, n, f->counts, ddof, root, f->to, hard);
        } else {
            memset(hard, 1, f->count);
        }
    } else if (f->result == CR_F64 || f->result == CR_F32) {
        left = f->isa->round_rows(f->sums, f->count, divisor, f->counts, f->result == CR_F32, f->to, hard);
    } else {
        memset(hard, 1, f->count);
        for (unsigned i = 0; i < f->count && divisor == 0; i++) {
            bool plain = f->sums->plain;
            if (!plain && !(f->sums->doubt[i] == 0)) continue;
            uint64_t bits = narrow_number(f->sums->hi[i], plain ? 0 : f->sums->lo[i], f->result);
            memcpy(f->to + i * size, &bits, size);
            hard[i] = 0;
        }
    }
    if (f->counts) cr_undivided(f->counts, f->count, divided, ddof, f->result, f->to, hard);
    if (f->sums->special) store_specials(f, hard);
    for (unsigned i = 0; (left || f->sums->special) && i < f->count; i++) {
        if (!hard[i]) continue;
        cr_status status = store_slowly(f, i, error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

/* An integer, divided by divisor unless that is 0, as a float. */
static uint64_t integer_number(__int128 value, uint64_t divisor, cr_dtype result) {
    bool negative = value < 0, sticky = false;
    cr_big x;
    cr_big_set(&x, negative ? -(unsigned __int128)value : (unsigned __int128)value);
    int exponent = 0;
    if (divisor) {
        cr_big_shift_left(&x, exponent = 128);
        sticky = cr_big_divide(&x, divisor) != 0;
    }
    return value == 0 ? 0 : cr_round(result, negative, &x, -exponent, sticky);
}

/* Sums of integers as of floats: they have 106 bits at most. */
static void to_floats(const cr_row_sums *from, unsigned count, cr_row_sums *to) {
    to->plain = to->special = false;
    for (unsigned i = 0; i < count; i++) {
        const __int128 value = (__int128)((unsigned __int128)(uint64_t)from->high[i] << 64 | from->low[i]);
        to->hi[i] = (double)value;
        to->lo[i] = (double)(value - (__int128)to->hi[i]);
        to->doubt[i] = 0;
    }
    for (unsigned i = count; i % 8 != 0; i++) to->hi[i] = to->lo[i] = to->doubt[i] = 0; /* the rest of a vector */
}

/* Roots and spreads of integers, by squares. */
static cr_status store_squares(const finish *f, cr_error *error) {
    const bool spread = cr_op_term(f->op) == CR_TERM_SPREAD;
    const uint64_t n = f->plan->spec->shape.n, ddof = f->plan->spec->finish.ddof;
    const cr_divisor_kind divisor = cr_op_divisor(f->op);
    const bool known = spread ? divisor == CR_DIVISOR_COUNT_LESS_DDOF && n > ddof : divisor == CR_DIVISOR_ONE;
    cr_row_sums sum, square;
    uint8_t hard[CR_ROWS];
    cr_status status = CR_OK;
    memset(hard, 1, f->count);
    if (known && f->result == CR_F64) {
        to_floats(&f->rows->sums[CR_AT_SUMSQ], f->count, &square);
        if (spread) to_floats(&f->rows->sums[CR_AT_SUM], f->count, &sum);
        f->isa->round_squares(spread ? &sum : NULL, &square, f->count, n, f->counts, ddof, cr_op_is_root(f->op), f->to,
                              hard);
    }
    if (f->counts) cr_undivided(f->counts, f->count, divisor, ddof, f->result, f->to, hard);
    for (unsigned i = 0; i < f->count && status == CR_OK; i++)
        if (hard[i]) status = store_slowly(f, i, error);
    return status;
}

static cr_status store_integers(const finish *f, cr_error *error) {
    const cr_row_sums *s = f->sums;
    const bool divided = cr_op_divisor(f->op) != CR_DIVISOR_ONE;
    bool is_float = cr_dtype_kind(f->result) == CR_KIND_FLOAT;
    const bool known = !cr_op_is_root(f->op) && cr_op_divisor(f->op) != CR_DIVISOR_COUNT_LESS_DDOF;
    uint64_t odd = !known;
    for (unsigned i = 0; i < f->count; i++) {
        odd |= (uint64_t)s->high[i] ^ (f->result == CR_I64 ? 0 - (s->low[i] >> 63) : 0);
    }
    if (odd == 0 && (f->result == CR_I64 || f->result == CR_U64)) {
        memcpy(f->to, s->low, f->count * sizeof s->low[0]);
        return CR_OK;
    }
    for (unsigned i = 0; i < f->count; i++) {
        int64_t low = (int64_t)s->low[i], high = s->high[i];
        const uint64_t divisor = divided ? cr_strip_n(f->plan, f->rows->strip, i) : 0;
        bool fits = !known ? false : f->result == CR_I64 ? high == low >> 63 : f->result == CR_U64 && high == 0;
        if (fits) {
            memcpy(f->to + i * sizeof low, &low, sizeof low);
        } else if (known && divided == (divisor != 0) && f->result == CR_F64 && high == low >> 63 &&
                   low < (int64_t)1 << 53 && low > -((int64_t)1 << 53)) {
            double value = divisor ? (double)low / (double)divisor : (double)low;
            memcpy(f->to + i * sizeof value, &value, sizeof value);
        } else if (known && divided == (divisor != 0) && is_float) {
            __int128 value = (__int128)((unsigned __int128)(uint64_t)high << 64 | (uint64_t)low);
            uint64_t bits = integer_number(value, divisor, f->result);
            memcpy(f->to + i * cr_dtype_size(f->result), &bits, cr_dtype_size(f->result));
        } else {
            cr_status status = store_slowly(f, i, error); /* another type, or out of range: that is said there */
            if (status != CR_OK) return status;
        }
    }
    return CR_OK;
}

static void store_infinities(const finish *f) {
    const cr_row_sums *s = f->sums;
    for (unsigned i = 0; i < f->count; i++) {
        const uint64_t value = s->special ? s->pinfs[i] + s->ninfs[i] : 0;
        memcpy(f->to + i * sizeof value, &value, sizeof value);
    }
}

cr_status cr_rows_finish(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_rows *rows, unsigned count,
                         uint64_t output, void *const out[], uint64_t at, cr_error *error) {
    const cr_axis_spec *spec = plan->spec;
    double counts[CR_ROWS];
    for (unsigned i = 0; plan->counted && i < CR_ROWS; i++)
        counts[i] = i < count ? (double)cr_strip_n(plan, rows->strip, i) : 1;
    for (uint32_t k = 0; k < spec->op_count; k++) {
        cr_op op = spec->ops[k];
        cr_dtype result = cr_axis_dtype(op, spec->dtype, &spec->finish);
        cr_status status;
        if (!cr_ops_has(plan->strip_ops, op)) continue;
        uint32_t needs = cr_op_needs(op, spec->dtype);
        const bool is_float = cr_dtype_kind(spec->dtype) == CR_KIND_FLOAT;
        const bool infinities = is_float && cr_op_term(op) == CR_TERM_INFINITIES;
        if (cr_op_closing(op) == CR_CLOSING_SUMS || infinities) {
            finish f = {.plan = plan,
                        .isa = isa,
                        .rows = rows,
                        .sums = &rows->sums[needs & CR_FAM_SUM      ? 0
                                            : needs & CR_FAM_SUMABS ? 1
                                                                    : 2],
                        .count = count,
                        .counts = plan->counted ? counts : NULL,
                        .output = output,
                        .op = op,
                        .result = result,
                        .to = (uint8_t *)out[k] + at * cr_dtype_size(result),
                        .status = cr_axis_status_at(spec, out, k, at)};
            status = CR_OK;
            if (infinities) {
                store_infinities(&f);
            } else {
                const bool squares = !is_float && needs & CR_FAM_SUMSQ && (needs & CR_FAM_SUM || cr_op_is_root(op));
                status = (is_float ? store_floats : squares ? store_squares : store_integers)(&f, error);
            }
        } else {
            status = cr_strip_finish_op(plan, isa, rows->strip, 0, count, output, k, out, at, error);
        }
        if (status != CR_OK) return status;
    }
    return CR_OK;
}
