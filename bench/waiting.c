/* waiting: `cured-bench waiting`: what a daemon costs that waits for work, and how soon it answers: with spin_us 0 and as it comes,
 * in turn. Costs are the CPU time of the daemon's process, by /proc/PID/stat.
 *
 * Thread: main. Owner: everything here. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/floors.h"
#include "bench/options.h"
#include "cured/cured.h"

enum { COUNT = 1024, WARM = 100, SAMPLES = 1 << 20, ROUNDS_MOST = 32 };

typedef enum way { INLINE, REGION } way;

/* What is asked of a daemon, and how often. */
static const struct {
    const char *name;
    way way;
    double rate; /* calls a second; 0: one after the other; negative: none */
} rows[] = {{"no calls", INLINE, -1},
            {"4 KiB inline, 100 a second", INLINE, 100},
            {"4 KiB region, 100 a second", REGION, 100},
            {"4 KiB inline, 1,000 a second", INLINE, 1000},
            {"4 KiB region, 1,000 a second", REGION, 1000},
            {"4 KiB inline, one by one", INLINE, 0},
            {"4 KiB region, one by one", REGION, 0}};
enum { ROWS = sizeof rows / sizeof rows[0], DAEMONS = 2 };

static const char *const daemons[DAEMONS] = {"spin_us 0", "default"};

typedef struct waiting {
    floors_options load;
    pid_t pid;
    cured_conn *conn;
    cured_array *array;
    cured_region *region;
    double *seconds;    /* of SAMPLES calls */
    int round[DAEMONS]; /* the next one */
    double share[DAEMONS][ROWS][ROUNDS_MOST], median[DAEMONS][ROWS][ROUNDS_MOST], p99[DAEMONS][ROWS][ROUNDS_MOST];
} waiting;

static double cpu_seconds(pid_t pid) {
    char path[64], text[512] = "";
    unsigned long long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(text, sizeof text, f)) {
        const char *name_end = strrchr(text, ')');
        if (name_end) sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system);
    }
    if (f) fclose(f);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* Seconds; negative: it failed. */
static double ask(waiting *w, way how) {
    const cured_op op = CURED_OP_SUM;
    cured_call *call = NULL;
    cured_error error;
    char text[CURED_TEXT_BYTES] = "";
    const double start = bench_now();
    cured_status status =
        how == INLINE
            ? cured_reduce_buffer(w->conn, CURED_F32, &op, 1, cured_array_data(w->array), COUNT, NULL, &call, &error)
            : cured_region_reduce(w->region, CURED_F32, &op, 1, 0, CURED_TO_END, NULL, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    const double took = bench_now() - start;
    if (status == CURED_OK) cured_value_text(cured_call_value(call, 0), text, sizeof text);
    cured_call_free(call);
    if (status == CURED_OK && strcmp(text, "523776") == 0) return took;
    fprintf(stderr, "cured-bench: a sum was %s, 523776 is right\n", status == CURED_OK ? text : error.text);
    return -1;
}

static bool connect_to(waiting *w) {
    cured_error error;
    char address[128];
    snprintf(address, sizeof address, "unix:%s", w->load.socket);
    bool good = cured_connect(address, NULL, &w->conn, &error) == CURED_OK &&
                cured_array_alloc(CURED_F32, COUNT, &w->array, &error) == CURED_OK &&
                cured_region_fd(w->conn, cured_array_fd(w->array), &w->region, &error) == CURED_OK;
    if (!good) fprintf(stderr, "cured-bench: %s\n", error.text);
    for (int i = 0; good && i < COUNT; i++) ((float *)cured_array_data(w->array))[i] = (float)i;
    for (int i = 0; good && i < WARM; i++) good = ask(w, INLINE) >= 0 && ask(w, REGION) >= 0;
    return good;
}

/* One row for load.seconds: the calls' times, and the daemon's share of a core. */
static bool measure(waiting *w, int daemon, int row, int round) {
    const double rate = rows[row].rate, start = bench_now(), busy = cpu_seconds(w->pid);
    size_t n = 0;
    if (rate < 0) usleep((useconds_t)(w->load.seconds * 1e6));
    while (rate >= 0 && bench_now() - start < w->load.seconds && n < SAMPLES) {
        if ((w->seconds[n++] = ask(w, rows[row].way)) < 0) return false;
        const double due = rate > 0 ? start + (double)n / rate - bench_now() : 0;
        if (due > 0) usleep((useconds_t)(due * 1e6));
    }
    w->share[daemon][row][round] = (cpu_seconds(w->pid) - busy) / (bench_now() - start) * 100;
    if (!n) return true;
    w->median[daemon][row][round] = bench_median(w->seconds, n) * 1e6;
    w->p99[daemon][row][round] = w->seconds[n * 99 / 100] * 1e6;
    return true;
}

/* A round of all rows: 1. */
static double run_round(void *context, int daemon) {
    waiting *w = context;
    w->load.spin_us = daemon == 0 ? "0" : NULL;
    w->pid = floors_daemon_start(&w->load, -1);
    bool good = w->pid > 0 && connect_to(w);
    for (int row = 0; good && row < ROWS; row++)
        if (bench_wanted(w->load.only, rows[row].name)) good = measure(w, daemon, row, w->round[daemon]);
    w->round[daemon]++;
    cured_region_free(w->region);
    cured_close(w->conn);
    cured_array_free(w->array);
    floors_stop(w->pid);
    return good ? 1 : -1;
}

static void print(const waiting *w) {
    const size_t rounds = (size_t)w->load.rounds;
    for (int row = 0; row < ROWS; row++) {
        if (!bench_wanted(w->load.only, rows[row].name)) continue;
        for (int d = 0; d < DAEMONS; d++) {
            const bench_spread share = bench_spread_of(w->share[d][row], rounds),
                               median = bench_spread_of(w->median[d][row], rounds);
            printf("%-30s %-10s %6.2f %% of a core [%.2f-%.2f]", rows[row].name, daemons[d], share.median, share.least,
                   share.most);
            if (rows[row].rate >= 0)
                printf("   %.1f us [%.1f-%.1f], p99 %.1f", median.median, median.least, median.most,
                       bench_spread_of(w->p99[d][row], rounds).median);
            printf("\n");
        }
    }
}

int bench_waiting(int argc, char **argv) {
    static waiting w = {.load = {.rounds = 5, .seconds = 2}};
    floors_defaults(&w.load);
    const bench_option options[] = {
        {"rounds", BENCH_NUMBER, &w.load.rounds, "N", .what = "rounds (5)", .least = 1, .most = ROUNDS_MOST},
        {"seconds", BENCH_REAL, &w.load.seconds, "S", .what = "of each row (2)", .least = 0.001, .most = 3600},
        {"only", BENCH_TEXT, &w.load.only, "TEXT", .what = "rows whose name contains TEXT"},
        {"daemon", BENCH_TEXT, &w.load.daemon, "PATH", .what = "the daemon (cured beside this program)"},
        {"dir", BENCH_TEXT, &w.load.dir, "DIR", .what = "for the socket (TMPDIR, else /var/tmp)"},
    };
    const int code = bench_options(options, sizeof options / sizeof options[0],
                                   "The daemon runs with --cpu-workers 1, on any core.", argc, argv);
    if (code >= 0) return code;
    floors_begin(&w.load);
    bench_table table = {0};
    bench_table_open(&table, argc, argv, NULL, NULL, 0);
    printf("%d rounds, the two daemons in turn; medians [least-most] of the rounds\n", w.load.rounds);
    w.seconds = malloc(SAMPLES * sizeof *w.seconds);
    bench_race race = {.count = DAEMONS, .rounds = w.load.rounds, .swap = true, .measure = run_round, .context = &w};
    const bool good = w.seconds != NULL && bench_race_run(&race);
    if (good) print(&w);
    bench_race_end(&race);
    free(w.seconds);
    return good ? 0 : 1;
}
