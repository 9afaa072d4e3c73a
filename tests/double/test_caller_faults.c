/* test_caller_faults: every call of the runtime that a call of cured/cuda.h makes fails once. It then says what failed or does without,
 * leaves no memory behind, and the next call is right; of a stream's first call and of a later one. */
#include <string.h>

#include "tests/double/caller_asks.h"

/* All that libcured-cuda calls of a runtime, but for the text and the last error. */
static const char *const names[] = {"cudaDeviceGetAttribute",
                                    "cudaEventCreateWithFlags",
                                    "cudaEventDestroy",
                                    "cudaEventQuery",
                                    "cudaEventRecord",
                                    "cudaFree",
                                    "cudaFreeAsync",
                                    "cudaFreeHost",
                                    "cudaFuncGetAttributes",
                                    "cudaGetDevice",
                                    "cudaGraphRetainUserObject",
                                    "cudaMalloc",
                                    "cudaMallocAsync",
                                    "cudaMallocHost",
                                    "cudaMemcpyAsync",
                                    "cudaMemsetAsync",
                                    "cudaPointerGetAttributes",
                                    "cudaStreamCreateWithFlags",
                                    "cudaStreamDestroy",
                                    "cudaStreamGetCaptureInfo",
                                    "cudaStreamGetId",
                                    "cudaStreamIsCapturing",
                                    "cudaStreamQuery",
                                    "cudaStreamSynchronize",
                                    "cudaThreadExchangeStreamCaptureMode",
                                    "cudaUserObjectCreate",
                                    "cudaUserObjectRelease",
                                    "cuCtxGetDevice",
                                    "cuCtxGetId",
                                    "launch"};
enum { NAMES = sizeof names / sizeof *names, MOST_TRIED = 4 };

static unsigned tried;

static void setup(void) {
    cr_double_seed(0);
    asks_open(0);
    asks_do(ASK_REDUCE, 0, 0, NULL); /* what a process does once is done */
    tried = 0;
}

/* Gives the call on the stream, in a capture that ends well or not. */
static cured_status call(asks_kind kind, cudaStream_t stream, const char *name, unsigned nth, cudaError_t code,
                         cured_error *error) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made;
    if (kind >= ASK_GRAPH) ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    if (name) cr_double_fail(name, nth, (int)code);
    cured_status status = asks_call(kind, 0, 1, stream, error);
    cr_double_fail(NULL, 0, 0);
    cudaGetLastError();
    if (kind < ASK_GRAPH) return status;
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (status == CURED_OK) ck_assert_int_eq(ended, 0);
    if (status == CURED_OK) {
        ck_assert_int_eq(cudaGraphInstantiate(&made, graph, 0), 0);
        ck_assert_int_eq(cudaGraphLaunch(made, stream), 0);
        cudaStreamSynchronize(stream);
        cudaGraphExecDestroy(made);
    }
    if (graph) cudaGraphDestroy(graph);
    return status;
}

static void check_call(asks_kind kind, bool first, const char *name, unsigned nth, cudaError_t code) {
    cudaStream_t stream;
    cured_error error = {.text = ""};
    cr_double_run(SIZE_MAX); /* a graph's end, too */
    cured_cuda_trim();
    const cr_double_counts before = asks_counts();
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    asks_fault = "none";
    if (!first) asks_do(kind, 0, 0, stream);
    const cured_status status = call(kind, stream, name, nth, code, &error);
    if (status == CURED_OK && asks_to_device(kind)) cudaStreamSynchronize(stream);
    if (status == CURED_OK) ck_assert_msg(asks_right(kind, 0, 1), "%s: wrong with %s %u", asks_names[kind], name, nth);
    if (status != CURED_OK) ck_assert_msg(error.text[0] != 0, "%s: no sentence for %s %u", asks_names[kind], name, nth);
    if (status != CURED_OK && code == cudaErrorMemoryAllocation) ck_assert_int_eq(status, CURED_RESOURCE_EXHAUSTED);
    asks_fault = name;
    asks_do(kind, 0, 0, stream);
    asks_do(ASK_REDUCE, 0, 1, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cr_double_run(SIZE_MAX);
    cured_cuda_trim();
    const cr_double_counts after = asks_counts();
    ck_assert_msg(after.late_writes == before.late_writes, "%s: late write with %s %u", asks_names[kind], name, nth);
    ck_assert_msg(after.stale == before.stale, "%s: stale handle with %s %u", asks_names[kind], name, nth);
    /* What a free that failed has left is no leak of this library's; and without its number a context counts as lost. */
    if (strstr(name, "Free") == NULL && strcmp(name, "cuCtxGetId") != 0)
        ck_assert_msg(after.live_blocks == before.live_blocks, "%s: %s %u of %s leaves %ld blocks", asks_names[kind],
                      name, nth, first ? "first" : "later", (long)(after.live_blocks - before.live_blocks));
    if (strstr(name, "Destroy") == NULL)
        ck_assert_msg(after.events == before.events && after.streams == before.streams, "%s: %s %u leaves events",
                      asks_names[kind], name, nth);
    tried++;
}

static void check_kind(asks_kind kind, bool first) {
    cudaStream_t stream;
    cured_error error;
    uint64_t made[NAMES];
    cured_cuda_trim();
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (!first) asks_do(kind, 0, 0, stream);
    for (size_t i = 0; i < NAMES; i++) made[i] = cr_double_calls(names[i]);
    if (kind >= ASK_GRAPH) cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    ck_assert_int_eq(asks_call(kind, 0, 1, stream, &error), CURED_OK);
    for (size_t i = 0; i < NAMES; i++) made[i] = cr_double_calls(names[i]) - made[i];
    if (kind >= ASK_GRAPH) {
        cudaGraph_t graph;
        ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), 0);
        cudaGraphDestroy(graph);
    }
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    for (size_t i = 0; i < NAMES; i++)
        for (unsigned nth = 1; nth <= made[i]; nth++) {
            if (nth > MOST_TRIED && nth < made[i]) continue; /* one is like the other */
            check_call(kind, first, names[i], nth,
                       strstr(names[i], "Malloc") ? cudaErrorMemoryAllocation : cudaErrorUnknown);
        }
    ck_assert_uint_gt(tried, 3);
}

START_TEST(first_calls_survive_faults) { check_kind((asks_kind)_i, true); }
END_TEST
START_TEST(later_calls_survive_faults) { check_kind((asks_kind)_i, false); }
END_TEST

START_TEST(memory_may_be_exhausted) {
    cudaStream_t stream;
    cured_error error = {.text = ""};
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cured_cuda_trim();
    const cr_double_counts before = asks_counts();
    for (uint64_t more = 0; more < (uint64_t)64 << 20; more = more * 4 + 4096) {
        cr_double_memory(before.live_bytes + more);
        const cured_status status = call((asks_kind)_i, stream, NULL, 0, cudaSuccess, &error);
        cr_double_memory(UINT64_MAX);
        if (more == 0) ck_assert_int_eq(status, CURED_RESOURCE_EXHAUSTED);
        if (status != CURED_OK) ck_assert_msg(status == CURED_RESOURCE_EXHAUSTED && error.text[0], "%s", error.text);
        cudaStreamSynchronize(stream);
        if (status == CURED_OK) ck_assert(asks_right((asks_kind)_i, 0, 1));
    }
    asks_do((asks_kind)_i, 0, 0, stream);
    cr_double_run(SIZE_MAX);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
}
END_TEST

CR_CHECK_MAIN("double/caller_faults") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, first_calls_survive_faults, 0, ASK_KINDS);
    tcase_add_loop_test(tc, later_calls_survive_faults, 0, ASK_KINDS);
    tcase_add_loop_test(tc, memory_may_be_exhausted, 0, ASK_KINDS);
}
