/* Large masks, and partials by key, go back on threads for files, and are counted until they are back: while those threads stand still, a call neither answers
 * nor gives back what it was admitted with. */
#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/bulk.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { N = CR_BULK_BYTES + CR_BULK_STEP_BYTES + 12345, THREADS = 2 /* of loopback's files */ };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static cr_file_task stops[THREADS];
static _Atomic int standing;
static uint64_t freed_before;

static void stand(cr_file_task *task) {
    (void)task;
    atomic_fetch_add(&standing, 1);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* Until go(). */
static void stop_files(void) {
    freed_before = metric_now(CR_M_bulk_freed_bytes_total);
    atomic_store(&standing, 0);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < THREADS; i++) {
        stops[i] = (cr_file_task){.run = stand, .user = (uint64_t)i, .client = (uint64_t)i};
        cr_waiting_init(&stops[i].waiting);
        cr_files_submit(calls.files, &stops[i], CR_FILES_LOCAL);
    }
    while (atomic_load(&standing) < THREADS) sched_yield();
}

static void go(void) { pthread_mutex_unlock(&mutex); }

static uint64_t held(void) { return calls.admission.used[CR_USE_state_bytes]; }

static uint64_t freed(void) { return metric_now(CR_M_bulk_freed_bytes_total) - freed_before; }

/* The sum of N ones under a mask that keeps all of them; of both so many bytes follow, in DATA. */
static void ask(client *c, size_t bytes) {
    uint8_t payload[256];
    cr_wire_call call = {.kind = CR_CALL_REDUCE};
    cr_wire_beside beside[CR_BESIDES] = {
        [CR_BESIDE_MASK] = {.source = CR_SOURCE_STREAM, .count = N},
    };
    call.reduce.dtype = CR_U8;
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_SUM;
    call.reduce.source = CR_SOURCE_STREAM;
    call.reduce.length_known = true;
    call.reduce.length = N;
    call.reduce.has_mask = true;
    const cr_wire_more more = {.beside = beside};
    queue_frame(c, CR_FRAME_CALL, 0, 1, payload, cr_wire_pack_more(&call, &more, payload, sizeof payload));
    uint8_t *ones = malloc(MIB);
    memset(ones, 1, MIB);
    for (size_t at = 0; at < bytes; at += MIB) {
        const bool last = at + MIB >= bytes;
        queue_frame(c, CR_FRAME_DATA, last && bytes == 2 * (size_t)N ? CR_FLAG_END : 0, 1, ones,
                    last ? bytes - at : MIB);
    }
    free(ones);
}

/* All is folded, and turns have passed in which it might have been answered. */
static void fold_all(client *c) {
    const uint64_t before = metric_now(CR_M_input_bytes_total);
    ask(c, 2 * (size_t)N);
    while (metric_now(CR_M_input_bytes_total) < before + N) step(c, SIZE_MAX, SIZE_MAX);
    for (int i = 0; i < 100; i++) step(c, SIZE_MAX, SIZE_MAX);
}

static void wait_until_back(void) {
    while (held() || calls.admission.used[CR_USE_calls]) turn();
    ck_assert_uint_eq(freed(), N);
    ck_assert_uint_eq(metric_now(CR_M_state_bytes), 0);
}

START_TEST(an_answer_waits_until_the_mask_is_back) {
    client *c = new_client();
    stop_files();
    fold_all(c);
    ck_assert_uint_eq(c->answers, 0);
    ck_assert_uint_eq(held(), N);
    ck_assert_uint_eq(freed(), 0);
    go();
    finish(c, 1);
    ck_assert_uint_eq(c->sum[1], N);
    ck_assert_uint_eq(held(), 0);
    wait_until_back();
    free_client(c);
}
END_TEST

/* Cancelled, or with its client. */
static void end_call(client *c, bool leaves) {
    if (leaves) {
        free_client(c);
        while (metric_now(CR_M_calls)) turn();
        return;
    }
    queue_frame(c, CR_FRAME_CANCEL, 0, 1, NULL, 0);
    finish(c, 1);
    ck_assert_uint_eq(c->status[1], CR_CANCELLED);
}

/* The call ends while the mask of its job waits to be given back: cancelled (_i 0), or with its client. */
START_TEST(who_ends_meanwhile_holds_it_until_then) {
    client *c = new_client();
    stop_files();
    fold_all(c);
    end_call(c, _i);
    ck_assert_uint_eq(held(), N);
    go();
    wait_until_back();
    if (!_i) free_client(c);
}
END_TEST

/* Before there was a job: of the mask a part, or all of it, had come. */
START_TEST(a_mask_without_a_job_goes_back_too) {
    client *c = new_client();
    stop_files();
    ask(c, _i ? N : N - 1);
    while (held() < N || c->out_off < c->out_len) step(c, SIZE_MAX, SIZE_MAX);
    queue_frame(c, CR_FRAME_CANCEL, 0, 1, NULL, 0);
    finish(c, 1);
    ck_assert_uint_eq(held(), N);
    ck_assert_uint_eq(freed(), 0);
    go();
    wait_until_back();
    free_client(c);
}
END_TEST

/* A merge of partials by key, of which one came, and of another the head (_i: and it is the only one). */
static void begin_merge(client *c, bool only) {
    uint8_t payload[256], record[4 + 32] = {[4] = 'C', 'K', 1, CR_U8};
    const uint32_t families = htole32(CR_FAM_COUNTS), whole = htole32(32), large = htole32(N);
    cr_wire_call call = {.kind = CR_CALL_MERGE};
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_COUNT;
    call.reduce.keyed = true;
    record[4 + 8] = record[4 + 16] = 1; /* a group of a column, and no cell */
    memcpy(record + 8, &families, 4);
    queue_frame(c, CR_FRAME_CALL, 0, 1, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    memcpy(record, &whole, 4);
    if (!only) queue_frame(c, CR_FRAME_DATA, 0, 1, record, sizeof record);
    memcpy(record, &large, 4);
    queue_frame(c, CR_FRAME_DATA, 0, 1, record, sizeof record);
}

/* The call ends before END, cancelled or (_i & 2) with its client. */
START_TEST(partials_are_held_until_they_are_back) {
    client *c = new_client();
    stop_files();
    begin_merge(c, _i & 1);
    while (held() < N || c->out_off < c->out_len) step(c, SIZE_MAX, SIZE_MAX);
    const uint64_t before = held();
    end_call(c, _i & 2);
    ck_assert_uint_eq(held(), before);
    ck_assert_uint_eq(freed(), 0);
    go();
    wait_until_back();
    if (!(_i & 2)) free_client(c);
}
END_TEST

/* The daemon ends while masks wait: teardown fails unless all is given back. */
START_TEST(the_end_waits_for_them) {
    client *c = new_client(), *other = new_client();
    stop_files();
    fold_all(c);
    ask(other, N / 2);
    while (held() < 2 * (uint64_t)N) step(other, SIZE_MAX, SIZE_MAX);
    free_client(c);
    free_client(other);
    while (metric_now(CR_M_calls)) turn();
    ck_assert_uint_eq(held(), 2 * (uint64_t)N);
    go();
}
END_TEST

CR_CHECK_MAIN("server/shed") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_answer_waits_until_the_mask_is_back);
    tcase_add_loop_test(tc, who_ends_meanwhile_holds_it_until_then, 0, 2);
    tcase_add_loop_test(tc, a_mask_without_a_job_goes_back_too, 0, 2);
    tcase_add_loop_test(tc, partials_are_held_until_they_are_back, 0, 4);
    tcase_add_test(tc, the_end_waits_for_them);
}
