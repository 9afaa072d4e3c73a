/* process: one turn of a connection (connect, send, receive, timers, callbacks), and the blocking waits made of turns.
 *
 * Thread: the one that uses the connection. Owner: internal.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "client/lib/conn/look.h"
#include "client/lib/internal.h"

enum { RETRY_BUSY_NS = 1000000 }; /* a frame of the try before is still on its way */

void cr_cl_process_wake_at(cured_conn *conn, uint64_t when_ns) {
    if (conn->wake_ns == 0 || when_ns < conn->wake_ns) conn->wake_ns = when_ns;
}

static bool has_output(const cured_conn *conn) {
    return !conn->send_failed && (conn->control_len != 0 || !cr_list_empty(&conn->queue));
}

static bool writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

static void check_connect_time(cured_conn *conn) {
    if (conn->attempt_deadline_ns == 0 || cr_now_ns() < conn->attempt_deadline_ns) return;
    char text[CR_ERROR_TEXT];
    snprintf(text, sizeof text, "no answer from %.150s within %u ms", conn->address, conn->connect_timeout_ms);
    cr_cl_conn_lost(conn, CR_UNAVAILABLE, 0, text);
}

/* Looks through all calls, but only when the earliest of their times has come. */
static void run_timers(cured_conn *conn) {
    check_connect_time(conn);
    if (conn->wake_ns == 0) return;
    uint64_t now = cr_now_ns();
    if (now < conn->wake_ns) return;
    conn->wake_ns = 0;
    cr_list *l = conn->calls.next;
    while (l != &conn->calls) {
        cured_call *call = cr_container(l, cured_call, all);
        l = l->next;
        if (call->deadline_ns != 0 && now >= call->deadline_ns) {
            cr_cl_call_abandon(call, CR_DEADLINE_EXCEEDED, "the call's timeout_ms ran out");
            continue;
        }
        if (call->deadline_ns != 0) cr_cl_process_wake_at(conn, call->deadline_ns);
        if (call->state != CALL_RETRY) continue;
        if (now < call->retry_ns)
            cr_cl_process_wake_at(conn, call->retry_ns);
        else if (cr_list_empty(&call->queue))
            cr_cl_call_submit(call);
        else
            cr_cl_process_wake_at(conn, now + RETRY_BUSY_NS);
    }
}

static void connect_turn(cured_conn *conn) {
    if (conn->state == CONN_WAITING && conn->attempt_ns != 0) {
        uint64_t now = cr_now_ns();
        if (now >= conn->attempt_ns) cr_cl_conn_attempt(conn, now);
    } else if (conn->state == CONN_CONNECTING && writable(conn->fd)) {
        cr_cl_conn_connected(conn, cr_now_ns());
    }
}

static void socket_turn(cured_conn *conn, bool readable) {
    connect_turn(conn);
    cr_cl_send_flush(conn);
    readable = readable || cr_cl_tls_pending(conn);
    if (readable && conn->state == CONN_OPEN && !cr_cl_receive_once(conn)) cr_cl_conn_keep(conn);
}

/* Readies a frame for new bytes or the end, if the call has none under way. */
static void socket_more(cured_call *call) {
    if (cr_list_empty(&call->queue) && cr_cl_call_next_frame(call)) cr_cl_call_enqueue(call);
}

const cr_way cr_cl_socket = {
    .begin = cr_cl_call_send,
    .more = socket_more,
    .turn = socket_turn,
    .flush = cr_cl_send_flush,
    .pressing = cr_cl_tls_pending,
};

/* readable: worth a recv. Reading goes on while buffers come back full of answers. */
static void turn(cured_conn *conn, bool readable) {
    cr_cl_fork_check(conn);
    conn->busy = true;
    conn->way->turn(conn, readable);
    run_timers(conn);
    if (conn->registered && conn->welcomed) cr_cl_calls_held(conn);
    cr_cl_call_run_callbacks(conn);
    if (conn->way->flush != NULL) conn->way->flush(conn);
    conn->busy = false;
}

/* Whether the next turn has work, whatever comes. */
static bool pressing(const cured_conn *conn) {
    return !cr_list_empty(&conn->finished) || (conn->way->pressing != NULL && conn->way->pressing(conn));
}

cured_status cured_process(cured_conn *conn, cured_error *error) {
    if (conn->busy) return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_process was called from inside a callback");
    turn(conn, true);
    return cured_conn_status(conn, error);
}

int cured_fd(const cured_conn *conn) { return conn->fd; }

short cured_events(const cured_conn *conn) {
    if (conn->state == CONN_CONNECTING) return POLLOUT;
    if (conn->state != CONN_OPEN) return 0;
    if (cr_cl_tls_unsent(conn)) return POLLIN | POLLOUT;
    if (cr_cl_tls_shakes(conn)) return POLLIN;
    return has_output(conn) ? POLLIN | POLLOUT : POLLIN;
}

static int64_t wait_ns(const cured_conn *conn) {
    if (pressing(conn)) return 0;
    uint64_t at = conn->wake_ns;
    if (conn->keepalive_ns != 0 && (at == 0 || conn->keepalive_ns < at) && cr_cl_conn_waits(conn))
        at = conn->keepalive_ns;
    if (conn->attempt_deadline_ns != 0 && (at == 0 || conn->attempt_deadline_ns < at)) at = conn->attempt_deadline_ns;
    if (conn->state == CONN_WAITING && conn->attempt_ns != 0 && (at == 0 || conn->attempt_ns < at))
        at = conn->attempt_ns;
    if (at == 0) return -1;
    uint64_t now = cr_now_ns();
    return at > now ? (int64_t)(at - now) : 0;
}

int cured_timeout_ms(const cured_conn *conn) {
    int64_t ns = wait_ns(conn);
    if (ns < 0) return -1;
    int64_t ms = (ns + 999999) / 1000000;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Sleeps until the connection has something, or until a time (0: none). True: worth a recv. */
static bool sleep_until(cured_conn *conn, uint64_t until_ns) {
    struct pollfd p = {.fd = conn->fd, .events = cured_events(conn)};
    int64_t ns = wait_ns(conn);
    if (until_ns != 0) {
        const uint64_t now = cr_now_ns(), left = until_ns > now ? until_ns - now : 0;
        if (ns < 0 || left < (uint64_t)ns) ns = (int64_t)left;
    }
    const struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    const int r = ppoll(&p, 1, ns < 0 ? NULL : &t, NULL);
    if (r == 0) cr_cl_conn_keep(conn);
    return r > 0 && (p.revents & ~POLLOUT) != 0;
}

/* Waits until something comes, or until a time (0: none). True: worth a recv. */
static bool wait_once(cured_conn *conn, cured_call *call, uint64_t until_ns) {
    if (pressing(conn)) return false;
    if (conn->lookout.most_ns == 0 || conn->state != CONN_OPEN || has_output(conn)) return sleep_until(conn, until_ns);
    const uint64_t now = cr_now_ns(), asleep = call != NULL ? cr_cl_look_asleep_until(call, now) : 0;
    if (asleep != 0) return sleep_until(conn, until_ns != 0 && until_ns < asleep ? until_ns : asleep);
    const bool got = !cr_cl_look(conn, call, now) && sleep_until(conn, until_ns);
    cr_cl_look_waited(conn, cr_now_ns());
    return got;
}

/* call: which is waited for; NULL: none. */
static void wait_turn(cured_conn *conn, cured_call *call, uint64_t until_ns) {
    turn(conn, wait_once(conn, call, until_ns));
}

void cr_cl_process_until(cured_call *call, bool (*reached)(const cured_call *call), uint64_t until_ns) {
    cured_conn *conn = call->conn;
    if (call->state == CALL_DONE || reached(call)) return;
    turn(conn, false); /* sends what was queued; what comes back is waited for */
    while (call->state != CALL_DONE && !reached(call) && (until_ns == 0 || cr_now_ns() < until_ns))
        wait_turn(conn, call, until_ns);
    if (call->state == CALL_DONE) cr_cl_look_done(call);
}

static bool never(const cured_call *call) {
    (void)call;
    return false;
}

cured_status cured_wait(cured_call *call, cured_error *error) {
    if (call->state != CALL_DONE && call->conn->busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_wait was called from inside a callback");
    cr_cl_process_until(call, never, 0);
    return cured_call_status(call, error);
}

cured_status cured_wait_for(cured_call *call, uint32_t most_ms, cured_error *error) {
    if (call->state != CALL_DONE && call->conn->busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_wait_for was called from inside a callback");
    cr_cl_process_until(call, never, cr_now_ns() + most_ms * UINT64_C(1000000));
    return cured_call_status(call, error);
}

cured_status cured_connected(cured_conn *conn, cured_error *error) {
    if (conn->busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_connected was called from inside a callback");
    while (conn->state == CONN_CONNECTING || (conn->state == CONN_WAITING && conn->attempt_ns != 0))
        wait_turn(conn, NULL, 0);
    return cured_conn_status(conn, error);
}
