/* Pinning for two stand-in GPUs (tests/fake), the first of which is lost: regions go on being pinned by the other one, and each is given
 * back by the GPU that pinned it. */
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "server/lanes/lanes.h"
#include "tests/fake/fake_gpu.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { PIECE = 64 * 1024, PIECES = 4, CHUNK = 512 * 1024, LIMIT_MS = 300, WHOLE_LIMIT_MS = 60000 };

static cr_queue *queue;
static cr_lanes lanes;
static cr_device_hook hook;
static gate done = GATE_INIT, lost = GATE_INIT, releases = GATE_INIT;
static uint8_t *memory;
static cr_error error;

static void post(void *argument) { gate_add(argument); }

static void release(cr_segment *segment) {
    (void)segment;
    gate_add(&releases);
}

static void open_two(uint64_t timeout_ms) {
    cr_log_set_level(CR_LOG_ERROR);
    done.count = lost.count = 0;
    fake_gpu_plan(&(fake_gpu_faults){.devices = 2});
    assert_ok(cr_queue_new(post, &done, &queue, &error), error);
    lanes = (cr_lanes){.count = 1}; /* lane 0 would be the CPU's */
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++, lanes.count++) {
        const cr_lane_options options = {.queue = queue,
                                         .gpu = &cr_fake_gpu,
                                         .ordinal = ordinal,
                                         .streams = 1,
                                         .chunk_bytes = CHUNK,
                                         .timeout_ms = timeout_ms,
                                         .lost = post,
                                         .lost_argument = &lost};
        assert_ok(cr_lane_gpu.open(&options, &lanes.lanes[lanes.count], &error), error);
    }
    pthread_mutex_init(&lanes.pins_mutex, NULL);
    cr_list_init(&lanes.pins);
    hook = cr_lanes_device_hook(&lanes);
    memory = mmap(NULL, PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
}

static bool is_lost(uint32_t ordinal) { return cr_lane_gpu.info(lanes.lanes[ordinal + 1]).lost != NULL; }

static cr_status pin(unsigned piece) { return hook.pin(hook.context, memory + piece * PIECE, PIECE, &error); }

static void unpin(unsigned piece) { hook.unpin(hook.context, memory + piece * PIECE, PIECE); }

/* By a job that only the first GPU may take: its thread lives on. */
static void lose_first(void) {
    static cr_segment segment;
    const unsigned released = gate_count(&releases);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 2, .lose_at = 1});
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    job->kinds = CR_BY_GPU;
    job->device = 0;
    cr_segment_init(&segment, job, memory, 0);
    segment.release = release;
    cr_queue_add(queue, &segment);
    cr_queue_ready(queue, &segment, PIECE, true);
    cr_queue_unhold(queue, job);
    gate_wait(&done, 1);
    gate_wait(&releases, released + 1);
    gate_wait(&lost, 1);
    cr_list list;
    cr_queue_completed(queue, &list);
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), job);
    ck_assert_int_eq(job->error.code, CR_UNAVAILABLE);
    cr_job_free(job);
}

static void check_after_the_loss(void) {
    ck_assert(is_lost(0));
    ck_assert(!is_lost(1));
    ck_assert_uint_eq(fake_gpu_seen().pinned, 2); /* of the first GPU, which gives nothing back, and of the second */
    unpin(1);
    ck_assert_uint_eq(fake_gpu_seen().pinned, 1);
    unpin(0);
    ck_assert_uint_eq(fake_gpu_seen().pinned, 1);
    for (unsigned round = 0; round < 2; round++) { /* where the first GPU's was: now it is the second's */
        assert_ok(pin(0), error);
        ck_assert_uint_eq(fake_gpu_seen().pinned, 2);
        unpin(0);
        ck_assert_uint_eq(fake_gpu_seen().pinned, 1);
    }
    assert_ok(pin(2), error); /* and stays until the lane ends */
}

static void close_two(bool stuck) {
    cr_queue_close(queue);
    while (--lanes.count) cr_lane_gpu.close(lanes.lanes[lanes.count]);
    if (stuck) return; /* the first lane's thread stays in its driver, with what it looks at */
    ck_assert_uint_eq(fake_gpu_seen().pinned, 0);
    cr_queue_free(queue);
    munmap(memory, PIECES * PIECE);
}

START_TEST(a_lost_gpu_pins_no_more) {
    open_two(WHOLE_LIMIT_MS);
    assert_ok(pin(0), error);
    lose_first();
    assert_ok(pin(1), error);
    check_after_the_loss();
    close_two(false);
}
END_TEST

START_TEST(a_gpu_is_lost_while_it_pins) {
    open_two(LIMIT_MS);
    assert_ok(pin(0), error);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 2, .stuck_pin = 1});
    assert_ok(pin(1), error);
    check_after_the_loss();
    close_two(true);
}
END_TEST

START_TEST(what_all_gpus_refuse) {
    open_two(WHOLE_LIMIT_MS);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 2, .fail_pin = 1});
    assert_fails(pin(0), CR_RESOURCE_EXHAUSTED, error, "pinned");
    unpin(0);
    fake_gpu_plan(&(fake_gpu_faults){.devices = 2});
    fail_allocation(1);
    const cr_status status = pin(0);
    assert_fails(status, CR_RESOURCE_EXHAUSTED, error, "memory");
    ck_assert_uint_eq(fake_gpu_seen().pinned, 0);
    close_two(false);
}
END_TEST

CR_CHECK_MAIN("server/gpu_pins") {
    tcase_add_test(tc, a_lost_gpu_pins_no_more);
    tcase_add_test(tc, a_gpu_is_lost_while_it_pins);
    tcase_add_test(tc, what_all_gpus_refuse);
}
