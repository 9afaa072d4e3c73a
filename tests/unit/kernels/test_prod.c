/* prod: products of floats by the fixed tree on every instruction set the machine has, and exact products of integers. The
 * tree's bits themselves are the property run's business (tests/property). */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/core/prod.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};
enum { ISAS = sizeof isas / sizeof isas[0] };
#define EACH_ISA(i)                \
    for (int i = 0; i < ISAS; i++) \
        if (cr_cpu_select(isas[i], NULL) == CR_OK)

static uint64_t random_state = 88172645463325252u;

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(void) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}

static cr_value answer_with(cr_dtype dtype, const void *x, uint64_t n, cr_finish_opts opts) {
    cr_partial p;
    cr_value v;
    cr_partial_init(&p, dtype, CR_FAM_PROD);
    cr_cpu_fold(&p, x, n, 0);
    cr_partial_finish(&p, CR_OP_PROD, &opts, &v);
    return v;
}

static uint64_t bits_of(const cr_value *v) {
    uint64_t bits = 0;
    ck_assert_msg(v->error.code == CR_OK, "%s", v->error.text);
    memcpy(&bits, v->bytes, v->len < 8 ? v->len : 8);
    return bits;
}

static double answer(const double *x, uint64_t n) {
    cr_value v = answer_with(CR_F64, x, n, (cr_finish_opts){0});
    uint64_t bits = bits_of(&v);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

START_TEST(signs_zeros_and_infinities) {
    static const struct {
        double x[4];
        uint64_t bits, skip;
    } cases[] = {
        {{2, 3, -4, 1}, 0xc038000000000000, 0xc038000000000000},
        {{-2, 3, -4, 1}, 0x4038000000000000, 0x4038000000000000},
        {{-2, 0, 4, 1}, 0, 0},
        {{2, -0.0, 4, 1}, 0, 0},
        {{-INFINITY, 3, 1, 1}, 0xfff0000000000000, 0xfff0000000000000},
        {{-INFINITY, -3, 1, 1}, 0x7ff0000000000000, 0x7ff0000000000000},
        {{INFINITY, 0, 1, 1}, 0x7ff8000000000000, 0x7ff8000000000000},
        {{NAN, 3, 1, 1}, 0x7ff8000000000000, 0x4008000000000000},
        {{-NAN, -3, 1, 1}, 0x7ff8000000000000, 0xc008000000000000},
        {{NAN, INFINITY, 0, 1}, 0x7ff8000000000000, 0x7ff8000000000000},
        {{NAN, 0, -1, 1}, 0x7ff8000000000000, 0},
        {{0x1p-1074, -0x1p-1074, 1, 1}, 0x8000000000000000, 0x8000000000000000},
        {{0x1p-1074, 0x1p1000, 1, 1}, 0x3b50000000000000, 0x3b50000000000000},
        {{-0x1p1000, 0x1p1000, 1, 1}, 0xfff0000000000000, 0xfff0000000000000},
        {{-0x1p1000, 0x1p1000, 0x1p-1000, 0x1p-1000}, 0xbff0000000000000, 0xbff0000000000000},
    };
    EACH_ISA(i) {
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            cr_value v = answer_with(CR_F64, cases[k].x, 4, (cr_finish_opts){0});
            ck_assert_msg(bits_of(&v) == cases[k].bits, "%s, case %zu: %016llx", isas[i], k,
                          (unsigned long long)bits_of(&v));
            v = answer_with(CR_F64, cases[k].x, 4, (cr_finish_opts){.nan = CR_NAN_SKIP});
            ck_assert_msg(bits_of(&v) == cases[k].skip, "%s, case %zu, skip", isas[i], k);
        }
        ck_assert(answer(NULL, 0) == 1);
    }
}
END_TEST

START_TEST(rounded_once_to_the_type_asked_for) {
    /* Just above the middle between 1 and the next f32; f64 would round it to the middle, from where it falls to 1. */
    static const double trap[] = {1 + 0x1p-24 + 0x1p-52, 1 - 0x1p-53}, edge[] = {65520, 1}, low[] = {65504, 1.000122};
    EACH_ISA(i) {
        cr_value v = answer_with(CR_F64, trap, 2, (cr_finish_opts){.result_dtype = CR_F32});
        ck_assert_uint_eq(bits_of(&v), 0x3f800001);
        v = answer_with(CR_F64, edge, 2, (cr_finish_opts){.result_dtype = CR_F16});
        ck_assert_uint_eq(bits_of(&v), 0x7c00);
        v = answer_with(CR_F64, low, 2, (cr_finish_opts){.result_dtype = CR_F16});
        ck_assert_uint_eq(bits_of(&v), 0x7bff);
    }
    cr_finish_opts wrap = {.overflow = CR_OVERFLOW_WRAP}, whole = {.result_dtype = CR_I64};
    ck_assert_int_eq(cr_finish_check(CR_OP_PROD, CR_F32, &wrap, NULL), CR_INVALID_ARGUMENT);
    ck_assert_int_eq(cr_finish_check(CR_OP_PROD, CR_F32, &whole, NULL), CR_INVALID_ARGUMENT);
}
END_TEST

/* What lies far below the result's last bit still decides a tie, on either side. */
START_TEST(the_smallest_rest_decides) {
    static const struct {
        double h, l;
        uint64_t bits;
    } cases[] = {
        {1 + 0x1p-24, 0, 0x3f800000},
        {1 + 0x1p-24, -0x1p-140, 0x3f800000},
        {1 + 0x1p-24, 0x1p-140, 0x3f800001},
        {1 + 0x3p-24, -0x1p-140, 0x3f800001},
        {1 + 0x3p-24, 0x1p-200, 0x3f800002},
        {1 + 0x3p-24, -0x1p-1074, 0x3f800001},
        {1 + 0x1p-24, 0x1p-1074, 0x3f800001},
        {1 + 0x3p-24, -0x1.8p-128, 0x3f800001},
        {1, -0x1p-60, 0x3f800000},
        {1 + 0x1p-24, 0x1p-100, 0x3f800001},
        {1 + 0x3p-24, -0x1p-100, 0x3f800001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_partial p;
        cr_value v;
        cr_finish_opts opts = {.result_dtype = CR_F32};
        cr_partial_init(&p, CR_F64, CR_FAM_PROD);
        cr_float_prod_add(&p.float_prod, 5, cases[i].h, cases[i].l, 0);
        cr_partial_finish(&p, CR_OP_PROD, &opts, &v);
        ck_assert_msg(bits_of(&v) == cases[i].bits, "case %zu: %08llx", i, (unsigned long long)bits_of(&v));
    }
}
END_TEST

/* Blocks that are not there are ones: with the ones written out, whole trees give the same root. */
START_TEST(the_root_is_that_of_the_whole_tree) {
    for (int round = 0; round < 500; round++) {
        enum { BLOCKS = 64 };
        cr_partial some, all;
        cr_partial_init(&some, CR_F64, CR_FAM_PROD);
        cr_partial_init(&all, CR_F64, CR_FAM_PROD);
        for (uint64_t b = 0; b < BLOCKS; b++) {
            double h = 1 + (double)(next_random() >> 12) * 0x1p-52, l = (double)(next_random() >> 12) * 0x1p-106;
            int64_t e = (int64_t)(next_random() % 100000) - 50000;
            bool here = next_random() % 8 < (uint64_t)(round % 8 + 1);
            if (here) cr_float_prod_add(&some.float_prod, b, h, l, e);
            cr_float_prod_add(&all.float_prod, b, here ? h : 1, here ? l : 0, here ? e : 0);
        }
        ck_assert_uint_eq(all.float_prod.count, 1);
        cr_prod_node want = cr_float_prod_root(&all.float_prod), got = cr_float_prod_root(&some.float_prod);
        ck_assert_msg(want.h == got.h && want.l == got.l && want.exponent == got.exponent, "round %d", round);
    }
}
END_TEST

/* Far beyond every exponent on the way, and back. */
START_TEST(exponents_never_overflow) {
    enum { N = 100000 };
    double *x = malloc(N * sizeof *x);
    EACH_ISA(i) {
        for (size_t k = 0; k < N; k++) x[k] = k < N / 2 ? 0x1.8p1000 : 0x1p-1000;
        for (size_t k = 0; k < 500; k++) x[N - 1 - k] = 0x1p-1074;
        /* 1.5^50000 = 2^29248.1…: 2^(500·74) goes away in the denormals */
        double low = answer(x, N);
        ck_assert(low == 0 && !signbit(low));
        for (size_t k = 0; k < N; k++) x[k] = k < N / 2 ? 0x1p1000 : 0x1p-1000;
        for (size_t k = 0; k < 20; k++) x[k * 777 + 50001] = -0x1p-1074;
        for (size_t k = 0; k < 3; k++) x[k * 7] = 0x1p1023;
        ck_assert(answer(x, N) == 0); /* 2^(3·23 − 20·74) */
        for (size_t k = 0; k < 60; k++) x[k * 7] = 0x1p1023;
        ck_assert(answer(x, N) == 0x1p-100); /* 2^(60·23 − 20·74) */
        x[0] = -x[0];
        ck_assert(answer(x, N) == -0x1p-100);
        for (size_t k = 0; k < N; k++) x[k] = k % 5 == 2 ? -0x1p-1074 : 0x1.fffffffffffffp-1;
        ck_assert(answer(x, N) == 0);
        for (size_t k = 0; k < N; k++) x[k] = 1e300;
        ck_assert(isinf(answer(x, N)));
    }
    free(x);
}
END_TEST

static const cr_dtype floats[] = {CR_F16, CR_BF16, CR_F32, CR_F64};

/* Values near one, with now and then something else. */
static void fill(uint8_t *to, uint64_t n, cr_dtype dtype, unsigned odd_one_in) {
    size_t size = cr_dtype_size(dtype);
    static const uint64_t one[] = {
        [CR_F16] = 0x3c00, [CR_BF16] = 0x3f80, [CR_F32] = 0x3f800000, [CR_F64] = 0x3ff0000000000000};
    static const int mantissa[] = {[CR_F16] = 10, [CR_BF16] = 7, [CR_F32] = 23, [CR_F64] = 52};
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits = next_random(), top = bits & (uint64_t)1 << (8 * size - 1);
        if (odd_one_in == 0 || (bits >> 8) % odd_one_in)
            bits = (one[dtype] & -((bits >> 40 & 1))) | top | (bits & (((uint64_t)1 << mantissa[dtype]) - 1)) |
                   (one[dtype] - ((uint64_t)1 << mantissa[dtype]));
        memcpy(to + i * size, &bits, size);
    }
}

static void same_state(const cr_partial *a, const cr_partial *b, const char *what) {
    const cr_float_prod *x = &a->float_prod, *y = &b->float_prod;
    ck_assert_uint_eq(a->n, b->n);
    ck_assert(!x->lost && !y->lost);
    ck_assert_msg(x->nans == y->nans && x->zeros == y->zeros && x->infs == y->infs && x->negative == y->negative,
                  "%s: counts differ", what);
    ck_assert_uint_eq(x->count, y->count);
    for (uint32_t i = 0; i < x->count; i++)
        ck_assert_msg(memcmp(&x->nodes[i], &y->nodes[i], sizeof x->nodes[i]) == 0, "%s: node %u differs", what, i);
}

START_TEST(any_split_and_order_gives_the_same_nodes) {
    enum { BLOCKS = 45, N = BLOCKS * CR_PROD_BLOCK + 777, PARTS = 12 };
    uint8_t *x = malloc(N * 8);
    for (size_t d = 0; d < 4; d++) {
        size_t size = cr_dtype_size(floats[d]);
        fill(x, N, floats[d], d == 2 ? 0 : 5000);
        cr_partial want;
        bool first = true;
        EACH_ISA(i) {
            cr_partial whole;
            cr_partial_init(&whole, floats[d], CR_FAM_PROD);
            cr_cpu_fold(&whole, x, N, 0);
            if (first) want = whole;
            first = false;
            same_state(&want, &whole, isas[i]);
            cr_partial parts[PARTS];
            for (size_t k = 0; k < PARTS; k++) cr_partial_init(&parts[k], floats[d], CR_FAM_PROD);
            for (uint64_t at = 0; at < N;) {
                uint64_t now = (1 + next_random() % 4) * CR_PROD_BLOCK;
                if (now > N - at) now = N - at;
                cr_cpu_fold(&parts[next_random() % PARTS], x + at * size, now, at);
                at += now;
            }
            for (size_t live = PARTS; live > 1; live--) {
                size_t from = next_random() % (live - 1);
                cr_partial_merge(&parts[live - 1], &parts[from]);
                ck_assert(!parts[live - 1].float_prod.lost);
                parts[from] = parts[live - 1];
            }
            same_state(&want, &parts[0], "merged");
        }
    }
    free(x);
}
END_TEST

START_TEST(an_incomplete_block_lacks_ones) {
    static uint8_t x[CR_PROD_BLOCK * 8];
    static const uint64_t one[] = {0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000};
    EACH_ISA(i) {
        for (size_t d = 0; d < 4; d++) {
            size_t size = cr_dtype_size(floats[d]);
            for (uint64_t n = 1; n <= CR_PROD_BLOCK; n += n < 600 ? 1 : 433) {
                fill(x, n, floats[d], 100);
                for (uint64_t k = n; k < CR_PROD_BLOCK; k++) memcpy(x + k * size, &one[d], size);
                cr_partial cut, whole;
                cr_partial_init(&cut, floats[d], CR_FAM_PROD);
                cr_partial_init(&whole, floats[d], CR_FAM_PROD);
                cr_cpu_fold(&cut, x, n, 3 * CR_PROD_BLOCK);
                cr_cpu_fold(&whole, x, CR_PROD_BLOCK, 3 * CR_PROD_BLOCK);
                cut.n = CR_PROD_BLOCK;
                same_state(&whole, &cut, isas[i]);
            }
        }
    }
}
END_TEST

START_TEST(nothing_outside_is_read) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (2 * CR_PROD_BLOCK * 8 + page - 1) / page * page;
    uint8_t *map = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(map != MAP_FAILED);
    ck_assert_int_eq(mprotect(map + room, page, PROT_NONE), 0);
    EACH_ISA(i) {
        for (size_t d = 0; d < 4; d++) {
            for (uint64_t n = 0; n <= 2 * CR_PROD_BLOCK; n += n < 600 ? 1 : 331) {
                cr_partial p;
                cr_partial_init(&p, floats[d], CR_FAM_SINGLE);
                cr_cpu_fold(&p, map + room - n * cr_dtype_size(floats[d]), n, 0);
                ck_assert_uint_eq(p.float_prod.zeros, n);
            }
        }
    }
    munmap(map, room + page);
}
END_TEST

static void add_blocks(cr_partial *p, uint64_t first, uint64_t count, uint64_t step) {
    for (uint64_t b = 0; b < count; b++) cr_float_prod_add(&p->float_prod, first + b * step, 1.5, 0, 1);
}

START_TEST(too_many_gaps_are_refused) {
    cr_partial even, odd, both, more;
    cr_partial_init(&even, CR_F32, CR_FAM_PROD);
    odd = more = even;
    add_blocks(&even, 0, 100, 2);
    add_blocks(&odd, 1, 100, 2);
    add_blocks(&more, 400, 29, 2);
    both = even;
    cr_partial_merge(&both, &odd); /* they meet: 200 blocks in a row */
    ck_assert(!both.float_prod.lost);
    ck_assert_uint_eq(both.float_prod.count, 3);
    cr_prod_node root = cr_float_prod_root(&both.float_prod);
    ck_assert_int_eq(root.exponent, 200 + 116); /* 1.5^200 = 2^116.99… */
    cr_partial_merge(&even, &more);
    ck_assert(even.float_prod.lost);
    cr_value v;
    cr_finish_opts opts = {0};
    cr_partial_finish(&even, CR_OP_PROD, &opts, &v);
    ck_assert_int_eq(v.error.code, CR_RESOURCE_EXHAUSTED);
    cr_partial_merge(&odd, &even);
    ck_assert(odd.float_prod.lost); /* what is lost stays so */
    cr_partial_init(&even, CR_F32, CR_FAM_PROD);
    add_blocks(&even, 0, 129, 2);
    ck_assert(even.float_prod.lost);
    /* The very first and the very last block there can be. */
    cr_partial_init(&even, CR_F32, CR_FAM_PROD);
    add_blocks(&even, 0, 2, ((uint64_t)1 << 51) - 1);
    root = cr_float_prod_root(&even.float_prod);
    ck_assert(root.h == 1.125 && root.exponent == 3);
}
END_TEST

START_TEST(a_strange_floating_point_state_changes_nothing) {
    static double x[3 * CR_PROD_BLOCK];
    fill((uint8_t *)x, 3 * CR_PROD_BLOCK, CR_F64, 0);
    EACH_ISA(i) {
        cr_partial plain, parts[2];
        cr_partial_init(&plain, CR_F64, CR_FAM_PROD);
        parts[0] = parts[1] = plain;
        cr_cpu_fold(&plain, x, 3 * CR_PROD_BLOCK, 0);
        cr_prod_node want = cr_float_prod_root(&plain.float_prod);
        cr_cpu_fold(&parts[0], x + CR_PROD_BLOCK, 2 * CR_PROD_BLOCK, CR_PROD_BLOCK);
#if defined(__x86_64__)
        unsigned before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(0xffc0); /* flush to zero, denormals are zero, toward zero */
#endif
        cr_cpu_fold(&parts[1], x, CR_PROD_BLOCK, 0);
        cr_partial_merge(&parts[0], &parts[1]);
        cr_prod_node got = cr_float_prod_root(&parts[0].float_prod);
#if defined(__x86_64__)
        __builtin_ia32_ldmxcsr(before);
#endif
        ck_assert_int_eq(memcmp(&want, &got, sizeof got), 0);
    }
}
END_TEST

START_TEST(integers_are_exact_in_any_type) {
    static const int64_t x[] = {INT64_MIN, INT64_MIN, -2, 0};
    cr_value v = answer_with(CR_I64, x, 2, (cr_finish_opts){.result_dtype = CR_I128});
    ck_assert_int_eq(v.error.code, CR_OK);
    ck_assert_uint_eq(v.bytes[15], 0x40);
    v = answer_with(CR_I64, x, 3, (cr_finish_opts){.result_dtype = CR_I128});
    ck_assert_int_eq(v.error.code, CR_OK); /* −2^127 just fits */
    ck_assert_uint_eq(v.bytes[15], 0x80);
    v = answer_with(CR_I64, x, 3, (cr_finish_opts){0});
    ck_assert_int_eq(v.error.code, CR_OUT_OF_RANGE);
    ck_assert_ptr_nonnull(strstr(v.error.text, "-170141183460469231731687303715884105728"));
    /* 2^1023 is the largest power of two in f64; 2^1024 is beyond it, however it is cut. */
    int64_t twos[1025];
    for (size_t i = 0; i < 1025; i++) twos[i] = i == 7 ? -2 : 2;
    v = answer_with(CR_I64, twos, 1023, (cr_finish_opts){.result_dtype = CR_F64});
    ck_assert_uint_eq(bits_of(&v), 0xffe0000000000000);
    v = answer_with(CR_I64, twos, 1024, (cr_finish_opts){.result_dtype = CR_F64});
    ck_assert_uint_eq(bits_of(&v), 0xfff0000000000000);
    v = answer_with(CR_I64, twos, 1024, (cr_finish_opts){0});
    ck_assert_ptr_nonnull(strstr(v.error.text, "-2^1024"));
    cr_partial a, b;
    cr_partial_init(&a, CR_I64, CR_FAM_PROD);
    b = a;
    cr_cpu_fold(&a, twos, 1000, 0);
    cr_cpu_fold(&b, twos + 1000, 23, 1000);
    cr_partial_merge(&a, &b);
    ck_assert(!a.prod.over && a.prod.words == 16 && a.prod.magnitude[15] == (uint64_t)1 << 63);
    cr_partial_init(&b, CR_I64, CR_FAM_PROD);
    cr_cpu_fold(&b, twos + 1023, 1, 1023);
    cr_partial_merge(&a, &b);
    ck_assert(a.prod.over && a.prod.words == 0 && a.prod.negative && a.prod.wrap == 0);
    cr_partial_merge(&b, &a);
    ck_assert(b.prod.over);
    v = answer_with(CR_I64, x, 4, (cr_finish_opts){.result_dtype = CR_F32});
    ck_assert_uint_eq(bits_of(&v), 0);
}
END_TEST

CR_CHECK_MAIN("kernels/prod") {
    tcase_add_test(tc, signs_zeros_and_infinities);
    tcase_add_test(tc, rounded_once_to_the_type_asked_for);
    tcase_add_test(tc, the_smallest_rest_decides);
    tcase_add_test(tc, the_root_is_that_of_the_whole_tree);
    tcase_add_test(tc, exponents_never_overflow);
    tcase_add_test(tc, any_split_and_order_gives_the_same_nodes);
    tcase_add_test(tc, an_incomplete_block_lacks_ones);
    tcase_add_test(tc, nothing_outside_is_read);
    tcase_add_test(tc, too_many_gaps_are_refused);
    tcase_add_test(tc, a_strange_floating_point_state_changes_nothing);
    tcase_add_test(tc, integers_are_exact_in_any_type);
}
