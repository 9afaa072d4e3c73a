/* Connections that wait among many, of which an edge tells: whatever comes, and however it ends, is seen. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/server/loopback.h"

enum {
    CLIENTS = 150,
    PINGS = 300, /* more than a go takes: no turn has time for all clients */
};

static client *crowd[CLIENTS];
static unsigned asked; /* PINGs of each */

static unsigned crowded(void) {
    unsigned n = 0;
    for (cr_list *node = native.connections.next; node != &native.connections; node = node->next)
        n += cr_container(node, cr_conn, link)->crowded;
    return n;
}

static void queue_pings(client *c, int count) {
    const char payload[16] = "ping";
    for (int i = 0; i < count; i++) queue_frame(c, CR_FRAME_PING, 0, 0, payload, sizeof payload);
}

/* Sends what is queued, all of which the socket takes, without a turn. */
static void push(client *c) {
    ck_assert_int_eq(send(c->fd, c->out, c->out_len, MSG_NOSIGNAL), (ssize_t)c->out_len);
    c->out_len = 0;
}

static void flood(void) {
    for (int i = 0; i < CLIENTS; i++) queue_pings(crowd[i], PINGS);
    for (int i = 0; i < CLIENTS; i++) push(crowd[i]);
    asked += PINGS;
}

static void await_pongs(void) {
    for (int i = 0; i < CLIENTS; i++)
        while (crowd[i]->pongs < asked) step(crowd[i], 0, SIZE_MAX);
}

/* Clients that are greeted, all in the crowd but the few that were served before poll could tell again. */
static void gather(bool tcp) {
    asked = 0;
    for (int i = 0; i < CLIENTS; i++) {
        crowd[i] = tcp ? new_tcp_client() : new_client();
        while (!crowd[i]->welcomes) step(crowd[i], SIZE_MAX, SIZE_MAX);
    }
    ck_assert_uint_eq(crowded(), 0);
    for (int tries = 0; tries < 50 && crowded() < CLIENTS / 3; tries++) {
        flood();
        turn();
        turn();
        await_pongs();
    }
    ck_assert_uint_ge(crowded(), CLIENTS / 3);
}

static void part(void) {
    for (int i = 0; i < CLIENTS; i++) free_client(crowd[i]);
    while (metric_now(CR_M_connections)) turn();
}

START_TEST(all_are_answered) {
    const uint32_t data[3] = {7, 8, 9};
    gather(_i);
    for (uint32_t stream = 1; stream <= 5; stream++) {
        for (int i = 0; i < CLIENTS; i++) {
            queue_call(crowd[i], stream, sizeof data);
            queue_frame(crowd[i], CR_FRAME_DATA, CR_FLAG_END, stream, data, sizeof data);
        }
        if (stream % 2)
            flood();
        else
            for (int i = 0; i < CLIENTS; i++) push(crowd[i]);
        await_pongs();
        for (int i = 0; i < CLIENTS; i++) {
            finish(crowd[i], stream);
            ck_assert_uint_eq(crowd[i]->sum[stream], 24);
        }
    }
    part();
}
END_TEST

/* One after the other, when nobody else asks for anything. */
START_TEST(a_lone_one_is_heard) {
    gather(_i);
    for (int i = 0; i < CLIENTS; i++) {
        const unsigned before = crowd[i]->pongs;
        queue_pings(crowd[i], 1);
        step(crowd[i], 5, SIZE_MAX); /* in pieces */
        step(crowd[i], 3, SIZE_MAX);
        while (crowd[i]->pongs == before) step(crowd[i], SIZE_MAX, SIZE_MAX);
    }
    ck_assert_uint_ge(crowded(), CLIENTS / 3);
    part();
}
END_TEST

/* The end comes with the last bytes, before any of them is read, or behind them. */
START_TEST(an_end_is_seen) {
    gather(_i & 1);
    for (int i = 0; i < CLIENTS; i++) {
        queue_pings(crowd[i], _i & 2 ? PINGS : 1);
        push(crowd[i]);
        if (i % 3 == 0) turn();
        if (i % 2) ck_assert_int_eq(shutdown(crowd[i]->fd, SHUT_WR), 0);
    }
    for (int i = 1; i < CLIENTS; i += 2)
        while (!crowd[i]->gone) step(crowd[i], 0, SIZE_MAX);
    part();
}
END_TEST

/* Linux ends a read behind descriptors: what follows them is no new edge. */
START_TEST(what_follows_descriptors_is_read) {
    gather(false);
    for (int i = 0; i < CLIENTS; i++) {
        client *c = crowd[i];
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control = {{0}};
        const int passed = eventfd(0, EFD_CLOEXEC);
        queue_pings(c, 1);
        struct iovec iov = {c->out, c->out_len};
        struct msghdr message = {
            .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof passed), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &passed, sizeof passed);
        ck_assert_int_eq(sendmsg(c->fd, &message, 0), (ssize_t)c->out_len);
        close(passed);
        push(c); /* the same PING once more, without a descriptor */
    }
    asked += 2;
    await_pongs();
    part();
}
END_TEST

/* One of the crowd; *conn: its end here. They stand in the order in which they came. */
static int some_crowded(const cr_conn **conn) {
    const cr_list *node = native.connections.next;
    int i = 0;
    for (; !cr_container(node, cr_conn, link)->crowded; node = node->next) i++;
    *conn = cr_container(node, cr_conn, link);
    return i;
}

/* A read that fills what it was given, the rest of a slab, may have left something. */
START_TEST(a_slab_that_is_full_ends_no_read) {
    enum { LAST = 64 * 1024 };
    uint64_t sum;
    const size_t n = (MIB + LAST / 2) / 4;
    uint32_t *data = numbers(n, &sum);
    gather(false);
    const cr_conn *conn;
    client *c = crowd[some_crowded(&conn)];
    stop_clock(true); /* a slab that idles would be sealed, and the next has more room */
    queue_call(c, 1, n * 4);
    queue_frame(c, CR_FRAME_DATA, 0, 1, data, MIB);
    queue_frame(c, CR_FRAME_DATA, CR_FLAG_END, 1, data + MIB / 4, n * 4 - MIB);
    while (c->out_len - c->out_off > LAST) step(c, c->out_len - c->out_off - LAST, SIZE_MAX);
    for (int turns = 0; turns < 50; turns++) turn();
    ck_assert(conn->crowded);
    step(c, SIZE_MAX, SIZE_MAX);
    ck_assert_uint_eq(c->out_len, 0);
    finish(c, 1);
    ck_assert_uint_eq(c->sum[1], sum);
    stop_clock(false);
    free(data);
    part();
}
END_TEST

/* Replies that nobody reads, and uploads that wait for slabs, leave the crowd, and lose nothing. */
START_TEST(who_waits_for_something_else_leaves) {
    uint64_t sum;
    const size_t n = MIB / 2;
    uint32_t *data = numbers(n, &sum);
    const cr_conn *conn;
    gather(_i);
    const int slow = some_crowded(&conn), first = (slow + 1) % (CLIENTS - 8);
    unsigned unread = 0;
    for (; !cr_conn_backlog(conn); unread += PINGS) {
        queue_pings(crowd[slow], PINGS);
        while (crowd[slow]->out_len) step(crowd[slow], SIZE_MAX, 0);
        turn();
    }
    ck_assert(!conn->crowded);
    ck_assert(conn->events & UV_WRITABLE); /* which no edge of the crowd tells */
    for (int i = first; i < first + 8; i++) {
        ck_assert_int_ne(i, slow);
        queue_call(crowd[i], 1, n * 4);
        queue_frame(crowd[i], CR_FRAME_DATA, 0, 1, data, MIB);
        queue_frame(crowd[i], CR_FRAME_DATA, CR_FLAG_END, 1, data + MIB / 4, n * 4 - MIB);
    }
    for (bool left = true; left;) {
        left = false;
        for (int i = 0; i < CLIENTS; i++) {
            const bool uploads = i >= first && i < first + 8;
            step(crowd[i], SIZE_MAX, SIZE_MAX);
            left |= crowd[i]->pongs < asked + (i == slow ? unread : 0) || (uploads && !crowd[i]->answers);
        }
    }
    for (int i = first; i < first + 8; i++) ck_assert_uint_eq(crowd[i]->sum[1], sum);
    crowd[slow]->pongs -= unread;
    flood();
    await_pongs();
    free(data);
    part();
}
END_TEST

CR_CHECK_MAIN("server/crowd") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, all_are_answered, 0, 2);
    tcase_add_loop_test(tc, a_lone_one_is_heard, 0, 2);
    tcase_add_loop_test(tc, an_end_is_seen, 0, 4);
    tcase_add_test(tc, what_follows_descriptors_is_read);
    tcase_add_test(tc, a_slab_that_is_full_ends_no_read);
    tcase_add_loop_test(tc, who_waits_for_something_else_leaves, 0, 2);
}
