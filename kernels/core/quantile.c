/* quantile: see quantile.h. Thread: any; nothing here holds state. */
#include "kernels/core/quantile.h"

#include <string.h>

#include "kernels/core/element.h"
#include "kernels/core/fast.h"
#include "kernels/core/finish.h"
#include "kernels/core/key.h"
#include "kernels/core/round.h"
#include "kernels/core/turns.h"

static const char *const methods[] = {
#define CR_QUANTILE_METHOD(symbol, id, name) [id] = name,
#include "kernels/core/quantile.def"
#undef CR_QUANTILE_METHOD
};
enum { METHODS = sizeof methods / sizeof methods[0], READS_MOST = 5 };

const char *cr_quantile_method_name(uint32_t method) { return method < METHODS ? methods[method] : NULL; }

cr_status cr_quantile_method_parse(const char *name, cr_quantile_method *method, cr_error *error) {
    for (uint32_t i = 0; i < METHODS; i++) {
        if (strcmp(name, methods[i]) != 0) continue;
        *method = (cr_quantile_method)i;
        return CR_OK;
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "method: \"%.40s\", must be linear, lower, higher, nearest or midpoint",
                   name);
}

cr_status cr_quantile_check(double share, size_t i, cr_error *error) {
    if (share >= 0 && share <= 1) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "parameters[%zu] is %g, a quantile's is 0 to 1", i, share);
}

/* Bits that each read of an element of so many bytes counts, highest first. */
static const uint8_t *bits_of(cr_dtype dtype) {
    static const uint8_t bits[9][READS_MOST + 1] = {
        [1] = {8}, [2] = {8, 8}, [4] = {11, 11, 10}, [8] = {13, 13, 13, 13, 12}};
    return bits[cr_dtype_size(dtype)];
}

uint32_t cr_quantile_reads(cr_dtype dtype) { return (uint32_t)strlen((const char *)bits_of(dtype)); }

void cr_quantile_begin(cr_quantile *s, cr_dtype dtype, const cr_quantile_item *items, uint32_t count, bool skips) {
    const uint32_t bits = bits_of(dtype)[0];
    *s = (cr_quantile){.dtype = dtype,
                       .skips = skips,
                       .count = count,
                       .bits = bits,
                       .below = 8 * (uint32_t)cr_dtype_size(dtype) - bits,
                       .groups = 1};
    memcpy(s->items, items, count * sizeof items[0]);
}

size_t cr_quantile_words(const cr_quantile *s) { return CR_QUANTILE_BINS + ((size_t)s->groups << s->bits); }

enum { VERSION = 1, HEAD_BYTES = 8 };

size_t cr_quantile_pack(const cr_quantile *s, uint8_t *out) {
    const uint8_t head[HEAD_BYTES] = {'C', 'Q', VERSION, (uint8_t)s->dtype, (uint8_t)s->read, (uint8_t)s->groups};
    memcpy(out, head, sizeof head);
    for (uint32_t i = 0; i < s->groups; i++)
        for (unsigned k = 0; k < 8; k++) out[HEAD_BYTES + 8 * i + k] = (uint8_t)(s->upper[i] >> 8 * k);
    return HEAD_BYTES + 8 * (size_t)s->groups;
}

cr_status cr_quantile_unpack(cr_quantile *s, const uint8_t *data, size_t bytes, cr_error *error) {
    const bool whole = bytes >= HEAD_BYTES && data[0] == 'C' && data[1] == 'Q';
    if (whole && data[2] != VERSION)
        return cr_fail(error, CR_UNIMPLEMENTED, "asked: version %u of what a read counts, this library knows %d",
                       data[2], VERSION);
    const cr_dtype dtype = whole ? (cr_dtype)data[3] : CR_DTYPE_NONE;
    const uint32_t groups = whole ? data[5] : 0;
    bool good = cr_dtype_is_input(dtype) && data[4] < cr_quantile_reads(dtype) && data[6] == 0 && data[7] == 0 &&
                groups >= 1 && groups <= CR_QUANTILE_RANKS && bytes == HEAD_BYTES + 8 * (size_t)groups;
    *s = (cr_quantile){.dtype = dtype, .read = good ? data[4] : 0, .groups = groups};
    for (uint32_t read = 0; good && read <= s->read; read++) {
        s->below = (read ? s->below : 8 * (uint32_t)cr_dtype_size(dtype)) - bits_of(dtype)[read];
        s->bits = bits_of(dtype)[read];
    }
    for (uint32_t i = 0; good && i < groups; i++) {
        for (unsigned k = 0; k < 8; k++) s->upper[i] |= (uint64_t)data[HEAD_BYTES + 8 * i + k] << 8 * k;
        const unsigned above = 8 * (unsigned)cr_dtype_size(dtype) - s->bits - s->below; /* below 64 */
        good = s->upper[i] >> above == 0 && (i == 0 || s->upper[i] > s->upper[i - 1]);
    }
    if (good) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "asked: these bytes are not what a read of quantiles counts");
}

void cr_quantile_merge(const cr_quantile *s, uint64_t *into, const uint64_t *from) {
    const size_t words = cr_quantile_words(s);
    for (size_t i = 0; i < words; i++)
        if (from[i]) __atomic_fetch_add(&into[i], from[i], __ATOMIC_RELAXED);
}

/* The whole part of share·(n − 1), and the rest of it, which is in units of 2^-scale and odd, or 0. */
static uint64_t split(double share, uint64_t n, unsigned __int128 *rest, unsigned *scale) {
    uint64_t bits;
    memcpy(&bits, &share, sizeof bits);
    const unsigned field = (unsigned)(bits >> 52) & 2047;
    const uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)(field != 0) << 52;
    const unsigned __int128 product = (unsigned __int128)mantissa * (n - 1);
    *scale = 1075 - (field ? field : 1); /* 52 at least, because share is at most 1 */
    const bool all = *scale >= 128;
    const uint64_t whole = all ? 0 : (uint64_t)(product >> *scale);
    *rest = all ? product : product & (((unsigned __int128)1 << *scale) - 1);
    if (!*rest) return whole;
    const uint64_t low = (uint64_t)*rest;
    const unsigned zeros =
        low ? (unsigned)__builtin_ctzll(low) : 64 + (unsigned)__builtin_ctzll((uint64_t)(*rest >> 64));
    *rest >>= zeros;
    *scale -= zeros;
    return whole;
}

cr_quantile_place cr_quantile_place_of(const cr_quantile_item *item, uint64_t n) {
    cr_quantile_place place = {.weight = 0};
    place.low = place.high = split(item->share, n, &place.weight, &place.scale);
    if (!place.weight) return place;
    const bool half = place.scale == 1; /* the rest is odd, and below 1 */
    const bool above = !half && place.scale <= 128 && place.weight >> (place.scale - 1) != 0;
    switch (item->method) {
        case CR_QUANTILE_LINEAR:
            place.high++;
            return place;
        case CR_QUANTILE_MIDPOINT:
            place.high++;
            place.weight = place.scale = 1;
            return place;
        case CR_QUANTILE_LOWER:
            break;
        case CR_QUANTILE_HIGHER:
            place.low = ++place.high;
            break;
        case CR_QUANTILE_NEAREST:
            if (above || (half && place.low % 2 == 1)) place.low = ++place.high;
            break;
    }
    place.weight = 0;
    return place;
}

/* What e counts for: its mantissa, in units of 2^exponent, times factor, which has so many bits. False: that is not sure to fit 125 bits. */
static bool short_term(const cr_element *e, int exponent, unsigned __int128 factor, unsigned bits,
                       unsigned __int128 *term) {
    const int up = e->mantissa ? e->exponent - exponent : 0;
    *term = 0;
    if (!e->mantissa) return true;
    if (64 - __builtin_clzll(e->mantissa) + up + (int)bits > 125) return false;
    *term = ((unsigned __int128)e->mantissa << up) * factor;
    return true;
}

/* As cr_quantile_between, where 128 bits hold it all; false: they do not. */
static bool between_short(cr_dtype result, const cr_element *low, const cr_element *high,
                          const cr_quantile_place *place, uint64_t *bits) {
    const unsigned scale = place->weight ? place->scale : 0;
    if (low->infinite || high->infinite || scale > 64 || !cr_fast_on(CR_FAST_SHORT_RANKS)) return false;
    const int exponent =
        !high->mantissa || (low->mantissa && low->exponent < high->exponent) ? low->exponent : high->exponent;
    unsigned __int128 a, b;
    if (!short_term(low, exponent, ((unsigned __int128)1 << scale) - place->weight, scale + !scale, &a) ||
        !short_term(high, exponent, place->weight, scale, &b))
        return false;
    const __int128 sum = (low->negative ? -(__int128)a : (__int128)a) + (high->negative ? -(__int128)b : (__int128)b);
    if (sum == 0)
        *bits = low->negative && high->negative ? cr_float_negative_zero(result) : 0;
    else
        *bits = cr_round_short(result, sum < 0, sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum,
                               exponent - (int)scale, false);
    return true;
}

uint64_t cr_quantile_between(cr_dtype dtype, cr_dtype result, uint64_t low_key, uint64_t high_key,
                             const cr_quantile_place *place) {
    const cr_element low = cr_element_of(dtype, cr_bits_of_key(dtype, low_key));
    const cr_element high = cr_element_of(dtype, cr_bits_of_key(dtype, high_key));
    uint64_t bits;
    if (between_short(result, &low, place->weight ? &high : &low, place, &bits)) return bits;
    cr_big first, second;
    cr_big_set(&first, 1);
    cr_big_set(&second, place->weight);
    if (!place->weight) return cr_element_sum(result, &low, &first, &low, &second, 0);
    cr_big_shift_left(&first, place->scale);
    cr_big_subtract(&first, &second);
    return cr_element_sum(result, &low, &first, &high, &second, (int)place->scale);
}

/* The first read is over: where the answers lie among all keys. False: they are NaNs. */
static bool take_first(cr_quantile *s, const uint64_t *counts) {
    s->seen = counts[CR_QUANTILE_SEEN];
    s->nans = counts[CR_QUANTILE_BELOW] + counts[CR_QUANTILE_ABOVE];
    if (s->nans >= s->seen || (s->nans && !s->skips)) return false;
    for (uint32_t i = 0; i < s->count; i++) {
        s->places[i] = cr_quantile_place_of(&s->items[i], s->seen - s->nans);
        s->rank[2 * i] = counts[CR_QUANTILE_BELOW] + s->places[i].low;
        s->rank[2 * i + 1] = counts[CR_QUANTILE_BELOW] + s->places[i].high;
    }
    return true;
}

/* The bin of a group's element of this rank, which becomes that within the bin. */
static uint64_t bin_of(const uint64_t *bins, uint64_t count, uint64_t *rank) {
    uint64_t last = 0, left = *rank;
    for (uint64_t bin = 0; bin < count; bin++) {
        if (!bins[bin]) continue;
        if (left < bins[bin]) {
            *rank = left;
            return bin;
        }
        left -= bins[bin];
        last = bin;
    }
    *rank = 0; /* the memory has changed: some element */
    return last;
}

/* The place of upper among those sought so far, where it is put in order. */
static void seek(cr_quantile *s, uint64_t upper) {
    uint32_t at = s->groups;
    for (; at > 0 && s->upper[at - 1] >= upper; at--)
        if (s->upper[at - 1] == upper) return;
    memmove(s->upper + at + 1, s->upper + at, (s->groups - at) * sizeof s->upper[0]);
    s->upper[at] = upper;
    s->groups++;
}

bool cr_quantile_next(cr_quantile *s, const uint64_t *counts) {
    uint64_t upper[CR_QUANTILE_RANKS];
    const uint32_t ranks = 2 * s->count;
    if (s->read == 0 && !take_first(s, counts)) return false;
    for (uint32_t k = 0; k < ranks; k++) {
        const uint64_t *bins = counts + CR_QUANTILE_BINS + ((size_t)s->group[k] << s->bits);
        const uint64_t known = s->read ? s->upper[s->group[k]] << s->bits : 0;
        upper[k] = known | bin_of(bins, (uint64_t)1 << s->bits, &s->rank[k]);
    }
    s->groups = 0;
    for (uint32_t k = 0; k < ranks; k++) seek(s, upper[k]);
    for (uint32_t k = 0; k < ranks; k++)
        for (s->group[k] = 0; s->upper[s->group[k]] != upper[k];) s->group[k]++;
    const bool last = s->below == 0;
    s->read++;
    s->bits = last ? 0 : bits_of(s->dtype)[s->read];
    s->below -= s->bits;
    return !last;
}

bool cr_quantile_next_of(cr_quantile *s, const uint64_t *counts, uint64_t *left) {
    uint64_t before[CR_QUANTILE_RANKS];
    const uint32_t bits = s->bits, groups = s->groups;
    memcpy(before, s->upper, groups * sizeof before[0]);
    const bool first = s->read == 0, more = cr_quantile_next(s, counts);
    *left = 0;
    for (uint32_t i = 0; more && i < s->groups; i++) {
        const uint64_t known = s->upper[i] >> bits, bin = s->upper[i] & (((uint64_t)1 << bits) - 1);
        uint32_t g = 0;
        while (!first && g + 1 < groups && before[g] != known) g++;
        *left += counts[CR_QUANTILE_BINS + ((size_t)g << bits) + bin];
    }
    return more;
}

/* Elements of `size` bytes, which is known where this is called: little-endian, as all that has folds. */
static inline __attribute__((always_inline)) void count_few(const cr_quantile *s, uint64_t *counts, const uint8_t *p,
                                                            uint64_t n, size_t size) {
    const cr_turns t = cr_turns_of(s->dtype);
    const uint64_t mask = ((uint64_t)1 << s->bits) - 1;
    uint64_t *const bins = counts + CR_QUANTILE_BINS;
    for (uint64_t i = 0; i < n; i++, p += size) {
        uint64_t bits = 0;
        uint32_t g = 0;
        memcpy(&bits, p, size);
        if (s->dtype == CR_BOOL) bits = bits != 0;
        if (s->read == 0 && !cr_turns_number(&t, bits)) counts[bits & t.top ? CR_QUANTILE_BELOW : CR_QUANTILE_ABOVE]++;
        const uint64_t digits = cr_turned(&t, bits) >> s->below;
        while (s->read != 0 && g < s->groups && s->upper[g] != digits >> s->bits) g++;
        if (g < s->groups) bins[((size_t)g << s->bits) + (digits & mask)]++;
    }
}

void cr_quantile_count_few(const cr_quantile *s, uint64_t *counts, const void *data, uint64_t n) {
    if (s->read == 0) counts[CR_QUANTILE_SEEN] += n;
    const size_t size = cr_dtype_size(s->dtype);
    if (size == 1) count_few(s, counts, data, n, 1);
    if (size == 2) count_few(s, counts, data, n, 2);
    if (size == 4) count_few(s, counts, data, n, 4);
    if (size == 8) count_few(s, counts, data, n, 8);
}

uint64_t cr_quantile_finish(const cr_quantile *s, uint32_t i, cr_dtype result) {
    if (s->nans >= s->seen || (s->nans && !s->skips)) return cr_float_nan(result);
    return cr_quantile_between(s->dtype, result, s->upper[s->group[2 * i]], s->upper[s->group[2 * i + 1]],
                               &s->places[i]);
}

void cr_quantile_value(cr_op op, cr_dtype result, uint64_t bits, cr_value *value) {
    *value = (cr_value){.op = op};
    cr_value_bits(value, result, bits);
}

void cr_finish_order(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    const cr_dtype result = opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
    if (p->n == 0)
        cr_value_bits(v, result, cr_float_nan(result));
    else
        cr_fail(&v->error, CR_UNIMPLEMENTED, "op %s is found in several reads, and has no partial", cr_op_name(op));
}
