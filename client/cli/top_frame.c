/* top_frame: one picture of top, as lines of text. Thread: one. Owner: the caller's buffer. */
#include <stdarg.h>
#include <string.h>

#include "client/cli/stats.h"

enum { MOST_USERS = 12, MOST_SLOW = 8 };

typedef struct frame {
    const cJSON *now, *before;
    double seconds;
    char *at;
    size_t cap, used;
} frame;

static void put(frame *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(frame *f, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(f->at + f->used, f->cap - f->used, format, arguments);
    va_end(arguments);
    if (n > 0) f->used += (size_t)n < f->cap - f->used ? (size_t)n : f->cap - f->used - 1;
}

static const cJSON *get(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A second; a daemon that was started anew begins at 0. */
static double rate(const frame *f, double now, double before) {
    return f->seconds > 0 && now > before ? (now - before) / f->seconds : 0;
}

static void head(frame *f) {
    const cJSON *s = f->now, *window = get(s, "window");
    const double up = cli_number(s, "uptime_ms") / 1e3;
    double requests = cli_number(window, "requests"), failed = cli_number(window, "failed"),
           bytes = cli_number(window, "bytes"), seconds = cli_number(window, "ms") / 1e3;
    char text[CLI_WORD];
    if (f->before) {
        requests = rate(f, cli_number(s, "requests_total"), cli_number(f->before, "requests_total"));
        failed = rate(f, cli_number(s, "failed_total"), cli_number(f->before, "failed_total"));
        bytes = rate(f, cli_number(s, "bytes_total"), cli_number(f->before, "bytes_total"));
        seconds = 1;
    }
    if (seconds <= 0) seconds = 1;
    put(f, "cured %s, backend %s, up %.0f:%02.0f:%02.0f\n\n", cli_text(s, "version"), cli_text(s, "backend"),
        (double)(long)(up / 3600), (double)((long)(up / 60) % 60), (double)((long)up % 60));
    put(f, "requests %.0f/s   failed %.1f/s   input %s/s   in flight %.0f   queued %.0f\n", requests / seconds,
        failed / seconds, cli_bytes_text(bytes / seconds, text), cli_number(s, "in_flight"),
        cli_number(s, "queue_depth"));
}

static void stages(frame *f) {
    const cJSON *stage;
    char p50[CLI_WORD], p90[CLI_WORD], p99[CLI_WORD];
    put(f, "\n%-10s %10s %10s %10s %12s   (the last %.0f s)\n", "stage", "p50", "p90", "p99", "calls",
        cli_number(get(f->now, "window"), "ms") / 1e3);
    cJSON_ArrayForEach(stage, get(f->now, "stages")) if (cli_number(stage, "count") > 0)
        put(f, "%-10s %10s %10s %10s %12.0f\n", stage->string, cli_time_text(cli_number(stage, "p50_ns"), p50),
            cli_time_text(cli_number(stage, "p90_ns"), p90), cli_time_text(cli_number(stage, "p99_ns"), p99),
            cli_number(stage, "count"));
}

/* The row of the same name in another list. */
static const cJSON *same(const cJSON *list, const char *name) {
    const cJSON *row;
    cJSON_ArrayForEach(row, list) if (strcmp(cli_text(row, "name"), name) == 0) return row;
    return NULL;
}

static void lanes(frame *f) {
    const cJSON *lane;
    char speed[CLI_WORD], total[CLI_WORD], gpu[CLI_GPU];
    put(f, "\n%-10s %8s %8s %12s %12s   %s\n", "lane", "workers", "busy", "input/s", "input", "device");
    cJSON_ArrayForEach(lane, get(f->now, "lanes")) {
        const cJSON *was = same(get(f->before, "lanes"), cli_text(lane, "name"));
        const double workers = cli_number(lane, "workers"), bytes = cli_number(lane, "bytes");
        const bool lost = cJSON_IsTrue(get(lane, "lost"));
        const double busy =
            was && workers > 0 ? rate(f, cli_number(lane, "busy_ns"), cli_number(was, "busy_ns")) / 1e7 / workers : 0;
        put(f, "%-10s %8.0f ", cli_text(lane, "name"), workers);
        if (was)
            put(f, "%7.0f%% %10s/s ", busy > 100 ? 100 : busy,
                cli_bytes_text(rate(f, bytes, cli_number(was, "bytes")), speed));
        else
            put(f, "%8s %12s ", "", "");
        put(f, "%12s   %s%s%s\n", cli_bytes_text(bytes, total), lost ? "LOST: " : "", cli_text(lane, "device"),
            cli_gpu_text(lane, gpu));
    }
}

static void users(frame *f) {
    const cJSON *user;
    int left = MOST_USERS;
    char bytes[CLI_WORD];
    put(f, "\n%-24s %12s %8s %14s %8s\n", "user", "connections", "calls", "input held", "regions");
    cJSON_ArrayForEach(user, get(f->now, "users")) {
        const cJSON *used = get(user, "used");
        if (left-- == 0) break;
        put(f, "%-24s %12.0f %8.0f %14s %8.0f\n", cli_text(user, "name"), cli_number(used, "connections"),
            cli_number(used, "calls"), cli_bytes_text(cli_number(used, "bytes"), bytes), cli_number(used, "regions"));
    }
}

static void refusals(frame *f) {
    const cJSON *reason;
    bool any = false;
    cJSON_ArrayForEach(reason, get(f->now, "rejected")) {
        put(f, "%s%s %.0f", any ? ", " : "\nrefused for want of: ", reason->string, reason->valuedouble);
        any = true;
    }
    if (any) put(f, "\n");
}

static void slowest(frame *f, const cJSON *log) {
    const cJSON *call;
    int left = MOST_SLOW;
    char total[CLI_WORD], queue[CLI_WORD], run[CLI_WORD], bytes[CLI_WORD];
    if (cJSON_GetArraySize(get(log, "slow")) == 0) return;
    put(f, "\n%10s %10s %10s %10s  %s\n", "slowest", "queue", "run", "input", "what, whose");
    cJSON_ArrayForEach(call, get(log, "slow")) {
        if (left-- == 0) break;
        put(f, "%10s %10s %10s %10s  %s %s %s, %s pid %.0f %s, %s\n",
            cli_time_text(cli_number(call, "total_ns"), total), cli_time_text(cli_number(call, "queue_ns"), queue),
            cli_time_text(cli_number(call, "run_ns"), run), cli_bytes_text(cli_number(call, "bytes"), bytes),
            cli_text(call, "method"), cli_text(call, "ops"), cli_text(call, "dtype"), cli_text(call, "user"),
            cli_number(call, "pid"), cli_text(call, "client"), cli_text(call, "code"));
    }
}

void cli_top_frame(const cJSON *now, const cJSON *before, const cJSON *slow, double seconds, char *out, size_t cap) {
    frame f = {.now = now, .before = before, .seconds = seconds, .at = out, .cap = cap};
    out[0] = 0;
    head(&f);
    stages(&f);
    lanes(&f);
    users(&f);
    refusals(&f);
    slowest(&f, slow);
}
