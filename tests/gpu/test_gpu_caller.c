/* test_gpu_caller: device memory reduced on this program's own streams (cured/cuda.h), against the CPU, bit for bit. The order of the
 * stream, captures and threads are in gpu_caller_stream.c, lists of several types in gpu_caller_types.c. The same program runs on a GPU and over the runtime double of tests/double,
 * where what is enqueued runs late.
 *
 * usage: test_gpu_caller [--seed S] [--cases N] [--bytes N] [--random 1] [--pairs N] [--ranks N] [--keys N] [--blocks N]
 * --random 1: the random cases alone, for sanitizers. --pairs N: so many random pairs of arrays alone; --ranks N: so many medians and
 * quantiles; --keys N: so many reductions by key; --blocks N: so many partials of blocks. CURED_CUDA_LIBRARY names the library. Exits 77 without a GPU.
 * Thread: one, but for the soak. Owner: this file. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/axis.h"
#include "kernels/cpu/fold.h"
#include "tests/gpu/gpu_caller.h"

enum { SOME_ARRAYS = 40, MOST_ARRAYS = 700 }; /* more than 320 are no longer told with a launch */

caller_state caller_run = {.seed = 1, .cases = 400, .bytes = CALLER_ROOM};

void caller_cuda(cudaError_t failure, const char *what) {
    if (failure == cudaSuccess) return;
    printf("failed: %s: %s\n", what, cudaGetErrorString(failure));
    exit(1);
}

void caller_good(cured_status status, const cured_error *error, const char *what) {
    if (status == CURED_OK) return;
    printf("failed: %s: %s\n", what, error->text);
    exit(1);
}

void caller_wrong(const char *what, cured_dtype dtype, const char *op, uint64_t n, uint64_t offset) {
    if (caller_run.wrong++ < 20)
        printf("wrong: %s of %s %s, n %llu, offset %llu, seed %llu\n", what, cured_dtype_name(dtype), op,
               (unsigned long long)n, (unsigned long long)offset, (unsigned long long)caller_run.seed);
}

uint64_t caller_draw(uint64_t below) { return case_random(&caller_run.seed) % below; }

bool caller_same(const cured_value *a, const cured_value *b) {
    size_t left = 0, right = 0;
    cured_error error;
    if (cured_value_status(a, &error) != cured_value_status(b, &error)) return false;
    const void *x = cured_value_bytes(a, &left), *y = cured_value_bytes(b, &right);
    return left == right && cured_value_dtype(a) == cured_value_dtype(b) && (left == 0 || memcmp(x, y, left) == 0);
}

/* Of one array, found by a fold, and as wide as a word along an axis: others have checks of their own. */
static cured_op draw_op(void) {
    cr_op all[64];
    size_t count = 0;
    for (cr_op op = cr_op_next(CR_OP_NONE); op != CR_OP_NONE; op = cr_op_next(op))
        if (cr_op_inputs(op) == 1 && cr_op_closing(op) != CR_CLOSING_ORDER && cr_op_closing(op) != CR_CLOSING_DIGEST)
            all[count++] = op;
    return (cured_op)all[caller_draw(count)];
}

size_t caller_draw_ops(cured_dtype dtype, cured_op *ops, bool unordered) {
    size_t count = 0, wanted = 1 + caller_draw(4);
    for (int tries = 0; tries < 60 && count < wanted; tries++) {
        const cured_op op = draw_op();
        const cr_finish_opts plain = {.ddof = 0};
        bool there = cr_finish_check((cr_op)op, (cr_dtype)dtype, &plain, NULL) != CR_OK;
        if (unordered && cr_op_is_ordered((cr_op)op, (cr_dtype)dtype)) there = true;
        for (size_t k = 0; k < count; k++) there |= ops[k] == op;
        if (!there) ops[count++] = op;
    }
    if (count == 0) ops[count++] = CURED_OP_COUNT_NONZERO;
    return count;
}

uint64_t caller_make_array(cured_dtype *dtype, uint64_t *offset, uint64_t most) {
    static const uint64_t lengths[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 100, 255, 256, 1023, 1024, 4099};
    *dtype = (cured_dtype)(CURED_BOOL + caller_draw(CURED_F64 - CURED_BOOL + 3));
    if (*dtype > CURED_F64) *dtype += CURED_F8_E4M3 - CURED_F64 - 1;
    *offset = caller_draw(2) ? caller_draw(16) : 0;
    const size_t size = cured_dtype_size(*dtype);
    uint64_t n = caller_draw(3) ? lengths[caller_draw(sizeof lengths / sizeof lengths[0])] : caller_draw(most / size);
    if (n > most / size) n = most / size;
    case_fill(caller_run.host + *offset, n, (cr_dtype)*dtype, (enum cr_data_kind)caller_draw(DATA_KINDS),
              caller_run.seed);
    caller_cuda(cudaMemcpy(caller_run.device + *offset, caller_run.host + *offset, n * size, cudaMemcpyHostToDevice),
                "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize"); /* streams that do not wait for the legacy one read it, too */
    return n;
}

static void *any_stream(void) {
    const uint64_t which = caller_draw(6);
    if (which < 4) return caller_run.streams[which];
    return (void *)(uintptr_t)(which - 4); /* the legacy one by both its names */
}

cured_cuda_ask caller_ask(const cured_cuda_array *arrays, size_t count, const cured_op *ops, size_t op_count,
                          const cured_options *options) {
    return (cured_cuda_ask){sizeof(cured_cuda_ask), arrays, count, ops, op_count, options, any_stream()};
}

void caller_compare(const char *what, cured_dtype dtype, const cured_op *ops, size_t op_count, const void *host,
                    uint64_t n, const cured_options *options, const cured_values *values, uint64_t offset) {
    cured_values *here;
    cured_error error;
    caller_good(cured_reduce_here(dtype, ops, op_count, host, n, options, &here, &error), &error, "here");
    for (size_t k = 0; k < op_count; k++) {
        caller_run.checks++;
        if (!caller_same(cured_values_get(values, k), cured_values_get(here, k)))
            caller_wrong(what, dtype, cured_op_name(ops[k]), n, offset);
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
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    const size_t count = caller_draw_ops(dtype, ops, false);
    if (caller_draw(2)) options.nan = CURED_NAN_SKIP;
    bool takes_nan = false;
    cured_values *tried;
    takes_nan = cured_reduce_here(dtype, ops, count, caller_run.host, 0, &options, &tried, &error) == CURED_OK;
    if (takes_nan)
        cured_values_free(tried);
    else
        options.nan = CURED_NAN_PROPAGATE;
    const cured_cuda_array array = {caller_run.device + offset, n, dtype};
    const cured_cuda_ask ask = caller_ask(&array, 1, ops, count, &options);
    if (caller_draw(2)) {
        caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "reduce");
    } else {
        cured_cuda_call *call;
        caller_good(cured_cuda_start(&ask, &call, &error), &error, "start");
        while (caller_draw(2) && !cured_cuda_done(call)) {
        }
        caller_good(cured_cuda_finish(call, &values, &error), &error, "finish");
    }
    caller_compare("whole", dtype, ops, count, caller_run.host + offset, n, &options, values, offset);
    cured_values_free(values);
}

/* Pieces of one array, in order; gives how many. */
static size_t cut(cured_cuda_array *arrays, cured_dtype dtype, uint64_t offset, uint64_t n, uint64_t grain) {
    const size_t size = cured_dtype_size(dtype), wanted = 1 + caller_draw(caller_draw(6) ? SOME_ARRAYS : MOST_ARRAYS);
    size_t count = 0;
    uint64_t at = 0;
    while (count + 1 < wanted && at < n) {
        uint64_t length = wanted <= SOME_ARRAYS && caller_draw(4) ? caller_draw(n - at + 1) / 4 : caller_draw(40);
        length = length / grain * grain;
        if (length > n - at) length = n - at;
        arrays[count++] = (cured_cuda_array){length ? caller_run.device + offset + at * size : NULL, length, dtype};
        at += length;
    }
    arrays[count++] = (cured_cuda_array){caller_run.device + offset + at * size, n - at, dtype};
    return count;
}

static void check_list(void) {
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    cured_values *values, *each[MOST_ARRAYS];
    cured_cuda_array arrays[MOST_ARRAYS];
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    const size_t op_count = caller_draw_ops(dtype, ops, true), count = cut(arrays, dtype, offset, n, 1);
    const cured_cuda_ask ask = caller_ask(arrays, count, ops, op_count, NULL);
    caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "list");
    caller_compare("list", dtype, ops, op_count, caller_run.host + offset, n, NULL, values, offset);
    cured_values_free(values);
    caller_good(cured_cuda_reduce_each(&ask, each, &error), &error, "each");
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = (uint64_t)((const uint8_t *)arrays[i].data - caller_run.device);
        caller_compare("each", dtype, ops, op_count, arrays[i].count ? caller_run.host + at : NULL, arrays[i].count,
                       NULL, each[i], offset);
        cured_values_free(each[i]);
    }
}

/* Sums of a list of floats to device memory, in a graph or not, read by a copy behind them. */
static void check_list_to(bool captured) {
    static const cured_op sums[] = {CURED_OP_SUM, CURED_OP_NORM1, CURED_OP_MEAN, CURED_OP_NORM2, CURED_OP_SUMSQ};
    enum { SUMS = sizeof sums / sizeof sums[0] };
    cured_dtype dtype;
    uint64_t offset;
    cured_error error;
    cured_values *here;
    cured_cuda_array arrays[MOST_ARRAYS];
    void *to[SUMS];
    double found[SUMS];
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    if (n == 0 || dtype < CURED_F16) return;
    const size_t count = cut(arrays, dtype, offset, n, 1);
    cured_cuda_ask ask = caller_ask(arrays, count, sums, SUMS, NULL);
    for (size_t k = 0; k < SUMS; k++) to[k] = caller_run.beside + 8 * k;
    if (captured) {
        ask.stream = caller_run.streams[1];
        caller_cuda(cudaStreamBeginCapture(ask.stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    caller_good(cured_cuda_enqueue(&ask, to, NULL, &error), &error, "enqueue a list");
    if (captured) {
        caller_cuda(cudaStreamEndCapture(ask.stream, &graph), "end");
        caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        caller_cuda(cudaGraphDestroy(graph), "destroy");
        for (int i = 0; i < 2; i++) caller_cuda(cudaGraphLaunch(replay, ask.stream), "launch");
    }
    caller_cuda(cudaStreamSynchronize(ask.stream), "synchronize");
    if (captured) caller_cuda(cudaGraphExecDestroy(replay), "destroy");
    caller_cuda(cudaMemcpy(found, caller_run.beside, sizeof found, cudaMemcpyDeviceToHost), "copy");
    caller_good(cured_reduce_here(dtype, sums, SUMS, caller_run.host + offset, n, NULL, &here, &error), &error, "here");
    for (size_t k = 0; k < SUMS; k++) {
        size_t size;
        const void *value = cured_value_bytes(cured_values_get(here, k), &size);
        caller_run.checks++;
        if (size != 8 || memcmp(value, &found[k], 8) != 0)
            caller_wrong(captured ? "list in a graph" : "list to", dtype, cured_op_name(sums[k]), n, offset);
    }
    cured_values_free(here);
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
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes / 4);
    const size_t op_count = caller_draw_ops(dtype, ops, false), count = cut(arrays, dtype, offset, n, CR_PROD_BLOCK);
    const cured_cuda_ask ask = caller_ask(arrays, count, ops, op_count, NULL);
    caller_good(cured_cuda_partial(&ask, bytes, &size, &error), &error, "partial");
    caller_good(cured_partial_finish(bytes, size, ops, op_count, NULL, &values, &error), &error, "finish");
    caller_compare("partial", dtype, ops, op_count, caller_run.host + offset, n, NULL, values, offset);
    cured_values_free(values);
}

/* What the CPU says of output i. */
static cr_status answer_here(cured_dtype dtype, cured_op op, const cured_axis *axis, uint64_t i, uint64_t offset,
                             uint8_t out[CR_DIGEST_BYTES]) {
    static cr_partial partial;
    const size_t size = cured_dtype_size(dtype);
    const cr_finish_opts plain = {.ddof = 0};
    cr_error error = {CR_OK, ""};
    static uint8_t column[CALLER_ROOM + CALLER_SPARE];
    const uint64_t block = i / axis->inner, inner = i % axis->inner;
    for (uint64_t k = 0; k < axis->n; k++)
        memcpy(column + k * size, caller_run.host + offset + ((block * axis->n + k) * axis->inner + inner) * size,
               size);
    cr_partial_init(&partial, (cr_dtype)dtype, cr_op_needs((cr_op)op, (cr_dtype)dtype));
    cr_cpu_fold(&partial, column, axis->n, 0);
    return cr_axis_store(&partial, (cr_op)op, &plain, i, out, &error);
}

/* Answers to host memory, or to device memory, along an axis or of a whole array. */
static void check_axis(bool to_device, bool whole) {
    static uint8_t answers[4][CALLER_ROOM];
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset, failed = 0;
    cured_error error;
    cured_options options = CURED_OPTIONS_INIT;
    uint64_t n = caller_make_array(&dtype, &offset, 65536);
    if (n == 0) return;
    size_t op_count = caller_draw_ops(dtype, ops, false);
    if (op_count > 4) op_count = 4;
    if (caller_draw(2)) ops[op_count < 4 ? op_count++ : 3] = CURED_OP_DIGEST;
    cured_axis axis = {1, n, 1};
    if (!whole) {
        axis.n = 1 + caller_draw(caller_draw(2) ? 40 : n);
        if (axis.n > n) axis.n = n;
        axis.inner = 1 + caller_draw(caller_draw(2) ? 8 : n / axis.n);
        if (axis.inner > n / axis.n) axis.inner = 1;
        axis.outer = n / axis.n / axis.inner;
        n = axis.outer * axis.n * axis.inner;
        options.axis = &axis;
    }
    const cured_cuda_array array = {caller_run.device + offset, n, dtype};
    const cured_cuda_ask ask = caller_ask(&array, 1, ops, op_count, &options);
    void *to[4];
    cured_status status;
    for (size_t k = 0; k < op_count; k++)
        to[k] = to_device ? (void *)(caller_run.beside + 64 + k * CALLER_ROOM) : answers[k];
    if (to_device) {
        caller_cuda(cudaMemset(caller_run.beside, 0x5a, 8), "memset");
        caller_cuda(cudaDeviceSynchronize(), "synchronize");
        status = cured_cuda_enqueue(&ask, to, caller_run.beside, &error);
    } else {
        status = cured_cuda_reduce_axis(&ask, to, &error);
    }
    if (status == CURED_UNIMPLEMENTED) return;
    if (to_device) {
        caller_good(status, &error, "enqueue");
        caller_cuda(cudaStreamSynchronize(ask.stream), "synchronize");
        caller_cuda(cudaMemcpy(&failed, caller_run.beside, 8, cudaMemcpyDeviceToHost), "copy");
        for (size_t k = 0; k < op_count; k++)
            caller_cuda(
                cudaMemcpy(answers[k], to[k], axis.outer * axis.inner * CR_DIGEST_BYTES, cudaMemcpyDeviceToHost),
                "copy");
    } else if (status != CURED_OUT_OF_RANGE) {
        caller_good(status, &error, "axis");
    }
    bool lacks = false;
    for (size_t k = 0; k < op_count; k++) {
        const size_t size = cured_dtype_size(cured_axis_dtype(ops[k], dtype, CURED_DTYPE_DEFAULT));
        bool right = true;
        for (uint64_t i = 0; i < axis.outer * axis.inner && i < 500; i++) {
            uint8_t value[CR_DIGEST_BYTES];
            const bool fits = answer_here(dtype, ops[k], &axis, i, offset, value) == CR_OK;
            lacks |= !fits;
            if (fits) right = right && memcmp(answers[k] + i * size, value, size) == 0;
        }
        caller_run.checks++;
        if (!right && status == CURED_OK)
            caller_wrong(to_device ? "to" : "axis", dtype, cured_op_name(ops[k]), n, offset);
    }
    if (axis.outer * axis.inner <= 500 && lacks != (to_device ? failed != 0 : status == CURED_OUT_OF_RANGE))
        caller_wrong("status", dtype, "", n, offset);
}

static void open_all(void) {
    int devices = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("skipped: no CUDA device\n");
        exit(77);
    }
    void *device = NULL, *beside = NULL;
    caller_run.host = malloc(CALLER_ROOM + CALLER_SPARE);
    caller_cuda(cudaMalloc(&device, CALLER_ROOM + CALLER_SPARE), "malloc");
    caller_cuda(cudaMalloc(&beside, 5 * CALLER_ROOM), "malloc");
    caller_cuda(cudaMemset(device, 0, CALLER_ROOM + CALLER_SPARE), "memset");
    caller_cuda(cudaMemset(beside, 0, 5 * CALLER_ROOM), "memset");
    caller_run.device = device;
    caller_run.beside = beside;
    for (int i = 0; i < 4; i++)
        caller_cuda(
            cudaStreamCreateWithFlags(&caller_run.streams[i], i % 2 ? cudaStreamNonBlocking : cudaStreamDefault),
            "stream");
}

static int tell(void) {
    printf("%llu answers, %llu wrong\n", (unsigned long long)caller_run.checks, (unsigned long long)caller_run.wrong);
    return caller_run.wrong != 0;
}

int main(int argc, char **argv) {
    bool random_alone = false;
    uint64_t pairs = 0, ranks = 0, keys = 0, blocks = 0;
    caller_run.seed = case_seed();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) caller_run.seed = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--cases") == 0) caller_run.cases = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--random") == 0) random_alone = atoi(argv[i + 1]) != 0;
        if (strcmp(argv[i], "--pairs") == 0) pairs = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--ranks") == 0) ranks = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--keys") == 0) keys = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--blocks") == 0) blocks = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--bytes") == 0) caller_run.bytes = strtoull(argv[i + 1], NULL, 0);
    }
    if (caller_run.bytes > CALLER_ROOM) caller_run.bytes = CALLER_ROOM;
    open_all();
    for (uint64_t i = 0; i < pairs; i++)
        i % 2 ? caller_check_close_pairs() : i % 4 ? caller_check_edge_pairs() : caller_check_pairs();
    for (uint64_t i = 0; i < ranks; i++) caller_check_ranks();
    for (uint64_t i = 0; i < keys; i++) i % 8 == 7 ? caller_check_hot() : caller_check_keys();
    for (uint64_t i = 0; i < blocks; i++) caller_check_block();
    if (pairs != 0 || ranks != 0 || keys != 0 || blocks != 0) return tell();
    caller_check_refusals();
    caller_check_linear_refusals();
    caller_check_pair_refusals();
    caller_check_extreme_pairs();
    for (uint64_t i = 0; i < caller_run.cases; i++) {
        check_whole();
        if (i % 2 == 0) check_list();
        if (i % 4 == 0) check_partial();
        if (i % 2 == 1) caller_check_block();
        if (i % 2 == 1) caller_check_types();
        if (i % 2 == 0) caller_check_masked();
        caller_check_linear();
        caller_check_pairs();
        caller_check_edge_pairs();
        caller_check_close_pairs();
        caller_check_ranks();
        caller_check_keys();
        if (i % 4 == 0) caller_check_hot();
        check_list_to(i % 8 == 0);
        check_axis(i & 1, (i & 3) == 3);
    }
    if (random_alone) return tell();
    for (int i = 0; i < 8; i++) caller_check_order(caller_run.streams[i % 4], i >= 4);
    caller_check_order(NULL, false);
    caller_check_capture();
    caller_check_threads();
    cured_cuda_trim();
    check_whole();
    caller_check_fork();
    return tell();
}
