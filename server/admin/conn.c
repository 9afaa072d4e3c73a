/* conn: birth, turns and end. Thread: the loop's. Owner: the door's list. */
#include "server/admin/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"

static void on_poll(uv_poll_t *handle, int status, int events);

static void on_handle_closed(uv_handle_t *handle) { free(handle->data); }

static bool pending(const cr_admin_conn *conn) { return cr_bytes_left(&conn->out) || cr_socket_unsent(&conn->socket); }

static void wait_for_turn(cr_admin_conn *conn) {
    if (cr_list_empty(&conn->waiting)) cr_list_append(&conn->admin->waiting, &conn->waiting);
}

static void set_timer(cr_admin_conn *conn, uint64_t when_ms) {
    cr_timer_set(&conn->admin->calls->timers, &conn->timer, when_ms);
}

static void update_events(cr_admin_conn *conn) {
    const int events = conn->state == CR_ADMIN_WRITING ? UV_WRITABLE : UV_READABLE;
    if (events == conn->events) return;
    conn->events = (uint8_t)events;
    uv_poll_start(&conn->poll, events, on_poll);
}

/* ---- birth and end ---- */

static void on_timer(cr_timer *timer) { cr_admin_conn_close(cr_container(timer, cr_admin_conn, timer)); }

static bool is_near(int fd) {
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof own;
    if (getsockname(fd, (struct sockaddr *)&own, &length) != 0) return true;
    const struct sockaddr_in *four = (const struct sockaddr_in *)&own;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&own;
    if (own.ss_family == AF_INET) return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) return six->sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
    return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

static void refuse_descriptors(cr_admin_conn *conn) {
    cr_fail(&conn->why, CR_INVALID_ARGUMENT, "descriptors are not taken here");
}

static void fill(cr_admin_conn *conn, const cr_arrived *arrived) {
    conn->poll.data = conn;
    conn->socket = arrived->socket;
    conn->is_unix = arrived->is_unix;
    conn->peer = arrived->peer;
    conn->refused = arrived->refused != NULL;
    conn->wants_token = arrived->wants_token;
    conn->trusted = cr_stats_asker_of(&arrived->peer).all;
    conn->near = arrived->is_unix || is_near(arrived->socket.fd);
    conn->timer.fire = on_timer;
    /* When the daemon is full, operators look in all the same. */
    if (arrived->refused && arrived->refused->code != CR_RESOURCE_EXHAUSTED) conn->why = *arrived->refused;
    if (arrived->control) {
        cr_arrived_drop(conn->admin->calls, &conn->peer, arrived->control);
        refuse_descriptors(conn);
    }
    cr_http_init(&conn->http);
    cr_list_init(&conn->waiting);
}

cr_status cr_admin_conn_open(cr_admin *admin, const cr_arrived *arrived, cr_error *error) {
    cr_admin_conn *conn = calloc(1, sizeof *conn);
    bool opened = false;
    if (conn) {
        conn->admin = admin;
        fill(conn, arrived);
        opened = cr_bytes_add(&conn->in, arrived->bytes, arrived->count) &&
                 uv_poll_init_socket(admin->loop->uv, &conn->poll, conn->socket.fd) == 0;
    }
    if (!opened) {
        cr_peer peer = arrived->peer;
        cr_socket unwanted = arrived->socket;
        if (conn) cr_bytes_free(&conn->in);
        free(conn);
        cr_metric_sub(connections, 1);
        cr_arrived_leave(admin->calls, &peer, arrived->refused);
        cr_socket_close(&unwanted);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a new connection");
    }
    cr_arrived_speaks(admin->calls, &conn->peer, CR_SPOKEN_admin);
    cr_list_append(&admin->connections, &conn->link);
    admin->count++;
    set_timer(conn, arrived->since_ms + admin->calls->config->hello_timeout_ms);
    conn->readable = true;
    wait_for_turn(conn);
    update_events(conn);
    return CR_OK;
}

void cr_admin_conn_close(cr_admin_conn *conn) {
    cr_calls *calls = conn->admin->calls;
    conn->admin->count--;
    cr_timer_stop(&calls->timers, &conn->timer);
    cr_list_remove(&conn->link);
    cr_list_remove(&conn->waiting);
    cr_bytes_free(&conn->in);
    cr_bytes_free(&conn->out);
    cr_arrived_leave(calls, &conn->peer, conn->refused);
    cr_metric_sub(connections, 1);
    uv_close((uv_handle_t *)&conn->poll, on_handle_closed); /* frees conn, but not yet */
    cr_arrived_close(calls, &conn->peer, &conn->socket, conn->is_unix);
}

/* ---- answers ---- */

static const char *phrase(unsigned status) {
    static const struct {
        uint16_t status;
        const char *phrase;
    } all[] = {{200, "OK"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {413, "Content Too Large"},
               {414, "URI Too Long"},
               {421, "Misdirected Request"},
               {431, "Request Header Fields Too Large"},
               {503, "Service Unavailable"},
               {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].status == status) return all[i].phrase;
    return "Internal Server Error";
}

/* What the client is refused for; NULL: nothing is wrong. room holds the sentence. */
static const cr_page *refusal(cr_admin_conn *conn, cr_page *page, char *room, size_t room_bytes) {
    const cr_http_request *r = &conn->http.request;
    cr_error error;
    const cr_principal *who = NULL;
    cr_peer peer = conn->peer;
    uint16_t status = 0;
    const char *why = "";
    if (r->status) {
        status = r->status;
        why = r->why;
    } else if (conn->why.code != CR_OK) {
        status = conn->why.code == CR_UNAUTHENTICATED || conn->why.code == CR_PERMISSION_DENIED ? 403 : 400;
        why = conn->why.text;
    } else if (conn->near && r->has_host && !cr_http_host_is_number(r->host)) {
        status = 421;
        why = "Host: this address goes by its number or as localhost only, so that no web page can ask here";
    } else if (cr_arrived_check_token(conn->admin->calls, conn->wants_token, r->token, strlen(r->token), &who,
                                      &error)) {
        status = 401;
        why = error.text;
    } else {
        if (who) cr_peer_goes_by(&peer, who);
        if (cr_peer_check(&peer, CR_METHOD_stats, &error) != CR_OK) {
            status = error.code == CR_UNAUTHENTICATED ? 401 : 403;
            why = error.text;
        }
    }
    if (!status) return NULL;
    *page = cr_pages_say(status, why, room, room_bytes);
    return page;
}

/* Answers the request that is whole. False: there is no memory. */
static bool answer(cr_admin_conn *conn) {
    char head[1280], room[512], date[40] = "";
    cr_admin *admin = conn->admin;
    const cr_http_request *r = &conn->http.request;
    struct tm now;
    const time_t seconds = time(NULL);
    cr_page page;
    const cr_page *refused = refusal(conn, &page, room, sizeof room);
    if (!refused) page = cr_pages_get(&admin->pages, admin->calls, r->path, conn->trusted);
    conn->ends = refused || !r->keep || admin->calls->draining;
    if (gmtime_r(&seconds, &now)) strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &now);
    const int n =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %u %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                 "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                 "Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: %s\r\n"
                 "%s%sConnection: %s\r\n\r\n",
                 page.status, phrase(page.status), date, page.type, page.bytes, page.policy,
                 page.status == 405 ? "Allow: GET, HEAD\r\n" : "",
                 page.status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", conn->ends ? "close" : "keep-alive");
    cr_metric_add(admin_requests_total, 1);
    if (refused) cr_metric_add(admin_requests_refused_total, 1);
    set_timer(conn, cr_now_ms() + admin->calls->config->stall_timeout_ms);
    conn->state = CR_ADMIN_WRITING;
    return cr_bytes_add(&conn->out, head, (size_t)n) && (r->head || cr_bytes_add(&conn->out, page.body, page.bytes));
}

/* ---- turns ---- */

/* Writes what there is. False: the connection is at its end. */
static bool write_out(cr_admin_conn *conn) {
    while (pending(conn)) {
        const ssize_t n = cr_socket_write(&conn->socket, conn->out.at + conn->out.off, cr_bytes_left(&conn->out));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        conn->out.off += (uint32_t)n;
    }
    cr_bytes_free(&conn->out); /* one that idles keeps no buffer */
    if (conn->ends) {
        cr_bytes_free(&conn->in);
        cr_socket_end(&conn->socket);
        conn->state = CR_ADMIN_LINGERING;
        set_timer(conn, cr_now_ms() + CR_ADMIN_LINGER_MS);
        return true;
    }
    const uint64_t wait_ms =
        cr_bytes_left(&conn->in) ? conn->admin->calls->config->hello_timeout_ms : (uint64_t)CR_ADMIN_IDLE_MS;
    conn->state = CR_ADMIN_READING;
    cr_http_next(&conn->http);
    set_timer(conn, cr_now_ms() + wait_ms);
    return true;
}

/* One read. False: the connection is at its end. */
static bool read_once(cr_admin_conn *conn) {
    uint8_t bytes[CR_ADMIN_READ_BYTES];
    bool passed;
    conn->readable = false;
    const ssize_t n =
        cr_arrived_read(conn->admin->calls, &conn->peer, &conn->socket, conn->is_unix, bytes, sizeof bytes, &passed);
    if (passed) refuse_descriptors(conn);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (n == 0) return false;
    return conn->state == CR_ADMIN_LINGERING || cr_bytes_add(&conn->in, bytes, (size_t)n);
}

/* Takes what was read until a request is whole, and answers that. False: there is no memory. */
static bool take(cr_admin_conn *conn) {
    cr_bytes *in = &conn->in;
    const bool begun = cr_http_begun(&conn->http);
    size_t used;
    if (!cr_bytes_left(in)) return true;
    const bool whole = cr_http_read(&conn->http, in->at + in->off, cr_bytes_left(in), &used);
    in->off += (uint32_t)used;
    if (!begun) set_timer(conn, cr_now_ms() + conn->admin->calls->config->hello_timeout_ms);
    if (!cr_bytes_left(in)) cr_bytes_free(in);
    return !whole || answer(conn);
}

void cr_admin_conn_go(cr_admin_conn *conn) {
    bool alive = !conn->gone;
    if (alive && conn->state != CR_ADMIN_WRITING && !cr_bytes_left(&conn->in) &&
        (conn->readable || cr_socket_has_more(&conn->socket)))
        alive = read_once(conn);
    if (alive && conn->state == CR_ADMIN_READING) alive = take(conn);
    if (alive && conn->state == CR_ADMIN_WRITING) alive = write_out(conn);
    if (!alive) {
        cr_admin_conn_close(conn);
        return;
    }
    const bool more = conn->state != CR_ADMIN_WRITING && (conn->readable || cr_socket_has_more(&conn->socket));
    if (more || (conn->state == CR_ADMIN_READING && cr_bytes_left(&conn->in))) wait_for_turn(conn);
    update_events(conn);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    cr_admin_conn *conn = handle->data;
    cr_loop_came(conn->admin->loop);
    if (status < 0) conn->gone = true;
    if (events & UV_READABLE) conn->readable = true;
    wait_for_turn(conn);
}
