/* A caller whose thread takes denormals for zero and rounds toward zero, as a library built with fast-math leaves it: every answer, and
 * every text and double made of one, has the bits that it has elsewhere. */
#include <check.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "cured/cured.h"
#include "tests/unit/check_main.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define OK(call) ck_assert_int_eq(call, CURED_OK)

static const cured_op ops[] = {
    CURED_OP_SUM,       CURED_OP_MEAN,  CURED_OP_MIN,     CURED_OP_MAX,   CURED_OP_ARGMIN, CURED_OP_ARGMAX,
    CURED_OP_COUNT,     CURED_OP_ANY,   CURED_OP_ALL,     CURED_OP_SUMSQ, CURED_OP_NORM1,  CURED_OP_COUNT_NONZERO,
    CURED_OP_COUNT_NAN, CURED_OP_NORM2, CURED_OP_NORMINF, CURED_OP_VAR,   CURED_OP_STD,    CURED_OP_PROD,
};
enum { OPS = sizeof ops / sizeof ops[0], ELEMENTS = 12000, KEPT_BYTES = 4 * 1024 * 1024 };

static void be_strange(void) {
    ck_assert_int_eq(fesetround(FE_TOWARDZERO), 0);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= 0x07080000; /* flush to zero (float16, too), NaNs without their bits, and float16 without infinities */
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static uint64_t state_of(void) {
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#else
    return 0;
#endif
}

/* What was answered. */
static uint8_t *kept;
static size_t kept_bytes;

static void keep(const void *data, size_t bytes) {
    ck_assert_uint_le(kept_bytes + bytes, KEPT_BYTES);
    memcpy(kept + kept_bytes, data, bytes);
    kept_bytes += bytes;
}

static void keep_value(const cured_value *value) {
    char text[CURED_TEXT_BYTES] = "";
    double number;
    size_t bytes;
    const cured_status status = cured_value_status(value, NULL);
    keep(&status, sizeof status);
    if (status != CURED_OK) return;
    const void *data = cured_value_bytes(value, &bytes);
    keep(data, bytes);
    OK(cured_value_text(value, text, sizeof text));
    keep(text, sizeof text);
    if (cured_value_hex(value, text, sizeof text) == CURED_OK) keep(text, sizeof text);
    const cured_status exact = cured_value_double(value, &number);
    keep(&exact, sizeof exact);
    keep(&number, sizeof number);
}

static void whole(cured_conn *conn, cured_dtype dtype, const uint8_t *data, size_t count, bool partial) {
    cured_call *call;
    cured_values *values;
    cured_options options = CURED_OPTIONS_INIT;
    size_t bytes;
    options.partial = partial;
    OK(cured_reduce_buffer(conn, dtype, ops, OPS, data, count, &options, &call, NULL));
    OK(cured_wait(call, NULL));
    if (partial) {
        const void *state = cured_call_partial(call, &bytes);
        keep(state, bytes);
        cured_error error;
        ck_assert_msg(cured_partial_finish(state, bytes, ops, OPS, NULL, &values, &error) == CURED_OK, "%s",
                      error.text);
        for (size_t i = 0; i < OPS; i++) keep_value(cured_values_get(values, i));
        cured_values_free(values);
    }
    for (size_t i = 0; i < OPS && !partial; i++) keep_value(cured_call_value(call, i));
    cured_call_free(call);
    if (partial) return;
    OK(cured_reduce_here(dtype, ops, OPS, data, count, NULL, &values, NULL));
    for (size_t i = 0; i < OPS; i++) keep_value(cured_values_get(values, i));
    cured_values_free(values);
}

/* Block by block, so that pieces of columns meet in states. */
static void along(cured_conn *conn, cured_dtype dtype, const uint8_t *data, const cured_axis *axis, bool streamed) {
    const size_t bytes = axis->outer * axis->n * axis->inner * cured_dtype_size(dtype), piece = bytes / 3 / 8 * 8;
    cured_call *call;
    cured_options options = CURED_OPTIONS_INIT;
    options.axis = axis;
    if (streamed) {
        OK(cured_reduce_stream_begin(conn, dtype, ops, OPS, bytes, &options, &call, NULL));
        for (size_t at = 0; at < bytes; at += piece) {
            OK(cured_stream_write(call, data + at, bytes - at < piece ? bytes - at : piece, NULL));
            while (cured_stream_pending(call) != 0) OK(cured_process(conn, NULL));
        }
        OK(cured_stream_end(call, NULL));
    } else {
        OK(cured_reduce_buffer(conn, dtype, ops, OPS, data, bytes / cured_dtype_size(dtype), &options, &call, NULL));
    }
    OK(cured_wait(call, NULL));
    for (size_t i = 0; i < OPS; i++) {
        cured_dtype type;
        uint64_t count;
        const void *answers = cured_call_array(call, i, &type, &count);
        keep(answers, count * cured_dtype_size(type));
    }
    cured_call_free(call);
}

static void ask_all(cured_conn *conn, cured_dtype dtype, const uint8_t *data) {
    static const cured_axis axes[] = {{1, ELEMENTS, 1}, {4, ELEMENTS / 4, 1}, {400, 30, 1}, {30, 4, 100},
                                      {1, 40, 300},     {2, 2000, 3},         {1, 3, 4000}, {3000, 2, 2}};
    static const size_t counts[] = {1, 7, 300, 5000, ELEMENTS};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        whole(conn, dtype, data, counts[i], false);
        whole(conn, dtype, data, counts[i], true);
    }
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        along(conn, dtype, data, &axes[i], false);
        along(conn, dtype, data, &axes[i], true);
    }
}

/* Denormals, values around 1 whose products are none, and both. */
static void fill(uint8_t *data, cured_dtype dtype, int kind) {
    const unsigned bits = 8 * (unsigned)cured_dtype_size(dtype);
    const unsigned mantissa = dtype == CURED_F16 ? 10 : dtype == CURED_BF16 ? 7 : dtype == CURED_F32 ? 23 : 52;
    uint64_t x = 1;
    for (size_t i = 0; i < ELEMENTS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const uint64_t digits = x >> 11 & (((uint64_t)1 << mantissa) - 1),
                       one = ((uint64_t)1 << (bits - mantissa - 2)) - 1;
        uint64_t element = kind == 0 || (kind == 2 && i % 3 == 0) ? digits : digits | one << mantissa;
        element |= (x >> 3 & 1) << (bits - 1);
        memcpy(data + i * (bits / 8), &element, bits / 8);
    }
}

START_TEST(a_strange_state_changes_no_bit) {
    static const cured_dtype types[] = {CURED_F16, CURED_BF16, CURED_F32, CURED_F64};
    const cured_dtype dtype = types[_i / 3];
    uint8_t *data = malloc(ELEMENTS * 8), *usual = malloc(KEPT_BYTES);
    fenv_t before;
    cured_conn *conn;
    fill(data, dtype, _i % 3);
    OK(cured_connect("embedded:", NULL, &conn, NULL));
    kept = usual;
    kept_bytes = 0;
    ask_all(conn, dtype, data);
    const size_t bytes = kept_bytes;
    kept = malloc(KEPT_BYTES);
    kept_bytes = 0;
    fegetenv(&before);
    be_strange();
    const uint64_t strange = state_of();
    ask_all(conn, dtype, data);
    const uint64_t after = state_of();
    fesetenv(&before);
    ck_assert_uint_eq(strange, after);
    ck_assert_uint_eq(bytes, kept_bytes);
    ck_assert_int_eq(memcmp(usual, kept, bytes), 0);
    cured_close(conn);
    free(kept);
    free(usual);
    free(data);
}
END_TEST

CR_CHECK_MAIN("client/floats") { tcase_add_loop_test(tc, a_strange_state_changes_no_bit, 0, 12); }
