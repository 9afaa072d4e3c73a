/* float_prod: products of floats by the fixed tree of docs/NUMERICS.md.
 *
 * A block is 16 rows of 256 columns. Some columns at a time run down the rows, vectors of (h, l) with the exponents added up
 * as integers; then the columns halve. Bounds of the magnitudes show what is not a plain number; such columns are folded
 * again with ones in its place. Products by ones change nothing, so what a short block lacks is left out.
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_FLOAT_PROD_H
#define CURED_KERNELS_CPU_FAMILY_FLOAT_PROD_H

#include "kernels/core/prod.h"
#include "kernels/cpu/family/prod_lanes.h"

enum {
    PROD_ROWS = 16,
    PROD_COLUMNS = 256,
#if defined(VEC_AVX512)
    PROD_VECTORS = 8, /* a product depends on the one before for 16 cycles: this many are under way at once */
#else
    PROD_VECTORS = 4,
#endif
    PROD_GROUP = PROD_LANES * PROD_VECTORS
};

/* The columns of one block. */
struct prod_block {
    double h[PROD_COLUMNS], l[PROD_COLUMNS];
    int64_t exponent;
    uint64_t signs; /* the top bit */
};

/* One row of a group: (h, l) times the elements at p. */
ALWAYS void prod_row(const uint8_t *p, cr_dtype dtype, size_t size, bool careful, bool first, vf64 h[PROD_VECTORS],
                     vf64 l[PROD_VECTORS], vu64 *exponents, vu64 *signs, vu64 counts[3], vs32 *least, vs32 *most) {
#pragma GCC unroll 8
    for (size_t i = 0; i < PROD_VECTORS; i++) {
        vu64 bits = (vu64)prod_load(p + i * PROD_LANES * size, dtype), magnitude;
        if (careful) {
            magnitude = prod_clean(bits, counts, signs, exponents);
        } else {
            magnitude = bits & INT64_MAX;
            *signs ^= bits;
            *least = min_vs32(*least, (vs32)magnitude);
            *most = max_vs32(*most, (vs32)magnitude);
        }
        *exponents += magnitude >> 52;
        vf64 m = (vf64)((magnitude & ~prod_infinity) | prod_one);
        if (first) {
            h[i] = m;
            l[i] = (vf64){0};
            continue;
        }
        vf64 product = h[i] * m, e = product_error(h[i], m, product), u = e + l[i] * m, sum = product + u;
        l[i] = u - (sum - product);
        h[i] = sum;
    }
}

/* The upper half of each lane tells: below 2^-1022 (a zero, a denormal), or not finite. */
ALWAYS bool prod_plain(vs32 least, vs32 most) {
    vs64 odd = ((vs64)least < ((int64_t)1 << 52)) | ((vs64)most >= (int64_t)prod_infinity);
    return !any_bit((vu64)odd);
}

/* Columns [column, column + PROD_GROUP) of `rows` whole rows at p, and of one at last, which may be NULL. False: they hold
 * what only the careful way folds. */
ALWAYS bool prod_group(struct prod_block *block, cr_float_prod *part, const uint8_t *p, size_t rows,
                       const uint8_t *last, size_t column, cr_dtype dtype, bool careful, struct ahead ahead) {
    const size_t size = cr_dtype_size(dtype), stride = PROD_COLUMNS * size, all = rows + (last != NULL);
    vf64 h[PROD_VECTORS], l[PROD_VECTORS];
    vu64 exponents = {0}, signs = {0}, counts[3] = {{0}, {0}, {0}};
    vs32 least = ALL(vs32, INT32_MAX), most = {0};
    for (size_t r = 0; r < all; r++) {
        const uint8_t *row = (r < rows ? p + r * stride : last) + column * size;
        fetch(ahead, r * stride + column * size, PROD_GROUP * size);
        if (r == 0) {
            prod_row(row, dtype, size, careful, true, h, l, &exponents, &signs, counts, &least, &most);
        } else {
            prod_row(row, dtype, size, careful, false, h, l, &exponents, &signs, counts, &least, &most);
        }
    }
    if (!careful && !prod_plain(least, most)) return false;
    for (size_t i = 0; i < PROD_VECTORS; i++) {
        vu64 field = (vu64)h[i] >> 52;
        vf64 scale = (vf64)((2046 - field) << 52);
        h[i] *= scale;
        l[i] *= scale;
        exponents += field;
        memcpy(block->h + column + i * PROD_LANES, &h[i], VB);
        memcpy(block->l + column + i * PROD_LANES, &l[i], VB);
    }
    block->exponent += (int64_t)lanes_u64(exponents) - 1023 * (int64_t)((all + 1) * PROD_GROUP);
    for (size_t i = 0; i < PROD_LANES; i++) block->signs ^= signs[i];
    part->nans += lanes_u64(counts[0]);
    part->zeros += lanes_u64(counts[1]);
    part->infs += lanes_u64(counts[2]);
    return true;
}

#define INSTANCE(name, dtype)                                                                                          \
    NEVER bool name(struct prod_block *block, cr_float_prod *part, const uint8_t *p, size_t rows, const uint8_t *last, \
                    size_t column, bool careful, struct ahead ahead) {                                                 \
        return careful ? prod_group(block, part, p, rows, last, column, dtype, true, ahead)                            \
                       : prod_group(block, part, p, rows, last, column, dtype, false, ahead);                          \
    }
INSTANCE(prod_group_f8_e4m3, CR_F8_E4M3)
INSTANCE(prod_group_f8_e5m2, CR_F8_E5M2)
INSTANCE(prod_group_f16, CR_F16)
INSTANCE(prod_group_bf16, CR_BF16)
INSTANCE(prod_group_f32, CR_F32)
INSTANCE(prod_group_f64, CR_F64)
#undef INSTANCE

/* Columns c and c + width/2, and so on down to one. h stays below 2^256. */
static void prod_columns(struct prod_block *block, size_t width) {
    while (width > 1) {
        width /= 2;
        size_t c = 0;
        for (; c + PROD_LANES <= width; c += PROD_LANES) {
            vf64 h = LOAD(vf64, block->h + c), l = LOAD(vf64, block->l + c);
            vf64 g = LOAD(vf64, block->h + width + c), k = LOAD(vf64, block->l + width + c);
            vf64 product = h * g, u = product_error(h, g, product) + (h * k + l * g), sum = product + u;
            l = u - (sum - product);
            memcpy(block->h + c, &sum, VB);
            memcpy(block->l + c, &l, VB);
        }
        for (; c < width; c++) cr_prod_join(&block->h[c], &block->l[c], block->h[width + c], block->l[width + c]);
    }
}

static void prod_float_tile(cr_float_prod *part, const uint8_t *p, size_t n, uint64_t index, cr_dtype dtype,
                            struct ahead ahead) {
    const size_t size = cr_dtype_size(dtype);
    bool careful = false;
    struct prod_block block;
    uint8_t pad[PROD_COLUMNS * sizeof(double)];
    if (ahead.shift == 0) ahead.base = (uintptr_t)p + CR_PROD_BLOCK * size; /* alone: what comes next is a block away */
    for (size_t done = 0; done < n; done += CR_PROD_BLOCK) {
        size_t now = n - done < CR_PROD_BLOCK ? n - done : CR_PROD_BLOCK;
        size_t rows = now / PROD_COLUMNS, rest = now % PROD_COLUMNS, used = PROD_COLUMNS;
        while (rows == 0 && used / 2 >= rest) used /= 2; /* the columns that are not ones */
        const size_t width = used < PROD_GROUP ? PROD_GROUP : used;
        if (rest != 0) {
            memcpy(pad, p + rows * PROD_COLUMNS * size, rest * size);
            prod_ones(pad + rest * size, width - rest, dtype);
        }
        block.exponent = 0;
        block.signs = 0;
        for (size_t column = 0; column < width; column += PROD_GROUP) {
            bool (*group)(struct prod_block *, cr_float_prod *, const uint8_t *, size_t, const uint8_t *, size_t, bool,
                          struct ahead) = dtype == CR_F8_E4M3   ? prod_group_f8_e4m3
                                          : dtype == CR_F8_E5M2 ? prod_group_f8_e5m2
                                          : dtype == CR_F16     ? prod_group_f16
                                          : dtype == CR_BF16    ? prod_group_bf16
                                          : dtype == CR_F32     ? prod_group_f32
                                                                : prod_group_f64;
            uint64_t odd = part->nans + part->zeros + part->infs;
            const uint8_t *last = rest ? pad : NULL;
            if (careful || !group(&block, part, p, rows, last, column, false, ahead)) {
                group(&block, part, p, rows, last, column, true, ahead);
                careful = odd != part->nans + part->zeros + part->infs;
            }
        }
        prod_columns(&block, used);
        block.exponent += cr_prod_normalise(&block.h[0], &block.l[0]);
        cr_float_prod_add(part, index / CR_PROD_BLOCK + done / CR_PROD_BLOCK, block.h[0], block.l[0], block.exponent);
        part->negative ^= block.signs >> 63;
        p += now * size;
        ahead = ahead_by(ahead, now * size);
    }
}

#endif
