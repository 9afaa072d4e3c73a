/* gpu_probe: both sides of the line to the probe: one message asks, with the descriptor if there is one, one answers. Thread, owner: see
 * gpu_probe.h. */
#include "server/lanes/gpu_probe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/core/op.h"
#include "server/base/clock.h"
#include "server/base/log.h"

extern char **environ;

enum { START_MS = 60000 }; /* a context takes its time on a machine with many GPUs */

typedef struct answer {
    uint32_t status;
    char text[CR_ERROR_TEXT];
} answer;

struct cr_gpu_probe {
    pthread_mutex_t mutex; /* everything */
    char program[256];
    uint32_t ordinal;
    uint64_t limit_ms;
    pid_t pid; /* 0: not running */
    int line;
};

cr_gpu_probe *cr_gpu_probe_new(const char *program, uint32_t ordinal, uint64_t limit_ms) {
    cr_gpu_probe *probe = calloc(1, sizeof *probe);
    if (!probe) return NULL;
    pthread_mutex_init(&probe->mutex, NULL);
    snprintf(probe->program, sizeof probe->program, "%s", program);
    probe->ordinal = ordinal;
    probe->limit_ms = limit_ms;
    probe->line = -1;
    return probe;
}

static void end(cr_gpu_probe *probe) {
    if (!probe->pid) return;
    close(probe->line);
    kill(probe->pid, SIGKILL);
    while (waitpid(probe->pid, NULL, 0) < 0 && errno == EINTR) {
    }
    probe->line = -1;
    probe->pid = 0;
}

void cr_gpu_probe_free(cr_gpu_probe *probe) {
    if (!probe) return;
    end(probe);
    pthread_mutex_destroy(&probe->mutex);
    free(probe);
}

/* With its end of the line as descriptor 0, and nothing else of the daemon's but the log. */
static int spawn(cr_gpu_probe *probe, int line) {
    char ordinal[16];
    snprintf(ordinal, sizeof ordinal, "%u", probe->ordinal);
    char *const argv[] = {"cured-probe", "--probe-gpu", ordinal, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int failed = posix_spawn_file_actions_adddup2(&actions, line, 0);
    if (!failed) failed = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    if (!failed) failed = posix_spawnattr_setsigmask(&attributes, &none);
    if (!failed) failed = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (!failed) failed = posix_spawn(&probe->pid, probe->program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

/* The probe's next message within limit_ms; false: it is gone, or silent. */
static bool receive(const cr_gpu_probe *probe, answer *a, uint64_t limit_ms) {
    uint64_t until = cr_now_ms() + limit_ms;
    for (;;) {
        uint64_t now = cr_now_ms();
        struct pollfd p = {.fd = probe->line, .events = POLLIN};
        int ready = now < until ? poll(&p, 1, (int)(until - now)) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        ssize_t n = recv(probe->line, a, sizeof *a, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        a->text[sizeof a->text - 1] = 0;
        return n == (ssize_t)sizeof *a;
    }
}

static cr_status start(cr_gpu_probe *probe, cr_error *error) {
    int ends[2], failed = 0;
    answer hello;
    if (probe->pid) return CR_OK;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) failed = errno;
    if (!failed) {
        failed = spawn(probe, ends[1]);
        close(ends[1]);
        if (failed) {
            close(ends[0]);
            probe->pid = 0;
        }
    }
    if (failed)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "the process that tries device memory cannot be started: %s",
                       strerror(failed));
    probe->line = ends[0];
    if (receive(probe, &hello, START_MS) && hello.status == CR_OK) return CR_OK;
    cr_warn("probe of GPU %u: it does not come up; no device memory of clients can be opened", probe->ordinal);
    end(probe);
    return cr_fail(error, CR_UNAVAILABLE, "the process that tries device memory does not come up");
}

static bool ask(const cr_gpu_probe *probe, const cr_device_memory *memory) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec part = {(void *)(uintptr_t)memory, sizeof *memory};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (memory->descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &memory->descriptor, sizeof(int));
    }
    return sendmsg(probe->line, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *memory;
}

cr_status cr_gpu_probe_try(cr_gpu_probe *probe, const cr_device_memory *memory, cr_error *error) {
    answer a;
    pthread_mutex_lock(&probe->mutex);
    cr_status status = start(probe, error);
    if (status == CR_OK && ask(probe, memory) && receive(probe, &a, probe->limit_ms)) {
        status = a.status == CR_OK ? CR_OK : cr_fail(error, (cr_status)a.status, "%s", a.text);
    } else if (status == CR_OK) {
        end(probe);
        status = cr_fail(error, CR_INVALID_ARGUMENT,
                         "device memory: the CUDA driver failed when it was opened and read; is its handle right?");
        cr_warn("probe of GPU %u: ended by what a client shares; it is started anew when it is needed", probe->ordinal);
    }
    pthread_mutex_unlock(&probe->mutex);
    return status;
}

/* ---- the probe ---- */

static bool send_answer(const cr_status status, const cr_error *error) {
    answer a = {.status = status};
    if (status != CR_OK) snprintf(a.text, sizeof a.text, "%s", error->text);
    return send(0, &a, sizeof a, MSG_NOSIGNAL) == (ssize_t)sizeof a;
}

/* False: the daemon is gone. */
static bool take(cr_device_memory *memory) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {memory, sizeof *memory};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do n = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *memory) return false;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    memory->descriptor = -1;
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&memory->descriptor, CMSG_DATA(head), sizeof(int));
    return true;
}

/* Every byte, as the cheapest fold does it. */
static cr_status read_all(const cr_gpu_api *api, cr_gpu_stream *stream, const cr_device_memory *from, void *memory,
                          cr_error *error) {
    const cr_gpu_fold all = {.dtype = CR_U8,
                             .families = cr_op_needs(CR_OP_MAX, CR_U8),
                             .data = (const uint8_t *)memory + from->offset,
                             .n = from->bytes};
    bool idle = false;
    cr_status status = api->fold(stream, &all, 1, 0, error);
    while (status == CR_OK && !idle) status = api->poll(stream, &idle, error);
    return status;
}

static cr_status try_here(const cr_gpu_api *api, cr_gpu *gpu, cr_gpu_stream *stream, const cr_device_memory *from,
                          cr_error *error) {
    void *memory = NULL, *event = NULL;
    bool fired;
    cr_status status = api->import(gpu, from->has_handle ? from->handle : NULL, from->descriptor,
                                   (size_t)(from->offset + from->bytes), &memory, error);
    if (status != CR_OK) return status;
    status = read_all(api, stream, from, memory, error);
    if (status == CR_OK && from->has_event) status = api->event_open(gpu, from->event, &event, error);
    if (event) {
        status = api->event_look(gpu, event, &fired, error);
        api->event_close(gpu, event);
    }
    if (!api->lost(gpu)) api->release(gpu, memory);
    return status;
}

int cr_gpu_probe_main(const cr_gpu_api *api, const char *ordinal) {
    cr_gpu *gpu = NULL;
    cr_gpu_stream *stream = NULL;
    cr_device_memory memory;
    cr_error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* should it hang in the driver when the daemon ends */
    cr_status status = api ? CR_OK : cr_fail(&error, CR_FAILED_PRECONDITION, "this build has no CUDA lane");
    if (status == CR_OK && !api->count(&error)) status = error.code;
    if (status == CR_OK) status = api->open((uint32_t)strtoul(ordinal, NULL, 10), &gpu, &error);
    if (status == CR_OK) status = api->stream_open(gpu, 1, &stream, &error);
    if (!send_answer(status, &error) || status != CR_OK) return 1;
    while (take(&memory)) {
        status = try_here(api, gpu, stream, &memory, &error);
        if (memory.descriptor >= 0) close(memory.descriptor);
        if (api->lost(gpu)) return 1; /* the daemon takes that for the answer */
        if (!send_answer(status, &error)) break;
    }
    api->stream_close(stream);
    api->close(gpu);
    return 0;
}
