/* test_caller_calls: how little calls of cured/cuda.h ask of the runtime, and what holds without: events, and waits between lists. */
#include <cuda.h>

#include "tests/double/caller_asks.h"

static cured_error error;
static cudaStream_t stream;

static void setup(void) { asks_begin(2, &stream); }

static CUcontext current(void) {
    CUcontext found = NULL;
    void *get = NULL;
    cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &get, 12000, cudaEnableDefault, NULL);
    ((CUresult(*)(CUcontext *))get)(&found);
    return found;
}

static const char *const asked[] = {
    "cuCtxGetDevice",           "cuCtxGetId",      "cuCtxSetCurrent", "cudaEventQuery",
    "cudaPointerGetAttributes", "cudaEventRecord", "cudaGetDevice",   "cudaStreamGetId",
    "cudaStreamIsCapturing",    "cudaMemcpyAsync", "launch",          "cudaThreadExchangeStreamCaptureMode"};
enum { ASKED = sizeof asked / sizeof *asked };

/* What a call takes beside its launch is the host's time: each of these is a tenth of a microsecond and more. */
START_TEST(calls_ask_the_runtime_little) {
    static const struct {
        asks_kind kind;
        bool legacy;
        uint64_t most[ASKED];
    } rows[] = {
        {ASK_SUM, true, {0, 1, 0, 0, 2, 0, 1, 0, 1, 0, 1, 0}},  {ASK_SUM, false, {0, 1, 0, 0, 2, 1, 1, 1, 1, 0, 1, 0}},
        {ASK_SUMS, true, {0, 1, 0, 0, 2, 0, 1, 0, 1, 0, 2, 0}}, {ASK_SUMS, false, {0, 1, 0, 0, 2, 1, 1, 1, 1, 0, 2, 0}},
        {ASK_LIST, true, {0, 2, 0, 8, 1, 1, 0, 0, 1, 0, 1, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cudaStream_t on = rows[i].legacy ? NULL : stream;
        uint64_t before[ASKED];
        for (int turn = 0; turn < 3; turn++) asks_do(rows[i].kind, 0, 0, on);
        for (int k = 0; k < ASKED; k++) before[k] = cr_double_calls(asked[k]);
        ck_assert_int_eq(asks_call(rows[i].kind, 0, 1, on, &error), CURED_OK);
        for (int k = 0; k < ASKED; k++)
            ck_assert_msg(cr_double_calls(asked[k]) - before[k] <= rows[i].most[k], "row %zu: %s %d times", i, asked[k],
                          (int)(cr_double_calls(asked[k]) - before[k]));
        cudaStreamSynchronize(on);
        ck_assert(asks_right(rows[i].kind, 0, 1));
    }
}
END_TEST

/* Where there is no other GPU, nobody asks whose the answers' memory is. */
START_TEST(one_device_is_asked_less) {
    cr_double_devices(1);
    for (int turn = 0; turn < 2; turn++) asks_do(ASK_SUM, 0, turn, NULL);
    const uint64_t before = cr_double_calls("cudaPointerGetAttributes");
    ck_assert_int_eq(asks_call(ASK_SUM, 0, 0, NULL, &error), CURED_OK);
    ck_assert_uint_eq(cr_double_calls("cudaPointerGetAttributes") - before, 1);
    cudaDeviceSynchronize();
    ck_assert(asks_right(ASK_SUM, 0, 0));
}
END_TEST

/* The legacy stream has no event behind its work: trim asks the stream. */
START_TEST(the_legacy_stream_is_asked_when_it_matters) {
    static const asks_kind kinds[] = {ASK_SUM, ASK_SUMS, ASK_BORDERS, ASK_LARGEST};
    const asks_kind kind = kinds[_i];
    cured_cuda_trim();
    const cr_double_counts before = asks_counts();
    ck_assert_int_eq(asks_call(kind, 0, 1, _i % 2 ? cudaStreamLegacy : NULL, &error), CURED_OK);
    cured_cuda_trim(); /* its work has not even begun */
    ck_assert_uint_gt(asks_counts().live_blocks, before.live_blocks);
    cudaSetDevice(1); /* whose legacy stream is another one */
    cured_cuda_trim();
    ck_assert_uint_gt(asks_counts().live_blocks, before.live_blocks);
    cudaSetDevice(0);
    cudaStreamSynchronize(NULL);
    ck_assert(asks_right(kind, 0, 1));
    cudaSetDevice(1);
    const CUcontext now = current();
    cured_cuda_trim();
    ck_assert_ptr_eq(current(), now);
    ck_assert_uint_eq(asks_counts().live_blocks, before.live_blocks);
    ck_assert_uint_eq(asks_counts().late_writes, 0);
}
END_TEST

/* Which takes the legacy stream out of use. */
START_TEST(a_trim_ends_no_capture) {
    cudaStream_t blocking;
    cudaGraph_t graph = NULL;
    ck_assert_int_eq(cudaStreamCreate(&blocking), 0);
    asks_do(ASK_SUM, 0, 0, NULL);
    ck_assert_int_eq(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal), 0);
    cured_cuda_trim();
    ck_assert_int_eq(asks_call(ASK_SUM, 0, 0, NULL, &error), CURED_FAILED_PRECONDITION);
    ck_assert_int_eq(cudaStreamEndCapture(blocking, &graph), 0);
    cudaGraphDestroy(graph);
    asks_do(ASK_SUM, 0, 1, NULL);
}
END_TEST

/* Lists whose answers stay on the device, one after the other before any has run: none is described where another is read. */
START_TEST(lists_follow_lists) {
    enum { LISTS = 9, MOST = 1500 };
    static cured_cuda_array arrays[MOST];
    static const size_t lengths[LISTS] = {400, 50, 400, 600, 340, 500, 1400, 2, 1400};
    float *data, ones[10];
    double *to, sums[LISTS];
    const cured_op op = CURED_OP_SUM;
    cudaStream_t on = _i % 2 ? stream : NULL;
    for (int i = 0; i < 10; i++) ones[i] = 1;
    ck_assert_int_eq(cudaMalloc((void **)&to, sizeof sums), 0);
    ck_assert_int_eq(cudaMalloc((void **)&data, sizeof ones), 0);
    ck_assert_int_eq(cudaMemcpy(data, ones, sizeof ones, cudaMemcpyHostToDevice), 0);
    cr_double_seed((uint64_t)_i);
    for (int turn = 0; turn < LISTS; turn++) {
        for (size_t i = 0; i < lengths[turn]; i++)
            arrays[i] = (cured_cuda_array){data + i % 2, (size_t)turn + 1, CURED_F32};
        const cured_cuda_ask ask = {sizeof ask, arrays, lengths[turn], &op, 1, NULL, on};
        ck_assert_msg(cured_cuda_enqueue(&ask, (void *const[]){to + turn}, NULL, &error) == CURED_OK, "%s", error.text);
    }
    cudaStreamSynchronize(on);
    ck_assert_int_eq(cudaMemcpy(sums, to, sizeof sums, cudaMemcpyDeviceToHost), 0);
    for (int turn = 0; turn < LISTS; turn++)
        ck_assert_msg(sums[turn] == (double)(lengths[turn] * ((size_t)turn + 1)), "list %d: %g", turn, sums[turn]);
    cured_cuda_trim();
    ck_assert_uint_eq(asks_counts().late_writes, 0);
}
END_TEST

/* Every fourth element is the largest and is left out, of rows that end within what a thread loads at once, a vector or an element at a time.
 * What it has beyond a row is the first that it loaded again, of which no mask tells. */
START_TEST(a_mask_leaves_out_what_is_largest) {
    enum { ROWS = 64, MOST = 37, ALL = ROWS * MOST };
    const int each = MOST - _i / 2, all = ROWS * each, last = each % 4 == 1 ? each - 2 : each - 1;
    const bool wide = _i % 2 != 0;
    static const cured_op op = CURED_OP_MAX;
    static int64_t x[ALL], got[ROWS];
    static uint8_t out[ALL];
    void *data, *bytes;
    for (int i = 0; i < all; i++) {
        out[i] = i % each % 4 == 0;
        if (wide)
            x[i] = out[i] ? INT64_MAX : i;
        else
            ((int32_t *)x)[i] = out[i] ? INT32_MAX : i;
    }
    ck_assert_int_eq(cudaMalloc(&data, sizeof x), 0);
    ck_assert_int_eq(cudaMalloc(&bytes, sizeof out), 0);
    cudaMemcpy(data, x, sizeof x, cudaMemcpyHostToDevice);
    cudaMemcpy(bytes, out, sizeof out, cudaMemcpyHostToDevice);
    const cured_cuda_array array = {data, (uint64_t)all, wide ? CURED_I64 : CURED_I32};
    const cured_axis axis = {ROWS, (uint64_t)each, 1};
    const cured_mask mask = {bytes, (uint64_t)all, 0, CURED_MASK_BYTES, true};
    const cured_options options = {.struct_bytes = sizeof options, .axis = &axis, .mask = &mask};
    const cured_cuda_ask ask = {sizeof ask, &array, 1, &op, 1, &options, stream};
    ck_assert_msg(cured_cuda_reduce_axis(&ask, (void *const[]){got}, &error) == CURED_OK, "%s", error.text);
    for (int r = 0; r < ROWS; r++) ck_assert_int_eq(wide ? got[r] : ((int32_t *)got)[r], r * each + last);
    cudaFree(data);
    cudaFree(bytes);
}
END_TEST

CR_CHECK_MAIN("double/caller-calls") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, calls_ask_the_runtime_little);
    tcase_add_test(tc, one_device_is_asked_less);
    tcase_add_loop_test(tc, the_legacy_stream_is_asked_when_it_matters, 0, 4);
    tcase_add_test(tc, a_trim_ends_no_capture);
    tcase_add_loop_test(tc, lists_follow_lists, 0, 6);
    tcase_add_loop_test(tc, a_mask_leaves_out_what_is_largest, 0, 4);
}
