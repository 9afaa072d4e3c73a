/* squares: norms and variances by key have the same bits with and without the vectors that round them (kernels/cpu/keys/squares.c). Squares
 * are so far apart that their sums lie halfway between those of two roots, or beside that by little; groups have no elements, one, a few
 * and many. The property run has other arrays and an oracle.
 *
 * Thread: main. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/keys/keys.h"
#include "tests/unit/check_main.h"

enum { ELEMENTS = 4000, GROUPS = 700, OPS = 3 };

static uint64_t state;

/* xorshift64 (Marsaglia, "Xorshift RNGs", J. Stat. Softw. 8, 2003). */
static unsigned below(unsigned n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 33) % n;
}

static void put(uint8_t *to, cr_dtype dtype, unsigned kind) {
    static const int apart[] = {0, 0, -26, -53, -60, -69}, four[] = {24, 0, -29, -72, -83, -125};
    double x = ldexp(kind == 0 ? 1 + below(4) : 1, kind == 0 ? 0 : apart[below(6)]);
    if (kind == 2) x = (below(2) ? 1 : -1) * ldexp(below(1 << 24) * 0x1p-24 + 1, (int)below(4));
    if (kind == 4) x = (below(2) ? 1 : -1) * ldexp(1, four[below(6)]); /* sums of four digits, of either sign */
    if (kind == 3 && below(100) == 0) x = below(2) ? INFINITY : NAN;
    const float single = (float)x;
    const int32_t whole = (int32_t)state;
    memcpy(to,
           dtype == CR_F64   ? (const void *)&x
           : dtype == CR_F32 ? (const void *)&single
                             : (const void *)&whole,
           cr_dtype_size(dtype));
}

static void answer(const cr_axis_spec *spec, const cr_keys *keys, const cr_view *view, uint64_t off, uint64_t *to) {
    void *out[CR_AXIS_PLACES];
    cr_by_key *of;
    cr_error error;
    uint64_t outside;
    for (unsigned k = 0; k < OPS; k++) out[k] = to + k * GROUPS;
    cr_fast_switch_off(off);
    ck_assert_int_eq(cr_by_key_new(spec, keys, CR_WANTS_ALL, &of, &error), CR_OK);
    ck_assert_int_eq(cr_by_key_fold(of, view, ELEMENTS, 0, &outside, &error), CR_OK);
    ck_assert_int_eq(cr_by_key_finish(of, 0, GROUPS, out, &error), CR_OK);
    cr_by_key_free(of);
    cr_fast_switch_off(0);
}

static void one_round(cr_dtype dtype, unsigned kind) {
    static uint8_t data[ELEMENTS * sizeof(double)];
    static uint16_t key[ELEMENTS];
    static uint64_t with[OPS * GROUPS], without[OPS * GROUPS];
    for (size_t i = 0; i < ELEMENTS; i++) put(data + i * cr_dtype_size(dtype), dtype, kind);
    for (size_t i = 0; i < ELEMENTS; i++) key[i] = (uint16_t)(below(4) ? below(GROUPS) : below(3));
    const cr_axis_spec spec = {.dtype = dtype,
                               .families = CR_FAM_SUM | CR_FAM_SUMSQ,
                               .op_count = OPS,
                               .ops = {CR_OP_NORM2, CR_OP_VAR, CR_OP_STD},
                               .finish = {.ddof = below(3)}};
    const cr_keys keys = {(const uint8_t *)key, ELEMENTS, GROUPS, 1, CR_U16, false};
    const cr_view view = cr_view_plain(data);
    answer(&spec, &keys, &view, 0, with);
    answer(&spec, &keys, &view, UINT64_C(1) << CR_FAST_KEY_SQUARES, without);
    for (size_t i = 0; i < OPS * GROUPS; i++)
        ck_assert_msg(with[i] == without[i], "%s of %s, kind %u, ddof %u, group %zu: %a, not %a",
                      cr_op_name(spec.ops[i / GROUPS]), cr_dtype_name(dtype), kind, (unsigned)spec.finish.ddof,
                      i % GROUPS, *(double *)(void *)&with[i], *(double *)(void *)&without[i]);
}

START_TEST(vectors_change_no_bit) {
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    if (cr_cpu_select(isas[_i], NULL) != CR_OK) return; /* this machine has none */
    state = 88172645463325252u + (uint64_t)_i + ((uint64_t)check_seed(1) << 8);
    for (unsigned round = 0; round < 60 / CHECK_SPARSE; round++) {
        one_round(CR_F32, round % 5);
        one_round(CR_F64, round % 5);
        one_round(CR_I32, 0);
    }
    cr_cpu_select(NULL, NULL);
}
END_TEST

CR_CHECK_MAIN("axis/squares") {
    tcase_add_loop_test(tc, vectors_change_no_bit, 0, 3);
    tcase_set_timeout(tc, 300);
}
