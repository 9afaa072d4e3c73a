/* Devices, contexts, resets and faults of the runtime double, and what it counts. */
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/double/cuda.h"
#include "tests/double/double.h"
#include "tests/unit/check_main.h"

static void *function(const char *name) {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult how;
    ck_assert_int_eq(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how), 0);
    ck_assert(how == cudaDriverEntryPointSuccess && found);
    return found;
}
static CUcontext current(void) {
    CUcontext found = NULL;
    ((CUresult(*)(CUcontext *))function("cuCtxGetCurrent"))(&found);
    return found;
}

START_TEST(kernels_want_their_device) {
    cudaStream_t first, second;
    cudaEvent_t of_first, of_second;
    int *memory, device = -1;
    cudaStreamCreate(&first);
    cudaEventCreate(&of_first);
    cudaMalloc((void **)&memory, 64);
    ck_assert_int_eq(cudaSetDevice(2), cudaErrorInvalidDevice);
    ck_assert_int_eq(cudaSetDevice(1), 0);
    cudaGetDevice(&device);
    ck_assert_int_eq(device, 1);
    cudaStreamCreate(&second);
    cudaEventCreate(&of_second);
    ck_assert_int_eq(cr_double_slow_write(first, memory, &device, 4), cudaErrorInvalidResourceHandle);
    ck_assert_int_eq(cudaEventRecord(of_second, first), cudaErrorInvalidResourceHandle);
    ck_assert_int_eq(cudaEventRecord(of_first, first), 0);
    ck_assert_int_eq(cudaStreamWaitEvent(second, of_first, 0), 0);
    ck_assert_int_eq(cudaStreamSynchronize(first), 0);
    ck_assert_int_eq(cudaMemcpyAsync(memory + 1, memory, 4, cudaMemcpyDefault, second), 0);
    ck_assert_int_eq(cudaDeviceSynchronize(), 0);
}
END_TEST

START_TEST(a_foreign_context_is_another) {
    cudaStream_t stream;
    int byte = 0, *memory, device = 5;
    ck_assert_ptr_null(current());
    cudaFree(NULL);
    CUcontext primary = current(), retained = NULL;
    ((CUresult(*)(CUcontext *, CUdevice))function("cuDevicePrimaryCtxRetain"))(&retained, 0);
    ck_assert(primary && primary == retained);
    cudaStreamCreate(&stream);
    cudaMalloc((void **)&memory, 4);
    cr_double_foreign_context(true);
    ck_assert_ptr_ne(current(), primary);
    cudaGetDevice(&device);
    ck_assert_int_eq(device, 0);
    ck_assert_int_eq(cr_double_slow_write(stream, memory, &byte, 1), cudaErrorInvalidResourceHandle);
    cr_double_foreign_context(false);
    ck_assert_ptr_eq(current(), primary);
    ck_assert_int_eq(cr_double_slow_write(stream, memory, &byte, 1), 0);
}
END_TEST

START_TEST(after_a_reset_all_is_gone) {
    cudaStream_t stream;
    cudaEvent_t event;
    int value = 1, *memory;
    unsigned long long number, later;
    CUresult (*id)(CUcontext, unsigned long long *) =
        (CUresult(*)(CUcontext, unsigned long long *))function("cuCtxGetId");
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    cudaMalloc((void **)&memory, 4);
    cr_double_slow_write(stream, memory, &value, 4);
    CUcontext context = current();
    ck_assert_int_eq(id(context, &number), 0);
    ck_assert_int_eq(cr_double_reset(), 0);
    ck_assert_int_eq(id(context, &later), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ck_assert_int_eq(memory[0], (int)0xA5A5A5A5);
    ck_assert_int_eq(cudaStreamSynchronize(stream), cudaErrorContextIsDestroyed);
    ck_assert_int_eq(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
    ck_assert_int_eq(cudaFree(memory), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaStreamCreate(&stream), 0);
    ck_assert_int_eq(id(current(), &later), 0);
    ck_assert(number != later);
}
END_TEST

START_TEST(a_broken_device_stays_broken) {
    cudaStream_t stream;
    int value = 1, *memory;
    cudaStreamCreate(&stream);
    cudaMalloc((void **)&memory, 4);
    cr_double_slow_write(stream, memory, &value, 4);
    cr_double_break(cudaErrorIllegalAddress);
    ck_assert_int_eq(cudaStreamQuery(stream), cudaErrorIllegalAddress);
    ck_assert_int_eq(cudaMalloc((void **)&memory, 4), cudaErrorIllegalAddress);
    cudaGetLastError();
    ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
    ck_assert_int_eq(cr_double_reset(), 0);
    ck_assert_int_eq(cudaMalloc((void **)&memory, 4), 0);
}
END_TEST

START_TEST(calls_fail_as_told) {
    void *memory;
    cr_double_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&memory, 8), 0);
    ck_assert_int_eq(cudaMalloc(&memory, 8), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&memory, 8), 0);
    ck_assert_uint_eq(cr_double_faults(), 0);
    ck_assert_uint_eq(cr_double_calls("cudaMalloc"), 3);
    cr_double_fail("cudaMallocHost", 3, 1);
    ck_assert_uint_eq(cr_double_faults(), 1);
    cr_double_fail(NULL, 0, 0);
    ck_assert_uint_eq(cr_double_faults(), 0);
    cr_double_memory(64);
    ck_assert_int_eq(cudaMalloc(&memory, 49), cudaErrorMemoryAllocation);
    ck_assert_int_eq(cudaMalloc(&memory, 48), 0);
}
END_TEST

START_TEST(drivers_may_be_missing) {
    int count = 5, version = 0;
    cr_double_driver(12040);
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
    cudaDriverGetVersion(&version);
    ck_assert_int_eq(version, 12040);
    cr_double_driver(13000);
    cr_double_devices(0);
    ck_assert_int_eq(cudaGetDeviceCount(&count), cudaErrorNoDevice);
    cr_double_devices(2);
    ck_assert_int_eq(cudaGetDeviceCount(&count), 0);
    ck_assert_int_eq(count, 2);
}
END_TEST

START_TEST(a_child_may_not) {
    int status = 0;
    ck_assert_int_eq(cudaFree(NULL), 0);
    const pid_t child = fork();
    if (child == 0) _exit(cudaFree(NULL) == cudaErrorInitializationError ? 0 : 1);
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(counts_tell_streams_apart) {
    cudaStream_t mine, other;
    int value = 1, *memory;
    cr_double_counts counts;
    cudaStreamCreate(&mine);
    cudaStreamCreate(&other);
    cudaMalloc((void **)&memory, 64);
    cr_double_slow_write(mine, memory, &value, 4);
    cudaMemsetAsync(memory, 0, 4, mine);
    cudaMemsetAsync(memory, 0, 4, other);
    cr_double_count(&counts);
    ck_assert_uint_eq(counts.enqueued, 3);
    ck_assert_uint_eq(cr_double_enqueued_in(mine), 2);
    ck_assert(counts.sets == 2 && counts.streams == 2 && counts.allocations == 1 && counts.live_bytes == 64);
    ck_assert(counts.device_syncs == 0 && counts.stream_syncs == 0 && counts.ran == 0 && counts.stale == 0);
}
END_TEST

CR_CHECK_MAIN("double/devices") {
    tcase_add_test(tc, kernels_want_their_device);
    tcase_add_test(tc, a_foreign_context_is_another);
    tcase_add_test(tc, after_a_reset_all_is_gone);
    tcase_add_test(tc, a_broken_device_stays_broken);
    tcase_add_test(tc, calls_fail_as_told);
    tcase_add_test(tc, drivers_may_be_missing);
    tcase_add_test(tc, a_child_may_not);
    tcase_add_test(tc, counts_tell_streams_apart);
}
