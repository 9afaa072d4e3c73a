/* log: one message is one line is one write(2) on standard error.
 *
 * Thread: any; the level, what a caller's cr_log_limit counts, and a mutex are the only state. Owner: the process. */
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"

enum { LINE_BYTES = 2048, FIELD_LEAST = 96 };

static _Atomic int least = CR_LOG_INFO;
static _Atomic bool as_json;

void cr_log_set_level(cr_log_level level) { atomic_store_explicit(&least, (int)level, memory_order_relaxed); }

cr_log_level cr_log_least(void) { return (cr_log_level)atomic_load_explicit(&least, memory_order_relaxed); }

void cr_log_set_json(bool json) { atomic_store_explicit(&as_json, json, memory_order_relaxed); }

/* A line that is being made; what has no room is left out. */
typedef struct line {
    char at[LINE_BYTES];
    size_t used;
    bool json;
} line;

/* Beside the newline, and a closing brace. */
static size_t room_of(const line *l) { return sizeof l->at - l->used - (l->json ? 2 : 1); }

static void put(line *l, const char *text, size_t length) {
    const size_t room = room_of(l);
    if (length > room) length = room;
    memcpy(l->at + l->used, text, length);
    l->used += length;
}

static void put_text(line *l, const char *text) { put(l, text, strlen(text)); }

/* Text within quotes: what is not printable ASCII, a quote or a backslash is escaped, as JSON wants it, or for people. */
static void put_quoted(line *l, const char *text) {
    put_text(l, "\"");
    for (; *text; text++) {
        char escaped[8];
        const unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c < 0x7f && c != '"' && c != '\\')
            snprintf(escaped, sizeof escaped, "%c", c);
        else if (c == '"' || c == '\\')
            snprintf(escaped, sizeof escaped, "\\%c", c);
        else
            snprintf(escaped, sizeof escaped, l->json ? "\\u%04x" : "\\x%02x", c);
        if (room_of(l) <= strlen(escaped)) break; /* one that is cut would spoil the line */
        put_text(l, escaped);
    }
    put(l, "\"", 1);
}

/* "2026-01-31T12:00:00.123Z INFO " */
static void begin(line *l, cr_log_level level) {
    static const char *const names[] = {"DEBUG", "INFO", "WARN", "ERROR"}, *const small[] = {"debug", "info", "warn",
                                                                                             "error"};
    struct timespec now;
    struct tm utc;
    char date[32], text[96];
    l->used = 0;
    l->json = atomic_load_explicit(&as_json, memory_order_relaxed);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    if (l->json)
        snprintf(text, sizeof text, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"message\":", date,
                 now.tv_nsec / 1000000, small[level]);
    else
        snprintf(text, sizeof text, "%s.%03ldZ %s ", date, now.tv_nsec / 1000000, names[level]);
    put_text(l, text);
}

/* A log that cannot be written must not stop the daemon, nor be retried for ever: a line for which there is no room is lost.
 * The lock is for the room that was seen: POLLOUT promises a pipe's 4 KiB, and a line has no more. */
static void write_line(const char *text, size_t length) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    pthread_mutex_lock(&mutex);
    ssize_t written = 0;
    if (poll(&room, 1, 0) == 1 && room.revents & POLLOUT) written = write(STDERR_FILENO, text, length);
    if (written < 0 && errno == EINTR) written = write(STDERR_FILENO, text, length);
    if (written != (ssize_t)length) cr_metric_add(log_lost_total, 1);
    pthread_mutex_unlock(&mutex);
}

static bool is_wanted(cr_log_level level) { return (int)level >= atomic_load_explicit(&least, memory_order_relaxed); }

static void end(line *l) {
    if (l->json) l->at[l->used++] = '}';
    l->at[l->used++] = '\n';
    write_line(l->at, l->used);
}

void cr_log_at(cr_log_level level, const char *format, ...) {
    if (!is_wanted(level)) return;
    int saved = errno;
    char text[LINE_BYTES];
    line l;
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(text, sizeof text, format, arguments) < 0) text[0] = 0;
    va_end(arguments);
    begin(&l, level);
    /* Whatever a caller forgot to quote, a message stays one line. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    if (l.json)
        put_quoted(&l, text);
    else
        put_text(&l, text);
    end(&l);
    errno = saved;
}

/* It needs no quotes. */
static bool is_plain(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f || *text == '"' || *text == '\\' || *text == '=') return false;
    return true;
}

static void put_field(line *l, const cr_log_field *field) {
    char number[32];
    put_text(l, l->json ? ",\"" : " ");
    put_text(l, field->key);
    put_text(l, l->json ? "\":" : "=");
    if (field->text && !l->json && field->text[0] && is_plain(field->text)) {
        put_text(l, field->text);
    } else if (field->text) {
        put_quoted(l, field->text);
    } else {
        snprintf(number, sizeof number, "%llu", (unsigned long long)field->number);
        put_text(l, number);
    }
}

void cr_log_fields(cr_log_level level, const char *message, const cr_log_field *fields, size_t count) {
    line l;
    if (!is_wanted(level)) return;
    int saved = errno;
    begin(&l, level);
    if (l.json)
        put_quoted(&l, message);
    else
        put_text(&l, message);
    for (size_t i = 0; i < count; i++)
        if (room_of(&l) > FIELD_LEAST) put_field(&l, &fields[i]);
    end(&l);
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
