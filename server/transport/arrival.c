/* arrival: the first read. Thread: the loop's. Owner: see arrival.h. */
#include "server/transport/arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/metrics.h"

enum {
    FIRST_BYTES = 4096, /* read before the language is known */
    REFUSED_MS = 1000,  /* for a refused client to say which language it speaks */
};

typedef struct cr_arrival {
    uv_poll_t poll;
    cr_arrivals *arrivals;
    cr_list link;
    cr_timer timer;
    cr_arrived arrived;
    cr_error refused;
    size_t kept; /* of first, from earlier reads */
    uint8_t first[8];
} cr_arrival;

void cr_arrivals_init(cr_arrivals *arrivals, cr_loop *loop) {
    arrivals->loop = loop;
    cr_list_init(&arrivals->waiting);
}

static void on_handle_closed(uv_handle_t *handle) { free(handle->data); }

/* The arrival is over; its socket is the caller's. */
static void forget(cr_arrival *a) {
    cr_list_remove(&a->link);
    cr_timer_stop(&a->arrivals->loop->calls->timers, &a->timer);
    uv_close((uv_handle_t *)&a->poll, on_handle_closed);
}

static void drop_descriptors(cr_calls *calls, struct msghdr *message) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + i * sizeof descriptor, sizeof descriptor);
            cr_files_close(calls->files, descriptor);
        }
    }
}

static void drop(cr_arrival *a) {
    cr_arrived arrived = a->arrived;
    cr_calls *calls = a->arrivals->loop->calls;
    forget(a);
    cr_arrived_leave(calls, &arrived.peer, arrived.refused);
    cr_metric_sub(connections, 1);
    close(arrived.fd);
}

/* The door for a connection that begins so; NULL: fewer bytes than tell came. */
static cr_door *find_door(const cr_loop *loop, const uint8_t *bytes, size_t count) {
    for (uint32_t i = 0; i < loop->door_count; i++) {
        const char *first = loop->doors[i]->first;
        size_t tells = strlen(first), n = count < tells ? count : tells;
        if (memcmp(bytes, first, n) != 0) continue;
        return count < tells ? NULL : loop->doors[i];
    }
    return loop->doors[0];
}

static void hand_over(cr_arrival *a, cr_door *door, const uint8_t *bytes, size_t count, struct msghdr *control) {
    static cr_log_limit seldom;
    cr_arrived arrived = a->arrived;
    cr_error error, refused = a->refused;
    arrived.bytes = bytes;
    arrived.count = count;
    arrived.control = control;
    if (arrived.refused) arrived.refused = &refused;
    forget(a);
    if (door->open(door, &arrived, &error) != CR_OK) cr_warn_seldom(&seldom, "%s", error.text);
}

/* Reads what the client says first. False: the arrival is gone. */
static bool look(cr_arrival *a) {
    uint8_t bytes[FIRST_BYTES];
    union {
        char bytes[CMSG_SPACE(CR_CONN_MAX_DESCRIPTORS * sizeof(int))];
        struct cmsghdr align;
    } control;
    memcpy(bytes, a->first, a->kept);
    struct iovec iov = {bytes + a->kept, sizeof bytes - a->kept};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (a->arrived.is_unix) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    ssize_t n = recvmsg(a->arrived.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (n <= 0) {
        drop(a);
        return false;
    }
    const size_t count = a->kept + (size_t)n;
    cr_loop *loop = a->arrivals->loop;
    cr_door *door = find_door(loop, bytes, count);
    const bool passed = message.msg_controllen || message.msg_flags & MSG_CTRUNC;
    if (!door && passed) { /* no client passes them so early */
        drop_descriptors(loop->calls, &message);
        drop(a);
        return false;
    }
    if (!door) {
        memcpy(a->first, bytes, count);
        a->kept = count;
        return true;
    }
    hand_over(a, door, bytes, count, passed ? &message : NULL);
    return false;
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    cr_arrival *a = handle->data;
    (void)events;
    a->arrivals->loop->came = true;
    if (status < 0)
        drop(a);
    else
        look(a);
}

/* The first door says what went wrong, by its own limit on time. */
static void on_timer(cr_timer *timer) {
    cr_arrival *a = cr_container(timer, cr_arrival, timer);
    hand_over(a, a->arrivals->loop->doors[0], a->first, a->kept, NULL);
}

/* Whether the connection may come in. */
static void admit(cr_arrival *a) {
    static cr_log_limit seldom;
    cr_admission *admission = &a->arrivals->loop->calls->admission;
    if (cr_admit_connection(admission, &a->arrived.peer, a->arrived.fd, &a->refused) == CR_OK) return;
    cr_warn_seldom(&seldom, "connection refused: %s", a->refused.text);
    cr_metric_add(connections_refused, 1);
    a->arrived.refused = &a->refused;
    a->arrived.brief = !cr_admit_refused(admission);
    if (a->arrived.brief) admission->refused++; /* its end takes it off again */
}

cr_status cr_arrival_open(cr_arrivals *arrivals, int fd, bool is_unix, cr_error *error) {
    cr_calls *calls = arrivals->loop->calls;
    cr_arrival *a = calloc(1, sizeof *a);
    int failed = UV_ENOMEM;
    if (a) cr_peer_see(&a->arrived.peer, fd);
    if (a && cr_admit_join(&calls->admission, &a->arrived.peer, error) == CR_OK)
        failed = uv_poll_init_socket(arrivals->loop->uv, &a->poll, fd);
    if (failed) {
        if (a) cr_admit_leave(&calls->admission, &a->arrived.peer);
        free(a);
        close(fd);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot watch a new connection: %s", uv_strerror(failed));
    }
    a->poll.data = a;
    a->arrivals = arrivals;
    a->arrived.fd = fd;
    a->arrived.is_unix = is_unix;
    a->arrived.since_ms = cr_now_ms();
    a->timer.fire = on_timer;
    cr_list_append(&arrivals->waiting, &a->link);
    cr_metric_add(connections, 1);
    cr_metric_add(connections_total, 1);
    admit(a);
    if (!look(a)) return CR_OK;
    const uint64_t wait_ms = a->arrived.refused ? REFUSED_MS : calls->config->hello_timeout_ms;
    if (a->arrived.brief || !cr_timer_set(&calls->timers, &a->timer, a->arrived.since_ms + wait_ms))
        on_timer(&a->timer);
    else
        uv_poll_start(&a->poll, UV_READABLE, on_poll);
    return CR_OK;
}

void cr_arrivals_close(cr_arrivals *arrivals) {
    if (!arrivals->loop) return;
    while (!cr_list_empty(&arrivals->waiting)) drop(cr_container(arrivals->waiting.next, cr_arrival, link));
}
