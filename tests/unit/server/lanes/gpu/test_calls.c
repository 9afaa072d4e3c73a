/* How often the lane of a GPU calls its device (tests/fake) for each kind of work: as often as is written here, and no more. And which
 * moves of a work are refused. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/job_axis.h"
#include "engine/named.h"
#include "server/lanes/gpu/lane.h"
#include "server/lanes/gpu/work.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MIB = 1024 * 1024, BYTES = 4 * MIB, CHUNK = MIB, LIMIT_MS = 60000, SMALL_JOBS = 5, MOST_JOBS = 8 };

static cr_queue *queue;
static cr_lane *lane;
static gate done = GATE_INIT;
static uint8_t *memory, *on_device;
static void *imported, *event;
static cr_error error;
static cr_segment segments[MOST_JOBS];
static unsigned job_count;

static void post(void *argument) { gate_add(argument); }

static void release(cr_segment *segment) { (void)segment; }

/* The same bytes in host memory and in the device's; the sum of the second half, as u64, does not fit one. */
static void make_memory(void) {
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    for (size_t i = 0; i < BYTES; i++) memory[i] = (uint8_t)(i % 251);
    memset(memory + BYTES / 2, 0xff, BYTES / 2);
}

static void share_memory(void) {
    char name[64] = "/tmp/cured-calls-XXXXXX";
    cr_device_memory shared = {.descriptor = -1, .has_handle = true, .bytes = BYTES};
    const int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    fill_file(fd, memory, BYTES);
    memcpy(shared.handle, name, sizeof name);
    const cr_status status = cr_lane_gpu_import(lane, &shared, &imported, &event, &error);
    unlink(name);
    close(fd);
    assert_ok(status, error);
    on_device = imported;
}

static void open_lane(void) {
    const cr_lane_options options = {.queue = queue,
                                     .gpu = &cr_fake_gpu,
                                     .streams = 1,
                                     .chunk_bytes = CHUNK,
                                     .min_bytes = 1,
                                     .timeout_ms = LIMIT_MS};
    assert_ok(cr_lane_gpu.open(&options, &lane, &error), error);
}

static void offer(cr_job *job, const uint8_t *data, uint64_t bytes) {
    cr_segment *segment = &segments[job_count++];
    job->kinds = CR_BY_GPU;
    job->gpu_from = 1;
    if (on_device && data >= on_device && data < on_device + BYTES) job->device = 0;
    cr_segment_init(segment, job, data, 0);
    segment->aligned = true;
    segment->release = release;
    cr_queue_set_total(queue, job, bytes);
    cr_queue_add(queue, segment);
    cr_queue_ready(queue, segment, bytes, true);
    cr_queue_unhold(queue, job);
}

static void whole(const uint8_t *data, uint64_t bytes) { offer(cr_job_new(CR_U8, CR_FAM_SUM), data, bytes); }

static void along_axis(cr_dtype dtype, cr_op op, cr_shape shape, const uint8_t *data, bool by_host) {
    const cr_axis_spec spec = {
        .dtype = dtype, .shape = shape, .families = cr_op_needs(op, dtype), .op_count = 1, .ops = {op}};
    cr_job *job = cr_job_new(dtype, spec.families);
    cr_status status = data == memory ? cr_job_axis_make(job, &spec, 1, CR_JOB_AXIS_PASSES, BYTES, &error)
                                      : cr_job_axis_make_on_device(job, &spec, BYTES, &error);
    if (by_host) status = cr_job_axis_make_by_host(job, BYTES, &error);
    assert_ok(status, error);
    offer(job, data, shape.outer * shape.n * shape.inner * job->element);
}

static void named(const uint8_t *data, uint64_t bytes) {
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    assert_ok(cr_named_attach(job, "v7_shuffle", (uint32_t[]){CR_OP_SUM, CR_OP_MEAN}, 2, &error), error);
    offer(job, data, bytes);
}

static void await_jobs(cr_status wanted) {
    for (unsigned got = 0; got < job_count;) {
        cr_list finished;
        cr_queue_completed(queue, &finished);
        for (cr_list *node; (node = cr_list_pop(&finished)); got++) {
            cr_job *job = cr_container(node, cr_job, done);
            for (cr_output *output; (output = cr_queue_output(queue, job)); free(output)) continue;
            ck_assert_int_eq(job->error.code, wanted);
            cr_job_free(job);
        }
        if (got < job_count) usleep(1000);
    }
    job_count = 0;
}

static void nothing(void) {}
static void host_chunks(void) { whole(memory, BYTES); }
static void device_chunks(void) { whole(on_device, BYTES); }
static void pack(void) {
    for (unsigned i = 0; i < SMALL_JOBS; i++) whole(memory + i * 4096, 4000);
}
static void device_pack(void) { whole(on_device, 4000); }
static void device_product(void) { offer(cr_job_new(CR_F32, CR_FAM_PROD), on_device, 4000); }
static void host_rows(void) { along_axis(CR_F32, CR_OP_MAX, (cr_shape){1024, 256, 1}, memory, false); }
static void device_rows(void) { along_axis(CR_F32, CR_OP_MAX, (cr_shape){1024, 256, 1}, on_device, false); }
static void many_answers(void) { along_axis(CR_U8, CR_OP_SUM, (cr_shape){1, 2, MIB / 4}, on_device, false); }
static void too_large(void) {
    along_axis(CR_U64, CR_OP_SUM, (cr_shape){1, BYTES / 16, 1}, on_device + BYTES / 2, false);
}
static void fetched(void) { along_axis(CR_F32, CR_OP_MAX, (cr_shape){1024, 1024, 1}, on_device, true); }
static void fetched_array(void) {
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    job->by_host = true;
    offer(job, on_device, BYTES);
}
static void host_named(void) { named(memory, BYTES); }
static void device_named(void) { named(on_device, BYTES); }

typedef struct calls {
    uint32_t copies, folds, packs, axes, fetches, kernels, allocations, frees, trims, polls;
} calls;

static calls made(void) {
    const fake_gpu_counts c = fake_gpu_seen();
    return (calls){c.copy_calls, c.fold_calls,  c.packs, c.axes,  c.fetches,
                   c.kernels,    c.allocations, c.frees, c.trims, c.polls};
}

/* The calls of a lane from its opening to its end. early: the jobs are in line before it opens. */
static calls run(void (*jobs)(void), bool early, cr_status wanted) {
    const calls before = made();
    calls after;
    uint32_t *a = (uint32_t *)&after;
    const uint32_t *b = (const uint32_t *)&before;
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    on_device = NULL;
    if (early) cr_queue_gpu_comes(queue, 0);
    if (early) jobs();
    open_lane();
    share_memory();
    if (!early) jobs();
    await_jobs(wanted);
    cr_lane_gpu_release(lane, imported, event);
    cr_queue_close(queue);
    cr_lane_gpu.close(lane);
    cr_queue_free(queue);
    after = made();
    for (size_t i = 0; i < sizeof after / sizeof *a; i++) a[i] -= b[i];
    return after;
}

START_TEST(calls_of_each_kind_of_work) {
    static const struct {
        const char *name;
        void (*jobs)(void);
        bool early;
        cr_status status;
        calls wanted; /* beside those of a lane that does nothing */
    } cases[] = {
        {"chunks of host memory", host_chunks, false, CR_OK, {.copies = 4, .folds = 4, .polls = 8}},
        {"chunks of device memory", device_chunks, false, CR_OK, {.folds = 1, .polls = 1}},
        {"a pack", pack, true, CR_OK, {.packs = 1, .polls = SMALL_JOBS}},
        {"a pack of one", device_pack, false, CR_OK, {.packs = 1, .polls = 1}},
        {"a product in order", device_product, false, CR_OK, {.packs = 1, .polls = 1}},
        {"rows of host memory", host_rows, false, CR_OK, {.copies = 1, .axes = 1, .trims = 1, .polls = 2}},
        {"rows of device memory", device_rows, false, CR_OK, {.axes = 1, .trims = 1, .polls = 1}},
        {"many answers", many_answers, false, CR_OK, {.axes = 1, .trims = 1, .polls = 2}},
        {"an answer that does not fit",
         too_large,
         false,
         CR_OUT_OF_RANGE,
         {.axes = 1, .fetches = 2, .trims = 1, .polls = 3}},
        {"fetched", fetched, false, CR_OK, {.fetches = 16, .polls = 16}},
        {"fetched array", fetched_array, false, CR_OK, {.fetches = 16, .polls = 16}},
        {"a named kernel",
         host_named,
         false,
         CR_OK,
         {.copies = 4, .kernels = 2, .allocations = 1, .frees = 1, .polls = 4}},
        {"a named kernel on device memory", device_named, false, CR_OK, {.kernels = 2, .polls = 2}},
    };
    cr_log_set_level(CR_LOG_ERROR);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 1});
    make_memory();
    calls idle = run(nothing, false, CR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        calls seen = run(cases[i].jobs, cases[i].early, cases[i].status), wanted = cases[i].wanted;
        uint32_t *s = (uint32_t *)&seen, *w = (uint32_t *)&wanted, *n = (uint32_t *)&idle;
        char text[2][160] = {"", ""};
        for (size_t k = 0; k < sizeof seen / sizeof *s; k++) {
            snprintf(text[0] + strlen(text[0]), 12, "%u, ", w[k]);
            snprintf(text[1] + strlen(text[1]), 12, "%u, ", s[k] - n[k]);
        }
        ck_assert_msg(strcmp(text[0], text[1]) == 0, "%s: %swere to be made, and %swere", cases[i].name, text[0],
                      text[1]);
    }
    munmap(memory, BYTES);
}
END_TEST

#ifndef NDEBUG
/* Every move of a work that its drawing (work.h) does not have. */
START_TEST(moves_that_are_not_drawn) {
    static const cr_gpu_work_state moves[][2] = {{CR_WORK_IDLE, CR_WORK_IDLE},
                                                 {CR_WORK_IDLE, CR_WORK_PARKED},
                                                 {CR_WORK_RUNNING, CR_WORK_RUNNING},
                                                 {CR_WORK_PARKED, CR_WORK_PARKED}};
    static cr_gpu_work work;
    work.state = moves[_i][0];
    work.claim_count = 1;
    cr_gpu_work_move(&work, moves[_i][1]);
}
END_TEST

START_TEST(a_work_without_claims) {
    static cr_gpu_work work;
    cr_gpu_work_move(&work, CR_WORK_RUNNING);
}
END_TEST
#endif

CR_CHECK_MAIN("server/gpu_calls") {
    tcase_add_test(tc, calls_of_each_kind_of_work);
#ifndef NDEBUG
    tcase_add_loop_test_raise_signal(tc, moves_that_are_not_drawn, SIGABRT, 0, 4);
    tcase_add_test_raise_signal(tc, a_work_without_claims, SIGABRT);
#endif
}
