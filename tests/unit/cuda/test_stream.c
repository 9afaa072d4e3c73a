/* When a stream is idle: a pack is done when its own words are there, whatever was folded before it on the same stream. The kernels are
 * stand-ins that this file ends by hand.
 *
 * Thread: one. Owner: the test. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/device/internal.h"
#include "kernels/cuda/device/replay.h"
#include "kernels/ladder/ladder.h"
#include "tests/unit/check_main.h"

enum { LOOKS = 300 };

static struct {
    cr_pack_args pack; /* the last that was launched */
    int packs, lingers, folds, wary, replays;
    bool running; /* what is enqueued */
} seen;

/* ---- What the stream needs of the device ---- */

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    (void)stream;
    return seen.running ? cudaErrorNotReady : cudaSuccess;
}
cr_status cr_cuda_bind(cr_gpu *gpu, cr_error *error) { return (void)gpu, (void)error, CR_OK; }
cr_status cr_cuda_error(cr_gpu *gpu, int failure, const char *what, cr_error *error) {
    (void)gpu;
    return failure == cudaSuccess ? CR_OK : cr_fail(error, CR_INTERNAL, "%s: failure %d", what, failure);
}
cr_status cr_cuda_host_alloc(cr_gpu *gpu, size_t bytes, void **memory, cr_error *error) {
    (void)gpu, (void)error;
    *memory = calloc(1, bytes);
    return CR_OK;
}
void cr_cuda_host_free(cr_gpu *gpu, void *memory) { (void)gpu, free(memory); }
cr_status cr_cuda_device_alloc(cr_gpu *gpu, size_t bytes, void **device, cr_error *error) {
    return cr_cuda_host_alloc(gpu, bytes, device, error);
}
void cr_cuda_device_free(cr_gpu *gpu, void *device) { cr_cuda_host_free(gpu, device); }

/* ---- Kernels ---- */

int cr_pack_launch(const cr_pack_args *args, void *stream) {
    (void)stream;
    seen.pack = *args;
    seen.packs++;
    seen.running = true;
    return cudaSuccess;
}
int cr_linger_launch(const cr_linger_args *args, void *stream) {
    (void)args, (void)stream;
    seen.lingers++;
    return cudaSuccess;
}
static int launch_fold(const cr_fold_args *args, void *stream) {
    (void)stream;
    seen.folds++;
    seen.wary += args->wary;
    return cudaSuccess;
}
bool cr_fold_takes(cr_dtype dtype, uint32_t families) {
    (void)dtype, (void)families;
    return true;
}
cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, uint32_t wants, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                            uint32_t *count, cr_error *error) {
    (void)dtype, (void)families, (void)wants, (void)error;
    out[0] = launch_fold;
    *count = 1;
    return CR_OK;
}
void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot) {
    (void)dtype, (void)multiprocessors;
    *args = (cr_fold_args){.data = data, .n = n, .index = index, .state = state, .slot = slot};
}
/* A fold tells by its words that it is done, and is done at once. */
bool cr_fold_await(const cr_fold_args *args, cr_dtype dtype, uint32_t families) {
    return (void)args, (void)dtype, (void)families, true;
}
static bool hard;
bool cr_fold_was_hard(const cr_fold_slot *slot, cr_dtype dtype, uint32_t families) {
    return (void)slot, (void)dtype, (void)families, hard;
}
bool cr_fold_there(const cr_fold_slot *slot) { return (void)slot, true; }
void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n) {
    (void)slot, (void)dtype, (void)families, (void)n;
}

/* ---- What no test here asks for ---- */

bool cr_replay_launch(cr_replay *replay, const cr_gpu_fold *fold, cudaStream_t stream, int (*enqueue)(void *argument),
                      void *argument) {
    seen.replays++;
    return (void)replay, (void)fold, (void)stream, (void)enqueue, (void)argument, false;
}
void cr_replay_free(cr_replay *replay) { (void)replay; }
int cr_axis_ask(cr_axis_room *room, const cr_gpu_axis *axis, uint32_t multiprocessors, void *stream, cr_error *error) {
    return (void)room, (void)axis, (void)multiprocessors, (void)stream, (void)error, cudaSuccess;
}
cr_status cr_axis_answers(const cr_axis_room *room, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                          cr_error *error) {
    return (void)room, (void)out, (void)failed, (void)error, CR_OK;
}
void cr_axis_room_trim(cr_axis_room *room, uint64_t most) { (void)room, (void)most; }
void cr_axis_room_free(cr_axis_room *room) { (void)room; }
cr_status cr_ladder_open(cr_ladder_space **space, cr_error *error) { return (void)space, (void)error, CR_OK; }
cr_status cr_ladder_run(cr_ladder_space *space, const cr_ladder_job *job, void *stream, cr_value *value, bool *exact,
                        cr_error *error) {
    return (void)space, (void)job, (void)stream, (void)value, (void)exact, (void)error, CR_OK;
}

/* ---- The tests ---- */

static cr_gpu gpu;
static cr_gpu_stream *stream;
static cr_error error;

static void setup(void) {
    memset(&seen, 0, sizeof seen);
    gpu = (cr_gpu){.info.multiprocessors = 1};
    ck_assert_int_eq(cr_cuda_stream_open(&gpu, 1, &stream, &error), CR_OK);
}

static void teardown(void) {
    cr_cuda_stream_close(stream);
    cr_cuda_linger_end(&gpu);
}

static bool idle(void) {
    bool is = false;
    ck_assert_int_eq(cr_cuda_poll(stream, &is, &error), CR_OK);
    return is;
}

static void fold(void) {
    static const float some[1024];
    const cr_gpu_fold sum = {.dtype = CR_F32, .families = CR_FAM_SUM, .data = some, .n = 1024};
    const int before = seen.folds;
    ck_assert_int_eq(cr_cuda_fold(stream, &sum, 1, 0, &error), CR_OK);
    ck_assert_int_eq(seen.folds, before + 1);
    ck_assert(idle());
}

static void pack(void) {
    static const uint8_t some[100];
    const cr_gpu_fold counts = {.dtype = CR_U8, .families = CR_FAM_COUNTS, .data = some, .n = 100};
    uint32_t taken = 0;
    ck_assert_int_eq(cr_cuda_pack(stream, &counts, 1, 0, &taken, &error), CR_OK);
    ck_assert_uint_eq(taken, 1);
}

/* The pack's words come, and say how many elements are not zero. */
static void answer(uint64_t nonzero) {
    for (int i = 0; i < CR_PACK_WORDS; i++) seen.pack.found[i] = CR_PACK_THERE | (i == 0 ? nonzero : 0);
    seen.running = false;
}

static void check(uint64_t nonzero) {
    cr_partial partial;
    for (int i = 0; i < LOOKS; i++) ck_assert_msg(!idle(), "idle at look %d", i);
    answer(nonzero);
    ck_assert(idle());
    cr_cuda_pack_result(stream, 0, &partial);
    ck_assert_uint_eq(partial.nonzero, nonzero);
}

START_TEST(a_pack_behind_a_fold) {
    for (uint64_t i = 0; i < 3; i++) {
        fold();
        pack();
        check(i + 40);
    }
}
END_TEST

/* What a pack tells goes through memory alone while a block of its kernel stays. */
START_TEST(a_posted_pack_behind_a_fold) {
    cr_cuda_linger(&gpu, UINT64_C(3600) * 1000000000);
    fold();
    for (uint64_t i = 0; i < 5; i++) {
        pack();
        check(i + 50);
    }
    ck_assert_int_eq(seen.packs, 2);
    ck_assert_int_eq(seen.lingers, 1);
    gpu.linger.box->gone = 1;
}
END_TEST

enum { LARGE = 4 << 20 };

static bool folds_warily(uint64_t n, cr_dtype dtype, uint32_t families) {
    const cr_gpu_fold sum = {.dtype = dtype, .families = families, .data = &seen, .n = n};
    const int wary = seen.wary, replays = seen.replays;
    ck_assert_int_eq(cr_cuda_fold(stream, &sum, 1, 0, &error), CR_OK);
    cr_cuda_result(stream, 0);
    ck_assert_int_eq(seen.wary - wary + seen.replays - replays, 1); /* no graph has such a launch */
    return seen.wary != wary;
}

/* For 64 large sums of floats after one that was hard. */
START_TEST(hard_folds_are_foreseen) {
    hard = true;
    ck_assert(!folds_warily(LARGE, CR_F32, CR_FAM_SUM)); /* nothing is known yet */
    ck_assert(folds_warily(LARGE, CR_F32, CR_FAM_SUM));
    hard = false;
    for (int i = 0; i < 63; i++) {
        ck_assert(!folds_warily(LARGE - 1, CR_F32, CR_FAM_SUM));
        ck_assert(!folds_warily(LARGE, CR_I32, CR_FAM_SUM));
        ck_assert(!folds_warily(LARGE, CR_F32, CR_FAM_EXTREMA));
        ck_assert(folds_warily(LARGE, CR_F32, CR_FAM_SUM));
    }
    ck_assert(!folds_warily(LARGE, CR_F32, CR_FAM_SUM));
    hard = true;
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_WARY);
    for (int i = 0; i < 3; i++) ck_assert(!folds_warily(LARGE, CR_F32, CR_FAM_SUM));
    cr_fast_switch_off(0);
}
END_TEST

CR_CHECK_MAIN("stream") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_pack_behind_a_fold);
    tcase_add_test(tc, a_posted_pack_behind_a_fold);
    tcase_add_test(tc, hard_folds_are_foreseen);
}
