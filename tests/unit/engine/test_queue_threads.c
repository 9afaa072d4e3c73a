/* The run queue under many threads: producers, lanes, cancellations and the loop at once. Every byte of a job that was not
 * stopped is folded exactly once, every segment released exactly once, every job completed exactly once. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/queue.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { PRODUCERS = 3, LANES = 3, JOBS_EACH = 40, SEGMENTS_MAX = 4, SEGMENT_MAX = 700 * 1024 };

typedef struct piece {
    cr_segment segment;
    size_t bytes;
    atomic_int released;
    uint8_t *data;
} piece;

typedef struct work {
    cr_job *job;
    piece pieces[SEGMENTS_MAX];
    unsigned count;
    uint64_t sum;
    bool cancelled; /* the producer did; known to the loop once completed */
    bool broken;    /* a lane will report an error */
    int completions;
} work;

static cr_queue *queue;
static gate woken = GATE_INIT;
static atomic_uint folds;
static cr_seats seats;

/* In every other round workers look for offers before they sleep. */
static void look_out(int round) {
    cr_seats_init(&seats, 2);
    if (round % 2) cr_queue_look_out(queue, &seats, 1000000);
}

static void wake(void *argument) { gate_add(argument); }

static void release(cr_segment *segment) {
    piece *p = cr_container(segment, piece, segment);
    ck_assert_int_eq(atomic_fetch_add(&p->released, 1), 0);
}

/* A lane. Writes to what it folds, so that two holders of one byte would be a data race, and would change the sum. */
static void *lane(void *argument) {
    cr_turn *turn = argument;
    while (cr_queue_turn(queue, turn, LANES, true)) {
        uint8_t *data = (uint8_t *)(uintptr_t)turn->claim.data;
        for (uint64_t i = 0; i < turn->claim.bytes; i++) data[i] ^= 0x80;
        cr_cpu_fold(&turn->partial, data, turn->claim.bytes, turn->claim.index);
        atomic_fetch_add(&folds, 1);
        if (((work *)turn->claim.job->owner)->broken) cr_fail(&turn->error, CR_DATA_LOSS, "broken");
    }
    return NULL;
}

static void make_piece(work *w, piece *p, uint64_t *state, uint64_t index) {
    p->bytes = random_next(state) % SEGMENT_MAX;
    if (random_next(state) % 4 == 0) p->bytes %= 100;
    p->data = malloc(p->bytes + 1);
    for (size_t i = 0; i < p->bytes; i++) {
        p->data[i] = (uint8_t)(i % 50 + 0x80);
        w->sum += i % 50;
    }
    cr_segment_init(&p->segment, w->job, p->data, index);
    p->segment.release = release;
    p->segment.aligned = random_next(state) % 2;
}

/* Brings all of a job's pieces, in steps, and may cancel it half-way. */
static void produce(work *w, uint64_t *state) {
    uint64_t index = 0;
    w->count = 1 + (unsigned)(random_next(state) % SEGMENTS_MAX);
    w->broken = random_next(state) % 8 == 0;
    unsigned cancel_at = random_next(state) % 3 ? SEGMENTS_MAX : (unsigned)(random_next(state) % w->count);
    for (unsigned i = 0; i < w->count; i++) {
        piece *p = &w->pieces[i];
        make_piece(w, p, state, index);
        index += p->bytes;
        cr_queue_add(queue, &p->segment);
        for (size_t at = 0; at < p->bytes && random_next(state) % 4;) {
            at += random_next(state) % (p->bytes - at + 1);
            cr_queue_ready(queue, &p->segment, at, false);
        }
        if (i == cancel_at) {
            w->cancelled = true;
            cr_queue_stop(queue, w->job, NULL);
        }
        cr_queue_ready(queue, &p->segment, p->bytes, true);
    }
    cr_queue_unhold(queue, w->job);
}

static work works[PRODUCERS][JOBS_EACH];

static void *producer(void *argument) {
    work *own = argument;
    uint64_t state = (uint64_t)((work(*)[JOBS_EACH])own - works) + 11;
    for (int i = 0; i < JOBS_EACH; i++) produce(&own[i], &state);
    return NULL;
}

static void check_done(cr_job *job) {
    work *w = job->owner;
    ck_assert_int_eq(w->completions++, 0);
    ck_assert_int_eq(job->state, CR_JOB_DONE);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < w->count; i++) bytes += w->pieces[i].bytes;
    if (!w->cancelled && !(w->broken && bytes)) {
        cr_value value;
        uint64_t sum = 0;
        cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
        memcpy(&sum, value.bytes, sizeof sum);
        ck_assert_uint_eq(sum, w->sum);
        ck_assert_uint_eq(job->folded_bytes, bytes);
        ck_assert_int_eq(job->error.code, CR_OK);
    } else if (!w->cancelled) {
        ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    }
    cr_job_free(job);
}

/* What the loop does: waits for wakes, takes all that is there. */
static void collect(unsigned jobs) {
    for (unsigned done = 0, seen = 0; done < jobs;) {
        gate_wait(&woken, seen + 1);
        seen = gate_count(&woken);
        cr_list list;
        cr_queue_completed(queue, &list);
        for (cr_list *node; (node = cr_list_pop(&list)); done++) check_done(cr_container(node, cr_job, done));
    }
    ck_assert_uint_le(gate_count(&woken), jobs);
}

START_TEST(everything_at_once) {
    static cr_turn turns[LANES];
    pthread_t lanes[LANES], producers[PRODUCERS];
    cr_error error;
    memset(turns, 0, sizeof turns);
    memset(works, 0, sizeof works);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    look_out(_i);
    for (int p = 0; p < PRODUCERS; p++)
        for (int i = 0; i < JOBS_EACH; i++) {
            works[p][i].job = cr_job_new(CR_U8, CR_FAM_SUM);
            works[p][i].job->owner = &works[p][i];
            works[p][i].job->brought = i % 2;
        }
    for (int i = 0; i < LANES; i++) pthread_create(&lanes[i], NULL, lane, &turns[i]);
    for (int p = 0; p < PRODUCERS; p++) pthread_create(&producers[p], NULL, producer, works[p]);
    collect(PRODUCERS * JOBS_EACH);
    for (int p = 0; p < PRODUCERS; p++) pthread_join(producers[p], NULL);
    cr_queue_close(queue);
    for (int i = 0; i < LANES; i++) pthread_join(lanes[i], NULL);
    cr_list list;
    cr_queue_completed(queue, &list);
    ck_assert(cr_list_empty(&list));
    ck_assert_uint_gt(atomic_load(&folds), PRODUCERS * JOBS_EACH / 2);
    for (int p = 0; p < PRODUCERS; p++)
        for (int i = 0; i < JOBS_EACH; i++) {
            ck_assert_int_eq(works[p][i].completions, 1);
            for (unsigned k = 0; k < works[p][i].count; k++) {
                ck_assert_int_eq(atomic_load(&works[p][i].pieces[k].released), 1);
                free(works[p][i].pieces[k].data);
            }
        }
    ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    ck_assert_int_eq(atomic_load(&seats.free), 1);
    cr_queue_free(queue);
}
END_TEST

START_TEST(closing_wakes_sleeping_lanes) {
    static cr_turn turns[LANES];
    pthread_t lanes[LANES];
    cr_error error;
    memset(turns, 0, sizeof turns);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    look_out(_i);
    for (int i = 0; i < LANES; i++) pthread_create(&lanes[i], NULL, lane, &turns[i]);
    cr_queue_close(queue);
    for (int i = 0; i < LANES; i++) pthread_join(lanes[i], NULL);
    cr_queue_free(queue);
}
END_TEST

/* One job after the other, for workers that look: a job is taken by one that looks or by one that sleeps, but always taken. */
START_TEST(one_by_one) {
    enum { JOBS = 300 };
    static cr_turn turns[LANES];
    static work one;
    pthread_t lanes[LANES];
    cr_error error;
    uint64_t state = 5;
    memset(turns, 0, sizeof turns);
    assert_ok(cr_queue_new(wake, &woken, &queue, &error), error);
    look_out(1);
    for (int i = 0; i < LANES; i++) pthread_create(&lanes[i], NULL, lane, &turns[i]);
    for (int i = 0; i < JOBS; i++) {
        const unsigned seen = gate_count(&woken);
        cr_list list;
        one = (work){.job = cr_job_new(CR_U8, CR_FAM_SUM), .count = 1};
        one.job->owner = &one;
        one.job->brought = i % 2;
        make_piece(&one, &one.pieces[0], &state, 0);
        cr_queue_add(queue, &one.pieces[0].segment);
        cr_queue_ready(queue, &one.pieces[0].segment, one.pieces[0].bytes, true);
        cr_queue_unhold(queue, one.job);
        gate_wait(&woken, seen + 1);
        cr_queue_completed(queue, &list);
        check_done(cr_container(cr_list_pop(&list), cr_job, done));
        while (!atomic_load(&one.pieces[0].released)) sched_yield(); /* after the completion */
        free(one.pieces[0].data);
    }
    cr_queue_close(queue);
    for (int i = 0; i < LANES; i++) pthread_join(lanes[i], NULL);
    ck_assert_int_eq(atomic_load(&seats.free), 1);
    cr_queue_free(queue);
}
END_TEST

CR_CHECK_MAIN("engine/queue_threads") {
    tcase_add_loop_test(tc, everything_at_once, 0, 2);
    tcase_add_loop_test(tc, closing_wakes_sleeping_lanes, 0, 2);
    tcase_add_test(tc, one_by_one);
}
