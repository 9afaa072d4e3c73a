/* Memory that workers read themselves: no slab, any size and offset, several workers, and a file that is cut meanwhile. */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/feed.h"
#include "engine/lane.h"
#include "engine/memory/guard.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static cr_queue *queue;
static cr_slabs *slabs;
static cr_files *files;
static cr_lane *lane;
static void *only_slab;
static gate woken = GATE_INIT;
static cr_error error;

static void wake(void *argument) { gate_add(argument); }

/* The one slab is taken: who needs one waits for ever. */
static void setup(void) {
    const cr_slab_asker test = {.client = 99};
    assert_ok(cr_guard_install(&error), error);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    assert_ok(cr_slabs_new(1, &slabs, &error), error);
    assert_ok(cr_files_new(1, 1, &files, &error), error);
    only_slab = cr_slab_take(slabs, &test);
    ck_assert_ptr_nonnull(only_slab);
}

static void open_lane(void) {
    const cr_lane_options options = {.queue = queue, .workers = 3};
    assert_ok(cr_lane_cpu.open(&options, &lane, &error), error);
}

static void teardown(void) {
    ck_assert(cr_files_stop(files, 60000));
    cr_queue_close(queue);
    cr_lane_cpu.close(lane);
    cr_slab_give(slabs, only_slab);
    ck_assert_uint_eq(metric_now(CR_M_regions), 0);
    ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    cr_slabs_free(slabs);
    cr_queue_free(queue);
}

static cr_job *start(cr_dtype dtype, int fd, uint64_t offset) {
    const cr_feed_options options = {.files = files,
                                     .slabs = slabs,
                                     .queue = queue,
                                     .max_bytes = 1ull << 40,
                                     .max_option = "max_input_bytes",
                                     .input = {1, {{.descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0), .offset = offset}}},
                                     .to_end = true};
    cr_job *job = cr_job_new(dtype, cr_op_needs(CR_OP_SUM, dtype) | cr_op_needs(CR_OP_ARGMAX, dtype));
    assert_ok(cr_feed_start(job, &options, &error), error);
    return job;
}

static cr_job *done(void) {
    for (unsigned seen = 0;; seen++) {
        cr_list list;
        cr_queue_completed(queue, &list);
        cr_list *node = cr_list_pop(&list);
        if (node) return cr_container(node, cr_job, done);
        gate_wait(&woken, seen + 1);
    }
}

static uint64_t answer(const cr_job *job, cr_op op) {
    cr_value value;
    uint64_t got = 0;
    ck_assert_msg(job->error.code == CR_OK, "%s", job->error.text);
    cr_partial_finish(&job->partial, op, &(cr_finish_opts){0}, &value);
    ck_assert_int_eq(value.error.code, CR_OK);
    memcpy(&got, value.bytes, sizeof got);
    return got;
}

START_TEST(workers_read_what_they_fold) {
    static const struct {
        size_t elements, lead;
    } cases[] = {{1, 0}, {70000, 0}, {70000, 12}, {3000001, 8}, {65536, 0}, {65537, 4096}};
    const size_t n = cases[_i].elements, most = n / 3 * 2;
    int fd = memory_file();
    uint32_t *numbers = malloc(n * sizeof *numbers);
    char junk[4096];
    uint64_t sum = 0;
    memset(junk, 0xff, sizeof junk);
    fill_file(fd, junk, cases[_i].lead);
    for (size_t i = 0; i < n; i++) numbers[i] = (uint32_t)(i * 2654435761u) >> 1;
    numbers[most] = UINT32_MAX;
    for (size_t i = 0; i < n; i++) sum += numbers[i];
    fill_file(fd, numbers, n * sizeof *numbers);
    open_lane();
    cr_job *job = start(CR_U32, fd, cases[_i].lead);
    ck_assert_ptr_eq(done(), job);
    ck_assert_uint_eq(answer(job, CR_OP_SUM), sum);
    ck_assert_uint_eq(answer(job, CR_OP_ARGMAX), most);
    ck_assert_uint_eq(job->folded_bytes, n * 4);
    cr_job_free(job);
    free(numbers);
    close(fd);
}
END_TEST

START_TEST(a_file_that_is_cut_is_told) {
    enum { BYTES = 5000000 };
    int fd = memory_file();
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    cr_job *job = start(CR_U8, fd, 0);
    while (!metric_now(CR_M_queue_depth)) sched_yield(); /* looked at, and offered to nobody yet */
    ck_assert_int_eq(ftruncate(fd, BYTES / 2), 0);
    open_lane();
    ck_assert_ptr_eq(done(), job);
    ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    ck_assert_msg(strstr(job->error.text, "the file ended at 2500000") != NULL, "%s", job->error.text);
    cr_job_free(job);
    close(fd);
}
END_TEST

CR_CHECK_MAIN("engine/feed_unread") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, workers_read_what_they_fold, 0, 6);
    tcase_add_test(tc, a_file_that_is_cut_is_told);
}
