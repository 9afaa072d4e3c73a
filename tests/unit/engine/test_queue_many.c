/* The run queue for lanes with many claims in flight: what they are offered, claims that come back folded and unfolded, and a
 * GPU that goes. On one thread. */
#include <stdlib.h>
#include <string.h>

#include "engine/queue.h"
#include "kernels/cpu/fold.h"
#include "tests/unit/check_main.h"
#include "tests/unit/engine/pieces.h"
#include "tests/unit/support.h"

enum { KIB = 1024, MIB = 1024 * 1024, MOST = 8 };

static cr_queue *queue;
static cr_turn turn;
static cr_claim claims[MOST];
static int wakes;
static cr_error error;

static void woken(void *argument) { (*(int *)argument)++; }

static void setup(void) {
    wakes = 0;
    memset(&turn, 0, sizeof turn);
    assert_ok(cr_queue_new(woken, &wakes, &queue, &error), error);
    cr_queue_gpu_comes(queue, 0);
}

static void teardown(void) { cr_queue_free(queue); }

static cr_job *new_job(uint32_t kinds, uint64_t gpu_from) {
    cr_job *job = cr_job_new(CR_U8, cr_op_needs(CR_OP_SUM, CR_U8));
    ck_assert_ptr_nonnull(job);
    job->kinds = kinds;
    job->gpu_from = gpu_from;
    return job;
}

static uint64_t want_bytes(void *argument, const cr_job *job, const cr_segment *segment) {
    (void)job;
    ck_assert_ptr_nonnull(segment);
    return *(uint64_t *)argument;
}

static uint32_t take(uint64_t bytes) { return cr_queue_take(queue, want_bytes, &bytes, claims, MOST); }

static void fold(const cr_claim *claim, cr_partial *partial) {
    cr_partial_init(partial, claim->job->dtype, claim->job->families);
    cr_cpu_fold(partial, claim->data, claim->bytes, claim->index);
}

/* Folds count claims from the first, each on its own, and gives them back together. */
static void give_folded(const cr_claim *first, uint32_t count) {
    cr_partial partials[MOST];
    const cr_partial *list[MOST];
    for (uint32_t i = 0; i < count; i++) {
        fold(&first[i], &partials[i]);
        list[i] = &partials[i];
    }
    cr_queue_folded(queue, first, count, list, count, NULL);
}

/* Lets one CPU worker fold all it can get; the bytes it got. */
static uint64_t work(uint32_t workers) {
    uint64_t bytes = 0;
    while (cr_queue_turn(queue, &turn, workers, false)) {
        cr_cpu_fold(&turn.partial, turn.claim.data, turn.claim.bytes, turn.claim.index);
        bytes += turn.claim.bytes;
    }
    return bytes;
}

static void release(cr_segment *segment) { cr_container(segment, piece, segment)->released++; }

static void finish(cr_job *job, uint64_t sum) {
    cr_list list;
    cr_queue_completed(queue, &list);
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), job);
    ck_assert(cr_list_empty(&list));
    ck_assert_int_eq(job->error.code, CR_OK);
    cr_value value;
    uint64_t got = 0;
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    memcpy(&got, value.bytes, sizeof got);
    ck_assert_uint_eq(got, sum);
    ck_assert_uint_eq(job->folded_bytes, sum);
    cr_job_free(job);
}

START_TEST(several_claims_are_in_flight_and_come_back_in_any_order) {
    cr_job *job = new_job(CR_BY_CPU | CR_BY_GPU, 1);
    piece *a = offer(queue, job, MIB, 0, false, true), *b = offer(queue, job, MIB + 5, MIB, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(take(MIB + 128 * KIB), 2); /* over the border of the segments */
    ck_assert_uint_eq(claims[0].bytes, MIB);
    ck_assert_uint_eq(claims[1].bytes, 128 * KIB);
    ck_assert_uint_eq(claims[1].index, MIB);
    cr_claim first[2] = {claims[0], claims[1]};
    ck_assert_uint_eq(take(300 * KIB), 1); /* cut where it may be */
    ck_assert_uint_eq(claims[0].bytes, 256 * KIB);
    cr_claim second = claims[0];
    ck_assert_uint_eq(take(100), 1); /* not less than a cut */
    ck_assert_uint_eq(claims[0].bytes, 64 * KIB);
    give_folded(&second, 1);
    ck_assert_int_eq(b->released, 0);
    uint64_t by_cpu = work(1);
    ck_assert_uint_eq(by_cpu, MIB + 5 - (128 + 256 + 64) * KIB);
    ck_assert_uint_eq(take(MIB), 0);
    give_folded(claims, 1);
    ck_assert_int_eq(wakes, 0);
    ck_assert_int_eq(a->released, 0);
    give_folded(first, 2);
    ck_assert_int_eq(wakes, 1);
    finish(job, 2 * MIB + 5);
    free_piece(a);
    free_piece(b);
}
END_TEST

START_TEST(what_comes_back_unfolded_is_claimed_again) {
    cr_job *job = new_job(CR_BY_CPU | CR_BY_GPU, 1);
    piece *p = offer(queue, job, 10 * MIB, 0, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(take(6 * MIB), 1);
    ck_assert_uint_eq(work(1), 4 * MIB);
    ck_assert_int_eq(p->released, 0);
    /* By kinds: after this only the CPU may have it. */
    uint32_t kinds = _i == 0 ? CR_BY_CPU : 0;
    cr_queue_unfolded(queue, claims, 1, kinds);
    ck_assert_uint_eq(cr_queue_progress(queue, job).folded_bytes, 4 * MIB);
    ck_assert_uint_eq(take(2 * MIB), _i == 0 ? 0 : 1);
    if (_i == 1) {
        ck_assert_ptr_eq(claims[0].data, p->data);
        give_folded(claims, 1);
    }
    ck_assert_uint_eq(work(3), _i == 0 ? 6 * MIB : 4 * MIB); /* in pieces */
    finish(job, 10 * MIB);
    free_piece(p);
}
END_TEST

/* However the arrays are cut, and whatever came back unfolded: a claim has those elements of both that belong together. */
START_TEST(two_arrays_are_cut_alike) {
    static uint8_t second[2 * MIB];
    cr_job *job = new_job(CR_BY_GPU, 1);
    piece *p = offer(queue, job, 2 * MIB, 0, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(take(MIB), 1);
    ck_assert_ptr_null(cr_claim_view(&claims[0], claims[0].data, 0, 0).second); /* the op takes one array */
    cr_queue_unfolded(queue, claims, 1, 0);
    p->segment.second = second;
    uint64_t bytes = 0;
    for (uint32_t count; (count = take(192 * KIB));) {
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t from = (uint64_t)(claims[i].data - p->data), behind = from < 7 ? from : 7;
            const cr_view view = cr_claim_view(&claims[i], claims[i].data, from - behind, behind);
            ck_assert_ptr_eq(view.second, second + from - behind);
            bytes += claims[i].bytes;
        }
        give_folded(claims, count);
    }
    ck_assert_uint_eq(bytes, 2 * MIB);
    finish(job, 2 * MIB);
    free_piece(p);
}
END_TEST

/* A piece in the memory of GPU 0, which is never read here. */
static piece *device_piece(cr_job *job, uint64_t bytes) {
    piece *p = calloc(1, sizeof *p);
    cr_segment_init(&p->segment, job, (void *)(uintptr_t)(1ull << 40), 0);
    p->segment.release = release;
    cr_queue_add(queue, &p->segment);
    cr_queue_ready(queue, &p->segment, bytes, true);
    return p;
}

static uint64_t taken_bytes(uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) bytes += claims[i].bytes;
    return bytes;
}

/* Alone a client's claims are as large as its lane wants. While another is there they are bounded, and both get the same bytes. */
START_TEST(clients_share_a_gpu) {
    const bool on_device = _i == 1;
    const uint64_t large = on_device ? 1ull << 35 : 60 * MIB,
                   shared = on_device ? CR_SHARED_DEVICE_BYTES : CR_SHARED_HOST_BYTES;
    cr_job *jobs[2];
    piece *pieces[2];
    uint64_t got[2] = {0};
    for (int i = 0; i < 2; i++) {
        jobs[i] = new_job(CR_BY_GPU, 1);
        jobs[i]->client = (uint64_t)i + 1;
        if (on_device) jobs[i]->device = 0;
    }
    pieces[0] = on_device ? device_piece(jobs[0], large) : offer(queue, jobs[0], large, 0, true, true);
    ck_assert_uint_eq(taken_bytes(take(shared * 4)), shared * 4);
    cr_queue_unfolded(queue, claims, 1, 0);
    pieces[1] = on_device ? device_piece(jobs[1], large) : offer(queue, jobs[1], large, 0, true, true);
    for (int i = 0; i < 10; i++) {
        uint32_t count = take(shared * 4);
        ck_assert_uint_gt(count, 0);
        got[claims[0].job->client - 1] += taken_bytes(count);
        ck_assert_uint_eq(taken_bytes(count), shared);
        if (i == 0) ck_assert_ptr_eq(claims[0].job, jobs[1]);
        cr_queue_unfolded(queue, claims, count, 0);
    }
    ck_assert_uint_eq(got[0], got[1]);
    for (int i = 0; i < 2; i++) {
        cr_queue_stop(queue, jobs[i], NULL);
        cr_queue_unhold(queue, jobs[i]);
        if (on_device) pieces[i]->data = NULL;
        free_piece(pieces[i]);
    }
    cr_list list;
    cr_queue_completed(queue, &list);
    for (int i = 0; i < 2; i++) cr_job_free(cr_container(cr_list_pop(&list), cr_job, done));
}
END_TEST

/* Into a pack every client brings its turn, before one brings more. */
START_TEST(clients_share_a_pack) {
    enum { JOBS = 200, PACK = 128 };
    static cr_job *jobs[2 * JOBS];
    static piece *pieces[2 * JOBS];
    static cr_claim pack[PACK];
    uint64_t bytes = 64 * KIB;
    unsigned got[3] = {0};
    for (int i = 0; i < 2 * JOBS; i++) {
        jobs[i] = new_job(CR_BY_GPU, 1);
        jobs[i]->client = i < JOBS + 190 ? 1 : 2;
        pieces[i] = offer(queue, jobs[i], bytes, 0, false, true);
        cr_queue_unhold(queue, jobs[i]);
    }
    ck_assert_uint_eq(cr_queue_gather(queue, want_bytes, want_bytes, &bytes, pack, MOST, PACK), PACK);
    for (int i = 0; i < PACK; i++) got[pack[i].job->client]++;
    ck_assert_uint_eq(got[2], 10);
    for (int i = 0; i < PACK; i++) cr_queue_unfolded(queue, &pack[i], 1, 0);
    ck_assert_uint_eq(work(1), 0);
    cr_queue_gpu_goes(queue, 0);
    ck_assert_uint_eq(work(1), 2 * JOBS * bytes);
    cr_list list;
    cr_queue_completed(queue, &list);
    for (cr_list *node; (node = cr_list_pop(&list));) cr_job_free(cr_container(node, cr_job, done));
    for (int i = 0; i < 2 * JOBS; i++) free_piece(pieces[i]);
}
END_TEST

static unsigned asked;

static uint64_t want_no_more(void *argument, const cr_job *job, const cr_segment *segment) {
    (void)argument;
    (void)job;
    (void)segment;
    asked++;
    return 0;
}

/* The queue is locked meanwhile: a lane that wants nothing more does not go through all that waits. */
START_TEST(who_has_enough_asks_few) {
    enum { JOBS = 1000 };
    static cr_job *jobs[JOBS];
    static piece *pieces[JOBS];
    uint64_t bytes = 64 * KIB;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = new_job(CR_BY_GPU, 1);
        jobs[i]->client = (uint64_t)i % 7;
        pieces[i] = offer(queue, jobs[i], bytes, 0, false, true);
        cr_queue_unhold(queue, jobs[i]);
    }
    asked = 0;
    ck_assert_uint_eq(cr_queue_gather(queue, want_bytes, want_no_more, &bytes, claims, MOST, MOST), 1);
    ck_assert_uint_ge(asked, 100);
    ck_assert_uint_le(asked, 300);
    cr_queue_unfolded(queue, claims, 1, 0);
    cr_queue_gpu_goes(queue, 0);
    ck_assert_uint_eq(work(1), JOBS * bytes);
    cr_list list;
    cr_queue_completed(queue, &list);
    for (cr_list *node; (node = cr_list_pop(&list));) cr_job_free(cr_container(node, cr_job, done));
    for (int i = 0; i < JOBS; i++) free_piece(pieces[i]);
}
END_TEST

START_TEST(a_stop_forgets_what_came_back_unfolded) {
    cr_job *job = new_job(CR_BY_CPU | CR_BY_GPU, 1);
    piece *a = offer(queue, job, MIB, 0, false, true), *b = offer(queue, job, MIB, MIB, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(take(2 * MIB), 2);
    if (_i == 0) { /* back first, stopped then */
        cr_queue_unfolded(queue, claims, 2, 0);
        cr_queue_stop(queue, job, NULL);
    } else if (_i == 1) { /* stopped first */
        cr_queue_stop(queue, job, NULL);
        ck_assert_int_eq(a->released, 0);
        cr_queue_unfolded(queue, claims, 2, 0);
    } else { /* there is no memory to remember them */
        fail_allocation(2);
        cr_queue_unfolded(queue, claims, 2, 0);
    }
    cr_list list;
    cr_queue_completed(queue, &list);
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), job);
    ck_assert_int_eq(job->error.code, _i == 2 ? CR_RESOURCE_EXHAUSTED : CR_OK);
    cr_job_free(job);
    free_piece(a);
    free_piece(b);
}
END_TEST

START_TEST(bytes_that_could_not_be_read_end_the_job) {
    cr_job *job = new_job(CR_BY_GPU, 1);
    piece *p = offer(queue, job, MIB, 0, false, true);
    cr_queue_unhold(queue, job);
    ck_assert_uint_eq(take(256 * KIB), 1);
    cr_fail(&error, CR_DATA_LOSS, "cut");
    cr_queue_folded(queue, claims, 1, NULL, 0, &error);
    cr_list list;
    cr_queue_completed(queue, &list);
    ck_assert_ptr_eq(cr_container(cr_list_pop(&list), cr_job, done), job);
    ck_assert_int_eq(job->error.code, CR_DATA_LOSS);
    cr_job_free(job);
    free_piece(p);
}
END_TEST

START_TEST(who_is_offered_what) {
    cr_job *cpu = new_job(CR_BY_CPU, 0), *gpu = new_job(CR_BY_GPU, 0),
           *both = new_job(CR_BY_CPU | CR_BY_GPU, 300 * KIB);
    uint32_t offers = cr_queue_offers(queue);
    piece *c = offer(queue, cpu, KIB, 0, false, true);
    ck_assert_uint_eq(cr_queue_offers(queue), offers);
    ck_assert_uint_eq(take(MIB), 0);
    piece *b = offer(queue, both, 256 * KIB, 0, false, false); /* too little for a GPU */
    ck_assert_uint_eq(take(MIB), 0);
    piece *g = offer(queue, gpu, KIB, 0, false, true);
    ck_assert_uint_ne(cr_queue_offers(queue), offers);
    piece *more = offer(queue, both, 64 * KIB, 256 * KIB, false, true);
    ck_assert_uint_eq(take(0), 0); /* not wanted: they stay */
    ck_assert_uint_eq(take(MIB), 1);
    ck_assert_ptr_eq(claims[0].job, gpu);
    give_folded(claims, 1);
    ck_assert_uint_eq(take(MIB), 2);
    ck_assert_ptr_eq(claims[0].job, both);
    ck_assert_uint_eq(work(1), KIB);
    cr_queue_unfolded(queue, claims, 2, 0);
    ck_assert_uint_eq(take(128 * KIB), 1); /* 192 KiB are left: a GPU does not look at it again */
    ck_assert_uint_eq(take(128 * KIB), 0);
    give_folded(claims, 1);
    ck_assert_uint_eq(work(1), 192 * KIB);
    cr_queue_ready(queue, &b->segment, 256 * KIB, true);
    cr_job *jobs[] = {cpu, gpu, both};
    for (int i = 0; i < 3; i++) cr_queue_unhold(queue, jobs[i]);
    cr_list list;
    cr_queue_completed(queue, &list);
    for (cr_list *node; (node = cr_list_pop(&list));) cr_job_free(cr_container(node, cr_job, done));
    piece *pieces[] = {c, g, b, more};
    for (int i = 0; i < 4; i++) free_piece(pieces[i]);
}
END_TEST

START_TEST(when_the_last_gpu_goes_its_jobs_are_the_cpus) {
    cr_job *now = new_job(CR_BY_GPU, 1), *later = new_job(CR_BY_GPU, 1);
    piece *a = offer(queue, now, MIB, 0, false, true);
    cr_queue_unhold(queue, now);
    cr_queue_gpu_comes(queue, 3);
    cr_queue_gpu_goes(queue, 3);
    ck_assert_uint_eq(work(1), 0); /* one is left */
    ck_assert_uint_eq(take(256 * KIB), 1);
    cr_queue_gpu_goes(queue, 0);
    ck_assert_uint_eq(take(256 * KIB), 0);
    cr_claim lost = claims[0];
    ck_assert_uint_eq(work(1), 768 * KIB);
    cr_queue_unfolded(queue, &lost, 1, 0);
    ck_assert_uint_eq(work(1), 256 * KIB);
    finish(now, MIB);
    piece *b = offer(queue, later, MIB, 0, false, true);
    cr_queue_unhold(queue, later);
    ck_assert_uint_eq(work(1), MIB);
    finish(later, MIB);
    free_piece(a);
    free_piece(b);
}
END_TEST

START_TEST(sleep_ends_with_an_offer_a_poke_and_the_end) {
    uint32_t seen = cr_queue_offers(queue);
    cr_queue_poke(queue);
    ck_assert(cr_queue_sleep(queue, seen));
    cr_queue_close(queue);
    ck_assert(!cr_queue_sleep(queue, cr_queue_offers(queue)));
}
END_TEST

CR_CHECK_MAIN("engine/queue_many") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, several_claims_are_in_flight_and_come_back_in_any_order);
    tcase_add_loop_test(tc, what_comes_back_unfolded_is_claimed_again, 0, 2);
    tcase_add_test(tc, two_arrays_are_cut_alike);
    tcase_add_loop_test(tc, clients_share_a_gpu, 0, 2);
    tcase_add_test(tc, clients_share_a_pack);
    tcase_add_test(tc, who_has_enough_asks_few);
    tcase_add_loop_test(tc, a_stop_forgets_what_came_back_unfolded, 0, 3);
    tcase_add_test(tc, bytes_that_could_not_be_read_end_the_job);
    tcase_add_test(tc, who_is_offered_what);
    tcase_add_test(tc, when_the_last_gpu_goes_its_jobs_are_the_cpus);
    tcase_add_test(tc, sleep_ends_with_an_offer_a_poke_and_the_end);
}
