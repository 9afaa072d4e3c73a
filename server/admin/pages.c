/* pages: the table of paths, and what makes them. Thread: the loop's. Owner: the door. */
#include "server/admin/pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "server/call/ready.h"

static const char text_type[] = "text/plain; charset=utf-8";
static const char json_type[] = "application/json";
static const char nothing[] = "default-src 'none'; frame-ancestors 'none'; sandbox";

typedef struct making {
    cr_calls *calls;
    bool trusted;
    cr_bytes *body;
    char *policy; /* Content-Security-Policy, where the row has none */
} making;

static bool print(cr_bytes *body, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool print(cr_bytes *body, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return n >= 0 && cr_bytes_add(body, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* Each gives the status of HTTP; 500: there is no memory. */
static unsigned make_metrics(const making *m) {
    uint8_t *to = cr_bytes_room(m->body, CR_STATS_EXPOSE_BYTES, CR_STATS_EXPOSE_BYTES);
    const size_t n = to ? cr_stats_expose(&m->calls->stats, (char *)to, CR_STATS_EXPOSE_BYTES) : 0;
    m->body->len += (uint32_t)n;
    return n ? 200 : 500;
}

/* A client that is not trusted sees no names and no calls of others. */
static unsigned make_stats(const making *m) {
    static cr_wire_stats stats; /* the loop's: too large for its stack */
    static cr_wire_slow_log slow;
    const cr_stats_asker asker = {.all = m->trusted};
    uint8_t *to = cr_bytes_room(m->body, CR_WIRE_JSON_BYTES, CR_WIRE_JSON_BYTES);
    cr_stats_snapshot(&m->calls->stats, &asker, &stats);
    if (m->trusted) cr_stats_slow(&m->calls->stats, &asker, &slow);
    const size_t n = to ? cr_wire_stats_json(&stats, m->trusted ? &slow : NULL, (char *)to, CR_WIRE_JSON_BYTES) : 0;
    m->body->len += (uint32_t)n;
    return n && cr_bytes_add(m->body, "\n", 1) ? 200 : 500;
}

/* The page for people, whose script and style alone are run: they carry a word that is new each time. */
extern const uint8_t cr_admin_page[];
extern const size_t cr_admin_page_bytes;

static unsigned make_page(const making *m) {
    static const char mark[] = "\"NONCE\"";
    uint8_t random[16];
    char nonce[2 * sizeof random + 1];
    const uint8_t *at = cr_admin_page, *end = at + cr_admin_page_bytes, *found;
    if (getrandom(random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random) return 500;
    for (size_t i = 0; i < sizeof random; i++) snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    snprintf(m->policy, sizeof(((cr_pages *)0)->policy),
             "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; connect-src 'self'; img-src data:; "
             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             nonce, nonce);
    while ((found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1))) {
        if (!cr_bytes_add(m->body, at, (size_t)(found - at)) || !print(m->body, "\"%s\"", nonce)) return 500;
        at = found + sizeof mark - 1;
    }
    return cr_bytes_add(m->body, at, (size_t)(end - at)) ? 200 : 500;
}

static unsigned make_live(const making *m) { return print(m->body, "{\"live\":true}\n") ? 200 : 500; }

static unsigned make_ready(const making *m) {
    cr_error why;
    const char *reason = cr_calls_unready(m->calls, &why);
    if (!reason) return print(m->body, "{\"ready\":true}\n") ? 200 : 500;
    return print(m->body, "{\"ready\":false,\"reason\":\"%s\",\"message\":\"%s\"}\n", reason, why.text) ? 503 : 500;
}

/* A row for each path. kept: its place among those that are kept, -1: it costs nothing; trusted clients have the next place. */
static const struct row {
    const char *path, *type, *policy;
    unsigned (*make)(const making *m);
    int kept;
} rows[] = {
    {"/", "text/html; charset=utf-8", NULL, make_page, -1},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", nothing, make_metrics, 0},
    {"/stats.json", json_type, nothing, make_stats, 1},
    {"/healthz/live", json_type, nothing, make_live, -1},
    {"/healthz/ready", json_type, nothing, make_ready, -1},
};

cr_page cr_pages_say(uint16_t status, const char *text, char *room, size_t room_bytes) {
    const int n = snprintf(room, room_bytes, "%s\n", text);
    const size_t length = n < 0 ? 0 : (size_t)n < room_bytes ? (size_t)n : room_bytes - 1;
    return (cr_page){status, text_type, nothing, (const uint8_t *)room, length};
}

static cr_page make(const struct row *row, const making *m) {
    const unsigned status = row->make(m);
    if (status == 500) m->body->len = 0;
    return (cr_page){(uint16_t)status, row->type, row->policy ? row->policy : m->policy, m->body->at,
                     cr_bytes_left(m->body)};
}

static cr_page make_or_keep(cr_page_kept *kept, const struct row *row, making *m) {
    const uint64_t now = cr_now_ns();
    m->body = &kept->body;
    if (cr_bytes_left(m->body) && now < kept->made_ns + CR_PAGES_OFTEN * kept->cost_ns)
        return (cr_page){200, row->type, row->policy, m->body->at, cr_bytes_left(m->body)};
    m->body->len = 0;
    const cr_page page = make(row, m);
    kept->made_ns = cr_now_ns();
    kept->cost_ns = kept->made_ns - now;
    return page;
}

cr_page cr_pages_get(cr_pages *pages, cr_calls *calls, const char *path, bool trusted) {
    static char room[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->path, path) != 0) continue;
        making m = {calls, trusted, &pages->passing, pages->policy};
        if (row->kept >= 0) return make_or_keep(&pages->kept[row->kept + (trusted && row->kept)], row, &m);
        pages->passing.len = 0;
        return make(row, &m);
    }
    return cr_pages_say(404, "there is no such page: /, /metrics, /stats.json, /healthz/live and /healthz/ready are",
                        room, sizeof room);
}

void cr_pages_free(cr_pages *pages) {
    for (size_t i = 0; i < CR_PAGES_KEPT; i++) cr_bytes_free(&pages->kept[i].body);
    cr_bytes_free(&pages->passing);
}
