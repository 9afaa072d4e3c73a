/* cured-client stats, slowlog, health: what the daemon knows of its calls, and whether it takes some.
 *
 * Thread: one. */
#include <string.h>

#include "client/cli/stats.h"

static void print_rows(const cJSON *stats, const char *list, const char *word) {
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(stats, list))
        printf("%s %s %.0f\n", word, row->string, row->valuedouble);
}

static void print_stages(const cJSON *stats) {
    const cJSON *stage;
    char p50[CLI_WORD], p90[CLI_WORD], p99[CLI_WORD];
    cJSON_ArrayForEach(stage, cJSON_GetObjectItemCaseSensitive(stats, "stages"))
        printf("stage %s: %.0f, p50 %s, p90 %s, p99 %s\n", stage->string, cli_number(stage, "count"),
               cli_time_text(cli_number(stage, "p50_ns"), p50), cli_time_text(cli_number(stage, "p90_ns"), p90),
               cli_time_text(cli_number(stage, "p99_ns"), p99));
}

static void print_stats(const cJSON *stats) {
    const cJSON *row, *window = cJSON_GetObjectItemCaseSensitive(stats, "window");
    const double seconds = cli_number(window, "ms") / 1e3;
    printf("version %s\nbackend %s\nbackend_reason %s\nuptime_s %.3f\n", cli_text(stats, "version"),
           cli_text(stats, "backend"), cli_text(stats, "backend_reason"), cli_number(stats, "uptime_ms") / 1e3);
    static const char *const totals[] = {"requests_total", "failed_total", "bytes_total", "in_flight", "queue_depth"};
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++)
        printf("%s %.0f\n", totals[i], cli_number(stats, totals[i]));
    printf("window_s %.1f\n", seconds);
    if (seconds > 0)
        printf("requests_per_s %.1f\nbytes_per_s %.0f\n", cli_number(window, "requests") / seconds,
               cli_number(window, "bytes") / seconds);
    print_stages(stats);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(stats, "requests"))
        printf("requests %s %s %s %.0f\n", cli_text(row, "method"), cli_text(row, "source"), cli_text(row, "code"),
               cli_number(row, "count"));
    print_rows(stats, "ops", "op");
    print_rows(stats, "dtypes", "bytes");
    print_rows(stats, "rejected", "rejected");
    print_rows(stats, "connections", "connections");
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(stats, "lanes")) {
        char gpu[CLI_GPU];
        printf("lane %s: %s, %.0f workers%s, %.0f bytes, %.0f launches, busy %.3f s%s\n", cli_text(row, "name"),
               cli_text(row, "device"), cli_number(row, "workers"),
               cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "lost")) ? ", lost" : "", cli_number(row, "bytes"),
               cli_number(row, "launches"), cli_number(row, "busy_ns") / 1e9, cli_gpu_text(row, gpu));
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(stats, "pools")) printf(
        "pool %s %.0f of %.0f\n", cli_text(row, "name"), cli_number(row, "used_bytes"), cli_number(row, "total_bytes"));
}

static void print_slow(const cJSON *log) {
    const cJSON *call;
    cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(log, "slow")) {
        static const char *const stages[] = {"receive_ns", "queue_ns", "run_ns", "send_ns"};
        char total[CLI_WORD], part[CLI_WORD], bytes[CLI_WORD];
        printf("%s %s %s %s %s %s", cli_time_text(cli_number(call, "total_ns"), total), cli_text(call, "method"),
               cli_text(call, "ops"), cli_text(call, "dtype"), cli_text(call, "source"),
               cli_bytes_text(cli_number(call, "bytes"), bytes));
        for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
            if (cli_number(call, stages[i]) > 0)
                printf(", %.*s %s", (int)(strlen(stages[i]) - 3), stages[i],
                       cli_time_text(cli_number(call, stages[i]), part));
        if (*cli_text(call, "lanes") != '\0') printf(", lanes %s", cli_text(call, "lanes"));
        printf(", %s, %s", cli_text(call, "code"), cli_text(call, "user"));
        if (cli_number(call, "pid") > 0) printf(" pid %.0f", cli_number(call, "pid")); /* over TCP nobody knows it */
        printf(" %s, %.0f s ago\n", cli_text(call, "client"), cli_number(call, "age_ms") / 1e3);
    }
}

static int show(const cli_options *o, bool slow) {
    cured_conn *conn;
    cured_call *call = NULL;
    cJSON *read;
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    code = cli_ask(o, conn, slow, &call, &read);
    if (code == EXIT_OK) {
        if (o->json)
            puts(cured_call_json(call));
        else if (slow)
            print_slow(read);
        else
            print_stats(read);
        code = cli_flush();
    }
    cJSON_Delete(read);
    cured_call_free(call);
    cured_close(conn);
    return code;
}

int cmd_stats(const cli_options *o) { return show(o, false); }
int cmd_slowlog(const cli_options *o) { return show(o, true); }

/* An empty array is the smallest call: it is let in where others are. */
int cmd_health(const cli_options *o) {
    static const cured_op op = CURED_OP_COUNT;
    cured_conn *conn;
    cured_call *call = NULL;
    cured_error error;
    cured_options options = o->call;
    if (options.timeout_ms == 0) options.timeout_ms = CLI_ASK_MS;
    int code = cli_connect(o, true, &conn);
    if (code != EXIT_OK) return code;
    if (cured_reduce_buffer(conn, CURED_F32, &op, 1, NULL, 0, &options, &call, &error) != CURED_OK ||
        cured_wait(call, &error) != CURED_OK) {
        code = cli_call_failed(o, conn, &error, NULL);
    } else {
        if (o->json)
            puts("{\"ready\":true}");
        else if (!o->quiet)
            puts("ready");
        code = cli_flush();
    }
    cured_call_free(call);
    cured_close(conn);
    return code;
}
