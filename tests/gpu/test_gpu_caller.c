/* test_gpu_caller: device memory reduced on this program's own streams (cured/cuda.h), against the CPU, bit for bit; the order of the
 * stream; captures; threads; what is refused. The same program runs on a GPU and over the runtime double of tests/double, where what
 * is enqueued runs late.
 *
 * usage: test_gpu_caller [--seed S] [--cases N]
 * CURED_CUDA_LIBRARY names the library. Exits 77 without a GPU. Thread: one, but for the soak. Owner: this file. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cured/cuda.h"
#include "kernels/core/axis.h"
#include "kernels/cpu/fold.h"
#include "tests/gpu/gpu_cases.h"

enum { ROOM = 4 << 20, SPARE = 64, MOST_ARRAYS = 40, THREADS = 4 };

static struct {
    uint64_t seed, cases, checks, wrong;
    uint8_t *host, *device, *beside; /* the same array twice, and memory for other things on the device */
    cudaStream_t streams[4];
} run = {.seed = 1, .cases = 400};

static void cuda(cudaError_t failure, const char *what) {
    if (failure == cudaSuccess) return;
    printf("failed: %s: %s\n", what, cudaGetErrorString(failure));
    exit(1);
}

static void good(cured_status status, const cured_error *error, const char *what) {
    if (status == CURED_OK) return;
    printf("failed: %s: %s\n", what, error->text);
    exit(1);
}

static void wrong(const char *what, cured_dtype dtype, const char *op, uint64_t n, uint64_t offset) {
    if (run.wrong++ < 20)
        printf("wrong: %s of %s %s, n %llu, offset %llu, seed %llu\n", what, cured_dtype_name(dtype), op,
               (unsigned long long)n, (unsigned long long)offset, (unsigned long long)run.seed);
}

static uint64_t draw(uint64_t below) { return case_random(&run.seed) % below; }

static bool same(const cured_value *a, const cured_value *b) {
    size_t left = 0, right = 0;
    cured_error error;
    if (cured_value_status(a, &error) != cured_value_status(b, &error)) return false;
    const void *x = cured_value_bytes(a, &left), *y = cured_value_bytes(b, &right);
    return left == right && cured_value_dtype(a) == cured_value_dtype(b) && (left == 0 || memcmp(x, y, left) == 0);
}

/* Some ops that go with the type; how many. */
static size_t draw_ops(cured_dtype dtype, cured_op *ops, bool unordered) {
    size_t count = 0, wanted = 1 + draw(4);
    for (int tries = 0; tries < 60 && count < wanted; tries++) {
        const cured_op op = (cured_op)(1 + draw(21));
        const cr_finish_opts plain = {.ddof = 0};
        bool there = cr_finish_check((cr_op)op, (cr_dtype)dtype, &plain, NULL) != CR_OK;
        if (unordered && cr_op_is_ordered((cr_op)op, (cr_dtype)dtype)) there = true;
        for (size_t k = 0; k < count; k++) there |= ops[k] == op;
        if (!there) ops[count++] = op;
    }
    if (count == 0) ops[count++] = CURED_OP_COUNT_NONZERO;
    return count;
}

/* An array of that type at run.host and run.device, from offset on. */
static uint64_t make_array(cured_dtype *dtype, uint64_t *offset, uint64_t most) {
    static const uint64_t lengths[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 100, 255, 256, 1023, 1024, 4099};
    *dtype = (cured_dtype)(CURED_BOOL + draw(CURED_F64 - CURED_BOOL + 1));
    *offset = draw(2) ? draw(16) : 0;
    const size_t size = cured_dtype_size(*dtype);
    uint64_t n = draw(3) ? lengths[draw(sizeof lengths / sizeof lengths[0])] : draw(most / size);
    if (n > most / size) n = most / size;
    case_fill(run.host + *offset, n, (cr_dtype)*dtype, (enum cr_data_kind)draw(DATA_KINDS), run.seed);
    cuda(cudaMemcpy(run.device + *offset, run.host + *offset, n * size, cudaMemcpyHostToDevice), "copy");
    cuda(cudaDeviceSynchronize(), "synchronize"); /* streams that do not wait for the legacy one read it, too */
    return n;
}

static void *any_stream(void) {
    const uint64_t which = draw(6);
    if (which < 4) return run.streams[which];
    return (void *)(uintptr_t)(which - 4); /* the legacy one by both its names */
}

static cured_cuda_ask ask_of(const cured_cuda_array *arrays, size_t count, const cured_op *ops, size_t op_count,
                             const cured_options *options) {
    return (cured_cuda_ask){sizeof(cured_cuda_ask), arrays, count, ops, op_count, options, any_stream()};
}

static void compare(const char *what, cured_dtype dtype, const cured_op *ops, size_t op_count, const void *host,
                    uint64_t n, const cured_options *options, const cured_values *values, uint64_t offset) {
    cured_values *here;
    cured_error error;
    good(cured_reduce_here(dtype, ops, op_count, host, n, options, &here, &error), &error, "here");
    for (size_t k = 0; k < op_count; k++) {
        run.checks++;
        if (!same(cured_values_get(values, k), cured_values_get(here, k)))
            wrong(what, dtype, cured_op_name(ops[k]), n, offset);
    }
    cured_values_free(here);
}

static void check_whole(void) {
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    cured_values *values;
    cured_options options = CURED_OPTIONS_INIT;
    const uint64_t n = make_array(&dtype, &offset, ROOM);
    const size_t count = draw_ops(dtype, ops, false);
    if (draw(2)) options.nan = CURED_NAN_SKIP;
    bool takes_nan = false;
    cured_values *tried;
    takes_nan = cured_reduce_here(dtype, ops, count, run.host, 0, &options, &tried, &error) == CURED_OK;
    if (takes_nan)
        cured_values_free(tried);
    else
        options.nan = CURED_NAN_PROPAGATE;
    const cured_cuda_array array = {run.device + offset, n, dtype};
    const cured_cuda_ask ask = ask_of(&array, 1, ops, count, &options);
    if (draw(2)) {
        good(cured_cuda_reduce(&ask, &values, &error), &error, "reduce");
    } else {
        cured_cuda_call *call;
        good(cured_cuda_start(&ask, &call, &error), &error, "start");
        while (draw(2) && !cured_cuda_done(call)) {
        }
        good(cured_cuda_finish(call, &values, &error), &error, "finish");
    }
    compare("whole", dtype, ops, count, run.host + offset, n, &options, values, offset);
    cured_values_free(values);
}

/* Pieces of one array, in order; gives how many. */
static size_t cut(cured_cuda_array *arrays, cured_dtype dtype, uint64_t offset, uint64_t n, uint64_t grain) {
    const size_t size = cured_dtype_size(dtype), wanted = 1 + draw(MOST_ARRAYS);
    size_t count = 0;
    uint64_t at = 0;
    while (count + 1 < wanted && at < n) {
        uint64_t length = draw(4) ? draw(n - at + 1) / 4 : draw(40);
        length = length / grain * grain;
        if (length > n - at) length = n - at;
        arrays[count++] = (cured_cuda_array){length ? run.device + offset + at * size : NULL, length, dtype};
        at += length;
    }
    arrays[count++] = (cured_cuda_array){run.device + offset + at * size, n - at, dtype};
    return count;
}

static void check_list(void) {
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    cured_values *values, *each[MOST_ARRAYS];
    cured_cuda_array arrays[MOST_ARRAYS];
    const uint64_t n = make_array(&dtype, &offset, ROOM);
    const size_t op_count = draw_ops(dtype, ops, true), count = cut(arrays, dtype, offset, n, 1);
    const cured_cuda_ask ask = ask_of(arrays, count, ops, op_count, NULL);
    good(cured_cuda_reduce(&ask, &values, &error), &error, "list");
    compare("list", dtype, ops, op_count, run.host + offset, n, NULL, values, offset);
    cured_values_free(values);
    good(cured_cuda_reduce_each(&ask, each, &error), &error, "each");
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)((const uint8_t *)arrays[i].data - run.device);
        compare("each", dtype, ops, op_count, arrays[i].count ? run.host + at : NULL, arrays[i].count, NULL, each[i],
                offset);
        cured_values_free(each[i]);
    }
}

/* The partial of a list by position, finished on the host. */
static void check_partial(void) {
    static uint8_t bytes[CURED_PARTIAL_BYTES];
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    cured_values *values;
    cured_cuda_array arrays[MOST_ARRAYS];
    size_t size = sizeof bytes;
    const uint64_t n = make_array(&dtype, &offset, ROOM / 4);
    const size_t op_count = draw_ops(dtype, ops, false), count = cut(arrays, dtype, offset, n, CR_PROD_BLOCK);
    const cured_cuda_ask ask = ask_of(arrays, count, ops, op_count, NULL);
    good(cured_cuda_partial(&ask, bytes, &size, &error), &error, "partial");
    good(cured_partial_finish(bytes, size, ops, op_count, NULL, &values, &error), &error, "finish");
    compare("partial", dtype, ops, op_count, run.host + offset, n, NULL, values, offset);
    cured_values_free(values);
}

/* What the CPU says of output i. */
static cr_status answer_here(cured_dtype dtype, cured_op op, const cured_axis *axis, uint64_t i, uint64_t offset,
                             uint8_t out[16]) {
    static cr_partial partial;
    const size_t size = cured_dtype_size(dtype);
    const cr_finish_opts plain = {.ddof = 0};
    cr_error error = {CR_OK, ""};
    static uint8_t column[ROOM + SPARE];
    const uint64_t block = i / axis->inner, inner = i % axis->inner;
    for (uint64_t k = 0; k < axis->n; k++)
        memcpy(column + k * size, run.host + offset + ((block * axis->n + k) * axis->inner + inner) * size, size);
    cr_partial_init(&partial, (cr_dtype)dtype, cr_op_needs((cr_op)op, (cr_dtype)dtype));
    cr_cpu_fold(&partial, column, axis->n, 0);
    return cr_axis_store(&partial, (cr_op)op, &plain, i, out, &error);
}

/* Answers to host memory, or to device memory, along an axis or of a whole array. */
static void check_axis(bool to_device, bool whole) {
    static uint8_t answers[4][ROOM];
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset, failed = 0;
    cured_error error;
    cured_options options = CURED_OPTIONS_INIT;
    uint64_t n = make_array(&dtype, &offset, 65536);
    if (n == 0) return;
    size_t op_count = draw_ops(dtype, ops, false);
    if (op_count > 4) op_count = 4;
    cured_axis axis = {1, n, 1};
    if (!whole) {
        axis.n = 1 + draw(draw(2) ? 40 : n);
        if (axis.n > n) axis.n = n;
        axis.inner = 1 + draw(draw(2) ? 8 : n / axis.n);
        if (axis.inner > n / axis.n) axis.inner = 1;
        axis.outer = n / axis.n / axis.inner;
        n = axis.outer * axis.n * axis.inner;
        options.axis = &axis;
    }
    const cured_cuda_array array = {run.device + offset, n, dtype};
    const cured_cuda_ask ask = ask_of(&array, 1, ops, op_count, &options);
    void *to[4];
    cured_status status;
    for (size_t k = 0; k < op_count; k++) to[k] = to_device ? (void *)(run.beside + 64 + k * ROOM) : answers[k];
    if (to_device) {
        cuda(cudaMemset(run.beside, 0x5a, 8), "memset");
        cuda(cudaDeviceSynchronize(), "synchronize");
        status = cured_cuda_enqueue(&ask, to, run.beside, &error);
    } else {
        status = cured_cuda_reduce_axis(&ask, to, &error);
    }
    if (status == CURED_UNIMPLEMENTED) return;
    if (to_device) {
        good(status, &error, "enqueue");
        cuda(cudaStreamSynchronize(ask.stream), "synchronize");
        cuda(cudaMemcpy(&failed, run.beside, 8, cudaMemcpyDeviceToHost), "copy");
        for (size_t k = 0; k < op_count; k++)
            cuda(cudaMemcpy(answers[k], to[k], axis.outer * axis.inner * 8, cudaMemcpyDeviceToHost), "copy");
    } else if (status != CURED_OUT_OF_RANGE) {
        good(status, &error, "axis");
    }
    bool lacks = false;
    for (size_t k = 0; k < op_count; k++) {
        const size_t size = cured_dtype_size(cured_axis_dtype(ops[k], dtype, CURED_DTYPE_DEFAULT));
        bool right = true;
        for (uint64_t i = 0; i < axis.outer * axis.inner && i < 500; i++) {
            uint8_t value[16];
            const bool fits = answer_here(dtype, ops[k], &axis, i, offset, value) == CR_OK;
            lacks |= !fits;
            if (fits) right = right && memcmp(answers[k] + i * size, value, size) == 0;
        }
        run.checks++;
        if (!right && status == CURED_OK) wrong(to_device ? "to" : "axis", dtype, cured_op_name(ops[k]), n, offset);
    }
    if (axis.outer * axis.inner <= 500 && lacks != (to_device ? failed != 0 : status == CURED_OUT_OF_RANGE))
        wrong("status", dtype, "", n, offset);
}

/* ---- The order of the stream ---- */

/* Work that takes long, then the true array over a false one; behind the call false elements again. */
static void check_order(cudaStream_t stream, bool list) {
    enum { N = 65536 };
    cured_error error;
    cured_values *values, *here;
    static float truth[N];
    float *array = (float *)(void *)run.device;
    uint8_t *from = run.beside + ROOM;
    for (size_t i = 0; i < N; i++) truth[i] = (float)(1 + draw(1000));
    cuda(cudaMemcpy(from, truth, sizeof truth, cudaMemcpyHostToDevice), "copy");
    cuda(cudaMemset(array, 0x41, sizeof truth), "memset");
    cuda(cudaDeviceSynchronize(), "synchronize");
    for (int i = 0; i < 40; i++)
        cuda(cudaMemcpyAsync(run.beside + 2 * ROOM, run.beside + 3 * ROOM, ROOM, cudaMemcpyDeviceToDevice, stream),
             "copy");
    cuda(cudaMemcpyAsync(array, from, sizeof truth, cudaMemcpyDeviceToDevice, stream), "copy");
    const cured_cuda_array arrays[] = {{array, N / 2, CURED_F32}, {array + N / 2, N / 2, CURED_F32}};
    const cured_cuda_array one = {array, N, CURED_F32};
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM2};
    cured_cuda_ask ask = ask_of(list ? arrays : &one, list ? 2 : 1, ops, 2, NULL);
    ask.stream = stream;
    cured_cuda_call *call;
    good(cured_cuda_start(&ask, &call, &error), &error, "start");
    void *to[] = {run.beside + 64, run.beside + 128};
    cured_cuda_ask whole = ask_of(&one, 1, ops, 2, NULL);
    whole.stream = stream;
    good(cured_cuda_enqueue(&whole, to, NULL, &error), &error, "enqueue");
    cuda(cudaMemcpyAsync(run.beside + 256, to[0], 8, cudaMemcpyDeviceToDevice, stream),
         "copy"); /* a reader behind it */
    cuda(cudaMemsetAsync(array, 0x42, sizeof truth, stream), "memset");
    cuda(cudaMemsetAsync(to[0], 0x43, 8, stream), "memset");
    good(cured_cuda_finish(call, &values, &error), &error, "finish");
    cuda(cudaStreamSynchronize(stream), "synchronize");
    good(cured_reduce_here(CURED_F32, ops, 2, truth, N, NULL, &here, &error), &error, "here");
    uint8_t read[8];
    size_t size;
    cuda(cudaMemcpy(read, run.beside + 256, 8, cudaMemcpyDeviceToHost), "copy");
    for (size_t k = 0; k < 2; k++)
        if (!same(cured_values_get(values, k), cured_values_get(here, k)))
            wrong("order", CURED_F32, list ? "list" : "", N, k);
    if (memcmp(read, cured_value_bytes(cured_values_get(here, 0), &size), 8) != 0) wrong("reader", CURED_F32, "", N, 0);
    run.checks += 3;
    cured_values_free(values);
    cured_values_free(here);
}

/* ---- Captures ---- */

static void check_capture(void) {
    enum { N = 10000 };
    cured_error error;
    cured_values *values;
    static float data[N];
    float *array = (float *)(void *)run.device;
    double sum = 0, *to = (double *)(void *)(run.beside + 64);
    cudaStream_t stream = run.streams[0];
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    const cured_cuda_array one = {array, N, CURED_F32};
    const cured_op op = CURED_OP_SUM;
    cured_cuda_ask ask = ask_of(&one, 1, &op, 1, NULL);
    ask.stream = stream;
    cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    cured_status status = cured_cuda_reduce(&ask, &values, &error);
    if (status != CURED_FAILED_PRECONDITION) wrong("captured reduce", CURED_F32, "sum", N, 0);
    good(cured_cuda_enqueue(&ask, (void *const[]){to}, run.beside, &error), &error, "captured enqueue");
    good(cured_cuda_enqueue(&ask, (void *const[]){to + 1}, NULL, &error), &error, "captured enqueue");
    cuda(cudaStreamEndCapture(stream, &graph), "end");
    cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    cuda(cudaGraphDestroy(graph), "destroy");
    for (int turn = 0; turn < 5; turn++) {
        for (size_t i = 0; i < N; i++) data[i] = (float)(turn * 100 + (int)draw(50));
        cuda(cudaMemcpy(array, data, sizeof data, cudaMemcpyHostToDevice), "copy");
        cuda(cudaMemset(to, 0, 16), "memset");
        cuda(cudaDeviceSynchronize(), "synchronize");
        cuda(cudaGraphLaunch(replay, stream), "launch");
        good(cured_cuda_reduce(&ask, &values, &error), &error, "beside a graph"); /* eager, in the same stream */
        cuda(cudaStreamSynchronize(stream), "synchronize");
        compare("beside a graph", CURED_F32, &op, 1, data, N, NULL, values, 0);
        size_t size;
        const void *true_sum = cured_value_bytes(cured_values_get(values, 0), &size);
        for (int k = 0; k < 2; k++) {
            cuda(cudaMemcpy(&sum, to + k, 8, cudaMemcpyDeviceToHost), "copy");
            if (memcmp(true_sum, &sum, 8) != 0) wrong("replay", CURED_F32, "sum", N, (uint64_t)turn);
        }
        cured_values_free(values);
    }
    cuda(cudaGraphExecDestroy(replay), "destroy");
}

/* ---- Threads ---- */

static void *soak(void *user) {
    const uint64_t me = (uint64_t)(uintptr_t)user;
    uint64_t random = run.seed + me;
    cured_error error;
    cured_values *values;
    double mine[256];
    cudaStream_t own = NULL;
    void *device = NULL;
    for (int i = 0; i < 60; i++) {
        const size_t n = 1 + case_random(&random) % 256;
        double sum = 0;
        for (size_t k = 0; k < n; k++) sum += mine[k] = (double)(case_random(&random) % 1000);
        if (i % 20 == 0) {
            if (own) cudaStreamSynchronize(own), cudaStreamDestroy(own);
            cuda(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "stream");
        }
        cudaStream_t stream = i % 3 == 0 ? run.streams[1] : i % 3 == 1 ? own : (cudaStream_t)(uintptr_t)2;
        cuda(cudaMallocAsync(&device, sizeof mine, stream), "malloc");
        cuda(cudaMemcpyAsync(device, mine, n * sizeof mine[0], cudaMemcpyHostToDevice, stream), "copy");
        const cured_cuda_array one = {device, n, CURED_F64};
        const cured_op op = CURED_OP_SUM;
        const cured_cuda_ask ask = {sizeof ask, &one, 1, &op, 1, NULL, stream};
        cured_cuda_call *call;
        good(cured_cuda_start(&ask, &call, &error), &error, "start");
        cuda(cudaFreeAsync(device, stream), "free"); /* the stream keeps the order */
        good(cured_cuda_finish(call, &values, &error), &error, "finish");
        size_t size;
        if (memcmp(cured_value_bytes(cured_values_get(values, 0), &size), &sum, 8) != 0)
            wrong("soak", CURED_F64, "sum", n, me);
        cured_values_free(values);
    }
    cudaStreamSynchronize(own);
    cudaStreamDestroy(own);
    return NULL;
}

static void check_threads(void) {
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, soak, (void *)(uintptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    run.checks += THREADS * 60;
}

/* ---- What is refused ---- */

static void refused(const char *what, cured_status got, cured_status wanted, const cured_error *error,
                    const char *word) {
    run.checks++;
    if (got == wanted && (wanted == CURED_OK || strstr(error->text, word) != NULL)) return;
    run.wrong++;
    printf("wrong: %s: status %d, wanted %d with '%s': %s\n", what, (int)got, (int)wanted, word, error->text);
}

static void check_refusals(void) {
    cured_error error = {.text = ""};
    cured_values *values, *each[2];
    static float host[4];
    const cured_op sum = CURED_OP_SUM, bits = CURED_OP_BIT_AND;
    cured_cuda_array two[] = {{run.device, 4, CURED_F32}, {run.device, 4, CURED_F64}}, at_host = {host, 4, CURED_F32};
    cured_cuda_ask ask = {sizeof ask, two, 2, &sum, 1, NULL, NULL};
    refused("types", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "arrays[1]");
    good(cured_cuda_reduce_each(&ask, each, &error), &error, "each of two types");
    cured_values_free(each[0]);
    cured_values_free(each[1]);
    ask.array_count = 0;
    refused("none", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "array_count");
    ask.array_count = 1;
    ask.ops = &bits;
    refused("op", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "bit_and");
    ask.ops = &sum;
    ask.struct_bytes = 8;
    refused("struct", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "struct_bytes");
    ask.struct_bytes = sizeof ask;
    cured_axis axis = {1, 3, 1};
    cured_options options = CURED_OPTIONS_INIT;
    options.axis = &axis;
    ask.options = &options;
    refused("axis", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "axis");
    refused("elements", cured_cuda_reduce_axis(&ask, (void *const[]){host}, &error), CURED_INVALID_ARGUMENT, &error,
            "axis");
    options.axis = NULL;
    cured_mask mask = {.data = host, .count = 4, .kind = CURED_MASK_BYTES};
    options.mask = &mask;
    refused("mask", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "mask");
    ask.options = NULL;
    refused("place", cured_cuda_enqueue(&ask, (void *const[]){run.beside + 1}, NULL, &error), CURED_INVALID_ARGUMENT,
            &error, "to[0]");
    ask.arrays = &at_host;
    refused("host", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error,
            "no memory that a GPU reads");
}

/* A child of a process that has used CUDA. */
static void check_fork(void) {
    cured_error error;
    cured_values *values;
    const cured_op sum = CURED_OP_SUM;
    const cured_cuda_array one = {run.device, 4, CURED_F32};
    const cured_cuda_ask ask = {sizeof ask, &one, 1, &sum, 1, NULL, NULL};
    const pid_t child = fork();
    if (child == 0) _exit(cured_cuda_reduce(&ask, &values, &error) == CURED_FAILED_PRECONDITION ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    run.checks++;
    if (status != 0) wrong("fork", CURED_F32, "sum", 4, 0);
}

static void open_all(void) {
    int devices = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device\n");
        exit(77);
    }
    void *device = NULL, *beside = NULL;
    run.host = malloc(ROOM + SPARE);
    cuda(cudaMalloc(&device, ROOM + SPARE), "malloc");
    cuda(cudaMalloc(&beside, 5 * ROOM), "malloc");
    run.device = device;
    run.beside = beside;
    for (int i = 0; i < 4; i++)
        cuda(cudaStreamCreateWithFlags(&run.streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault), "stream");
}

int main(int argc, char **argv) {
    run.seed = case_seed();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) run.seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--cases") == 0) run.cases = strtoull(argv[i + 1], NULL, 0);
    }
    open_all();
    check_refusals();
    for (uint64_t i = 0; i < run.cases; i++) {
        check_whole();
        if (i % 2 == 0) check_list();
        if (i % 4 == 0) check_partial();
        check_axis(i & 1, (i & 3) == 3);
    }
    for (int i = 0; i < 8; i++) check_order(run.streams[i % 4], i >= 4);
    check_order(NULL, false);
    check_capture();
    check_threads();
    cured_cuda_trim();
    check_whole();
    check_fork();
    printf("%llu answers, %llu wrong\n", (unsigned long long)run.checks, (unsigned long long)run.wrong);
    return run.wrong != 0;
}
