/* view: the fold of a masked view, for every op, type, kind of mask and instruction set, against a fold of one element after the other.
 * Products of floats go by places, so they are compared with the fold of the array in which ones stand for what is left out.
 *
 * Thread: main. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

enum { LONGEST = 20000, MASKS = 7, FIRST = 3 * CR_PROD_BLOCK };

static const char *const isas[] = {"portable", "avx2", "avx512"};
static uint64_t state;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Whether element i counts, by the kind of mask: none, few, half, most, all; and runs of thousands, with and without single others. */
static bool counts(int kind, size_t i, uint64_t bits) {
    const bool run = i / 5000 % 2 == 0;
    return kind == 0   ? false
           : kind == 1 ? bits % 500 == 0
           : kind == 2 ? bits % 2 == 0
           : kind == 3 ? bits % 500 != 0
           : kind == 4 ? true
           : kind == 5 ? run
                       : run != (bits % 1000 == 0);
}

/* Elements as they may lie anywhere: any bits, of which some are NaNs, infinities, zeros and equal to others. */
static void fill(cr_dtype dtype, int kind, uint8_t *x, size_t n) {
    const size_t size = cr_dtype_size(dtype);
    const unsigned sign = 8 * (unsigned)size - 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = draw();
        if (kind == 1) bits = bits >> 61 == 0 ? 0 : (uint64_t)(i + 1) << (sign - 5); /* near each other */
        if (kind == 2 &&
            cr_dtype_kind(dtype) == CR_KIND_FLOAT) { /* ordinary floats, so that minima and sums are no NaN */
            const unsigned exponent_at = dtype == CR_F8_E4M3   ? 3
                                         : dtype == CR_F8_E5M2 ? 2
                                         : dtype == CR_F16     ? 10
                                         : dtype == CR_BF16    ? 7
                                         : dtype == CR_F32     ? 23
                                                               : 52;
            const uint64_t least = dtype == CR_F8_E4M3                      ? 4
                                   : dtype == CR_F8_E5M2 || dtype == CR_F16 ? 12
                                   : dtype == CR_F64                        ? 1020
                                                                            : 124,
                           exponent = least + bits % 4;
            bits =
                (bits >> 60 & 1) << sign | exponent << exponent_at | (bits >> 8 & (((uint64_t)1 << exponent_at) - 1));
        }
        if (dtype == CR_BOOL) bits &= 1;
        memcpy(x + i * size, &bits, size);
    }
}

static void one(cr_dtype dtype, uint8_t *to) {
    const uint64_t bits = dtype == CR_F8_E4M3   ? 0x38
                          : dtype == CR_F8_E5M2 ? 0x3c
                          : dtype == CR_F16     ? 0x3c00
                          : dtype == CR_BF16    ? 0x3f80
                          : dtype == CR_F32     ? 0x3f800000
                                                : 0x3ff0000000000000;
    memcpy(to, &bits, cr_dtype_size(dtype));
}

static void put(uint8_t *mask, cr_mask_kind kind, size_t i, bool set) {
    if (kind == CR_MASK_BYTES)
        mask[i] = set ? (uint8_t)(1 + i % 255) : 0; /* any byte but 0 is true */
    else if (set)
        mask[i / 8] |= (uint8_t)(1 << i % 8);
    else
        mask[i / 8] &= (uint8_t) ~(1 << i % 8);
}

/* One array, its mask in both forms, and what counts. */
static struct {
    cr_dtype dtype;
    size_t n, size;
    uint8_t *x, *ones; /* x with ones for what is left out, of floats */
    bool keep[LONGEST];
    uint8_t mask[LONGEST + 64];
} a;

static cr_view view_of(cr_mask_kind kind, bool leaves_out, size_t first) {
    memset(a.mask, 0xa5, sizeof a.mask);
    for (size_t i = 0; i < a.n; i++) put(a.mask, kind, first + i, a.keep[i] != leaves_out);
    return (cr_view){.data = a.x, .mask = {a.mask, first, kind, leaves_out}};
}

static void same(const cr_partial *p, const cr_partial *want, cr_op op, const char *what) {
    for (int nan = 0; nan < 2; nan++) {
        const cr_finish_opts opts = {.nan = (cr_nan_policy)nan};
        cr_value got, expected;
        if (cr_finish_check(op, a.dtype, &opts, NULL) != CR_OK) continue;
        cr_partial_finish(p, op, &opts, &got);
        cr_partial_finish(want, op, &opts, &expected);
        const bool equal =
            got.error.code == expected.error.code &&
            (got.error.code != CR_OK ||
             (got.dtype == expected.dtype && got.len == expected.len && got.at_len == expected.at_len &&
              memcmp(got.bytes, expected.bytes, got.len) == 0 && memcmp(got.at, expected.at, got.at_len) == 0));
        ck_assert_msg(equal, "%s of %zu %s, %s, nan %d", cr_op_name(op), a.n, cr_dtype_name(a.dtype), what, nan);
    }
}

/* By the mask's two forms, and cut in two; whole: of all ops at once. */
static void compare(uint32_t families, const cr_partial *want, const cr_partial *product) {
    const bool floats = cr_dtype_kind(a.dtype) == CR_KIND_FLOAT;
    for (int form = 0; form < 4; form++) {
        const cr_mask_kind kind = form % 2 ? CR_MASK_BITS : CR_MASK_BYTES;
        const cr_view view = view_of(kind, form / 2, form * 5 % 9);
        const size_t cut = a.n / 2 / CR_PROD_BLOCK * CR_PROD_BLOCK;
        const cr_view rest = cr_view_from(view, cut, a.size);
        cr_partial whole, cut_one, cut_two;
        cr_partial_init(&whole, a.dtype, families);
        cr_partial_init(&cut_one, a.dtype, families);
        cr_partial_init(&cut_two, a.dtype, families);
        cr_cpu_fold_view(&whole, &view, a.n, FIRST);
        cr_cpu_fold_view(&cut_two, &rest, a.n - cut, FIRST + cut);
        cr_cpu_fold_view(&cut_one, &view, cut, FIRST);
        cr_partial_merge(&cut_two, &cut_one);
        for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op)) {
            const uint32_t needs = cr_op_needs(op, a.dtype);
            if ((needs & ~families) != 0 || draw() % 4 != 0) continue; /* answering takes longer than folding */
            const cr_partial *expected = floats && needs == CR_FAM_PROD ? product : want;
            same(&whole, expected, op, form % 2 ? "bits" : "bytes");
            same(&cut_two, expected, op, "cut");
        }
    }
}

static void all_ways(int mask) {
    const uint32_t all = CR_FAM_KNOWN_SUMS | CR_FAM_EXTREMA | CR_FAM_COUNTS | CR_FAM_PROD |
                         (cr_dtype_kind(a.dtype) == CR_KIND_FLOAT ? 0 : CR_FAM_BITS);
    static const uint32_t together[] = {CR_FAM_SUM,        CR_FAM_SUMSQ,
                                        CR_FAM_KNOWN_SUMS, CR_FAM_EXTREMA,
                                        CR_FAM_PROD,       CR_FAM_SUM | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS,
                                        UINT32_MAX};
    static cr_partial want, product;
    cr_partial_init(&want, a.dtype, all);
    cr_partial_init(&product, a.dtype, CR_FAM_PROD);
    memcpy(a.ones, a.x, a.n * a.size);
    for (size_t i = 0; i < a.n; i++) {
        a.keep[i] = counts(mask, i, draw());
        const uint32_t families = cr_dtype_kind(a.dtype) == CR_KIND_FLOAT ? all & ~CR_FAM_PROD : all;
        want.families = families; /* an element has no place in a product of floats by itself */
        if (a.keep[i]) cr_cpu_fold(&want, a.x + i * a.size, 1, FIRST + i);
        if (!a.keep[i] && cr_dtype_kind(a.dtype) == CR_KIND_FLOAT) one(a.dtype, a.ones + i * a.size);
    }
    cr_cpu_fold(&product, a.ones, a.n, FIRST);
    product.n = want.n;
    for (size_t f = 0; f < sizeof together / sizeof *together; f++) compare(together[f] & all, &want, &product);
}

START_TEST(folds_what_counts) {
    static const size_t lengths[] = {0, 1, 63, 64, 65, 4096, 9001, LONGEST};
    if (cr_cpu_select(isas[_i % 3], NULL) != CR_OK) return; /* this machine has none */
    state = 88172645463325252u + (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (int dtype = 1; dtype <= CR_DTYPE_INPUTS; dtype++) {
        if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
        a.dtype = (cr_dtype)dtype;
        a.size = cr_dtype_size(a.dtype);
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            a.n = lengths[l];
            a.x = malloc(a.n * a.size + 1);
            a.ones = malloc(a.n * a.size + 1);
            for (int mask = 0; mask < MASKS; mask++) {
                if (draw() % (1 + a.n / 1000) != 0) continue; /* a sample of the long ones */
                fill(a.dtype, _i / 3, a.x, a.n);
                all_ways(mask);
            }
            free(a.x);
            free(a.ones);
        }
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

CR_CHECK_MAIN("kernels/view") {
    tcase_add_loop_test(tc, folds_what_counts, 0, 9);
    tcase_set_timeout(tc, 300);
}
