/* floors: `cured-bench floors`: the daemon under requests, uploads and files, each beside a floor of the same run.
 *
 * Thread: main. Owner: everything here. */
#include "bench/floors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/options.h"

static double figure(void *context, int which) {
    const floors_row *row = context;
    const double took = row->measure(row->context, which);
    return row->bytes && took > 0 ? (double)row->bytes / took / 1e9 : took;
}

static void print(const floors_options *o, const floors_row *row, const bench_race *race) {
    const bool floors = row->floor_name != NULL, falls = row->less_is_better;
    const bench_spread ours = bench_race_of(race, 0);
    bench_spread floor = {0}, ratio = {0};
    bool met = falls ? ours.median <= row->target : ours.median >= row->target;
    printf("%-36s %10.1f [%.1f-%.1f] %s", row->name, ours.median, ours.least, ours.most, row->unit);
    if (floors) {
        floor = bench_race_of(race, 1);
        ratio = falls ? bench_race_ratio(race, 1, 0) : bench_race_ratio(race, 0, 1);
        met = ratio.median >= row->target;
        printf("   floor (%s) %.1f [%.1f-%.1f]   ratio %.3f [%.3f-%.3f]", row->floor_name, floor.median, floor.least,
               floor.most, ratio.median, ratio.least, ratio.most);
    }
    if (row->target > 0)
        printf("   target %s %.2f: %s", floors || !falls ? ">=" : "<=", row->target, met ? "met" : "MISSED");
    printf("\n");
    const bench_cell cells[] = {CELL_TEXT("name", NULL, 0, row->name),
                                CELL_TEXT("unit", NULL, 0, row->unit),
                                CELL_NOTE("median", ours.median),
                                CELL_NOTE("min", ours.least),
                                CELL_NOTE("max", ours.most),
                                CELL_NOTE("target", row->target > 0 ? row->target : NAN),
                                CELL_TRUTH("met", met),
                                CELL_TEXT("floor", NULL, 0, row->floor_name),
                                CELL_NOTE("floor_median", floor.median),
                                CELL_NOTE("floor_min", floor.least),
                                CELL_NOTE("floor_max", floor.most),
                                CELL_NOTE("ratio", ratio.median)};
    bench_table_note(o->table, cells, floors ? sizeof cells / sizeof *cells : 7);
}

bool floors_run(const floors_options *o, const floors_row *row) {
    floors_row own = *row;
    bench_race race = {.count = row->floor_name != NULL ? 2 : 1,
                       .rounds = row->rounds != 0 ? row->rounds : o->rounds,
                       .warm = 1,
                       .swap = true,
                       .measure = figure,
                       .context = &own};
    const bool good = bench_race_run(&race);
    if (good) print(o, row, &race);
    bench_race_end(&race);
    return good;
}

bool floors_run_alone(const floors_options *o, const floors_row *row, int core, bool (*open)(void *context),
                      void (*close)(void *context)) {
    if (!bench_wanted(o->only, row->name)) return true;
    const pid_t daemon = floors_daemon_start(o, core);
    const bool good = daemon > 0 && open(row->context) && floors_run(o, row);
    close(row->context);
    floors_stop(daemon);
    return good;
}

static int parse(int argc, char **argv, floors_options *o) {
    const bench_option options[] = {
        {"rounds", BENCH_NUMBER, &o->rounds, "N", .what = "rounds of each row (7)", .least = 5, .most = 64},
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
        BENCH_JSON(&o->table->path),
    };
    return bench_options(options, sizeof options / sizeof options[0],
                         "The daemon runs with --cpu-workers 1. Exit status: 0 when every answer was right, whatever "
                         "the speed.",
                         argc, argv);
}

int bench_floors(int argc, char **argv) {
    bench_table table = {0};
    floors_options o = {.rounds = 7,
                        .table = &table,
                        .seconds = 0.5,
                        .stream_bytes = 2ull << 30,
                        .file_bytes = 1ull << 30,
                        .device_bytes = 4ull << 30,
                        .shared_bytes = 256ull << 20,
                        .client_core = 1};
    floors_defaults(&o);
    o.client = bench_beside("cured-client");
    const int code = parse(argc, argv, &o);
    if (code >= 0) return code;
    floors_begin(&o);
    const int status = bench_table_open(&table, argc, argv, NULL, BENCH_CELLS(CELL_NOTE("rounds", o.rounds)));
    if (status != 0) return status;
    printf("server on core %d, client on core %d; medians of %d rounds [least-most], floor and daemon in turn\n",
           o.server_core, o.client_core, o.rounds);
    const bool good = floors_small_rows(&o) && floors_stream_rows(&o) && floors_file_rows(&o) &&
                      floors_region_rows(&o) && floors_shared_rows(&o) && floors_device_rows(&o) &&
                      floors_devices_rows(&o) && floors_axis_rows(&o);
    return bench_table_close(&table, NULL, 0) && good ? 0 : 1;
}
