/* test_caller_bits: what cured/cuda.h promises of bools of a bit each: their bytes, the order in which these come and go, and graphs. */
#include <cuda.h>
#include <pthread.h>
#include <string.h>

#include "tests/double/caller_asks.h"

static cured_error error;
static cudaStream_t stream;

static void setup(void) { asks_begin(1, &stream); }

static bool says(const char *word) { return strstr(error.text, word) != NULL; }

/* Bools of a bit each become bytes behind the stream's work, whose memory is given back in its order. */
START_TEST(bits_become_bytes) {
    enum { MOST = 300 };
    uint8_t *data, from[MOST / 8 + 1], seen[MOST];
    void *bytes;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(167 * i + 29);
    ck_assert_int_eq(cudaMalloc((void **)&data, sizeof from), 0);
    ck_assert_int_eq(cudaMemset(data, 0, sizeof from), 0);
    ck_assert_int_eq(cr_double_slow_write(stream, data, from, sizeof from), 0);
    const uint64_t before = cr_double_device_bytes();
    for (uint64_t first = 0; first < 18; first++) {
        const uint64_t bits = MOST - 13 * first;
        const cr_double_counts waits = asks_counts();
        ck_assert_int_eq(cured_cuda_bits(data, first, bits, stream, &bytes, &error), CURED_OK);
        ck_assert_uint_eq(asks_counts().stream_syncs + asks_counts().device_syncs,
                          waits.stream_syncs + waits.device_syncs);
        ck_assert_int_eq(cudaMemcpyAsync(seen, bytes, bits, cudaMemcpyDeviceToHost, stream), 0);
        cured_cuda_bits_free(bytes, stream);
        ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
        for (uint64_t i = 0; i < bits; i++) ck_assert_int_eq(seen[i], from[(first + i) / 8] >> (first + i) % 8 & 1);
    }
    ck_assert_uint_eq(cr_double_device_bytes(), before);
    ck_assert_int_eq(cured_cuda_bits(NULL, 0, 0, stream, &bytes, &error), CURED_OK);
    ck_assert_ptr_null(bytes);
    cured_cuda_bits_free(NULL, stream);
    ck_assert_int_eq(cured_cuda_bits(NULL, 0, 1, stream, &bytes, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_cuda_bits(data, 0, UINT64_C(1) << 40, stream, &bytes, &error), CURED_INVALID_ARGUMENT);
    ck_assert(says("must be below 2^40"));
    ck_assert_int_eq(cured_cuda_bits(data, UINT64_MAX, 8, stream, &bytes, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_cuda_bits(from, 0, 8, stream, &bytes, &error), CURED_INVALID_ARGUMENT);
    ck_assert(says("no memory that a GPU reads"));
    cr_double_memory(cr_double_device_bytes() + 16);
    ck_assert_int_eq(cured_cuda_bits(data, 0, 17, stream, &bytes, &error), CURED_RESOURCE_EXHAUSTED);
    ck_assert(says("no device memory for a byte of each of 17 bools"));
    ck_assert_int_eq(cured_cuda_bits(data, 0, 16, stream, &bytes, &error), CURED_OK);
    cured_cuda_bits_free(bytes, stream);
    ck_assert_int_eq(cudaStreamSynchronize(stream), 0);
    cr_double_memory(UINT64_MAX);
    cudaFree(data);
}
END_TEST

/* Given back while the stream is captured, or the legacy one might not be used: the capture goes on, and the bytes are freed by the next
 * call that names the stream. */
START_TEST(bits_are_given_back_in_a_capture) {
    cudaStream_t blocking;
    ck_assert_int_eq(cudaStreamCreate(&blocking), 0);
    const cudaStream_t streams[] = {stream, cudaStreamLegacy}, captured[] = {stream, blocking};
    uint8_t *data;
    void *bytes, *more;
    cudaGraph_t graph;
    ck_assert_int_eq(cudaMalloc((void **)&data, 8), 0);
    ck_assert_int_eq(cudaMemset(data, 0x5a, 8), 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), 0);
    const uint64_t before = cr_double_device_bytes();
    for (int i = 0; i < 2; i++) {
        const uint64_t stale = asks_counts().stale;
        ck_assert_int_eq(cured_cuda_bits(data, 0, 48, streams[i], &bytes, &error), CURED_OK);
        ck_assert_int_eq(cudaStreamBeginCapture(captured[i], cudaStreamCaptureModeGlobal), 0);
        cured_cuda_bits_free(bytes, streams[i]);
        ck_assert_int_eq(cudaGetLastError(), 0);
        ck_assert_int_eq(cudaStreamEndCapture(captured[i], &graph), 0);
        ck_assert_int_eq(cudaGraphDestroy(graph), 0);
        ck_assert_uint_gt(cr_double_device_bytes(), before);
        ck_assert_int_eq(cured_cuda_bits(data, 0, 8, streams[i], &more, &error), CURED_OK);
        cured_cuda_bits_free(more, streams[i]);
        ck_assert_int_eq(cudaDeviceSynchronize(), 0);
        ck_assert_uint_eq(cr_double_device_bytes(), before);
        ck_assert_uint_eq(asks_counts().stale, stale);
    }
    cudaStreamDestroy(blocking);
    cudaFree(data);
}
END_TEST

static void *reduce_beside(void *data) {
    void *bytes = NULL;
    if (cured_cuda_bits(data, 0, 8, cudaStreamPerThread, &bytes, &error) != CURED_OK) return NULL;
    cured_cuda_bits_free(bytes, cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
    return data;
}

/* One handle names a stream for each thread: what was given back in one's capture is not freed in the order of another's. */
START_TEST(each_thread_frees_its_own) {
    uint8_t *data;
    void *bytes, *done;
    cudaGraph_t graph;
    pthread_t thread;
    ck_assert_int_eq(cudaMalloc((void **)&data, 8), 0);
    ck_assert_int_eq(cudaMemset(data, 0x5a, 8), 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), 0);
    const uint64_t before = cr_double_device_bytes();
    ck_assert_int_eq(cured_cuda_bits(data, 0, 48, cudaStreamPerThread, &bytes, &error), CURED_OK);
    ck_assert_int_eq(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed), 0);
    cured_cuda_bits_free(bytes, cudaStreamPerThread);
    ck_assert_int_eq(pthread_create(&thread, NULL, reduce_beside, data), 0);
    ck_assert_int_eq(pthread_join(thread, &done), 0);
    ck_assert_ptr_eq(done, data);
    ck_assert_uint_gt(cr_double_device_bytes(), before);
    ck_assert_int_eq(cudaStreamEndCapture(cudaStreamPerThread, &graph), 0);
    ck_assert_int_eq(cudaGraphDestroy(graph), 0);
    ck_assert_ptr_eq(reduce_beside(data), data);
    ck_assert_uint_eq(cr_double_device_bytes(), before);
    cudaFree(data);
}
END_TEST

START_TEST(bits_are_no_graphs) {
    cudaGraph_t graph;
    void *bytes, *data;
    ck_assert_int_eq(cudaMalloc(&data, 8), 0);
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), 0);
    ck_assert_int_eq(cured_cuda_bits(data, 0, 8, stream, &bytes, &error), CURED_FAILED_PRECONDITION);
    ck_assert(says("the stream is captured"));
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), 0);
    cudaGraphDestroy(graph);
    cudaFree(data);
}
END_TEST

CR_CHECK_MAIN("double/caller_bits") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, bits_become_bytes);
    tcase_add_test(tc, bits_are_given_back_in_a_capture);
    tcase_add_test(tc, each_thread_frees_its_own);
    tcase_add_test(tc, bits_are_no_graphs);
}
