/* probe: both sides of the line to the probe. One message asks, with the descriptor if there is one; one answers.
 * Thread, owner: see probe.h. */
#include "server/lanes/gpu/probe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernels/core/op.h"

extern char **environ;

enum {
    START_MS = 60000, /* a context takes its time on a machine with many GPUs */
    LATE_MS = 1000,   /* the keeper's word on a probe that was ended for its silence */
    ENDED = 1,        /* exit status of a probe: what it was asked last may be unanswered */
};

typedef struct question {
    uint64_t number; /* from 1 */
    cr_device_memory memory;
} question;

typedef struct answer {
    uint64_t number;
    uint32_t status;
    bool ended; /* by the keeper: the probe ended while it tried */
    char text[CR_ERROR_TEXT];
} answer;

struct cr_gpu_probe {
    pthread_mutex_t mutex; /* everything */
    uint32_t ordinal;
    uint64_t limit_ms, asked;
    pid_t keeper;
    int line; /* -1: there is no keeper */
    bool silent;
};

/* With its end of the line as descriptor 0, and nothing else of the daemon's but the log. */
static int spawn(cr_gpu_probe *probe, const char *program, int line) {
    char ordinal[16], limit[24];
    snprintf(ordinal, sizeof ordinal, "%u", probe->ordinal);
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)probe->limit_ms);
    char *const argv[] = {"cured-probe", "--probe-gpu", ordinal, limit, NULL};
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
    if (!failed) failed = posix_spawn(&probe->keeper, program, &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

cr_gpu_probe *cr_gpu_probe_new(const char *program, uint32_t ordinal, uint64_t limit_ms) {
    int ends[2];
    cr_gpu_probe *probe = calloc(1, sizeof *probe);
    if (!probe) return NULL;
    pthread_mutex_init(&probe->mutex, NULL);
    probe->ordinal = ordinal;
    probe->limit_ms = limit_ms;
    probe->line = -1;
    int failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 ? 0 : errno;
    if (!failed) {
        failed = spawn(probe, program, ends[1]);
        close(ends[1]);
        probe->line = failed ? -1 : ends[0];
        if (failed) close(ends[0]);
    }
    if (failed)
        cr_warn("probe of GPU %u: it cannot be started (%s); device memory of clients is not opened", ordinal,
                strerror(failed));
    return probe;
}

void cr_gpu_probe_free(cr_gpu_probe *probe) {
    if (!probe) return;
    if (probe->line >= 0) {
        close(probe->line);
        kill(probe->keeper, SIGKILL); /* the probe goes with it */
        while (waitpid(probe->keeper, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    pthread_mutex_destroy(&probe->mutex);
    free(probe);
}

/* The answer to question number within limit_ms; false: none came. Late ones to others are dropped. */
static bool receive(const cr_gpu_probe *probe, uint64_t number, answer *a, uint64_t limit_ms) {
    uint64_t until = cr_now_ms() + limit_ms;
    for (;;) {
        uint64_t now = cr_now_ms();
        struct pollfd p = {.fd = probe->line, .events = POLLIN};
        int ready = now < until ? poll(&p, 1, (int)(until - now)) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        ssize_t n = recv(probe->line, a, sizeof *a, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n != (ssize_t)sizeof *a) return false;
        a->text[sizeof a->text - 1] = 0;
        if (a->number == number) return true;
    }
}

static bool ask(const cr_gpu_probe *probe, const cr_device_memory *memory) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    question q;
    memset(&q, 0, sizeof q);
    q.number = probe->asked;
    q.memory = *memory;
    struct iovec part = {&q, sizeof q};
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
    return sendmsg(probe->line, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof q;
}

cr_status cr_gpu_probe_try(cr_gpu_probe *probe, const cr_device_memory *memory, cr_error *error) {
    answer a;
    pthread_mutex_lock(&probe->mutex);
    probe->asked++;
    uint64_t limit = probe->limit_ms + LATE_MS + (probe->silent ? 0 : START_MS);
    bool answered = probe->line >= 0 && ask(probe, memory) && receive(probe, probe->asked, &a, limit);
    probe->silent = !answered;
    pthread_mutex_unlock(&probe->mutex);
    if (!answered)
        return cr_fail(error, CR_UNAVAILABLE, "device memory: the process that tries it first does not answer");
    if (!a.ended) return a.status == CR_OK ? CR_OK : cr_fail(error, (cr_status)a.status, "%s", a.text);
    cr_warn("probe of GPU %u: ended by what a client shares; it is started anew when it is needed", probe->ordinal);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "device memory: the CUDA driver failed when it was opened and read; is its handle right?");
}

/* ---- the probe, and its keeper ---- */

static bool send_answer(uint64_t number, cr_status status, const cr_error *error, bool ended) {
    answer a;
    memset(&a, 0, sizeof a);
    a.number = number;
    a.status = status;
    a.ended = ended;
    if (status != CR_OK && error) snprintf(a.text, sizeof a.text, "%s", error->text);
    return send(0, &a, sizeof a, MSG_NOSIGNAL) == (ssize_t)sizeof a;
}

/* The next question; false: the daemon is gone. */
static bool take(question *q) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {q, sizeof *q};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    do n = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *q) return false;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    q->memory.descriptor = -1;
    if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&q->memory.descriptor, CMSG_DATA(head), sizeof(int));
    return true;
}

/* Every byte, as the cheapest fold does it. */
static cr_status read_all(const cr_gpu_api *api, cr_gpu_stream *stream, const cr_device_memory *from, void *memory,
                          cr_error *error) {
    const cr_gpu_fold all = {
        .dtype = CR_U8, .families = CR_FAM_EXTREMA, .data = (const uint8_t *)memory + from->offset, .n = from->bytes};
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
                                   (size_t)(from->offset + from->bytes), from->writable, &memory, error);
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

static unsigned seconds_of(uint64_t ms) { return (unsigned)((ms + 999) / 1000); }

/* Answers until the daemon is gone (0) or it must end. under_way: the question that it is at. A silent driver ends it
 * by SIGALRM. */
static int serve(const cr_gpu_api *api, uint32_t ordinal, uint64_t limit_ms, _Atomic uint64_t *under_way) {
    cr_gpu *gpu = NULL;
    cr_gpu_stream *stream = NULL;
    question q;
    cr_error error;
    if (!take(&q)) return 0;
    atomic_store(under_way, q.number);
    alarm(seconds_of(START_MS + limit_ms));
    cr_status status = api ? CR_OK : cr_fail(&error, CR_FAILED_PRECONDITION, "there is no libcured-cuda here");
    if (status == CR_OK && !api->count(&error)) status = error.code;
    if (status == CR_OK) status = api->open(ordinal, &gpu, &error);
    if (status == CR_OK) status = api->stream_open(gpu, 1, &stream, &error);
    bool opened = status == CR_OK;
    do {
        atomic_store(under_way, q.number);
        if (opened) {
            alarm(seconds_of(limit_ms));
            status = try_here(api, gpu, stream, &q.memory, &error);
            if (api->lost(gpu)) return ENDED;
        }
        if (q.memory.descriptor >= 0) close(q.memory.descriptor);
        atomic_store(under_way, 0);
        alarm(0);
        if (!send_answer(q.number, status, &error, false) || !opened) return ENDED;
    } while (take(&q));
    return 0;
}

/* The keeper: it has nothing of a client's open and asks nothing of the driver, so nothing of theirs stops it from
 * starting a probe. */
int cr_gpu_probe_main(const cr_gpu_api *api, const char *ordinal, const char *limit_ms) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _Atomic uint64_t *under_way =
        mmap(NULL, sizeof *under_way, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (under_way == MAP_FAILED) return 1;
    for (;;) {
        struct pollfd p = {.fd = 0, .events = POLLIN};
        if (poll(&p, 1, -1) < 0) continue; /* EINTR */
        int status = 0;
        pid_t keeper = getpid(), probe = fork();
        if (probe == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != keeper) _exit(0);
            _exit(serve(api, (uint32_t)strtoul(ordinal, NULL, 10), strtoull(limit_ms, NULL, 10), under_way));
        }
        if (probe < 0) { /* no memory for it: the daemon hears nothing */
            question q;
            if (!take(&q)) return 0;
            if (q.memory.descriptor >= 0) close(q.memory.descriptor);
            continue;
        }
        while (waitpid(probe, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
        uint64_t number = atomic_exchange(under_way, 0);
        if (number && !send_answer(number, CR_INVALID_ARGUMENT, NULL, true)) return 0;
    }
}
