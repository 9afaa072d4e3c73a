/* rows: see rows.h. Thread: main. Owner: the caller. */
#include "bench/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"

bool bench_race_run(bench_race *race) {
    race->figures = calloc((size_t)race->count * (size_t)race->rounds, sizeof *race->figures);
    if (race->figures == NULL) {
        fprintf(stderr, "cured-bench: no memory for %d rounds\n", race->rounds);
        return false;
    }
    for (int round = -race->warm; round < race->rounds; round++) {
        for (int turn = 0; turn < race->count; turn++) {
            const int which = race->swap && round % 2 == 0 ? race->count - 1 - turn : turn;
            const double figure = race->measure(race->context, which);
            if (figure < 0) return false;
            if (round >= 0) race->figures[which * race->rounds + round] = figure;
        }
    }
    return true;
}

void bench_race_end(bench_race *race) {
    free(race->figures);
    race->figures = NULL;
}

bench_spread bench_spread_of(const double *values, size_t n) {
    static double sorted[BENCH_ROUNDS_MOST];
    memcpy(sorted, values, n * sizeof *sorted);
    const double median = bench_median(sorted, n);
    return (bench_spread){median, sorted[0], sorted[n - 1], sorted[n / 10], sorted[n - 1 - n / 10]};
}

bench_spread bench_race_of(const bench_race *race, int which) {
    return bench_spread_of(race->figures + which * race->rounds, (size_t)race->rounds);
}

bench_spread bench_race_ratio(const bench_race *race, int over, int under) {
    static double ratios[BENCH_ROUNDS_MOST];
    for (int i = 0; i < race->rounds; i++)
        ratios[i] = race->figures[over * race->rounds + i] / race->figures[under * race->rounds + i];
    return bench_spread_of(ratios, (size_t)race->rounds);
}

int bench_race_best(const bench_race *race, int count) {
    int best = 0;
    for (int i = 1; i < count; i++)
        if (bench_race_of(race, i).median < bench_race_of(race, best).median) best = i;
    return best;
}

double bench_repeat(int calls, bench_measure measure, void *context, int which) {
    static double took[BENCH_ROUNDS_MOST];
    for (int i = -1; i < calls; i++) {
        const double figure = measure(context, which);
        if (figure < 0) return -1;
        if (i >= 0) took[i] = figure;
    }
    return bench_median(took, (size_t)calls);
}

bool bench_wanted(const char *only, const char *name) { return only == NULL || strstr(name, only) != NULL; }

/* "machine": …, with commas between. */
static void put_cells(FILE *json, const bench_cell *cells, size_t count, bool more) {
    for (const bench_cell *c = cells; c < cells + count; c++) {
        if (c->key == NULL) continue;
        fprintf(json, "%s\"%s\": ", more ? ", " : "", c->key);
        more = true;
        if (c->text != NULL)
            bench_json_string(json, c->text);
        else if (c->truth)
            fputs(c->number != 0 ? "true" : "false", json);
        else if (!isfinite(c->number))
            fputs("null", json);
        else /* a count is written to its last digit */
            fprintf(json, c->number == floor(c->number) ? "%.0f" : "%.6g", c->number);
    }
}

int bench_table_open(bench_table *table, int argc, char **argv, const char *more, const bench_cell *cells,
                     size_t count) {
    char machine[256], command[1024];
    bench_machine(machine, sizeof machine);
    bench_command(argc, argv, command, sizeof command);
    if (table->path != NULL && (table->json = fopen(table->path, "we")) == NULL) {
        fprintf(stderr, "cured-bench: cannot write %s\n", table->path);
        return 73;
    }
    printf("machine  %s%s%s\ncommand  %s\n", machine, more != NULL ? "; " : "", more != NULL ? more : "", command);
    if (table->json == NULL) return 0;
    fputc('{', table->json);
    put_cells(table->json, BENCH_CELLS(CELL_TEXT("machine", NULL, 0, machine), CELL_TEXT("command", NULL, 0, command)),
              false);
    put_cells(table->json, cells, count, true);
    fputs(", \"rows\": [", table->json);
    return 0;
}

void bench_table_note(bench_table *table, const bench_cell *cells, size_t count) {
    if (table->json == NULL) return;
    fputs(table->more ? ",\n  {" : "\n  {", table->json);
    put_cells(table->json, cells, count, false);
    fputc('}', table->json);
    table->more = true;
}

/* Columns are as wide as their heads at least. UTF-8's further bytes take no room on the screen. */
static void put_text(const char *text, int width) {
    int columns = 0;
    for (const char *p = text; *p != '\0'; p++) columns += (*p & 0xc0) != 0x80;
    const int pad = abs(width) - columns;
    printf("%*s%s%*s", width > 0 && pad > 0 ? pad : 0, "", text, width < 0 && pad > 0 ? pad : 0, "");
}

void bench_table_text(bench_table *table, const bench_cell *cells, size_t count) {
    for (int line = table->headed; line < 2; line++) {
        const char *between = "";
        for (const bench_cell *c = cells; c < cells + count; c++) {
            char number[32];
            if (c->head == NULL) continue;
            snprintf(number, sizeof number, "%.*f", c->decimals, c->number);
            fputs(between, stdout);
            put_text(line == 0 ? c->head : c->text != NULL ? c->text : isfinite(c->number) ? number : "-", c->width);
            between = " ";
        }
        putchar('\n');
    }
    table->headed = true;
    fflush(stdout);
}

void bench_table_row(bench_table *table, const bench_cell *cells, size_t count) {
    bench_table_text(table, cells, count);
    bench_table_note(table, cells, count);
}

bool bench_table_close(bench_table *table, const bench_cell *cells, size_t count) {
    if (table->json == NULL) return true;
    fputs("\n]", table->json);
    put_cells(table->json, cells, count, true);
    fputs("}\n", table->json);
    const bool good = !ferror(table->json);
    if (fclose(table->json) == 0 && good) return true;
    fprintf(stderr, "cured-bench: cannot write %s\n", table->path);
    return false;
}
