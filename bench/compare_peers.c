/* compare_peers: what a user could have instead of cured, for scripts/compare, which compiles it: programs that sum a file, a server
 * that echoes, and a client that keeps requests in flight and checks each answer.
 *
 *   compare_peers read FILE             adds up the file's 64-bit words by read(): the floor of whoever reads it
 *   compare_peers openmp FILE           sums its float32 in doubles, on all cores
 *   compare_peers echo SOCKET           libuv: sends back what comes
 *   compare_peers ask SOCKET SECONDS IN_FLIGHT CONNECTIONS REQUEST ANSWER
 *                                       files; so many in flight on each; prints answers a second and whether all were right
 *
 * Thread: main, and OpenMP's. Owner: main; the system closes what is left. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { CHUNK_BYTES = 1 << 20, MOST_BYTES = 1 << 22, MOST_CONNECTIONS = 256 };

static int die(const char *what) {
    perror(what);
    exit(1);
}

static int sum_by_read(const char *path) {
    uint64_t *chunk = aligned_alloc(64, CHUNK_BYTES), sum = 0;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || chunk == NULL) die(path);
    for (ssize_t n; (n = read(fd, chunk, CHUNK_BYTES)) > 0;)
        for (size_t i = 0; i < (size_t)n / 8; i++) sum += chunk[i];
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}

static int sum_by_openmp(const char *path) {
    struct stat st;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) die(path);
    const float *a = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (a == MAP_FAILED) die("mmap");
    const size_t count = (size_t)st.st_size / sizeof *a;
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (size_t i = 0; i < count; i++) sum += (double)a[i];
    printf("%.17g\n", sum);
    return 0;
}

/* ---- the echo of libuv ---- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    (void)handle;
    *buffer = uv_buf_init(malloc(suggested), (unsigned)suggested);
}

static void on_written(uv_write_t *write, int status) {
    (void)status;
    free(write->data);
    free(write);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer) {
    uv_write_t *write = n > 0 ? malloc(sizeof *write) : NULL;
    if (write == NULL) {
        free(buffer->base);
        if (n < 0) uv_close((uv_handle_t *)stream, (uv_close_cb)(void (*)(void))free);
        return;
    }
    const uv_buf_t out = uv_buf_init(buffer->base, (unsigned)n);
    write->data = buffer->base;
    uv_write(write, stream, &out, 1, on_written);
}

static void on_connection(uv_stream_t *server, int status) {
    uv_pipe_t *peer = malloc(sizeof *peer);
    if (status < 0 || peer == NULL) return;
    uv_pipe_init(server->loop, peer, 0);
    if (uv_accept(server, (uv_stream_t *)peer) == 0) uv_read_start((uv_stream_t *)peer, on_room, on_read);
}

static int echo(const char *path) {
    uv_pipe_t server;
    signal(SIGPIPE, SIG_IGN); /* a client may go before its answers */
    uv_pipe_init(uv_default_loop(), &server, 0);
    if (uv_pipe_bind(&server, path) != 0 || uv_listen((uv_stream_t *)&server, 16, on_connection) != 0) die(path);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

/* ---- the client ---- */

static size_t read_file(const char *path, uint8_t **out) {
    FILE *f = fopen(path, "rb");
    *out = malloc(MOST_BYTES);
    const size_t n = f != NULL && *out != NULL ? fread(*out, 1, MOST_BYTES, f) : 0;
    if (n == 0) die(path);
    fclose(f);
    return n;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void send_all(int fd, const uint8_t *data, size_t n) {
    for (ssize_t sent; n != 0; data += sent, n -= (size_t)sent)
        if ((sent = send(fd, data, n, MSG_NOSIGNAL)) <= 0) die("send");
}

/* What every connection sends and expects, and what came. */
typedef struct asked {
    uint8_t *many, *answer, *in; /* IN_FLIGHT requests in one */
    size_t flight, size, wanted;
    uint64_t answers, wrong;
} asked;

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) die(path);
    return fd;
}

static asked read_asked(const char *flight, const char *request, const char *answer) {
    asked a = {.flight = (size_t)atoi(flight), .in = malloc(MOST_BYTES)};
    uint8_t *one;
    a.size = read_file(request, &one);
    a.wanted = read_file(answer, &a.answer);
    if (a.in == NULL || a.flight < 1 || a.flight * a.size > MOST_BYTES || (a.many = malloc(a.flight * a.size)) == NULL)
        die("ask");
    for (size_t i = 0; i < a.flight; i++) memcpy(a.many + i * a.size, one, a.size);
    free(one);
    return a;
}

/* One read of a connection; at: how many bytes came of the answer that is coming. A request is sent for each answer that came, so
 * that so many are always in flight. Answers come in order. */
static void ask_on(asked *a, int fd, size_t *at) {
    const ssize_t n = recv(fd, a->in, MOST_BYTES, 0);
    size_t done = 0;
    if (n <= 0) die("recv");
    for (size_t i = 0; i < (size_t)n;) {
        const size_t part = a->wanted - *at < (size_t)n - i ? a->wanted - *at : (size_t)n - i;
        a->wrong += memcmp(a->in + i, a->answer + *at, part) != 0;
        i += part;
        *at = (*at + part) % a->wanted;
        done += *at == 0;
    }
    a->answers += done;
    for (size_t left = done, some; left != 0; left -= some) {
        some = left < a->flight ? left : a->flight;
        send_all(fd, a->many, some * a->size);
    }
}

static int ask(char **argv) {
    asked a = read_asked(argv[2], argv[4], argv[5]);
    const double seconds = atof(argv[1]);
    const int connections = atoi(argv[3]), epoll = epoll_create1(0);
    size_t at[MOST_CONNECTIONS] = {0};
    int fds[MOST_CONNECTIONS];
    struct epoll_event ready[MOST_CONNECTIONS];
    if (connections < 1 || connections > MOST_CONNECTIONS) die("ask");
    for (int i = 0; i < connections; i++) {
        fds[i] = connect_to(argv[0]);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i],
                      &(struct epoll_event){.events = EPOLLIN, .data.u32 = (uint32_t)i}) != 0)
            die("epoll_ctl");
    }
    const double start = now();
    for (int i = 0; i < connections; i++) send_all(fds[i], a.many, a.flight * a.size);
    while (now() - start < seconds) {
        const int count = epoll_wait(epoll, ready, connections, 1000);
        if (count <= 0) die("epoll_wait");
        for (int i = 0; i < count; i++) ask_on(&a, fds[ready[i].data.u32], &at[ready[i].data.u32]);
    }
    const int right = a.wrong == 0 && a.answers != 0;
    printf("%.0f %s\n", (double)a.answers / (now() - start), right ? "right" : "WRONG");
    return !right;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "read") == 0) return sum_by_read(argv[2]);
    if (argc == 3 && strcmp(argv[1], "openmp") == 0) return sum_by_openmp(argv[2]);
    if (argc == 3 && strcmp(argv[1], "echo") == 0) return echo(argv[2]);
    if (argc == 8 && strcmp(argv[1], "ask") == 0) return ask(argv + 2);
    fprintf(stderr,
            "usage: compare_peers read|openmp FILE, echo SOCKET, ask SOCKET SECONDS IN_FLIGHT CONNECTIONS REQUEST "
            "ANSWER\n");
    return 64;
}
