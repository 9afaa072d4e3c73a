/* floors: `cured-bench floors`: the daemon under requests, uploads and files, each beside a floor of the same run.
 *
 * Thread: main. Owner: everything here. */
#include "bench/floors.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"

static bool json_more;

bool floors_wanted(const floors_options *options, const char *name) {
    return !options->only || strstr(name, options->only) != NULL;
}

bool floors_rounds(floors_row *row, int rounds, floors_measure measure, void *context) {
    row->rounds = 0;
    for (int i = -1; i < rounds; i++) { /* round -1 warms up */
        double ours = 0, floor = 0;
        if (row->has_floor && i % 2 == 0) floor = measure(context, true);
        ours = measure(context, false);
        if (row->has_floor && i % 2 != 0) floor = measure(context, true);
        if (ours < 0 || floor < 0) return false;
        if (i < 0) continue;
        row->ours[row->rounds] = ours;
        row->floor[row->rounds++] = floor;
    }
    return true;
}

typedef struct spread {
    double median, least, most;
} spread;

static spread spread_of(const double *values, size_t n) {
    double sorted[FLOORS_ROUNDS_MAX];
    memcpy(sorted, values, n * sizeof *values);
    spread s = {.median = bench_median(sorted, n)};
    s.least = sorted[0];
    s.most = sorted[n - 1];
    return s;
}

void floors_print(floors_row *row, FILE *json) {
    double ratios[FLOORS_ROUNDS_MAX];
    for (size_t i = 0; i < row->rounds; i++)
        ratios[i] = row->less_is_better ? row->floor[i] / row->ours[i] : row->ours[i] / row->floor[i];
    spread ours = spread_of(row->ours, row->rounds), floor = spread_of(row->floor, row->rounds), ratio = {0};
    bool met = row->less_is_better ? ours.median <= row->target : ours.median >= row->target;
    printf("%-36s %10.1f [%.1f-%.1f] %s", row->name, ours.median, ours.least, ours.most, row->unit);
    if (row->has_floor) {
        ratio = spread_of(ratios, row->rounds);
        met = ratio.median >= row->target;
        printf("   floor (%s) %.1f [%.1f-%.1f]   ratio %.3f [%.3f-%.3f]", row->floor_name, floor.median, floor.least,
               floor.most, ratio.median, ratio.least, ratio.most);
    }
    if (row->target > 0)
        printf("   target %s %.2f: %s", row->has_floor || !row->less_is_better ? ">=" : "<=", row->target,
               met ? "met" : "MISSED");
    printf("\n");
    fflush(stdout);
    if (!json) return;
    fprintf(json, "%s\n  {\"name\": ", json_more ? "," : "");
    json_more = true;
    bench_json_string(json, row->name);
    fprintf(json, ", \"unit\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g", row->unit, ours.median,
            ours.least, ours.most);
    if (row->has_floor)
        fprintf(json,
                ", \"floor\": {\"what\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g}, \"ratio\": %.4f",
                row->floor_name, floor.median, floor.least, floor.most, ratio.median);
    if (row->target > 0) fprintf(json, ", \"target\": %.4g, \"met\": %s", row->target, met ? "true" : "false");
    fprintf(json, "}");
}

static int parse(int argc, char **argv, floors_options *o) {
    const bench_option options[] = {
        {"rounds", BENCH_NUMBER, &o->rounds, "N", .what = "rounds of each row (7)", .least = 5,
         .most = FLOORS_ROUNDS_MAX},
        {"seconds", BENCH_REAL, &o->seconds, "S", .what = "half a round of the rows of small requests (0.5)",
         .least = 0.001, .most = 3600},
        {"stream", BENCH_BYTES, &o->stream_bytes, "BYTES", .what = "of the upload (2G)", .least = 1, .most = 0x1p40},
        {"file", BENCH_BYTES, &o->file_bytes, "BYTES", .what = "of the large file and of the region (1G)", .least = 1,
         .most = 0x1p40},
        {"device", BENCH_BYTES, &o->device_bytes, "BYTES", .what = "of the region in device memory (4G)", .least = 1,
         .most = 0x1p40},
        {"shared", BENCH_BYTES, &o->shared_bytes, "BYTES", .what = "of the largest shared memory (256M)", .least = 1,
         .most = 0x1p40},
        {"only", BENCH_TEXT, &o->only, "TEXT", .what = "rows whose name contains TEXT"},
        {"daemon", BENCH_TEXT, &o->daemon, "PATH", .what = "the daemon (cured beside this program)"},
        {"client", BENCH_TEXT, &o->client, "PATH", .what = "the client (cured-client beside this program)"},
        {"dir", BENCH_TEXT, &o->dir, "DIR", .what = "for files and sockets; on a disk (TMPDIR, else /var/tmp)"},
        {"isa", BENCH_TEXT, &o->isa, "NAME", .what = "of the daemon: auto, portable, avx2 or avx512 (auto)"},
        {"server-core", BENCH_NUMBER, &o->server_core, "N", .what = "where the daemon runs (0)", .least = 0,
         .most = 1 << 20},
        {"client-core", BENCH_NUMBER, &o->client_core, "N", .what = "where the client runs (1)", .least = 0,
         .most = 1 << 20},
        {"json", BENCH_TEXT, &o->json, "FILE", .what = "writes the figures to FILE"},
    };
    return bench_options(options, sizeof options / sizeof options[0],
                         "The daemon runs with --cpu-workers 1. Exit status: 0 when every answer was right, whatever "
                         "the speed.",
                         argc, argv);
}

int bench_floors(int argc, char **argv) {
    floors_options o = {.rounds = 7,
                        .seconds = 0.5,
                        .stream_bytes = 2ull << 30,
                        .file_bytes = 1ull << 30,
                        .device_bytes = 4ull << 30,
                        .shared_bytes = 256ull << 20,
                        .client_core = 1};
    const char *temporary = getenv("TMPDIR");
    o.dir = temporary && *temporary ? temporary : "/var/tmp";
    o.isa = "auto";
    o.daemon = bench_beside("cured");
    o.client = bench_beside("cured-client");
    const int code = parse(argc, argv, &o);
    if (code >= 0) return code;
    signal(SIGPIPE, SIG_IGN);
    snprintf(o.socket, sizeof o.socket, "%.60s/cured-bench-%d.sock", o.dir, (int)getpid());
    char machine[256], command[512];
    bench_machine(machine, sizeof machine);
    size_t named = (size_t)snprintf(command, sizeof command, "cured-bench ");
    bench_command(argc, argv, command + named, sizeof command - named);
    printf(
        "machine: %s\ncommand: %s\nserver on core %d, client on core %d; medians of %d rounds "
        "[least-most], "
        "floor and daemon in turn\n",
        machine, command, o.server_core, o.client_core, o.rounds);
    FILE *json = o.json ? fopen(o.json, "we") : NULL;
    if (o.json && !json) {
        fprintf(stderr, "cured-bench: cannot write %s\n", o.json);
        return 74;
    }
    if (json) {
        fprintf(json, "{\"machine\": ");
        bench_json_string(json, machine);
        fprintf(json, ", \"command\": ");
        bench_json_string(json, command);
        fprintf(json, ", \"rounds\": %d, \"rows\": [", o.rounds);
    }
    bool good = floors_small_rows(&o, json) && floors_stream_rows(&o, json) && floors_file_rows(&o, json) &&
                floors_region_rows(&o, json) && floors_shared_rows(&o, json) && floors_device_rows(&o, json) &&
                floors_devices_rows(&o, json) && floors_axis_rows(&o, json);
    if (json) {
        fprintf(json, "\n]}\n");
        if (fclose(json) != 0) good = false;
    }
    return good ? 0 : 1;
}
