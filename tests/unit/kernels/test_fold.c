/* fold: on every instruction set the machine has: bounds, alignment, long runs, the floating-point state. The values
 * themselves are the property run's business (tests/property). */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/core/big.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"

static const char *const isas[] = {"portable", "avx2", "avx512"};
enum { ISAS = sizeof isas / sizeof isas[0] };
#define EACH_ISA(i)                \
    for (int i = 0; i < ISAS; i++) \
        if (cr_cpu_select(isas[i], NULL) == CR_OK)

static uint32_t families_of(cr_dtype dtype) {
    return cr_dtype_kind(dtype) == CR_KIND_FLOAT ? CR_FAM_SINGLE & ~CR_FAM_PROD : CR_FAM_SINGLE;
}

START_TEST(selecting) {
    cr_error error;
    ck_assert_int_eq(cr_cpu_select("portable", NULL), CR_OK);
    ck_assert_str_eq(cr_cpu_isa(), "portable");
    ck_assert_int_eq(cr_cpu_select("sse9", &error), CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.text, "sse9"));
    ck_assert_str_eq(cr_cpu_isa(), "portable");
    ck_assert_int_eq(cr_cpu_select(NULL, NULL), CR_OK);
}
END_TEST

/* Data that ends where readable memory ends, at every alignment of its start. */
START_TEST(nothing_outside_is_read) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *map = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(map != MAP_FAILED);
    ck_assert_int_eq(mprotect(map, page, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(map + 3 * page, page, PROT_NONE), 0);
    memset(map + page, 0x3f, 2 * page);
    EACH_ISA(i) {
        for (int dtype = CR_BOOL; dtype <= CR_DTYPE_INPUTS; dtype++) {
            if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
            size_t size = cr_dtype_size((cr_dtype)dtype);
            for (size_t n = 0; n <= 200; n++) {
                cr_partial p;
                cr_partial_init(&p, (cr_dtype)dtype, families_of((cr_dtype)dtype));
                cr_cpu_fold(&p, map + 3 * page - n * size, n, 1000); /* ends at the end */
                cr_cpu_fold(&p, map + page, n, 0);                   /* begins at the beginning */
                if (n > 1) cr_cpu_fold(&p, map + 2 * page + n % 64, n - 1, 5000);
                ck_assert_uint_eq(p.n, n == 0 ? 0 : n == 1 ? 2 : 3 * n - 1);
                if (n > 0) ck_assert_uint_eq(p.min.index, 0);
            }
        }
    }
    munmap(map, 4 * page);
}
END_TEST

/* Bins take whole counts: more elements of two far exponents than any counter or lane between two flushes. */
START_TEST(long_runs_in_the_bins_stay_exact) {
    enum { N = 1 << 21 };
    float *x = malloc(N * sizeof *x);
    double *y = malloc(N * sizeof *y);
    for (size_t i = 0; i < N; i++) {
        x[i] = i % 2 ? FLT_MAX : 0x1.fffffep-60f;
        y[i] = i % 2 ? DBL_MAX : 0x1.fffffffffffffp-600;
    }
    EACH_ISA(i) {
        cr_partial p;
        cr_big sum, half;
        cr_partial_init(&p, CR_F32, CR_FAM_SUM | CR_FAM_SUMSQ);
        cr_cpu_fold(&p, x, N, 0);
        ck_assert(!cr_big_from_limbs(&sum, p.sums[CR_AT_SUM].limbs, cr_sum_limbs(CR_AT_SUM, CR_F32)));
        /* N/2 times (2^24 − 1)·(2^104 + 2^-83), on the grid of 2^-149 */
        cr_big expected, part;
        cr_big_set(&expected, ((unsigned __int128)1 << 24) - 1);
        cr_big_set(&half, N / 2);
        cr_big_multiply(&part, &expected, &half);
        cr_big low = part;
        cr_big_shift_left(&part, 104 + 149);
        cr_big_shift_left(&low, 149 - 83);
        cr_big_subtract(&sum, &low);
        ck_assert_int_eq(cr_big_compare(&sum, &part), 0);
        ck_assert(!cr_big_from_limbs(&sum, p.sums[CR_AT_SUMSQ].limbs, cr_sum_limbs(CR_AT_SUMSQ, CR_F32)));
        cr_big square;
        cr_big_multiply(&square, &expected, &expected);
        cr_big_multiply(&part, &square, &half);
        low = part;
        cr_big_shift_left(&part, 2 * (104 + 149));
        cr_big_shift_left(&low, 2 * (149 - 83));
        cr_big_subtract(&sum, &low);
        ck_assert_int_eq(cr_big_compare(&sum, &part), 0);
        cr_partial_init(&p, CR_F64, CR_FAM_SUM);
        cr_cpu_fold(&p, y, N, 0);
        cr_big_from_limbs(&sum, p.sums[CR_AT_SUM].limbs, cr_sum_limbs(CR_AT_SUM, CR_F64));
        cr_big_set(&expected, ((unsigned __int128)1 << 53) - 1);
        cr_big_multiply(&part, &expected, &half);
        low = part;
        cr_big_shift_left(&part, 971 + 1074);
        cr_big_shift_left(&low, 1074 - 652);
        cr_big_subtract(&sum, &low);
        ck_assert_int_eq(cr_big_compare(&sum, &part), 0);
    }
    free(x);
    free(y);
}
END_TEST

START_TEST(the_first_nan_and_the_lowest_index) {
    enum { N = 100000 };
    float *x = malloc(N * sizeof *x);
    EACH_ISA(i) {
        for (size_t k = 0; k < N; k++) x[k] = 1.0f;
        x[70001] = x[70002] = 9.0f;
        x[99999] = -NAN;
        x[50003] = NAN;
        cr_partial p;
        cr_partial_init(&p, CR_F32, CR_FAM_EXTREMA);
        cr_cpu_fold(&p, x + 50000, N - 50000, 50000);
        cr_cpu_fold(&p, x, 50000, 0);
        ck_assert_uint_eq(p.first_nan, 50003);
        ck_assert_uint_eq(p.max.index, 70001);
        ck_assert_uint_eq(p.min.index, 0);
    }
    free(x);
}
END_TEST

/* What a fold finds of the extrema when only some are wanted is what it finds of them all; the rest it leaves alone. */
START_TEST(what_is_wanted_of_the_extrema) {
    enum { N = 24000 };
    static const uint32_t wants[] = {CR_WANTS_MIN, CR_WANTS_MIN | CR_WANTS_ARGMIN, CR_WANTS_MAX,
                                     CR_WANTS_MAX | CR_WANTS_ARGMAX, CR_WANTS_MIN | CR_WANTS_MAX};
    /* At random; small numbers, so that many are alike; zeros of both signs; a negative NaN in each long row. */
    enum { RANDOM, FEW, ZEROS, NANS, KINDS };
    uint64_t state = 7;
    uint8_t *x = malloc((size_t)N * 8 + 64);
    for (int turn = 0; turn < CR_DTYPE_INPUTS * KINDS * 4; turn++) {
        cr_dtype dtype = (cr_dtype)(1 + turn % CR_DTYPE_INPUTS);
        if (!cr_dtype_is_input(dtype)) continue;
        const int kind = turn / CR_DTYPE_INPUTS % KINDS;
        const size_t size = cr_dtype_size(dtype), n = 1 + (size_t)(state >> 33) % N;
        uint8_t *at = x + (state >> 20) % 64;
        for (size_t k = 0; k < n; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint64_t bits = kind == RANDOM || kind == NANS ? state >> (64 - 8 * size)
                            : kind == FEW                  ? (state >> 60) << (8 * size - 5)
                                                           : (state >> 63) << (8 * size - 1);
            if (kind == RANDOM) bits &= ~((uint64_t)1 << (8 * size - 2)); /* not an infinity's exponent, nor a NaN's */
            if (kind == NANS && k % 5000 != 4000) bits = k % 100;
            if (kind == NANS && k % 5000 == 4000) bits = UINT64_MAX;
            memcpy(at + k * size, &bits, size);
        }
        EACH_ISA(i) {
            cr_partial all, some;
            cr_partial_init(&all, dtype, CR_FAM_EXTREMA);
            cr_cpu_fold(&all, at, n, 1000);
            for (size_t w = 0; w < sizeof wants / sizeof wants[0]; w++) {
                cr_partial_init(&some, dtype, CR_FAM_EXTREMA);
                cr_partial_want(&some, wants[w]);
                cr_cpu_fold(&some, at, n, 1000);
                ck_assert_uint_eq(some.first_nan, all.first_nan);
                if (!(wants[w] & CR_WANTS_MIN)) ck_assert_uint_eq(some.min.index, UINT64_MAX);
                if (!(wants[w] & CR_WANTS_MAX)) ck_assert_uint_eq(some.max.index, UINT64_MAX);
                if (wants[w] & CR_WANTS_MIN) ck_assert_uint_eq(some.min.key, all.min.key);
                if (wants[w] & CR_WANTS_MAX) ck_assert_uint_eq(some.max.key, all.max.key);
                if (wants[w] & CR_WANTS_ARGMIN) ck_assert_uint_eq(some.min.index, all.min.index);
                if (wants[w] & CR_WANTS_ARGMAX) ck_assert_uint_eq(some.max.index, all.max.index);
            }
        }
    }
    free(x);
}
END_TEST

/* More elements in one fold than 31 bits count: one MiB of memory, mapped over and over; the very last element differs. */
START_TEST(more_elements_than_31_bits_count) {
#if defined(__SANITIZE_THREAD__)
    enum {
        PIECE = 1 << 20,
        PIECES = 16
    }; /* its shadow of what is read would take four gigabytes, and there is one thread */
#else
    enum { PIECE = 1 << 20, PIECES = 2048 };
#endif
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (size_t)PIECE * PIECES + 1;
    char name[] = "/tmp/cured-test-fold-XXXXXX";
    int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    unlink(name);
    ck_assert_int_eq(ftruncate(fd, (off_t)(PIECE + page)), 0);
    uint8_t *file = mmap(NULL, PIECE + page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(file != MAP_FAILED);
    memset(file, 3, PIECE);
    file[PIECE] = 9;
    uint8_t *map = mmap(NULL, n - 1 + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert(map != MAP_FAILED);
    for (size_t i = 0; i < PIECES; i++) {
        ck_assert(mmap(map + i * PIECE, PIECE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    }
    ck_assert(mmap(map + n - 1, page, PROT_READ, MAP_SHARED | MAP_FIXED, fd, PIECE) != MAP_FAILED);
    const uint64_t base = ((uint64_t)1 << 63) - n; /* so that the last index is the highest that a partial takes */
    static const uint32_t families[] = {CR_FAM_SUM, CR_FAM_EXTREMA, CR_FAM_COUNTS, CR_FAM_SUM | CR_FAM_EXTREMA};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        cr_partial p;
        cr_value v;
        const cr_finish_opts opts = {0};
        cr_partial_init(&p, CR_U8, families[i]);
        cr_cpu_fold(&p, map, n, base);
        ck_assert_uint_eq(p.n, n);
        if (families[i] & CR_FAM_EXTREMA) {
            ck_assert_uint_eq(p.min.index, base);
            ck_assert_uint_eq(p.max.index, base + n - 1);
        }
        if (families[i] & CR_FAM_COUNTS) ck_assert_uint_eq(p.nonzero, n);
        if ((families[i] & CR_FAM_SUM) == 0) continue;
        uint64_t sum;
        cr_partial_finish(&p, CR_OP_SUM, &opts, &v);
        ck_assert_int_eq(v.error.code, CR_OK);
        ck_assert_uint_eq(v.len, sizeof sum);
        memcpy(&sum, v.bytes, sizeof sum);
        ck_assert_uint_eq(sum, 3 * (uint64_t)(n - 1) + 9);
    }
    munmap(map, n - 1 + page);
    munmap(file, PIECE + page);
    close(fd);
}
END_TEST

/* The highest indices of an array of 2^63 elements, in every type. */
START_TEST(indices_up_to_the_last) {
    enum { N = 5000 };
    uint8_t *x = calloc(N, 8);
    EACH_ISA(i) {
        for (int dtype = CR_BOOL; dtype <= CR_DTYPE_INPUTS; dtype++) {
            if (!cr_dtype_is_input((cr_dtype)dtype)) continue;
            const uint64_t base = ((uint64_t)1 << 63) - N;
            size_t size = cr_dtype_size((cr_dtype)dtype);
            memset(x, 0, (size_t)N * 8);
            x[N * size - size] = 1; /* the smallest there is above zero, in little-endian types of either kind */
            cr_partial p;
            cr_partial_init(&p, (cr_dtype)dtype, CR_FAM_EXTREMA);
            cr_cpu_fold(&p, x, N, base);
            ck_assert_uint_eq(p.max.index, base + N - 1);
            ck_assert_uint_eq(p.min.index, base);
        }
    }
    free(x);
}
END_TEST

/* Flush to zero, denormals are zero, toward zero; on aarch64 float16 without infinities, too. */
#if defined(__x86_64__)
#include <xmmintrin.h>
enum { ODD_STATE = 0xffc0 };
static uint64_t get_state(void) { return _mm_getcsr(); }
static void set_state(uint64_t state) { _mm_setcsr((unsigned)state); }
#elif defined(__aarch64__)
enum { ODD_STATE = 0x07c80000 };
static uint64_t get_state(void) {
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state));
    return state;
}
static void set_state(uint64_t state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
#endif

#if defined(__x86_64__) || defined(__aarch64__)
START_TEST(a_strange_floating_point_state_changes_nothing) {
    static const float x[] = {0x1p-149f, 0x1p-149f, 0x1.000002p0f, 0x1p-30f};
    EACH_ISA(i) {
        cr_partial plain, strange;
        cr_partial_init(&plain, CR_F32, CR_FAM_SUM);
        strange = plain;
        cr_cpu_fold(&plain, x, 4, 0);
        uint64_t before = get_state();
        set_state(ODD_STATE);
        cr_cpu_fold(&strange, x, 4, 0);
        uint64_t after = get_state();
        set_state(before);
        ck_assert_uint_eq(after, ODD_STATE);
        ck_assert_int_eq(memcmp(plain.sums[0].limbs, strange.sums[0].limbs, cr_sum_limbs(CR_AT_SUM, CR_F32) * 8), 0);
    }
}
END_TEST
#else
START_TEST(a_strange_floating_point_state_changes_nothing) {}
END_TEST
#endif

CR_CHECK_MAIN("kernels/fold") {
    tcase_add_test(tc, selecting);
    tcase_add_test(tc, nothing_outside_is_read);
    tcase_add_test(tc, long_runs_in_the_bins_stay_exact);
    tcase_add_test(tc, the_first_nan_and_the_lowest_index);
    tcase_add_test(tc, what_is_wanted_of_the_extrema);
    tcase_add_test(tc, a_strange_floating_point_state_changes_nothing);
    tcase_add_test(tc, more_elements_than_31_bits_count);
    tcase_add_test(tc, indices_up_to_the_last);
}
