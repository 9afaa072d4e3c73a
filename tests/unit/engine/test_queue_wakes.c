/* Which workers the run queue wakes: the one that sleeps for the shortest time, and none for what one that is awake comes to
 * soon. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "engine/queue_internal.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { WORKERS = 2, MOST_BYTES = 2 * 1024 * 1024 };

typedef struct worker {
    pthread_t thread;
    cr_turn turn;
} worker;

typedef struct task {
    cr_segment segment;
    cr_job *job;
    _Atomic(const worker *) by; /* who folds it, or did */
} task;

static cr_queue *queue;
static gate woken = GATE_INIT, begun = GATE_INIT, go = GATE_INIT;
static uint8_t zeros[MOST_BYTES];

static void wake(void *argument) { gate_add(argument); }
static void no_release(cr_segment *segment) { (void)segment; }

/* Folds nothing: it holds each claim until the test says go. */
static void *work(void *argument) {
    worker *w = argument;
    while (cr_queue_turn(queue, &w->turn, WORKERS, true)) {
        atomic_store(&((task *)w->turn.claim.job->owner)->by, w);
        gate_add(&begun);
        gate_wait(&go, 1);
    }
    return NULL;
}

static uint32_t asleep(void) {
    pthread_mutex_lock(&queue->mutex);
    uint32_t sleeping = 0;
    for (const cr_sleeper *s = queue->lately; s; s = s->next) sleeping++;
    pthread_mutex_unlock(&queue->mutex);
    return sleeping;
}

/* One after the other falls asleep. */
static void begin(worker *workers) {
    cr_error error;
    memset(workers, 0, WORKERS * sizeof *workers);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
        while (asleep() != i + 1) sched_yield();
    }
}

static void offer(task *t, bool brought, uint32_t families, uint64_t bytes) {
    *t = (task){.job = cr_job_new(CR_U8, families)};
    t->job->owner = t;
    t->job->brought = brought;
    cr_segment_init(&t->segment, t->job, zeros, 0);
    t->segment.release = no_release;
    cr_queue_add(queue, &t->segment);
    cr_queue_ready(queue, &t->segment, bytes, true);
    cr_queue_unhold(queue, t->job);
}

static void end(worker *workers, int jobs) {
    gate_add(&go);
    for (int done = 0; done < jobs;) {
        cr_list list;
        cr_queue_completed(queue, &list);
        for (cr_list *node; (node = cr_list_pop(&list)); done++) cr_job_free(cr_container(node, cr_job, done));
        sched_yield();
    }
    cr_queue_close(queue);
    for (int i = 0; i < WORKERS; i++) pthread_join(workers[i].thread, NULL);
    ck_assert_uint_eq(queue->in_hand, 0);
    ck_assert_uint_eq(queue->waking, 0);
    cr_queue_free(queue);
}

START_TEST(the_last_to_sleep_is_woken) {
    worker workers[WORKERS];
    task first, second;
    begin(workers);
    offer(&first, false, CR_FAM_SUM, 1);
    gate_wait(&begun, 1);
    ck_assert_ptr_eq(atomic_load(&first.by), &workers[WORKERS - 1]);
    offer(&second, false, CR_FAM_SUM, 1);
    gate_wait(&begun, 2);
    ck_assert_ptr_eq(atomic_load(&second.by), &workers[0]);
    end(workers, 2);
}
END_TEST

static const struct {
    bool first_brought, brought;
    uint32_t families;
    uint64_t bytes;
    uint32_t asleep;
} cases[] = {
    {true, true, CR_FAM_SUM, 1000, 1},        {true, true, CR_FAM_SUM, 1024 * 1024 - 1, 1},
    {true, true, CR_FAM_SUM, 1024 * 1024, 0}, {true, true, CR_FAM_PROD, 64 * 1024, 1},
    {true, true, CR_FAM_PROD, 128 * 1024, 0}, {true, false, CR_FAM_SUM, 1, 0},
    {false, true, CR_FAM_SUM, 1, 0}, /* nobody knows when the first ends */
};

/* A worker holds a claim of one byte when something else is offered. */
START_TEST(one_that_is_awake_is_enough) {
    worker workers[WORKERS];
    task first, second;
    begin(workers);
    offer(&first, cases[_i].first_brought, CR_FAM_SUM, 1);
    gate_wait(&begun, 1);
    ck_assert_uint_eq(asleep(), 1);
    offer(&second, cases[_i].brought, cases[_i].families, cases[_i].bytes);
    ck_assert_uint_eq(asleep(), cases[_i].asleep);
    end(workers, 2);
}
END_TEST

/* A worker that was woken, and does not run yet, will come to the others in line: as many as it can fold soon. */
START_TEST(the_line_counts) {
    worker workers[WORKERS];
    task tasks[4];
    begin(workers);
    offer(&tasks[0], true, CR_FAM_SUM, 1);
    gate_wait(&begun, 1);
    for (int i = 1; i < 4; i++) {
        ck_assert_uint_eq(asleep(), 1);
        offer(&tasks[i], true, CR_FAM_SUM, 384 * 1024);
    }
    ck_assert_uint_eq(asleep(), 0);
    end(workers, 4);
}
END_TEST

/* A thread that folds one claim, and does not come back, is none that is awake. */
START_TEST(one_that_is_gone_is_not_awake) {
    worker workers[WORKERS], visitor = {0};
    const cr_partial *partial = &visitor.turn.partial;
    task first, second;
    begin(workers);
    offer(&first, false, CR_FAM_SUM, MOST_BYTES);
    while (cr_queue_turn(queue, &visitor.turn, WORKERS, false)) {
        cr_queue_folded(queue, &visitor.turn.claim, 1, &partial, 1, NULL);
        visitor.turn.claim.job = NULL;
    }
    gate_add(&go);
    while (asleep() != WORKERS) sched_yield();
    ck_assert_uint_eq(queue->in_hand, 0);
    offer(&second, true, CR_FAM_SUM, 1);
    end(workers, 2);
}
END_TEST

CR_CHECK_MAIN("engine/queue_wakes") {
    tcase_add_test(tc, the_last_to_sleep_is_woken);
    tcase_add_loop_test(tc, one_that_is_awake_is_enough, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tc, the_line_counts);
    tcase_add_test(tc, one_that_is_gone_is_not_awake);
}
