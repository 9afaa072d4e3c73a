/* fault: see fault.h. Each function here has the name of one of the C library's, and so is called in its place, by the shared
 * libraries too. What is not to fail goes to the kernel, or to the allocator below.
 *
 * Thread: any. Owner: nothing. */
#include "tests/fault/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The sanitizer's allocator where there is one; this file itself is built without. */
#ifdef FAULT_SANITIZED
#define ALLOCATOR(name) __interceptor_##name
#else
#define ALLOCATOR(name) __libc_##name
#endif
void *ALLOCATOR(malloc)(size_t bytes);
void *ALLOCATOR(calloc)(size_t count, size_t bytes);
void *ALLOCATOR(realloc)(void *at, size_t bytes);
void *ALLOCATOR(memalign)(size_t alignment, size_t bytes);

enum {
    PAGE_BYTES = 4096,
    STRUCTURES = 1024
}; /* reads of up to so many bytes are of a kernel's structures, which come whole: libuv's of an eventfd ask for 1,024 */

static fault_page own;
static fault_page *page = &own;

#define ADD(counter, n) __atomic_add_fetch(&(counter), (n), __ATOMIC_SEQ_CST)
#define LOAD(counter) __atomic_load_n(&(counter), __ATOMIC_SEQ_CST)

__attribute__((constructor)) static void find_page(void) {
    const char *path = getenv("CURED_TEST_FAULTS");
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *at = (void *)syscall(SYS_mmap, NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    if (at != MAP_FAILED) page = at;
    syscall(SYS_close, fd);
}

fault_page *fault_orders(void) { return page; }

void fault_arm(fault_kind kind, uint64_t n) {
    __atomic_store_n(&page->fired[kind], 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&page->armed[kind], n, __ATOMIC_SEQ_CST);
}

uint64_t fault_fired(fault_kind kind) { return LOAD(page->fired[kind]); }

#ifdef FAULT_SANITIZED
/* A thread that starts takes memory for the sanitizer, which ends the process when there is none. That is no site of the program's:
 * in a thread only what its own function asks for fails. */
int __interceptor_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                                 void *argument);

typedef struct thread_start {
    void *(*run)(void *argument);
    void *argument;
} thread_start;

static __thread bool starting = true;

__attribute__((constructor)) static void main_has_started(void) { starting = false; }

static void *run_started(void *argument) {
    const thread_start start = *(thread_start *)argument;
    free(argument);
    starting = false;
    void *result = start.run(start.argument);
    starting = true; /* and what the sanitizer does at a thread's end */
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    thread_start *start = ALLOCATOR(malloc)(sizeof *start);
    if (!start) return EAGAIN;
    *start = (thread_start){run, argument};
    const int failed = __interceptor_pthread_create(thread, attributes, run_started, start);
    if (failed) free(start);
    return failed;
}
#else
enum { starting = false };
#endif

/* Whether this call of the kind is one that fails. */
static bool fails(fault_kind kind) {
    if (starting) return false;
    ADD(page->seen[kind], 1);
    uint64_t left = LOAD(page->armed[kind]);
    while (left != 0) {
        bool now = left == 1;
        if (now && LOAD(page->lasting)) break;
        if (!__atomic_compare_exchange_n(&page->armed[kind], &left, left - 1, false, __ATOMIC_SEQ_CST,
                                         __ATOMIC_SEQ_CST))
            continue;
        if (!now) return false;
        break;
    }
    if (left == 0) return false;
    ADD(page->fired[kind], 1);
    return true;
}

/* ---- memory ---- */

static void *no_memory(void) {
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t bytes) { return fails(FAULT_ALLOCATION) ? no_memory() : ALLOCATOR(malloc)(bytes); }

void *calloc(size_t count, size_t bytes) {
    return fails(FAULT_ALLOCATION) ? no_memory() : ALLOCATOR(calloc)(count, bytes);
}

void *realloc(void *at, size_t bytes) { return fails(FAULT_ALLOCATION) ? no_memory() : ALLOCATOR(realloc)(at, bytes); }

void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails(FAULT_ALLOCATION) ? no_memory() : ALLOCATOR(memalign)(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    void *at = fails(FAULT_ALLOCATION) ? NULL : ALLOCATOR(memalign)(alignment, bytes);
    if (at) *out = at;
    return at ? 0 : ENOMEM;
}

void *mmap(void *wanted, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if (fails(FAULT_MAPPING)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, wanted, bytes, protection, flags, fd, offset);
}

/* ---- descriptors ---- */

static bool no_descriptor(void) {
    if (!fails(FAULT_DESCRIPTOR)) return false;
    errno = EMFILE;
    return true;
}

int socket(int family, int type, int protocol) {
    return no_descriptor() ? -1 : (int)syscall(SYS_socket, family, type, protocol);
}

int memfd_create(const char *name, unsigned flags) {
    return no_descriptor() ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return no_descriptor() ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && no_descriptor()) return -1;
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

/* ---- room ---- */

int ftruncate(int fd, off_t bytes) {
    if (fails(FAULT_SPACE)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_ftruncate, fd, bytes);
}

int posix_fallocate(int fd, off_t from, off_t bytes) {
    if (fails(FAULT_SPACE)) return ENOSPC;
    return syscall(SYS_fallocate, fd, 0, from, bytes) == 0 ? 0 : errno;
}

/* ---- storms ---- */

/* True: the call ends with EINTR or EAGAIN. */
static bool interrupted(bool may_be_empty) {
    uint64_t call = ADD(page->calls, 1), every = LOAD(page->eintr_every);
    if (every && call % every == 0) {
        ADD(page->eintrs, 1);
        errno = EINTR;
        return true;
    }
    every = LOAD(page->eagain_every);
    if (!may_be_empty || !every || call % every != 0) return false;
    ADD(page->eagains, 1);
    errno = EAGAIN;
    return true;
}

static size_t shortened(size_t bytes) {
    uint64_t most = LOAD(page->most_bytes);
    if (!most || bytes <= most) return bytes;
    ADD(page->shorts, 1);
    return (size_t)most;
}

ssize_t recv(int fd, void *into, size_t bytes, int flags) {
    if (interrupted(true)) return -1;
    return syscall(SYS_recvfrom, fd, into, shortened(bytes), flags, NULL, NULL);
}

ssize_t send(int fd, const void *from, size_t bytes, int flags) {
    if (interrupted(true)) return -1;
    return syscall(SYS_sendto, fd, from, shortened(bytes), flags, NULL, 0);
}

/* The message cut to its first bytes, so many of them as are allowed. */
static ssize_t move_message(long call, int fd, const struct msghdr *message, int flags) {
    if (interrupted(true)) return -1;
    size_t bytes = 0, most;
    for (size_t i = 0; i < message->msg_iovlen; i++) bytes += message->msg_iov[i].iov_len;
    most = shortened(bytes);
    if (most == bytes) return syscall(call, fd, message, flags);
    struct iovec *part = message->msg_iov;
    struct iovec whole = part[0], first = {whole.iov_base, whole.iov_len < most ? whole.iov_len : most};
    struct msghdr *changed = (struct msghdr *)(uintptr_t)message;
    size_t parts = changed->msg_iovlen;
    changed->msg_iov = &first;
    changed->msg_iovlen = 1;
    ssize_t n = syscall(call, fd, changed, flags);
    changed->msg_iov = part;
    changed->msg_iovlen = parts;
    return n;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) { return move_message(SYS_recvmsg, fd, message, flags); }

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return move_message(SYS_sendmsg, fd, message, flags);
}

ssize_t read(int fd, void *into, size_t bytes) {
    if (interrupted(false)) return -1;
    return syscall(SYS_read, fd, into, bytes > STRUCTURES ? shortened(bytes) : bytes);
}

ssize_t pread(int fd, void *into, size_t bytes, off_t offset) {
    if (interrupted(false)) return -1;
    return syscall(SYS_pread64, fd, into, shortened(bytes), offset);
}

int accept4(int fd, struct sockaddr *name, socklen_t *length, int flags) {
    if (no_descriptor() || interrupted(true)) return -1;
    return (int)syscall(SYS_accept4, fd, name, length, flags);
}

int connect(int fd, const struct sockaddr *name, socklen_t length) {
    return interrupted(false) ? -1 : (int)syscall(SYS_connect, fd, name, length);
}

int poll(struct pollfd *all, nfds_t count, int timeout) {
    return interrupted(false) ? -1 : (int)syscall(SYS_poll, all, count, timeout);
}

int ppoll(struct pollfd *all, nfds_t count, const struct timespec *most, const sigset_t *mask) {
    struct timespec left; /* Linux writes there what is left */
    if (most) left = *most;
    return interrupted(false) ? -1 : (int)syscall(SYS_ppoll, all, count, most ? &left : NULL, mask, (size_t)8);
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    return interrupted(false) ? -1 : (int)syscall(SYS_epoll_pwait, fd, events, most, timeout, mask, (size_t)8);
}

/* ---- clocks ---- */

int clock_gettime(clockid_t clock, struct timespec *now) {
    enum { SECOND = 1000000000 };
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    int64_t more = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE     ? LOAD(page->realtime_ns)
                   : clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE ? LOAD(page->monotonic_ns)
                                                                                 : 0;
    if (failed || !more) return failed;
    now->tv_sec += (time_t)(more / SECOND);
    now->tv_nsec += (long)(more % SECOND);
    if (now->tv_nsec >= SECOND) {
        now->tv_nsec -= SECOND;
        now->tv_sec++;
    }
    return 0;
}

/* Of libc's own look at the clock the orders would not know. */
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
