/* Shared memory beside a stand-in GPU: who reads it follows from what was measured, and every way gives the same answer. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/feed.h"
#include "engine/memory/guard.h"
#include "server/lanes/gpu/rates.h"
#include "server/lanes/lanes.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MIB = 1024 * 1024, FROM = 2 * MIB };

static cr_config config;
static cr_queue *queue;
static cr_slabs *slabs;
static cr_files *files;
static cr_lanes lanes;
static gate woken = GATE_INIT;
static cr_error error;

static void wake(void *argument) { gate_add(argument); }

static void setup(void) {
    char *arguments[] = {"cured", "--listen",          "unix:/nowhere", "--cpu-workers", "2", "--gpu-min-bytes",
                         "2MiB",  "--gpu-chunk-bytes", "1MiB",          "--gpu-streams", "1", NULL};
    char *environment[] = {NULL};
    cr_config_action action;
    cr_log_set_level(CR_LOG_ERROR);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1});
    assert_ok(cr_config_load(11, arguments, environment, &config, &action, &error), error);
    assert_ok(cr_guard_install(&error), error);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    assert_ok(cr_slabs_new(16, &slabs, &error), error);
    assert_ok(cr_files_new(2, 1, &files, &error), error);
    const cr_lanes_options options = {
        .config = &config, .queue = queue, .slabs = slabs, .gpu = &cr_fake_gpu, .wake = wake, .wake_argument = &woken};
    assert_ok(cr_lanes_open(&lanes, &options, &error), error);
}

static void teardown(void) {
    ck_assert(cr_files_stop(files, 60000));
    cr_queue_close(queue);
    ck_assert(cr_lanes_close(&lanes, slabs));
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    cr_slabs_free(slabs);
    cr_queue_free(queue);
}

/* Shared memory of each kind. */
static int open_memory(int kind) {
    char name[64];
    if (kind < 2) return memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    snprintf(name, sizeof name, "/cured-test-%d", (int)getpid());
    const int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    shm_unlink(name);
    return fd;
}

static uint64_t sum_of(cr_job *job) {
    cr_value value;
    uint64_t sum = 0;
    ck_assert_msg(job->error.code == CR_OK, "%s", job->error.text);
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    memcpy(&sum, value.bytes, sizeof sum);
    return sum;
}

/* Sums it as the daemon would. */
static uint64_t reduce(int fd) {
    const cr_feed_options options = {.files = files,
                                     .slabs = slabs,
                                     .queue = queue,
                                     .max_bytes = 1ull << 40,
                                     .max_option = "max_input_bytes",
                                     .input = {1, {{.descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0)}}},
                                     .to_end = true};
    cr_job *job = cr_job_new(CR_U32, CR_FAM_SUM);
    cr_list done, *node;
    cr_lanes_place(&lanes, job);
    assert_ok(cr_feed_start(job, &options, &error), error);
    for (unsigned seen = 0;; seen++) {
        cr_queue_completed(queue, &done);
        if ((node = cr_list_pop(&done))) break;
        gate_wait(&woken, seen + 1);
    }
    ck_assert_ptr_eq(cr_container(node, cr_job, done), job);
    const uint64_t sum = sum_of(job);
    cr_job_free(job);
    return sum;
}

static const struct {
    cr_shared_rates rates;
    bool slabs;
} machines[] = {{{.read = 69e9, .slabs = 11e9, .cpu = 100e9, .bus = 55e9}, false},
                {{.read = 10e9, .slabs = 12e9, .cpu = 14e9, .bus = 25e9}, false},
                {{.read = 3e9, .slabs = 12e9, .cpu = 4e9, .bus = 55e9}, true}};
enum { MACHINES = sizeof machines / sizeof *machines };

/* Kinds: memfd, sealed memfd, POSIX shared memory. */
static void reads(int machine, int kind, size_t size) {
    const bool by_slabs = machines[machine].slabs && size >= FROM;
    const int fd = open_memory(kind);
    uint32_t *numbers = malloc(size);
    uint64_t sum = 0;
    for (size_t i = 0; i < size / sizeof *numbers; i++) sum += numbers[i] = (uint32_t)(i * 2654435761u);
    ck_assert_int_ge(fd, 0);
    fill_file(fd, numbers, size);
    free(numbers);
    if (kind == 1) ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    lanes.slabs_from = cr_gpu_slabs_from(&machines[machine].rates, lanes.gpu_from);
    const uint64_t read = metric_now(CR_M_slab_read_bytes_total);
    uint64_t copied = fake_gpu_seen().copied_bytes;
    ck_assert_uint_eq(reduce(fd), sum);
    ck_assert_uint_eq(metric_now(CR_M_slab_read_bytes_total) - read, by_slabs ? size : 0);
    if (!by_slabs) ck_assert_uint_eq(fake_gpu_seen().copied_bytes, copied);
    while (by_slabs && fake_gpu_seen().copied_bytes == copied) ck_assert_uint_eq(reduce(fd), sum); /* its part */
    close(fd);
}

START_TEST(whoever_is_sooner_done_reads_it) {
    static const size_t sizes[] = {4096, FROM - 4, FROM, 9 * MIB + 4};
    for (int kind = 0; kind < 3; kind++)
        for (int size = 0; size < 4; size++) reads(_i, kind, sizes[size]);
}
END_TEST

/* Where an operator says from how many bytes on the GPU helps, that holds, and with backend cuda it takes all. */
START_TEST(options_go_before_rates) {
    ck_assert_uint_eq(lanes.gpu_from, FROM);
    ck_assert_uint_eq(lanes.slabs_from, FROM);
    cr_job *job = cr_job_new(CR_U32, CR_FAM_SUM);
    job->kinds = CR_BY_GPU;
    job->slabs_from = UINT64_MAX;
    ck_assert(!cr_queue_reads(queue, job, 1));
    ck_assert_uint_eq(job->kinds, CR_BY_GPU);
    job->kinds = CR_BY_CPU | CR_BY_GPU;
    job->in_order = true; /* pieces must come in order, so they come by slabs */
    ck_assert(!cr_queue_reads(queue, job, 1));
    job->in_order = false;
    ck_assert(cr_queue_reads(queue, job, 1));
    ck_assert_uint_eq(job->kinds, CR_BY_CPU);
    cr_job_move(job, CR_JOB_DONE);
    cr_job_free(job);
}
END_TEST

START_TEST(what_was_measured_is_told) {
    ck_assert_uint_gt(metric_now(CR_M_shared_bytes_per_second), 0);
    ck_assert_uint_gt(metric_now(CR_M_slab_bytes_per_second), 0);
}
END_TEST

CR_CHECK_MAIN("server/lanes_shared") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, whoever_is_sooner_done_reads_it, 0, MACHINES);
    tcase_add_test(tc, options_go_before_rates);
    tcase_add_test(tc, what_was_measured_is_told);
}
