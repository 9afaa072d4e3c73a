/* call_log: a line in the log for a call that is over, by the options log_calls and slow_ms; and for a connection that is refused
 * for want of a credential.
 *
 * Lines of failed and slow calls are limited, because clients can make as many as they like: for each user LINES_OF_USER at once
 * and then one a second; for all users together LINES at once and then LINES_PER_S. Where log_calls is `all`, answered calls have
 * a larger limit of their own. What is left out is counted: the next line of that user says how many, and a line at the latest
 * TELL_MS afterwards how many of all.
 * Thread: the loop's. Owner: the stats. */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "server/stats/stats.h"

enum {
    LINES_OF_USER = 10,
    LINES = 50,
    LINES_PER_S = 5,
    LINES_OF_ALL = 2000, /* answered calls, where all are wanted: at once, and a second */
    TELL_MS = 10000,
};

/* Takes a line of so many at once that come back at so many a second. False: none is left. */
static bool take(cr_stats_bucket *b, uint64_t most, uint64_t per_s, uint64_t now_ms) {
    const uint64_t gained = (now_ms - b->since_ms) * per_s / 1000;
    if (gained) b->since_ms += gained * 1000 / per_s;
    b->used = gained < b->used ? b->used - gained : 0;
    if (!b->used) b->since_ms = now_ms;
    if (b->used >= most) return false;
    b->used++;
    return true;
}

/* Users whose keys fall together share a bucket; clients cannot choose such keys. */
static cr_stats_bucket *bucket_of(cr_stats *s, uint64_t owner) {
    return &s->log_users[cr_hash(s->log_factor, owner, CR_STATS_LOG_BITS)];
}

/* Whether the line may be written; how many of the user's were not since the last. */
static bool may_write(cr_stats *s, const cr_peer *peer, uint64_t now_ms, bool limited, uint64_t *left_out) {
    cr_stats_bucket *own = bucket_of(s, peer->owner);
    const bool may = limited ? take(own, LINES_OF_USER, 1, now_ms) && take(&s->log_all, LINES, LINES_PER_S, now_ms)
                             : take(&s->log_answered, LINES_OF_ALL, LINES_OF_ALL, now_ms);
    *left_out = 0;
    if (!may) {
        own->left_out++;
        if (!s->left_out++ && s->sources.timers) cr_timer_set(s->sources.timers, &s->log_timer, now_ms + TELL_MS);
        return false;
    }
    *left_out = own->left_out;
    s->left_out -= own->left_out < s->left_out ? own->left_out : s->left_out;
    own->left_out = 0;
    return true;
}

void cr_stats_log_left_out(cr_timer *timer) {
    cr_stats *s = cr_container(timer, cr_stats, log_timer);
    if (!s->left_out) return;
    cr_log_fields(CR_LOG_INFO, "calls without a line of their own", &(cr_log_field){"count", NULL, s->left_out}, 1);
    s->left_out = 0;
    for (uint32_t i = 0; i < 1u << CR_STATS_LOG_BITS; i++) s->log_users[i].left_out = 0;
}

static void write_line(const cr_stats *s, const cr_record *r, const char *message, uint64_t left_out) {
    cr_wire_slow_call c;
    cr_log_field fields[24];
    size_t n = 0;
    char why[CR_ERROR_TEXT] = "";
    cr_stats_describe(s, r, &c);
    if (r->why) snprintf(why, sizeof why, "%s", r->why);
#define TEXT(name, value) \
    if ((value)[0]) fields[n++] = (cr_log_field){name, value, 0}
#define NUMBER(name, value) \
    fields[n++] = (cr_log_field) { name, NULL, value }
#define STAGE(name, value) \
    if ((value) != CR_NO_STAGE) NUMBER(name, (value) / 1000)
    NUMBER("conn", c.connection);
    TEXT("user", c.user);
    if (c.pid) NUMBER("pid", c.pid);
    TEXT("client", c.client);
    TEXT("front", c.front);
    TEXT("transport", c.transport);
    TEXT("method", c.method);
    TEXT("source", c.source);
    TEXT("ops", c.ops);
    TEXT("dtype", c.dtype);
    if (c.source[0] != 'n') NUMBER("bytes", c.bytes);
    TEXT("status", cr_status_name(r->code));
    STAGE("receive_us", r->stages[CR_STAGE_receive]);
    STAGE("queue_us", r->stages[CR_STAGE_queue]);
    STAGE("run_us", r->stages[CR_STAGE_run]);
    STAGE("send_us", r->stages[CR_STAGE_send]);
    STAGE("total_us", r->stages[CR_STAGE_total]);
    if (c.bytes && c.total_ns) NUMBER("bytes_per_s", (uint64_t)((double)c.bytes * 1e9 / (double)c.total_ns));
    TEXT("lanes", c.lanes);
    TEXT("why", why);
    if (left_out) NUMBER("left_out", left_out);
#undef TEXT
#undef NUMBER
#undef STAGE
    cr_log_fields(CR_LOG_INFO, message, fields, n);
}

void cr_stats_log(cr_stats *s, const cr_record *r) {
    const cr_config *config = s->sources.config;
    const uint64_t total = r->stages[CR_STAGE_total];
    const bool failed = r->code != CR_OK, slow = total != CR_NO_STAGE && total / 1000000 >= config->slow_ms;
    uint64_t left_out;
    if (!failed && !(slow && config->log_calls >= CR_LOG_CALLS_SLOW) && config->log_calls != CR_LOG_CALLS_ALL) return;
    const bool limited = failed || (slow && config->log_calls == CR_LOG_CALLS_SLOW);
    if (may_write(s, r->peer, r->ended_ms, limited, &left_out))
        write_line(s, r, failed ? "call failed" : slow ? "slow call" : "call", left_out);
}

void cr_stats_stranger(cr_stats *s, const cr_peer *peer, const cr_error *why) {
    const cr_config *config = s->sources.config;
    char user[CR_NAME_MAX_BYTES + 1];
    uint64_t left_out;
    size_t n = 2;
    cr_stats_rejected(s, CR_REASON_credential);
    if (!config || config->log_calls == CR_LOG_CALLS_OFF || !may_write(s, peer, cr_now_ms(), true, &left_out)) return;
    cr_peer_name(peer->owner, user, sizeof user);
    cr_log_field fields[7] = {{"conn", NULL, peer->number}, {"user", user, 0}};
    if (peer->pid) fields[n++] = (cr_log_field){"pid", NULL, peer->pid};
    fields[n++] = (cr_log_field){"transport", cr_path_names[peer->path], 0};
    fields[n++] = (cr_log_field){"status", cr_status_name(why->code), 0};
    fields[n++] = (cr_log_field){"why", why->text, 0};
    if (left_out) fields[n++] = (cr_log_field){"left_out", NULL, left_out};
    cr_log_fields(CR_LOG_INFO, "connection refused", fields, n);
}
