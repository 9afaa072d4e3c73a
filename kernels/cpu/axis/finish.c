/* finish: answers of strips. What is common is rounded a vector of columns at a time; everything else becomes a
 * partial, one column after the other, and goes the way of all partials.
 *
 * Thread: any. Owner: the caller owns strip and answers. */
#include <string.h>

#include "kernels/core/close.h"
#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.h"
#include "kernels/cpu/axis/hidden.h"
#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/rows/rows.h"

/* Some columns of a strip, and one op's answers. */
typedef struct finish {
    const cr_axis_plan *plan;
    const cr_axis_isa *isa;
    const cr_strip *strip;
    unsigned first, count;
    uint64_t output; /* number of the first answer */
    cr_op op;
    cr_term term;
    bool root;
    uint64_t divisor;     /* of all n elements; 1: there is nothing to divide by */
    const double *counts; /* of each column, how many count; NULL: all */
    cr_dtype result;
    uint8_t *to;
    uint8_t *status; /* NULL: not wanted */
} finish;

static const uint64_t *words(const cr_strip *strip, size_t offset) { return cr_strip_array(strip, offset); }

/* The order-preserving unsigned key of a column's extremum. */
static uint64_t key_of(const cr_axis_plan *plan, const cr_strip *strip, size_t keys, unsigned column) {
    uint64_t key = 0;
    memcpy(&key, (const uint8_t *)cr_strip_array(strip, keys) + column * plan->size, plan->size);
    return key ^ (uint64_t)1 << (8 * plan->size - 1);
}

/* A key that no element has: that of the largest NaN. */
static bool is_empty(const cr_axis_plan *plan, const cr_strip *strip, unsigned column) {
    uint64_t most = UINT64_MAX >> (64 - 8 * plan->size);
    return cr_dtype_kind(plan->dtype) == CR_KIND_FLOAT && key_of(plan, strip, plan->min_key, column) == most;
}

static void put_sum(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned column, cr_partial *p) {
    const cr_strip_sum *sum = &strip->sums[which];
    for (unsigned d = sum->low; d < sum->high; d++) {
        int64_t digit = (int64_t)cr_strip_digit(plan, strip, which, d)[column];
        int bit = (int)(d * CR_DIGIT_BITS) - sum->base;
        if (bit < 0) { /* digit 0: a multiple of 2^base */
            digit >>= -bit;
            bit = 0;
        }
        cr_partial_put(p, (cr_sum_at)which, digit, (unsigned)bit);
    }
    if (!sum->special) return;
    cr_specials *special = &p->sums[which].special;
    special->nans = cr_strip_special(plan, strip, which, 0)[column];
    special->pinfs = cr_strip_special(plan, strip, which, 1)[column];
    special->ninfs = cr_strip_special(plan, strip, which, 2)[column];
}

void cr_strip_partial(const cr_axis_plan *plan, const cr_strip *strip, unsigned column, uint32_t families,
                      cr_partial *p) {
    cr_partial_init(p, plan->dtype, families);
    p->n = cr_strip_n(plan, strip, column);
    for (int which = 0; which < CR_KNOWN_SUMS; which++)
        if (families & cr_sum_rows[which].family) put_sum(plan, strip, which, column, p);
    if (families & CR_FAM_COUNTS) {
        p->nans = words(strip, plan->nans)[column];
        p->nonzero = plan->spec->shape.n - words(strip, plan->zeros)[column];
    }
    if (families & CR_FAM_EXTREMA) {
        p->first_nan = words(strip, plan->first_nan)[column];
        if (p->n == 0 || is_empty(plan, strip, column)) return;
        p->min.key = key_of(plan, strip, plan->min_key, column);
        p->max.key = key_of(plan, strip, plan->max_key, column);
        p->min.index = p->max.index = 0; /* whoever asks for indices goes another way */
    }
}

static uint8_t *status_of(const finish *f, unsigned i) { return f->status ? f->status + i : NULL; }

static cr_status store_slowly(const finish *f, unsigned i, cr_error *error) {
    cr_partial p;
    cr_strip_partial(f->plan, f->strip, f->first + i, cr_op_needs(f->op, f->plan->dtype), &p);
    return cr_axis_store_or(&p, f->op, &f->plan->spec->finish, f->output + i, f->to + i * cr_dtype_size(f->result),
                            status_of(f, i), error);
}

/* Sums and means of at most CR_STRIP_PAD columns. */
static void store_rounded(const finish *f, int which) {
    uint64_t divisor = cr_op_divisor(f->op) == CR_DIVISOR_ONE ? 0 : f->divisor; /* 0: as it is */
    uint8_t hard[CR_STRIP_PAD];
    unsigned left = f->count;
    bool narrow = f->result == CR_F32;
    size_t size = cr_dtype_size(f->result);
    if (f->counts && divisor != 0 && f->result == CR_F64) {
        cr_row_sums sums;
        f->isa->column_sums(f->plan, f->strip, which, f->first, f->count, &sums);
        f->isa->round_rows(&sums, f->count, divisor, f->counts, false, f->to, hard);
        cr_undivided(f->counts, f->count, CR_DIVISOR_COUNT, 0, f->result, f->to, hard);
    } else if ((narrow && divisor == 0) || (!f->counts && f->result == CR_F64)) {
        left = f->isa->round(f->plan, f->strip, which, f->first, f->count, divisor, narrow, f->to, hard);
    } else {
        memset(hard, 1, f->count);
    }
    if (f->strip->sums[which].special) {
        for (int kind = 0; kind < 3; kind++) {
            const uint64_t *special = cr_strip_special(f->plan, f->strip, which, kind) + f->first;
            for (unsigned i = 0; i < f->count; i++) hard[i] |= special[i] != 0;
        }
        left = f->count;
    }
    for (unsigned i = 0; i < f->count && left != 0; i++) {
        if (!hard[i]) continue;
        uint64_t bits = cr_strip_number(f->plan, f->strip, which, f->first + i, divisor != 0, f->result);
        memcpy(f->to + i * size, &bits, size);
    }
}

/* Integer sums in their usual type. */
static cr_status store_integers(const finish *f, int which, cr_error *error) {
    const __int128 most =
        (__int128)1 << 74; /* more is out of range, and more digits of it would not stay in 128 bits */
    const cr_strip_sum *sum = &f->strip->sums[which];
    const uint64_t *digit = cr_strip_digit(f->plan, f->strip, which, 0) + f->first;
    for (unsigned i = 0; i < f->count; i++) {
        __int128 total = 0;
        bool large = false;
        for (unsigned d = sum->high; d-- > 0;) {
            large |= total > most || total < -most;
            total = (__int128)((unsigned __int128)total << CR_DIGIT_BITS);
            total += (int64_t)digit[(size_t)d * f->plan->columns + i];
        }
        if (large || (f->result == CR_I64 ? total != (int64_t)total : total != (__int128)(uint64_t)total)) {
            cr_status status = store_slowly(f, i, error); /* says what is wrong */
            if (status != CR_OK) return status;
            continue;
        }
        uint64_t low = (uint64_t)total;
        memcpy(f->to + i * sizeof low, &low, sizeof low);
    }
    return CR_OK;
}

/* Elements from signed keys: float: keys of negative numbers are turned, top: the sign bit of unsigned types. */
#define ELEMENTS(name, type)                                                                                   \
    static void name(uint8_t *to, const uint8_t *keys, unsigned count, bool is_float, uint64_t top) {          \
        const int bits = 8 * (int)sizeof(type);                                                                \
        for (unsigned i = 0; i < count; i++) {                                                                 \
            type key, element;                                                                                 \
            memcpy(&key, keys + i * sizeof key, sizeof key);                                                   \
            element = (type)(is_float ? key ^ (type)((type)(0 - (key >> (bits - 1))) >> 1) : key ^ (type)top); \
            memcpy(to + i * sizeof element, &element, sizeof element);                                         \
        }                                                                                                      \
    }
ELEMENTS(elements_8, uint8_t)
ELEMENTS(elements_16, uint16_t)
ELEMENTS(elements_32, uint32_t)
ELEMENTS(elements_64, uint64_t)
#undef ELEMENTS

/* Extrema of columns without NaNs. */
static void store_known(const finish *f, bool least, bool arg) {
    const cr_axis_plan *plan = f->plan;
    size_t size = plan->size;
    if (arg) {
        memcpy(f->to, words(f->strip, least ? plan->min_index : plan->max_index) + f->first, f->count * 8);
        return;
    }
    const uint8_t *keys = (uint8_t *)cr_strip_array(f->strip, least ? plan->min_key : plan->max_key) + f->first * size;
    cr_kind kind = cr_dtype_kind(plan->dtype);
    uint64_t top = kind == CR_KIND_FLOAT || kind == CR_KIND_SINT ? 0 : (uint64_t)1 << (8 * size - 1);
    (size == 1   ? elements_8
     : size == 2 ? elements_16
     : size == 4 ? elements_32
                 : elements_64)(f->to, keys, f->count, kind == CR_KIND_FLOAT, top);
}

static void put_extrema(const finish *f) {
    const cr_axis_plan *plan = f->plan;
    bool least = f->term == CR_TERM_LEAST || f->term == CR_TERM_LEAST_INDEX, arg = cr_op_is_index(f->op);
    if (!f->strip->nans) {
        store_known(f, least, arg);
        return;
    }
    bool skip = plan->spec->finish.nan == CR_NAN_SKIP;
    uint64_t nan_bits = cr_dtype_kind(plan->dtype) == CR_KIND_FLOAT ? cr_float_nan(plan->dtype) : 0;
    const uint64_t *nans = words(f->strip, plan->first_nan) + f->first;
    const uint64_t *lines = words(f->strip, least ? plan->min_index : plan->max_index) + f->first;
    const size_t size = cr_dtype_size(f->result);
    for (unsigned i = 0; i < f->count; i++) {
        unsigned column = f->first + i;
        uint64_t bits;
        bool nan = skip ? is_empty(plan, f->strip, column) : nans[i] != UINT64_MAX;
        if (arg) {
            bits = nan ? (skip ? UINT64_MAX : nans[i]) : lines[i];
        } else {
            uint64_t key = key_of(plan, f->strip, least ? plan->min_key : plan->max_key, column);
            bits = nan ? nan_bits : cr_bits_of_key(plan->dtype, key);
        }
        memcpy(f->to + i * size, &bits, size);
    }
}

/* Indices that may be of hidden elements, because all that counts is as they are. */
static void put_kept(const finish *f) {
    const cr_axis_plan *plan = f->plan;
    const bool least = f->term == CR_TERM_LEAST_INDEX, is_float = cr_dtype_kind(plan->dtype) == CR_KIND_FLOAT;
    const uint64_t worst = cr_hidden_worst(plan->dtype, least), *kept = words(f->strip, plan->kept) + f->first;
    const uint64_t *nans = words(f->strip, plan->first_nan) + f->first;
    if (is_float && plan->spec->finish.nan == CR_NAN_SKIP) return; /* they are NaNs */
    for (unsigned i = 0; i < f->count; i++) {
        const uint64_t key = key_of(plan, f->strip, least ? plan->min_key : plan->max_key, f->first + i);
        if (f->strip->nans && nans[i] != UINT64_MAX) continue;
        if (cr_bits_of_key(plan->dtype, key) == worst) memcpy(f->to + i * sizeof *kept, &kept[i], sizeof *kept);
    }
}

static cr_status store_extrema(const finish *f, cr_error *error) {
    cr_status status = CR_OK;
    put_extrema(f);
    if (f->plan->hidden && cr_op_is_index(f->op)) put_kept(f);
    for (unsigned i = 0; f->counts && i < f->count && status == CR_OK; i++)
        if (f->counts[i] == 0) status = store_slowly(f, i, error); /* there is none */
    return status;
}

/* The greatest element less the least, as bits of the result. False: that is no float64, and no integer of 64 bits. */
static bool range_of(const finish *f, uint64_t least, uint64_t greatest, uint64_t *bits) {
    const cr_dtype dtype = f->plan->dtype;
    double low, high;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT) {
        const unsigned unused = cr_dtype_kind(dtype) == CR_KIND_SINT ? 64 - 8 * (unsigned)f->plan->size : 0;
        *bits = (uint64_t)((int64_t)(greatest << unused) >> unused) - (uint64_t)((int64_t)(least << unused) >> unused);
        return f->result == CR_U64 || (f->result == CR_I64 && *bits <= INT64_MAX);
    }
    if (f->result != CR_F64 || f->plan->size < sizeof(float)) return false;
    if (dtype == CR_F64) {
        memcpy(&low, &least, sizeof low);
        memcpy(&high, &greatest, sizeof high);
    } else {
        const uint32_t ends[2] = {(uint32_t)least, (uint32_t)greatest};
        float narrow[2];
        memcpy(narrow, ends, sizeof narrow);
        low = narrow[0];
        high = narrow[1];
    }
    high -= low;
    memcpy(bits, &high, sizeof high);
    return high - high == 0; /* it is finite */
}

/* Magnitudes and ranges, which want both ends. */
static cr_status store_ends(const finish *f, cr_error *error) {
    const cr_axis_plan *plan = f->plan;
    const size_t size = cr_dtype_size(f->result);
    cr_status status = CR_OK;
    for (unsigned i = 0; i < f->count && status == CR_OK; i++) {
        const unsigned column = f->first + i;
        const uint64_t least = cr_bits_of_key(plan->dtype, key_of(plan, f->strip, plan->min_key, column));
        const uint64_t greatest = cr_bits_of_key(plan->dtype, key_of(plan, f->strip, plan->max_key, column));
        uint64_t bits = 0;
        bool known = !f->strip->nans && !(f->counts && f->counts[i] == 0);
        if (f->term == CR_TERM_RANGE)
            known = known && range_of(f, least, greatest, &bits);
        else
            bits = cr_greatest_magnitude(plan->dtype, least, greatest);
        if (known)
            memcpy(f->to + i * size, &bits, size);
        else
            status = store_slowly(f, i, error);
    }
    return status;
}

/* What a sum of floats counts of column i's infinities. */
static uint64_t infinities(const finish *f, unsigned i) {
    if (cr_dtype_kind(f->plan->dtype) != CR_KIND_FLOAT || !f->strip->sums[CR_AT_SUM].special) return 0;
    const unsigned column = f->first + i;
    return cr_strip_special(f->plan, f->strip, CR_AT_SUM, 1)[column] +
           cr_strip_special(f->plan, f->strip, CR_AT_SUM, 2)[column];
}

static cr_status store_counts(const finish *f) {
    const cr_axis_plan *plan = f->plan;
    bool counted = (plan->fast & CR_FAM_COUNTS) != 0, skip = plan->spec->finish.nan == CR_NAN_SKIP;
    const uint64_t *nans = words(f->strip, plan->nans) + f->first, *zeros = words(f->strip, plan->zeros) + f->first;
    for (unsigned i = 0; i < f->count; i++) {
        uint64_t nan = counted ? nans[i] : 0, zero = counted ? zeros[i] : 0, less = skip ? nan : 0;
        uint64_t n = cr_strip_n(plan, f->strip, f->first + i) - less, nonzero = plan->spec->shape.n - less - zero;
        uint64_t infinite = f->term == CR_TERM_INFINITIES ? infinities(f, i) : 0;
        uint64_t value = cr_close_count(f->term, n, nonzero, nan, infinite);
        if (f->result == CR_BOOL) {
            f->to[i] = (uint8_t)value;
        } else {
            memcpy(f->to + i * sizeof value, &value, sizeof value);
        }
    }
    return CR_OK;
}

/* Nothing is known of sums of f64 whose products with each other may not be exact, nor of those that no float64 holds. */
static void doubt_ends(cr_row_sums *sums, unsigned count, double least, double most) {
    for (unsigned i = 0; i < count; i++) {
        const double x = sums->hi[i] < 0 ? -sums->hi[i] : sums->hi[i];
        if (x != 0 && !(x >= least && x <= most)) sums->doubt[i] = __builtin_nan("");
    }
}

/* Sums of squares, their roots, variances; at most CR_STRIP_PAD columns. */
static cr_status store_squares(const finish *f, cr_error *error) {
    cr_row_sums sum, square;
    uint8_t hard[CR_STRIP_PAD];
    const cr_finish_opts *opts = &f->plan->spec->finish;
    uint64_t n = f->plan->spec->shape.n, most = (uint64_t)1 << 26; /* n·(n − ddof) is exact in float64 */
    bool spread = f->term == CR_TERM_SPREAD, narrow = f->result == CR_F32;
    memset(hard, 1, sizeof hard);
    f->isa->column_sums(f->plan, f->strip, 2, f->first, f->count, &square);
    if (spread) f->isa->column_sums(f->plan, f->strip, 0, f->first, f->count, &sum);
    if (f->plan->dtype == CR_F64) doubt_ends(&square, f->count, 0x1p-900, 0x1p900);
    if (f->plan->dtype == CR_F64 && spread) doubt_ends(&sum, f->count, 0x1p-480, 0x1p450);
    if (!spread && !f->root && (narrow || f->result == CR_F64)) {
        f->isa->round_rows(&square, f->count, 0, NULL, narrow, f->to, hard);
    } else if (f->result == CR_F64 && (!spread || (n > opts->ddof && n <= most))) {
        f->isa->round_squares(spread ? &sum : NULL, &square, f->count, n, f->counts, opts->ddof, f->root, f->to, hard);
    }
    if (spread && f->counts)
        cr_undivided(f->counts, f->count, CR_DIVISOR_COUNT_LESS_DDOF, opts->ddof, f->result, f->to, hard);
    for (unsigned i = 0; i < f->count; i++) {
        for (int kind = 0; kind < 3 && f->strip->sums[2].special; kind++) {
            hard[i] |= cr_strip_special(f->plan, f->strip, 2, kind)[f->first + i] != 0;
        }
        if (!hard[i]) continue;
        cr_status status = store_slowly(f, i, error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

/* Whether vectors know how to close the op; one by one everything is known (store_slowly). */
static bool knows_rounded(const finish *f) {
    return !f->root && cr_op_divisor(f->op) != CR_DIVISOR_COUNT_LESS_DDOF && cr_dtype_kind(f->result) == CR_KIND_FLOAT;
}

static bool knows_squares(const finish *f) {
    return cr_op_divisor(f->op) == (f->term == CR_TERM_SPREAD ? CR_DIVISOR_COUNT_LESS_DDOF : CR_DIVISOR_ONE);
}

static cr_status store_sums(const finish *f, bool *done, cr_error *error) {
    const int which = f->term == CR_TERM_SPREAD ? CR_AT_SUMSQ : (int)cr_sum_of(cr_op_needs(f->op, f->plan->dtype));
    const bool is_float = cr_dtype_kind(f->plan->dtype) == CR_KIND_FLOAT;
    const bool integers = !is_float && (f->result == CR_I64 || f->result == CR_U64);
    if (f->term == CR_TERM_SPREAD || (f->term == CR_TERM_SQUARE && !integers)) {
        *done = knows_squares(f);
        return *done ? store_squares(f, error) : CR_OK;
    }
    *done = true;
    if (integers) return store_integers(f, which, error);
    *done = knows_rounded(f);
    if (*done) store_rounded(f, which);
    return CR_OK;
}

static cr_status store(const finish *f, cr_error *error) {
    bool done = false;
    cr_status status = CR_OK;
    switch (cr_op_closing(f->op)) {
        case CR_CLOSING_SUMS:
            status = store_sums(f, &done, error);
            break;
        case CR_CLOSING_EXTREMA:
            if (f->term == CR_TERM_GREATEST_MAGNITUDE || f->term == CR_TERM_RANGE) return store_ends(f, error);
            return store_extrema(f, error);
        case CR_CLOSING_COUNTS:
            return store_counts(f);
        case CR_CLOSING_BITS:
        case CR_CLOSING_PRODUCT:
        case CR_CLOSING_DIGEST:
        case CR_CLOSING_ORDER:
            break;
    }
    for (unsigned i = 0; !done && status == CR_OK && i < f->count; i++) status = store_slowly(f, i, error);
    return status;
}

cr_status cr_strip_finish_op(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_strip *strip, unsigned first,
                             unsigned count, uint64_t output, uint32_t k, void *const out[], uint64_t at,
                             cr_error *error) {
    const cr_axis_spec *spec = plan->spec;
    cr_dtype result = cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish);
    for (unsigned done = 0; done < count; done += CR_STRIP_PAD) {
        double counts[CR_STRIP_PAD];
        for (unsigned i = 0; plan->counted && i < CR_STRIP_PAD; i++)
            counts[i] = done + i < count ? (double)cr_strip_n(plan, strip, first + done + i) : 1;
        finish f = {.plan = plan,
                    .isa = isa,
                    .strip = strip,
                    .first = first + done,
                    .count = count - done < CR_STRIP_PAD ? count - done : CR_STRIP_PAD,
                    .output = output + done,
                    .op = spec->ops[k],
                    .term = cr_op_term(spec->ops[k]),
                    .root = cr_op_is_root(spec->ops[k]),
                    .divisor = cr_close_divisor(cr_op_divisor(spec->ops[k]), spec->shape.n, spec->finish.ddof),
                    .counts = plan->counted ? counts : NULL,
                    .result = result,
                    .to = (uint8_t *)out[k] + (at + done) * cr_dtype_size(result),
                    .status = cr_axis_status_at(spec, out, k, at + done)};
        cr_status status = store(&f, error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}

cr_status cr_strip_finish(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_strip *strip, unsigned first,
                          unsigned count, uint64_t output, void *const out[], uint64_t at, cr_error *error) {
    for (uint32_t k = 0; k < plan->spec->op_count; k++) {
        if (!cr_ops_has(plan->strip_ops, plan->spec->ops[k])) continue;
        cr_status status = cr_strip_finish_op(plan, isa, strip, first, count, output, k, out, at, error);
        if (status != CR_OK) return status;
    }
    return CR_OK;
}
