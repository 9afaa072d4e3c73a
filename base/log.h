/* log: one line a message on standard error, "2026-01-31T12:00:00.123Z INFO text key=value …", or a JSON object:
 * {"time":"2026-01-31T12:00:00.123Z","level":"info","message":"text","key":"value"}.
 *
 * Thread: any; a line is one write(2). Text from clients is passed through cr_log_quote first (control characters and
 * non-ASCII bytes escaped), so a client cannot forge lines. */
#ifndef CURED_BASE_LOG_H
#define CURED_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cr_log_level { CR_LOG_DEBUG, CR_LOG_INFO, CR_LOG_WARN, CR_LOG_ERROR } cr_log_level;

/* Messages below level are dropped. May be called at any time from any thread. */
void cr_log_set_level(cr_log_level level);
/* That level. */
cr_log_level cr_log_least(void);
/* Lines are JSON objects from now on, or text. */
void cr_log_set_json(bool json);
void cr_log_at(cr_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes in to out[0..cap) with everything but printable ASCII as \xNN, cut to fit; returns out. */
const char *cr_log_quote(char *out, size_t cap, const char *in);

/* What a line says beside its message. */
typedef struct cr_log_field {
    const char *key;
    const char *text; /* NULL: number. Anybody's: it is escaped */
    uint64_t number;
} cr_log_field;
/* A message with fields: `message key=value key="text with spaces"`, or members of the JSON object. */
void cr_log_fields(cr_log_level level, const char *message, const cr_log_field *fields, size_t count);

/* For a message that what clients do could repeat without end. Zero-initialise; one for each message. */
typedef struct cr_log_limit {
    _Atomic uint64_t next_ms, left_out;
} cr_log_limit;
enum { CR_LOG_SELDOM_MS = 1000 };
/* Whether the message may be written at now_ms: once in CR_LOG_SELDOM_MS. *left_out: how often it was not, since it was. */
bool cr_log_due(cr_log_limit *limit, uint64_t now_ms, uint64_t *left_out);
/* A warning behind limit; where some were left out, it ends with their number. */
void cr_warn_seldom(cr_log_limit *limit, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define cr_debug(...) cr_log_at(CR_LOG_DEBUG, __VA_ARGS__)
#define cr_info(...) cr_log_at(CR_LOG_INFO, __VA_ARGS__)
#define cr_warn(...) cr_log_at(CR_LOG_WARN, __VA_ARGS__)
#define cr_error_log(...) cr_log_at(CR_LOG_ERROR, __VA_ARGS__)

#endif
