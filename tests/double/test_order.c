/* Work of the runtime double runs late, in the order of its stream, and in an order among streams that CUDA's rules allow. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/double/double.h"
#include "tests/unit/check_main.h"

enum { SEEDS = 40 };
static cudaStream_t a, b; /* a is blocking, b is not */
static int *device;

static void setup(void) {
    cr_double_seed(0);
    ck_assert_int_eq(cudaStreamCreate(&a), 0);
    ck_assert_int_eq(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), 0);
    ck_assert_int_eq(cudaMalloc((void **)&device, 4096), 0);
}

static void write_to(cudaStream_t stream, int at, int value) {
    ck_assert_int_eq(cr_double_slow_write(stream, device + at, &value, sizeof value), 0);
}
static int read_back(cudaStream_t stream, int at) {
    int value = -1;
    ck_assert_int_eq(cudaMemcpyAsync(&value, device + at, sizeof value, cudaMemcpyDeviceToHost, stream), 0);
    return value;
}

START_TEST(runs_late_and_in_order) {
    write_to(a, 0, 1);
    ck_assert_int_ne(device[0], 1);
    for (int i = 2; i < 20; i++) write_to(a, 0, i);
    ck_assert_uint_eq(cr_double_pending_in(a), 19);
    ck_assert_int_eq(cudaStreamQuery(a), cudaErrorNotReady);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorNotReady);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(a), 0);
    ck_assert_int_eq(device[0], 19);
    ck_assert_int_eq(cudaStreamQuery(a), 0);
}
END_TEST

START_TEST(other_streams_wait_only_for_events) {
    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    ck_assert_int_eq(cudaEventQuery(event), 0); /* nothing was recorded */
    write_to(a, 0, 7);
    ck_assert_int_eq(cr_double_copy_kernel(b, device + 1, device, sizeof(int)), 0);
    ck_assert_int_eq(cudaStreamSynchronize(b), 0);
    ck_assert_int_ne(device[1], 7); /* a was not waited for */
    ck_assert_int_eq(cudaEventRecord(event, a), 0);
    ck_assert_int_eq(cudaEventQuery(event), cudaErrorNotReady);
    ck_assert_int_eq(cudaStreamWaitEvent(b, event, 0), 0);
    ck_assert_int_eq(cr_double_copy_kernel(b, device + 1, device, sizeof(int)), 0);
    ck_assert_int_eq(cudaStreamSynchronize(b), 0);
    ck_assert_int_eq(device[1], 7);
    ck_assert_int_eq(cudaEventSynchronize(event), 0);
    ck_assert_int_eq(cudaEventDestroy(event), 0);
    ck_assert_int_eq(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
}
END_TEST

/* Which orders come of two writes, a's and the other's: bit 0: a's last; bit 1: the other's. */
static int orders_of(cudaStream_t other) {
    int seen = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        cr_double_seed(seed);
        write_to(a, 0, 1);
        write_to(other, 0, 2);
        ck_assert_int_eq(cudaDeviceSynchronize(), 0);
        seen |= device[0];
    }
    return seen;
}
START_TEST(legacy_stream_orders_blocking_ones) {
    ck_assert_int_eq(orders_of(b), 3);
    ck_assert_int_eq(orders_of(NULL), 2);
    ck_assert_int_eq(orders_of(cudaStreamLegacy), 2);
    ck_assert_int_eq(orders_of(cudaStreamPerThread), 3);
    cudaStream_t kept = a;
    a = NULL;
    ck_assert_int_eq(orders_of(kept), 2);
    ck_assert_int_eq(orders_of(b), 3);
    ck_assert_int_eq(orders_of(cudaStreamPerThread), 2);
}
END_TEST

START_TEST(legacy_waits_for_blocking_streams) {
    write_to(a, 0, 5);
    write_to(b, 1, 6);
    ck_assert_int_eq(cudaStreamQuery(NULL), cudaErrorNotReady);
    ck_assert_int_eq(cudaStreamSynchronize(NULL), 0);
    ck_assert_int_eq(device[0], 5);
    ck_assert_int_ne(device[1], 6);
    ck_assert_int_eq(read_back(b, 1), 6);
}
END_TEST

START_TEST(pinned_memory_is_read_late_and_pageable_at_once) {
    int pageable = 1, *pinned;
    ck_assert_int_eq(cudaMallocHost((void **)&pinned, sizeof *pinned), 0);
    *pinned = 1;
    cudaMemcpyAsync(device, &pageable, sizeof(int), cudaMemcpyHostToDevice, a);
    cudaMemcpyAsync(device + 1, pinned, sizeof(int), cudaMemcpyHostToDevice, a);
    pageable = *pinned = 2;
    ck_assert_int_eq(read_back(a, 0), 1);
    ck_assert_int_eq(device[1], 2);
    ck_assert_int_eq(cudaMemsetAsync(device, 0, 8, a), 0);
    ck_assert_int_eq(device[1], 2);
    ck_assert_int_eq(cudaMemcpyAsync(pinned, device + 1, sizeof(int), cudaMemcpyDeviceToHost, a), 0);
    ck_assert_int_eq(*pinned, 2);
    ck_assert_int_eq(cudaStreamSynchronize(a), 0);
    ck_assert_int_eq(*pinned, 0);
    ck_assert_int_eq(cudaMemcpyAsync(device + 1023, pinned, 8, cudaMemcpyDefault, a), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaMemcpyAsync(&pageable, device, 4, cudaMemcpyHostToDevice, a), cudaErrorInvalidValue);
}
END_TEST

START_TEST(pointers_are_known) {
    struct cudaPointerAttributes found;
    int *managed, here;
    ck_assert_int_eq(cudaPointerGetAttributes(&found, device + 5), 0);
    ck_assert(found.type == cudaMemoryTypeDevice && found.device == 0 && found.devicePointer == device + 5);
    ck_assert_int_eq(cudaPointerGetAttributes(&found, &here), 0);
    ck_assert(found.type == cudaMemoryTypeUnregistered && found.devicePointer == NULL);
    ck_assert_int_eq(cudaHostRegister(&here, sizeof here, cudaHostRegisterMapped), 0);
    ck_assert_int_eq(cudaPointerGetAttributes(&found, &here), 0);
    ck_assert(found.type == cudaMemoryTypeHost);
    ck_assert_int_eq(cudaHostUnregister(&here), 0);
    cudaMallocManaged((void **)&managed, 4, cudaMemAttachGlobal);
    cudaPointerGetAttributes(&found, managed);
    ck_assert(found.type == cudaMemoryTypeManaged);
    cudaFree(device);
    cudaPointerGetAttributes(&found, device);
    ck_assert(found.type == cudaMemoryTypeUnregistered);
}
END_TEST

START_TEST(freed_memory_is_poison) {
    cr_double_counts counts;
    int *pooled;
    write_to(a, 0, 1);
    ck_assert_int_eq(cudaFree(device), 0); /* waits */
    ck_assert_uint_eq(cr_double_pending_in(a), 0);
    ck_assert_int_eq(device[0], (int)0xA5A5A5A5);
    cr_double_count(&counts);
    ck_assert(counts.device_syncs == 1 && counts.late_writes == 0);
    ck_assert_int_eq(cudaMallocAsync((void **)&pooled, 64, b), 0);
    ck_assert_int_eq(cudaMemsetAsync(pooled, 1, 64, b), 0);
    ck_assert_int_eq(cudaFreeAsync(pooled, b), 0);
    ck_assert_int_eq(cudaFreeAsync(pooled, b), cudaErrorInvalidValue);
    ck_assert_int_ne(pooled[0], 0x01010101);
    ck_assert_int_eq(cudaStreamSynchronize(b), 0);
    ck_assert_int_eq(pooled[0], (int)0xA5A5A5A5);
    cudaMalloc((void **)&device, 4096);
    cr_double_free_at_once(true);
    write_to(a, 3, 1);
    ck_assert_int_eq(cudaFree(device), 0);
    ck_assert_uint_eq(cr_double_pending_in(a), 1);
    ck_assert_uint_eq(cr_double_run(100), 8);
    cr_double_count(&counts);
    ck_assert(counts.device_syncs == 1 && counts.late_writes == 1 && counts.live_blocks == 0 && counts.live_bytes == 0);
    ck_assert_int_eq(cudaFree(device), cudaErrorInvalidValue);
}
END_TEST

static pthread_mutex_t program = PTHREAD_MUTEX_INITIALIZER;
static int refused;
static void *called;
static void host_function(void *user) {
    pthread_mutex_lock(&program);
    refused = cudaStreamQuery(b);
    called = user;
    pthread_mutex_unlock(&program);
}
START_TEST(host_functions_run_in_their_turn) {
    write_to(b, 0, 3);
    ck_assert_int_eq(cudaLaunchHostFunc(b, host_function, &refused), 0);
    pthread_mutex_lock(&program); /* which a query must not wait for */
    for (int i = 0; i < 20; i++) ck_assert_int_eq(cudaStreamQuery(b), cudaErrorNotReady);
    ck_assert(device[0] == 3 && called == NULL);
    pthread_mutex_unlock(&program);
    ck_assert_int_eq(cudaStreamSynchronize(b), 0);
    ck_assert(called == &refused && refused == cudaErrorNotPermitted);
}
END_TEST

START_TEST(a_handle_comes_again_and_its_number_does_not) {
    unsigned long long first, second;
    cudaStream_t again;
    cudaStreamGetId(b, &first);
    write_to(b, 0, 4);
    ck_assert_int_eq(cudaStreamDestroy(b), 0);
    ck_assert_int_eq(cudaStreamQuery(b), cudaErrorInvalidResourceHandle);
    cudaStreamCreate(&again);
    cudaStreamGetId(again, &second);
    ck_assert(again == b && first != second);
    ck_assert_uint_eq(cr_double_pending(), 1);
    ck_assert_int_eq(cudaDeviceSynchronize(), 0);
    ck_assert_int_eq(device[0], 4);
}
END_TEST

START_TEST(a_query_comes_to_an_end) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        cr_double_seed(seed);
        write_to(a, 0, (int)seed);
        write_to(b, 1, (int)seed);
        int looks = 0;
        while (cudaStreamQuery(b) == cudaErrorNotReady) ck_assert_int_lt(++looks, 1000);
        ck_assert_int_eq(device[1], (int)seed);
    }
}
END_TEST

CR_CHECK_MAIN("double/order") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, runs_late_and_in_order);
    tcase_add_test(tc, other_streams_wait_only_for_events);
    tcase_add_test(tc, legacy_stream_orders_blocking_ones);
    tcase_add_test(tc, legacy_waits_for_blocking_streams);
    tcase_add_test(tc, pinned_memory_is_read_late_and_pageable_at_once);
    tcase_add_test(tc, pointers_are_known);
    tcase_add_test(tc, freed_memory_is_poison);
    tcase_add_test(tc, host_functions_run_in_their_turn);
    tcase_add_test(tc, a_handle_comes_again_and_its_number_does_not);
    tcase_add_test(tc, a_query_comes_to_an_end);
}
