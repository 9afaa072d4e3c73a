/* cured-bench gpu-here: calls of cured/cuda.h on the default stream, as a program makes them: the host's time of calls that wait for
 * nothing, and the time until an answer is seen, of one array and of a list. The library is the one that such a program loads, so a
 * build without CUDA has this too (CURED_CUDA_LIBRARY). All elements are 1, and every answer in host memory is compared.
 *
 * Thread: main. Owner: this file owns the memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/options.h"
#include "client/lib/cuda/library.h"
#include "cured/cuda.h"

enum {
    MOST_CALLS = 100000,
    WARM = 8,
    BURST = 16,
    LISTS = 2, /* the third list waits for the first */
};

static struct {
    uint64_t bytes, each;
    int arrays, calls, wrong;
    const cr_gpu_api *api;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    float *host, *device;
    cured_cuda_array *list;
    cured_cuda_array one;
    void *to; /* an answer's place */
} b;

static size_t all_bytes(void) {
    const uint64_t of_list = (uint64_t)b.arrays * b.each;
    return (size_t)(of_list > b.bytes ? of_list : b.bytes);
}

static cr_status open_all(cr_error *error) {
    const size_t bytes = all_bytes();
    const cr_caller_api *found = cr_cl_cuda(error);
    if (found == NULL) return error->code;
    b.api = found->gpu;
    if (b.api->count(error) == 0) return error->code;
    cr_status status = b.api->open(0, &b.gpu, error);
    if (status == CR_OK) status = b.api->stream_open(b.gpu, 1, &b.stream, error);
    if (status == CR_OK) status = b.api->host_alloc(b.gpu, bytes, (void **)&b.host, error);
    if (status == CR_OK) status = b.api->device_alloc(b.gpu, bytes, (void **)&b.device, error);
    if (status == CR_OK) status = b.api->device_alloc(b.gpu, sizeof(double), &b.to, error);
    b.list = calloc((size_t)b.arrays, sizeof *b.list);
    if (status == CR_OK && b.list == NULL) status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the list");
    if (status != CR_OK) return status;
    for (size_t i = 0; i < bytes / sizeof(float); i++) b.host[i] = 1;
    for (int i = 0; i < b.arrays; i++)
        b.list[i] = (cured_cuda_array){(char *)b.device + (uint64_t)i * b.each, b.each / sizeof(float), CURED_F32};
    b.one = (cured_cuda_array){b.device, b.bytes / sizeof(float), CURED_F32};
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
    const double n = list ? (double)b.arrays * (double)(b.each / sizeof(float)) : (double)b.one.count;
    double found = 0;
    size_t bytes = 0;
    const void *at = cured_value_bytes(cured_values_get(values, 0), &bytes);
    if (at != NULL && bytes == sizeof found) memcpy(&found, at, sizeof found);
    b.wrong += found != (list ? sqrt(n) : n);
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
    printf("one: %llu bytes of f32; list: %d arrays of %llu bytes; %d calls each\n", (unsigned long long)b.bytes,
           b.arrays, (unsigned long long)b.each, b.calls);
    return measure("host, sum of one to device memory", TO_DEVICE, false) &&
           measure("host, sum of one started", STARTED, false) && measure("sum of one, until seen", SEEN, false) &&
           measure("host, norm2 of the list to device memory", TO_DEVICE, true) &&
           measure("host, norm2 of the list started", STARTED, true) &&
           measure("norm2 of the list, until seen", SEEN, true);
}

int bench_gpu_here(int argc, char **argv) {
    cr_error error = {CR_OK, ""};
    b.bytes = 1 << 20, b.each = 4096, b.arrays = 10000, b.calls = 500;
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &b.bytes, "BYTES", .what = "of the one array of f32 (1M)", .least = 64, .most = 0x1p36,
         .step = 64},
        {"arrays", BENCH_NUMBER, &b.arrays, "N", .what = "in the list (10000)", .least = 2, .most = 1000000},
        {"each", BENCH_BYTES, &b.each, "BYTES", .what = "of each array of the list (4K)", .least = 4, .most = 0x1p30,
         .step = 4},
        {"calls", BENCH_NUMBER, &b.calls, "N", .what = "of each kind, of which the median is told (500)", .least = 5,
         .most = MOST_CALLS},
    };
    const int status =
        bench_options(options, sizeof options / sizeof options[0],
                      "Exit status: 0; 1 an answer was wrong; 69 no CUDA device, or it failed.", argc, argv);
    if (status >= 0) return status;
    const cr_status opened = open_all(&error);
    if (opened != CR_OK) fprintf(stderr, "cured-bench: gpu-here: %s\n", error.text);
    const bool good = opened == CR_OK && measure_all();
    if (good && b.wrong != 0) printf("%d answers were wrong\n", b.wrong);
    if (b.api != NULL) close_all();
    return !good ? 69 : b.wrong != 0;
}
