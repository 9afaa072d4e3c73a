/* load_report: latencies, and what is said of the rows: a table, JSON, and a picture of latency against load.
 *
 * Thread: main, but for load_times_add. Owner: the caller owns all. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/load.h"

static const struct {
    const char *name, *color;
    double part;
} shown[] = {{"p50", "#2166ac", 0.5}, {"p90", "#1b7837", 0.9}, {"p99", "#e08214", 0.99}, {"p99.9", "#c51b7d", 0.999}};
enum { SHOWN = sizeof shown / sizeof *shown };

/* Of 2^e + m·2^(e − BITS): e − BITS + 1 times 2^BITS, and m. What is below 2^BITS is its own place. */
static size_t place(uint64_t ns) {
    const int e = 63 - __builtin_clzll(ns | 1);
    if (e < LOAD_BITS) return (size_t)ns;
    return ((size_t)(e - LOAD_BITS + 1) << LOAD_BITS) + (size_t)((ns >> (e - LOAD_BITS)) & ((1u << LOAD_BITS) - 1));
}

/* The largest latency of a place. */
static uint64_t upper(size_t at) {
    const size_t row = at >> LOAD_BITS, m = at & ((1u << LOAD_BITS) - 1);
    if (!row) return at;
    return ((((uint64_t)1 << LOAD_BITS) + m + 1) << (row - 1)) - 1;
}

void load_times_add(load_times *times, uint64_t ns) {
    const size_t at = place(ns);
    times->counts[at < LOAD_TIMES ? at : LOAD_TIMES - 1]++;
    times->count++;
    if (ns > times->longest_ns) times->longest_ns = ns;
}

uint64_t load_times_at(const load_times *times, double part) {
    const double wanted = ceil(part * (double)times->count);
    uint64_t seen = 0;
    for (size_t i = 0; i < LOAD_TIMES; i++) {
        seen += times->counts[i];
        if (!seen || (double)seen < wanted) continue;
        const uint64_t ns = upper(i);
        return ns < times->longest_ns ? ns : times->longest_ns;
    }
    return 0;
}

void load_figures_add(load_figures *to, const load_figures *from) {
    for (size_t i = 0; i < LOAD_TIMES; i++) to->times.counts[i] += from->times.counts[i];
    to->times.count += from->times.count;
    if (from->times.longest_ns > to->times.longest_ns) to->times.longest_ns = from->times.longest_ns;
    to->answered += from->answered;
    to->bytes += from->bytes;
    to->wrong += from->wrong;
    to->not_begun += from->not_begun;
    for (int i = 0; i < LOAD_STATUSES; i++) to->failed[i] += from->failed[i];
}

uint64_t load_failures(const load_figures *figures) {
    uint64_t all = figures->wrong + figures->not_begun;
    for (int i = 0; i < LOAD_STATUSES; i++) all += figures->failed[i];
    return all;
}

/* ---- the table ---- */

void load_print_head(void) {
    printf("| load | right answers/s | GB/s | p50 µs | p90 | p99 | p99.9 | longest | others |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
}

static void print_figures(const char *name, const load_figures *f, double seconds) {
    printf("| %s | %.0f | %.3f ", name, (double)f->answered / seconds, (double)f->bytes / seconds / 1e9);
    for (int i = 0; i < SHOWN; i++)
        f->times.count ? printf("| %.1f ", (double)load_times_at(&f->times, shown[i].part) / 1e3) : printf("| — ");
    f->times.count ? printf("| %.1f | ", (double)f->times.longest_ns / 1e3) : printf("| — | ");
    if (!load_failures(f)) printf("none");
    if (f->wrong) printf("%llu WRONG ", (unsigned long long)f->wrong);
    for (int i = 0; i < LOAD_STATUSES; i++)
        if (f->failed[i]) printf("%llu %s ", (unsigned long long)f->failed[i], cured_status_name((cured_status)i));
    if (f->not_begun) printf("%llu not begun", (unsigned long long)f->not_begun);
    printf(" |\n");
}

void load_print_row(const load_mix *mix, const load_row *row) {
    char name[160];
    if (row->concurrency)
        snprintf(name, sizeof name, "%d in flight", row->concurrency);
    else
        snprintf(name, sizeof name, "%.0f a second", row->rate);
    print_figures(name, &row->all, row->seconds);
    for (size_t k = 0; mix->count > 1 && k < mix->count; k++) {
        snprintf(name, sizeof name, "… %s", mix->kinds[k].text);
        print_figures(name, &row->kinds[k], row->seconds);
    }
    fflush(stdout);
}

/* ---- JSON ---- */

static void write_figures(FILE *out, const load_figures *f, double seconds) {
    fprintf(
        out,
        "{\"calls\": %llu, \"per_s\": %.6g, \"bytes_per_s\": %.6g, \"wrong\": %llu, \"not_begun\": %llu, \"failed\": {",
        (unsigned long long)f->times.count, (double)f->answered / seconds, (double)f->bytes / seconds,
        (unsigned long long)f->wrong, (unsigned long long)f->not_begun);
    bool more = false;
    for (int i = 0; i < LOAD_STATUSES; i++) {
        if (!f->failed[i]) continue;
        fprintf(out, "%s\"%s\": %llu", more ? ", " : "", cured_status_name((cured_status)i),
                (unsigned long long)f->failed[i]);
        more = true;
    }
    fprintf(out, "}, \"latency_ns\": {");
    for (int i = 0; i < SHOWN; i++)
        fprintf(out, "\"%s\": %llu, ", shown[i].name, (unsigned long long)load_times_at(&f->times, shown[i].part));
    fprintf(out, "\"longest\": %llu}}", (unsigned long long)f->times.longest_ns);
}

static void write_row(FILE *out, const load_mix *mix, const load_row *row) {
    if (row->concurrency)
        fprintf(out, "{\"concurrency\": %d", row->concurrency);
    else
        fprintf(out, "{\"rate\": %.6g", row->rate);
    fprintf(out, ", \"seconds\": %g, \"all\": ", row->seconds);
    write_figures(out, &row->all, row->seconds);
    fprintf(out, ", \"kinds\": [");
    for (size_t k = 0; k < mix->count; k++) {
        fprintf(out, "%s\n    ", k ? "," : "");
        write_figures(out, &row->kinds[k], row->seconds);
    }
    fprintf(out, "]}");
}

bool load_write_json(const char *path, const char *machine, const char *command, const char *server,
                     const load_mix *mix, const load_row *rows, size_t count) {
    FILE *out = fopen(path, "we");
    if (!out) return false;
    fprintf(out, "{\"machine\": ");
    bench_json_string(out, machine);
    fprintf(out, ", \"command\": ");
    bench_json_string(out, command);
    fprintf(out, ", \"server\": ");
    bench_json_string(out, server);
    fprintf(out, ",\n \"mix\": [");
    for (size_t k = 0; k < mix->count; k++) {
        fprintf(out, "%s\n  {\"kind\": ", k ? "," : "");
        bench_json_string(out, mix->kinds[k].text);
        fprintf(out, ", \"dtype\": \"%s\", \"bytes\": %llu, \"input\": \"%s\", \"weight\": %llu}",
                cured_dtype_name(mix->kinds[k].dtype), (unsigned long long)mix->kinds[k].bytes,
                load_input_name(mix->kinds[k].input), (unsigned long long)mix->kinds[k].weight);
    }
    fprintf(out, "],\n \"rows\": [");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%s\n  ", i ? "," : "");
        write_row(out, mix, &rows[i]);
    }
    fprintf(out, "]}\n");
    return fclose(out) == 0;
}

/* ---- the picture: answers a second to the right, latency upwards, both logarithmic ---- */

enum { WIDTH = 720, HEIGHT = 420, LEFT = 70, RIGHT = 70, TOP = 40, BOTTOM = 50 };

typedef struct scale {
    double least, most; /* decades */
} scale;

static void widen(scale *a, double value) {
    if (value <= 0) return;
    if (a->most < a->least) a->least = a->most = log10(value);
    if (log10(value) < a->least) a->least = log10(value);
    if (log10(value) > a->most) a->most = log10(value);
}

static double x_of(const scale *a, double value) {
    return LEFT + (log10(value) - a->least) / (a->most - a->least) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const scale *a, double value) {
    return HEIGHT - BOTTOM - (log10(value) - a->least) / (a->most - a->least) * (HEIGHT - TOP - BOTTOM);
}

static double per_second(const load_row *row) { return (double)row->all.answered / row->seconds; }

static double latency(const load_row *row, int i) {
    return (double)load_times_at(&row->all.times, shown[i].part) / 1e3;
}

static void draw_text(FILE *out, double x, double y, const char *anchor, const char *color, const char *text) {
    fprintf(out,
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-family=\"sans-serif\" font-size=\"12\">",
            x, y, anchor, color);
    for (; *text; text++) switch (*text) {
            case '<':
                fputs("&lt;", out);
                break;
            case '&':
                fputs("&amp;", out);
                break;
            default:
                fputc(*text, out);
        }
    fputs("</text>\n", out);
}

/* Lines at 1, 2 and 5 of each decade. */
static void draw_grid(FILE *out, const scale *x, const scale *y) {
    static const double steps[] = {1, 2, 5};
    char text[32];
    for (int decade = -3; decade < 12; decade++)
        for (int i = 0; i < 3; i++) {
            const double value = steps[i] * pow(10, decade), at = log10(value);
            snprintf(text, sizeof text, "%g", value);
            if (at >= x->least && at <= x->most) {
                fprintf(out, "<path d=\"M%.1f %d V%d\" stroke=\"#ddd\"/>\n", x_of(x, value), TOP, HEIGHT - BOTTOM);
                draw_text(out, x_of(x, value), HEIGHT - BOTTOM + 16, "middle", "#444", text);
            }
            if (at >= y->least && at <= y->most) {
                fprintf(out, "<path d=\"M%d %.1f H%d\" stroke=\"#ddd\"/>\n", LEFT, y_of(y, value), WIDTH - RIGHT);
                draw_text(out, LEFT - 6, y_of(y, value) + 4, "end", "#444", text);
            }
        }
}

static void draw_line(FILE *out, const scale *x, const scale *y, const load_row *rows, size_t count, int i) {
    double last_x = 0, last_y = 0;
    char mark = 'M';
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", shown[i].color);
    for (size_t r = 0; r < count; r++) {
        if (!rows[r].all.times.count) continue;
        last_x = x_of(x, per_second(&rows[r]));
        last_y = y_of(y, latency(&rows[r], i));
        fprintf(out, "%c%.1f %.1f ", mark, last_x, last_y);
        mark = 'L';
    }
    fputs("\"/>\n", out);
    if (mark == 'L') draw_text(out, last_x + 6, last_y + 4, "start", shown[i].color, shown[i].name);
}

bool load_write_plot(const char *path, const char *title, const load_row *rows, size_t count) {
    FILE *out = fopen(path, "we");
    scale x = {1, 0}, y = {1, 0};
    if (!out) return false;
    for (size_t r = 0; r < count; r++) {
        if (!rows[r].all.times.count) continue;
        widen(&x, per_second(&rows[r]));
        for (int i = 0; i < SHOWN; i++) widen(&y, latency(&rows[r], i));
    }
    scale *both[] = {&x, &y};
    for (int i = 0; i < 2; i++) { /* some room, also where all is one point, or nothing */
        if (both[i]->most < both[i]->least) *both[i] = (scale){0, 1};
        both[i]->least -= 0.1;
        both[i]->most += 0.1;
    }
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", WIDTH,
            HEIGHT, WIDTH, HEIGHT);
    fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", WIDTH, HEIGHT);
    draw_text(out, LEFT, 22, "start", "#000", title);
    draw_grid(out, &x, &y);
    for (int i = 0; i < SHOWN; i++) draw_line(out, &x, &y, rows, count, i);
    draw_text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 12, "middle", "#444", "right answers a second");
    draw_text(out, 8, TOP - 6, "start", "#444", "latency, µs");
    fputs("</svg>\n", out);
    return fclose(out) == 0;
}
