/* Jobs along an axis and a GPU: which of them it may claim from, and how, from shape, ops and what the machine has; and what claims of device
 * memory are cut to. Pure functions. */
#include <string.h>

#include "engine/job_axis.h"
#include "engine/sink.h"
#include "server/lanes/gpu/lane.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { BOTH = CR_BY_CPU | CR_BY_GPU };
static const uint64_t MIB = 1 << 20, GIB = 1 << 30;

static cr_axis_spec spec_of(cr_dtype dtype, cr_op op, uint64_t outer, uint64_t n, uint64_t inner) {
    return (cr_axis_spec){
        .dtype = dtype, .shape = {outer, n, inner}, .families = cr_op_needs(op, dtype), .op_count = 1, .ops = {op}};
}

static void forget(cr_job *job) {
    cr_job_move(job, CR_JOB_DONE);
    cr_job_free(job);
}

START_TEST(host_memory) {
    static const struct {
        cr_dtype dtype;
        cr_op op;
        uint64_t outer, n, inner;
        uint32_t alone, alone_whole, both, both_whole; /* kinds, and those where blocks may be claimed whole */
    } cases[] = {
        {CR_F32, CR_OP_SUM, 1000, 1000, 1, CR_BY_GPU, 0, BOTH, 0},                   /* short rows */
        {CR_F32, CR_OP_SUM, 1000, 3, 1, CR_BY_GPU, 0, CR_BY_CPU, 0},                 /* as many answers as input */
        {CR_F32, CR_OP_MAX, 1000, 16, 1, CR_BY_GPU, 0, BOTH, 0},                     /* 16 bytes for a byte */
        {CR_F32, CR_OP_MAX, 1000, 15, 1, CR_BY_GPU, 0, CR_BY_CPU, 0},                /* and not quite */
        {CR_F32, CR_OP_SUM, 1000, 100000, 1, CR_BY_CPU, CR_BY_GPU, CR_BY_CPU, BOTH}, /* long rows */
        {CR_F32, CR_OP_SUM, 7, 100000, 1, CR_BY_CPU, CR_BY_GPU, CR_BY_CPU, 0},       /* fewer than the workers want */
        {CR_F32, CR_OP_SUM, 8, 1000, 100, CR_BY_CPU, CR_BY_GPU, CR_BY_CPU, BOTH},    /* blocks of columns */
        {CR_F32, CR_OP_SUM, 100, (4 << 20) + 1, 1, CR_BY_CPU, 0, CR_BY_CPU, 0},      /* longer than a chunk */
        {CR_F32, CR_OP_SUM, 100, 8, 131073, CR_BY_CPU, 0, CR_BY_CPU, 0}, /* a block of more answers than a claim has */
        {CR_F32, CR_OP_PROD, 1000, 1000, 1, CR_BY_CPU, 0, CR_BY_CPU, 0}, /* what the GPU does not do */
        {CR_F32, CR_OP_SUM, 1000, 0, 1, CR_BY_CPU, 0, CR_BY_CPU, 0},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int both = 0; both < 2; both++) {
            cr_error error;
            cr_axis_spec spec = spec_of(cases[i].dtype, cases[i].op, cases[i].outer, cases[i].n, cases[i].inner);
            cr_job *job = cr_job_new(spec.dtype, spec.families);
            ck_assert_int_eq(cr_job_axis_make(job, &spec, 2, CR_JOB_AXIS_READ, GIB, &error), CR_OK);
            const cr_gpu_placing placing = {
                .kinds = both ? BOTH : CR_BY_GPU, .workers = 2, .gpu_from = 5, .chunk_bytes = 16 * MIB};
            cr_gpu_axis_place(&cr_fake_gpu, job, &placing);
            uint32_t kinds = both ? cases[i].both : cases[i].alone;
            uint32_t whole = both ? cases[i].both_whole : cases[i].alone_whole;
            ck_assert_msg(job->kinds == kinds, "case %u, %d: kinds %u", i, both, job->kinds);
            ck_assert_msg(job->axis->whole_kinds == whole, "case %u, %d: whole %u", i, both, job->axis->whole_kinds);
            cr_job_axis_claim_whole(job);
            if (whole) {
                ck_assert_uint_eq(job->grain, job->axis->block);
                ck_assert_uint_eq(job->kinds, whole);
                ck_assert(!job->in_order && !job->most_claims && !job->claim_bytes);
            }
            forget(job);
        }
    }
}
END_TEST

START_TEST(without_a_gpu) {
    cr_error error;
    cr_axis_spec spec = spec_of(CR_F32, CR_OP_SUM, 1000, 1000, 1);
    cr_job *job = cr_job_new(spec.dtype, spec.families);
    ck_assert_int_eq(cr_job_axis_make(job, &spec, 2, CR_JOB_AXIS_READ, GIB, &error), CR_OK);
    cr_gpu_axis_place(&cr_fake_gpu, job, &(cr_gpu_placing){.kinds = CR_BY_CPU, .workers = 2, .chunk_bytes = MIB});
    ck_assert_uint_eq(job->kinds, CR_BY_CPU);
    ck_assert_uint_eq(job->gpu_from, 0);
    forget(job);
}
END_TEST

/* Claims are whole blocks; what they may answer is what is admitted. */
START_TEST(device_memory) {
    static const uint64_t shapes[][3] = {
        {1, 1, 1},         {5, 7, 3},          {1ull << 30, 1, 1},  {1ull << 20, 1000, 1},
        {100, 1 << 20, 1}, {3, 1ull << 33, 1}, {1, 100, 1 << 20},   {1000, 2, 1 << 16},
        {257, 1, 1000},    {10, 3, 50000000},  {1, 1ull << 40, 17}, {1ull << 40, 3, 2}};
    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint64_t outer = shapes[i][0], n = shapes[i][1], inner = shapes[i][2], block = n * inner;
        cr_error error;
        cr_axis_spec spec = spec_of(CR_F32, CR_OP_SUM, outer, n, inner);
        cr_job *job = cr_job_new(spec.dtype, spec.families);
        ck_assert_int_eq(cr_job_axis_make_on_device(job, &spec, 64 * GIB, &error), CR_OK);
        const uint64_t claim = job->claim_most / (block * 4), answers = claim * inner * 8;
        ck_assert_uint_eq(job->grain, block);
        ck_assert_uint_eq(job->claim_most % (block * 4), 0);
        ck_assert_uint_ge(claim, 1);
        ck_assert_uint_le(claim, outer);
        ck_assert_uint_eq(job->claim_output, answers);
        if (claim > 1) {
            ck_assert_uint_le(answers, CR_JOB_AXIS_GPU_OUTPUT_BYTES);
            ck_assert_uint_le(job->claim_most, 4 * GIB);
        }
        uint64_t all = outer * inner * 8, waiting = CR_JOB_AXIS_PENDING_BYTES + answers;
        ck_assert_uint_eq(job->axis->memory, (all < waiting ? all : waiting) + answers);
        ck_assert(!job->in_order && !job->most_claims && !job->claim_bytes);
        forget(job);
    }
}
END_TEST

/* Answers that the kernels put into the client's memory: what is admitted is what they keep of them meanwhile. */
START_TEST(answers_in_device_memory) {
    static const uint64_t shapes[][3] = {{1, 1, 1},         {1ull << 30, 1, 1}, {1ull << 20, 1000, 1},
                                         {100, 1 << 20, 1}, {1, 100, 1 << 20},  {10, 3, 50000000}};
    for (unsigned i = 0; i < 2 * (sizeof shapes / sizeof *shapes); i++) {
        const uint64_t *s = shapes[i / 2], block = s[1] * s[2];
        const bool variance = i % 2;
        cr_error error;
        cr_sink sink = {.device = 0};
        cr_axis_spec spec = spec_of(CR_F32, variance ? CR_OP_VAR : CR_OP_SUM, s[0], s[1], s[2]);
        cr_job *job = cr_job_new(spec.dtype, spec.families);
        job->sink = &sink;
        ck_assert_int_eq(cr_job_axis_make_on_device(job, &spec, 64 * GIB, &error), CR_OK);
        const uint64_t claim = job->claim_most / (block * 4), answers = claim * s[2];
        ck_assert_uint_eq(job->grain, block);
        ck_assert_uint_eq(job->claim_most % (block * 4), 0);
        ck_assert(claim >= 1 && claim <= s[0]);
        if (claim > 1) ck_assert_uint_le(answers, variance ? 1 << 19 : 8 << 20);
        if (claim > 1) ck_assert_uint_le(job->claim_most, 4 * GIB);
        ck_assert_uint_eq(job->axis->memory, answers * (variance ? 64 : 4));
        ck_assert(!job->may_pause && !job->claim_output);
        job->sink = NULL;
        forget(job);
        job = cr_job_new(spec.dtype, spec.families);
        job->sink = &sink;
        /* Less is fewer blocks at a time, if it is not one. */
        const cr_status less = cr_job_axis_make_on_device(job, &spec, answers * (variance ? 64 : 4) - 1, &error);
        ck_assert_int_eq(less, claim > 1 ? CR_OK : CR_INVALID_ARGUMENT);
        if (less == CR_OK) ck_assert_uint_lt(job->claim_most / (block * 4), claim);
        job->sink = NULL;
        forget(job);
    }
}
END_TEST

START_TEST(device_memory_that_is_too_much) {
    cr_error error;
    for (int i = 0; i < 3; i++) {
        static const uint64_t shapes[][3] = {{1, 1, 1ull << 58}, {1, 2, 1 << 20}, {1, 1, 1ull << 32}};
        cr_axis_spec spec = spec_of(CR_U8, CR_OP_SUM, shapes[i][0], shapes[i][1], shapes[i][2]);
        cr_job *job = cr_job_new(spec.dtype, spec.families);
        uint64_t most = i == 1 ? 16 * MIB - 1 : i == 0 ? 1ull << 40 : UINT64_MAX;
        ck_assert_int_eq(cr_job_axis_make_on_device(job, &spec, most, &error), CR_INVALID_ARGUMENT);
        ck_assert_ptr_ne(strstr(error.text, i != 1 ? "2^32" : "max_state_bytes"), NULL);
        forget(job);
    }
}
END_TEST

CR_CHECK_MAIN("server/gpu_place") {
    tcase_add_test(tc, host_memory);
    tcase_add_test(tc, without_a_gpu);
    tcase_add_test(tc, device_memory);
    tcase_add_test(tc, answers_in_device_memory);
    tcase_add_test(tc, device_memory_that_is_too_much);
}
