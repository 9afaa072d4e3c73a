/* cured_region_cuda_pointer against a stand-in driver and a fake daemon: what is told of each kind of memory, what is refused and why, and that
 * nothing is kept of it. */
#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/fake.h"
#include "tests/unit/client/fake_driver.h"

static fake f;
static cured_conn *conn;
static cured_error error;
static cured_region *region;
static void *library;
static int descriptors;

static int count_descriptors(void) {
    int count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

static void setup(void) {
    fake_start(&f);
    conn = fake_connect(&f);
    library = dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    descriptors = count_descriptors();
}

static void teardown(void) {
    static const char *const counts[] = {"fake_driver_contexts", "fake_driver_retained", "fake_driver_allocations"};
    for (int i = 0; i < 3; i++) ck_assert_int_eq(*(int *)dlsym(library, counts[i]), 0);
    cured_region_free(region);
    region = NULL;
    cured_close(conn);
    fake_stop(&f);
    dlclose(library);
}

static const void *at(uint64_t kind, uint64_t offset) { return (const void *)((kind << 36) + 0x1000 + offset); }

/* What the daemon is told. */
static cr_wire_region told(uint64_t kind, uint64_t offset, uint64_t bytes, void *event, uint32_t passed) {
    cr_frame h;
    const uint8_t *p;
    cr_wire_call m;
    cr_error e;
    ck_assert_msg(cured_region_cuda_pointer(conn, at(kind, offset), bytes, event, &region, &error) == CURED_OK, "%s",
                  error.text);
    fake_expect(&f, conn, CR_FRAME_CALL, &h, &p);
    ck_assert_msg(cr_wire_unpack_call(p, h.length, &m, &e) == CR_OK, "%s", e.text);
    ck_assert_int_eq(m.kind, CR_CALL_REGISTER);
    ck_assert_uint_eq(h.descriptors, passed);
    ck_assert_int_eq(f.fd_count, (int)passed);
    for (int i = 0; i < 16; i++) ck_assert_int_eq(m.region.device[i], 41);
    ck_assert_uint_eq(m.region.offset, offset);
    ck_assert_uint_eq(m.region.bytes, bytes);
    ck_assert_int_eq(m.region.has_event, event != NULL);
    return m.region;
}

static uint64_t base_in(const cr_wire_region *r) {
    uint64_t base;
    memcpy(&base, r->handle, sizeof base);
    return base;
}

START_TEST(of_cuda_malloc) {
    cr_wire_region r = told(FAKE_IPC, 4096, 61440, NULL, 0);
    ck_assert_int_eq(r.kind, CR_SHARED_CUDA_IPC);
    ck_assert_uint_eq(base_in(&r), ((uint64_t)FAKE_IPC << 36) + 0x1000);
}
END_TEST

START_TEST(of_a_pool) {
    cr_wire_region r = told(FAKE_POOL, 17, 100, NULL, 1);
    ck_assert_int_eq(r.kind, CR_SHARED_CUDA_DESCRIPTOR);
    ck_assert(r.has_handle);
    ck_assert_uint_eq(base_in(&r), ((uint64_t)FAKE_POOL << 36) + 0x1000);
}
END_TEST

START_TEST(of_cu_mem_create) {
    cr_wire_region r = told(FAKE_MEMORY, 0, 65536, NULL, 1);
    ck_assert_int_eq(r.kind, CR_SHARED_CUDA_DESCRIPTOR);
    ck_assert(!r.has_handle);
}
END_TEST

START_TEST(with_an_event) {
    char event[] = "good";
    cr_wire_region r = told(FAKE_MEMORY, 8, 65528, event, 1);
    ck_assert_int_eq(memcmp(r.event, "good", 4), 0);
}
END_TEST

START_TEST(one_of_two_allocations) {
    cr_wire_region r = told(FAKE_TWO, 100, 32668, NULL, 1);
    ck_assert_int_eq(r.kind, CR_SHARED_CUDA_DESCRIPTOR);
}
END_TEST

static void refused(const void *pointer, uint64_t bytes, void *event, cured_status status, const char *word) {
    ck_assert_int_eq(cured_region_cuda_pointer(conn, pointer, bytes, event, &region, &error), status);
    ck_assert_msg(strstr(error.text, word) != NULL, "%s: no %s", error.text, word);
    ck_assert_ptr_null(region);
}

START_TEST(what_cannot_be_shared) {
    char event[] = "poor";
    refused(at(FAKE_MANAGED, 0), 8, NULL, CURED_FAILED_PRECONDITION, "managed");
    refused(at(FAKE_HOST, 0), 8, NULL, CURED_INVALID_ARGUMENT, "host memory");
    refused(at(FAKE_PRIVATE_POOL, 0), 8, NULL, CURED_FAILED_PRECONDITION, "handleTypes");
    refused(at(FAKE_PRIVATE_MEMORY, 0), 8, NULL, CURED_FAILED_PRECONDITION, "requestedHandleTypes");
    refused(at(FAKE_TWO, 100), 32669, NULL, CURED_FAILED_PRECONDITION, "several allocations");
    refused(&error, 8, NULL, CURED_INVALID_ARGUMENT, "no memory that the CUDA driver knows");
    refused(NULL, 8, NULL, CURED_INVALID_ARGUMENT, "no memory that the CUDA driver knows");
    refused(at(FAKE_IPC, 0), 65537, NULL, CURED_INVALID_ARGUMENT, "65536");
    refused(at(FAKE_IPC, 65535), 2, NULL, CURED_INVALID_ARGUMENT, "has 1");
    refused(at(FAKE_IPC, 0), 0, NULL, CURED_INVALID_ARGUMENT, "bytes");
    refused(at(FAKE_IPC, 1), UINT64_MAX, NULL, CURED_INVALID_ARGUMENT, "bytes");
    refused(at(FAKE_MEMORY, 0), 8, event, CURED_FAILED_PRECONDITION, "cudaEventInterprocess");
    ck_assert_int_eq(count_descriptors(), descriptors);
}
END_TEST

START_TEST(without_a_driver) {
    dlclose(library);
    refused(at(FAKE_IPC, 0), 8, NULL, CURED_FAILED_PRECONDITION, "no CUDA driver");
    library = dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
}
END_TEST

CR_CHECK_MAIN("client/cuda") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, of_cuda_malloc);
    tcase_add_test(tc, of_a_pool);
    tcase_add_test(tc, of_cu_mem_create);
    tcase_add_test(tc, with_an_event);
    tcase_add_test(tc, one_of_two_allocations);
    tcase_add_test(tc, what_cannot_be_shared);
    tcase_add_test(tc, without_a_driver);
}
