/* test_caller: what cured/cuda.h promises of streams, devices, workspaces and graphs, where the random test does not look. */
#include <cuda.h>
#include <pthread.h>
#include <string.h>

#include "tests/double/caller_asks.h"

enum { SLOTS = 32, N = 1000 };

static cured_error error;
static cudaStream_t stream;

static void setup(void) { asks_begin(2, &stream); }

static void *function(const char *name) {
    void *found = NULL;
    cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, NULL);
    return found;
}
static CUcontext current(void) {
    CUcontext found = NULL;
    ((CUresult(*)(CUcontext *))function("cuCtxGetCurrent"))(&found);
    return found;
}

static bool says(const char *word) { return strstr(error.text, word) != NULL; }

/* ---- Streams and devices ---- */

START_TEST(calls_stay_in_their_stream) {
    const asks_kind kind = (asks_kind)_i;
    cudaStream_t streams[] = {stream, NULL, cudaStreamPerThread};
    for (int s = 0; s < 3; s++) {
        for (int turn = 0; turn < 2; turn++) { /* the first makes the workspace */
            const cr_double_counts before = asks_counts();
            const uint64_t own = cr_double_enqueued_in(streams[s]);
            ck_assert_int_eq(asks_call(kind, 0, turn, streams[s], &error), CURED_OK);
            const cr_double_counts after = asks_counts();
            ck_assert_uint_eq(after.device_syncs, before.device_syncs);
            ck_assert_uint_eq(after.stream_syncs, before.stream_syncs);
            ck_assert_uint_eq(after.event_syncs, before.event_syncs);
            ck_assert_uint_eq(after.enqueued - before.enqueued, cr_double_enqueued_in(streams[s]) - own);
            ck_assert_uint_eq(after.streams, before.streams);
            if (asks_to_device(kind)) {
                ck_assert_uint_eq(after.ran, before.ran); /* it has waited for nothing */
                ck_assert_int_eq(cudaStreamSynchronize(streams[s]), 0);
            }
            ck_assert(asks_right(kind, 0, turn));
        }
    }
}
END_TEST

/* The array is on one device; that or the other one is current, or none. */
/* Work behind an event of another stream's: the stream waits for it and the host does not, or the other way round. */
START_TEST(events_are_waited_for) {
    cudaStream_t writer;
    cudaEvent_t event;
    cudaGraph_t graph;
    double *data, seen = 0;
    const double ones[] = {1, 1, 1, 1};
    ck_assert_int_eq(cudaStreamCreateWithFlags(&writer, cudaStreamNonBlocking), 0);
    ck_assert_int_eq(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), 0);
    ck_assert_int_eq(cudaMalloc((void **)&data, sizeof ones), 0);
    for (int here = 0; here < 2; here++) {
        ck_assert_int_eq(cudaMemset(data, 0, sizeof ones), 0);
        ck_assert_int_eq(cr_double_slow_write(writer, data, ones, sizeof ones), 0);
        ck_assert_int_eq(cudaEventRecord(event, writer), 0);
        const cr_double_counts before = asks_counts();
        ck_assert_int_eq(cured_cuda_wait(data, event, stream, here != 0, &error), CURED_OK);
        const cr_double_counts after = asks_counts();
        ck_assert_uint_eq(after.event_syncs - before.event_syncs, (uint64_t)here);
        ck_assert_uint_eq(after.stream_syncs + after.device_syncs, before.stream_syncs + before.device_syncs);
        ck_assert_uint_eq(cr_double_pending_in(writer) == 0, here != 0);
        ck_assert_int_eq(cr_double_copy_kernel(stream, &data[0], &data[3], sizeof seen), 0);
        ck_assert_int_eq(cudaMemcpyAsync(&seen, data, sizeof seen, cudaMemcpyDeviceToHost, stream), 0);
        ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
        ck_assert_double_eq(seen, 1);
    }
    const cr_double_counts before = asks_counts();
    ck_assert_int_eq(cr_double_slow_write(stream, data, ones, sizeof ones), 0);
    ck_assert_int_eq(cr_double_slow_write(writer, data, ones, sizeof ones), 0);
    ck_assert_int_eq(cured_cuda_wait(data, NULL, stream, true, &error), CURED_OK); /* for its stream alone */
    const cr_double_counts after = asks_counts();
    ck_assert_uint_eq(after.stream_syncs - before.stream_syncs, 1);
    ck_assert_uint_eq(after.launches, before.launches);
    ck_assert_uint_eq(cr_double_pending_in(stream), 0);
    ck_assert_uint_ne(cr_double_pending_in(writer), 0);
    ck_assert_int_eq(cudaStreamSynchronize(writer), 0);
    ck_assert_int_eq(cudaStreamBeginCapture(writer, cudaStreamCaptureModeRelaxed), 0);
    ck_assert_int_eq(cured_cuda_wait(data, NULL, writer, true, &error), CURED_FAILED_PRECONDITION);
    ck_assert_int_eq(cudaStreamEndCapture(writer, &graph), 0);
    cudaGraphDestroy(graph);
    ck_assert_int_eq(cured_cuda_wait(data, NULL, stream, false, &error), CURED_INVALID_ARGUMENT);
    ck_assert(says("wait for an event"));
    ck_assert_int_eq(cured_cuda_wait(ones, event, stream, false, &error), CURED_INVALID_ARGUMENT);
    ck_assert(says("no memory that a GPU reads"));
    cudaFree(data);
    cudaEventDestroy(event);
    cudaStreamDestroy(writer);
}
END_TEST

START_TEST(the_current_device_stays) {
    const asks_kind kind = (asks_kind)_i;
    for (int device = 0; device < 2; device++) {
        cudaStream_t own;
        cudaSetDevice(device);
        ck_assert_int_eq(cudaStreamCreate(&own), 0);
        for (int which = 0; which < 3; which++) {
            int now = -1;
            if (which < 2) cudaSetDevice(which);
            if (which < 2) asks_do(kind, device, which, own);
            cudaGetDevice(&now);
            if (which < 2) ck_assert_int_eq(now, which);
            if (kind >= ASK_GRAPH) continue;
            if (which == 2) ((CUresult(*)(CUcontext))function("cuCtxSetCurrent"))(NULL);
            const CUcontext before = current();
            ck_assert_int_eq(asks_call(kind, device, 1, own, &error), CURED_OK);
            ck_assert_ptr_eq(current(), before);
            cured_cuda_trim();
            ck_assert_ptr_eq(current(), before);
            if (asks_to_device(kind)) cudaStreamSynchronize(own);
            ck_assert(asks_right(kind, device, 1));
        }
    }
}
END_TEST

START_TEST(other_contexts_are_refused) {
    cr_double_foreign_context(true);
    const CUcontext before = current();
    for (int kind = 0; kind < ASK_GRAPH; kind++) {
        error.text[0] = 0;
        ck_assert_int_eq(asks_call((asks_kind)kind, 0, 0, stream, &error), CURED_FAILED_PRECONDITION);
        ck_assert_msg(says("primary"), "%s", error.text);
        ck_assert_ptr_eq(current(), before);
    }
    cr_double_foreign_context(false);
    asks_do(ASK_REDUCE, 0, 0, stream);
}
END_TEST

/* ---- Workspaces ---- */

START_TEST(a_workspace_is_small) {
    static const asks_kind kinds[] = {ASK_REDUCE, ASK_LIST, ASK_PARTS, ASK_EACH};
    const uint64_t before = cr_double_device_bytes();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) asks_do(kinds[i], 0, 0, stream);
    ck_assert_uint_lt(cr_double_device_bytes() - before, 1000000);
}
END_TEST

START_TEST(streams_in_turn_share_workspaces) {
    enum { STREAMS = 200, KEPT = 64 };
    cudaStream_t streams[STREAMS];
    const cr_double_counts before = asks_counts();
    uint64_t blocks = 0;
    for (int i = 0; i < STREAMS; i++) {
        ck_assert_int_eq(cudaStreamCreate(&streams[i]), 0);
        asks_do(i % 2 ? ASK_LIST : ASK_REDUCE, 0, i % 3 == 0, streams[i]);
        if (i == KEPT * 2) blocks = asks_counts().live_blocks;
        if (i > KEPT * 2) ck_assert_uint_le(asks_counts().live_blocks, blocks + KEPT * 2);
        if (i % 5 == 0) cudaStreamDestroy(streams[i]);
    }
    ck_assert_uint_eq(asks_counts().device_syncs, before.device_syncs);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
    ck_assert_uint_eq(asks_counts().events, before.events);
    asks_do(ASK_ROWS, 0, 0, streams[1]);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
}
END_TEST

/* An array for each call: all its elements are the number, so each answer is another. */
static float *numbers(int number) {
    static float host[N];
    float *device = NULL;
    for (size_t i = 0; i < N; i++) host[i] = (float)number;
    ck_assert_int_eq(cudaMalloc((void **)&device, sizeof host), 0);
    ck_assert_int_eq(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), 0);
    cudaDeviceSynchronize();
    return device;
}

static cured_status start(const float *data, cudaStream_t on, cured_cuda_call **call) {
    const cured_op op = CURED_OP_SUM;
    const cured_cuda_array one = {data, N, CURED_F32};
    const cured_cuda_ask ask = {sizeof ask, &one, 1, &op, 1, NULL, on};
    return cured_cuda_start(&ask, call, &error);
}

static void finish(cured_cuda_call *call, int number) {
    cured_values *values;
    double sum;
    size_t bytes;
    const cured_status status = cured_cuda_finish(call, &values, &error);
    ck_assert_msg(status == CURED_OK, "%s", error.text);
    memcpy(&sum, cured_value_bytes(cured_values_get(values, 0), &bytes), sizeof sum);
    ck_assert_double_eq(sum, (double)number * N);
    cured_values_free(values);
}

START_TEST(busy_streams_have_their_own) {
    enum { STREAMS = 80 };
    cudaStream_t streams[STREAMS];
    cured_cuda_call *calls[STREAMS];
    float *arrays[STREAMS];
    for (int i = 0; i < STREAMS; i++) arrays[i] = numbers(i);
    const cr_double_counts before = asks_counts();
    for (int i = 0; i < STREAMS; i++) {
        ck_assert_int_eq(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), 0);
        ck_assert_int_eq(start(arrays[i], streams[i], &calls[i]), CURED_OK);
    }
    cured_cuda_trim(); /* of what is under way nothing goes */
    for (int i = 0; i < STREAMS; i++) finish(calls[(i * 37) % STREAMS], (i * 37) % STREAMS);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
    ck_assert_uint_eq(asks_counts().late_writes, 0);
}
END_TEST

START_TEST(so_many_calls_may_be_started) {
    cured_cuda_call *calls[SLOTS], *more = NULL;
    float *arrays[SLOTS];
    for (int i = 0; i < SLOTS; i++) arrays[i] = numbers(i);
    cr_double_seed((uint64_t)_i);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < SLOTS; i++) ck_assert_int_eq(start(arrays[i], stream, &calls[i]), CURED_OK);
        const uint64_t ran = asks_counts().ran;
        for (int k = 0; k < 3; k++) ck_assert_int_eq(start(arrays[0], stream, &more), CURED_RESOURCE_EXHAUSTED);
        ck_assert(more == NULL && says("32") && says("finish one"));
        ck_assert_uint_eq(asks_counts().ran, ran); /* nobody waited to say so */
        for (int i = 0; i < SLOTS; i++) {
            const int k = (i * 13 + turn) % SLOTS;
            if (i % 3 == 0)
                while (!cured_cuda_done(calls[k])) {
                }
            if (i % 4 == 1)
                ck_assert_int_eq(cured_cuda_finish(calls[k], NULL, &error), CURED_OK); /* nobody wants it */
            else
                finish(calls[k], k);
        }
    }
    cudaStreamSynchronize(stream);
}
END_TEST

/* A longer list than any before grows what describes it. */
/* Answers for each array, while calls that nobody has finished hold most slots: the rest is enough for rounds of fewer arrays. */
START_TEST(each_goes_on_with_few_slots) {
    enum { HELD = SLOTS - 5, LARGE = 40000, ARRAYS = 12 };
    cured_cuda_call *calls[HELD];
    cured_cuda_array arrays[ARRAYS];
    cured_values *values[ARRAYS];
    float *zeros, *small = numbers(1);
    const cured_op op = CURED_OP_COUNT_NONZERO;
    ck_assert_int_eq(cudaMalloc((void **)&zeros, LARGE * sizeof *zeros), 0);
    ck_assert_int_eq(cudaMemset(zeros, 0, LARGE * sizeof *zeros), 0);
    cudaDeviceSynchronize();
    for (int i = 0; i < ARRAYS; i++) arrays[i] = (cured_cuda_array){zeros, LARGE, CURED_F32};
    const cured_cuda_ask ask = {sizeof ask, arrays, ARRAYS, &op, 1, NULL, stream};
    for (int i = 0; i < HELD; i++) ck_assert_int_eq(start(small, stream, &calls[i]), CURED_OK);
    ck_assert_msg(cured_cuda_reduce_each(&ask, values, &error) == CURED_OK, "%s", error.text);
    for (int i = 0; i < ARRAYS; i++) {
        int64_t found = -1;
        ck_assert_int_eq(cured_value_int64(cured_values_get(values[i], 0), &found), CURED_OK);
        ck_assert_int_eq(found, 0);
        cured_values_free(values[i]);
    }
    for (int i = 0; i < HELD; i++) finish(calls[i], 1);
    memset(values, 1, sizeof values);
    arrays[ARRAYS - 1].data = NULL;
    ck_assert_int_eq(cured_cuda_reduce_each(&ask, values, &error), CURED_INVALID_ARGUMENT);
    for (int i = 0; i < ARRAYS; i++) ck_assert_ptr_eq(values[i], NULL);
}
END_TEST

START_TEST(lists_grow_without_a_wait) {
    enum { MOST = 5000 };
    static cured_cuda_array arrays[MOST];
    float *data = numbers(3);
    const cr_double_counts before = asks_counts();
    for (size_t many = 300; many < MOST; many *= 2) {
        cured_values *values;
        double sum;
        size_t bytes;
        for (size_t i = 0; i < many; i++) arrays[i] = (cured_cuda_array){data + i % (N - 2), 2, CURED_F32};
        const cured_op op = CURED_OP_SUM;
        const cured_cuda_ask ask = {sizeof ask, arrays, many, &op, 1, NULL, stream};
        ck_assert_int_eq(cured_cuda_reduce(&ask, &values, &error), CURED_OK);
        memcpy(&sum, cured_value_bytes(cured_values_get(values, 0), &bytes), sizeof sum);
        ck_assert_double_eq(sum, 6.0 * (double)many);
        cured_values_free(values);
    }
    ck_assert_uint_eq(asks_counts().device_syncs, before.device_syncs);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
}
END_TEST

/* ---- Resets ---- */

START_TEST(after_a_reset_calls_begin_anew) {
    for (int kind = 0; kind < ASK_KINDS; kind++)
        asks_do((asks_kind)kind, 0, 0, stream); /* graphs' memory is given back, too */
    ck_assert_int_eq(cr_double_reset(), 0);
    asks_open(0);
    const cr_double_counts before = asks_counts();
    ck_assert_int_eq(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), 0);
    for (int kind = 0; kind < ASK_KINDS; kind++) asks_do((asks_kind)kind, 0, 1, stream);
    ck_assert_uint_eq(asks_counts().stale, before.stale);
    cr_double_run(SIZE_MAX);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
    ck_assert_uint_eq(asks_counts().late_writes, 0);
}
END_TEST

START_TEST(a_reset_ends_what_is_under_way) {
    cured_cuda_call *calls[2];
    cured_values *values;
    float *data = numbers(2);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(start(data, stream, &calls[i]), CURED_OK);
    ck_assert_int_eq(cr_double_reset(), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert(cured_cuda_done(calls[i]));
        ck_assert_int_eq(cured_cuda_finish(calls[i], &values, &error), CURED_FAILED_PRECONDITION);
        ck_assert(values == NULL && says("reset"));
        if (i == 0) asks_open(0); /* the second is finished when there is a context again */
    }
    ck_assert_uint_eq(asks_counts().late_writes, 0);
    ck_assert_int_eq(cudaStreamCreate(&stream), 0);
    asks_do(ASK_REDUCE, 0, 1, stream);
    ck_assert_uint_eq(asks_counts().late_writes, 0);
}
END_TEST

/* ---- Captures ---- */

START_TEST(a_graph_is_replayed_between_calls) {
    double *to, sums[2];
    cudaGraph_t graph;
    cudaGraphExec_t made;
    ck_assert_int_eq(cudaMalloc((void **)&to, sizeof sums), 0);
    float *data = numbers(4);
    const cured_op op = CURED_OP_SUM;
    const cured_cuda_array one = {data, N, CURED_F32};
    const cured_cuda_ask ask = {sizeof ask, &one, 1, &op, 1, NULL, stream};
    const cr_double_counts before = asks_counts();
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    for (int k = 0; k < 2; k++)
        ck_assert_int_eq(cured_cuda_enqueue(&ask, (void *const[]){to + k}, NULL, &error), CURED_OK);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), 0);
    ck_assert_int_eq(cudaGraphInstantiate(&made, graph, 0), 0);
    cudaGraphDestroy(graph);
    for (int turn = 0; turn < 3; turn++) {
        cudaMemsetAsync(to, 0, sizeof sums, stream);
        ck_assert_int_eq(cudaGraphLaunch(made, stream), 0);
        for (int kind = 0; kind < ASK_GRAPH; kind++) {
            asks_do((asks_kind)kind, 0, turn % 2, stream);
            if (kind == ASK_LIST) ck_assert_int_eq(cudaGraphLaunch(made, stream), 0);
        }
        cudaStreamSynchronize(stream);
        ck_assert_int_eq(cudaMemcpy(sums, to, sizeof sums, cudaMemcpyDeviceToHost), 0);
        ck_assert(sums[0] == 4.0 * N && sums[1] == 4.0 * N);
    }
    cudaGraphExecDestroy(made);
    cr_double_run(SIZE_MAX);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
    ck_assert_uint_eq(asks_counts().user_objects, 0);
}
END_TEST

/* A graph's end may not free its memory; the next captured call does. */
START_TEST(captured_calls_free_graphs_of_before) {
    const asks_kind kind = (asks_kind)_i;
    uint64_t blocks = 0;
    for (int turn = 0; turn < 6; turn++) {
        asks_do(kind, 0, turn % 2, stream);
        cr_double_run(SIZE_MAX);
        if (turn > 0) ck_assert_uint_eq(asks_counts().live_blocks, blocks);
        blocks = asks_counts().live_blocks;
    }
}
END_TEST

static int elsewhere_wrong;
static void *call_elsewhere(void *own) {
    for (int kind = 0; kind < ASK_GRAPH; kind++) {
        cured_error failed;
        elsewhere_wrong += asks_call((asks_kind)kind, 0, 0, own, &failed) != CURED_OK;
    }
    return NULL;
}

/* Of another thread, which must not notice the calls that this one makes meanwhile, not even a stream's first ones. */
START_TEST(captures_of_other_threads_go_on) {
    cudaStream_t own;
    cudaGraph_t graph = NULL;
    pthread_t thread;
    ck_assert_int_eq(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), 0);
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
        pthread_create(&thread, NULL, call_elsewhere, own);
        pthread_join(thread, NULL);
        ck_assert_int_eq(elsewhere_wrong, 0);
        ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), 0);
        cudaGraphDestroy(graph);
    }
}
END_TEST

CR_CHECK_MAIN("double/caller") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, calls_stay_in_their_stream, 0, ASK_GRAPH);
    tcase_add_test(tc, events_are_waited_for);
    tcase_add_loop_test(tc, the_current_device_stays, 0, ASK_KINDS);
    tcase_add_test(tc, other_contexts_are_refused);
    tcase_add_test(tc, a_workspace_is_small);
    tcase_add_test(tc, streams_in_turn_share_workspaces);
    tcase_add_test(tc, busy_streams_have_their_own);
    tcase_add_loop_test(tc, so_many_calls_may_be_started, 0, 3);
    tcase_add_test(tc, each_goes_on_with_few_slots);
    tcase_add_test(tc, lists_grow_without_a_wait);
    tcase_add_test(tc, after_a_reset_calls_begin_anew);
    tcase_add_test(tc, a_reset_ends_what_is_under_way);
    tcase_add_test(tc, a_graph_is_replayed_between_calls);
    tcase_add_loop_test(tc, captured_calls_free_graphs_of_before, ASK_GRAPH, ASK_KINDS);
    tcase_add_test(tc, captures_of_other_threads_go_on);
}
