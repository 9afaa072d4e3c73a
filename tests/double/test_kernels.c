/* The folds of kernels/cuda on the runtime double: through the library's table of a GPU, in streams whose work runs late, and their
 * answers are those of an array that is summed here. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/caller.h"
#include "tests/double/double.h"
#include "tests/unit/check_main.h"

enum { COUNT = 50000, FOLDS = 4 };

static void wait_for(const cr_gpu_api *api, cr_gpu_stream *stream) {
    bool idle = false;
    cr_error error;
    for (int looks = 0; !idle; looks++) {
        ck_assert_int_lt(looks, 100000);
        ck_assert_int_eq(api->poll(stream, &idle, &error), CR_OK);
    }
}

static void fold_with(uint64_t seed) {
    const cr_gpu_api *api = cured_cuda_library()->gpu;
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    cr_error error;
    void *pinned, *device;
    cr_double_seed(seed);
    ck_assert_int_eq(api->count(&error), 2);
    ck_assert_int_eq(api->open(0, &gpu, &error), CR_OK);
    ck_assert_int_eq(api->stream_open(gpu, FOLDS, &stream, &error), CR_OK);
    ck_assert_int_eq(api->host_alloc(gpu, COUNT * sizeof(int32_t), &pinned, &error), CR_OK);
    ck_assert_int_eq(api->device_alloc(gpu, COUNT * sizeof(int32_t), &device, &error), CR_OK);
    int32_t *values = pinned;
    int64_t sum = 0;
    for (int i = 0; i < COUNT; i++) values[i] = i % 1000 - 300 + (int)seed, sum += values[i];
    cr_gpu_fold folds[FOLDS];
    for (int i = 0; i < FOLDS; i++)
        folds[i] = (cr_gpu_fold){CR_I32, CR_FAM_SUM | CR_FAM_EXTREMA, device, COUNT, 0, CR_WANTS_ALL};
    ck_assert_int_eq(api->copy(stream, device, pinned, COUNT * sizeof(int32_t), &error), CR_OK);
    ck_assert_int_eq(api->fold(stream, folds, FOLDS, 0, &error), CR_OK);
    memset(folds, 0xff, sizeof folds); /* launched: nobody looks at them again */
    wait_for(api, stream);
    for (uint32_t i = 0; i < FOLDS; i++) {
        const cr_partial *p = api->result(stream, i);
        ck_assert_uint_eq(p->n, COUNT);
        ck_assert_uint_eq(p->min.index, 0);
        ck_assert_uint_eq(p->max.index, 999);
        ck_assert_int_eq(p->sums[CR_AT_SUM].limbs[0] + p->sums[CR_AT_SUM].limbs[1] * ((int64_t)1 << 32), sum);
    }
    api->stream_close(stream);
    api->device_free(gpu, device);
    api->host_free(gpu, pinned);
    api->close(gpu);
    cr_double_counts counts;
    cr_double_count(&counts);
    ck_assert(counts.late_writes == 0 && counts.stale == 0 && counts.live_blocks == 0 && counts.streams == 0);
}

START_TEST(folds_run_late) {
    for (uint64_t seed = 0; seed < 6; seed++) fold_with(seed);
}
END_TEST

START_TEST(the_library_says_what_it_is) {
    const cr_caller_api *api = cured_cuda_library();
    ck_assert_str_eq(api->version, CURED_VERSION);
    ck_assert_uint_eq(api->partial_bytes, sizeof(cr_partial));
}
END_TEST

CR_CHECK_MAIN("double/kernels") {
    tcase_add_test(tc, folds_run_late);
    tcase_add_test(tc, the_library_says_what_it_is);
}
