/* cured-bench call: what a call costs that is answered in this process (embedded:), beside the bare fold of the same array: f32 sums
 * of heap memory, one thread. The two take turns; each row is the median of the rounds and their spread. Answers are compared.
 *
 * Thread: main. Owner: this file owns the array. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "bench/rows.h"
#include "cured/cured.h"
#include "kernels/cpu/fold.h"

enum {
    LARGEST = 64 << 20,
    ROUNDS = 301,
    LONG_ROUNDS = 31,
    LONG_BYTES = 8 << 20,
    SHORT_BYTES = 64 << 10,
    SHORT_CALLS = 32
};

typedef struct caller {
    cured_conn *conn;
    const float *data;
    size_t count;
    int calls; /* in a row */
    double answers[2];
} caller;

static double by_call(cured_conn *conn, const float *data, size_t count) {
    const cured_op op = CURED_OP_SUM;
    cured_call *call = NULL;
    double sum = 0;
    if (cured_reduce_buffer(conn, CURED_F32, &op, 1, data, count, NULL, &call, NULL) == CURED_OK &&
        cured_wait(call, NULL) == CURED_OK)
        cured_value_double(cured_call_value(call, 0), &sum);
    cured_call_free(call);
    return sum;
}

static double by_fold(const float *data, size_t count) {
    const cr_finish_opts opts = {0};
    cr_partial partial;
    cr_value value;
    double sum;
    cr_partial_init(&partial, CR_F32, CR_FAM_SUM);
    cr_cpu_fold(&partial, data, count, 0);
    cr_partial_finish(&partial, CR_OP_SUM, &opts, &value);
    memcpy(&sum, value.bytes, sizeof sum);
    return sum;
}

/* Microseconds. */
static double measure(void *context, int fold) {
    caller *c = context;
    const double begin = bench_now();
    for (int i = 0; i < c->calls; i++)
        c->answers[fold] = fold ? by_fold(c->data, c->count) : by_call(c->conn, c->data, c->count);
    return (bench_now() - begin) / c->calls * 1e6;
}

/* False: the answers differ. */
static bool row(cured_conn *conn, const float *data, size_t bytes) {
    caller c = {conn, data, bytes / sizeof *data, bytes <= SHORT_BYTES ? SHORT_CALLS : 1, {0, 0}};
    bench_race race = {
        .count = 2, .rounds = bytes > LONG_BYTES ? LONG_ROUNDS : ROUNDS, .measure = measure, .context = &c};
    if (!bench_race_run(&race)) return false;
    const bench_spread call = bench_race_of(&race, 0), fold = bench_race_of(&race, 1);
    printf("| %zu KiB | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.2f |\n", bytes >> 10, call.median, call.tenth,
           call.ninetieth, fold.median, fold.tenth, fold.ninetieth, call.median - fold.median);
    bench_race_end(&race);
    if (memcmp(&c.answers[0], &c.answers[1], sizeof c.answers[0]) == 0) return true;
    fprintf(stderr, "cured-bench call: %zu bytes give %.17g by a call and %.17g by the fold\n", bytes, c.answers[0],
            c.answers[1]);
    return false;
}

int bench_call(int argc, char **argv) {
    static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, LARGEST};
    char text[64];
    bench_table table = {0};
    cured_conn *conn;
    cured_error error;
    const int code = bench_options(NULL, 0, NULL, argc, argv);
    if (code >= 0) return code;
    if (cured_connect("embedded:", NULL, &conn, &error) != CURED_OK) {
        fprintf(stderr, "cured-bench call: %s\n", error.text);
        return 69;
    }
    float *data = malloc(LARGEST);
    if (data == NULL) return 71;
    for (size_t i = 0; i < LARGEST / sizeof *data; i++)
        data[i] = (float)((i * 2654435761u) % 16777216) / 8388608.0f - 1;
    snprintf(text, sizeof text, "folds: %s", cr_cpu_isa());
    bench_table_open(&table, argc, argv, text, NULL, 0);
    printf("f32 sum, one thread\n\n");
    printf("| array | a call, µs (10 to 90 %%) | the bare fold, µs | more |\n| --- | --- | --- | --- |\n");
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) good = row(conn, data, sizes[i]) && good;
    free(data);
    cured_close(conn);
    return good ? 0 : 1;
}
