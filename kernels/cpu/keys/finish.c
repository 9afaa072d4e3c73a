/* finish: answers of cells. What is common, sums and means of floats whose digits hold it all, is rounded from an integer of 128 bits;
 * everything else becomes a partial, one cell after the other, and goes the way of all partials.
 *
 * Thread: as the state. Owner: the caller owns the answers. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/close.h"
#include "kernels/core/float_state.h"
#include "kernels/core/keyed.h"
#include "kernels/cpu/keys/state.h"
#include "kernels/cpu/order.h"

static void to_partial(const cr_by_key *s, uint64_t cell, cr_partial *p) {
    cr_partial_init(p, s->spec.dtype, s->spec.families);
    p->n = s->n != NULL ? s->n[cell] : 1;
    for (int i = 0; i < CR_SUMS; i++)
        if (s->spec.families & cr_sum_rows[i].family) cr_key_sum_partial(&s->sums[i], cell, p);
    if (s->min != NULL) p->min = (cr_extremum){s->min[cell].key, s->min[cell].index};
    if (s->max != NULL) p->max = (cr_extremum){s->max[cell].key, s->max[cell].index};
    /* An answer without a value is told by its least element, whichever is asked. */
    if (s->min == NULL && s->max != NULL) p->min.index = p->max.index;
    if (s->first_nan != NULL) p->first_nan = s->first_nan[cell];
    if (s->counts != NULL) {
        p->nans = s->counts[cell].nans;
        p->nonzero = s->counts[cell].nonzero;
    }
    if (s->bits != NULL) {
        p->bit_and = s->bits[cell].all;
        p->bit_or = s->bits[cell].any;
        p->bit_xor = s->bits[cell].odd;
    }
    if (s->prods != NULL) p->prod = s->prods[cell];
}

static cr_status finish_slowly(const cr_by_key *s, const cr_finish_opts *share, cr_ops ops, uint64_t cell, uint64_t at,
                               void *const out[], cr_error *error) {
    cr_partial p;
    cr_status status = CR_OK;
    to_partial(s, cell, &p);
    for (uint32_t k = 0; k < s->spec.op_count && status == CR_OK; k++) {
        const cr_op op = s->spec.ops[k];
        if (!cr_ops_has(ops, op)) continue;
        const size_t size = cr_dtype_size(cr_axis_dtype(op, s->spec.dtype, &share[k]));
        uint8_t *status_at = s->spec.statuses ? (uint8_t *)out[s->spec.op_count + k] + at : NULL;
        status = cr_axis_store_or(&p, op, &share[k], cell, (uint8_t *)out[k] + at * size, status_at, error);
    }
    return status;
}

/* The sum that op is read from, if its digits may hold it all, and its answers are f64 or, of integers, what fits 64 bits; NULL: another
 * way. */
static const cr_key_sum *quick_sum(const cr_by_key *s, cr_op op, const cr_finish_opts *share) {
    const uint32_t needs = cr_op_needs(op, s->spec.dtype);
    if ((needs & (needs - 1)) != 0) return NULL; /* a variance, or an average by weights */
    if (cr_op_closing(op) != CR_CLOSING_SUMS || cr_op_is_root(op) || cr_op_term(op) == CR_TERM_SPREAD) return NULL;
    if (share->result_dtype != CR_DTYPE_NONE && share->result_dtype != CR_F64) return NULL;
    const cr_key_sum *sum = &s->sums[cr_sum_of(needs)];
    const int unit = sum->top - sum->step;
    if (!sum->placed || unit < -900 || unit > 800) return NULL;
    return sum->levels <= 2 || cr_op_divisor(op) == CR_DIVISOR_ONE ? sum : NULL;
}

/* Whether answers are whole numbers. */
static bool is_whole(const cr_by_key *s, cr_op op, const cr_finish_opts *share) {
    return cr_dtype_kind(s->spec.dtype) != CR_KIND_FLOAT && cr_op_result(op) == CR_RESULT_EXACT &&
           share->result_dtype == CR_DTYPE_NONE;
}

/* upper·2^below + lower, rounded once. */
static double rounded_wide(__int128 upper, unsigned __int128 lower, int below) {
    const bool negative = upper < 0;
    if (negative && lower != 0) lower = ((unsigned __int128)1 << below) - lower, upper++;
    const unsigned __int128 magnitude = negative ? -(unsigned __int128)upper : (unsigned __int128)upper;
    const uint64_t top = (uint64_t)(magnitude >> 64);
    unsigned __int128 bits = lower;
    double by = 1;
    if (magnitude >> (128 - below) == 0) {
        bits |= magnitude << below;
    } else { /* as many of lower's bits as there is room for; what is cut off shows in the last */
        const int room = top ? __builtin_clzll(top) : 64 + __builtin_clzll((uint64_t)magnitude), cut = below - room;
        bits = magnitude << room | lower >> cut;
        bits |= (lower >> cut << cut) != lower;
        by = (double)((uint64_t)1 << cut);
    }
    return (negative ? -(double)bits : (double)bits) * by;
}

/* x / n, rounded once; n is not 0. */
static double quotient(__int128 x, uint64_t n) {
    const unsigned __int128 magnitude = x < 0 ? -(unsigned __int128)x : (unsigned __int128)x;
    const double whole = (double)magnitude;
    double q;
    if (magnitude == 0) return 0;
    if (magnitude >> 53 == 0 && n >> 53 == 0) return (x < 0 ? -whole : whole) / (double)n;
    const int shift = (int)(magnitude >> 64 ? __builtin_clzll((uint64_t)(magnitude >> 64))
                                            : 64 + __builtin_clzll((uint64_t)magnitude));
    const unsigned __int128 wide = magnitude << shift, floor = wide / n;
    /* Of 64 bits and more; what was cut off shows in the last. */
    q = (double)(floor | (floor * n != wide));
    for (int left = shift; left > 0; left -= 64) q *= left < 64 ? 1.0 / (double)((uint64_t)1 << left) : 0x1p-64;
    return x < 0 ? -q : q;
}

/* What a sum has beside its digits. */
typedef struct beside {
    const uint64_t *words[2 * (CR_SUM_LIMBS + 3)]; /* [cell]; of two sums at most */
    unsigned count;
} beside;

static void look_beside(beside *all, const cr_key_sum *sum) {
    for (unsigned i = 0; sum->limbed && i < sum->limbs; i++)
        if (sum->limb[i] != NULL) all->words[all->count++] = (const uint64_t *)sum->limb[i];
    for (int kind = 0; kind < 3; kind++)
        if (sum->special[kind] != NULL) all->words[all->count++] = sum->special[kind];
}

static bool has_beside(const beside *all, uint64_t cell) {
    uint64_t some = 0;
    for (unsigned w = 0; w < all->count; w++) some |= all->words[w][cell];
    return some != 0;
}

/* Answers of an op, but for those of cells whose digits do not hold it all. */
static void finish_quickly(const cr_by_key *s, const cr_key_sum *sum, bool mean, uint64_t first, uint64_t count,
                           uint8_t *to) {
    enum { EXACT = 53 };
    const int64_t most = (int64_t)1 << EXACT, step = (int64_t)1 << sum->step;
    const double unit = cr_key_power(sum->top - sum->step);
    for (uint64_t i = 0; i < count; i++) {
        const int64_t *digit = sum->digits + (first + i) * sum->levels;
        const int64_t high = digit[0], low = sum->levels == 2 ? digit[1] : 0;
        const uint64_t n = mean ? s->n[first + i] : 1;
        const double whole = (double)high * (double)step, total = whole + (double)low, back = total - whole;
        const bool exact = high < most && high > -most && low < most && low > -most; /* then one addition rounds once */
        const bool divides = whole - (total - back) == 0 && (double)low - back == 0 && n < (uint64_t)most;
        double answer;
        if (n == 0) {
            const uint64_t nan = (uint64_t)0x7ff8 << 48;
            memcpy(&answer, &nan, sizeof answer);
        } else {
            const __int128 x = (__int128)high * step + low;
            answer = exact && n == 1 ? total : exact && divides ? total / (double)n : quotient(x, n);
            answer *= unit;
        }
        memcpy(to + i * sizeof answer, &answer, sizeof answer);
    }
}

/* The same of sums that have four digits. */
static void finish_four(const cr_key_sum *sum, uint64_t first, uint64_t count, uint8_t *to) {
    const double unit = cr_key_power(sum->top - 3 * sum->step);
    for (uint64_t i = 0; i < count; i++) {
        unsigned __int128 lower;
        const __int128 upper = cr_key_four(sum->digits + (first + i) * 4, sum->step, &lower);
        const double answer = rounded_wide(upper, lower, 2 * sum->step) * unit;
        memcpy(to + i * sizeof answer, &answer, sizeof answer);
    }
}

/* Whole numbers of 64 bits; false: that of a cell, *at of them, does not fit. */
static bool finish_whole(const cr_by_key *s, const cr_key_sum *sum, uint64_t first, uint64_t count, uint64_t *at,
                         uint8_t *to) {
    const bool is_signed = cr_dtype_kind(s->spec.dtype) == CR_KIND_SINT;
    for (; *at < count; ++*at) {
        const int64_t *digit = sum->digits + (first + *at) * sum->levels;
        const int64_t two[4] = {0, 0, digit[0], digit[1]};
        unsigned __int128 lower;
        const __int128 upper = cr_key_four(sum->levels == 4 ? digit : two, sum->step, &lower);
        const uint64_t low = (uint64_t)lower;
        if (upper != (is_signed ? (int64_t)low >> 63 : 0)) return false;
        memcpy(to + *at * sizeof low, &low, sizeof low);
    }
    return true;
}

/* Answers of op number k, from its sum's digits; of cells that have more than these, or do not fit, slowly. */
static cr_status finish_sum(const cr_by_key *s, const cr_key_sum *sum, const cr_finish_opts *share, uint32_t k,
                            uint64_t first, uint64_t count, void *const out[], cr_error *error) {
    const cr_op op = s->spec.ops[k];
    beside all = {.count = 0};
    cr_status status = CR_OK;
    look_beside(&all, sum);
    if (is_whole(s, op, &share[k])) {
        for (uint64_t i = 0; status == CR_OK && !finish_whole(s, sum, first, count, &i, out[k]); i++)
            status = finish_slowly(s, share, cr_ops_of(op), first + i, i, out, error);
    } else if (sum->levels == 4) {
        finish_four(sum, first, count, out[k]);
    } else {
        finish_quickly(s, sum, cr_op_divisor(op) == CR_DIVISOR_COUNT, first, count, out[k]);
    }
    for (uint64_t i = 0; all.count != 0 && i < count && status == CR_OK; i++)
        if (has_beside(&all, first + i)) status = finish_slowly(s, share, cr_ops_of(op), first + i, i, out, error);
    return status;
}

/* Answers of op number k, which cr_key_squares takes; those that it leaves, slowly. */
static cr_status finish_squares(const cr_by_key *s, const cr_finish_opts *share, uint32_t k, uint64_t first,
                                uint64_t count, void *const out[], cr_error *error) {
    enum { AT_ONCE = 256 };
    const cr_op op = s->spec.ops[k];
    beside all = {.count = 0};
    cr_status status = CR_OK;
    look_beside(&all, &s->sums[CR_AT_SUMSQ]);
    if (cr_op_term(op) == CR_TERM_SPREAD) look_beside(&all, &s->sums[CR_AT_SUM]);
    for (uint64_t at = 0; at < count && status == CR_OK; at += AT_ONCE) {
        const unsigned now = count - at < AT_ONCE ? (unsigned)(count - at) : AT_ONCE;
        uint8_t hard[AT_ONCE];
        cr_key_squares(s, op, first + at, now, (uint8_t *)out[k] + at * sizeof(double), hard);
        for (uint64_t i = at; i < at + now && status == CR_OK; i++)
            if (hard[i - at] || has_beside(&all, first + i))
                status = finish_slowly(s, share, cr_ops_of(op), first + i, i, out, error);
    }
    return status;
}

/* Of several ops that lack answers the first cell's is named, whichever op it is. */
static cr_status name_first(const cr_by_key *s, const cr_finish_opts *share, cr_ops ops, uint64_t first, uint64_t count,
                            void *const out[], cr_error *error) {
    cr_status status = CR_OK;
    for (uint64_t i = 0; i < count && status == CR_OK; i++)
        status = finish_slowly(s, share, ops, first + i, i, out, error);
    return status;
}

static cr_status finish(const cr_by_key *s, uint64_t first, uint64_t count, void *const out[], cr_error *error) {
    cr_finish_opts share[CR_AXIS_MAX_OPS];
    const cr_key_sum *sums[CR_AXIS_MAX_OPS] = {NULL};
    bool squares[CR_AXIS_MAX_OPS] = {false};
    cr_ops left = 0, all = 0;
    cr_status status = CR_OK;
    for (uint32_t k = 0; k < s->spec.op_count; k++) {
        const cr_op op = s->spec.ops[k];
        if (cr_op_closing(op) == CR_CLOSING_ORDER) continue;
        share[k] = cr_finish_share(op, s->spec.dtype, &s->spec.finish, NULL);
        sums[k] = quick_sum(s, op, &share[k]);
        squares[k] = cr_key_squares_take(s, op, &share[k]);
        all |= cr_ops_of(op);
        if (sums[k] == NULL && !squares[k]) left |= cr_ops_of(op);
    }
    for (uint32_t k = 0; k < s->spec.op_count && status == CR_OK; k++) {
        if (sums[k] != NULL)
            status = finish_sum(s, sums[k], share, k, first, count, out, error);
        else if (squares[k])
            status = finish_squares(s, share, k, first, count, out, error);
    }
    if (left != 0 && status == CR_OK) return name_first(s, share, left, first, count, out, error);
    return status == CR_OK ? CR_OK : name_first(s, share, all, first, count, out, error);
}

cr_status cr_by_key_finish(const cr_by_key *state, uint64_t first, uint64_t count, void *const out[], cr_error *error) {
    const cr_view copy = cr_view_plain(state->copy);
    if (state->copy != NULL)
        cr_cpu_order_segments(&state->spec, &copy, 0, state->begins + first, state->ends + first, count, state->ranking,
                              out, 0);
    const uint64_t before = cr_float_enter();
    const cr_status status = finish(state, first, count, out, error);
    cr_float_leave(before);
    return status;
}

/* ---- partials ---- */

static cr_status pack(const cr_by_key *s, cr_keyed_writer *w, cr_share *share, cr_error *error) {
    cr_partial p;
    cr_status status = CR_OK;
    for (uint64_t cell = 0; cell < s->cells && status == CR_OK; cell++) {
        if (s->n[cell] == 0) continue;
        to_partial(s, cell, &p);
        status = cr_share_make(share, &p, CR_UNPLACED, error);
        if (status == CR_OK) status = cr_keyed_put(w, cell, share, error);
    }
    return status;
}

cr_status cr_by_key_pack(const cr_by_key *s, uint8_t **bytes, uint64_t *length, cr_error *error) {
    const cr_keyed of = {s->spec.dtype, s->spec.families, s->keys.groups, s->keys.columns, 0};
    cr_keyed_writer w = {.bytes = NULL};
    cr_share *share = malloc(sizeof *share);
    *bytes = NULL;
    cr_status status = share != NULL ? cr_keyed_begin(&w, &of, cr_keys_elements(&s->keys), error)
                                     : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a partial");
    if (status == CR_OK) status = pack(s, &w, share, error);
    if (status == CR_OK)
        *bytes = cr_keyed_end(&w, length);
    else
        cr_keyed_drop(&w);
    free(share);
    return status;
}
