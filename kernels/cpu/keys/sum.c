/* sum: exact sums of cells: where their digits stand, and what does not fit there.
 *
 * Thread: as the state. Owner: the state. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/keys/state.h"

enum {
    EXPONENTS = 2048 + 64,
    SLACK = 2,             /* powers of two that later elements may be larger by */
    PATIENCE_LEAST = 4096, /* elements before another place is tried */
    AT_ONCE = 4096         /* digits that are looked at together */
};

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool is_float(const cr_by_key *state) { return cr_dtype_kind(state->spec.dtype) == CR_KIND_FLOAT; }

/* Whether terms have a sign. */
static bool is_signed_sum(const cr_key_sum *sum) { return sum->at != CR_AT_SUMABS && sum->at != CR_AT_SUMSQ; }

void cr_key_sum_begin(cr_by_key *state, cr_key_sum *sum, cr_sum_at at) {
    const cr_dtype dtype = state->spec.dtype;
    *sum = (cr_key_sum){.at = at, .limbs = cr_sum_limbs(at, dtype), .grid = cr_sum_grid(at, dtype), .levels = 2};
    const bool pair = cr_sum_rows[at].family & CR_FAM_PAIRS;
    const bool known = pair || (unsigned)at < (unsigned)CR_KNOWN_SUMS;
    sum->by_powers = !known || !cr_fast_on(pair ? CR_FAST_PAIRS : CR_FAST_SUMS);
    if (sum->by_powers) {
        sum->levels = 0;
        return;
    }
    const bool wide = cr_dtype_size(dtype) == 8, squares = cr_sum_rows[at].power == 2;
    if (squares && wide) sum->levels = CR_KEYS_LEVELS;
    if (!squares && !wide && is_float(state)) sum->levels = 1;
    sum->step = is_float(state) ? CR_KEYS_STEP : CR_KEYS_INT_STEP;
    sum->top = is_float(state) ? 0 : CR_KEYS_INT_STEP * (int)(sum->levels - 1);
    sum->placed = !is_float(state);
    sum->digits = cr_key_array(state, sum->levels * sizeof *sum->digits);
}

void cr_key_sum_free(cr_key_sum *sum) {
    free(sum->digits);
    for (unsigned i = 0; i < CR_SUM_LIMBS; i++) free(sum->limb[i]);
    for (int kind = 0; kind < 3; kind++) free(sum->special[kind]);
}

/* ---- limbs ---- */

static int64_t *limb_of(cr_by_key *state, cr_key_sum *sum, unsigned i) {
    if (sum->limb[i] == NULL) sum->limb[i] = cr_key_array(state, sizeof *sum->limb[i]);
    sum->limbed = true;
    return sum->limb[i];
}

/* As cr_limbs_carry, of all cells. */
static void carry(cr_by_key *state, cr_key_sum *sum) {
    for (unsigned i = 0; i + 1 < sum->limbs; i++) {
        if (sum->limb[i] == NULL) continue;
        int64_t *next = limb_of(state, sum, i + 1);
        for (uint64_t c = 0; next != NULL && c < state->cells; c++) {
            next[c] += sum->limb[i][c] >> 32;
            sum->limb[i][c] &= 0xffffffff;
        }
    }
    sum->pending = 1;
}

void cr_key_put_bits(cr_by_key *state, cr_key_sum *sum, uint64_t cell, unsigned __int128 magnitude, bool negative,
                     unsigned bit) {
    unsigned at = bit / 32, shift = bit % 32;
    uint64_t over = 0;
    for (; (magnitude != 0 || over != 0) && at < sum->limbs; at++) {
        const uint64_t digit = (((uint64_t)magnitude & 0xffffffff) << shift) | over;
        const int64_t low = (int64_t)(digit & 0xffffffff);
        over = digit >> 32;
        magnitude >>= 32;
        if (low == 0) continue;
        int64_t *limb = limb_of(state, sum, at);
        if (limb != NULL) limb[cell] += negative ? -low : low;
    }
    if (++sum->pending >= CR_PENDING_MAX) carry(state, sum);
}

void cr_key_put_special(cr_by_key *state, cr_key_sum *sum, uint64_t cell, int kind) {
    if (sum->special[kind] == NULL) sum->special[kind] = cr_key_array(state, sizeof *sum->special[kind]);
    if (sum->special[kind] != NULL) sum->special[kind][cell]++;
}

void cr_key_put_int(cr_by_key *state, cr_key_sum *sum, uint32_t cell, uint64_t magnitude, bool negative) {
    const unsigned __int128 square = (unsigned __int128)magnitude * magnitude;
    if (magnitude == 0 || cell >= state->cells) return;
    cr_key_put_bits(state, sum, cell, sum->at == CR_AT_SUMSQ ? square : magnitude, negative, 0);
}

void cr_key_put(cr_by_key *state, cr_key_sum *sum, uint32_t cell, double x) {
    const uint64_t bits = bits_of(x);
    const unsigned field = (unsigned)(bits >> 52) & 2047;
    uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
    if (cell >= state->cells) return;
    if (field == 2047) {
        cr_key_put_special(state, sum, cell, x != x ? 0 : x > 0 || !is_signed_sum(sum) ? 1 : 2);
        return;
    }
    if (field != 0) mantissa |= (uint64_t)1 << 52;
    if (mantissa == 0) return;
    const unsigned zeros = (unsigned)__builtin_ctzll(mantissa);
    int exponent = (int)(field != 0 ? field : 1) - 1075 + (int)zeros; /* no bit is below the grid */
    mantissa >>= zeros;
    if (sum->at != CR_AT_SUMSQ)
        cr_key_put_bits(state, sum, cell, mantissa, is_signed_sum(sum) && bits >> 63, (unsigned)(exponent - sum->grid));
    else
        cr_key_put_bits(state, sum, cell, (unsigned __int128)mantissa * mantissa, false,
                        (unsigned)(2 * exponent - sum->grid));
}

/* ---- digits ---- */

/* Digit i of a cell to its limbs. */
static void settle_digit(cr_by_key *state, cr_key_sum *sum, uint64_t cell, unsigned i) {
    int64_t *digit = &sum->digits[cell * sum->levels + i];
    int unit = sum->top - (int)i * sum->step - sum->grid;
    int64_t x = *digit;
    *digit = 0;
    if (unit < 0) { /* a multiple of the grid's unit */
        x >>= -unit < 63 ? -unit : 63;
        unit = 0;
    }
    if (x != 0) cr_key_put_bits(state, sum, cell, x < 0 ? -(uint64_t)x : (uint64_t)x, x < 0, (unsigned)unit);
}

static void settle_all(cr_by_key *state, cr_key_sum *sum) {
    for (uint64_t c = 0; c < state->cells; c++)
        for (unsigned i = 0; i < sum->levels; i++) settle_digit(state, sum, c, i);
    sum->adds = 0;
}

static bool is_large(int64_t digit) {
    const int64_t most = (int64_t)1 << 61;
    return digit >= most || digit <= -most;
}

static bool some_large(const int64_t *digit, uint64_t n) {
    const uint64_t half = (uint64_t)1 << 61;
    uint64_t all = 0;
    for (uint64_t i = 0; i < n; i++) all |= (uint64_t)digit[i] + half;
    return all >> 62 != 0;
}

void cr_key_room(cr_by_key *state, cr_key_sum *sum, unsigned n) {
    sum->adds += n;
    if (sum->adds <= (uint64_t)1 << (sum->levels == 1 ? CR_KEYS_ONE_ADDS_LOG2 : CR_KEYS_ADDS_LOG2)) return;
    const uint64_t digits = state->cells * sum->levels;
    for (uint64_t at = 0, now; at < digits; at += now) {
        now = digits - at < AT_ONCE ? digits - at : AT_ONCE;
        if (!some_large(sum->digits + at, now)) continue;
        for (uint64_t k = at; k < at + now; k++)
            if (is_large(sum->digits[k])) settle_digit(state, sum, k / sum->levels, (unsigned)(k % sum->levels));
    }
    /* What is behind the last cell is of no use, and starts anew. */
    memset(sum->digits + state->cells * sum->levels, 0, CR_KEYS_SPARE * sum->levels * sizeof *sum->digits);
    sum->adds = n;
}

/* ---- places ---- */

static unsigned mantissa_of(cr_dtype dtype) {
    switch (cr_dtype_format(dtype)) {
#define CR_FLOAT(SYMBOL, bytes, mantissa, ...) \
    case CR_FORMAT_##SYMBOL:                   \
        return mantissa + 1;
#include "kernels/core/float.def"
#undef CR_FLOAT
        case CR_FORMAT_INT:
            break;
    }
    return 0;
}

/* Whether what is added are squares of the elements that choose the place, and products of two of them. */
static bool are_squares(const cr_key_sum *sum) { return sum->at == CR_AT_SUMSQ || sum->at == CR_AT_SQDIST; }

/* Powers of two that so many digits take elements of: of squares half as many. */
static int width_of(const cr_by_key *state, const cr_key_sum *sum, unsigned levels) {
    const int bits = (levels == 1 ? CR_KEYS_ONE_STEP : CR_KEYS_STEP * (int)levels) - SLACK;
    const int mantissa = (int)mantissa_of(state->spec.dtype) * (sum->at == CR_AT_DOT ? 2 : 1);
    return are_squares(sum) ? (bits - 2 * mantissa) / 2 : bits - mantissa;
}

/* The highest exponent field of those `width` neighbours that hold most of all, and how many they hold. */
static unsigned best_window(const uint16_t *of, int width, unsigned *most) {
    unsigned best = 0, sum = 0;
    *most = 0;
    for (unsigned high = 0; high < EXPONENTS; high++) {
        sum += of[high];
        if (high >= (unsigned)width) sum -= of[high - (unsigned)width];
        if (sum > *most) {
            *most = sum;
            best = high;
        }
    }
    return best;
}

/* Twice as many digits. */
static bool grow(cr_by_key *state, cr_key_sum *sum) {
    int64_t *digits = cr_key_array(state, 2 * sum->levels * sizeof *digits);
    if (digits == NULL) {
        state->lacking = state->beyond = false; /* it goes without */
        return false;
    }
    state->bytes -= (state->cells + CR_KEYS_SPARE) * sum->levels * sizeof *digits;
    free(sum->digits);
    sum->digits = digits;
    sum->levels *= 2;
    return true;
}

void cr_key_place(cr_by_key *state, cr_key_sum *sum, const uint8_t *p, bool narrow, unsigned n) {
    uint16_t of[EXPONENTS] = {0};
    unsigned some = 0, most;
    for (unsigned i = 0; i < n; i++) {
        double x;
        float single;
        if (narrow) {
            memcpy(&single, p + i * sizeof single, sizeof single);
            x = (double)single;
        } else {
            memcpy(&x, p + i * sizeof x, sizeof x);
        }
        const unsigned field = (unsigned)(bits_of(x) >> 52) & 2047;
        if (x == 0 || field == 2047) continue;
        of[field]++;
        some++;
    }
    if (some == 0) return;
    if (sum->placed) settle_all(state, sum);
    int high = (int)best_window(of, width_of(state, sum, sum->levels), &most);
    while (most * 16 < some * 15 && sum->levels < CR_KEYS_LEVELS && grow(state, sum))
        high = (int)best_window(of, width_of(state, sum, sum->levels), &most);
    const int exponent = high - 1023 + 1; /* elements are below 2^exponent */
    /* The lowest digit's anchor needs a unit that float64 has, and the highest must be finite. */
    const int least = CR_F64_GRID + CR_KEYS_STEP * (int)(sum->levels - 1), largest = 970;
    int top = (are_squares(sum) ? 2 * exponent : exponent) + SLACK - cr_key_reach(sum);
    if (top < least) top = least;
    if (top > largest) top = largest;
    sum->top = top;
    sum->placed = true;
    sum->since = sum->misfits = 0;
}

bool cr_key_unplaced(const cr_by_key *state, const cr_key_sum *sum) {
    const uint64_t patience = state->cells < PATIENCE_LEAST ? PATIENCE_LEAST : state->cells;
    return !sum->placed || (sum->since >= patience && sum->misfits >= sum->since / 16);
}

/* ---- merging and answers ---- */

static void merge_special(cr_by_key *into, cr_key_sum *to, const cr_key_sum *of, int kind) {
    if (of->special[kind] == NULL) return;
    if (to->special[kind] == NULL) to->special[kind] = cr_key_array(into, sizeof *to->special[kind]);
    for (uint64_t c = 0; to->special[kind] != NULL && c < into->cells; c++)
        to->special[kind][c] += of->special[kind][c];
}

static void merge_digits(cr_by_key *into, cr_key_sum *to, const cr_key_sum *of) {
    for (uint64_t c = 0; c < into->cells; c++) {
        for (unsigned i = 0; i < to->levels; i++) {
            int64_t *a = &to->digits[c * to->levels + i], sum;
            if (is_large(*a)) settle_digit(into, to, c, i);
            const int64_t b = of->digits[c * of->levels + i];
            if (__builtin_add_overflow(*a, b, &sum)) {
                settle_digit(into, to, c, i);
                sum = b;
            }
            *a = sum;
        }
    }
    to->adds = (uint64_t)1 << CR_KEYS_ADDS_LOG2; /* they are looked at before the next */
}

void cr_key_sum_merge(cr_by_key *into, cr_key_sum *to, cr_by_key *from, cr_key_sum *of) {
    if (of->placed && !to->placed) {
        int64_t *digits = to->digits;
        const unsigned levels = to->levels;
        to->digits = of->digits;
        to->levels = of->levels;
        into->bytes += (into->cells + CR_KEYS_SPARE) * (to->levels - (uint64_t)levels) * sizeof *digits;
        to->top = of->top;
        to->placed = true;
        to->adds = of->adds;
        of->digits = digits;
        of->levels = levels;
    } else if (of->placed && to->top == of->top && to->levels == of->levels) {
        merge_digits(into, to, of);
    } else if (of->placed) {
        settle_all(from, of);
    }
    for (int kind = 0; kind < 3; kind++) merge_special(into, to, of, kind);
    for (unsigned i = 0; of->limbed && i < of->limbs; i++) {
        if (of->limb[i] == NULL) continue;
        int64_t *limb = limb_of(into, to, i);
        for (uint64_t c = 0; limb != NULL && c < into->cells; c++) limb[c] += of->limb[i][c];
    }
    if (of->limbed) to->pending += of->pending + 1;
    if (to->pending >= CR_PENDING_MAX) carry(into, to);
}

void cr_key_sum_partial(const cr_key_sum *sum, uint64_t cell, cr_partial *p) {
    cr_sum *to = &p->sums[sum->at];
    for (unsigned i = 0; sum->limbed && i < sum->limbs; i++)
        if (sum->limb[i] != NULL) to->limbs[i] = sum->limb[i][cell];
    to->pending = sum->pending;
    for (unsigned i = 0; sum->placed && i < sum->levels; i++) {
        int unit = sum->top - (int)i * sum->step - sum->grid;
        int64_t x = sum->digits[cell * sum->levels + i];
        if (unit < 0) {
            x >>= -unit < 63 ? -unit : 63;
            unit = 0;
        }
        cr_partial_put(p, sum->at, x, (unsigned)unit);
    }
    uint64_t *const counts[] = {&to->special.nans, &to->special.pinfs, &to->special.ninfs};
    for (int kind = 0; kind < 3; kind++)
        if (sum->special[kind] != NULL) *counts[kind] = sum->special[kind][cell];
}
