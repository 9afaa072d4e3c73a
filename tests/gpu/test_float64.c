/* Which way sums of floats take (kernels/cuda/plan/float64.c) on devices that differ in how fast their float64 is; and that it is one of
 * two, either of which can be forced. tests/gpu/test_gpu_folds.c compares what they answer.
 *
 * Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/plan/float64.h"
#include "kernels/cuda/plan/fold.h"
#include "tests/unit/check_main.h"

/* Ratios that chips have: of those for computing 2 or 3, of others 24, 32 or 64; and one that nobody knows. */
enum { H200, KEPLER, L4, LIMIT, ABOVE, BROKEN, KINDS };
static const int ratios[KINDS] = {2, 3, 64, CR_FLOAT64_RATIO, CR_FLOAT64_RATIO + 1, 64};
static cudaError_t failure;
static unsigned questions;

static cudaError_t attribute(int *value, int which, int device) {
    ck_assert_int_eq(which, cudaDevAttrSingleToDoublePrecisionPerfRatio);
    questions++;
    *value = ratios[device % KINDS];
    return device == BROKEN ? failure : cudaSuccess;
}

static void begin(void) {
    cr_emulated_attribute = attribute;
    questions = 0;
    cr_fast_switch_off(0);
}

static cr_fold_launcher launcher(int device, cr_dtype dtype, uint32_t families) {
    cr_fold_launcher found[CR_FOLD_LAUNCHES];
    uint32_t count = 0;
    cr_error error;
    cr_emulated_device = device;
    ck_assert_int_eq(cr_fold_launchers(dtype, families, 0, found, &count, &error), CR_OK);
    ck_assert_uint_eq(count, 1);
    return found[0];
}

static const struct {
    cr_dtype dtype;
    uint32_t family;
} folds[] = {{CR_F16, CR_FAM_SUM}, {CR_BF16, CR_FAM_SUM},  {CR_F32, CR_FAM_SUM},
             {CR_F64, CR_FAM_SUM}, {CR_F32, CR_FAM_SUMSQ}, {CR_F64, CR_FAM_SUMSQ}};

START_TEST(a_device_chooses_by_its_ratio) {
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
        const cr_fold_launcher fast = launcher(H200, folds[i].dtype, folds[i].family),
                               second = launcher(L4, folds[i].dtype, folds[i].family);
        ck_assert(fast != second);
        ck_assert(launcher(KEPLER, folds[i].dtype, folds[i].family) == fast &&
                  launcher(LIMIT, folds[i].dtype, folds[i].family) == fast);
        ck_assert(launcher(ABOVE, folds[i].dtype, folds[i].family) == second);
    }
    ck_assert_uint_eq(questions, 5); /* once a device */
}
END_TEST

START_TEST(either_way_can_be_forced) {
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
        const cr_fold_launcher fast = launcher(H200, folds[i].dtype, folds[i].family),
                               second = launcher(L4, folds[i].dtype, folds[i].family);
        cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_FLOAT64);
        ck_assert(launcher(H200, folds[i].dtype, folds[i].family) == second &&
                  launcher(L4, folds[i].dtype, folds[i].family) == second);
        cr_fast_switch_off(UINT64_C(1) << CR_FAST_GPU_RATIO);
        ck_assert(launcher(H200, folds[i].dtype, folds[i].family) == fast &&
                  launcher(L4, folds[i].dtype, folds[i].family) == fast);
        cr_fast_switch_off(0);
    }
}
END_TEST

START_TEST(other_folds_ask_nothing) {
    static const cr_dtype others[] = {CR_I32, CR_U64, CR_F8_E4M3, CR_F8_E5M2};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert(launcher(L4, others[i], CR_FAM_SUM) == launcher(H200, others[i], CR_FAM_SUM));
    ck_assert(launcher(L4, CR_F64, CR_FAM_EXTREMA) == launcher(H200, CR_F64, CR_FAM_EXTREMA));
    ck_assert(cr_fold_takes(CR_F64, CR_FAM_SUM));
    ck_assert_uint_eq(questions, 0);
}
END_TEST

START_TEST(a_failure_is_no_answer) {
    failure = cudaErrorMemoryAllocation;
    ck_assert(launcher(BROKEN, CR_F32, CR_FAM_SUM) == launcher(H200, CR_F32, CR_FAM_SUM));
    failure = cudaSuccess;
    ck_assert(launcher(BROKEN, CR_F32, CR_FAM_SUM) == launcher(L4, CR_F32, CR_FAM_SUM));
}
END_TEST

START_TEST(any_number_of_devices) {
    for (int device = 1002; device < 1010; device++) {
        cr_emulated_device = device;
        ck_assert(cr_float64_is_slow() == (ratios[device % KINDS] > CR_FLOAT64_RATIO));
    }
}
END_TEST

CR_CHECK_MAIN("cuda/float64") {
    tcase_add_checked_fixture(tc, begin, NULL);
    tcase_add_test(tc, a_device_chooses_by_its_ratio);
    tcase_add_test(tc, either_way_can_be_forced);
    tcase_add_test(tc, other_folds_ask_nothing);
    tcase_add_test(tc, a_failure_is_no_answer);
    tcase_add_test(tc, any_number_of_devices);
}
