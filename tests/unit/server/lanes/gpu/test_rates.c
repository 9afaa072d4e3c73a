/* What a GPU takes of a job, from what was measured: pure functions. */
#include "server/lanes/gpu/rates.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static const uint64_t MIB = 1 << 20, GIB = 1 << 30;

/* The machine of docs/BENCHMARKS-GPU.md: 16 cores and a GPU over PCIe. */
static const cr_gpu_rates big = {
    .cpu = 100e9, .pinned = 55e9, .staged = 10e9, .launch_s = 20e-6, .chunk_bytes = 16 << 20};

/* Seconds until the GPU is done with share (and what is queued), and until the CPU is with the others. */
static double gpu_time(const cr_gpu_rates *r, uint64_t share, uint64_t queued) {
    return r->launch_s + (double)(share + queued) / r->pinned;
}

START_TEST(a_large_job_gives_whole_chunks) {
    ck_assert_uint_eq(cr_gpu_share(&big, 4 * GIB, 0, false), big.chunk_bytes);
    ck_assert_uint_eq(cr_gpu_share(&big, 4 * GIB, 48 * MIB, false), big.chunk_bytes);
    ck_assert_uint_eq(cr_gpu_share(&big, 4 * GIB, 0, true), 0); /* staging would take the bus from 15 workers */
    cr_gpu_rates few = big;
    few.cpu = 12e9;
    ck_assert_uint_eq(cr_gpu_share(&few, 4 * GIB, 0, true), big.chunk_bytes);
}
END_TEST

START_TEST(near_the_end_the_gpu_is_done_no_later_than_the_cpu) {
    unsigned taken = 0;
    for (uint64_t rest = 64 * 1024; rest <= 256 * MIB; rest += rest / 7 + 1)
        for (uint64_t queued = 0; queued <= 64 * MIB; queued += 16 * MIB) {
            uint64_t share = cr_gpu_share(&big, rest, queued, false);
            if (!share) continue;
            taken++;
            ck_assert_uint_le(share, rest);
            ck_assert_uint_ge(share, MIB);
            ck_assert_double_le(gpu_time(&big, share, queued), (double)(rest - share) / big.cpu * 1.000001);
        }
    ck_assert_uint_gt(taken, 20);
}
END_TEST

START_TEST(a_small_job_is_left_to_the_cpu) {
    uint64_t from = cr_gpu_from(&big);
    ck_assert_uint_gt(from, 2 * MIB);
    ck_assert_uint_lt(from, 64 * MIB);
    ck_assert_uint_eq(cr_gpu_share(&big, from - MIB, 0, false), 0);
    ck_assert_uint_ge(cr_gpu_share(&big, from + 4096, 0, false), MIB);
    ck_assert_uint_eq(cr_gpu_share(&big, 64 * MIB, GIB, false), 0); /* it has enough to do */
    ck_assert_uint_eq(cr_gpu_share(&big, 10 * MIB, 0, true), 0);    /* staging is slow */
    cr_gpu_rates slow = big;
    slow.launch_s = 1;
    ck_assert_uint_eq(cr_gpu_share(&slow, GIB, 0, false), 0);
}
END_TEST

START_TEST(an_option_and_nothing_measured) {
    cr_gpu_rates r = big;
    r.min_bytes = 100;
    ck_assert_uint_eq(cr_gpu_from(&r), 100);
    ck_assert_uint_eq(cr_gpu_share(&r, 99, 0, false), 0);
    ck_assert_uint_eq(cr_gpu_share(&r, 100, 0, false), 100);
    ck_assert_uint_eq(cr_gpu_share(&r, GIB, 0, true), r.chunk_bytes);
    r = big;
    r.cpu = 0;
    ck_assert_uint_eq(cr_gpu_from(&r), 1);
    ck_assert_uint_eq(cr_gpu_share(&r, 5, 0, false), r.chunk_bytes);
}
END_TEST

/* Shared memory, by what machines measured, and by rates that none of them had. */
START_TEST(slabs_are_for_those_who_gain) {
    static const struct {
        const char *machine;
        cr_shared_rates rates;
        bool worth;
    } cases[] = {
        {"16 cores, a GPU on PCIe 5", {.read = 69e9, .slabs = 11e9, .cpu = 100e9, .bus = 55e9}, false},
        {"8 GPUs beside it", {.read = 69e9, .slabs = 11e9, .cpu = 100e9, .bus = 440e9}, false},
        {"2 cores, a GPU on PCIe 4", {.read = 10e9, .slabs = 12e9, .cpu = 14e9, .bus = 25e9}, false},
        {"slow folds, a fast bus", {.read = 3e9, .slabs = 12e9, .cpu = 4e9, .bus = 55e9}, true},
        {"slow folds, a slow bus", {.read = 3e9, .slabs = 12e9, .cpu = 3.2e9, .bus = 0.4e9}, false},
        {"slow folds, slow slabs", {.read = 3e9, .slabs = 3.5e9, .cpu = 4e9, .bus = 55e9}, false},
        {"just not enough", {.read = 8e9, .slabs = 12e9, .cpu = 8e9, .bus = 55e9}, false},
        {"just enough", {.read = 8e9, .slabs = 12.1e9, .cpu = 8e9, .bus = 55e9}, true},
        {"not measured", {.cpu = 8e9, .bus = 55e9}, false},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(cr_gpu_slabs_from(&cases[i].rates, 5 * MIB) == (cases[i].worth ? 5 * MIB : UINT64_MAX), "%s",
                      cases[i].machine);
}
END_TEST

START_TEST(jobs_it_can_fold) {
    static const struct {
        cr_dtype dtype;
        uint32_t families;
        bool takes;
    } cases[] = {{CR_F32, CR_FAM_SUM, true}, {CR_I64, CR_FAM_PROD, true}, {CR_F64, CR_FAM_PROD, false}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_job *job = cr_job_new(cases[i].dtype, cases[i].families);
        ck_assert_int_eq(cr_gpu_takes(job), cases[i].takes);
        cr_job_move(job, CR_JOB_DONE);
        cr_job_free(job);
    }
}
END_TEST

START_TEST(a_large_work_says_when_the_next_is_nearly_done) {
    cr_gpu_pace pace = 0;
    ck_assert(!cr_gpu_nearly_done(pace, GIB, UINT64_C(1) << 40, 50000)); /* nothing is known yet */
    cr_gpu_learn(&pace, CR_GPU_LARGE_BYTES - 1, 1000);
    ck_assert(!cr_gpu_nearly_done(pace, GIB, UINT64_C(1) << 40, 50000));
    cr_gpu_learn(&pace, GIB, 256 * 1024);
    ck_assert(!cr_gpu_nearly_done(pace, 4 * GIB, 1024 * 1024 - 50001, 50000));
    ck_assert(cr_gpu_nearly_done(pace, 4 * GIB, 1024 * 1024 - 50000, 50000));
    ck_assert(cr_gpu_nearly_done(pace, 4 * GIB, 1024 * 1024 + 50000, 50000));
    ck_assert(!cr_gpu_nearly_done(pace, CR_GPU_LARGE_BYTES - 1, UINT64_C(1) << 40, 50000));
    cr_gpu_learn(&pace, GIB, 0); /* a clock that stands */
    ck_assert(cr_gpu_nearly_done(pace, GIB, 256 * 1024, 0));
}
END_TEST

CR_CHECK_MAIN("server/gpu_rates") {
    tcase_add_test(tc, a_large_job_gives_whole_chunks);
    tcase_add_test(tc, near_the_end_the_gpu_is_done_no_later_than_the_cpu);
    tcase_add_test(tc, a_small_job_is_left_to_the_cpu);
    tcase_add_test(tc, an_option_and_nothing_measured);
    tcase_add_test(tc, slabs_are_for_those_who_gain);
    tcase_add_test(tc, jobs_it_can_fold);
    tcase_add_test(tc, a_large_work_says_when_the_next_is_nearly_done);
}
