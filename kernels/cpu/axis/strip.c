/* strip: the states of columns: making, carrying, merging.
 *
 * Digits are unsigned words that hold signed numbers: additions wrap and nothing overflows, even when the array changes
 * under the fold. Carrying rounds to nearest, so that digits end in [−2^51, 2^51).
 * Thread: any; a strip belongs to one thread at a time. Owner: the caller. */
#include <string.h>

#include "kernels/cpu/axis/plan.h"

void cr_strip_init(const cr_axis_plan *plan, cr_strip *strip) {
    (void)plan;
    memset(strip, 0, sizeof *strip);
    for (int which = 0; which < CR_KNOWN_SUMS; which++) strip->sums[which].slot = -1;
}

/* The arrays of extrema and counts, made live on the first use. */
void cr_strip_start(const cr_axis_plan *plan, cr_strip *strip) {
    size_t columns = plan->columns, size = plan->size;
    strip->started = 1;
    if (plan->hidden) memset(cr_strip_array(strip, plan->left), 0, columns * sizeof(uint64_t));
    if (plan->hidden && plan->indices) memset(cr_strip_array(strip, plan->kept), 0xff, columns * sizeof(uint64_t));
    if (plan->fast & CR_FAM_COUNTS) {
        memset(cr_strip_array(strip, plan->zeros), 0, columns * sizeof(uint64_t));
        memset(cr_strip_array(strip, plan->nans), 0, columns * sizeof(uint64_t));
    }
    if (plan->fast & CR_FAM_EXTREMA) {
        /* Signed keys: the least maximum and the largest minimum. */
        uint8_t *min = cr_strip_array(strip, plan->min_key), *max = cr_strip_array(strip, plan->max_key);
        memset(min, 0xff, columns * size);
        memset(max, 0, columns * size);
        for (size_t i = size - 1; i < columns * size; i += size) {
            min[i] = 0x7f;
            max[i] = 0x80;
        }
        memset(cr_strip_array(strip, plan->first_nan), 0xff, columns * sizeof(uint64_t));
        memset(cr_strip_array(strip, plan->min_index), 0xff, columns * sizeof(uint64_t));
        memset(cr_strip_array(strip, plan->max_index), 0xff, columns * sizeof(uint64_t));
    }
}

void cr_strip_extend(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned low, unsigned high) {
    cr_strip_sum *sum = &strip->sums[which];
    size_t bytes = plan->columns * sizeof(uint64_t);
    if (sum->low == sum->high) sum->low = sum->high = low;
    while (sum->low > low) memset(cr_strip_digit(plan, strip, which, --sum->low), 0, bytes);
    while (sum->high < high) memset(cr_strip_digit(plan, strip, which, sum->high++), 0, bytes);
}

void cr_strip_carry(const cr_axis_plan *plan, cr_strip *strip, int which) {
    cr_strip_sum *sum = &strip->sums[which];
    for (unsigned d = sum->low; d < sum->high && d + 1 < plan->digits[which]; d++) {
        uint64_t *digit = cr_strip_digit(plan, strip, which, d), any = 0;
        for (size_t i = 0; i < plan->columns; i++) any |= cr_digit_carry(digit[i]);
        if (any == 0) continue;
        if (d + 1 == sum->high) cr_strip_extend(plan, strip, which, sum->low, d + 2);
        for (size_t i = 0; i < plan->columns; i++) {
            uint64_t carry = cr_digit_carry(digit[i]);
            digit[i] -= carry << CR_DIGIT_BITS;
            digit[i + plan->columns] += carry;
        }
    }
    sum->units = 1;
}

void cr_strip_carry_column(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column) {
    cr_strip_sum *sum = &strip->sums[which];
    for (unsigned d = sum->low; d < sum->high && d + 1 < plan->digits[which]; d++) {
        uint64_t *digit = cr_strip_digit(plan, strip, which, d) + column, carry = cr_digit_carry(*digit);
        if (carry == 0) continue;
        if (d + 1 == sum->high) cr_strip_extend(plan, strip, which, sum->low, d + 2);
        *digit -= carry << CR_DIGIT_BITS;
        digit[plan->columns] += carry;
    }
}

/* Adds value·2^bit to a column: at most six units a digit. */
static void add_at(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, __int128 value,
                   unsigned bit) {
    const int64_t half = (int64_t)1 << (CR_DIGIT_BITS - 1);
    unsigned d = bit / CR_DIGIT_BITS;
    value = (__int128)((unsigned __int128)value << (bit % CR_DIGIT_BITS));
    while (value != 0) {
        bool last = d + 1 >= plan->digits[which] || (value < half && value >= -half);
        cr_strip_extend(plan, strip, which, d, d + 1);
        cr_strip_digit(plan, strip, which, d)[column] +=
            last ? (uint64_t)value : (uint64_t)value & (((uint64_t)1 << CR_DIGIT_BITS) - 1);
        if (last) break;
        value >>= CR_DIGIT_BITS;
        d++;
    }
}

/* Adds one column of from to one of into, where the digits of the two may lie apart. */
static void add_digits(const cr_axis_plan *into_plan, cr_strip *into, unsigned to, const cr_axis_plan *plan,
                       const cr_strip *from, unsigned column, int which) {
    const cr_strip_sum *a = &into->sums[which], *b = &from->sums[which];
    int apart = a->base - b->base;
    for (unsigned d = b->low; d < b->high; d++) {
        int64_t digit = (int64_t)cr_strip_digit(plan, from, which, d)[column];
        int bit = (int)(d * CR_DIGIT_BITS) + apart;
        if (bit < 0) { /* digit 0: a multiple of 2^base */
            digit >>= -bit;
            bit = 0;
        }
        add_at(into_plan, into, which, to, digit, (unsigned)bit);
    }
}

/* Makes room for what from holds; true when its digits lie where into's do. */
static bool merge_ready(const cr_axis_plan *into_plan, cr_strip *into, const cr_strip *from, int which) {
    cr_strip_sum *a = &into->sums[which];
    const cr_strip_sum *b = &from->sums[which];
    enum { APART = 8 }; /* units that add_digits gives a digit */
    if (a->low == a->high && a->slot < 0) {
        a->base = b->base;
        a->slot = b->slot;
    }
    bool same = a->base == b->base;
    uint32_t units = same ? b->units : APART;
    if (a->units + units > CR_DIGIT_UNITS) cr_strip_carry(into_plan, into, which);
    a->units += units;
    if (same && b->low < b->high) cr_strip_extend(into_plan, into, which, b->low, b->high);
    return same;
}

static void merge_sum(const cr_axis_plan *plan, cr_strip *into, const cr_strip *from, int which) {
    cr_strip_sum *a = &into->sums[which];
    const cr_strip_sum *b = &from->sums[which];
    size_t columns = plan->columns;
    if (!merge_ready(plan, into, from, which)) {
        for (unsigned i = 0; i < columns; i++) add_digits(plan, into, i, plan, from, i, which);
    } else if (b->low < b->high) {
        uint64_t *x = cr_strip_digit(plan, into, which, b->low);
        const uint64_t *y = cr_strip_digit(plan, from, which, b->low);
        for (size_t i = 0; i < (b->high - b->low) * columns; i++) x[i] += y[i];
    }
    if (b->special) {
        uint64_t *x = cr_strip_special(plan, into, which, 0);
        const uint64_t *y = cr_strip_special(plan, from, which, 0);
        if (!a->special) memset(x, 0, 3 * columns * sizeof *x);
        a->special = 1;
        for (size_t i = 0; i < 3 * columns; i++) x[i] += y[i];
    }
}

/* A signed key of size bytes. */
static int64_t key_at(const uint8_t *keys, size_t i, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, keys + i * size, size);
    unsigned unused = 64 - 8 * (unsigned)size;
    return (int64_t)(bits << unused) >> unused;
}

static void merge_keys(const cr_axis_plan *plan, cr_strip *into, const cr_strip *from, size_t keys, size_t indices,
                       bool max) {
    uint8_t *a = cr_strip_array(into, keys);
    const uint8_t *b = cr_strip_array(from, keys);
    uint64_t *ai = cr_strip_array(into, indices);
    const uint64_t *bi = cr_strip_array(from, indices);
    for (size_t i = 0; i < plan->columns; i++) {
        int64_t x = key_at(a, i, plan->size), y = key_at(b, i, plan->size);
        bool take = max ? y > x : y < x;
        if (x == y) take = bi[i] < ai[i];
        if (!take) continue;
        memcpy(a + i * plan->size, b + i * plan->size, plan->size);
        ai[i] = bi[i];
    }
}

void cr_strip_merge(const cr_axis_plan *plan, cr_strip *into, const cr_strip *from) {
    for (int which = 0; which < CR_KNOWN_SUMS; which++)
        if (plan->fast & cr_sum_rows[which].family) merge_sum(plan, into, from, which);
    if (!from->started) return;
    if (!into->started) cr_strip_start(plan, into);
    into->nans |= from->nans;
    if (plan->hidden) {
        uint64_t *left = cr_strip_array(into, plan->left);
        const uint64_t *more = cr_strip_array(from, plan->left);
        for (size_t i = 0; i < plan->columns; i++) left[i] += more[i];
    }
    if (plan->hidden && plan->indices) {
        uint64_t *kept = cr_strip_array(into, plan->kept);
        const uint64_t *other = cr_strip_array(from, plan->kept);
        for (size_t i = 0; i < plan->columns; i++) kept[i] = other[i] < kept[i] ? other[i] : kept[i];
    }
    if (plan->fast & CR_FAM_COUNTS) {
        uint64_t *zeros = cr_strip_array(into, plan->zeros), *nans = cr_strip_array(into, plan->nans);
        const uint64_t *more_zeros = cr_strip_array(from, plan->zeros), *more_nans = cr_strip_array(from, plan->nans);
        for (size_t i = 0; i < plan->columns; i++) {
            zeros[i] += more_zeros[i];
            nans[i] += more_nans[i];
        }
    }
    if (plan->fast & CR_FAM_EXTREMA) {
        uint64_t *first = cr_strip_array(into, plan->first_nan);
        const uint64_t *other = cr_strip_array(from, plan->first_nan);
        for (size_t i = 0; i < plan->columns; i++) first[i] = other[i] < first[i] ? other[i] : first[i];
        merge_keys(plan, into, from, plan->min_key, plan->min_index, false);
        merge_keys(plan, into, from, plan->max_key, plan->max_index, true);
    }
}

static void add_sum(const cr_axis_plan *into_plan, cr_strip *into, unsigned to, const cr_axis_plan *plan,
                    const cr_strip *from, unsigned column, int which) {
    cr_strip_sum *a = &into->sums[which];
    const cr_strip_sum *b = &from->sums[which];
    if (merge_ready(into_plan, into, from, which)) {
        for (unsigned d = b->low; d < b->high; d++) {
            cr_strip_digit(into_plan, into, which, d)[to] += cr_strip_digit(plan, from, which, d)[column];
        }
    } else {
        add_digits(into_plan, into, to, plan, from, column, which);
    }
    if (!b->special) return;
    if (!a->special) memset(cr_strip_special(into_plan, into, which, 0), 0, 3 * into_plan->columns * sizeof(uint64_t));
    a->special = 1;
    for (int kind = 0; kind < 3; kind++) {
        cr_strip_special(into_plan, into, which, kind)[to] += cr_strip_special(plan, from, which, kind)[column];
    }
}

static uint64_t renumber(uint64_t line, uint64_t factor, uint64_t offset) {
    return line == UINT64_MAX ? line : line * factor + offset;
}

static void add_key(size_t size, uint8_t *into, uint64_t *into_line, const uint8_t *from, uint64_t line, bool max) {
    int64_t x = key_at(into, 0, size), y = key_at(from, 0, size);
    if (x == y ? line >= *into_line : max ? y < x : y > x) return;
    memcpy(into, from, size);
    *into_line = line;
}

#define WORDS(strip, offset) ((uint64_t *)cr_strip_array(strip, offset))
void cr_strip_add_column(const cr_axis_plan *into_plan, cr_strip *into, unsigned to, const cr_axis_plan *plan,
                         const cr_strip *from, unsigned column, uint64_t factor, uint64_t offset) {
    size_t size = plan->size;
    for (int which = 0; which < CR_KNOWN_SUMS; which++)
        if (plan->fast & cr_sum_rows[which].family) add_sum(into_plan, into, to, plan, from, column, which);
    if (!from->started) return;
    if (!into->started) cr_strip_start(into_plan, into);
    into->nans |= from->nans;
    if (plan->hidden) WORDS(into, into_plan->left)[to] += WORDS(from, plan->left)[column];
    if (plan->hidden && plan->indices) {
        uint64_t *kept = WORDS(into, into_plan->kept) + to;
        const uint64_t line = renumber(WORDS(from, plan->kept)[column], factor, offset);
        if (line < *kept) *kept = line;
    }
    if (plan->fast & CR_FAM_COUNTS) {
        WORDS(into, into_plan->zeros)[to] += WORDS(from, plan->zeros)[column];
        WORDS(into, into_plan->nans)[to] += WORDS(from, plan->nans)[column];
    }
    if (plan->fast & CR_FAM_EXTREMA) {
        uint64_t *first = WORDS(into, into_plan->first_nan) + to;
        uint64_t nan = renumber(WORDS(from, plan->first_nan)[column], factor, offset);
        if (nan < *first) *first = nan;
        add_key(size, (uint8_t *)cr_strip_array(into, into_plan->min_key) + to * size,
                WORDS(into, into_plan->min_index) + to, (uint8_t *)cr_strip_array(from, plan->min_key) + column * size,
                renumber(WORDS(from, plan->min_index)[column], factor, offset), false);
        add_key(size, (uint8_t *)cr_strip_array(into, into_plan->max_key) + to * size,
                WORDS(into, into_plan->max_index) + to, (uint8_t *)cr_strip_array(from, plan->max_key) + column * size,
                renumber(WORDS(from, plan->max_index)[column], factor, offset), true);
    }
}
#undef WORDS

void cr_strip_count_specials(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, uint64_t nans,
                             uint64_t pinfs, uint64_t ninfs) {
    cr_strip_sum *sum = &strip->sums[which];
    if (!sum->special) memset(cr_strip_special(plan, strip, which, 0), 0, 3 * plan->columns * sizeof(uint64_t));
    sum->special = 1;
    cr_strip_special(plan, strip, which, 0)[column] += nans;
    cr_strip_special(plan, strip, which, 1)[column] += pinfs;
    cr_strip_special(plan, strip, which, 2)[column] += ninfs;
}

void cr_strip_add_special(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, bool nan,
                          bool negative) {
    cr_strip_count_specials(plan, strip, which, column, nan, !nan && !negative, !nan && negative);
}
