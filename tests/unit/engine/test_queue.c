/* Jobs and the run queue on one thread: what is claimed, in which pieces, when a job is done, and what a stop does. */
#include <stdlib.h>
#include <string.h>

#include "engine/queue.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"
#include "tests/unit/engine/pieces.h"
#include "tests/unit/support.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

static cr_queue *queue;
static cr_turn turn;
static int wakes;
static cr_error error;

static void woken(void *argument) { (*(int *)argument)++; }

static void setup(void) {
    wakes = 0;
    memset(&turn, 0, sizeof turn);
    assert_ok(cr_queue_new(woken, &wakes, &queue, &error), error);
}

static void teardown(void) { cr_queue_free(queue); }

static cr_job *new_job(cr_dtype dtype) {
    cr_job *job = cr_job_new(dtype, cr_op_needs(CR_OP_SUM, dtype));
    ck_assert_ptr_nonnull(job);
    return job;
}

/* Takes and folds one claim; the claim before it goes back. Only while there is something to claim. */
static cr_claim claim(uint32_t workers) {
    ck_assert(cr_queue_turn(queue, &turn, workers, false));
    cr_cpu_fold(&turn.partial, turn.claim.data, turn.claim.bytes / turn.claim.job->element, turn.claim.index);
    return turn.claim;
}

/* Gives the claim in hand back; there is nothing more to claim. */
static void finish_turn(void) { ck_assert(!cr_queue_turn(queue, &turn, 1, false)); }

static cr_job *completed(void) {
    cr_list list;
    cr_queue_completed(queue, &list);
    cr_list *node = cr_list_pop(&list);
    ck_assert(cr_list_empty(&list));
    return node ? cr_container(node, cr_job, done) : NULL;
}

static void assert_sum(cr_job *job, uint64_t sum) {
    cr_value value;
    uint64_t got = 0;
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    ck_assert_int_eq(value.error.code, CR_OK);
    memcpy(&got, value.bytes, 8);
    ck_assert_uint_eq(got, sum);
}

START_TEST(claims_cover_a_segment_once_and_cut_where_they_may) {
    static const struct {
        cr_dtype dtype;
        bool aligned;
        size_t bytes;
        uint32_t workers;
    } cases[] = {
        {CR_U8, false, 10 * MIB + 17, 1},     {CR_U8, true, 10 * MIB + 17, 1},   {CR_U64, true, 40 * MIB + 8, 2},
        {CR_U64, false, 3 * MIB + 64, 3},     {CR_U16, true, 64 * MIB, 7},       {CR_U32, true, 4, 1},
        {CR_U32, false, 256 * KIB + 4, 1000}, {CR_U64, true, 512 * KIB - 8, 64},
    };
    size_t bytes = cases[_i].bytes, at = 0;
    cr_job *job = new_job(cases[_i].dtype);
    uint64_t index = 5 * 65536;
    piece *p = offer(queue, job, bytes, index, cases[_i].aligned, true);
    cr_queue_unhold(queue, job);
    uint64_t cut = cases[_i].aligned ? 65536 : 64 * KIB / job->element;
    while (at < bytes) {
        cr_claim c = claim(cases[_i].workers);
        ck_assert_ptr_eq(c.job, job);
        ck_assert_ptr_eq(c.data, p->data + at);
        ck_assert_uint_eq(c.index, index + at / job->element);
        ck_assert_uint_eq((c.index - index) % cut, 0);
        ck_assert_uint_le(c.bytes, 4 * MIB + 512 * KIB);
        ck_assert(c.bytes >= 256 * KIB || at + c.bytes == bytes);
        at += c.bytes;
    }
    ck_assert_uint_eq(at, bytes);
    ck_assert_int_eq(p->released, 0); /* the last claim is still out */
    ck_assert_ptr_null(completed());
    finish_turn();
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_uint_eq(job->folded_bytes, bytes);
    uint64_t one = job->element == 1 ? 1 : job->element == 2 ? 0x0101 : job->element == 4 ? 0x01010101 : 0;
    if (one) assert_sum(job, bytes / job->element * one);
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(jobs_take_turns) {
    cr_job *jobs[3];
    piece *pieces[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = new_job(CR_U8);
        pieces[i] = offer(queue, jobs[i], MIB, 0, false, true);
        cr_queue_unhold(queue, jobs[i]);
    }
    for (int i = 0; i < 12; i++) ck_assert_ptr_eq(claim(4).job, jobs[i % 3]);
    finish_turn();
    cr_list list;
    cr_queue_completed(queue, &list);
    for (int i = 0; i < 3; i++) {
        cr_job *job = cr_container(cr_list_pop(&list), cr_job, done);
        ck_assert_ptr_eq(job, jobs[i]);
        assert_sum(job, MIB);
        cr_job_free(job);
        free_piece(pieces[i]);
    }
    /* The second and third came while the first waited to be fetched, or not: never more wakes than jobs. */
    ck_assert_int_ge(wakes, 1);
    ck_assert_int_le(wakes, 3);
}
END_TEST

/* A job of client, whose one piece is freed with it. */
static cr_job *client_job(uint64_t client, size_t bytes) {
    cr_job *job = new_job(CR_U8);
    job->client = client;
    job->owner = offer_zeros(queue, job, bytes);
    cr_queue_unhold(queue, job);
    return job;
}

static unsigned free_completed(void) {
    cr_list list;
    unsigned n = 0;
    cr_queue_completed(queue, &list);
    for (cr_list *node; (node = cr_list_pop(&list)); n++) {
        cr_job *job = cr_container(node, cr_job, done);
        free_piece(job->owner);
        cr_job_free(job);
    }
    return n;
}

START_TEST(one_job_behind_thousands_of_another_client_is_the_next_claim) {
    enum { MANY = 3840 };
    for (int i = 0; i < MANY; i++) client_job(1, 4 * KIB);
    for (int i = 0; i < 500; i++) ck_assert_uint_eq(claim(1).job->client, 1);
    cr_job *other = client_job(2, 64 * KIB);
    ck_assert_ptr_eq(claim(1).job, other);
    for (int i = 500; i < MANY; i++) ck_assert_uint_eq(claim(1).job->client, 1);
    finish_turn();
    ck_assert_uint_eq(free_completed(), MANY + 1);
}
END_TEST

/* The client comes back after each of its claims: it goes first for one turn, sixteen claims of 64 KiB, then shares evenly. */
START_TEST(a_client_that_keeps_coming_back_has_its_place) {
    unsigned first = 0, mine = 0, others = 0, jobs = 300;
    for (unsigned i = 0; i < jobs; i++) client_job(1, 64 * KIB);
    for (int i = 0; i < 16; i++) ck_assert_uint_eq(claim(1).job->client, 1); /* its own first turn */
    for (;; first++, jobs++) {
        client_job(2, 64 * KIB);
        if (claim(1).job->client != 2) break;
    }
    jobs++;
    ck_assert_uint_eq(first, 16);
    for (int i = 0; i < 200; i++) {
        if (claim(1).job->client == 1) {
            others++;
            continue;
        }
        mine++;
        jobs++;
        client_job(2, 64 * KIB);
    }
    ck_assert_uint_ge(mine, 84);
    ck_assert_uint_ge(others, 84);
    while (cr_queue_turn(queue, &turn, 1, false)) {
    }
    ck_assert_uint_eq(free_completed(), jobs);
}
END_TEST

START_TEST(short_jobs_go_before_a_client_s_large_one) {
    cr_job *large = client_job(1, 20 * MIB), *last = NULL;
    for (int i = 0; i < 12; i++) last = client_job(1, 64 * KIB);
    for (int i = 0; i < 8; i++) ck_assert_ptr_ne(claim(1).job, large);
    ck_assert_ptr_eq(claim(1).job, large);
    for (int i = 0; i < 4; i++) ck_assert_ptr_ne(claim(1).job, large);
    ck_assert_ptr_eq(turn.claim.job, last);
    ck_assert_ptr_eq(claim(1).job, large);
    while (cr_queue_turn(queue, &turn, 1, false)) {
    }
    ck_assert_uint_eq(free_completed(), 13);
}
END_TEST

/* A lone job is cut for all workers. Where there are jobs enough for them all, none is cut to share it, but some worker comes
 * to its end about every 256 KiB. */
START_TEST(claims_are_long_where_jobs_are_many) {
    static const struct {
        uint32_t workers, jobs;
        uint64_t first; /* the first claim's KiB, of 8 MiB */
    } cases[] = {{15, 1, 320}, {15, 2, 576}, {15, 10, 2752}, {15, 30, 3840}, {64, 128, 4096},
                 {1, 1, 4096}, {1, 2, 1024}, {2, 9, 1024},   {8, 16, 2048},  {8, 3, 1408}};
    for (uint32_t i = 0; i < cases[_i].jobs; i++) client_job(1, 8 * MIB);
    const uint64_t got = claim(cases[_i].workers).bytes;
    while (cr_queue_turn(queue, &turn, cases[_i].workers, false)) {
    }
    ck_assert_uint_eq(got, cases[_i].first * KIB);
    ck_assert_uint_eq(free_completed(), cases[_i].jobs);
}
END_TEST

START_TEST(a_growing_segment_is_claimed_as_it_grows) {
    cr_job *job = new_job(CR_U8);
    piece *p = offer(queue, job, MIB, 0, false, false);
    /* offer() offered all; start over with marks of our own */
    for (uint64_t at = 0; at < MIB;) at += claim(1).bytes;
    piece *q = calloc(1, sizeof *q);
    q->data = calloc(1, MIB);
    memset(q->data, 2, MIB);
    cr_segment_init(&q->segment, job, q->data, MIB);
    q->segment.release = p->segment.release;
    cr_queue_add(queue, &q->segment);
    cr_queue_ready(queue, &q->segment, 100, false);
    ck_assert_uint_eq(claim(1).bytes, 100);
    ck_assert_int_eq(p->released, 0);
    cr_queue_ready(queue, &p->segment, MIB, true); /* nothing new: sealed and folded, so released */
    ck_assert_int_eq(p->released, 1);
    cr_queue_ready(queue, &q->segment, 70000, false);
    cr_claim c = claim(1);
    ck_assert_uint_eq(c.index, MIB + 100);
    ck_assert_uint_eq(c.bytes, 69900);
    cr_queue_ready(queue, &q->segment, 70001, true);
    ck_assert_uint_eq(claim(1).bytes, 1);
    ck_assert_int_eq(wakes, 0);
    finish_turn();
    ck_assert_int_eq(wakes, 0); /* the producer still holds it */
    cr_queue_unhold(queue, job);
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    assert_sum(job, MIB + 2 * 70001);
    cr_job_free(job);
    free_piece(p);
    free_piece(q);
}
END_TEST

START_TEST(a_job_that_wants_large_claims_waits_for_them_or_for_the_seal) {
    cr_job *job = new_job(CR_U8);
    job->claim_bytes = 8 * MIB;
    piece *p = offer(queue, job, 10 * MIB, 0, true, false);
    cr_queue_ready(queue, &p->segment, 10 * MIB, false);
    ck_assert_uint_eq(claim(4).bytes, 8 * MIB); /* more than a fair share, and than others get */
    finish_turn();                              /* 2 MiB are left: too few */
    ck_assert_ptr_null(completed());
    cr_queue_ready(queue, &p->segment, 10 * MIB, true);
    ck_assert_uint_eq(claim(4).bytes, 2 * MIB);
    cr_queue_unhold(queue, job);
    finish_turn();
    ck_assert_ptr_eq(completed(), job);
    assert_sum(job, 10 * MIB);
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(an_empty_job_is_done_when_nobody_holds_it) {
    cr_job *job = new_job(CR_U8);
    piece *p = offer(queue, job, 0, 0, true, true);
    ck_assert_int_eq(p->released, 1);
    ck_assert(cr_queue_hold(queue, job));
    cr_queue_unhold(queue, job);
    ck_assert_int_eq(wakes, 0);
    cr_queue_set_total(queue, job, 12);
    ck_assert_uint_eq(cr_queue_progress(queue, job).total_bytes, 12);
    cr_queue_unhold(queue, job);
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_int_eq(job->error.code, CR_OK);
    assert_sum(job, 0);
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(stop_releases_what_nobody_folds_and_waits_for_the_rest) {
    cr_job *job = new_job(CR_U8);
    piece *claimed = offer(queue, job, 256 * KIB, 0, false, true),
          *waiting = offer(queue, job, MIB, 256 * KIB, false, true),
          *open = offer(queue, job, 100, 256 * KIB + MIB, false, false);
    ck_assert_uint_eq(claim(1).bytes, 256 * KIB);
    cr_fail(&error, CR_DEADLINE_EXCEEDED, "too late");
    cr_queue_stop(queue, job, &error);
    ck_assert(cr_queue_stopped(queue, job));
    ck_assert(!cr_queue_hold(queue, job));
    ck_assert_int_eq(claimed->released, 0);
    ck_assert_int_eq(waiting->released, 1);
    ck_assert_int_eq(open->released, 0);
    cr_fail(&error, CR_CANCELLED, "and again");
    cr_queue_stop(queue, job, &error); /* the first reason stands */
    cr_queue_ready(queue, &open->segment, 120, true);
    ck_assert_int_eq(open->released, 1);
    cr_queue_unhold(queue, job);
    ck_assert_int_eq(wakes, 0); /* a claim is out */
    finish_turn();
    ck_assert_int_eq(claimed->released, 1);
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_int_eq(job->error.code, CR_DEADLINE_EXCEEDED);
    ck_assert_str_eq(job->error.text, "too late");
    cr_job_free(job);
    free_piece(claimed);
    free_piece(waiting);
    free_piece(open);
}
END_TEST

START_TEST(stop_with_a_claim_on_an_open_segment) {
    cr_job *job = new_job(CR_U8);
    piece *p = offer(queue, job, 300 * KIB, 0, false, false);
    claim(1);
    cr_queue_stop(queue, job, NULL);
    /* Sealed first, given back then. */
    if (_i == 0) cr_queue_ready(queue, &p->segment, 300 * KIB, true);
    finish_turn();
    ck_assert_int_eq(p->released, _i == 0);
    /* Given back first, sealed then. */
    if (_i == 1) cr_queue_ready(queue, &p->segment, 300 * KIB, true);
    ck_assert_int_eq(p->released, 1);
    ck_assert_int_eq(wakes, 0);
    cr_queue_unhold(queue, job);
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_int_eq(job->error.code, CR_OK); /* cancelled from outside: nobody is told */
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(a_claim_that_failed_stops_its_job) {
    cr_job *job = new_job(CR_U8), *other = new_job(CR_U8);
    piece *a = offer(queue, job, 256 * KIB, 0, false, true), *b = offer(queue, job, MIB, 256 * KIB, false, true),
          *c = offer(queue, other, 1000, 0, false, true);
    cr_queue_unhold(queue, job);
    cr_queue_unhold(queue, other);
    ck_assert_ptr_eq(claim(1).segment, &a->segment);
    cr_fail(&turn.error, CR_DATA_LOSS, "cut");
    ck_assert_ptr_eq(claim(1).job, other);
    ck_assert_int_eq(a->released, 1);
    ck_assert_int_eq(b->released, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    ck_assert_str_eq(job->error.text, "cut");
    finish_turn();
    ck_assert_ptr_eq(completed(), other);
    ck_assert_int_eq(other->error.code, CR_OK);
    assert_sum(other, 1000);
    cr_job_free(job);
    cr_job_free(other);
    free_piece(a);
    free_piece(b);
    free_piece(c);
}
END_TEST

START_TEST(a_failed_claim_with_the_next_one_of_the_same_job_in_hand) {
    cr_job *job = new_job(CR_U8);
    piece *p = offer(queue, job, MIB, 0, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(claim(4).bytes, 256 * KIB);
    cr_fail(&turn.error, CR_DATA_LOSS, "cut");
    ck_assert_ptr_eq(claim(4).job, job);
    ck_assert_int_eq(wakes, 0);
    ck_assert_int_eq(p->released, 0);
    finish_turn();
    ck_assert_int_eq(wakes, 1);
    ck_assert_ptr_eq(completed(), job);
    ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(no_memory_is_said) {
    uint64_t jobs = metric_now(CR_M_jobs);
    fail_allocation(1);
    ck_assert_ptr_null(cr_job_new(CR_F32, CR_FAM_SUM));
    ck_assert_uint_eq(metric_now(CR_M_jobs), jobs);
    cr_queue *other;
    for (unsigned nth = 1; nth <= 1 + CR_LANE_KINDS; nth++) {
        fail_allocation(nth);
        assert_fails(cr_queue_new(woken, &wakes, &other, &error), CR_RESOURCE_EXHAUSTED, error, "memory");
    }
    cr_queue_free(NULL);
    cr_job_free(NULL);
}
END_TEST

CR_CHECK_MAIN("engine/queue") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, claims_cover_a_segment_once_and_cut_where_they_may, 0, 8);
    tcase_add_test(tc, jobs_take_turns);
    tcase_add_test(tc, one_job_behind_thousands_of_another_client_is_the_next_claim);
    tcase_add_test(tc, a_client_that_keeps_coming_back_has_its_place);
    tcase_add_test(tc, short_jobs_go_before_a_client_s_large_one);
    tcase_add_loop_test(tc, claims_are_long_where_jobs_are_many, 0, 10);
    tcase_add_test(tc, a_growing_segment_is_claimed_as_it_grows);
    tcase_add_test(tc, a_job_that_wants_large_claims_waits_for_them_or_for_the_seal);
    tcase_add_test(tc, an_empty_job_is_done_when_nobody_holds_it);
    tcase_add_test(tc, stop_releases_what_nobody_folds_and_waits_for_the_rest);
    tcase_add_loop_test(tc, stop_with_a_claim_on_an_open_segment, 0, 2);
    tcase_add_test(tc, a_claim_that_failed_stops_its_job);
    tcase_add_test(tc, a_failed_claim_with_the_next_one_of_the_same_job_in_hand);
    tcase_add_test(tc, no_memory_is_said);
}
