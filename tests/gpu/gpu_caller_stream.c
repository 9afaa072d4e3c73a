/* gpu_caller_stream: device memory reduced amid other work: the order of the stream, captures, threads, and what is refused.
 *
 * Thread: one, but for the soak. Owner: this file. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/gpu_caller.h"

enum { THREADS = 4 };

/* ---- The order of the stream ---- */

/* Work that takes long, then the true array over a false one; behind the call false elements again. */
void caller_check_order(cudaStream_t stream, bool list) {
    enum { N = 65536 };
    cured_error error;
    cured_values *values, *here;
    static float truth[N];
    float *array = (float *)(void *)caller_run.device;
    uint8_t *from = caller_run.beside + CALLER_ROOM;
    for (size_t i = 0; i < N; i++) truth[i] = (float)(1 + caller_draw(1000));
    caller_cuda(cudaMemcpy(from, truth, sizeof truth, cudaMemcpyHostToDevice), "copy");
    caller_cuda(cudaMemset(array, 0x41, sizeof truth), "memset");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    for (int i = 0; i < 40; i++)
        caller_cuda(cudaMemcpyAsync(caller_run.beside + 2 * CALLER_ROOM, caller_run.beside + 3 * CALLER_ROOM,
                                    CALLER_ROOM, cudaMemcpyDeviceToDevice, stream),
                    "copy");
    caller_cuda(cudaMemcpyAsync(array, from, sizeof truth, cudaMemcpyDeviceToDevice, stream), "copy");
    const cured_cuda_array arrays[] = {{array, N / 2, CURED_F32}, {array + N / 2, N / 2, CURED_F32}};
    const cured_cuda_array one = {array, N, CURED_F32};
    const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM2};
    cured_cuda_ask ask = caller_ask(list ? arrays : &one, list ? 2 : 1, ops, 2, NULL);
    ask.stream = stream;
    cured_cuda_call *call;
    caller_good(cured_cuda_start(&ask, &call, &error), &error, "start");
    void *to[] = {caller_run.beside + 64, caller_run.beside + 128};
    cured_cuda_ask whole = caller_ask(&one, 1, ops, 2, NULL);
    whole.stream = stream;
    caller_good(cured_cuda_enqueue(&whole, to, NULL, &error), &error, "enqueue");
    caller_cuda(cudaMemcpyAsync(caller_run.beside + 256, to[0], 8, cudaMemcpyDeviceToDevice, stream),
                "copy"); /* a reader behind it */
    caller_cuda(cudaMemsetAsync(array, 0x42, sizeof truth, stream), "memset");
    caller_cuda(cudaMemsetAsync(to[0], 0x43, 8, stream), "memset");
    caller_good(cured_cuda_finish(call, &values, &error), &error, "finish");
    caller_cuda(cudaStreamSynchronize(stream), "synchronize");
    caller_good(cured_reduce_here(CURED_F32, ops, 2, truth, N, NULL, &here, &error), &error, "here");
    uint8_t read[8];
    size_t size;
    caller_cuda(cudaMemcpy(read, caller_run.beside + 256, 8, cudaMemcpyDeviceToHost), "copy");
    for (size_t k = 0; k < 2; k++)
        if (!caller_same(cured_values_get(values, k), cured_values_get(here, k)))
            caller_wrong("order", CURED_F32, list ? "list" : "", N, k);
    if (memcmp(read, cured_value_bytes(cured_values_get(here, 0), &size), 8) != 0)
        caller_wrong("reader", CURED_F32, "", N, 0);
    caller_run.checks += 3;
    cured_values_free(values);
    cured_values_free(here);
}

/* ---- Captures ---- */

void caller_check_capture(void) {
    enum { N = 10000 };
    cured_error error;
    cured_values *values;
    static float data[N];
    float *array = (float *)(void *)caller_run.device;
    double sum = 0, *to = (double *)(void *)(caller_run.beside + 64);
    cudaStream_t stream = caller_run.streams[0];
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    const cured_cuda_array one = {array, N, CURED_F32};
    const cured_op op = CURED_OP_SUM;
    cured_cuda_ask ask = caller_ask(&one, 1, &op, 1, NULL);
    ask.stream = stream;
    caller_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    cured_status status = cured_cuda_reduce(&ask, &values, &error);
    if (status != CURED_FAILED_PRECONDITION) caller_wrong("captured reduce", CURED_F32, "sum", N, 0);
    caller_good(cured_cuda_enqueue(&ask, (void *const[]){to}, caller_run.beside, &error), &error, "captured enqueue");
    caller_good(cured_cuda_enqueue(&ask, (void *const[]){to + 1}, NULL, &error), &error, "captured enqueue");
    caller_cuda(cudaStreamEndCapture(stream, &graph), "end");
    caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    caller_cuda(cudaGraphDestroy(graph), "destroy");
    for (int turn = 0; turn < 5; turn++) {
        for (size_t i = 0; i < N; i++) data[i] = (float)(turn * 100 + (int)caller_draw(50));
        caller_cuda(cudaMemcpy(array, data, sizeof data, cudaMemcpyHostToDevice), "copy");
        caller_cuda(cudaMemset(to, 0, 16), "memset");
        caller_cuda(cudaDeviceSynchronize(), "synchronize");
        caller_cuda(cudaGraphLaunch(replay, stream), "launch");
        caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "beside a graph"); /* eager, in the same stream */
        caller_cuda(cudaStreamSynchronize(stream), "synchronize");
        caller_compare("beside a graph", CURED_F32, &op, 1, data, N, NULL, values, 0);
        size_t size;
        const void *true_sum = cured_value_bytes(cured_values_get(values, 0), &size);
        for (int k = 0; k < 2; k++) {
            caller_cuda(cudaMemcpy(&sum, to + k, 8, cudaMemcpyDeviceToHost), "copy");
            if (memcmp(true_sum, &sum, 8) != 0) caller_wrong("replay", CURED_F32, "sum", N, (uint64_t)turn);
        }
        cured_values_free(values);
    }
    caller_cuda(cudaGraphExecDestroy(replay), "destroy");
}

/* ---- Threads ---- */

static void *soak(void *user) {
    const uint64_t me = (uint64_t)(uintptr_t)user;
    uint64_t random = caller_run.seed + me;
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
            caller_cuda(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "stream");
        }
        cudaStream_t stream = i % 3 == 0 ? caller_run.streams[1] : i % 3 == 1 ? own : (cudaStream_t)(uintptr_t)2;
        caller_cuda(cudaMallocAsync(&device, sizeof mine, stream), "malloc");
        caller_cuda(cudaMemcpyAsync(device, mine, n * sizeof mine[0], cudaMemcpyHostToDevice, stream), "copy");
        const cured_cuda_array one = {device, n, CURED_F64};
        const cured_op op = CURED_OP_SUM;
        const cured_cuda_ask ask = {sizeof ask, &one, 1, &op, 1, NULL, stream};
        cured_cuda_call *call;
        caller_good(cured_cuda_start(&ask, &call, &error), &error, "start");
        caller_cuda(cudaFreeAsync(device, stream), "free"); /* the stream keeps the order */
        caller_good(cured_cuda_finish(call, &values, &error), &error, "finish");
        size_t size;
        if (memcmp(cured_value_bytes(cured_values_get(values, 0), &size), &sum, 8) != 0)
            caller_wrong("soak", CURED_F64, "sum", n, me);
        cured_values_free(values);
    }
    cudaStreamSynchronize(own);
    cudaStreamDestroy(own);
    return NULL;
}

void caller_check_threads(void) {
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, soak, (void *)(uintptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    caller_run.checks += THREADS * 60;
}

/* ---- What is refused ---- */

static void refused(const char *what, cured_status got, cured_status wanted, const cured_error *error,
                    const char *word) {
    caller_run.checks++;
    if (got == wanted && (wanted == CURED_OK || strstr(error->text, word) != NULL)) return;
    caller_run.wrong++;
    printf("wrong: %s: status %d, wanted %d with '%s': %s\n", what, (int)got, (int)wanted, word, error->text);
}

void caller_check_refusals(void) {
    cured_error error = {.text = ""};
    cured_values *values, *each[2];
    static float host[4];
    const cured_op sum = CURED_OP_SUM, bits = CURED_OP_BIT_AND, product = CURED_OP_PROD;
    cured_cuda_array two[] = {{caller_run.device, 4, CURED_F32}, {caller_run.device, 4, CURED_F64}},
                     at_host = {host, 4, CURED_F32};
    cured_cuda_ask ask = {sizeof ask, two, 2, &sum, 1, NULL, NULL};
    void *const to[] = {caller_run.beside};
    refused("types", cured_cuda_enqueue(&ask, to, NULL, &error), CURED_INVALID_ARGUMENT, &error, "arrays[1]");
    two[1].dtype = CURED_I32;
    refused("no type", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error, "i32, f32: floats");
    two[1].dtype = CURED_F64;
    ask.ops = &product;
    refused("product", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error,
            "cast the arrays to f64");
    ask.ops = &sum;
    caller_good(cured_cuda_reduce_each(&ask, each, &error), &error, "each of two types");
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
    void *partial;
    size_t bytes = sizeof host;
    refused("placed", cured_cuda_partial(&ask, host, &bytes, &error), CURED_INVALID_ARGUMENT, &error, "set unplaced");
    refused("keyless", cured_cuda_partial_by_key(&ask, &partial, &bytes, &error), CURED_INVALID_ARGUMENT, &error,
            "keys is NULL");
    cured_keys keys = {caller_run.beside, 3, CURED_I32, 1, 1, false};
    options.keys = &keys;
    refused("keyed", cured_cuda_partial(&ask, host, &bytes, &error), CURED_INVALID_ARGUMENT, &error, "keys has no");
    refused("rows", cured_cuda_partial_by_key(&ask, &partial, &bytes, &error), CURED_INVALID_ARGUMENT, &error,
            "the array has 4");
    ask.options = NULL;
    refused("place", cured_cuda_enqueue(&ask, (void *const[]){caller_run.beside + 1}, NULL, &error),
            CURED_INVALID_ARGUMENT, &error, "to[0]");
    ask.arrays = &at_host;
    refused("host", cured_cuda_reduce(&ask, &values, &error), CURED_INVALID_ARGUMENT, &error,
            "no memory that a GPU reads");
}

void caller_check_fork(void) {
    cured_error error;
    cured_values *values;
    const cured_op sum = CURED_OP_SUM;
    const cured_cuda_array one = {caller_run.device, 4, CURED_F32};
    const cured_cuda_ask ask = {sizeof ask, &one, 1, &sum, 1, NULL, NULL};
    const pid_t child = fork();
    if (child == 0) _exit(cured_cuda_reduce(&ask, &values, &error) == CURED_FAILED_PRECONDITION ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    caller_run.checks++;
    if (status != 0) caller_wrong("fork", CURED_F32, "sum", 4, 0);
}
