/* Which devices may begin a kernel early (kernels/cuda/plan/early.c), on a host that has devices of several kinds.
 *
 * Thread: one. Owner: this file. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/early.h"
#include "tests/unit/check_main.h"

enum { AMPERE, HOPPER, NEWER_BY_OLD_PTX, BLACKWELL, BROKEN, KINDS };
static const struct cudaFuncAttributes code[KINDS] = {{80, 80}, {90, 90}, {120, 80}, {120, 120}, {90, 90}};
static cudaError_t failure;
static unsigned questions;

int cr_emulated_device;
cudaError_t cr_emulated_code(struct cudaFuncAttributes *found) {
    questions++;
    *found = code[cr_emulated_device % KINDS];
    return cr_emulated_device == BROKEN ? failure : cudaSuccess;
}

static bool on(int device) {
    cr_emulated_device = device;
    return cr_can_launch_early(NULL);
}

START_TEST(each_device_has_an_answer_of_its_own) {
    ck_assert(!on(AMPERE));
    ck_assert(on(HOPPER));
    ck_assert(!on(NEWER_BY_OLD_PTX));
    ck_assert(on(BLACKWELL));
    ck_assert_uint_eq(questions, 4);
    for (int i = 0; i < 3; i++) {
        ck_assert(!on(AMPERE));
        ck_assert(on(HOPPER));
        ck_assert(!on(NEWER_BY_OLD_PTX));
        ck_assert(on(BLACKWELL));
    }
    ck_assert_uint_eq(questions, 4); /* asked once a device */
    cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_EARLY);
    ck_assert(!on(HOPPER));
    cr_fast_switch_off(0);
    ck_assert(on(HOPPER));
}
END_TEST

START_TEST(a_failure_is_no_answer) {
    failure = cudaErrorMemoryAllocation;
    ck_assert(!on(BROKEN));
    failure = cudaSuccess;
    ck_assert(on(BROKEN));
}
END_TEST

START_TEST(any_number_of_devices) {
    for (int device = 1000; device < 1010; device++)
        ck_assert(on(device) == (device % KINDS == HOPPER || device % KINDS == BLACKWELL || device % KINDS == BROKEN));
}
END_TEST

CR_CHECK_MAIN("cuda/early") {
    tcase_add_test(tc, each_device_has_an_answer_of_its_own);
    tcase_add_test(tc, a_failure_is_no_answer);
    tcase_add_test(tc, any_number_of_devices);
}
