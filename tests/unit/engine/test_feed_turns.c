/* Feeds beside others, without a lane: the test claims and folds by itself, and so counts what others get meanwhile. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "engine/feed.h"
#include "engine/memory/guard.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MIB = 1024 * 1024, SLABS = 4 };

static cr_queue *queue;
static cr_slabs *slabs;
static cr_files *files;
static cr_turn turn;
static gate woken = GATE_INIT, held = GATE_INIT, go_on = GATE_INIT, came = GATE_INIT;
static cr_error error;

static void wake(void *argument) { gate_add(argument); }

static void setup(void) {
    assert_ok(cr_guard_install(&error), error);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    assert_ok(cr_slabs_new(SLABS, &slabs, &error), error);
    assert_ok(cr_files_new(1, 1, &files, &error), error);
}

static void teardown(void) {
    ck_assert(cr_files_stop(files, 60000));
    ck_assert_uint_eq(metric_now(CR_M_slabs_used), 0);
    ck_assert_uint_eq(metric_now(CR_M_windows), 0);
    cr_slabs_free(slabs);
    cr_queue_free(queue);
}

/* bytes of zeros, summed for client 1. */
static cr_job *start(int fd, uint64_t bytes) {
    ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)bytes), 0);
    cr_feed_options options = {.files = files,
                               .slabs = slabs,
                               .queue = queue,
                               .max_bytes = 1ull << 40,
                               .max_option = "max_input_bytes",
                               .input = {1, {{.descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0)}}},
                               .client = 1,
                               .owner = 1,
                               .to_end = true};
    cr_job *job = cr_job_new(CR_U8, CR_FAM_SUM);
    job->kinds = CR_BY_CPU | CR_BY_GPU; /* or it would need no slab */
    job->client = 1;
    assert_ok(cr_feed_start(job, &options, &error), error);
    return job;
}

/* Claims; the claim before counts as folded. */
static bool claim(void) { return cr_queue_turn(queue, &turn, 1, false); }

static void hold_up(cr_file_task *task) {
    (void)task;
    gate_add(&held);
    gate_wait(&go_on, 1);
}

static void submit(cr_file_task *task, void (*run)(cr_file_task *), uint64_t client) {
    *task = (cr_file_task){.run = run, .user = client, .client = client};
    cr_waiting_init(&task->waiting);
    cr_files_submit(files, task, CR_FILES_LOCAL);
}

/* Folds what comes until the job is done. */
static void finish(cr_job *job) {
    cr_list list;
    cr_list_init(&list);
    while (cr_list_empty(&list)) {
        if (!claim()) usleep(100);
        cr_queue_completed(queue, &list);
    }
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), job);
    ck_assert_int_eq(job->error.code, CR_OK);
    cr_job_free(job);
}

static void granted(cr_slab_waiter *waiter, void *slab) {
    waiter->slab = slab;
    gate_add(&came);
}

START_TEST(a_fold_gives_its_slab_back_without_a_files_thread) {
    cr_file_task task;
    cr_slab_waiter waiter = {.granted = granted, .asker = {.client = 2, .owner = 2}};
    int fd = memory_file();
    cr_job *job = start(fd, 8 * MIB);
    while (metric_now(CR_M_slabs_used) < SLABS || cr_files_waited_for(files, CR_FILES_LOCAL)) usleep(100);
    submit(&task, hold_up, 2); /* behind the last read */
    gate_wait(&held, 1);
    ck_assert_ptr_null(cr_slab_take(slabs, &waiter.asker));
    while (metric_now(CR_M_slabs_used) == SLABS) ck_assert(claim()); /* until one is folded */
    void *slab = cr_slab_take(slabs, &waiter.asker);
    ck_assert_ptr_nonnull(slab);
    cr_waiting_init(&waiter.waiting);
    ck_assert_ptr_null(cr_slab_take_or_wait(slabs, &waiter));
    while (!gate_count(&came)) ck_assert(claim());
    cr_slab_give(slabs, waiter.slab);
    cr_slab_give(slabs, slab);
    gate_add(&go_on);
    finish(job);
    close(fd);
}
END_TEST

static gate held_again = GATE_INIT, go_on_again = GATE_INIT;

static void hold_up_again(cr_file_task *task) {
    (void)task;
    gate_add(&held_again);
    gate_wait(&go_on_again, 1);
}

static void do_nothing(cr_file_task *task) { (void)task; }

/* Its client's turn is over once it was looked at, and another's task keeps the thread: its bytes are offered all the same. */
START_TEST(a_small_file_is_offered_by_who_looks_at_it) {
    cr_file_task first, other, spent = {.run = do_nothing, .user = 1, .client = 1, .bytes = MIB - CR_TURN_LEAST_BYTES};
    int fd = _i ? memory_file() : disk_file();
    submit(&first, hold_up, 9);
    gate_wait(&held, 1);
    cr_waiting_init(&spent.waiting);
    cr_files_submit(files, &spent, CR_FILES_LOCAL);
    cr_job *job = start(fd, 4096);
    submit(&other, hold_up_again, 2);
    gate_add(&go_on);
    gate_wait(&held_again, 1);
    ck_assert(claim());
    gate_add(&go_on_again);
    finish(job);
    close(fd);
}
END_TEST

static uint64_t read_before;

static void note_reads(cr_file_task *task) {
    (void)task;
    read_before = metric_now(CR_M_slabs_used);
    gate_add(&came);
}

/* While slabs are plenty, each of a client's tasks takes one and fills it. Another's task waits for one of them, not for all. */
START_TEST(a_read_counts_as_what_it_reads) {
    enum { FEEDS = 12, PLENTY = 64 };
    cr_file_task first, other;
    cr_list list;
    int fds[FEEDS];
    cr_slabs_free(slabs);
    assert_ok(cr_slabs_new(PLENTY, &slabs, &error), error);
    submit(&first, hold_up, 9);
    gate_wait(&held, 1);
    for (int i = 0; i < FEEDS; i++) start(fds[i] = memory_file(), 4 * MIB);
    submit(&other, note_reads, 2);
    gate_add(&go_on);
    gate_wait(&came, 1);
    ck_assert_uint_le(read_before, 2);
    for (int done = 0; done < FEEDS;) {
        if (!claim()) usleep(100);
        cr_queue_completed(queue, &list);
        for (cr_list *node; (node = cr_list_pop(&list)); done++) cr_job_free(cr_container(node, cr_job, done));
    }
    for (int i = 0; i < FEEDS; i++) close(fds[i]);
}
END_TEST

CR_CHECK_MAIN("engine/feed_turns") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_fold_gives_its_slab_back_without_a_files_thread);
    tcase_add_loop_test(tc, a_small_file_is_offered_by_who_looks_at_it, 0, 2);
    tcase_add_test(tc, a_read_counts_as_what_it_reads);
}
