/* What one turn of the loop does, and what a connection does when descriptors were lost. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/call/call.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

/* Made in one turn for one connection: its part, and the last answer of it. */
enum { MOST_ANSWERS = CR_GO_ANSWERS + 64 * 1024 + 64 };

/* The client is another process from now on. */
static void become_another(const client *c, uint64_t process) {
    for (cr_list *node = native.connections.next; node != &native.connections; node = node->next) {
        cr_conn *conn = cr_container(node, cr_conn, link);
        if (conn->socket.fd != c->served) continue;
        bool waits = conn->seat.waits;
        cr_rounds_leave(&native.rounds, &conn->seat);
        ck_assert(cr_rounds_join(&native.rounds, &conn->seat, process));
        if (waits) cr_rounds_wait(&native.rounds, &conn->seat);
    }
}

/* any of u8 along an axis of no elements: outer answers for nothing. */
static void queue_empty_axis(client *c, uint32_t stream, uint64_t outer) {
    uint8_t payload[128];
    cr_wire_call call = {.kind = CR_CALL_REDUCE};
    call.reduce.dtype = CR_U8;
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_ANY;
    call.reduce.source = CR_SOURCE_STREAM;
    call.reduce.length_known = true;
    call.reduce.has_axis = true;
    call.reduce.outer = outer;
    call.reduce.inner = 1;
    queue_frame(c, CR_FRAME_CALL, CR_FLAG_END, stream, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    queue_frame(c, CR_FRAME_CREDIT, 0, stream, payload, cr_wire_pack_credit(UINT64_MAX, payload, sizeof payload));
}

/* A client that reads faster than the loop writes has its part of a turn, and no more: others must be heard. */
START_TEST(a_turn_ends_however_fast_a_client_reads) {
    client *c = new_client(), *other = new_client();
    while (!c->welcomes || !other->welcomes) step(c, SIZE_MAX, SIZE_MAX), step(other, SIZE_MAX, SIZE_MAX);
    queue_empty_axis(c, 1, 1u << 30);
    swallow(c, 256 * MIB);
    step(c, SIZE_MAX, 0);
    ck_assert_uint_le(swallowed_bytes(), MOST_ANSWERS);
    for (size_t before = swallowed_bytes(), turns = 0; turns < 20; before = swallowed_bytes()) {
        turn();
        ck_assert_uint_le(swallowed_bytes() - before, MOST_ANSWERS);
        turns += before > 0; /* the first answers may take a few */
        if (before) ck_assert_uint_gt(swallowed_bytes(), before);
    }
    char payload[8] = "ping";
    queue_frame(other, CR_FRAME_PING, 0, 0, payload, sizeof payload);
    stop_clock(true); /* no turn ends for its time, however long this machine takes */
    for (int i = 0; i < 3; i++) step(other, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(other->pongs, 1);
    swallow(NULL, 0);
    free_client(c);
    free_client(other);
}
END_TEST

/* However many frames lie there, a connection has its part of them in a turn, and the others come meanwhile. */
START_TEST(a_flood_of_frames_is_shared_out) {
    client *flood = new_client(), *other = new_client();
    become_another(flood, 1);
    become_another(other, 2);
    while (!flood->welcomes || !other->welcomes) step(flood, SIZE_MAX, SIZE_MAX), step(other, SIZE_MAX, SIZE_MAX);
    enum { PINGS = 5000 };
    for (int i = 0; i < PINGS; i++) queue_frame(flood, CR_FRAME_PING, 0, 0, "flood", 5);
    stop_clock(true); /* as above */
    for (unsigned turns = 0; flood->pongs < PINGS;) {
        step(flood, SIZE_MAX, SIZE_MAX);
        ck_assert_uint_le(flood->pongs, ++turns * CR_GO_FRAMES);
        ck_assert_uint_lt(turns, 200 * PINGS / CR_GO_FRAMES);
        if (turns % 4) continue;
        unsigned pongs = other->pongs;
        queue_frame(other, CR_FRAME_PING, 0, 0, "other", 5);
        for (int i = 0; i < 3 && other->pongs == pongs; i++, turns++) step(other, SIZE_MAX, SIZE_MAX);
        ck_assert_uint_eq(other->pongs, pongs + 1);
    }
    free_client(flood);
    free_client(other);
}
END_TEST

/* How many sends the answers to so many pings, which lie there at once, take. */
static unsigned sends_for_pings(client *c, int pings) {
    for (int i = 0; i < pings; i++) queue_frame(c, CR_FRAME_PING, 0, 0, "alone", 5);
    swallow(c, SIZE_MAX);
    stop_clock(true); /* all of them are one go */
    for (int i = 0; i < 4; i++) step(c, SIZE_MAX, 0);
    stop_clock(false);
    ck_assert_uint_eq(swallowed_bytes(), (size_t)pings * (CR_FRAME_HEADER_BYTES + 5));
    unsigned sends = swallowed_sends();
    swallow(NULL, 0);
    return sends;
}

/* The client of a connection that is alone can work on the first answers while the daemon makes the others. Where connections take
 * turns the daemon has others to serve meanwhile, and one send costs less. */
START_TEST(first_answers_of_a_lone_connection_leave_early) {
    client *c = new_client(), *other = new_client();
    while (!c->welcomes || !other->welcomes) step(c, SIZE_MAX, SIZE_MAX), step(other, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(sends_for_pings(c, 3), 1);
    ck_assert_uint_eq(sends_for_pings(c, 16), 1);
    ck_assert_uint_eq(sends_for_pings(c, 17), 2);
    ck_assert_uint_eq(sends_for_pings(c, 80), 2); /* after 16 frames, and all the others */
    ck_assert_uint_eq(sends_for_pings(c, 81), 3); /* after 16, after 80, and the last */
    ck_assert_uint_eq(sends_for_pings(other, 81), 1);
    ck_assert_uint_eq(sends_for_pings(other, 81), 3);
    free_client(c);
    free_client(other);
}
END_TEST

START_TEST(answers_of_info_are_shared_out) {
    client *c = new_client();
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    uint8_t payload[64];
    const cr_wire_call info = {.kind = CR_CALL_INFO};
    size_t n = cr_wire_pack_call(&info, payload, sizeof payload), before = 0;
    enum { CALLS = 3000 };
    for (uint32_t stream = 1; stream <= CALLS; stream++) queue_frame(c, CR_FRAME_CALL, CR_FLAG_END, stream, payload, n);
    swallow(c, SIZE_MAX);
    step(c, SIZE_MAX, 0);
    for (unsigned turns = 0; metric_now(CR_M_calls_ok) < CALLS; turns++, before = swallowed_bytes()) {
        step(c, SIZE_MAX, 0);
        ck_assert_uint_le(swallowed_bytes() - before, 2 * MOST_ANSWERS); /* of the two turns of the first step */
        ck_assert_uint_lt(turns, 20 * CALLS);
    }
    swallow(NULL, 0);
    free_client(c);
}
END_TEST

/* Partials of nothing are the cheapest to send: a DATA holds thousands, and each is a merge. */
START_TEST(merges_are_shared_out) {
    enum { PARTIALS = 5000, MOST_MERGED = CR_GO_FRAMES + 64 };
    client *c = new_client();
    uint8_t payload[128], record[256];
    cr_partial partial;
    static cr_share share;
    cr_wire_call call = {.kind = CR_CALL_MERGE};
    call.reduce.op_count = 1;
    call.reduce.ops[0] = CR_OP_COUNT;
    call.reduce.source = CR_SOURCE_STREAM;
    queue_frame(c, CR_FRAME_CALL, 0, 1, payload, cr_wire_pack_call(&call, payload, sizeof payload));
    cr_partial_init(&partial, CR_U8, cr_op_needs(CR_OP_COUNT, CR_U8));
    assert_ok(cr_share_make(&share, &partial, 0, &error), error);
    uint32_t length = (uint32_t)cr_share_pack(&share, record + 4, sizeof record - 4);
    memcpy(record, &length, sizeof length);
    uint8_t *data = malloc((length + 4) * PARTIALS);
    for (int i = 0; i < PARTIALS; i++) memcpy(data + i * (length + 4), record, length + 4);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, data, (length + 4) * PARTIALS);
    uint64_t before = calls.merged = 0;
    for (unsigned turns = 0; !c->answers; turns++, before = calls.merged) {
        step(c, SIZE_MAX, SIZE_MAX);
        ck_assert_uint_eq(c->failures, 0);
        ck_assert_uint_le(calls.merged - before, MOST_MERGED);
        ck_assert_uint_lt(turns, 20 * PARTIALS);
    }
    ck_assert_uint_eq(calls.merged, PARTIALS);
    free(data);
    free_client(c);
}
END_TEST

/* A window of stall_timeout_ms is over, by no clock. */
static void window_over(void) {
    cr_timer_stop(&calls.timers, &calls.window);
    cr_call_window_over(&calls.window);
}

/* When no call more comes in, one that waits for bytes and brings least ends; a slow pipe goes on. */
START_TEST(hoarders_end_when_calls_are_short) {
    enum { MOST = 8, PIPE = 5 };
    client *c = new_client(), *other = new_client();
    const uint32_t number = 42;
    calls.admission.most[CR_USE_calls] = MOST + 1; /* one user may hold MOST */
    stop_clock(true);                              /* turns are counted, and none ends for its time */
    for (uint32_t stream = 1; stream <= MOST; stream++) queue_call(c, stream, MIB);
    for (int window = 0; window < 4; window++) {
        queue_frame(c, CR_FRAME_DATA, 0, PIPE, &number, sizeof number);
        for (int i = 0; i < 3; i++) step(c, SIZE_MAX, SIZE_MAX);
        if (window == 1) { /* nobody has had a whole window */
            queue_call(other, 1, 4);
            for (int i = 0; i < 3; i++) step(other, SIZE_MAX, SIZE_MAX);
            ck_assert_uint_eq(other->status[1], CR_RESOURCE_EXHAUSTED);
        }
        window_over();
    }
    for (uint32_t stream = 2; stream < 2 + MOST; stream++) {
        queue_call(other, stream, MIB);
        for (int i = 0; i < 8; i++) step(other, SIZE_MAX, SIZE_MAX), step(c, 0, SIZE_MAX);
        bool room = stream < 2 + MOST - 1;
        ck_assert_uint_eq(other->status[stream], room ? 0 : CR_RESOURCE_EXHAUSTED);
        ck_assert_uint_eq(c->failures, room ? stream - 1 : MOST);
        ck_assert_uint_eq(c->status[PIPE], room ? 0 : CR_RESOURCE_EXHAUSTED); /* the last to end */
    }
    ck_assert_ptr_nonnull(strstr(c->message, "stall_timeout_ms"));
    free_client(c);
    free_client(other);
}
END_TEST

/* While draining a call goes on as long as something comes of it. */
START_TEST(calls_without_progress_end_while_draining) {
    client *c = new_client();
    const uint32_t number = 42;
    stop_clock(true); /* as above */
    for (uint32_t stream = 1; stream <= 3; stream++) queue_call(c, stream, 5 * sizeof number);
    for (int i = 0; i < 3; i++) step(c, SIZE_MAX, SIZE_MAX);
    calls.draining = true;
    cr_calls_hurry(&calls);
    for (int second = 0; second < 4; second++) {
        queue_frame(c, CR_FRAME_DATA, 0, 2, &number, sizeof number);
        for (int i = 0; i < 3; i++) step(c, SIZE_MAX, SIZE_MAX);
        ck_assert_uint_eq(c->failures, second ? 2 : 0);
        cr_calls_hurry(&calls);
    }
    ck_assert_uint_eq(c->status[1], CR_UNAVAILABLE);
    ck_assert_uint_eq(c->status[3], CR_UNAVAILABLE);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 2, &number, sizeof number);
    finish(c, 3);
    ck_assert_uint_eq(c->answers, 1);
    ck_assert_uint_eq(c->sum[2], 5 * number);
    free_client(c);
}
END_TEST

/* The answers of one call are bounded, however little it sends. */
START_TEST(answers_beyond_the_limit_are_refused) {
    client *c = new_client();
    config.max_answer_bytes = 1000;
    queue_empty_axis(c, 1, 1001);
    queue_empty_axis(c, 2, (uint64_t)1 << 57);
    finish(c, 2);
    ck_assert_uint_eq(c->status[1], CR_INVALID_ARGUMENT);
    ck_assert_uint_eq(c->status[2], CR_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(c->message, "max_answer_bytes"));
    queue_empty_axis(c, 3, 1000);
    finish(c, 3);
    ck_assert_uint_eq(c->answers, 1);
    free_client(c);
}
END_TEST

/* Answers that the loop made itself, because there was nothing to fold, are none that a thread for files has to give back: the call
 * is over with its answer, and no longer admitted. */
START_TEST(answers_for_nothing_leave_nothing) {
    client *c = new_client();
    for (unsigned call = 1; call <= 20; call++) { /* a thread may be quick */
        queue_empty_axis(c, call, 1000);
        finish(c, call);
        ck_assert_uint_eq(c->status[call], 0);
        ck_assert_uint_eq(calls.admission.used[CR_USE_calls], 0);
        ck_assert_uint_eq(metric_now(CR_M_jobs), 0);
    }
    free_client(c);
}
END_TEST

static void send_with_descriptor(client *c, const void *bytes, size_t n, int descriptor) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    ck_assert_int_eq(sendmsg(c->fd, &message, MSG_NOSIGNAL), (ssize_t)n);
}

/* Of those that left as many, the one that left them first ends, however soon the next one came, and whoever connected first. */
START_TEST(who_left_descriptors_first_ends) {
    client *c[2] = {new_client(), new_client()};
    while (!c[0]->welcomes || !c[1]->welcomes) step(c[0], SIZE_MAX, SIZE_MAX), step(c[1], SIZE_MAX, SIZE_MAX);
    int file = memory_file();
    stop_clock(true); /* as above */
    calls.admission.most[CR_USE_descriptors] = 1;
    for (int i = 0; i < 2; i++) {
        client *next = c[_i ^ i];
        send_with_descriptor(next, "CR", 2, file);
        for (int turns = 0; turns < 10; turns++) step(next, 0, SIZE_MAX);
    }
    for (int turns = 0; turns < 10; turns++) step(c[0], 0, SIZE_MAX), step(c[1], 0, SIZE_MAX);
    ck_assert_uint_eq(c[_i]->failures, 1);
    ck_assert_uint_eq(c[_i]->status[0], CR_RESOURCE_EXHAUSTED);
    ck_assert_uint_eq(c[1 - _i]->failures, 0);
    close(file);
    free_client(c[0]);
    free_client(c[1]);
}
END_TEST

/* The table of descriptors is full: recvmsg says so by MSG_CTRUNC, without any control data. The connection ends, or its next
 * call would be answered from another call's file. */
START_TEST(a_lost_descriptor_ends_the_connection) {
    client *c = new_client();
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    int file = memory_file(), next = dup(file);
    fill_file(file, "abcd", 4);
    close(next);
    stop_clock(true);    /* as above */
    queue_call(c, 1, 4); /* an open call, which the connection's STATUS must end as well */
    step(c, SIZE_MAX, SIZE_MAX);
    rlim_t before = limit_descriptors((rlim_t)next);
    send_with_descriptor(c, "CR", 2, file);
    step(c, 0, SIZE_MAX);
    limit_descriptors(before);
    for (int i = 0; i < 10 && !c->failures; i++) step(c, 0, SIZE_MAX);
    ck_assert_uint_eq(c->failures, 1);
    ck_assert_uint_eq(c->status[0], CR_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(c->message, "descriptors"));
    ck_assert_uint_eq(metric_now(CR_M_calls), 0);
    close(file);
    free_client(c);
}
END_TEST

CR_CHECK_MAIN("server/turns") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_turn_ends_however_fast_a_client_reads);
    tcase_add_test(tc, a_flood_of_frames_is_shared_out);
    tcase_add_test(tc, first_answers_of_a_lone_connection_leave_early);
    tcase_add_test(tc, answers_of_info_are_shared_out);
    tcase_add_test(tc, merges_are_shared_out);
    tcase_add_test(tc, hoarders_end_when_calls_are_short);
    tcase_add_test(tc, calls_without_progress_end_while_draining);
    tcase_add_test(tc, answers_beyond_the_limit_are_refused);
    tcase_add_test(tc, answers_for_nothing_leave_nothing);
    tcase_add_loop_test(tc, who_left_descriptors_first_ends, 0, 2);
    tcase_add_test(tc, a_lost_descriptor_ends_the_connection);
}
