/* cured-bench call: what a call costs that is answered in this process (embedded:), beside the bare fold of the same array: f32 sums
 * of heap memory, one thread. The two take turns; each row is the median of the rounds and their spread. Answers are compared.
 *
 * Thread: main. Owner: this file owns the array. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
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

/* False: the answers differ. */
static bool row(cured_conn *conn, const float *data, size_t bytes) {
    static double call[ROUNDS], fold[ROUNDS];
    size_t count = bytes / sizeof *data, rounds = bytes > LONG_BYTES ? LONG_ROUNDS : ROUNDS;
    int calls = bytes <= SHORT_BYTES ? SHORT_CALLS : 1;
    double a = 0, b = 0;
    for (size_t r = 0; r < rounds; r++) {
        double begin = bench_now();
        for (int i = 0; i < calls; i++) a = by_call(conn, data, count);
        double middle = bench_now();
        for (int i = 0; i < calls; i++) b = by_fold(data, count);
        call[r] = (middle - begin) / calls;
        fold[r] = (bench_now() - middle) / calls;
    }
    double call_median = bench_median(call, rounds), fold_median = bench_median(fold, rounds);
    printf("| %zu KiB | %.2f (%.2f to %.2f) | %.2f (%.2f to %.2f) | %.2f |\n", bytes >> 10, call_median * 1e6,
           call[rounds / 10] * 1e6, call[rounds - 1 - rounds / 10] * 1e6, fold_median * 1e6, fold[rounds / 10] * 1e6,
           fold[rounds - 1 - rounds / 10] * 1e6, (call_median - fold_median) * 1e6);
    if (memcmp(&a, &b, sizeof a) == 0) return true;
    fprintf(stderr, "cured-bench call: %zu bytes give %.17g by a call and %.17g by the fold\n", bytes, a, b);
    return false;
}

int bench_call(int argc, char **argv) {
    static const size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, LARGEST};
    char text[256];
    cured_conn *conn;
    cured_error error;
    if (argc > 1) {
        bool help = strcmp(argv[1], "--help") == 0;
        fprintf(help ? stdout : stderr, "usage: cured-bench call      (no options)\n");
        return help ? 0 : 64;
    }
    if (cured_connect("embedded:", NULL, &conn, &error) != CURED_OK) {
        fprintf(stderr, "cured-bench call: %s\n", error.text);
        return 69;
    }
    float *data = malloc(LARGEST);
    if (data == NULL) return 71;
    for (size_t i = 0; i < LARGEST / sizeof *data; i++)
        data[i] = (float)((i * 2654435761u) % 16777216) / 8388608.0f - 1;
    bench_machine(text, sizeof text);
    printf("%s, %s, f32 sum, one thread\n\n", text, cr_cpu_isa());
    printf("| array | a call, µs (10 to 90 %%) | the bare fold, µs | more |\n| --- | --- | --- | --- |\n");
    bool good = true;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) good = row(conn, data, sizes[i]) && good;
    free(data);
    cured_close(conn);
    return good ? 0 : 1;
}
