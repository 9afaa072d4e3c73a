/* The listener: whose socket goes at the end, and what happens when connections or descriptors run out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/transport/listener.h"
#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum { CLIENTS = 200 };

static struct sockaddr_un name;
static cr_listener *listener;

static void open_listener(void) {
    char text[sizeof name.sun_path + 8];
    name.sun_family = AF_UNIX;
    snprintf(name.sun_path, sizeof name.sun_path, "/tmp/cured-unit-%d.sock", (int)getpid());
    snprintf(text, sizeof text, "unix:%s", name.sun_path);
    assert_ok(cr_listener_open(&arrivals, text, NULL, &listener, &error), error);
}

static void remove_lock(void) {
    char lock[sizeof name.sun_path + 8];
    snprintf(lock, sizeof lock, "%s.lock", name.sun_path);
    unlink(lock);
}

/* A client's end that was never read; -1: no. */
static int try_connect(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof name) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

START_TEST(it_removes_its_own_socket_only) {
    struct stat st;
    open_listener();
    if (_i) { /* somebody else's is at its place */
        ck_assert_int_eq(unlink(name.sun_path), 0);
        int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(other, (struct sockaddr *)&name, sizeof name), 0);
        close(other);
    }
    cr_listener_close(listener);
    ck_assert_int_eq(lstat(name.sun_path, &st), _i ? 0 : -1);
    unlink(name.sun_path);
    remove_lock();
}
END_TEST

/* Nothing is left to accept with, not even the spare descriptor: the loop must not be woken for it again and again. */
START_TEST(it_rests_when_it_cannot_accept) {
    open_listener();
    int fd = try_connect();
    ck_assert_int_ge(fd, 0);
    rlim_t before = limit_descriptors(3);
    unsigned accepted = accept_calls();
    stop_clock(true); /* it tries again ten times a second, and a busy machine may take long for these turns */
    for (int i = 0; i < 1000; i++) turn();
    stop_clock(false);
    limit_descriptors(before);
    ck_assert_uint_le(accept_calls() - accepted, 200);
    while (!metric_now(CR_M_connections)) turn(); /* and it goes on when there is room */
    close(fd);
    cr_listener_close(listener);
    remove_lock();
}
END_TEST

/* Refused connections are told why, but those that stay for it are few. */
START_TEST(few_refused_connections_linger) {
    int fds[CLIENTS];
    calls.admission.most[CR_USE_connections] = 1;
    cr_admit_limit_descriptors(&calls.admission, 4 * CLIENTS);
    open_listener();
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = try_connect();
        ck_assert_int_ge(fds[i], 0);
        turn();
    }
    ck_assert_uint_eq(metric_now(CR_M_connections_refused), CLIENTS - 1);
    ck_assert_uint_le(metric_now(CR_M_connections), 1 + calls.admission.max_refused);
    ck_assert_uint_lt(calls.admission.max_refused, CLIENTS / 2);
    for (int i = 1; i < CLIENTS; i++) {
        char byte;
        ssize_t n;
        while ((n = recv(fds[i], &byte, 1, 0)) < 0 && errno == EAGAIN)
            turn();             /* it says nothing, so it waits a moment */
        ck_assert_int_eq(n, 1); /* the beginning of a STATUS */
    }
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    while (metric_now(CR_M_connections)) turn();
    ck_assert_uint_eq(calls.admission.refused, 0);
    cr_listener_close(listener);
    remove_lock();
}
END_TEST

/* Connections leave a quarter of the descriptors to what clients pass. */
START_TEST(connections_leave_descriptors_for_calls) {
    enum { MOST = 256 };
    int fds[MOST], count = 0;
    open_listener();
    rlim_t before = limit_descriptors(MOST);
    cr_calls_limit(&calls);
    while (count < MOST && (fds[count] = try_connect()) >= 0) {
        count++;
        turn();
    }
    for (cr_list *node = native.connections.next; node != &native.connections; node = node->next) {
        const cr_conn *conn = cr_container(node, cr_conn, link);
        ck_assert(conn->refused || conn->socket.fd < MOST * 3 / 4);
    }
    ck_assert_uint_gt(metric_now(CR_M_connections_refused), 0);
    limit_descriptors(before);
    while (count) close(fds[--count]);
    while (metric_now(CR_M_connections)) turn();
    cr_listener_close(listener);
    remove_lock();
}
END_TEST

CR_CHECK_MAIN("server/listener") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, it_removes_its_own_socket_only, 0, 2);
    tcase_add_test(tc, it_rests_when_it_cannot_accept);
    tcase_add_test(tc, few_refused_connections_linger);
    tcase_add_test(tc, connections_leave_descriptors_for_calls);
}
