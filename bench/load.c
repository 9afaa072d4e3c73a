/* load: `cured-bench load`: a daemon under a load of calls, as its users make them: any mix, at rates or at a concurrency.
 *
 * Every answer is compared with the bits that this process folds for the same array.
 * Thread: main; load_run.c starts others. Owner: this file owns the mix and the rows. */
#include "bench/load.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/options.h"

typedef struct plan {
    load_options options;
    load_mix mix;
    load_row rows[LOAD_ROWS_MOST];
    size_t count;
} plan;

static bool add_kind(void *to, const char *word) { return load_mix_add(to, word); }

static bool add_address(void *to, const char *word) {
    load_options *o = to;
    if (o->address_count == LOAD_ADDRESSES_MOST) return false;
    o->addresses[o->address_count] = strdup(word);
    return o->addresses[o->address_count++] != NULL;
}

static bool add_row(plan *p, const char *word, bool is_rate) {
    char *end;
    double value = strtod(word, &end);
    if (*end == 'k' || *end == 'K') value *= 1e3, end++;
    if (*end == 'M') value *= 1e6, end++;
    if (*end || !(value >= 0.01) || value > (is_rate ? 1e9 : 1e6) || p->count == LOAD_ROWS_MOST) return false;
    p->rows[p->count++] = (load_row){.rate = is_rate ? value : 0, .concurrency = is_rate ? 0 : (int)value};
    return is_rate || value >= 1;
}

static bool add_rate(void *to, const char *word) { return add_row(to, word, true); }
static bool add_concurrency(void *to, const char *word) { return add_row(to, word, false); }

static const char examples[] =
    "KIND is OPS:DTYPE:BYTES[:INPUT[:WEIGHT]]; OPS are joined by +, describe is eight of them; "
    "INPUT is bytes (sent), memfd or file (passed by descriptor) or region (kept open). "
    "Tokens and certificates come from the environment, as for cured-client.\n"
    "  cured-bench load --rates 1K,10K,50K --plot load.svg \\\n"
    "    --mix sum:f32:4K,describe:f64:1M:memfd:2\n"
    "  cured-bench load --connections 1000 --concurrency 1000 \\\n"
    "    --connect unix:/run/cured/cured.sock\n"
    "Exit status: 0 when every answer was right; calls that ended with a status are counted, not wrong.";

static int parse(int argc, char **argv, plan *p) {
    load_options *o = &p->options;
    const bench_option options[] = {
        {"connect", BENCH_WORDS, o, "ADDRESS",
         .what = "of daemons, which the connections take in turn (the default socket)", .each = add_address},
        {"mix", BENCH_WORDS, &p->mix, "KIND", .what = "of calls (sum:f32:4K)", .each = add_kind},
        {"rates", BENCH_WORDS, p, "N", .what = "a row each: calls a second that begin, whatever became of others",
         .each = add_rate},
        {"concurrency", BENCH_WORDS, p, "N", .what = "a row each: calls in flight (1, 4, 16, 64, without --rates)",
         .each = add_concurrency},
        {"connections", BENCH_NUMBER, &o->connections, "N", .what = "at once (1)", .least = 1, .most = 65536},
        {"threads", BENCH_NUMBER, &o->threads, "N", .what = "that share the connections (1)", .least = 1, .most = 256},
        {"seconds", BENCH_REAL, &o->seconds, "S", .what = "that a row measures (5)", .least = 0.01, .most = 86400},
        {"warm-up", BENCH_REAL, &o->warm_up, "S", .what = "before that (1)", .least = 0, .most = 86400},
        {"even", BENCH_SWITCH, &o->even, .what = "starts at equal distances, not at random"},
        {"timeout-ms", BENCH_NUMBER, &o->timeout_ms, "N", .what = "of a call; 0: none (0)", .least = 0,
         .most = 86400000},
        {"retries", BENCH_NUMBER, &o->retries, "N", .what = "of a call that was turned away (0)", .least = 0,
         .most = 1000},
        {"dir", BENCH_TEXT, &o->dir, "DIR", .what = "for files of the input file (TMPDIR, else /var/tmp)"},
        {"json", BENCH_TEXT, &o->json, "FILE", .what = "writes the figures to FILE"},
        {"plot", BENCH_TEXT, &o->plot, "FILE", .what = "draws latency against load, as SVG"},
    };
    return bench_options(options, sizeof options / sizeof *options, examples, argc, argv);
}

/* What was not asked for. False: a sentence went to stderr. */
static bool complete(plan *p) {
    static const int usual[] = {1, 4, 16, 64};
    const char *temporary = getenv("TMPDIR");
    if (!p->options.dir) p->options.dir = temporary && *temporary ? temporary : "/var/tmp";
    if (!p->mix.count && !load_mix_add(&p->mix, "sum:f32:4K")) return false;
    for (size_t i = 0; !p->count && i < sizeof usual / sizeof *usual; i++) p->rows[i].concurrency = usual[i];
    if (!p->count) p->count = sizeof usual / sizeof *usual;
    if (p->options.threads > p->options.connections) {
        fprintf(stderr, "cured-bench load: --threads %d: each has a connection at least, of which there are %d\n",
                p->options.threads, p->options.connections);
        return false;
    }
    for (size_t i = 0; i < p->count; i++) {
        p->rows[i].kinds = calloc(p->mix.count, sizeof *p->rows[i].kinds);
        if (!p->rows[i].kinds) return false;
    }
    return true;
}

/* 0, 1: an answer was wrong, or an exit status of its own. */
static int measure(plan *p, load_runner *runner, const char *machine, const char *command) {
    const char *server = load_runner_server(runner);
    const load_options *o = &p->options;
    char title[512];
    uint64_t wrong = 0;
    printf(
        "machine: %s\ncommand: %s\n%s; %d connections, %d threads; %g s a row after %g s; each answer is checked\n\n",
        machine, command, server, o->connections, o->threads, o->seconds, o->warm_up);
    load_print_head();
    for (size_t i = 0; i < p->count; i++) {
        if (!load_runner_measure(runner, &p->rows[i])) return 69;
        load_print_row(&p->mix, &p->rows[i]);
        wrong += p->rows[i].all.wrong;
    }
    snprintf(title, sizeof title, "%s, %s", p->mix.count == 1 ? p->mix.kinds[0].text : "a mix of calls", machine);
    if ((o->json && !load_write_json(o->json, machine, command, server, &p->mix, p->rows, p->count)) ||
        (o->plot && !load_write_plot(o->plot, title, p->rows, p->count))) {
        fprintf(stderr, "cured-bench load: cannot write %s\n", o->json ? o->json : o->plot);
        return 74;
    }
    return wrong ? 1 : 0;
}

int bench_load(int argc, char **argv) {
    plan *p = calloc(1, sizeof *p); /* rows are large */
    char machine[256], command[1024];
    if (!p) return 71;
    p->options = (load_options){.connections = 1, .threads = 1, .seconds = 5, .warm_up = 1, .seed = 20260104};
    bench_command(argc, argv, command, sizeof command);
    int code = parse(argc, argv, p);
    if (code < 0) code = complete(p) ? -1 : 64;
    if (code < 0) {
        signal(SIGPIPE, SIG_IGN);
        bench_machine(machine, sizeof machine);
        load_runner *runner =
            load_mix_fill(&p->mix, p->options.dir, p->options.seed) ? load_runner_new(&p->options, &p->mix) : NULL;
        code = runner ? measure(p, runner, machine, command) : 69;
        load_runner_free(runner);
    }
    load_mix_free(&p->mix);
    for (size_t i = 0; i < p->count; i++) free(p->rows[i].kinds);
    for (size_t i = 0; i < p->options.address_count; i++) free((void *)(uintptr_t)p->options.addresses[i]);
    free(p);
    return code;
}
