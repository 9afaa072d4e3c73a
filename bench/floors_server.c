/* floors_server: the daemon as a child process, the floor servers (a bare libuv echo, and a reader that throws away), and
 * connections to them.
 *
 * Thread: main's; each server is a process of its own. Owner: the caller stops what it started. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "bench/bench.h"
#include "bench/floors.h"
#include "kernels/core/op.h"

static void floor_name(const floors_options *o, char *path, size_t cap) { snprintf(path, cap, "%s.floor", o->socket); }

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, path, strnlen(path, sizeof name.sun_path - 1));
    return name;
}

static int try_connect(const char *path) {
    struct sockaddr_un name = address_of(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0) return fd;
    close(fd);
    return -1;
}

void floors_defaults(floors_options *o) {
    const char *temporary = getenv("TMPDIR");
    o->dir = temporary && *temporary ? temporary : "/var/tmp";
    o->isa = "auto";
    o->daemon = bench_beside("cured");
}

void floors_begin(floors_options *o) {
    signal(SIGPIPE, SIG_IGN);
    snprintf(o->socket, sizeof o->socket, "%.60s/cured-bench-%d.sock", o->dir, (int)getpid());
}

static cpu_set_t cores; /* that this process had before it was pinned; none: it was not */

void floors_pin_client(const floors_options *o) {
    if (CPU_COUNT(&cores) == 0) sched_getaffinity(0, sizeof cores, &cores);
    bench_pin(o->client_core);
}

/* In the child, before it serves: any core is one of those that the client was not pinned to yet. */
static void settle_in(int core) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (core < 0 && CPU_COUNT(&cores) != 0) sched_setaffinity(0, sizeof cores, &cores);
    if (core >= 0 && bench_pin(core) != 0) fprintf(stderr, "cured-bench: cannot pin to core %d\n", core);
}

static pid_t wait_until_up(pid_t pid, const char *path, const char *what) {
    for (int i = 0; i < 500; i++) {
        int fd = try_connect(path);
        if (fd >= 0) {
            close(fd);
            return pid;
        }
        if (waitpid(pid, NULL, WNOHANG) == pid) break;
        usleep(10000);
    }
    fprintf(stderr, "cured-bench: %s did not come up on %s\n", what, path);
    return -1;
}

pid_t floors_daemon_start(const floors_options *o, int core) {
    char listen[128];
    snprintf(listen, sizeof listen, "unix:%s", o->socket);
    pid_t pid = fork();
    if (pid == 0) {
        settle_in(core);
        execl(o->daemon, o->daemon, "--listen", listen, "--cpu-workers", o->workers ? o->workers : "1", "--log-level",
              "warn", "--cpu-isa", o->isa, "--backend", o->backend ? o->backend : "auto",
              o->spin_us ? "--spin-us" : (char *)NULL, o->spin_us, (char *)NULL);
        fprintf(stderr, "cured-bench: cannot run %s: %s\n", o->daemon, strerror(errno));
        _exit(127);
    }
    return wait_until_up(pid, o->socket, "the daemon");
}

void floors_stop(pid_t pid) {
    if (pid <= 0) return;
    kill(pid, SIGTERM);
    waitpid(pid, NULL, 0);
}

/* The echo: reads into one buffer per connection and writes back what was read, as any libuv server would. A write that
 * libuv could finish at once (uv_try_write) needs no request; the rest goes by uv_write from a copy. */
typedef struct echo_conn {
    uv_pipe_t pipe;
    char buffer[64 * 1024];
} echo_conn;

typedef struct echo_rest {
    uv_write_t request;
    char bytes[];
} echo_rest;

static void echo_closed(uv_handle_t *handle) { free(handle->data); }

static void echo_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)suggested;
    echo_conn *conn = handle->data;
    *buffer = uv_buf_init(conn->buffer, sizeof conn->buffer);
}

static void echo_written(uv_write_t *request, int status) {
    (void)status;
    free(request->data);
}

static void echo_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
    if (n < 0) {
        uv_close((uv_handle_t *)stream, echo_closed);
        return;
    }
    uv_buf_t out = uv_buf_init(buffer->base, (unsigned)n);
    int done = n ? uv_try_write(stream, &out, 1) : 0;
    if (done < 0) done = 0;
    if (done == n) return;
    echo_rest *rest = malloc(sizeof *rest + (size_t)(n - done));
    if (!rest) abort();
    memcpy(rest->bytes, buffer->base + done, (size_t)(n - done));
    rest->request.data = rest;
    out = uv_buf_init(rest->bytes, (unsigned)(n - done));
    uv_write(&rest->request, stream, &out, 1, echo_written);
}

static void echo_accept(uv_stream_t *server, int status) {
    echo_conn *conn = status == 0 ? malloc(sizeof *conn) : NULL;
    if (!conn) return;
    uv_pipe_init(server->loop, &conn->pipe, 0);
    conn->pipe.data = conn;
    if (uv_accept(server, (uv_stream_t *)&conn->pipe) == 0)
        uv_read_start((uv_stream_t *)&conn->pipe, echo_alloc, echo_read);
    else
        uv_close((uv_handle_t *)&conn->pipe, echo_closed);
}

static void serve_echo(const char *path) {
    uv_loop_t loop;
    uv_pipe_t server;
    uv_loop_init(&loop);
    uv_pipe_init(&loop, &server, 0);
    if (uv_pipe_bind(&server, path) == 0 && uv_listen((uv_stream_t *)&server, 128, echo_accept) == 0)
        uv_run(&loop, UV_RUN_DEFAULT);
}

/* The sink: told how many bytes come, reads them into one 256 KiB buffer, and says so with one byte. */
static void sink_serve(int fd) {
    static char buffer[256 * 1024];
    uint64_t left;
    while (floors_read(fd, &left, sizeof left)) {
        while (left) {
            ssize_t n = read(fd, buffer, left < sizeof buffer ? (size_t)left : sizeof buffer);
            if (n <= 0) return;
            left -= (uint64_t)n;
        }
        if (!floors_write(fd, "", 1)) return;
    }
}

static void serve_sink(const char *path) {
    struct sockaddr_un name = address_of(path);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 16) != 0) return;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) sink_serve(fd);
}

static pid_t start_floor(const floors_options *o, int core, const char *what, void (*serve)(const char *path)) {
    char path[128];
    floor_name(o, path, sizeof path);
    unlink(path);
    pid_t pid = fork();
    if (pid == 0) {
        settle_in(core);
        serve(path);
        _exit(1);
    }
    return wait_until_up(pid, path, what);
}

pid_t floors_echo_start(const floors_options *o, int core) {
    return start_floor(o, core, "the echo server", serve_echo);
}

pid_t floors_sink_start(const floors_options *o, int core) {
    return start_floor(o, core, "the reading server", serve_sink);
}

bool floors_write(int fd, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t wrote = write(fd, (const char *)bytes + done, n - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return false;
        done += (size_t)wrote;
    }
    return true;
}

bool floors_read(int fd, void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, (char *)bytes + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

bool floors_send(int fd, const void *bytes, size_t n, int passed) {
    struct iovec part = {(void *)(uintptr_t)bytes, n};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof passed);
        memcpy(CMSG_DATA(c), &passed, sizeof passed);
    }
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    return sent > 0 && floors_write(fd, (const char *)bytes + sent, n - (size_t)sent);
}

size_t floors_call(uint8_t *out, size_t cap, uint32_t stream, cr_wire_call *call) {
    bool passes = call->kind == CR_CALL_REGISTER, ends = true;
    if (call->kind == CR_CALL_REDUCE) {
        cr_wire_reduce *r = &call->reduce;
        r->dtype = CR_F32;
        r->op_count = 1;
        r->ops[0] = CR_OP_SUM;
        passes = r->source == CR_SOURCE_DESCRIPTOR;
        ends = r->source != CR_SOURCE_STREAM;
    }
    const size_t n = cr_wire_pack_call(call, out + CR_FRAME_HEADER_BYTES, cap - CR_FRAME_HEADER_BYTES);
    const cr_frame frame = {.type = CR_FRAME_CALL,
                            .flags = ends ? CR_FLAG_END : 0,
                            .descriptors = passes,
                            .stream = stream,
                            .length = (uint32_t)n};
    cr_frame_put(out, &frame);
    return CR_FRAME_HEADER_BYTES + n;
}

bool floors_receive(int fd, cr_frame_type type, void *payload, size_t cap, uint32_t *length) {
    uint8_t head[CR_FRAME_HEADER_BYTES];
    cr_frame frame;
    cr_error error;
    bool skip;
    if (!floors_read(fd, head, sizeof head) || cr_frame_get(head, false, &frame, &skip, &error) != CR_OK) return false;
    *length = frame.length;
    return frame.type == type && frame.length <= cap && floors_read(fd, payload, frame.length);
}

static bool greet(int fd) {
    uint8_t bytes[1024];
    uint32_t length;
    cr_wire_hello hello = {.version_min = 1, .version_max = 1, .client = "cured-bench"};
    size_t n = cr_wire_pack_hello(&hello, bytes + CR_FRAME_HEADER_BYTES, sizeof bytes - CR_FRAME_HEADER_BYTES);
    cr_frame frame = {.type = CR_FRAME_HELLO, .length = (uint32_t)n};
    cr_frame_put(bytes, &frame);
    return floors_write(fd, bytes, CR_FRAME_HEADER_BYTES + n) &&
           floors_receive(fd, CR_FRAME_WELCOME, bytes, sizeof bytes, &length);
}

int floors_connect(const floors_options *o, bool floor) {
    char path[128];
    if (floor)
        floor_name(o, path, sizeof path);
    else
        snprintf(path, sizeof path, "%s", o->socket);
    int fd = try_connect(path);
    if (fd >= 0 && (floor || greet(fd))) return fd;
    fprintf(stderr, "cured-bench: cannot set up a connection to %s\n", path);
    if (fd >= 0) close(fd);
    return -1;
}
