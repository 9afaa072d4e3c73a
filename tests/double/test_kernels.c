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

/* The partial of one sum on a device, which is asked once. */
static void sum_on(uint32_t ordinal, cr_dtype dtype, cr_partial *partial) {
    const cr_gpu_api *api = cured_cuda_library()->gpu;
    const size_t bytes = COUNT * (dtype == CR_F64   ? sizeof(double)
                                  : dtype == CR_F32 ? sizeof(float)
                                                    : sizeof(uint16_t));
    cr_gpu *gpu;
    cr_gpu_stream *stream;
    cr_error error;
    void *pinned, *device;
    ck_assert_int_eq(api->open(ordinal, &gpu, &error), CR_OK);
    ck_assert_int_eq(api->stream_open(gpu, 1, &stream, &error), CR_OK);
    ck_assert_int_eq(api->host_alloc(gpu, bytes, &pinned, &error), CR_OK);
    ck_assert_int_eq(api->device_alloc(gpu, bytes, &device, &error), CR_OK);
    for (int i = 0; i < COUNT; i++) {
        if (dtype == CR_F64) ((double *)pinned)[i] = (i % 1000 - 300) / 3.0;
        if (dtype == CR_F32) ((float *)pinned)[i] = (float)(i % 1000 - 300) / 3.0f;
        if (dtype == CR_F16) ((uint16_t *)pinned)[i] = (uint16_t)(i % 31000);
    }
    const cr_gpu_fold fold = {dtype, CR_FAM_SUM, device, COUNT, 0, 0};
    ck_assert_int_eq(api->copy(stream, device, pinned, bytes, &error), CR_OK);
    ck_assert_int_eq(api->fold(stream, &fold, 1, 0, &error), CR_OK);
    wait_for(api, stream);
    *partial = *api->result(stream, 0);
    api->stream_close(stream);
    api->device_free(gpu, device);
    api->host_free(gpu, pinned);
    api->close(gpu);
}

/* One device's float64 is fast, the other's slow: their sums go by ways of their own, and are the same. */
START_TEST(sums_where_float64_is_slow) {
    static const struct {
        cr_dtype dtype;
        size_t limbs;
    } floats[] = {{CR_F16, CR_F16_LIMBS}, {CR_F32, CR_F32_LIMBS}, {CR_F64, CR_F64_LIMBS}};
    cr_partial fast, slow;
    size_t limbs = 0;
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        cr_double_ratio(2);
        sum_on(0, floats[i].dtype, &fast);
        cr_double_ratio(64);
        sum_on(1, floats[i].dtype, &slow);
        const int64_t *sum = fast.sums[CR_AT_SUM].limbs;
        ck_assert_mem_eq(sum, slow.sums[CR_AT_SUM].limbs, floats[i].limbs * sizeof *sum);
        for (size_t at = 0; at < floats[i].limbs; at++) limbs += sum[at] != 0;
        ck_assert_uint_eq(cr_double_calls("cudaDeviceGetAttribute"), 2);
    }
    ck_assert_uint_gt(limbs, 3); /* they are not sums of nothing */
}
END_TEST

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
    tcase_add_test(tc, sums_where_float64_is_slow);
    tcase_add_test(tc, the_library_says_what_it_is);
}
