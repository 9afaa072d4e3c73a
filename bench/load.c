/* load: `cured-bench load`: the daemon under requests, uploads and files, each beside a floor of the same run.
 *
 * Thread: main. Owner: everything here. */
#include "bench/load.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

static bool json_more;

bool load_wanted(const load_options *options, const char *name) {
    return !options->only || strstr(name, options->only) != NULL;
}

bool load_rounds(load_row *row, int rounds, load_measure measure, void *context) {
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
    double sorted[LOAD_ROUNDS_MAX];
    memcpy(sorted, values, n * sizeof *values);
    spread s = {.median = bench_median(sorted, n)};
    s.least = sorted[0];
    s.most = sorted[n - 1];
    return s;
}

void load_print(load_row *row, FILE *json) {
    double ratios[LOAD_ROUNDS_MAX];
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

static int usage(FILE *out) {
    fprintf(out,
            "usage: cured-bench load [--rounds N] [--seconds S] [--stream BYTES[K|M|G]] [--file BYTES[K|M|G]] "
            "[--device BYTES[K|M|G]] [--only TEXT]\n"
            "                        [--daemon PATH] [--client PATH] [--dir DIR] [--isa NAME] [--server-core N] "
            "[--client-core N] [--json FILE]\n"
            "  --rounds N    rounds of each row, 5 to 64 (7)\n"
            "  --seconds S   length of a round's half in the rows of small requests (0.5)\n"
            "  --stream, --file  bytes of the upload (2G) and of the large file and region (1G)\n"
            "  --device      bytes of the large region in device memory (4G)\n"
            "  --only TEXT   rows whose name contains TEXT\n"
            "  --daemon, --client  the programs (cured and cured-client beside this one)\n"
            "  --dir DIR     for the files and sockets; a disk file system for the file rows (TMPDIR, else /var/tmp)\n"
            "  --server-core, --client-core  where each side runs (0 and 1)\n"
            "The daemon runs with --cpu-workers 1. Ends with 0 when every answer was right, whatever the speed.\n");
    return out == stdout ? 0 : 64;
}

static bool parse_bytes(const char *text, uint64_t *bytes) {
    char *end;
    double n = strtod(text, &end);
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : NULL;
    if (end == text || !(n > 0) || (*end && (!unit || end[1]))) return false;
    *bytes = (uint64_t)(n * (unit ? pow(1024, (double)(unit - units + 1)) : 1));
    return true;
}

static bool parse(int argc, char **argv, load_options *o, int *code) {
    static const struct option names[] = {
        {"rounds", 1, NULL, 'r'}, {"seconds", 1, NULL, 's'},     {"stream", 1, NULL, 'S'},
        {"file", 1, NULL, 'F'},   {"only", 1, NULL, 'o'},        {"daemon", 1, NULL, 'd'},
        {"client", 1, NULL, 'c'}, {"dir", 1, NULL, 'D'},         {"json", 1, NULL, 'j'},
        {"isa", 1, NULL, 'i'},    {"server-core", 1, NULL, 'x'}, {"client-core", 1, NULL, 'y'},
        {"device", 1, NULL, 'g'}, {"help", 0, NULL, 'h'},        {NULL, 0, NULL, 0}};
    bool good = true;
    *code = 64;
    for (int c; good && (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
            case 'r':
                o->rounds = atoi(optarg);
                break;
            case 's':
                o->seconds = atof(optarg);
                break;
            case 'S':
                good = parse_bytes(optarg, &o->stream_bytes);
                break;
            case 'F':
                good = parse_bytes(optarg, &o->file_bytes);
                break;
            case 'g':
                good = parse_bytes(optarg, &o->device_bytes);
                break;
            case 'o':
                o->only = optarg;
                break;
            case 'd':
                o->daemon = optarg;
                break;
            case 'c':
                o->client = optarg;
                break;
            case 'D':
                o->dir = optarg;
                break;
            case 'j':
                o->json = optarg;
                break;
            case 'i':
                o->isa = optarg;
                break;
            case 'x':
                o->server_core = atoi(optarg);
                break;
            case 'y':
                o->client_core = atoi(optarg);
                break;
            default:
                *code = usage(c == 'h' ? stdout : stderr);
                return false;
        }
    }
    if (good && optind == argc && o->rounds >= 5 && o->rounds <= LOAD_ROUNDS_MAX && o->seconds > 0) return true;
    usage(stderr);
    return false;
}

/* The programs are built beside this one. */
static const char *beside(const char *name) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return name;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "%s", name);
    return strdup(path); /* for the program's life */
}

int bench_load(int argc, char **argv) {
    load_options o = {.rounds = 7,
                      .seconds = 0.5,
                      .stream_bytes = 2ull << 30,
                      .file_bytes = 1ull << 30,
                      .device_bytes = 4ull << 30,
                      .client_core = 1};
    const char *temporary = getenv("TMPDIR");
    int code;
    o.dir = temporary && *temporary ? temporary : "/var/tmp";
    o.isa = "auto";
    o.daemon = beside("cured");
    o.client = beside("cured-client");
    if (!parse(argc, argv, &o, &code)) return code;
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
    bool good = load_small_rows(&o, json) && load_stream_rows(&o, json) && load_file_rows(&o, json) &&
                load_region_rows(&o, json) && load_device_rows(&o, json) && load_axis_rows(&o, json);
    if (json) {
        fprintf(json, "\n]}\n");
        if (fclose(json) != 0) good = false;
    }
    return good ? 0 : 1;
}
