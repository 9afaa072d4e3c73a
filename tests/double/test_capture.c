/* What a capture of the runtime double records and refuses, and what becomes of its graphs. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <string.h>

#include "tests/double/double.h"
#include "tests/unit/check_main.h"

enum {
    GLOBAL = cudaStreamCaptureModeGlobal,
    OWN = cudaStreamCaptureModeThreadLocal,
    RELAXED = cudaStreamCaptureModeRelaxed
};
static cudaStream_t a, b; /* a is blocking, b is not */
static int *device, released;
static cudaGraph_t graph;
static cudaGraphExec_t made;

static void setup(void) {
    cr_double_seed(0);
    ck_assert_int_eq(cudaStreamCreate(&a), 0);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), 0);
    ck_assert_int_eq(cudaMalloc((void **)&device, 4096), 0);
}

static void begin(int mode) { ck_assert_int_eq(cudaStreamBeginCapture(b, (enum cudaStreamCaptureMode)mode), 0); }
static int end(void) { return (int)cudaStreamEndCapture(b, &graph); }
static void copy(cudaStream_t stream, int to, int from) {
    ck_assert_int_eq(cr_double_copy_kernel(stream, device + to, device + from, sizeof(int)), 0);
}

START_TEST(a_graph_is_replayed) {
    begin(GLOBAL);
    copy(b, 1, 0);
    copy(b, 2, 1);
    ck_assert_int_eq(end(), 0);
    ck_assert_int_eq(cudaGraphInstantiate(&made, graph, 0), 0);
    ck_assert_int_eq(cudaGraphDestroy(graph), 0);
    ck_assert_uint_eq(cr_double_pending(), 0);
    for (int i = 1; i < 5; i++) {
        ck_assert_int_eq(cr_double_slow_write(b, device, &i, sizeof i), 0);
        ck_assert_int_eq(cudaGraphLaunch(made, b), 0);
        ck_assert_int_ne(device[2], i);
        ck_assert_int_eq(cudaStreamSynchronize(b), 0);
        ck_assert_int_eq(device[2], i);
    }
    ck_assert_int_eq(cudaGraphLaunch(made, b), 0);
    ck_assert_int_eq(cudaGraphExecDestroy(made), 0); /* what was launched goes on */
    device[0] = 77;
    ck_assert_int_eq(cudaStreamSynchronize(b), 0);
    ck_assert_int_eq(device[2], 77);
    ck_assert_int_eq(cudaGraphLaunch(made, b), cudaErrorInvalidResourceHandle);
}
END_TEST

static int call(int which) {
    static char memory[64];
    void *made_now = NULL;
    switch (which) {
        case 0:
            return (int)cudaMalloc(&made_now, 8);
        case 1:
            return (int)cudaFree(device);
        case 2:
            return (int)cudaMallocHost(&made_now, 8);
        case 3:
            return (int)cudaMemset(device, 0, 4);
        case 4:
            return (int)cudaMemcpy(memory, device, 4, cudaMemcpyDefault);
        case 5:
            return (int)cudaDeviceSynchronize();
        case 6:
            return (int)cudaStreamQuery(a);
        case 7:
            return (int)cudaHostRegister(memory, sizeof memory, 0);
        default:
            return -1;
    }
}
static int elsewhere_gave[8], elsewhere_mode;
static void *elsewhere(void *unused) {
    enum cudaStreamCaptureMode mode = (enum cudaStreamCaptureMode)elsewhere_mode;
    cudaThreadExchangeStreamCaptureMode(&mode);
    for (int i = 0; i < 8; i++) elsewhere_gave[i] = i == 1 ? 0 : call(i);
    return unused;
}
static int all_elsewhere(int mode) {
    pthread_t thread;
    elsewhere_mode = mode;
    pthread_create(&thread, NULL, elsewhere, NULL);
    pthread_join(thread, NULL);
    int refused = 0;
    for (int i = 0; i < 8; i++) refused += elsewhere_gave[i] == cudaErrorStreamCaptureUnsupported;
    return refused;
}

START_TEST(unsafe_calls_are_refused_and_end_the_capture) {
    for (int i = 0; call(i) != -1; i++) {
        if (i == 1) cudaMalloc((void **)&device, 4096);
        for (int mode = GLOBAL; mode <= OWN; mode++) {
            enum cudaStreamCaptureStatus status;
            begin(mode);
            ck_assert_int_eq(call(i), cudaErrorStreamCaptureUnsupported);
            ck_assert_int_eq(cudaStreamIsCapturing(b, &status), 0);
            ck_assert_int_eq(status, cudaStreamCaptureStatusInvalidated);
            ck_assert_int_eq(cr_double_copy_kernel(b, device, device + 1, 4), cudaErrorStreamCaptureInvalidated);
            ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
            ck_assert_ptr_null(graph);
        }
    }
    cudaMalloc((void **)&device, 4096);
    begin(GLOBAL);
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    ck_assert_int_eq(cudaThreadExchangeStreamCaptureMode(&mode), 0);
    ck_assert_int_eq(mode, cudaStreamCaptureModeGlobal);
    ck_assert_int_eq(call(0), 0);
    ck_assert_int_eq(call(2), 0);
    ck_assert_int_eq(call(6), 0);
    cudaThreadExchangeStreamCaptureMode(&mode);
    ck_assert_int_eq(end(), 0);
    begin(RELAXED);
    ck_assert_int_eq(call(0), 0);
    ck_assert_int_eq(end(), 0);
}
END_TEST

START_TEST(the_number_of_a_stream_ends_its_capture) {
    unsigned long long number = 0;
    begin(RELAXED);
    ck_assert_int_eq(cudaStreamGetId(a, &number), 0);
    ck_assert_int_eq(cudaStreamGetId(b, &number), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
    ck_assert_int_eq(cudaStreamGetId(b, &number), 0);
}
END_TEST

START_TEST(other_threads_are_refused_by_global_captures) {
    begin(OWN);
    ck_assert_int_eq(all_elsewhere(GLOBAL), 0);
    ck_assert_int_eq(end(), 0);
    begin(GLOBAL);
    ck_assert_int_eq(all_elsewhere(OWN), 0);
    ck_assert_int_eq(all_elsewhere(RELAXED), 0);
    ck_assert_int_eq(end(), 0);
    begin(GLOBAL);
    ck_assert_int_eq(all_elsewhere(GLOBAL), 7);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(a_capturing_stream_is_not_waited_for) {
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    int pageable = 0;
    cudaThreadExchangeStreamCaptureMode(&mode);
    begin(GLOBAL);
    ck_assert_int_eq(cudaStreamQuery(b), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
    begin(GLOBAL);
    ck_assert_int_eq(cudaStreamSynchronize(b), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
    begin(GLOBAL);
    ck_assert_int_eq(cudaMemcpyAsync(&pageable, device, 4, cudaMemcpyDefault, b), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
    ck_assert_int_eq(end(), cudaErrorIllegalState);
}
END_TEST

START_TEST(the_legacy_stream_does_not_wait_for_a_capture) {
    enum cudaStreamCaptureStatus status;
    ck_assert_int_eq(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed), cudaErrorStreamCaptureUnsupported);
    begin(RELAXED); /* which does not block */
    copy(NULL, 1, 0);
    ck_assert_int_eq(end(), 0);
    ck_assert_int_eq(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed), 0);
    ck_assert_int_eq(cudaStreamIsCapturing(NULL, &status), cudaErrorStreamCaptureImplicit);
    ck_assert_int_eq(cudaStreamIsCapturing(a, &status), 0);
    ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
    ck_assert_int_eq(cr_double_copy_kernel(NULL, device, device + 1, 4), cudaErrorStreamCaptureImplicit);
    ck_assert_int_eq(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
}
END_TEST

START_TEST(events_bring_streams_in) {
    cudaEvent_t fork, join;
    unsigned long long id, same;
    enum cudaStreamCaptureStatus status;
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    for (int joins = 0; joins < 2; joins++) {
        begin(OWN);
        copy(b, 1, 0);
        cudaEventRecord(fork, b);
        ck_assert_int_eq(cudaStreamWaitEvent(a, fork, 0), 0);
        cudaStreamGetCaptureInfo(a, &status, &id, NULL, NULL, NULL, NULL);
        cudaStreamGetCaptureInfo(b, &status, &same, NULL, NULL, NULL, NULL);
        ck_assert(status == cudaStreamCaptureStatusActive && id == same && id != 0);
        copy(a, 2, 1);
        cudaEventRecord(join, a);
        if (joins) cudaStreamWaitEvent(b, join, 0);
        copy(b, 3, 2);
        ck_assert_int_eq(end(), joins ? 0 : cudaErrorStreamCaptureUnjoined);
    }
    cudaGraphInstantiate(&made, graph, 0);
    for (uint64_t seed = 0; seed < 10; seed++) {
        cr_double_seed(seed);
        device[0] = (int)seed;
        cudaGraphLaunch(made, NULL);
        ck_assert_int_eq(cudaStreamSynchronize(NULL), 0);
        ck_assert_int_eq(device[3], (int)seed);
    }
    ck_assert_int_eq(cudaEventQuery(fork), cudaErrorCapturedEvent);
    cudaEventRecord(fork, a);
    begin(OWN);
    ck_assert_int_eq(cudaStreamWaitEvent(b, fork, 0), cudaErrorStreamCaptureIsolation);
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
}
END_TEST

static void release(void *user) { *(int *)user += 1; }
START_TEST(a_graph_owns_objects_and_memory) {
    enum cudaStreamCaptureStatus status;
    cudaUserObject_t object;
    cudaGraph_t inside = NULL;
    int *of_graph;
    cr_double_counts counts;
    begin(GLOBAL);
    ck_assert_int_eq(cudaStreamGetCaptureInfo(b, &status, NULL, &inside, NULL, NULL, NULL), 0);
    ck_assert_int_eq(cudaUserObjectCreate(&object, &released, release, 1, cudaUserObjectNoDestructorSync), 0);
    ck_assert_int_eq(cudaGraphRetainUserObject(inside, object, 1, cudaGraphUserObjectMove), 0);
    ck_assert_int_eq(cudaMallocAsync((void **)&of_graph, 64, b), 0);
    ck_assert_int_eq(cr_double_copy_kernel(b, of_graph, device, 4), 0);
    ck_assert_int_eq(cr_double_copy_kernel(b, device + 1, of_graph, 4), 0);
    ck_assert_int_eq(cudaFreeAsync(of_graph, b), 0);
    ck_assert_int_eq(end(), 0);
    ck_assert_ptr_eq(graph, inside);
    cudaGraphInstantiate(&made, graph, 0);
    cudaGraphDestroy(graph);
    for (int i = 0; i < 3; i++) {
        device[0] = i;
        ck_assert_int_eq(cudaGraphLaunch(made, b), 0);
        cudaStreamSynchronize(b);
        ck_assert(device[1] == i && of_graph[0] == (int)0xA5A5A5A5);
    }
    cudaGraphLaunch(made, b);
    cudaGraphExecDestroy(made);
    ck_assert_int_eq(released, 0);
    cudaStreamSynchronize(b);
    cr_double_run(0);
    ck_assert_int_eq(released, 1);
    cr_double_count(&counts);
    ck_assert(counts.user_objects == 0 && counts.graphs == 0 && counts.execs == 0 && counts.live_blocks == 1);
}
END_TEST

START_TEST(a_capture_that_fails_frees_what_it_owns) {
    enum cudaStreamCaptureStatus status;
    cudaUserObject_t object;
    cudaGraph_t inside = NULL;
    begin(GLOBAL);
    cudaStreamGetCaptureInfo(b, &status, NULL, &inside, NULL, NULL, NULL);
    cudaUserObjectCreate(&object, &released, release, 1, cudaUserObjectNoDestructorSync);
    cudaGraphRetainUserObject(inside, object, 1, cudaGraphUserObjectMove);
    cudaDeviceSynchronize();
    ck_assert_int_eq(end(), cudaErrorStreamCaptureInvalidated);
    cr_double_run(0);
    ck_assert_int_eq(released, 1);
}
END_TEST

CR_CHECK_MAIN("double/capture") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_graph_is_replayed);
    tcase_add_test(tc, unsafe_calls_are_refused_and_end_the_capture);
    tcase_add_test(tc, the_number_of_a_stream_ends_its_capture);
    tcase_add_test(tc, other_threads_are_refused_by_global_captures);
    tcase_add_test(tc, a_capturing_stream_is_not_waited_for);
    tcase_add_test(tc, the_legacy_stream_does_not_wait_for_a_capture);
    tcase_add_test(tc, events_bring_streams_in);
    tcase_add_test(tc, a_graph_owns_objects_and_memory);
    tcase_add_test(tc, a_capture_that_fails_frees_what_it_owns);
}
