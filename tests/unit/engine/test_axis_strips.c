/* Jobs along an axis whose columns come in strips: which do, that every byte of the array has one place in them, and that what the
 * job may hold stays within the limit. */
#include <stdlib.h>

#include "engine/job_axis.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static const uint64_t MIB = 1 << 20;

static uint64_t below(uint64_t n) { return (uint64_t)random() % n; }

static cr_axis_spec spec_of(cr_dtype dtype, cr_op op, uint64_t outer, uint64_t n, uint64_t inner) {
    return (cr_axis_spec){
        .dtype = dtype, .shape = {outer, n, inner}, .families = cr_op_needs(op, dtype), .op_count = 1, .ops = {op}};
}

static cr_job *job_of(const cr_axis_spec *spec, cr_job_axis_input input, uint64_t max_bytes, cr_error *error) {
    cr_job *job = cr_job_new(spec->dtype, spec->families);
    ck_assert_ptr_nonnull(job);
    if (cr_job_axis_make(job, spec, 3, input, max_bytes, error) == CR_OK) error->code = CR_OK;
    return job;
}

static void forget(cr_job *job) {
    cr_job_move(job, CR_JOB_DONE);
    cr_job_free(job);
}

static void check_places(const cr_job *job, uint64_t bytes) {
    uint8_t *seen = calloc(1, bytes);
    for (uint64_t at = 0; at < bytes;) {
        uint64_t offset, back, run = cr_job_axis_run(job, at, &offset), most = 1 + below(run);
        ck_assert_uint_le(offset + run, bytes);
        ck_assert_uint_ge(cr_job_axis_turned(job, offset, &back), run);
        ck_assert_uint_eq(back, at);
        for (uint64_t i = 0; i < most; i++) seen[offset + i]++;
        at += most;
    }
    uint64_t once = 0;
    for (uint64_t i = 0; i < bytes; i++) once += seen[i] == 1;
    ck_assert_uint_eq(once, bytes);
    free(seen);
}

START_TEST(every_byte_has_a_place) {
    cr_error error;
    for (int i = 0; i < 60; i++) {
        cr_dtype dtype = below(2) ? CR_F64 : CR_F32;
        cr_op op = below(2) ? CR_OP_PROD : CR_OP_BIT_XOR;
        if (op == CR_OP_BIT_XOR) dtype = dtype == CR_F64 ? CR_I64 : CR_I32;
        cr_axis_spec spec = spec_of(dtype, op, 1 + below(3), 1 + below(9), 600 + below(3000));
        uint64_t bytes = spec.shape.outer * spec.shape.n * spec.shape.inner * cr_dtype_size(dtype);
        cr_job *job = job_of(&spec, CR_JOB_AXIS_READ, 5 * MIB + below(5 * MIB), &error);
        ck_assert_msg(error.code == CR_OK, "%s", error.text);
        if (cr_job_axis_in_strips(job)) check_places(job, bytes);
        forget(job);
    }
}
END_TEST

START_TEST(only_what_does_not_fit) {
    static const struct {
        cr_op op;
        uint64_t n, inner, max_mib;
        cr_job_axis_input input;
        bool fits, strips;
    } cases[] = {
        {CR_OP_BIT_XOR, 1, 170000, 1024, CR_JOB_AXIS_READ, true, true},
        {CR_OP_BIT_XOR, 1, 170000, 1024, CR_JOB_AXIS_STREAM, true, true},
        {CR_OP_BIT_XOR, 1, 170000, 1024, CR_JOB_AXIS_PASSES, false, false},
        {CR_OP_BIT_XOR, 1, 170000, 2048, CR_JOB_AXIS_PASSES, true, false}, /* a state for one worker is enough */
        {CR_OP_BIT_XOR, 1, 170000, 2048, CR_JOB_AXIS_READ, true, false},
        {CR_OP_SUM, 1, 170000, 1024, CR_JOB_AXIS_READ, true, false},
        {CR_OP_BIT_XOR, 1000, 170000, 1024, CR_JOB_AXIS_STREAM, false, true}, /* 1.4 GB to keep */
        {CR_OP_BIT_XOR, 700, 170000, 1024, CR_JOB_AXIS_STREAM, true, true},   /* 0.95 GB */
        {CR_OP_BIT_XOR, 1 << 20, 1 << 20, 1024, CR_JOB_AXIS_READ, true, true},
        {CR_OP_PROD, 4096, 1 << 20, 1024, CR_JOB_AXIS_READ, true, true},
        {CR_OP_BIT_XOR, 2, 8192, 1, CR_JOB_AXIS_READ, false, true}, /* not even 256 columns have their states */
    };
    cr_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cr_dtype dtype = cases[i].op == CR_OP_BIT_XOR ? CR_I64 : CR_F64;
        cr_axis_spec spec = spec_of(dtype, cases[i].op, 1, cases[i].n, cases[i].inner);
        const uint64_t most = cases[i].max_mib * MIB;
        cr_job *job = job_of(&spec, cases[i].input, most, &error);
        ck_assert_msg(error.code == (cases[i].fits ? CR_OK : CR_INVALID_ARGUMENT), "case %zu: %s", i, error.text);
        ck_assert_msg(cr_job_axis_in_strips(job) == cases[i].strips, "case %zu", i);
        ck_assert_msg(!cases[i].fits || job->axis->memory <= most, "case %zu", i);
        ck_assert_int_eq(job->kinds, CR_BY_CPU);
        forget(job);
    }
}
END_TEST

CR_CHECK_MAIN("engine/axis_strips") {
    srandom((unsigned)check_seed(17));
    tcase_add_test(tc, every_byte_has_a_place);
    tcase_add_test(tc, only_what_does_not_fit);
}
