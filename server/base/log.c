/* log: one message is one line is one write(2) on standard error.
 *
 * Thread: any; the level, what a caller's cr_log_limit counts, and a mutex are the only state. Owner: the process. */
#include "server/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"

enum { LINE_BYTES = 2048 };

static _Atomic int least = CR_LOG_INFO;

void cr_log_set_level(cr_log_level level) { atomic_store_explicit(&least, (int)level, memory_order_relaxed); }

/* "2026-01-31T12:00:00.123Z INFO " into line; returns its length. */
static size_t put_prefix(char *line, size_t cap, cr_log_level level) {
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(line, cap, "%Y-%m-%dT%H:%M:%S", &utc);
    int more = snprintf(line + used, cap - used, ".%03ldZ %s ", now.tv_nsec / 1000000, names[level]);
    return used + (size_t)more;
}

/* A log that cannot be written must not stop the daemon, nor be retried for ever: a line for which there is no room is lost.
 * The lock is for the room that was seen: POLLOUT promises a pipe's 4 KiB, and a line has no more. */
static void write_line(const char *line, size_t length) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    pthread_mutex_lock(&mutex);
    ssize_t written = 0;
    if (poll(&room, 1, 0) == 1 && room.revents & POLLOUT) written = write(STDERR_FILENO, line, length);
    if (written < 0 && errno == EINTR) written = write(STDERR_FILENO, line, length);
    (void)written;
    pthread_mutex_unlock(&mutex);
}

void cr_log_at(cr_log_level level, const char *format, ...) {
    if ((int)level < atomic_load_explicit(&least, memory_order_relaxed)) return;
    int saved = errno;
    char line[LINE_BYTES];
    size_t start = put_prefix(line, sizeof line, level);
    size_t room = sizeof line - start - 1; /* the newline takes the place of the NUL */
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + start, room + 1, format, arguments);
    va_end(arguments);
    size_t length = wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room;
    /* Whatever a caller forgot to quote, a message stays one line. */
    for (size_t i = start; i < start + length; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = '?';
    line[start + length] = '\n';
    write_line(line, start + length + 1);
    errno = saved;
}

bool cr_log_due(cr_log_limit *limit, uint64_t now_ms, uint64_t *left_out) {
    uint64_t next = atomic_load(&limit->next_ms);
    if (now_ms < next || !atomic_compare_exchange_strong(&limit->next_ms, &next, now_ms + CR_LOG_SELDOM_MS)) {
        atomic_fetch_add(&limit->left_out, 1);
        return false;
    }
    *left_out = atomic_exchange(&limit->left_out, 0);
    return true;
}

void cr_warn_seldom(cr_log_limit *limit, const char *format, ...) {
    char text[LINE_BYTES];
    uint64_t left_out;
    if (!cr_log_due(limit, cr_now_ms(), &left_out)) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (left_out)
        cr_warn("%s (and %llu times before)", text, (unsigned long long)left_out);
    else
        cr_warn("%s", text);
}

const char *cr_log_quote(char *out, size_t cap, const char *in) {
    static const char hex[] = "0123456789abcdef";
    size_t used = 0;
    if (cap == 0) return "";
    for (; *in; in++) {
        unsigned char c = (unsigned char)*in;
        size_t need = c >= ' ' && c < 0x7f ? 1 : 4;
        if (used + need >= cap) break;
        if (need == 1) {
            out[used++] = (char)c;
        } else {
            out[used++] = '\\';
            out[used++] = 'x';
            out[used++] = hex[c >> 4];
            out[used++] = hex[c & 15];
        }
    }
    out[used] = '\0';
    return out;
}
