/* listener: bind, lock, accept. Thread: the loop's. Owner: main. */
#include "server/transport/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { ACCEPTS_PER_TURN = 64, BACKLOG = 1024, REST_MS = 100 };

struct cr_listener {
    uv_poll_t poll;
    cr_arrivals *arrivals;
    cr_loop *loop;
    cr_door *door;
    cr_address address;
    bool passed;         /* by the service manager, whose socket and file it stays */
    int fd, lock, spare; /* spare: given up for a moment when the process has no descriptor left */
    dev_t device;        /* of the socket's file, and its inode: a file that is not ours is not removed */
    ino_t inode;
    cr_timer rest; /* until connections are accepted again, after one could not even be refused */
    char name[CR_ADDRESS_HOST + 32];
};

static cr_status fail_errno(cr_error *error, const char *what, const char *where) {
    int e = errno;
    cr_status code = e == EACCES || e == EPERM ? CR_PERMISSION_DENIED
                     : e == EADDRINUSE         ? CR_ALREADY_EXISTS
                                               : CR_INTERNAL;
    return cr_fail(error, code, "listen: cannot %s %s: %s", what, where, strerror(e));
}

/* Holds PATH.lock, so that two daemons starting at once do not take each other's socket. */
static cr_status take_lock(cr_listener *l, cr_error *error) {
    char path[CR_ADDRESS_PATH + 8];
    snprintf(path, sizeof path, "%s.lock", l->address.path);
    l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (l->lock < 0 && (errno == ENOENT || errno == EACCES))
        return cr_fail(
            error, errno == EACCES ? CR_PERMISSION_DENIED : CR_NOT_FOUND,
            "listen: cannot make %.108s: %s: its folder must be there and the daemon's own (as root: install "
            "-d -o USER FOLDER), or give another path",
            l->address.path, strerror(errno));
    if (l->lock < 0) return fail_errno(error, "open the lock file", path);
    if (flock(l->lock, LOCK_EX | LOCK_NB) == 0) return CR_OK;
    if (errno == EWOULDBLOCK)
        return cr_fail(error, CR_ALREADY_EXISTS, "listen: another daemon is live on %s", l->address.path);
    return fail_errno(error, "lock", path);
}

static void unix_name(const cr_listener *l, struct sockaddr_un *name) {
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, l->address.path, sizeof name->sun_path);
}

/* With the lock held: a socket file here is stale, unless something that knows no lock file answers on it. */
static cr_status clear_stale(cr_listener *l, cr_error *error) {
    struct stat st;
    const char *path = l->address.path;
    if (lstat(path, &st) != 0) return errno == ENOENT ? CR_OK : fail_errno(error, "look at", path);
    if (!S_ISSOCK(st.st_mode)) return cr_fail(error, CR_ALREADY_EXISTS, "listen: %s exists and is not a socket", path);
    struct sockaddr_un name;
    unix_name(l, &name);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0) return fail_errno(error, "probe", path);
    int refused = connect(probe, (struct sockaddr *)&name, sizeof name) != 0 && errno == ECONNREFUSED;
    close(probe);
    if (!refused) return cr_fail(error, CR_ALREADY_EXISTS, "listen: something is live on %s", path);
    cr_info("replacing the stale socket %s", path);
    return unlink(path) == 0 ? CR_OK : fail_errno(error, "remove the stale socket", path);
}

static cr_status bind_unix(cr_listener *l, cr_error *error) {
    cr_status status = take_lock(l, error);
    if (status == CR_OK) status = clear_stale(l, error);
    if (status != CR_OK) return status;
    struct sockaddr_un name;
    unix_name(l, &name);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0) return fail_errno(error, "make a socket for", l->address.path);
    /* The mode is there from the first moment: no chmod after bind that a client could slip in before. */
    mode_t before = umask(0777 & ~(mode_t)l->loop->calls->config->socket_mode);
    int failed = bind(l->fd, (struct sockaddr *)&name, sizeof name);
    umask(before);
    if (failed) return fail_errno(error, "bind", l->address.path);
    struct stat st;
    if (lstat(l->address.path, &st) != 0) return fail_errno(error, "look at", l->address.path);
    l->device = st.st_dev;
    l->inode = st.st_ino;
    snprintf(l->name, sizeof l->name, "unix:%s", l->address.path);
    return CR_OK;
}

/* Names the socket by the port that it has. One that is not bound has none, and goes by its address's. */
static void name_tcp(cr_listener *l) {
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    unsigned port = l->address.port;
    if (getsockname(l->fd, (struct sockaddr *)&bound, &length) == 0)
        port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                 : ((struct sockaddr_in *)&bound)->sin_port);
    if (port == 0) port = l->address.port;
    const char *form = strchr(l->address.host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u";
    snprintf(l->name, sizeof l->name, form, l->address.host, port);
}

static cr_status bind_tcp(cr_listener *l, cr_error *error) {
    char port[8];
    snprintf(port, sizeof port, "%u", l->address.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
    int failed = getaddrinfo(l->address.host, port, &hints, &found);
    if (failed)
        return cr_fail(error, CR_INVALID_ARGUMENT, "listen: cannot resolve %s: %s", l->address.host,
                       gai_strerror(failed));
    l->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (l->fd >= 0) setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    failed = l->fd < 0 || bind(l->fd, found->ai_addr, found->ai_addrlen) != 0;
    const int why = errno;
    name_tcp(l);
    errno = why;
    if (failed) fail_errno(error, "bind", l->name);
    freeaddrinfo(found);
    return failed ? error->code : CR_OK;
}

/* What the socket is bound to, as an address. */
static void name_passed(cr_listener *l, const struct sockaddr_storage *bound) {
    const struct sockaddr_un *file = (const struct sockaddr_un *)bound;
    const struct sockaddr_in *four = (const struct sockaddr_in *)bound;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)bound;
    l->address.kind = bound->ss_family == AF_UNIX ? CR_ADDRESS_UNIX : CR_ADDRESS_TCP;
    if (bound->ss_family == AF_UNIX) {
        snprintf(l->address.path, sizeof l->address.path, "%.107s", file->sun_path);
        snprintf(l->name, sizeof l->name, "unix:%s", *file->sun_path ? l->address.path : "(without a path)");
        return;
    }
    if (bound->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, l->address.host, sizeof l->address.host);
    else
        inet_ntop(AF_INET6, &six->sin6_addr, l->address.host, sizeof l->address.host);
    name_tcp(l);
}

/* A stream socket that listens, of a family that cured speaks. */
static cr_status take_passed(cr_listener *l, int fd, cr_error *error) {
    struct sockaddr_storage bound = {0};
    socklen_t length = sizeof bound, size = sizeof(int);
    int type = 0, listens = 0;
    const bool good = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
                      getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
                      getsockname(fd, (struct sockaddr *)&bound, &length) == 0 &&
                      (bound.ss_family == AF_UNIX || bound.ss_family == AF_INET || bound.ss_family == AF_INET6);
    if (!good)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "LISTEN_FDS: descriptor %d is no listening Unix or TCP socket (ListenStream=, Accept=no)", fd);
    l->fd = fd;
    l->passed = true;
    name_passed(l, &bound);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return fail_errno(error, "use the passed socket", l->name);
    return cr_config_check_address(l->loop->calls->config, &l->address, "listen", l->name, "may use the daemon", error);
}

static void on_connection(uv_poll_t *handle, int status, int events);

static void on_rested(cr_timer *timer) {
    cr_listener *l = cr_container(timer, cr_listener, rest);
    uv_poll_start(&l->poll, UV_READABLE, on_connection);
}

/* Without a descriptor to accept with, the connection stays in the backlog and would wake the loop for ever: it is accepted
 * with the spare one and closed. Where even that fails, the listener rests. */
static void refuse_one(cr_listener *l) {
    static cr_log_limit seldom;
    if (l->spare >= 0) close(l->spare);
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
    bool refused = fd >= 0 || errno == EAGAIN || errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (!refused && cr_timer_set(&l->loop->calls->timers, &l->rest, cr_now_ms() + REST_MS)) uv_poll_stop(&l->poll);
    cr_warn_seldom(&seldom, "no descriptor left for a new connection: refused (raise the limit on open files)");
}

/* Answers go at once. Linux asks a quiet peer whether it lives: one whose host lost its power never says goodbye. */
static void prepare_tcp(int fd) {
    const int on = 1, idle_s = 60, between_s = 10, asked = 6;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &asked, sizeof asked);
}

static void on_connection(uv_poll_t *handle, int status, int events) {
    static cr_log_limit seldom;
    (void)events;
    cr_listener *l = handle->data;
    if (status < 0) return;
    const cr_arrival_from from = {.is_unix = l->address.kind == CR_ADDRESS_UNIX,
                                  .far = !cr_address_is_local(&l->address) && !l->loop->calls->config->insecure,
                                  .door = l->door};
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) refuse_one(l);
        if (fd < 0) return;
        if (l->address.kind == CR_ADDRESS_TCP) prepare_tcp(fd);
        cr_error error;
        if (cr_arrival_open(l->arrivals, fd, &from, &error) != CR_OK) cr_warn_seldom(&seldom, "%s", error.text);
    }
}

static void on_closed(uv_handle_t *handle) { free(handle->data); }

static void close_fds(cr_listener *l) {
    if (l->fd >= 0) close(l->fd);
    if (l->lock >= 0) close(l->lock);
    if (l->spare >= 0) close(l->spare);
}

static cr_status bind_text(cr_listener *l, const char *text, cr_error *error) {
    cr_status status = cr_address_parse(text, &l->address, error);
    if (status == CR_OK) status = l->address.kind == CR_ADDRESS_UNIX ? bind_unix(l, error) : bind_tcp(l, error);
    if (status == CR_OK && listen(l->fd, BACKLOG) != 0) status = fail_errno(error, "listen on", text);
    return status;
}

/* text: to be bound; NULL: passed is. */
static cr_status open_listener(cr_arrivals *arrivals, const char *text, int passed, cr_door *door, cr_listener **out,
                               cr_error *error) {
    cr_listener *l = calloc(1, sizeof *l);
    if (!l) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a listener");
    l->arrivals = arrivals;
    l->loop = arrivals->loop;
    l->door = door;
    l->fd = l->lock = -1;
    l->rest.fire = on_rested;
    l->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_status status = text ? bind_text(l, text, error) : take_passed(l, passed, error);
    if (status == CR_OK && uv_poll_init_socket(l->loop->uv, &l->poll, l->fd) != 0)
        status = cr_fail(error, CR_INTERNAL, "listen: cannot watch %s", l->name);
    if (status != CR_OK) {
        close_fds(l);
        free(l);
        return status;
    }
    l->poll.data = l;
    uv_poll_start(&l->poll, UV_READABLE, on_connection);
    *out = l;
    return CR_OK;
}

cr_status cr_listener_open(cr_arrivals *arrivals, const char *text, cr_door *door, cr_listener **listener,
                           cr_error *error) {
    return open_listener(arrivals, text, -1, door, listener, error);
}

cr_status cr_listener_adopt(cr_arrivals *arrivals, int fd, cr_listener **listener, cr_error *error) {
    return open_listener(arrivals, NULL, fd, NULL, listener, error);
}

const char *cr_listener_name(const cr_listener *l) { return l->name; }

static void remove_socket(const cr_listener *l) {
    struct stat st;
    const char *path = l->address.path;
    if (lstat(path, &st) != 0) return;
    if (st.st_dev == l->device && st.st_ino == l->inode)
        unlink(path);
    else
        cr_warn("%s is another's by now: it stays", path);
}

void cr_listener_close(cr_listener *l) {
    cr_timer_stop(&l->loop->calls->timers, &l->rest);
    uv_poll_stop(&l->poll);
    if (l->address.kind == CR_ADDRESS_UNIX && !l->passed) remove_socket(l);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    close_fds(l);
}
