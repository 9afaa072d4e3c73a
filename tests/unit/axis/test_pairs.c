/* pairs: sums of pairs over short rows, columns and segments have the same bits with and without the kernels that take many of them at a
 * time (kernels/cpu/rows/pairs.c). Terms are few powers of two apart or hundreds, so that sums lie halfway between two numbers, or beside
 * that by less than two float64s hold. The property run has other arrays and an oracle.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/offsets.h"
#include "tests/unit/check_main.h"

enum { ELEMENTS = 3000, OPS = 3 };

static uint64_t state;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static unsigned below(unsigned n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

/* One of few numbers; of a hard kind also what has no exact product or is none. */
static double draw(bool narrow, unsigned kind) {
    static const int near[] = {0, 0, 1, -26, -27}, apart[] = {0, 0, -53, -54, -55, -100, 60};
    const double sign = below(2) ? 1 : -1;
    if (kind == 2 && below(40) == 0) {
        const double odd[] = {0, INFINITY, NAN, narrow ? 0x1p127 : 0x1p1023, narrow ? 0x1p-149 : 0x1p-1074, 0x1p-140};
        return sign * odd[below(6)];
    }
    return sign * ldexp(1 + (below(3) ? 0 : below(4)) * 0x1p-22, kind == 0 ? near[below(5)] : apart[below(7)]);
}

static void put(uint8_t *to, size_t i, bool narrow, double x) {
    const float single = (float)x;
    memcpy(to + i * (narrow ? 4 : 8), narrow ? (const void *)&single : (const void *)&x, narrow ? 4 : 8);
}

/* Answers of the three ops, which lie one after the other. */
static void answer(const cr_axis_spec *spec, const cr_view *view, uint64_t off, uint64_t *to) {
    const bool segments = cr_axis_by_offsets(spec);
    const uint64_t answers = cr_shape_answers(&spec->shape);
    cr_fast_switch_off(off); /* scratch is that of the ways that are on */
    const size_t bytes = segments ? cr_offsets_scratch(spec) : cr_axis_scratch(spec);
    void *scratch = aligned_alloc(64, bytes / 64 * 64 + 64), *out[CR_AXIS_PLACES];
    cr_error error;
    for (unsigned k = 0; k < OPS; k++) out[k] = to + k * answers;
    const cr_status status = segments ? cr_cpu_offsets_view(spec, view, 0, ELEMENTS, 0, answers, scratch, out, &error)
                                      : cr_cpu_axis_blocks_view(spec, view, 0, spec->shape.outer, scratch, out, &error);
    cr_fast_switch_off(0);
    ck_assert_int_eq(status, CR_OK);
    free(scratch);
}

static void same(cr_axis_spec *spec, const cr_view *view, unsigned kind) {
    static uint64_t with[OPS * ELEMENTS], without[OPS * ELEMENTS];
    const uint64_t answers = cr_shape_answers(&spec->shape);
    answer(spec, view, 0, with);
    answer(spec, view, UINT64_C(1) << CR_FAST_SHORT_PAIRS, without);
    for (uint64_t i = 0; i < OPS * answers; i++)
        ck_assert_msg(with[i] == without[i], "%s of %s, kind %u, shape %llu %llu %llu, answer %llu: %a, not %a",
                      cr_op_name(spec->ops[i / answers]), cr_dtype_name(spec->dtype), kind,
                      (unsigned long long)spec->shape.outer, (unsigned long long)spec->shape.n,
                      (unsigned long long)spec->shape.inner, (unsigned long long)(i % answers),
                      *(double *)(void *)&with[i], *(double *)(void *)&without[i]);
}

static cr_axis_spec spec_of(cr_dtype dtype, cr_shape shape) {
    return (cr_axis_spec){.dtype = dtype,
                          .shape = shape,
                          .families = CR_FAM_DOT | CR_FAM_SQDIST | CR_FAM_WEIGHTS,
                          .op_count = OPS,
                          .ops = {CR_OP_DOT, CR_OP_SQDIST, CR_OP_AVERAGE},
                          .second_line = shape.inner};
}

/* Rows, columns and segments of up to 40 elements, in arrays that end where their memory ends. */
static void one_round(cr_dtype dtype, unsigned kind) {
    const bool narrow = dtype == CR_F32;
    const size_t bytes = ELEMENTS * cr_dtype_size(dtype);
    uint8_t *x = malloc(bytes), *y = malloc(bytes);
    int64_t borders[ELEMENTS + 1] = {0};
    uint64_t count = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        put(x, i, narrow, draw(narrow, kind));
        put(y, i, narrow, kind == 1 ? draw(narrow, 0) : draw(narrow, kind));
    }
    const cr_view view = {.data = x, .second = y};
    const uint64_t n = 1 + below(40), inner = 2 + below(30);
    cr_axis_spec rows = spec_of(dtype, (cr_shape){ELEMENTS / n, n, 1});
    cr_axis_spec columns = spec_of(dtype, (cr_shape){ELEMENTS / n / inner, n, inner});
    same(&rows, &view, kind);
    same(&columns, &view, kind);
    for (int64_t at = 0, now; at < ELEMENTS; at += now) {
        now = below(9) == 0 ? 0 : 1 + below(40);
        if (now > ELEMENTS - at) now = ELEMENTS - at;
        borders[++count] = at + now;
    }
    cr_axis_spec segments = spec_of(dtype, (cr_shape){count, ELEMENTS, 1});
    ck_assert_int_eq(cr_offsets_make(&segments.offsets, borders, count, CR_I64, NULL), CR_OK);
    same(&segments, &view, kind);
    free(x);
    free(y);
}

START_TEST(many_at_a_time_have_the_same_bits) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    state = 88172645463325252u + (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (unsigned round = 0; round < 60 / CHECK_SPARSE; round++) {
        one_round(CR_F32, round % 3);
        one_round(CR_F64, round % 3);
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

CR_CHECK_MAIN("axis/pairs") {
    tcase_add_loop_test(tc, many_at_a_time_have_the_same_bits, 0, 3);
    tcase_set_timeout(tc, 300);
}
