/* pair_sums: Σ of pairs over short rows, or over columns, by S + E (rows.h, tree.h). A part of axis.inc.
 *
 * A product is h + l, of which l is the rest, exactly; a squared difference is (d + e)², where d + e is the difference, exactly: d·d, its
 * rest, and (2·d + e)·e, which is rounded. What additions to E lose is added up by magnitude: where that is nothing S + E is exact, as sums
 * of products of float32 have to be, which often lie halfway between two float64s.
 * Thread: any. Owner: the caller owns rows and data. */
#ifndef CURED_KERNELS_CPU_ROWS_PAIR_SUMS_H
#define CURED_KERNELS_CPU_ROWS_PAIR_SUMS_H

#include "kernels/cpu/axis/round.h"
#include "kernels/cpu/rows/pairs.h"
#include "kernels/cpu/rows/tree.h"

enum { PAIR_VECTORS = VB == 64 ? 4 : 2 }; /* of columns at once: as many as registers hold */

/* What one row, or a vector of columns, has come to: s + e, off by less than 2·off; lost: some term is not exact. */
struct pair_sum {
    vf64 s, e, off;
    vu64 lost;
};

ALWAYS void pair_rest(struct pair_sum *sum, vf64 x) {
    vf64 rest;
    sum->e = two_sum(sum->e, x, &rest);
    sum->off += magnitude_of(rest);
}

ALWAYS void pair_add(struct pair_sum *sum, vf64 x) {
    vf64 rest;
    sum->s = two_sum(sum->s, x, &rest);
    pair_rest(sum, rest);
}

/* The sum of two. */
ALWAYS struct pair_sum pair_join(vf64 s, vf64 t, vf64 e, vf64 f, vf64 off, vf64 more) {
    struct pair_sum all = {s, e, off + more, {0}};
    pair_rest(&all, f);
    pair_add(&all, t);
    return all;
}

ALWAYS struct pair_sum pair_tree(struct pair_sum *r) {
#define PART(s, part, half) (vf64) tree_##half(s, (vu64)r[2 * i].part, (vu64)r[2 * i + 1].part)
#define STEP(s_)                                                                                   \
    for (int i = 0; i < WORDS >> (s_ + 1); i++) {                                                  \
        r[i] = pair_join(PART(s_, s, even), PART(s_, s, odd), PART(s_, e, even), PART(s_, e, odd), \
                         PART(s_, off, even), PART(s_, off, odd));                                 \
    }
    TREE(STEP);
#undef STEP
#undef PART
    return r[0];
}

/* Whether x has bits below the range, or had: those of a product of numbers that are not zeros. */
ALWAYS vu64 pair_lost(vf64 x, vf64 a, vf64 b) {
    return (vu64)(magnitude_of(x) < 0x1p-960) & (vu64)(a != 0) & (vu64)(b != 0);
}

ALWAYS void pair_term(struct pair_sum *to, vf64 a, vf64 b, bool narrow, cr_sum_at at) {
    if (at == CR_AT_WEIGHTS) {
        pair_add(to, b);
    } else if (at == CR_AT_DOT) {
        const vf64 h = a * b;
        pair_add(to, h);
        if (narrow) return; /* it is exact */
        pair_rest(to, product_error(a, b, h));
        to->lost |= pair_lost(h, a, b);
    } else {
        vf64 e;
        const vf64 d = two_sum(a, -b, &e), h = d * d, t = (d + d + e) * e;
        pair_add(to, h);
        pair_rest(to, product_error(d, d, h));
        pair_rest(to, t);
        to->off += magnitude_of(t) * 0x1p-51;
        if (!narrow) to->lost |= pair_lost(h, d, d) | pair_lost(t, e, e);
    }
}

/* To rows [first, first + WORDS). What rounds them adds the doubt to e, which is rounded, too. */
ALWAYS void pair_store(cr_row_sums *sums, unsigned first, const struct pair_sum *r) {
    const vu64 some = (vu64)(r->off != 0), tiny = some & (vu64)(r->off < 0x1p-900);
    const vf64 doubt = (vf64)(((vu64)(r->off * 2 + magnitude_of(r->e) * 0x1p-51) & some) | tiny);
    memcpy(&sums->hi[first], &r->s, VB);
    memcpy(&sums->lo[first], &r->e, VB);
    memcpy(&sums->doubt[first], &doubt, VB);
}

ALWAYS vf64 pair_load(const uint8_t *p, bool narrow) { return narrow ? widen_at(p) : LOAD(vf64, p); }

/* Of `bytes` bytes, which are no whole vector; zeros follow. */
NEVER vf64 pair_load_some(const uint8_t *p, size_t bytes, bool narrow) {
    uint8_t pad[VB] = {0};
    memcpy(pad, p, bytes);
    return pair_load(pad, narrow);
}

/* n pairs at x and y; up to end_x and end_y there is memory. */
ALWAYS struct pair_sum pair_row(const uint8_t *x, const uint8_t *y, uint64_t n, const uint8_t *end_x, bool narrow,
                                cr_sum_at at) {
    static const uint64_t ones[2 * WORDS] = {[0 ... WORDS - 1] = UINT64_MAX};
    const size_t size = narrow ? sizeof(float) : sizeof(double);
    struct pair_sum to = {{0}, {0}, {0}, {0}};
    for (; n >= WORDS; n -= WORDS, x += WORDS * size, y += WORDS * size)
        pair_term(&to, pair_load(x, narrow), pair_load(y, narrow), narrow, at);
    if (n == 0) return to;
    vf64 a, b;
    if (__builtin_expect((size_t)(end_x - x) >= WORDS * size,
                         1)) { /* what follows the row is read, and is no part of it */
        const vu64 some = LOAD(vu64, ones + WORDS - n);
        a = (vf64)((vu64)pair_load(x, narrow) & some);
        b = (vf64)((vu64)pair_load(y, narrow) & some);
    } else {
        a = pair_load_some(x, n * size, narrow);
        b = pair_load_some(y, n * size, narrow);
    }
    pair_term(&to, a, b, narrow, at);
    return to;
}

ALWAYS void pair_rows(const cr_pair_rows *rows, unsigned count, bool narrow, cr_sum_at at, cr_row_sums *sums) {
    const size_t size = narrow ? sizeof(float) : sizeof(double);
    const uint64_t *border = rows->borders, first = border[0];
    const uint8_t *end_x = rows->x + (border[count] - first) * size;
    for (unsigned i = 0; i < count; i += WORDS) {
        struct pair_sum r[WORDS];
        for (unsigned k = 0; k < WORDS; k++) {
            const unsigned row = i + k < count ? i + k : count - 1;
            const uint64_t n = border[row + 1] - border[row], before = (border[row] - first) * size;
            r[k] = pair_row(rows->x + before, rows->y + before, n, end_x, narrow, at);
            if (any_bit(r[k].lost)) r[k].s = ALL(vf64, __builtin_nan(""));
        }
        const struct pair_sum all = pair_tree(r);
        pair_store(sums, i, &all);
    }
}

/* Columns [i, i + vectors · WORDS), of which there are `now`; the last vector may have fewer than its own. Lines lie far apart, so each
 * is fetched before it is read, and the more of it is read at once, the fewer times. */
ALWAYS void pair_columns_at(const cr_pair_rows *rows, unsigned i, size_t now, unsigned vectors, bool narrow,
                            cr_sum_at at, cr_row_sums *sums) {
    enum { SOON = 12 };
    const size_t size = narrow ? sizeof(float) : sizeof(double);
    const uint8_t *x = rows->x + i * size, *y = rows->y + i * size;
    struct pair_sum to[PAIR_VECTORS] = {{{0}, {0}, {0}, {0}}};
    for (uint64_t k = 0; k < rows->n; k++, x += rows->x_line, y += rows->y_line) {
#pragma GCC unroll 4
        for (unsigned v = 0; v < vectors; v++) {
            const size_t skip = v * WORDS * size;
            const bool whole = __builtin_expect(now >= (v + 1) * WORDS, 1);
            __builtin_prefetch((const void *)((uintptr_t)x + skip + SOON * rows->x_line));
            __builtin_prefetch((const void *)((uintptr_t)y + skip + SOON * rows->y_line));
            const vf64 a =
                whole ? pair_load(x + skip, narrow) : pair_load_some(x + skip, (now - v * WORDS) * size, narrow);
            const vf64 b =
                whole ? pair_load(y + skip, narrow) : pair_load_some(y + skip, (now - v * WORDS) * size, narrow);
            pair_term(&to[v], a, b, narrow, at);
        }
    }
#pragma GCC unroll 4
    for (unsigned v = 0; v < vectors; v++) {
        to[v].s = (vf64)((vu64)to[v].s | to[v].lost);
        pair_store(sums, i + v * WORDS, &to[v]);
    }
}

ALWAYS void pair_columns(const cr_pair_rows *rows, unsigned count, bool narrow, cr_sum_at at, cr_row_sums *sums) {
    unsigned i = 0;
    for (; i + PAIR_VECTORS * WORDS <= count; i += PAIR_VECTORS * WORDS)
        pair_columns_at(rows, i, PAIR_VECTORS * WORDS, PAIR_VECTORS, narrow, at, sums);
    for (; i < count; i += WORDS) pair_columns_at(rows, i, count - i, 1, narrow, at, sums);
}

#define PAIR_SUMS(name, narrow, at)                                                \
    NEVER void name(const cr_pair_rows *rows, unsigned count, cr_row_sums *sums) { \
        rows->borders != NULL ? pair_rows(rows, count, narrow, at, sums)           \
                              : pair_columns(rows, count, narrow, at, sums);       \
    }
PAIR_SUMS(pair_dot_f32, true, CR_AT_DOT)
PAIR_SUMS(pair_dot_f64, false, CR_AT_DOT)
PAIR_SUMS(pair_sqdist_any, rows->narrow, CR_AT_SQDIST)
PAIR_SUMS(pair_weights_any, rows->narrow, CR_AT_WEIGHTS)
#undef PAIR_SUMS

static void pair_sums(const cr_pair_rows *rows, unsigned count, cr_sum_at at, cr_row_sums *sums) {
    sums->plain = sums->special = false;
    (at == CR_AT_DOT      ? rows->narrow ? pair_dot_f32 : pair_dot_f64
     : at == CR_AT_SQDIST ? pair_sqdist_any
                          : pair_weights_any)(rows, count, sums);
}

/* Σ of products divided by Σ of weights. */
static unsigned round_averages(const cr_row_sums *products, const cr_row_sums *weights, unsigned count, uint8_t *to,
                               uint8_t *hard) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i += ROUND_LANES) {
        vf64 s, v, d, w, wv, wd;
        load_row_sum(products, i, &s, &v, &d);
        load_row_sum(weights, i, &w, &wv, &wd);
        const unsigned now = count - i < ROUND_LANES ? count - i : ROUND_LANES;
        const vf64 q = s / w, r = negative_product(q, w, s), by = q * wv, c = ((r + v) - by) / w;
        const vf64 off =
            (magnitude_of(r) + magnitude_of(v) + magnitude_of(by)) * 0x1p-48 + (d + magnitude_of(q) * wd) * 2;
        const vf64 doubt = off / magnitude_of(w), low = q + (c - doubt), high = q + (c + doubt);
        vu64 usual = (vu64)(magnitude_of(w) > 0x1p-900) & (vu64)(magnitude_of(w) < 0x1p900);
        usual &= (vu64)(magnitude_of(s) > 0x1p-900) & (vu64)(magnitude_of(s) < 0x1p900);
        usual &= (vu64)(magnitude_of(q) > 0x1p-900) & (vu64)(magnitude_of(q) < 0x1p900);
        usual &= (vu64)(wd < magnitude_of(w) * 0x1p-20) & (vu64)(magnitude_of(v) < magnitude_of(s) * 0x1p-50);
        const vu64 doubtful = ~(usual & (vu64)(low == high));
        store_doubles(to + i * sizeof(double), low, now);
        for (unsigned k = 0; k < now; k++) {
            hard[i + k] = doubtful[k] != 0;
            left += doubtful[k] != 0;
        }
    }
    return left;
}

#endif
