/* Uploads that wait for slabs, and go away while they wait: many calls, one slab, random ends. Made for TSan as well: slabs are
 * granted by the lanes' threads. */
#include <stdlib.h>

#include "server/call/call.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { CLIENTS = 16, CALLS = 4, ROUNDS = 1, NUMBERS = MIB / 4 + 7 };

static void setup_one_slab(void) {
    slab_count = 1;
    setup();
}

static void start_upload(client *c, uint32_t stream, const uint32_t *data) {
    queue_call(c, stream, 4 * (uint64_t)NUMBERS);
    queue_frame(c, CR_FRAME_DATA, 0, stream, data, MIB / 2);
    queue_frame(c, CR_FRAME_DATA, 0, stream, data + MIB / 8, MIB / 4);
}

static void end_upload(client *c, uint32_t stream, const uint32_t *data, bool cancel) {
    if (cancel) {
        queue_frame(c, CR_FRAME_CANCEL, 0, stream, NULL, 0);
        return;
    }
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, stream, (const char *)data + 3 * MIB / 4, NUMBERS * 4 - 3 * MIB / 4);
}

/* 64 calls at a time; some are cancelled, some clients leave, the others get their sums. */
START_TEST(one_slab_for_all) {
    client *c[CLIENTS];
    uint64_t sum, state = 77 + (uint64_t)_i;
    uint32_t *data = numbers(NUMBERS, &sum);
    unsigned answered = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            c[i] = new_client();
            for (uint32_t stream = 1; stream <= CALLS; stream++) start_upload(c[i], stream, data);
        }
        for (unsigned steps = random_next(&state) % 300; steps; steps--)
            step(c[random_next(&state) % CLIENTS], 1 + random_next(&state) % 200000, SIZE_MAX);
        for (int i = 0; i < CLIENTS; i++)
            for (uint32_t stream = 1; stream <= CALLS; stream++)
                end_upload(c[i], stream, data, random_next(&state) % 2);
        for (int i = 0; i < CLIENTS; i++) {
            if (random_next(&state) % 4 == 0) { /* leaves in the middle */
                free_client(c[i]);
                c[i] = NULL;
            }
        }
        for (unsigned open = 1; open;) {
            open = 0;
            for (int i = 0; i < CLIENTS; i++) {
                if (!c[i]) continue;
                step(c[i], 1 + random_next(&state) % 400000, SIZE_MAX);
                ck_assert_msg(!c[i]->gone, "ended: %s", c[i]->message); /* it would be waited for without end */
                open += c[i]->answers + c[i]->failures < CALLS;
            }
        }
        for (int i = 0; i < CLIENTS; i++) {
            if (!c[i]) continue;
            for (uint32_t stream = 1; stream <= CALLS; stream++) {
                ck_assert(c[i]->sum[stream] == sum || c[i]->status[stream] == CR_CANCELLED);
                answered += c[i]->sum[stream] == sum;
            }
            free_client(c[i]);
        }
        while (metric_now(CR_M_connections)) turn();
    }
    ck_assert_uint_gt(answered, 0);
    ck_assert_uint_gt(metric_now(CR_M_slab_waits_total), 0); /* or the test shows nothing */
    free(data);
}
END_TEST

/* The upload that waits is gone before its slab comes: the slab goes back, and the next in line gets it. */
START_TEST(a_slab_for_an_upload_that_is_gone_goes_on) {
    client *first = new_client(), *gone = new_client(), *last = new_client();
    uint64_t sum;
    uint32_t *data = numbers(NUMBERS, &sum);
    void *slab = cr_slab_take(calls.slabs, &(cr_slab_asker){.client = 99});
    client *all[] = {first, gone, last};
    for (int i = 0; i < 3; i++) {
        start_upload(all[i], 1, data);
        while (metric_now(CR_M_slab_waits_total) < (uint64_t)i + 1) step(all[i], SIZE_MAX, SIZE_MAX);
    }
    ck_assert_uint_eq(metric_now(CR_M_slab_waits_total), 3);
    cr_slab_give(calls.slabs, slab); /* granted to the first, and not taken yet */
    free_client(first);
    free_client(gone);
    end_upload(last, 1, data, false);
    finish(last, 1);
    ck_assert_uint_eq(last->sum[1], sum);
    free_client(last);
    free(data);
}
END_TEST

/* Every pair of states, and every move between pairs: those of the diagram in call.h, and no others. */
START_TEST(states_move_as_drawn) {
    unsigned legal = 0;
    static cr_job job;
    static cr_call call;
    call.job = &job;
    for (int from = 0; from < CR_INPUT_STATES * CR_OUTPUT_STATES; from++)
        for (int to = 0; to < CR_INPUT_STATES * CR_OUTPUT_STATES; to++) {
            call.input = (cr_input_state)(from / CR_OUTPUT_STATES);
            call.output = (cr_output_state)(from % CR_OUTPUT_STATES);
            cr_input_state input = (cr_input_state)(to / CR_OUTPUT_STATES);
            cr_output_state output = (cr_output_state)(to % CR_OUTPUT_STATES);
            if (!cr_call_may_move(&call, input, output)) continue;
            legal++;
            ck_assert(call.output != CR_OVER);                       /* what is over stays over */
            ck_assert(input >= call.input && output >= call.output); /* nothing goes back */
            ck_assert(!(input == CR_AWAITING && output == CR_SENDING));
            ck_assert(call.input != CR_RECEIVING || input != CR_FOLDED);
        }
    ck_assert_uint_gt(legal, 0);
    call.job = NULL;
    call.input = CR_CLOSED;
    call.output = CR_NONE;
    ck_assert(!cr_call_may_move(&call, CR_FOLDED, CR_NONE)); /* without a job nothing comes back */
}
END_TEST

CR_CHECK_MAIN("server/waiters") {
    tcase_add_checked_fixture(tc, setup_one_slab, teardown);
    tcase_add_loop_test(tc, one_slab_for_all, 0, 3);
    tcase_add_test(tc, a_slab_for_an_upload_that_is_gone_goes_on);
    tcase_add_test(tc, states_move_as_drawn);
}
