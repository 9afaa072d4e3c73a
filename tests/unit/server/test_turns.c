/* What one turn of the loop does, and what a connection does when descriptors were lost. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/server/loopback.h"

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
    ck_assert_uint_le(swallowed_bytes(), 4 * MIB);
    for (size_t before = swallowed_bytes(), turns = 0; turns < 20; before = swallowed_bytes()) {
        turn();
        ck_assert_uint_le(swallowed_bytes() - before, 4 * MIB);
        turns += before > 0; /* the first answers may take a few */
        if (before) ck_assert_uint_gt(swallowed_bytes(), before);
    }
    char payload[8] = "ping";
    queue_frame(other, CR_FRAME_PING, 0, 0, payload, sizeof payload);
    for (int i = 0; i < 3; i++) step(other, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(other->pongs, 1);
    swallow(NULL, 0);
    free_client(c);
    free_client(other);
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

/* The table of descriptors is full: recvmsg says so by MSG_CTRUNC, without any control data. The connection ends, or its next
 * call would be answered from another call's file. */
START_TEST(a_lost_descriptor_ends_the_connection) {
    client *c = new_client();
    while (!c->welcomes) step(c, SIZE_MAX, SIZE_MAX);
    int file = memory_file(), next = dup(file);
    fill_file(file, "abcd", 4);
    close(next);
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

int main(void) {
    Suite *suite = suite_create("server/turns");
    TCase *tc = tcase_create("turns");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_turn_ends_however_fast_a_client_reads);
    tcase_add_test(tc, answers_beyond_the_limit_are_refused);
    tcase_add_test(tc, a_lost_descriptor_ends_the_connection);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
