/* gpu_caller_linear: linear forms that are written and finished in device memory, against the CPU's, number for number; and what is refused.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/axis.h"
#include "kernels/core/linear.h"
#include "kernels/core/widen.h"
#include "kernels/cpu/fold.h"
#include "tests/gpu/gpu_caller.h"

enum { NUMBERS = 512, PARTS = 3, MAXIMA_AT = NUMBERS * 8, ANSWERS_AT = 8192, WRONG_AT = 12288 };

/* Ops that have a linear form; sums: of floats alone. How many. */
static size_t draw_ops(cured_dtype dtype, cured_op *ops, bool sums) {
    static const cured_op all[] = {CURED_OP_SUM,           CURED_OP_MEAN, CURED_OP_SUMSQ, CURED_OP_NORM1,
                                   CURED_OP_NORM2,         CURED_OP_VAR,  CURED_OP_STD,   CURED_OP_COUNT,
                                   CURED_OP_COUNT_NONZERO, CURED_OP_MIN,  CURED_OP_MAX,   CURED_OP_NORMINF};
    const size_t of = sums ? 7 : sizeof all / sizeof all[0], first = caller_draw(of), wanted = 1 + caller_draw(4);
    size_t count = 0;
    for (size_t i = 0; i < wanted; i++) {
        const cr_finish_opts plain = {.ddof = 0};
        const cured_op op = all[(first + i) % of];
        if (cr_finish_check((cr_op)op, (cr_dtype)dtype, &plain, NULL) == CR_OK) ops[count++] = op;
    }
    if (count == 0) ops[count++] = sums ? CURED_OP_SUM : CURED_OP_COUNT_NONZERO;
    return count;
}

/* What the CPU makes of the array. */
static void expect(cured_dtype dtype, cured_dtype as, uint32_t families, const void *data, uint64_t n, int64_t *sums,
                   int64_t *maxima) {
    static cr_partial partial;
    cr_error error = {CR_OK, ""};
    cr_partial_init(&partial, (cr_dtype)dtype, families);
    cr_cpu_fold(&partial, data, n, 0);
    if (as != dtype && cr_partial_widen(&partial, (cr_dtype)as, &error) != CR_OK) abort();
    cr_linear_write(&partial, sums, maxima);
}

static uint32_t families_of(cured_dtype dtype, const cured_op *ops, size_t count) {
    uint32_t families = 0;
    for (size_t k = 0; k < count; k++) families |= cr_op_needs((cr_op)ops[k], (cr_dtype)dtype);
    return families;
}

static void fetch(cudaStream_t stream, void *to, const void *from, size_t bytes) {
    caller_cuda(cudaStreamSynchronize(stream), "synchronize");
    caller_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy");
}

/* The vector of a list of arrays, or of one, in a graph that is replayed, or not. */
static void check_written(bool captured) {
    cured_dtype dtype;
    cured_op ops[8];
    uint64_t offset;
    cured_error error;
    int64_t found[NUMBERS + CR_LINEAR_MAXIMA], wanted[NUMBERS], maxima[CR_LINEAR_MAXIMA];
    size_t adds, compares;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    const size_t size = cured_dtype_size(dtype);
    const bool floats = dtype >= CURED_F16 && dtype <= CURED_F64, sums = floats && caller_draw(2);
    const size_t op_count = draw_ops(dtype, ops, sums);
    const cured_dtype as = sums && caller_draw(2) ? CURED_F64 : dtype;
    const uint64_t first = sums && caller_draw(2) ? caller_draw(n + 1) : n;
    const cured_cuda_array arrays[] = {{caller_run.device + offset, first, dtype},
                                       {caller_run.device + offset + first * size, n - first, dtype}};
    cured_cuda_ask ask = caller_ask(arrays, first == n ? 1 : 2, ops, op_count, NULL);
    int64_t *to = (int64_t *)(void *)caller_run.beside;
    caller_good(cured_linear_size(as, ops, op_count, &adds, &compares, &error), &error, "linear size");
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    if (captured) {
        ask.stream = caller_run.streams[1];
        caller_cuda(cudaStreamBeginCapture(ask.stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    cured_status status = cured_cuda_linear(&ask, caller_draw(2) || as != dtype ? as : CURED_DTYPE_DEFAULT, to,
                                            compares != 0 ? to + NUMBERS : NULL, &error);
    if (captured) {
        caller_cuda(cudaStreamEndCapture(ask.stream, &graph), "end");
        caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        caller_cuda(cudaGraphDestroy(graph), "destroy");
        for (int i = 0; i < 2; i++) caller_cuda(cudaGraphLaunch(replay, ask.stream), "launch");
    }
    fetch(ask.stream, found, to, sizeof found);
    if (captured) caller_cuda(cudaGraphExecDestroy(replay), "destroy");
    if (status == CURED_UNIMPLEMENTED && (dtype == CURED_F8_E4M3 || dtype == CURED_F8_E5M2)) return;
    caller_good(status, &error, "linear");
    expect(dtype, as, families_of(dtype, ops, op_count), caller_run.host + offset, n, wanted, maxima);
    caller_run.checks++;
    if (memcmp(found, wanted, adds * sizeof *wanted) != 0 ||
        memcmp(found + NUMBERS, maxima, compares * sizeof *maxima) != 0)
        caller_wrong(captured ? "linear in a graph" : "linear", dtype, cured_op_name(ops[0]), n, offset);
}

/* Parts' vectors, added up, and finished on the device: each op in a result type that is drawn. */
static void check_finished(void) {
    static const cured_op ops[] = {CURED_OP_SUM, CURED_OP_NORM1, CURED_OP_MEAN, CURED_OP_NORM2, CURED_OP_SUMSQ};
    enum { OPS = sizeof ops / sizeof ops[0] };
    static const cured_dtype results[] = {CURED_DTYPE_DEFAULT, CURED_F16, CURED_BF16, CURED_F32, CURED_F64};
    cured_dtype dtype;
    uint64_t offset, at = 0, wrong = 1;
    cured_error error;
    cured_values *here;
    int64_t all[NUMBERS] = {0}, one[NUMBERS];
    uint8_t found[OPS * 8];
    void *to[OPS];
    size_t adds, compares;
    cured_options options = CURED_OPTIONS_INIT;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    if (dtype < CURED_F16 || dtype > CURED_F64) return;
    const size_t size = cured_dtype_size(dtype), parts = 1 + caller_draw(PARTS);
    int64_t *vector = (int64_t *)(void *)caller_run.beside;
    caller_good(cured_linear_size(dtype, ops, OPS, &adds, &compares, &error), &error, "linear size");
    for (size_t i = 0; i < parts; i++) {
        const uint64_t length = i + 1 == parts ? n - at : caller_draw(n - at + 1);
        const cured_cuda_array array = {length ? caller_run.device + offset + at * size : NULL, length, dtype};
        const cured_cuda_ask ask = caller_ask(&array, 1, ops, OPS, NULL);
        caller_good(cured_cuda_linear(&ask, dtype, vector, NULL, &error), &error, "linear of a part");
        fetch(ask.stream, one, vector, adds * sizeof *one);
        for (size_t k = 0; k < adds; k++) all[k] += one[k];
        at += length;
    }
    options.nan = caller_draw(2) ? CURED_NAN_SKIP : CURED_NAN_PROPAGATE;
    options.result_dtype = results[caller_draw(5)];
    for (size_t k = 0; k < OPS; k++) to[k] = caller_draw(5) ? caller_run.beside + ANSWERS_AT + 8 * k : NULL;
    cudaStream_t stream = caller_run.streams[caller_draw(4)];
    caller_cuda(cudaMemcpy(vector, all, adds * sizeof *all, cudaMemcpyHostToDevice), "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    caller_good(
        cured_cuda_from_linear(dtype, ops, OPS, &options, vector, to, caller_run.beside + WRONG_AT, stream, &error),
        &error, "from linear");
    fetch(stream, found, caller_run.beside + ANSWERS_AT, sizeof found);
    fetch(stream, &wrong, caller_run.beside + WRONG_AT, sizeof wrong);
    caller_good(cured_reduce_here(dtype, ops, OPS, caller_run.host + offset, n, &options, &here, &error), &error,
                "here");
    for (size_t k = 0; k < OPS; k++) {
        size_t bytes = 0;
        const cured_value *value = cured_values_get(here, k);
        const void *answer = cured_value_bytes(value, &bytes);
        if (to[k] == NULL || cured_value_status(value, NULL) != CURED_OK) continue;
        caller_run.checks++;
        if (wrong != 0 || memcmp(answer, &found[8 * k], bytes) != 0)
            caller_wrong("from linear", dtype, cured_op_name(ops[k]), n, offset);
    }
    cured_values_free(here);
}

/* A vector that no elements have is told. */
static void check_impossible(void) {
    static const cured_op op = CURED_OP_SUM;
    enum { LIMBS = 11, COUNT = 1 + LIMBS + 3 };
    int64_t vector[COUNT] = {4};
    uint64_t wrong = 0;
    cured_error error;
    void *const to = caller_run.beside + ANSWERS_AT;
    switch (caller_draw(4)) {
        case 0:
            vector[0] = -1;
            break;
        case 1:
            vector[1 + LIMBS] = 5;
            break;
        case 2:
            vector[2 + LIMBS] = -1;
            break;
        default:
            vector[LIMBS] = INT64_MAX;
            break;
    }
    caller_cuda(cudaMemcpy(caller_run.beside, vector, sizeof vector, cudaMemcpyHostToDevice), "copy");
    caller_good(cured_cuda_from_linear(CURED_F32, &op, 1, NULL, (const int64_t *)(const void *)caller_run.beside, &to,
                                       caller_run.beside + WRONG_AT, NULL, &error),
                &error, "from linear");
    fetch(NULL, &wrong, caller_run.beside + WRONG_AT, sizeof wrong);
    caller_run.checks++;
    if (wrong == 0) caller_wrong("impossible", CURED_F32, "sum", 4, 0);
}

static void refused(cured_status status, const cured_error *error, cured_status wanted, const char *sentence) {
    caller_run.checks++;
    if (status == wanted && strstr(error->text, sentence) != NULL) return;
    caller_run.wrong++;
    printf("wrong: refused as %d, %s; must be %d, …%s…\n", (int)status, status == CURED_OK ? "" : error->text,
           (int)wanted, sentence);
}

void caller_check_linear_refusals(void) {
    static const cured_op prod = CURED_OP_PROD, argmin = CURED_OP_ARGMIN, max = CURED_OP_MAX, sum = CURED_OP_SUM,
                          digest = CURED_OP_DIGEST, var = CURED_OP_VAR;
    cured_error error;
    int64_t *vector = (int64_t *)(void *)caller_run.beside;
    const cured_cuda_array f32 = {caller_run.device, 16, CURED_F32}, i32 = {caller_run.device, 16, CURED_I32};
    const cured_cuda_array two[] = {i32, i32};
    cured_cuda_ask ask = {sizeof ask, &f32, 1, &prod, 1, NULL, caller_run.streams[0]};
    refused(cured_cuda_linear(&ask, CURED_F32, vector, NULL, &error), &error, CURED_INVALID_ARGUMENT, "no linear form");
    ask.ops = &argmin;
    refused(cured_cuda_linear(&ask, CURED_F32, vector, vector, &error), &error, CURED_INVALID_ARGUMENT, "position");
    ask.ops = &digest;
    refused(cured_cuda_linear(&ask, CURED_F32, vector, NULL, &error), &error, CURED_UNIMPLEMENTED,
            "ask for the partial");
    ask.ops = &max;
    refused(cured_cuda_linear(&ask, CURED_F32, vector, NULL, &error), &error, CURED_INVALID_ARGUMENT, "maxima is NULL");
    refused(cured_cuda_linear(&ask, CURED_F64, vector, vector, &error), &error, CURED_UNIMPLEMENTED, "extrema");
    ask.ops = &sum;
    refused(cured_cuda_linear(&ask, CURED_F16, vector, NULL, &error), &error, CURED_INVALID_ARGUMENT, "does not hold");
    refused(cured_cuda_linear(&ask, (cured_dtype)99, vector, NULL, &error), &error, CURED_INVALID_ARGUMENT,
            "as: dtype is 99");
    refused(cured_cuda_linear(&ask, CURED_F32, NULL, NULL, &error), &error, CURED_INVALID_ARGUMENT, "sums is NULL");
    refused(cured_cuda_linear(&ask, CURED_F32, (int64_t *)(void *)(caller_run.beside + 4), NULL, &error), &error,
            CURED_INVALID_ARGUMENT, "multiple of 8");
    ask.arrays = two;
    ask.array_count = 2;
    refused(cured_cuda_linear(&ask, CURED_I32, vector, NULL, &error), &error, CURED_UNIMPLEMENTED, "call for each");
    void *const to = caller_run.beside + ANSWERS_AT;
    refused(cured_cuda_from_linear(CURED_F32, &var, 1, NULL, vector, &to, NULL, NULL, &error), &error,
            CURED_UNIMPLEMENTED, "copy the vector");
    refused(cured_cuda_from_linear(CURED_F32, &sum, 1, NULL, NULL, &to, NULL, NULL, &error), &error,
            CURED_INVALID_ARGUMENT, "sums is NULL");
    void *const odd = caller_run.beside + 3;
    refused(cured_cuda_from_linear(CURED_F32, &sum, 1, NULL, vector, &odd, NULL, NULL, &error), &error,
            CURED_INVALID_ARGUMENT, "to[0]");
}

void caller_check_linear(void) {
    switch (caller_draw(6)) {
        case 0:
            check_impossible();
            break;
        case 1:
            check_written(true);
            break;
        case 2:
            check_finished();
            break;
        default:
            check_written(false);
            break;
    }
}
