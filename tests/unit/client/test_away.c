/* A daemon that is away, or does not answer any more: the PING that asks, the circuit that opens, and how long anything waits. The
 * linker puts a clock in place that the test moves. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const cured_op sum = CURED_OP_SUM;
static const float three[] = {1, 2, 3};
static uint64_t moved_ms;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = __real_clock_gettime(clock, now);
    now->tv_sec += (time_t)(moved_ms / 1000);
    now->tv_nsec += (long)(moved_ms % 1000) * 1000000;
    now->tv_sec += now->tv_nsec / 1000000000;
    now->tv_nsec %= 1000000000;
    return failed;
}

static void end(void) {
    teardown();
    moved_ms = 0; /* Check measures by the same clock */
}

static cured_call *start_with(uint32_t retries, uint32_t timeout_ms) {
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = retries;
    o.timeout_ms = timeout_ms;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_F32, &sum, 1, three, 3, &o, &call, &error), CURED_OK);
    return call;
}

static void pass(uint64_t ms) {
    moved_ms += ms;
    cured_process(conn, NULL);
    if (f.peer >= 0) fake_read(&f);
}

/* PINGs among what the client sent. */
static int pings(uint64_t *id) {
    cr_frame h;
    const uint8_t *p;
    int count = 0;
    while (fake_take(&f, &h, &p)) {
        if (h.type != CR_FRAME_PING) continue;
        memcpy(id, p, sizeof *id);
        count++;
    }
    return count;
}

START_TEST(a_silent_daemon_is_asked_and_given_up) {
    uint64_t id;
    cured_call *call = start_with(0, 0);
    fake_settle(&f, conn);
    ck_assert_int_eq(pings(&id), 0);
    ck_assert_int_gt(cured_timeout_ms(conn), 10000);
    ck_assert_int_le(cured_timeout_ms(conn), 20000);
    pass(19000);
    ck_assert_int_eq(pings(&id), 0);
    pass(1500);
    ck_assert_int_eq(pings(&id), 1);
    /* whatever it says, it lives */
    fake_send(&f, CR_FRAME_PONG, 0, 0, &id, sizeof id);
    pass(0);
    pass(20000);
    ck_assert_int_eq(pings(&id), 0);
    pass(20000);
    ck_assert_int_eq(pings(&id), 1);
    pass(19000);
    ck_assert(!cured_call_done(call));
    pass(1500);
    ck_assert(cured_call_done(call));
    ck_assert_int_eq(cured_call_status(call, &error), CURED_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.text, "PING within 20000 ms"));
    cured_call_free(call);
}
END_TEST

/* It neither reads nor speaks any more, and PONGs for what it asked before fill the buffer that a PING would go to. */
START_TEST(a_daemon_that_does_not_even_read_is_given_up) {
    enum { BYTES = 8 << 20, PINGS = 8 * 1024 / (CR_FRAME_HEADER_BYTES + 8) }; /* of a buffer of 8 KiB */
    uint64_t id = 0;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    uint8_t *data = calloc(1, BYTES);
    o.retries = 0;
    ck_assert_int_eq(cured_reduce_buffer(conn, CURED_U8, &sum, 1, data, BYTES, &o, &call, &error), CURED_OK);
    cured_process(conn, NULL); /* fills the socket */
    for (int i = 0; i < PINGS; i++) {
        fake_send(&f, CR_FRAME_PING, 0, 0, &id, sizeof id);
        cured_process(conn, NULL);
    }
    ck_assert(!cured_call_done(call));
    for (int i = 0; i < 3; i++) {
        moved_ms += 20500;
        cured_process(conn, NULL);
    }
    ck_assert(cured_call_done(call));
    ck_assert_int_eq(cured_call_status(call, &error), CURED_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.text, "within 20000 ms"));
    cured_call_free(call);
    free(data);
}
END_TEST

START_TEST(what_lies_unread_is_an_answer) {
    /* A program that was stopped itself finds the answer when it goes on. */
    cured_call *call = start_with(0, 0);
    fake_settle(&f, conn);
    pass(20500);
    fake_sum(&f, 1, 6);
    pass(1000000);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_OK);
    cured_call_free(call);
}
END_TEST

START_TEST(an_idle_connection_is_left_alone) {
    uint64_t id;
    fake_settle(&f, conn);
    ck_assert_int_eq(cured_timeout_ms(conn), -1);
    pass(1000000);
    ck_assert_int_eq(pings(&id), 0);
    cured_call *call = start_with(0, 0);
    pass(0);
    ck_assert_int_eq(pings(&id), 0);
    ck_assert(!cured_call_done(call));
    cured_call_free(call);
}
END_TEST

/* Nobody listens any more. */
static void go_away(void) {
    fake_settle(&f, conn);
    fake_drop(&f);
    close(f.listener);
    f.listener = -1;
    cured_process(conn, NULL);
}

static void come_back(void) {
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    strcpy(un.sun_path, f.address + 5);
    unlink(un.sun_path);
    f.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(f.listener, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(listen(f.listener, 8), 0);
}

static void wait_for_client(void) {
    for (int i = 0; i < 200 && f.peer < 0; i++) {
        moved_ms += 50;
        cured_process(conn, NULL);
        f.peer = accept4(f.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
}

/* The advice that comes with a call which ends without an attempt; 0: it was attempted. */
static uint32_t refused(void) {
    cured_call *call = start_with(0, 0);
    bool at_once = cured_call_done(call);
    turns(call);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_UNAVAILABLE);
    cured_call_free(call);
    ck_assert(at_once == (error.retry_after_ms != 0));
    return error.retry_after_ms;
}

START_TEST(the_circuit) {
    cr_frame h;
    const uint8_t *p;
    go_away();
    for (int i = 0; i < 5; i++) ck_assert_uint_eq(refused(), 0);
    uint32_t ms = refused();
    ck_assert(ms >= 1 && ms <= 101);
    ck_assert_ptr_nonnull(strstr(error.text, "5 attempts"));
    come_back();
    refused();
    ck_assert_int_lt(accept4(f.listener, NULL, NULL, SOCK_NONBLOCK), 0); /* nobody came */
    moved_ms += 102;
    cured_call *call = start_with(0, 0);
    cured_process(conn, NULL);
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f);
    fake_settle(&f, conn);
    fake_sum(&f, 1, 6);
    turns(call);
    ck_assert_int_eq(cured_call_status(call, &error), CURED_OK);
    cured_call_free(call);
    /* all is as before */
    go_away();
    for (int i = 0; i < 5; i++) ck_assert_uint_eq(refused(), 0);
}
END_TEST

START_TEST(the_circuit_opens_for_longer_each_time) {
    uint32_t most = 0;
    bool differ = false;
    go_away();
    for (int i = 0; i < 5; i++) refused();
    for (int i = 0; i < 20; i++) {
        uint32_t bound = i < 6 ? 100u << i : 5000, ms = refused();
        ck_assert(ms >= 1 && ms <= bound + 1);
        differ = differ || (i > 6 && ms / 10 != most / 10);
        most = ms;
        moved_ms += ms + 1;
        ck_assert_uint_eq(refused(), 0);
    }
    ck_assert(differ);
}
END_TEST

/* The next try of a call comes after a random time. Its stream. */
static uint32_t wait_for_call(void) {
    for (int i = 0; i < 400; i++) {
        cr_frame h;
        const uint8_t *p;
        while (fake_take(&f, &h, &p))
            if (h.type == CR_FRAME_CALL) return h.stream;
        pass(50);
    }
    ck_abort_msg("no call came");
    return 0;
}

/* A call that waits for another try goes on waiting, as long as its deadline allows. */
START_TEST(calls_that_wait_outlast_the_circuit) {
    cr_frame h;
    const uint8_t *p;
    cured_call *patient = start_with(100, 0), *hasty = start_with(100, 3000);
    fake_settle(&f, conn);
    go_away();
    for (int i = 0; i < 100; i++) pass(50);
    ck_assert(cured_call_done(hasty));
    /* the next try would come too late, or has not come */
    cured_status ended = cured_call_status(hasty, &error);
    ck_assert(ended == CURED_UNAVAILABLE || ended == CURED_DEADLINE_EXCEEDED);
    ck_assert(!cured_call_done(patient));
    come_back();
    wait_for_client();
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f);
    fake_sum(&f, wait_for_call(), 6);
    turns(patient);
    ck_assert_int_eq(cured_call_status(patient, &error), CURED_OK);
    cured_call_free(patient);
    cured_call_free(hasty);
}
END_TEST

/* A call that waits registers its region again, also while the circuit is open. */
START_TEST(regions_outlast_the_circuit) {
    cr_frame h;
    const uint8_t *p;
    cured_region *region;
    cured_call *call;
    cured_options o = CURED_OPTIONS_INIT;
    int memory = memfd_create("region", MFD_CLOEXEC);
    o.retries = 100;
    ck_assert_int_eq(cured_region_fd(conn, memory, &region, &error), CURED_OK);
    ck_assert_int_eq(cured_region_reduce(region, CURED_F32, &sum, 1, 0, 3, &o, &call, &error), CURED_OK);
    go_away();
    for (int i = 0; i < 100; i++) pass(50);
    come_back();
    wait_for_client();
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    ck_assert_uint_ne(expect(CR_CALL_REGISTER, &h).region.id, 0);
    expect(CR_CALL_REDUCE, &h);
    cured_call_free(call);
    cured_region_free(region);
    close(memory);
}
END_TEST

START_TEST(both_can_be_switched_off) {
    cured_connect_options o = CURED_CONNECT_OPTIONS_INIT;
    uint64_t id;
    cured_close(conn);
    fake_drop(&f);
    o.keepalive_ms = o.circuit_failures = 0;
    ck_assert_int_eq(cured_connect(f.address, &o, &conn, &error), CURED_OK);
    fake_accept(&f);
    fake_settle(&f, conn);
    fake_welcome(&f);
    cured_call *call = start_with(0, 0);
    fake_settle(&f, conn);
    ck_assert_int_eq(cured_timeout_ms(conn), -1);
    pass(1000000);
    ck_assert_int_eq(pings(&id), 0);
    cured_call_free(call);
    go_away();
    for (int i = 0; i < 20; i++) ck_assert_uint_eq(refused(), 0);
}
END_TEST

START_TEST(a_region_is_not_waited_for_without_end) {
    cured_region *region;
    cr_frame h;
    int memory = memfd_create("region", MFD_CLOEXEC);
    ck_assert_int_eq(cured_region_fd(conn, memory, &region, &error), CURED_OK);
    cr_wire_call call = expect(CR_CALL_REGISTER, &h);
    ck_assert_uint_le(call.timeout_ms, 60000);
    ck_assert_uint_gt(call.timeout_ms, 50000);
    moved_ms += 60000;
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_DEADLINE_EXCEEDED);
    cured_region_free(region);
    close(memory);
}
END_TEST

/* Its calls end with it, whichever end was first to say so; they were not cancelled. */
START_TEST(a_region_that_is_late_ends_its_calls) {
    for (int late = 0; late < 2; late++) {
        cured_region *region;
        cured_call *call;
        cured_options o = CURED_OPTIONS_INIT;
        cr_frame h;
        int memory = memfd_create("region", MFD_CLOEXEC);
        o.retries = 0;
        ck_assert_int_eq(cured_region_fd(conn, memory, &region, &error), CURED_OK);
        ck_assert_int_eq(cured_region_reduce(region, CURED_F32, &sum, 1, 0, 3, &o, &call, &error), CURED_OK);
        expect(CR_CALL_REGISTER, &h);
        expect(CR_CALL_REDUCE, &h);
        if (late) moved_ms += 60000;
        if (late) cured_process(conn, NULL);
        fake_status(&f, h.stream, CR_CANCELLED, 0, "region: 1 was not registered to the end");
        turns(call);
        ck_assert_int_eq(cured_call_status(call, &error), CURED_DEADLINE_EXCEEDED);
        cured_call_free(call);
        cured_region_free(region);
        close(memory);
        fake_settle(&f, conn);
        const uint8_t *p;
        while (fake_take(&f, &h, &p)) continue;
    }
}
END_TEST

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t bytes = sizeof value;
    ck_assert_int_eq(getsockopt(fd, level, name, &value, &bytes), 0);
    return value;
}

START_TEST(the_kernel_asks_too) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof name;
    char address[64];
    cured_conn *tcp;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&name, &bytes), 0);
    snprintf(address, sizeof address, "tcp:127.0.0.1:%u", ntohs(name.sin_port));
    ck_assert_int_eq(cured_connect(address, NULL, &tcp, &error), CURED_OK);
    ck_assert_int_eq(option(cured_fd(tcp), SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(option(cured_fd(tcp), IPPROTO_TCP, TCP_KEEPIDLE), 30);
    ck_assert_int_eq(option(cured_fd(tcp), IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
    cured_close(tcp);
    close(listener);
}
END_TEST

CR_CHECK_MAIN("away") {
    tcase_add_checked_fixture(tc, setup, end);
    tcase_add_test(tc, a_silent_daemon_is_asked_and_given_up);
    tcase_add_test(tc, a_daemon_that_does_not_even_read_is_given_up);
    tcase_add_test(tc, what_lies_unread_is_an_answer);
    tcase_add_test(tc, an_idle_connection_is_left_alone);
    tcase_add_test(tc, the_circuit);
    tcase_add_test(tc, the_circuit_opens_for_longer_each_time);
    tcase_add_test(tc, calls_that_wait_outlast_the_circuit);
    tcase_add_test(tc, regions_outlast_the_circuit);
    tcase_add_test(tc, both_can_be_switched_off);
    tcase_add_test(tc, a_region_is_not_waited_for_without_end);
    tcase_add_test(tc, a_region_that_is_late_ends_its_calls);
    tcase_add_test(tc, the_kernel_asks_too);
}
