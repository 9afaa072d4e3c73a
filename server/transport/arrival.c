/* arrival: the first read. Thread: the loop's. Owner: see arrival.h. */
#include "server/transport/arrival.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "server/transport/known.h"

enum {
    FIRST_BYTES = 4096, /* read before the language is known */
    REFUSED_MS = 1000,  /* for a refused client to say which language it speaks */
    TLS_FIRST = 0x16,   /* the first byte of TLS: a handshake's record */
    MOST_HANDSHAKES = 512,
    SHAKE_NS =
        500 * 1000, /* for steps of them in one turn of the loop, and for one at least: it signs by the private key */
    ENDED_MOST = 2, /* idle connections, so that another user has a place: the rule leaves it half of what comes free */
    DAYS_LEFT = 14, /* of a certificate: the log warns */
    DAY_MS = 24 * 3600 * 1000,
};

typedef struct cr_arrival {
    uv_poll_t poll;
    cr_arrivals *arrivals;
    cr_list link;
    cr_list shaking; /* in arrivals->shaking: a TLS handshake is under way */
    cr_timer timer;
    cr_arrived arrived;
    cr_place place;
    cr_error refused;
    bool far;      /* see cr_arrival_from */
    cr_door *only; /* the same one's door */
    size_t kept;   /* of first, from earlier reads */
    uint8_t first[8];
} cr_arrival;

void cr_arrivals_init(cr_arrivals *arrivals, cr_loop *loop) {
    arrivals->loop = loop;
    cr_list_init(&arrivals->waiting);
    cr_list_init(&arrivals->shaking);
}

static void on_handle_closed(uv_handle_t *handle) { free(handle->data); }

/* The arrival is over; its socket is the caller's. */
static void forget(cr_arrival *a) {
    cr_list_remove(&a->link);
    cr_timer_stop(&a->arrivals->loop->calls->timers, &a->timer);
    uv_close((uv_handle_t *)&a->poll, on_handle_closed);
}

/* It counts no more, and its socket is closed. */
static void leave(cr_calls *calls, cr_arrived *arrived) {
    cr_arrived_leave(calls, &arrived->peer, arrived->refused);
    cr_metric_sub(connections, 1);
    cr_arrived_close(calls, &arrived->peer, &arrived->socket, arrived->is_unix);
}

static bool shakes(const cr_arrival *a) { return !cr_list_empty(&a->shaking); }

/* The handshake is over, if one was under way. */
static void shaken(cr_arrival *a) {
    if (shakes(a)) {
        cr_metric_sub(tls_handshakes, 1);
        a->arrived.peer.user->shaking--;
    }
    cr_list_remove(&a->shaking);
}

static void drop(cr_arrival *a) {
    cr_arrived arrived = a->arrived;
    cr_calls *calls = a->arrivals->loop->calls;
    shaken(a);
    forget(a);
    leave(calls, &arrived);
}

/* The door for a connection that begins so; NULL: fewer bytes than tell came. */
static cr_door *find_door(const cr_loop *loop, const uint8_t *bytes, size_t count) {
    for (uint32_t i = 0; i < loop->door_count; i++) {
        const char *first = loop->doors[i]->first;
        if (!first) continue; /* it has addresses of its own */
        size_t tells = strlen(first), n = count < tells ? count : tells;
        if (memcmp(bytes, first, n) != 0) continue;
        return count < tells ? NULL : loop->doors[i];
    }
    return loop->doors[0];
}

static void hand_over(cr_arrival *a, cr_door *door, const uint8_t *bytes, size_t count, struct msghdr *control) {
    static cr_log_limit seldom;
    cr_arrived arrived = a->arrived;
    cr_calls *calls = a->arrivals->loop->calls;
    cr_error error, refused = a->refused;
    arrived.bytes = bytes;
    arrived.count = count;
    arrived.control = arrived.refused ? NULL : control;
    if (arrived.refused && control) cr_arrived_drop(calls, &arrived.peer, control);
    if (arrived.refused) arrived.refused = &refused;
    cr_admit_place(&arrived.peer, NULL); /* the door has one of its own */
    forget(a);
    if (door->open(door, &arrived, &error) == CR_OK) return;
    cr_warn_seldom(&seldom, "%s", error.text);
    if (arrived.control) cr_arrived_drop(calls, &arrived.peer, arrived.control);
}

static cr_status know(cr_arrival *a, cr_error *error) {
    const cr_socket *socket = &a->arrived.socket;
    const cr_tls *tls = socket->tls;
    const cr_secrets *secrets = &a->arrivals->secrets;
    cr_calls *calls = a->arrivals->loop->calls;
    cr_peer *peer = &a->arrived.peer;
    if (peer->has_uid) return a->only ? CR_OK : cr_known_process(secrets, peer, socket->fd, error);
    if (tls && cr_tls_knows_client(tls)) return cr_known_certificate(calls, secrets, tls, peer, error);
    if (!a->far) return CR_OK;
    a->arrived.wants_token = tls && calls->admission.principals.given;
    if (a->arrived.wants_token) return CR_OK;
    return cr_fail(
        error, CR_UNAUTHENTICATED,
        tls ? "TLS: this address wants a client certificate (tls_client_ca)" : "this address speaks TLS only");
}

/* Why the connection is refused now that its language is known; NULL: nothing is wrong. */
static const cr_error *distrust(cr_arrival *a) {
    cr_admission *admission = &a->arrivals->loop->calls->admission;
    if (a->arrived.refused || know(a, &a->refused) == CR_OK) return a->arrived.refused;
    cr_metric_add(connections_refused, 1);
    cr_stats_stranger(&a->arrivals->loop->calls->stats, &a->arrived.peer, &a->refused);
    cr_admit_connection_over(admission, &a->arrived.peer);
    a->arrived.brief = !cr_admit_refused(admission);
    if (a->arrived.brief) admission->refused++;
    return &a->refused;
}

/* n bytes in the language of a door, or the beginning of them, are there. False: the arrival is gone. */
static bool choose_door(cr_arrival *a, const uint8_t *bytes, size_t n, struct msghdr *control) {
    cr_loop *loop = a->arrivals->loop;
    cr_door *door = a->only ? a->only : find_door(loop, bytes, n);
    if (!door && control) { /* no client passes them so early */
        cr_arrived_drop(loop->calls, &a->arrived.peer, control);
        drop(a);
        return false;
    }
    if (!door) {
        memcpy(a->first, bytes, n);
        a->kept = n;
        return true;
    }
    a->arrived.refused = distrust(a);
    hand_over(a, door, bytes, n, control);
    return false;
}

/* That this thread had a core: on a busy machine a step that waits for one would take the time of many. */
static uint64_t worked_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A step of the handshake. False: the arrival is gone. */
static bool shake(cr_arrival *a) {
    cr_error error;
    cr_arrivals *arrivals = a->arrivals;
    const uint64_t turn = arrivals->loop->came_ns;
    if (turn != arrivals->shook_turn) arrivals->shook_ns = 0;
    arrivals->shook_turn = turn;
    if (arrivals->shook_ns >= SHAKE_NS) return true; /* in another turn */
    const uint64_t before = worked_ns();
    const cr_status status = cr_tls_shake(a->arrived.socket.tls, &error);
    arrivals->shook_ns += worked_ns() - before;
    if (status == CR_UNAVAILABLE) return true;
    shaken(a);
    if (status == CR_OK) {
        cr_metric_add(tls_handshakes_total, 1);
        return true;
    }
    cr_debug("connection ended: %s", error.text);
    if (!cr_tls_trusts_client(a->arrived.socket.tls))
        cr_stats_stranger(&arrivals->loop->calls->stats, &a->arrived.peer, &error);
    cr_metric_add(tls_handshakes_failed_total, 1);
    drop(a);
    return false;
}

/* Of the handshakes under way the oldest of the user who has most: others' go on, however fast that user begins new ones. */
static void end_a_handshake(cr_arrivals *arrivals) {
    static cr_log_limit seldom;
    cr_arrival *ended = NULL;
    for (cr_list *node = arrivals->shaking.next; node != &arrivals->shaking; node = node->next) {
        cr_arrival *a = cr_container(node, cr_arrival, shaking);
        if (!ended || a->arrived.peer.user->shaking > ended->arrived.peer.user->shaking) ended = a;
    }
    if (!ended) return;
    char name[CR_NAME_MAX_BYTES + 1];
    cr_user_name(ended->arrived.peer.user, name, sizeof name);
    cr_warn_seldom(&seldom,
                   "TLS: %d handshakes are under way, which is the limit, %llu of them from %s: its oldest ended",
                   MOST_HANDSHAKES, (unsigned long long)ended->arrived.peer.user->shaking, name);
    cr_metric_add(tls_handshakes_ended_total, 1);
    drop(ended);
}

/* The client speaks TLS. False: the arrival is gone. */
static bool begin_tls(cr_arrival *a, const uint8_t *bytes, size_t n) {
    cr_arrivals *arrivals = a->arrivals;
    if (cr_metric_get(tls_handshakes) >= MOST_HANDSHAKES) end_a_handshake(arrivals);
    a->arrived.socket.tls = cr_tls_new(arrivals->secrets.identity, a->arrived.socket.fd, bytes, n);
    if (!a->arrived.socket.tls) {
        drop(a);
        return false;
    }
    a->arrived.peer.path = CR_PATH_tls;
    cr_list_append(&arrivals->shaking, &a->shaking);
    a->arrived.peer.user->shaking++;
    a->kept = 0;
    cr_metric_add(tls_handshakes, 1);
    return shake(a);
}

/* Reads the first bytes within TLS. False: the arrival is gone. */
static bool look_within(cr_arrival *a) {
    uint8_t bytes[FIRST_BYTES];
    if (shakes(a) && !shake(a)) return false;
    if (shakes(a)) return true;
    memcpy(bytes, a->first, a->kept);
    const struct iovec part = {bytes + a->kept, sizeof bytes - a->kept};
    ssize_t n = cr_socket_read(&a->arrived.socket, &part, 1);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (n <= 0) {
        drop(a);
        return false;
    }
    return choose_door(a, bytes, a->kept + (size_t)n, NULL);
}

/* Reads what the client says first. False: the arrival is gone. */
static bool look(cr_arrival *a) {
    uint8_t bytes[FIRST_BYTES];
    cr_control control;
    if (a->arrived.socket.tls) return look_within(a);
    memcpy(bytes, a->first, a->kept);
    struct iovec iov = {bytes + a->kept, sizeof bytes - a->kept};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (a->arrived.is_unix) cr_arrived_room(a->arrivals->loop->calls, &a->arrived.peer, &message, &control);
    ssize_t n = recvmsg(a->arrived.socket.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (n <= 0) {
        drop(a);
        return false;
    }
    const size_t count = a->kept + (size_t)n;
    const bool passed = message.msg_controllen || message.msg_flags & MSG_CTRUNC;
    if (a->arrivals->secrets.identity && !a->arrived.is_unix && bytes[0] == TLS_FIRST)
        return begin_tls(a, bytes, count);
    return choose_door(a, bytes, count, passed ? &message : NULL);
}

static void on_poll(uv_poll_t *handle, int status, int events);

/* Asks poll for what is waited for. Of bytes that were received and not yet taken poll tells nothing; that the socket is writable
 * it tells in each turn. */
static void watch(cr_arrival *a) {
    const bool asks = cr_socket_unsent(&a->arrived.socket) || cr_socket_has_more(&a->arrived.socket);
    uv_poll_start(&a->poll, UV_READABLE | (asks ? UV_WRITABLE : 0), on_poll);
}

static void on_poll(uv_poll_t *handle, int status, int events) {
    cr_arrival *a = handle->data;
    (void)events;
    cr_loop_came(a->arrivals->loop);
    if (status < 0)
        drop(a);
    else if (look(a))
        watch(a);
}

/* The first door says what went wrong, by its own limit on time. */
static void on_timer(cr_timer *timer) {
    cr_arrival *a = cr_container(timer, cr_arrival, timer);
    if (shakes(a)) {
        cr_metric_add(tls_handshakes_failed_total, 1);
        drop(a);
        return;
    }
    a->arrived.refused = distrust(a); /* it may say something yet */
    hand_over(a, a->only ? a->only : a->arrivals->loop->doors[0], a->first, a->kept, NULL);
}

/* It has said nothing yet, or not enough to tell its language, so nobody can tell it why. */
static bool end_idle(cr_place *place, bool quiet) {
    cr_arrival *a = cr_container(place, cr_arrival, place);
    if (quiet && (shakes(a) || a->kept)) return false;
    if (shakes(a)) cr_metric_add(tls_handshakes_ended_total, 1);
    cr_metric_add(connections_idle_ended_total, 1);
    drop(a);
    return true;
}

/* An idle connection of another user ends, and the socket moves to a number that is free by then. */
static bool make_room(cr_arrival *a) {
    static cr_log_limit seldom;
    cr_calls *calls = a->arrivals->loop->calls;
    cr_admission *admission = &calls->admission;
    const cr_user *user = a->arrived.peer.user;
    if (a->only || cr_admit_capped(admission, user, CR_USE_connections, 1) || !cr_admit_might_end_idle(admission, user))
        return false;
    cr_calls_still(calls, true); /* once for all that are looked at */
    const bool ended = cr_admit_end_idle(admission, user);
    cr_calls_still(calls, false);
    if (!ended) return false;
    cr_warn_seldom(&seldom,
                   "an idle connection ended, because another user needed its place: raise max_connections, or "
                   "the limit on open files");
    const int low = fcntl(a->arrived.socket.fd, F_DUPFD_CLOEXEC, 0);
    const bool lower = low >= 0 && low < a->arrived.socket.fd;
    if (low >= 0) close(lower ? a->arrived.socket.fd : low);
    if (lower) a->arrived.socket.fd = low;
    return true;
}

/* Whether the connection may come in. */
static void admit(cr_arrival *a) {
    static cr_log_limit seldom;
    cr_admission *admission = &a->arrivals->loop->calls->admission;
    cr_status status = cr_admit_connection(admission, &a->arrived.peer, a->arrived.socket.fd, &a->refused);
    for (int i = 0; i < ENDED_MOST && status != CR_OK && make_room(a); i++)
        status = cr_admit_connection(admission, &a->arrived.peer, a->arrived.socket.fd, &a->refused);
    if (status == CR_OK) {
        cr_admit_place(&a->arrived.peer, &a->place);
        return;
    }
    cr_warn_seldom(&seldom, "connection refused: %s", a->refused.text);
    cr_metric_add(connections_refused, 1);
    cr_stats_rejected(&a->arrivals->loop->calls->stats, CR_REASON_connections);
    a->arrived.refused = &a->refused;
    a->arrived.brief = !cr_admit_refused(admission);
    if (a->arrived.brief) admission->refused++; /* its end takes it off again */
}

static void fill(cr_arrival *a, cr_arrivals *arrivals, int fd, const cr_arrival_from *from) {
    a->poll.data = a;
    a->arrivals = arrivals;
    a->arrived.socket.fd = fd;
    a->far = from->far;
    a->only = from->door;
    a->place.end = end_idle;
    a->arrived.is_unix = from->is_unix;
    a->arrived.since_ms = cr_now_ms();
    a->timer.fire = on_timer;
    cr_list_init(&a->shaking);
    cr_list_append(&arrivals->waiting, &a->link);
    a->arrived.peer.number = ++arrivals->count;
}

cr_status cr_arrival_open(cr_arrivals *arrivals, int fd, const cr_arrival_from *from, cr_error *error) {
    cr_calls *calls = arrivals->loop->calls;
    cr_arrival *a = calloc(1, sizeof *a);
    int failed = UV_ENOMEM;
    if (a) cr_peer_see(&a->arrived.peer, fd);
    if (a) cr_known_at_first(calls, &arrivals->secrets, &a->arrived.peer, fd);
    if (!a || cr_admit_join(&calls->admission, &a->arrived.peer, error) != CR_OK) {
        free(a);
        close(fd);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a new connection");
    }
    fill(a, arrivals, fd, from);
    calls->stats.connections[CR_SPOKEN_arriving]++;
    cr_metric_add(connections, 1);
    cr_metric_add(connections_total, 1);
    admit(a);
    failed = uv_poll_init_socket(arrivals->loop->uv, &a->poll, a->arrived.socket.fd);
    if (failed) {
        cr_list_remove(&a->link);
        leave(calls, &a->arrived);
        free(a);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot watch a new connection: %s", uv_strerror(failed));
    }
    if (!look(a)) return CR_OK;
    const uint64_t wait_ms = a->arrived.refused ? REFUSED_MS : calls->config->hello_timeout_ms;
    const bool known = from->door && (from->is_unix || !arrivals->secrets.identity); /* no byte says more */
    if (known || a->arrived.brief || !cr_timer_set(&calls->timers, &a->timer, a->arrived.since_ms + wait_ms))
        on_timer(&a->timer);
    else
        watch(a);
    return CR_OK;
}

/* Warns, each day anew, when the certificate is not good for long any more. */
static void on_daily(cr_timer *daily) {
    const cr_arrivals *arrivals = cr_container(daily, cr_arrivals, daily);
    const cr_identity *identity = arrivals->secrets.identity;
    if (!identity) return;
    cr_timer_set(&arrivals->loop->calls->timers, daily, cr_now_ms() + DAY_MS);
    const int64_t left = cr_identity_expires_s(identity) - (int64_t)time(NULL);
    if (left < DAYS_LEFT * 86400)
        cr_warn("TLS: the certificate %s %lld days", left < 0 ? "is out of date since" : "is good for only",
                (long long)((left < 0 ? -left : left) / 86400));
}

void cr_arrivals_secure(cr_arrivals *arrivals, cr_secrets *secrets) {
    cr_secrets_free(&arrivals->secrets);
    arrivals->secrets = *secrets;
    *secrets = (cr_secrets){0};
    if (arrivals->secrets.principals)
        cr_admit_principals(&arrivals->loop->calls->admission, arrivals->secrets.principals);
    const cr_identity *identity = arrivals->secrets.identity;
    const int64_t expires = identity ? cr_identity_expires_s(identity) : 0, left = expires - (int64_t)time(NULL);
    atomic_store_explicit(&cr_metrics[CR_M_certificate_expires_s], (uint64_t)expires, memory_order_relaxed);
    arrivals->daily.fire = on_daily;
    on_daily(&arrivals->daily);
    if (left >= DAYS_LEFT * 86400) cr_info("TLS: the certificate is good for %lld days", (long long)(left / 86400));
}

void cr_arrivals_close(cr_arrivals *arrivals) {
    if (!arrivals->loop) return;
    cr_timer_stop(&arrivals->loop->calls->timers, &arrivals->daily);
    while (!cr_list_empty(&arrivals->waiting)) {
        cr_arrival *a = cr_container(arrivals->waiting.next, cr_arrival, link);
        if (look(a)) on_timer(&a->timer); /* a door says why it ends */
    }
    cr_secrets_free(&arrivals->secrets);
}
