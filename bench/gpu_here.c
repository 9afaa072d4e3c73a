/* cured-bench gpu-here: calls of cured/cuda.h on the default stream, as a program makes them: the host's time of calls that wait for
 * nothing, and the time until an answer is seen, of one array and of a list; and, with --floors, what the driver's own calls cost. The
 * library is the one that such a program loads, so a build without CUDA has this too (CURED_CUDA_LIBRARY). Every answer in host memory is
 * compared with the CPU's.
 *
 * Thread: main. Owner: this file owns the memory. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/gpu_here.h"
#include "bench/options.h"
#include "client/lib/cuda/library.h"
#include "cured/cuda.h"
#include "kernels/cpu/fold.h"

enum {
    APART = 512, /* arrays of a list begin at its multiples */
    MOST_CALLS = 100000,
    WARM = 8,
    BURST = 16,
    LISTS = 2, /* the third list waits for the first */
};

static struct {
    uint64_t bytes, each, list_bytes;
    int arrays, calls, wrong;
    cr_dtype dtype;
    cpu_data data; /* DATA_COUNT: all are 1 */
    bool spread, floors;
    double expected[2]; /* of the array, of the list */
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    uint8_t *host, *device;
    cured_cuda_array *list;
    cured_cuda_array one;
    void *to; /* an answer's place */
} b;

static uint64_t pad(uint64_t bytes) { return (bytes + APART - 1) / APART * APART; }

/* What the list has of each array, and where; `each` on the average, spread as a model's tensors are: some have a hundred times as much as
 * others. Beginning from `base`. */
static void lay_out(uint8_t *base) {
    const uint32_t size = (uint32_t)cr_dtype_size(b.dtype);
    uint64_t state = 1, at = 0;
    double all = 0;
    for (int pass = 0; pass < 2; pass++, state = 1) {
        for (int i = 0; i < b.arrays; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double x = (double)(state >> 11) * 0x1p-53, weight = b.spread ? x * x * x + 0.01 : 1;
            if (pass == 0) {
                all += weight;
                continue;
            }
            const uint64_t n = (uint64_t)(weight / all * (double)b.arrays * (double)b.each / size);
            b.list[i] = (cured_cuda_array){base + at, n != 0 ? n : 1, (cured_dtype)b.dtype};
            at += pad(b.list[i].count * size);
        }
    }
    b.list_bytes = at;
}

static void fill(size_t bytes) {
    const float one = 1;
    if (b.data != DATA_COUNT) {
        cpu_fill(b.host, bytes, b.dtype, b.data);
        return;
    }
    for (size_t at = 0; at < bytes; at += cr_dtype_size(b.dtype)) {
        const uint16_t half = b.dtype == CR_F16 ? 0x3c00 : 0x3f80;
        if (b.dtype == CR_F32)
            memcpy(b.host + at, &one, sizeof one);
        else
            memcpy(b.host + at, &half, sizeof half);
    }
}

static double finished(const cr_partial *partial, cr_op op) {
    cr_value value;
    double found;
    memset(&value, 0, sizeof value);
    cr_partial_finish(partial, op, &(cr_finish_opts){0}, &value);
    memcpy(&found, value.bytes, sizeof found);
    return found;
}

/* By the CPU. */
static void expect(void) {
    static cr_partial partial;
    uint64_t index = 0;
    cr_partial_init(&partial, b.dtype, CR_FAM_SUM);
    cr_cpu_fold(&partial, b.host, b.one.count, 0);
    b.expected[false] = finished(&partial, CR_OP_SUM);
    cr_partial_init(&partial, b.dtype, CR_FAM_SUMSQ);
    for (int i = 0; i < b.arrays; index += b.list[i++].count)
        cr_cpu_fold(&partial, b.host + ((const uint8_t *)b.list[i].data - b.device), b.list[i].count, index);
    b.expected[true] = finished(&partial, CR_OP_NORM2);
}

static cr_status open_all(cr_error *error) {
    const cr_caller_api *found = cr_cl_cuda(error);
    if (found == NULL) return error->code;
    b.api = found->gpu;
    if (b.api->count(error) == 0) return error->code;
    b.list = calloc((size_t)b.arrays, sizeof *b.list);
    if (b.list == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the list");
    lay_out(NULL);
    const size_t bytes = (size_t)(b.list_bytes > pad(b.bytes) ? b.list_bytes : pad(b.bytes));
    cr_status status = b.api->open(0, &b.gpu, error);
    if (status == CR_OK) status = b.api->stream_open(b.gpu, 1, &b.stream, error);
    if (status == CR_OK) status = b.api->host_alloc(b.gpu, bytes, (void **)&b.host, error);
    if (status == CR_OK) status = b.api->device_alloc(b.gpu, bytes, (void **)&b.device, error);
    if (status == CR_OK) status = b.api->device_alloc(b.gpu, sizeof(double), &b.to, error);
    if (status != CR_OK) return status;
    lay_out(b.device);
    b.one = (cured_cuda_array){b.device, b.bytes / cr_dtype_size(b.dtype), (cured_dtype)b.dtype};
    fill(bytes);
    expect();
    status = b.api->copy(b.stream, b.device, b.host, bytes, error);
    for (bool idle = false; status == CR_OK && !idle;) status = b.api->poll(b.stream, &idle, error);
    return status;
}

static void close_all(void) {
    cured_cuda_trim();
    if (b.stream) b.api->stream_close(b.stream);
    if (b.to) b.api->device_free(b.gpu, b.to);
    if (b.device) b.api->device_free(b.gpu, b.device);
    if (b.host) b.api->host_free(b.gpu, b.host);
    if (b.gpu) b.api->close(b.gpu);
    free(b.list);
}

/* The sum of the array, or the norm of the list. */
static cured_cuda_ask ask_of(bool list) {
    static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM2};
    return (cured_cuda_ask){.struct_bytes = sizeof(cured_cuda_ask),
                            .arrays = list ? b.list : &b.one,
                            .array_count = list ? (size_t)b.arrays : 1,
                            .ops = &ops[list],
                            .op_count = 1};
}

static void check(cured_values *values, bool list) {
    double found = 0;
    size_t bytes = 0;
    const void *at = cured_value_bytes(cured_values_get(values, 0), &bytes);
    if (at != NULL && bytes == sizeof found) memcpy(&found, at, sizeof found);
    b.wrong += memcmp(&found, &b.expected[list], sizeof found) != 0;
    cured_values_free(values);
}

typedef enum way {
    SEEN,
    STARTED,
    TO_DEVICE
} way; /* until the answer is seen; until start returns; until enqueue does */

/* Seconds of a call; some of those that wait for nothing are made in a row, and then waited for. */
static cured_status call_once(way how, bool list, double *took, cured_error *error) {
    const cured_cuda_ask ask = ask_of(list);
    const int times = how != TO_DEVICE ? 1 : list ? LISTS : BURST;
    cured_cuda_call *call = NULL;
    cured_values *values = NULL;
    cured_status status = CURED_OK;
    const double begin = bench_now();
    for (int i = 0; i < times && status == CURED_OK; i++)
        status = how == TO_DEVICE ? cured_cuda_enqueue(&ask, &b.to, NULL, error)
                 : how == STARTED ? cured_cuda_start(&ask, &call, error)
                                  : cured_cuda_reduce(&ask, &values, error);
    *took = (bench_now() - begin) / times;
    if (status == CURED_OK && how == STARTED) status = cured_cuda_finish(call, &values, error);
    if (status == CURED_OK && how == TO_DEVICE) status = cured_cuda_reduce(&ask, &values, error); /* behind them */
    if (status == CURED_OK) check(values, list);
    return status;
}

static bool measure(const char *what, way how, bool list) {
    static double took[MOST_CALLS];
    cured_error error;
    for (int i = -WARM; i < b.calls; i++) {
        if (call_once(how, list, &took[i < 0 ? 0 : i], &error) == CURED_OK) continue;
        fprintf(stderr, "cured-bench: gpu-here: %s\n", error.text);
        return false;
    }
    const double median = bench_median(took, (size_t)b.calls);
    printf("%-44s %9.3f us  (lowest %.3f)\n", what, median * 1e6, took[0] * 1e6);
    return true;
}

static bool measure_all(void) {
    const char *type = cr_dtype_name(b.dtype);
    printf("one: %llu bytes of %s; list: %d arrays of %llu bytes%s; %d calls each\n", (unsigned long long)b.bytes, type,
           b.arrays, (unsigned long long)b.each, b.spread ? " on the average" : "", b.calls);
    return measure("host, sum of one to device memory", TO_DEVICE, false) &&
           measure("host, sum of one started", STARTED, false) && measure("sum of one, until seen", SEEN, false) &&
           measure("host, norm2 of the list to device memory", TO_DEVICE, true) &&
           measure("host, norm2 of the list started", STARTED, true) &&
           measure("norm2 of the list, until seen", SEEN, true);
}

static bool set_dtype(void *to, const char *word) {
    static const cr_dtype all[] = {CR_F32, CR_F16, CR_BF16};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(word, cr_dtype_name(all[i])) != 0) continue;
        *(cr_dtype *)to = all[i];
        return true;
    }
    return false;
}

static bool set_data(void *to, const char *word) {
    static const char *const words[] = {"ones", "normal", "bits"};
    static const cpu_data all[] = {DATA_COUNT, DATA_NORMAL, DATA_BITS};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(word, words[i]) != 0) continue;
        *(cpu_data *)to = all[i];
        return true;
    }
    return false;
}

int bench_gpu_here(int argc, char **argv) {
    cr_error error = {CR_OK, ""};
    b.bytes = 1 << 20, b.each = 4096, b.arrays = 10000, b.calls = 500, b.dtype = CR_F32, b.data = DATA_COUNT;
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &b.bytes, "BYTES", .what = "of the one array (1M)", .least = 64, .most = 0x1p36,
         .step = 64},
        {"arrays", BENCH_NUMBER, &b.arrays, "N", .what = "in the list (10000)", .least = 2, .most = 1000000},
        {"each", BENCH_BYTES, &b.each, "BYTES", .what = "of each array of the list (4K)", .least = 4, .most = 0x1p30,
         .step = 4},
        {"spread", BENCH_SWITCH, &b.spread, .what = "lets the list's arrays differ, as those of a model do"},
        {"dtype", BENCH_WORDS, &b.dtype, "f32|f16|bf16", .what = "of all elements (f32)", .each = set_dtype},
        {"data", BENCH_WORDS, &b.data, "ones|normal|bits", .what = "of all elements (ones)", .each = set_data},
        {"floors", BENCH_SWITCH, &b.floors, .what = "also times the driver's own calls"},
        {"calls", BENCH_NUMBER, &b.calls, "N", .what = "of each kind, of which the median is told (500)", .least = 5,
         .most = MOST_CALLS},
    };
    const int status =
        bench_options(options, sizeof options / sizeof options[0],
                      "Exit status: 0; 1 an answer was wrong; 69 no CUDA device, or it failed.", argc, argv);
    if (status >= 0) return status;
    const cr_status opened = open_all(&error);
    if (opened != CR_OK) fprintf(stderr, "cured-bench: gpu-here: %s\n", error.text);
    bool good = opened == CR_OK && measure_all();
    if (good && b.wrong != 0) printf("%d answers were wrong\n", b.wrong);
    const gpu_here_memory memory = {b.host, b.device, b.to};
    if (good && b.floors) good = gpu_driver_floors(&memory, b.calls);
    if (b.api != NULL) close_all();
    return !good ? 69 : b.wrong != 0;
}
