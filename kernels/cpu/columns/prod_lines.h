/* prod_lines: products of floats down columns: a line's elements into accumulators, accumulators into each other.
 *
 * Thread: any. Owner: the caller owns state and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_PROD_LINES_H
#define CURED_KERNELS_CPU_COLUMNS_PROD_LINES_H

#include "kernels/core/prod.h"
#include "kernels/cpu/columns/prod.h"
#include "kernels/cpu/family/prod_lanes.h"

/* Up to a vector's elements at p, into columns `column` and on. */
ALWAYS void prod_step(const cr_prod_line *to, cr_dtype dtype, size_t column, const uint8_t *p, size_t lanes) {
    const uint64_t top = (uint64_t)1 << 63;
    vu64 counts[3] = {{0}, {0}, {0}}, signs = {0}, exponents = {0};
    vu64 magnitude = prod_clean((vu64)prod_load(p, dtype), counts, &signs, &exponents);
    vf64 m = (vf64)((magnitude & ~prod_infinity) | prod_one), h = m, l = {0};
    vu64 word = to->opens ? (vu64){0} : LOAD(vu64, to->word + column);
    word = (word + exponents + (magnitude >> 52) + CR_PROD_BIAS) ^ (signs & top);
    if (!to->first) {
        vf64 old = LOAD(vf64, to->h + column), rest = LOAD(vf64, to->l + column), product = old * m;
        vf64 u = product_error(old, m, product) + rest * m;
        h = product + u;
        l = u - (h - product);
    }
    memcpy(to->word + column, &word, lanes * sizeof word[0]);
    memcpy(to->h + column, &h, lanes * sizeof h[0]);
    memcpy(to->l + column, &l, lanes * sizeof l[0]);
    if (__builtin_expect(!any_bit(counts[0] | counts[1] | counts[2]), 1)) return;
    uint64_t more[3][PROD_LANES];
    memcpy(more, counts, sizeof more);
    for (size_t i = 0; i < lanes && i < PROD_LANES; i++) {
        to->nans[column + i] += more[0][i];
        to->zeros[column + i] += more[1][i];
        to->infs[column + i] += more[2][i];
    }
}

ALWAYS void prod_line_of(const cr_prod_line *to, cr_dtype dtype, const uint8_t *p) {
    size_t size = cr_dtype_size(dtype), column = to->begin;
    for (; column + PROD_LANES <= to->end; column += PROD_LANES, p += PROD_LANES * size)
        prod_step(to, dtype, column, p, PROD_LANES);
    if (column == to->end) return;
    uint8_t pad[VB];
    prod_ones(pad, PROD_LANES, dtype);
    memcpy(pad, p, (to->end - column) * size);
    prod_step(to, dtype, column, pad, to->end - column);
}

static void prod_line(const cr_prod_line *to, cr_dtype dtype, const uint8_t *p) {
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F8_E4M3:
            prod_line_of(to, CR_F8_E4M3, p);
            break;
        case CR_FORMAT_F8_E5M2:
            prod_line_of(to, CR_F8_E5M2, p);
            break;
        case CR_FORMAT_F16:
            prod_line_of(to, CR_F16, p);
            break;
        case CR_FORMAT_BF16:
            prod_line_of(to, CR_BF16, p);
            break;
        case CR_FORMAT_F32:
            prod_line_of(to, CR_F32, p);
            break;
        case CR_FORMAT_F64:
        case CR_FORMAT_INT: /* have a product of their own */
            prod_line_of(to, CR_F64, p);
            break;
    }
}

static void prod_joins(double *h, double *l, const double *g, const double *k, size_t count) {
    size_t c = 0;
    for (; c + PROD_LANES <= count; c += PROD_LANES) {
        vf64 a = LOAD(vf64, h + c), b = LOAD(vf64, l + c), x = LOAD(vf64, g + c), y = LOAD(vf64, k + c);
        vf64 product = a * x, u = product_error(a, x, product) + (a * y + b * x), sum = product + u;
        b = u - (sum - product);
        memcpy(h + c, &sum, VB);
        memcpy(l + c, &b, VB);
    }
    for (; c < count; c++) cr_prod_join(&h[c], &l[c], g[c], k[c]);
}

#endif
