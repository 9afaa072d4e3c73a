/* process: one turn of a connection (connect, send, receive, timers, callbacks), and the blocking waits made of turns.
 *
 * Thread: the one that uses the connection. Owner: conn.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/clock.h"
#include "client/lib/conn/conn.h"
#include "client/lib/conn/look.h"
#include "client/lib/conn/tls.h"
#include "client/lib/error.h"

static bool has_output(const cured_conn *conn) {
    return !conn->send_failed && (conn->control_len != 0 || !cr_list_empty(&conn->calls.queue));
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

static void connect_turn(cured_conn *conn) {
    if (conn->state == CONN_WAITING && conn->attempt_ns != 0) {
        uint64_t now = cr_now_ns();
        if (now >= conn->attempt_ns) cr_cl_conn_attempt(conn, now);
    } else if (conn->state == CONN_CONNECTING && writable(conn->calls.fd)) {
        cr_cl_conn_connected(conn, cr_now_ns());
    }
}

/* ---- the table of a socket ---- */

static void socket_begin(cured_call *call) {
    cured_conn *conn = cr_cl_conn_of(cr_cl_call_calls(call));
    cr_cl_call_send(call); /* which may be over afterwards */
    cr_cl_conn_want(conn);
}

static void socket_turn(cr_cl_calls *calls, bool readable) {
    cured_conn *conn = cr_cl_conn_of(calls);
    connect_turn(conn);
    cr_cl_send_flush(conn);
    readable = readable || cr_cl_tls_pending(conn);
    if (readable && conn->state == CONN_OPEN && !cr_cl_receive_once(conn)) cr_cl_conn_keep(conn);
}

static void socket_flush(cr_cl_calls *calls) { cr_cl_send_flush(cr_cl_conn_of(calls)); }

static bool socket_pressing(const cr_cl_calls *calls) { return cr_cl_tls_pending(cr_cl_conn_of(calls)); }

const cr_way cr_cl_socket = {
    .away_ms = cr_cl_conn_away_ms,
    .watch = cr_cl_conn_watch,
    .begin = socket_begin,
    .more = cr_cl_call_more,
    .turn = socket_turn,
    .flush = socket_flush,
    .pressing = socket_pressing,
    .inherited = cr_cl_conn_inherited,
};

/* ---- turns ---- */

/* readable: worth a recv. Reading goes on while buffers come back full of answers. */
static void turn(cured_conn *conn, bool readable) {
    cr_cl_calls *calls = &conn->calls;
    cr_cl_fork_check(calls);
    calls->busy = true;
    calls->way->turn(calls, readable);
    check_connect_time(conn);
    if (calls->wake_ns != 0) cr_cl_calls_due(calls);
    if (calls->registered && calls->welcomed) cr_cl_calls_held(calls);
    cr_cl_calls_run_callbacks(calls);
    if (calls->way->flush != NULL) calls->way->flush(calls);
    calls->busy = false;
}

/* Whether the next turn has work, whatever comes. */
static bool pressing(const cured_conn *conn) {
    return !cr_list_empty(&conn->calls.finished) || conn->calls.way->pressing(&conn->calls);
}

cured_status cured_process(cured_conn *conn, cured_error *error) {
    if (conn->calls.busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_process was called from inside a callback");
    turn(conn, true);
    return cured_conn_status(conn, error);
}

int cured_fd(const cured_conn *conn) { return conn->calls.fd; }

short cured_events(const cured_conn *conn) {
    if (conn->state == CONN_CONNECTING) return POLLOUT;
    if (conn->state != CONN_OPEN) return 0;
    if (cr_cl_tls_unsent(conn)) return POLLIN | POLLOUT;
    if (cr_cl_tls_shakes(conn)) return POLLIN;
    return has_output(conn) ? POLLIN | POLLOUT : POLLIN;
}

static int64_t wait_ns(const cured_conn *conn) {
    if (pressing(conn)) return 0;
    uint64_t at = conn->calls.wake_ns;
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
    struct pollfd p = {.fd = conn->calls.fd, .events = cured_events(conn)};
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
    const uint64_t now = cr_now_ns(), asleep = call != NULL ? cr_cl_look_asleep_until(conn, call, now) : 0;
    if (asleep != 0) return sleep_until(conn, until_ns != 0 && until_ns < asleep ? until_ns : asleep);
    const bool got = !cr_cl_look(conn, call, now) && sleep_until(conn, until_ns);
    cr_cl_look_waited(conn, cr_now_ns());
    return got;
}

/* call: which is waited for; NULL: none. */
static void wait_turn(cured_conn *conn, cured_call *call, uint64_t until_ns) {
    turn(conn, wait_once(conn, call, until_ns));
}

/* Blocks until reached(call), until the call is done, or until a time (0: none). */
static void process_until(cured_call *call, bool (*reached)(const cured_call *call), uint64_t until_ns) {
    cured_conn *conn = cr_cl_conn_of(cr_cl_call_calls(call));
    if (cured_call_done(call) || reached(call)) return;
    turn(conn, false); /* sends what was queued; what comes back is waited for */
    while (!cured_call_done(call) && !reached(call) && (until_ns == 0 || cr_now_ns() < until_ns))
        wait_turn(conn, call, until_ns);
    if (cured_call_done(call)) cr_cl_look_done(conn, call);
}

static bool never(const cured_call *call) {
    (void)call;
    return false;
}

static bool drained(const cured_call *call) { return cured_stream_pending(call) == 0; }

/* Not from inside a callback. */
static cured_status check_waits(const cured_call *call, const char *function, cured_error *error) {
    if (cured_call_done(call) || !cr_cl_call_calls(call)->busy) return CURED_OK;
    return cr_cl_fail(error, CR_FAILED_PRECONDITION, "%s was called from inside a callback", function);
}

cured_status cured_wait(cured_call *call, cured_error *error) {
    const cured_status status = check_waits(call, "cured_wait", error);
    if (status != CURED_OK) return status;
    process_until(call, never, 0);
    return cured_call_status(call, error);
}

cured_status cured_wait_for(cured_call *call, uint32_t most_ms, cured_error *error) {
    const cured_status status = check_waits(call, "cured_wait_for", error);
    if (status != CURED_OK) return status;
    process_until(call, never, cr_now_ns() + most_ms * UINT64_C(1000000));
    return cured_call_status(call, error);
}

cured_status cured_stream_drain(cured_call *call, cured_error *error) {
    const cured_status status = check_waits(call, "cured_stream_drain", error);
    if (status != CURED_OK) return status;
    process_until(call, drained, 0);
    return cured_call_done(call) ? cured_call_status(call, error) : cr_cl_fail(error, CR_OK, "%s", "");
}

cured_status cured_region_wait(cured_region *region, cured_error *error) {
    cr_error e;
    cured_call *opening = cr_cl_region_awaited(region, &e);
    return opening != NULL ? cured_wait(opening, error) : cr_cl_give(error, &e, 0);
}

cured_status cured_connected(cured_conn *conn, cured_error *error) {
    if (conn->calls.busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_connected was called from inside a callback");
    while (conn->state == CONN_CONNECTING || (conn->state == CONN_WAITING && conn->attempt_ns != 0))
        wait_turn(conn, NULL, 0);
    return cured_conn_status(conn, error);
}
