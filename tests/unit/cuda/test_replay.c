/* Which launches become a graph, when, and what becomes of graphs for which there is no place: by graphs that only count. */
#include <check.h>
#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/device/replay.h"
#include "tests/unit/check_main.h"

static struct {
    int captures, enqueued, launched, graphs, made; /* graphs and made: that are not destroyed */
    bool refuses_capture, refuses_graph, refuses_launch, refuses_enqueue;
} seen;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
    (void)stream, (void)mode;
    seen.captures++;
    return seen.refuses_capture ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    (void)stream;
    seen.graphs++;
    *graph = &seen;
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags) {
    (void)flags;
    if (seen.refuses_graph) return cudaErrorMemoryAllocation;
    seen.made++;
    *made = graph;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    (void)graph, (void)stream;
    if (seen.refuses_launch) return cudaErrorMemoryAllocation;
    seen.launched++;
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    (void)graph;
    seen.graphs--;
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    (void)graph;
    seen.made--;
    return cudaSuccess;
}

static int enqueue(void *argument) {
    (void)argument;
    seen.enqueued++;
    return seen.refuses_enqueue ? cudaErrorMemoryAllocation : cudaSuccess;
}

static bool ask(cr_replay *replay, uint64_t n) {
    const cr_gpu_fold fold = {.dtype = CR_F32, .families = CR_FAM_SUM, .n = n};
    return cr_replay_launch(replay, &fold, NULL, enqueue, NULL);
}

static void begin(void) { memset(&seen, 0, sizeof seen); }

START_TEST(the_third_time_makes_a_graph) {
    cr_replay replay = {0};
    for (int i = 0; i < 2; i++) ck_assert(!ask(&replay, 7));
    ck_assert(!ask(&replay, 8));
    ck_assert_int_eq(seen.captures, 0);
    for (int i = 0; i < 5; i++) ck_assert(ask(&replay, 7));
    ck_assert_int_eq(seen.captures, 1);
    ck_assert_int_eq(seen.enqueued, 1);
    ck_assert_int_eq(seen.launched, 5);
    ck_assert_int_eq(seen.graphs, 0);
    ck_assert_int_eq(seen.made, 1);
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_REPLAY);
    ck_assert(!ask(&replay, 7));
    cr_fast_switch_off(0);
    cr_replay_free(&replay);
    ck_assert_int_eq(seen.made, 0);
}
END_TEST

START_TEST(the_oldest_makes_room) {
    cr_replay replay = {0};
    for (uint64_t n = 0; n < CR_REPLAYS; n++)
        for (int i = 0; i < 3; i++) ck_assert_int_eq(ask(&replay, n), i == 2);
    ck_assert_int_eq(seen.made, CR_REPLAYS);
    ck_assert(!ask(&replay, 1000));
    ck_assert_int_eq(seen.made, CR_REPLAYS - 1);
    ck_assert(ask(&replay, 1));
    ck_assert(!ask(&replay, 0)); /* it takes the place of 1, and 1 then that of 2 */
    ck_assert(!ask(&replay, 1));
    ck_assert(ask(&replay, 3) && ask(&replay, CR_REPLAYS - 1));
    cr_replay_free(&replay);
    ck_assert_int_eq(seen.made, 0);
    ck_assert_int_eq(seen.graphs, 0);
}
END_TEST

/* What cannot be a graph is not tried again. */
START_TEST(a_graph_that_fails) {
    bool *const refusals[] = {&seen.refuses_capture, &seen.refuses_graph, &seen.refuses_launch, &seen.refuses_enqueue};
    cr_replay replay = {0};
    *refusals[_i] = true;
    for (int i = 0; i < 3; i++) ck_assert(!ask(&replay, 7));
    *refusals[_i] = false;
    for (int i = 0; i < 3; i++) ck_assert(!ask(&replay, 7));
    ck_assert_int_eq(seen.captures, 1);
    ck_assert_int_eq(seen.launched, 0);
    ck_assert_int_eq(seen.graphs, 0);
    cr_replay_free(&replay);
    ck_assert_int_eq(seen.made, 0);
}
END_TEST

/* One that differs in any member is another. */
START_TEST(folds_that_differ) {
    static char memory[2];
    const cr_gpu_fold fold = {CR_F32, CR_FAM_SUM, memory, 5, 6, 0};
    cr_replay replay = {0};
    for (int i = 0; i < 3; i++) cr_replay_launch(&replay, &fold, NULL, enqueue, NULL);
    for (int i = 0; i < 6; i++) {
        cr_gpu_fold other = fold;
        if (i == 0) other.dtype = CR_F64;
        if (i == 1) other.families = CR_FAM_SUMSQ;
        if (i == 2) other.data = &memory[1];
        if (i == 3) other.n++;
        if (i == 4) other.index++;
        if (i == 5) other.wants++;
        ck_assert_msg(!cr_replay_launch(&replay, &other, NULL, enqueue, NULL), "member %d", i);
    }
    ck_assert(cr_replay_launch(&replay, &fold, NULL, enqueue, NULL));
    cr_replay_free(&replay);
}
END_TEST

CR_CHECK_MAIN("replay") {
    tcase_add_checked_fixture(tc, begin, NULL);
    tcase_add_test(tc, the_third_time_makes_a_graph);
    tcase_add_test(tc, the_oldest_makes_room);
    tcase_add_loop_test(tc, a_graph_that_fails, 0, 4);
    tcase_add_test(tc, folds_that_differ);
}
