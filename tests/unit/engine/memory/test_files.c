/* Files threads: both pools, a hung task beside others, forgetting, closing, and the end. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memory/files.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MIB = 1024 * 1024 };

typedef struct work {
    cr_file_task task;
    gate *begun, *may_end, *done;
    pthread_t thread;
} work;

static cr_files *files;
static gate begun = GATE_INIT, may_end = GATE_INIT, done = GATE_INIT;

static void setup(void) {
    cr_error error;
    assert_ok(cr_files_new(2, 4, &files, &error), error);
}

static void run(cr_file_task *task) {
    work *w = cr_container(task, work, task);
    w->thread = pthread_self();
    gate_add(w->begun);
    if (w->may_end) gate_wait(w->may_end, 1);
    gate_add(w->done);
}

static work new_work(bool hangs) {
    work w = {.task = {.run = run}, .begun = &begun, .may_end = hangs ? &may_end : NULL, .done = &done};
    return w;
}

/* Each task is another user's, unless it says whose it is. */
static void submit(work *w, cr_files_pool pool) {
    static uint64_t others = 1000;
    cr_waiting_init(&w->task.waiting);
    if (!w->task.client) w->task.user = w->task.client = others++;
    cr_files_submit(files, &w->task, pool);
}

static void stop(void) {
    ck_assert(cr_files_stop(files, 60000));
    ck_assert_uint_eq(metric_now(CR_M_file_tasks), 0);
}

START_TEST(tasks_run_once_on_another_thread) {
    work w[20];
    for (int i = 0; i < 20; i++) {
        w[i] = new_work(false);
        submit(&w[i], i % 2 ? CR_FILES_FOREIGN : CR_FILES_LOCAL);
    }
    gate_wait(&done, 20);
    stop();
    ck_assert_uint_eq(gate_count(&done), 20);
    for (int i = 0; i < 20; i++) ck_assert(!pthread_equal(w[i].thread, pthread_self()));
}
END_TEST

START_TEST(hung_foreign_calls_leave_local_ones_alone) {
    work hung[6], local[4];
    for (int i = 0; i < 6; i++) {
        hung[i] = new_work(true);
        submit(&hung[i], CR_FILES_FOREIGN);
    }
    gate_wait(&begun, 4); /* all of its threads */
    for (int i = 0; i < 4; i++) {
        local[i] = new_work(false);
        submit(&local[i], CR_FILES_LOCAL);
    }
    gate_wait(&done, 4);
    ck_assert_uint_eq(gate_count(&begun), 8);
    gate_add(&may_end);
    gate_wait(&done, 10);
    stop();
}
END_TEST

/* One idle thread must not be taken for two: the second task would wait behind the first, which may hang. */
START_TEST(every_foreign_task_gets_a_thread_while_there_are_more) {
    work warm = new_work(false), hung[4];
    submit(&warm, CR_FILES_FOREIGN);
    gate_wait(&done, 1);
    usleep(1000); /* most likely idle again; whether it is or not, the test must pass */
    for (int i = 0; i < 4; i++) {
        hung[i] = new_work(true);
        submit(&hung[i], CR_FILES_FOREIGN);
    }
    gate_wait(&begun, 5); /* with the bug: for ever */
    gate_add(&may_end);
    gate_wait(&done, 5);
    stop();
}
END_TEST

START_TEST(no_client_takes_all_threads) {
    work hung[6], other = new_work(false), forgotten = new_work(false);
    for (int i = 0; i < 6; i++) {
        hung[i] = new_work(true);
        hung[i].task.user = hung[i].task.client = 1;
        submit(&hung[i], CR_FILES_FOREIGN);
    }
    gate_wait(&begun, 2);
    other.task.user = other.task.client = 2;
    submit(&other, CR_FILES_FOREIGN);
    gate_wait(&done, 1);
    ck_assert_uint_eq(gate_count(&begun), 3); /* half of the four threads, and the other's */
    forgotten.task.user = forgotten.task.client = 1;
    submit(&forgotten, CR_FILES_FOREIGN);
    ck_assert(cr_files_forget(files, &forgotten.task));
    gate_add(&may_end);
    gate_wait(&done, 7);
    stop();
}
END_TEST

/* Of eight threads a process gets half, its user's other processes get two more, and two are left to other users. */
START_TEST(no_user_takes_all_threads) {
    enum { HUNG = 9 };
    work hung[HUNG], other = new_work(false);
    cr_error error;
    stop();
    assert_ok(cr_files_new(2, 8, &files, &error), error);
    static const unsigned clients[HUNG] = {1, 1, 1, 1, 1, 2, 2, 2, 3}, runs[HUNG] = {1, 2, 3, 4, 4, 5, 6, 6, 6};
    for (int i = 0; i < HUNG; i++) {
        hung[i] = new_work(true);
        hung[i].task.user = 7;
        hung[i].task.client = clients[i];
        submit(&hung[i], CR_FILES_FOREIGN);
        gate_wait(&begun, runs[i]);
    }
    submit(&other, CR_FILES_FOREIGN);
    gate_wait(&done, 1);
    ck_assert_uint_eq(gate_count(&begun), 7);
    gate_add(&may_end);
    gate_wait(&done, HUNG + 1);
    stop();
}
END_TEST

/* A thread that looks for its next task passes over those that may not run without a look at each of their processes. */
START_TEST(many_processes_cost_no_more_than_one) {
    enum { PROCESSES = 200 };
    static work waiting[PROCESSES];
    work hung[3], other = new_work(false);
    for (uint64_t i = 0; i < 3; i++) {
        hung[i] = new_work(true);
        hung[i].task.user = 7;
        hung[i].task.client = i + 1;
        submit(&hung[i], CR_FILES_FOREIGN);
    }
    gate_wait(&begun, 3);
    for (uint64_t i = 0; i < PROCESSES; i++) {
        waiting[i] = new_work(false);
        waiting[i].task.user = 7;
        waiting[i].task.client = i + 10;
        submit(&waiting[i], CR_FILES_FOREIGN);
    }
    ck_assert_uint_eq(cr_files_foreign_tasks(files, 7), PROCESSES + 3);
    submit(&other, CR_FILES_FOREIGN);
    gate_wait(&done, 1);
    for (int i = 0; i < PROCESSES; i += 2) ck_assert(cr_files_forget(files, &waiting[i].task));
    ck_assert_uint_eq(cr_files_foreign_tasks(files, 7), PROCESSES / 2 + 3);
    gate_add(&may_end);
    gate_wait(&done, PROCESSES / 2 + 4);
    const uint64_t looked = cr_files_looked(files);
    stop();
    ck_assert_uint_le(looked, 20 * PROCESSES); /* a few for each wake, and not one for each pair */
}
END_TEST

static uint64_t order[128];
static unsigned ran;

/* One thread runs these, one after the other. */
static void note(cr_file_task *task) {
    order[ran++] = task->client;
    gate_add(&done);
}

/* While the only thread is held up a client puts a hundred tasks in line, and then another one: that one runs next. The
 * first client's others go on, a turn's worth at a time. */
START_TEST(clients_take_turns_in_local) {
    stop();
    done.count = 0;
    cr_error error;
    assert_ok(cr_files_new(1, 1, &files, &error), error);
    work held = new_work(true);
    static cr_file_task many[100], others[4];
    held.task.client = 1;
    submit(&held, CR_FILES_LOCAL);
    gate_wait(&begun, 1);
    ck_assert(!cr_files_waited_for(files, CR_FILES_LOCAL));
    for (int i = 0; i < 100; i++) {
        many[i] = (cr_file_task){.run = note, .client = 1, .bytes = MIB};
        cr_waiting_init(&many[i].waiting);
        cr_files_submit(files, &many[i], CR_FILES_LOCAL);
    }
    for (int i = 0; i < 4; i++) {
        others[i] = (cr_file_task){.run = note, .client = 2, .bytes = i < 2 ? MIB / 2 : MIB};
        cr_waiting_init(&others[i].waiting);
        cr_files_submit(files, &others[i], CR_FILES_LOCAL);
    }
    ck_assert(cr_files_waited_for(files, CR_FILES_LOCAL));
    gate_add(&may_end);
    gate_wait(&done, 105);
    stop();
    static const uint64_t expected[] = {1, 2, 2, 1, 2, 1, 2, 1, 1};
    for (int i = 0; i < 9; i++) ck_assert_uint_eq(order[i], expected[i]);
}
END_TEST

START_TEST(a_task_can_be_forgotten_until_it_begins) {
    work hung[4], late = new_work(false), never = new_work(false);
    cr_waiting_init(&never.task.waiting);
    ck_assert(!cr_files_forget(files, &never.task));
    for (int i = 0; i < 4; i++) {
        hung[i] = new_work(true);
        submit(&hung[i], CR_FILES_FOREIGN);
    }
    gate_wait(&begun, 4);
    submit(&late, CR_FILES_FOREIGN);
    ck_assert(cr_files_forget(files, &late.task));
    ck_assert(!cr_files_forget(files, &late.task));
    ck_assert(!cr_files_forget(files, &hung[0].task));
    gate_add(&may_end);
    stop();
    ck_assert_uint_eq(gate_count(&done), 4);
}
END_TEST

START_TEST(stop_runs_what_is_queued) {
    work hung[2], queued[5];
    for (int i = 0; i < 2; i++) {
        hung[i] = new_work(true);
        submit(&hung[i], CR_FILES_LOCAL);
    }
    for (int i = 0; i < 5; i++) {
        queued[i] = new_work(false);
        submit(&queued[i], CR_FILES_LOCAL);
    }
    gate_wait(&begun, 2);
    ck_assert(!cr_files_stop(files, 1)); /* two threads hang */
    gate_add(&may_end);
    stop();
    ck_assert_uint_eq(gate_count(&done), 7);
    ck_assert(cr_files_stop(NULL, 0));
}
END_TEST

/* Closed for good when the other end of the pipe says so. */
static void assert_closed(int read_end) {
    char byte;
    ck_assert_int_eq(read(read_end, &byte, 1), 0);
    close(read_end);
}

START_TEST(close_closes_local_and_foreign_descriptors) {
    size_t before = open_descriptors();
    int ends[2], file = disk_file();
    cr_files_close(files, 1, file);
    ck_assert_int_eq(pipe(ends), 0); /* a pipe's file system is in no table: foreign */
    cr_files_close(files, 1, ends[1]);
    assert_closed(ends[0]);
    stop();
    /* The mount table stays open once it was needed. */
    ck_assert_uint_le(open_descriptors(), before + 1);
}
END_TEST

START_TEST(close_works_without_memory) {
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    fail_allocation(1);
    cr_files_close(files, 1, ends[1]);
    assert_closed(ends[0]);
    stop();
}
END_TEST

START_TEST(no_memory_at_start_is_said) {
    for (unsigned nth = 1; nth <= 4; nth++) {
        cr_files *other = NULL;
        cr_error error;
        fail_allocation(nth);
        cr_status status = cr_files_new(2, 4, &other, &error);
        fail_allocation(0);
        ck_assert_int_eq(status, CR_RESOURCE_EXHAUSTED);
        ck_assert_ptr_null(other);
    }
    stop();
}
END_TEST

CR_CHECK_MAIN("engine/files") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, tasks_run_once_on_another_thread);
    tcase_add_test(tc, hung_foreign_calls_leave_local_ones_alone);
    tcase_add_loop_test(tc, every_foreign_task_gets_a_thread_while_there_are_more, 0, 10);
    tcase_add_test(tc, no_client_takes_all_threads);
    tcase_add_test(tc, no_user_takes_all_threads);
    tcase_add_test(tc, many_processes_cost_no_more_than_one);
    tcase_add_test(tc, clients_take_turns_in_local);
    tcase_add_test(tc, a_task_can_be_forgotten_until_it_begins);
    tcase_add_test(tc, stop_runs_what_is_queued);
    tcase_add_test(tc, close_closes_local_and_foreign_descriptors);
    tcase_add_test(tc, close_works_without_memory);
    tcase_add_test(tc, no_memory_at_start_is_said);
}
