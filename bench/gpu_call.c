/* cured-bench gpu-call: sums of one array in device memory, asked one after the other in this process as the daemon's lane asks them: what
 * a fold takes from the call until its answer is seen. Every answer is compared, bit by bit, with the CPU's.
 *
 * Thread: main. Owner: this file owns the array. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/options.h"
#include "kernels/cpu/fold.h"
#include "kernels/cuda/gpu.h"

extern const cr_gpu_api CURED_GPU_API;

enum { MOST_CALLS = 100000, WARM_CALLS = 8 };

static struct {
    uint64_t bytes;
    int calls;
    cpu_data data;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    void *host, *device;
    cr_value expected;
    int wrong;
} b;

static bool set_data(void *to, const char *word) {
    *(cpu_data *)to = strcmp(word, "bits") == 0 ? DATA_BITS : DATA_NORMAL;
    return strcmp(word, "bits") == 0 || strcmp(word, "normal") == 0;
}

static cr_status wait_idle(cr_error *error) {
    cr_status status = CR_OK;
    for (bool idle = false; status == CR_OK && !idle;) status = CURED_GPU_API.poll(b.stream, &idle, error);
    return status;
}

static void finish(const cr_partial *partial, cr_value *value) {
    memset(value, 0, sizeof *value);
    cr_partial_finish(partial, CR_OP_SUM, &(cr_finish_opts){0}, value);
}

static cr_status open_all(cr_error *error) {
    static cr_partial partial;
    const cr_gpu_api *api = &CURED_GPU_API;
    cr_status status = api->open(0, &b.gpu, error);
    if (status == CR_OK) status = api->stream_open(b.gpu, 1, &b.stream, error);
    if (status == CR_OK) status = api->host_alloc(b.gpu, b.bytes, &b.host, error);
    if (status == CR_OK) status = api->device_alloc(b.gpu, b.bytes, &b.device, error);
    if (status != CR_OK) return status;
    cpu_fill(b.host, b.bytes, CR_F32, b.data);
    cr_partial_init(&partial, CR_F32, CR_FAM_SUM);
    cr_cpu_fold(&partial, b.host, b.bytes / sizeof(float), 0);
    finish(&partial, &b.expected);
    status = api->copy(b.stream, b.device, b.host, b.bytes, error);
    return status == CR_OK ? wait_idle(error) : status;
}

static void close_all(void) {
    const cr_gpu_api *api = &CURED_GPU_API;
    if (b.stream) api->stream_close(b.stream);
    if (b.device) api->device_free(b.gpu, b.device);
    if (b.host) api->host_free(b.gpu, b.host);
    if (b.gpu) api->close(b.gpu);
}

static cr_status call_once(double *took, cr_error *error) {
    const cr_gpu_fold sum = {
        .dtype = CR_F32, .families = CR_FAM_SUM, .data = b.device, .n = b.bytes / sizeof(float), .index = 0};
    cr_value value;
    const double start = bench_now();
    cr_status status = CURED_GPU_API.fold(b.stream, &sum, 1, 0, error);
    if (status == CR_OK) status = wait_idle(error);
    if (status != CR_OK) return status;
    const cr_partial *partial = CURED_GPU_API.result(b.stream, 0);
    *took = bench_now() - start;
    finish(partial, &value);
    if (memcmp(value.bytes, b.expected.bytes, sizeof value.bytes) != 0) b.wrong++;
    return CR_OK;
}

int bench_gpu_call(int argc, char **argv) {
    static double took[MOST_CALLS];
    cr_error error = {CR_OK, ""};
    b.bytes = 1 << 20, b.calls = 2000, b.data = DATA_NORMAL;
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &b.bytes, "BYTES", .what = "of the array of f32 (1M)", .least = 64, .most = 0x1p36,
         .step = 64},
        {"calls", BENCH_NUMBER, &b.calls, "N", .what = "calls, of which the median is told (2000)", .least = 5,
         .most = MOST_CALLS},
        {"data", BENCH_WORDS, &b.data, "normal|bits", .what = "normal, or any bit patterns (normal)", .each = set_data},
        BENCH_WITHOUT("gpu_replay"),
    };
    int status = bench_options(options, sizeof options / sizeof options[0],
                               "Exit status: 0; 1 an answer was wrong; 69 no CUDA device, or it failed.", argc, argv);
    if (status >= 0) return status;
    cr_status done = CURED_GPU_API.count(&error) == 0 ? error.code : open_all(&error);
    if (done == CR_OK && !b.gpu) done = cr_fail(&error, CR_UNAVAILABLE, "no CUDA device");
    for (int i = -WARM_CALLS; done == CR_OK && i < b.calls; i++) done = call_once(&took[i < 0 ? 0 : i], &error);
    if (done == CR_OK) {
        const double median = bench_median(took, (size_t)b.calls);
        printf("sum f32 %-6s %11llu bytes  %9.3f us a call  (lowest %.3f)  %d of %d wrong\n", cpu_data_name(b.data),
               (unsigned long long)b.bytes, median * 1e6, took[0] * 1e6, b.wrong, b.calls + WARM_CALLS);
    } else {
        fprintf(stderr, "cured-bench: gpu-call: %s\n", error.text);
    }
    close_all();
    return done != CR_OK ? 69 : b.wrong != 0;
}
