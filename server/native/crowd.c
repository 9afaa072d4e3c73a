/* crowd: see crowd.h. Thread: the loop's. Owner: the native door. */
#include "server/native/crowd.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    CROWD_LEAST = 64, /* connections in line: about half of what one turn serves */
    AT_ONCE = 256,    /* asked for in one call */
    ASK_MOST = 64,    /* calls in a row */
};

/* As conn.c's on_poll. */
static void on_crowd(uv_poll_t *handle, int status, int events) {
    cr_native *native = handle->data;
    struct epoll_event came[AT_ONCE];
    int n = AT_ONCE;
    (void)status, (void)events;
    cr_loop_came(native->loop);
    for (int asked = 0; n == AT_ONCE && asked < ASK_MOST; asked++) {
        n = epoll_wait(native->crowd.fd, came, AT_ONCE, 0);
        for (int i = 0; i < n; i++) {
            cr_conn *conn = came[i].data.ptr;
            if (came[i].events & EPOLLERR) conn->gone = true;
            if (came[i].events & (EPOLLHUP | EPOLLRDHUP)) conn->ended = true;
            conn->readable = true;
            cr_rounds_wait(&native->rounds, &conn->seat);
        }
    }
}

cr_status cr_crowd_open(cr_native *native, cr_error *error) {
    cr_crowd *crowd = &native->crowd;
    crowd->fd = epoll_create1(EPOLL_CLOEXEC);
    if (crowd->fd < 0) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "epoll_create1: %s", strerror(errno));
    const int failed = uv_poll_init(native->loop->uv, &crowd->poll, crowd->fd);
    if (failed) {
        close(crowd->fd);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot watch an epoll: %s", uv_strerror(failed));
    }
    crowd->poll.data = native;
    crowd->open = true;
    uv_poll_start(&crowd->poll, UV_READABLE, on_crowd);
    return CR_OK;
}

/* Under TLS what poll says and what can be read are two things. Bytes of an upload come as there is room for them. */
bool cr_crowd_join(cr_conn *conn) {
    cr_native *native = conn->native;
    if (conn->crowded || native->rounds.waiting <= CROWD_LEAST || conn->socket.tls || conn->socket.waits_for ||
        conn->payload_left || conn->state >= CR_CONN_LINGERING || conn->events != UV_READABLE || !native->crowd.open)
        return false;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    if (epoll_ctl(native->crowd.fd, EPOLL_CTL_ADD, conn->socket.fd, &event) != 0) return false;
    uv_poll_stop(&conn->poll);
    conn->events = 0;
    conn->crowded = true;
    return true;
}

void cr_crowd_leave(cr_conn *conn) {
    struct epoll_event none = {0};
    if (!conn->crowded) return;
    conn->crowded = conn->ended = false; /* of which poll tells again */
    epoll_ctl(conn->native->crowd.fd, EPOLL_CTL_DEL, conn->socket.fd, &none);
}

void cr_crowd_close(cr_native *native) {
    if (!native->crowd.open) return;
    native->crowd.open = false;
    uv_close((uv_handle_t *)&native->crowd.poll, NULL);
    close(native->crowd.fd);
}
