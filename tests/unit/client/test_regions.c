/* libcured's regions against a fake daemon: what is told when, over one connection and the next, and what is let go; and the
 * arrays in shared memory. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check_main.h"
#include "tests/unit/client/connected.h"

static const cured_op sum = CURED_OP_SUM;

static int memory(void) {
    int fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    return fd;
}

static cured_region *region_of(int fd) {
    cured_region *region;
    ck_assert_msg(cured_region_fd(conn, fd, &region, &error) == CURED_OK, "%s", error.text);
    return region;
}

static cured_call *reduce(cured_region *region, const cured_options *o) {
    cured_call *call;
    ck_assert_msg(cured_region_reduce(region, CURED_F32, &sum, 1, 64, 16, o, &call, &error) == CURED_OK, "%s",
                  error.text);
    return call;
}

static void registered(uint32_t stream, uint64_t bytes) {
    uint8_t p[32];
    cr_wire_registered m = {.bytes = bytes};
    fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, p, cr_wire_pack_registered(&m, p, sizeof p));
}

static void unregistered(uint32_t stream) { fake_send(&f, CR_FRAME_RESULT, CR_FLAG_END, stream, NULL, 0); }

static void nothing_more_comes(void) {
    cr_frame h;
    const uint8_t *p;
    fake_settle(&f, conn);
    ck_assert_msg(!fake_take(&f, &h, &p), "%s came", cr_frame_name(h.type));
}

START_TEST(registered_once_reduced_often) {
    cr_frame h, g;
    struct stat mine, theirs;
    int fd = memory();
    cured_region *region = region_of(fd);
    cured_call *first = reduce(region, NULL), *second = reduce(region, NULL);
    ck_assert_uint_eq(cured_region_bytes(region), 0);
    cr_wire_call m = expect(CR_CALL_REGISTER, &h);
    ck_assert_int_eq(m.region.kind, CR_SHARED_DESCRIPTOR);
    ck_assert_uint_eq(h.descriptors, 1);
    ck_assert_int_eq(f.fd_count, 1);
    ck_assert(fstat(fd, &mine) == 0 && fstat(f.fds[0], &theirs) == 0 && mine.st_ino == theirs.st_ino);
    uint64_t id = m.region.id;
    m = expect(CR_CALL_REDUCE, &g);
    ck_assert_int_eq(m.reduce.source, CR_SOURCE_REGION);
    ck_assert_uint_eq(m.reduce.region, id);
    ck_assert_uint_eq(m.reduce.offset, 64);
    ck_assert(m.reduce.length_known && m.reduce.length == 16);
    registered(h.stream, 4096);
    fake_sum_of(&f, g.stream, 1, 16);
    turns(first);
    ck_assert_int_eq(cured_call_status(first, &error), CURED_OK);
    ck_assert_uint_eq(cured_region_bytes(region), 4096);
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_OK);
    expect(CR_CALL_REDUCE, &g);
    fake_sum_of(&f, g.stream, 2, 16);
    ck_assert_int_eq(cured_wait(second, &error), CURED_OK);
    cured_call *third;
    ck_assert_int_eq(cured_region_reduce(region, CURED_F32, &sum, 1, 0, CURED_TO_END, NULL, &third, &error), CURED_OK);
    m = expect(CR_CALL_REDUCE, &g);
    ck_assert(!m.reduce.length_known);
    fake_sum(&f, g.stream, 3);
    ck_assert_int_eq(cured_wait(third, &error), CURED_OK);
    close(fd);
    cured_call_free(first);
    cured_call_free(second);
    cured_call_free(third);
    cured_region_free(region);
    m = expect(CR_CALL_UNREGISTER, &g);
    ck_assert_uint_eq(m.region.id, id);
    unregistered(g.stream);
    nothing_more_comes();
}
END_TEST

/* Several regions in one call: all are registered first, the CALL names every piece, and each use is given back. */
START_TEST(regions_together) {
    cr_frame h, g;
    cr_wire_piece wire[CR_CALL_MAX_PIECES];
    const uint8_t *p;
    cured_call *call;
    int fd = memory(), other = memory();
    cured_region *one = region_of(fd), *two = region_of(other);
    cured_piece pieces[17] = {{one, 64, 16}, {two, 0, 8}, {one, 0, CURED_TO_END}};
    expect(CR_CALL_REGISTER, &h);
    registered(h.stream, 4096);
    expect(CR_CALL_REGISTER, &h);
    /* to the end of a region whose size is not known yet */
    cured_piece early[2] = {{two, 0, CURED_TO_END}, {one, 0, 1}};
    ck_assert_int_eq(cured_reduce_regions(early, 2, CURED_F32, &sum, 1, NULL, &call, &error),
                     CURED_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(error.text, "pieces[0]"));
    registered(h.stream, 4096);
    ck_assert_int_eq(cured_region_wait(one, &error), CURED_OK);
    ck_assert_int_eq(cured_region_wait(two, &error), CURED_OK);
    early[0].offset = 2;
    ck_assert_int_eq(cured_reduce_regions(early, 2, CURED_F32, &sum, 1, NULL, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_reduce_regions(pieces, 0, CURED_F32, &sum, 1, NULL, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_reduce_regions(pieces, 17, CURED_F32, &sum, 1, NULL, &call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(call);
    ck_assert_msg(cured_reduce_regions(pieces, 3, CURED_F32, &sum, 1, NULL, &call, &error) == CURED_OK, "%s",
                  error.text);
    fake_expect(&f, conn, CR_FRAME_CALL, &g, &p);
    cr_wire_call m;
    cr_error e;
    ck_assert_int_eq(cr_wire_unpack_call(p, g.length, &m, &e), CR_OK);
    ck_assert_int_eq(m.reduce.source, CR_SOURCE_REGIONS);
    ck_assert_uint_eq(m.reduce.length, 3);
    ck_assert_int_eq(cr_wire_unpack_pieces(p, g.length, wire, &e), CR_OK);
    ck_assert(wire[0].region == wire[2].region && wire[0].region != wire[1].region);
    ck_assert(wire[0].offset == 64 && wire[0].count == 16 && !wire[0].to_end);
    ck_assert(wire[1].offset == 0 && wire[1].count == 8 && wire[2].to_end);
    cured_region_free(one); /* the call keeps it */
    fake_sum_of(&f, g.stream, 5, 1048);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_count(call), 1048);
    expect(CR_CALL_UNREGISTER, &h);
    unregistered(h.stream);
    cured_call_free(call);
    cured_region_free(two);
    expect(CR_CALL_UNREGISTER, &h);
    unregistered(h.stream);
    close(fd);
    close(other);
}
END_TEST

START_TEST(unregister_ends_it) {
    cr_frame h;
    int fd = memory();
    cured_call *call, *again;
    cured_region *region = region_of(fd);
    expect(CR_CALL_REGISTER, &h);
    registered(h.stream, 4096);
    ck_assert_int_eq(cured_region_unregister(region, NULL, &call, &error), CURED_OK);
    expect(CR_CALL_UNREGISTER, &h);
    ck_assert_int_eq(cured_region_reduce(region, CURED_F32, &sum, 1, 0, 1, NULL, &again, &error),
                     CURED_FAILED_PRECONDITION);
    ck_assert_ptr_null(again);
    ck_assert_int_eq(cured_region_unregister(region, NULL, &again, &error), CURED_FAILED_PRECONDITION);
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_FAILED_PRECONDITION);
    fake_settle(&f, conn);
    ck_assert(!cured_call_done(call));
    unregistered(h.stream);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    cured_call_free(call);
    cured_region_free(region);
    nothing_more_comes(); /* once is enough */
    close(fd);
}
END_TEST

START_TEST(a_connection_made_anew_is_told_again) {
    cr_frame h, g;
    const uint8_t *p;
    int fd = memory();
    cured_region *region = region_of(fd);
    cured_call *call = reduce(region, NULL);
    uint64_t id = expect(CR_CALL_REGISTER, &h).region.id;
    expect(CR_CALL_REDUCE, &g);
    registered(h.stream, 4096);
    fake_settle(&f, conn);
    fake_drop(&f);
    while (cured_process(conn, NULL) == CURED_OK) continue;
    for (int i = 0; i < 10000 && cured_fd(conn) < 0; i++) {
        usleep(1000);
        cured_process(conn, NULL);
    }
    fake_accept(&f);
    fake_expect(&f, conn, CR_FRAME_HELLO, &h, &p);
    fake_welcome(&f);
    cr_wire_call m = expect(CR_CALL_REGISTER, &h);
    ck_assert_uint_eq(h.descriptors, 1);
    ck_assert_int_eq(m.region.kind, CR_SHARED_DESCRIPTOR);
    m = expect(CR_CALL_REDUCE, &g);
    ck_assert_uint_eq(m.reduce.region, id);
    ck_assert_uint_gt(g.stream, h.stream);
    registered(h.stream, 4096);
    fake_sum_of(&f, g.stream, 5, 16);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_retries(call), 1);
    cured_call_free(call);
    cured_region_free(region);
    close(fd);
}
END_TEST

START_TEST(a_refused_region_says_why) {
    cr_frame h, g;
    int fd = memory();
    cured_region *region = region_of(fd);
    cured_call *call = reduce(region, NULL), *late;
    expect(CR_CALL_REGISTER, &h);
    expect(CR_CALL_REDUCE, &g);
    fake_status(&f, h.stream, CR_INVALID_ARGUMENT, 0, "descriptor: a directory");
    fake_status(&f, g.stream, CR_INVALID_ARGUMENT, 0, "descriptor: a directory");
    ck_assert_int_eq(cured_wait(call, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_region_wait(region, &error), CURED_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "descriptor: a directory");
    cured_call_free(call);
    /* The next one asks again; its reduction may cross with the refusal, and then finds nothing. */
    late = reduce(region, NULL);
    expect(CR_CALL_REGISTER, &h);
    expect(CR_CALL_REDUCE, &g);
    fake_status(&f, h.stream, CR_PERMISSION_DENIED, 0, "descriptor: write-only");
    fake_status(&f, g.stream, CR_NOT_FOUND, 0, "region: 1 is not registered");
    ck_assert_int_eq(cured_wait(late, &error), CURED_PERMISSION_DENIED);
    cured_call_free(late);
    cured_region_free(region);
    nothing_more_comes(); /* there is nothing to unregister */
    close(fd);
}
END_TEST

START_TEST(no_room_now_is_tried_again) {
    cr_frame h, g;
    int fd = memory();
    cured_region *region = region_of(fd);
    cured_call *call = reduce(region, NULL);
    for (int i = 0; i < 3; i++) {
        expect(CR_CALL_REGISTER, &h);
        expect(CR_CALL_REDUCE, &g);
        if (i == 2) break;
        fake_status(&f, h.stream, CR_RESOURCE_EXHAUSTED, 1, "regions: 1 is registered");
        fake_status(&f, g.stream, CR_RESOURCE_EXHAUSTED, 1, "regions: 1 is registered");
    }
    registered(h.stream, 4096);
    fake_sum_of(&f, g.stream, 5, 16);
    ck_assert_int_eq(cured_wait(call, &error), CURED_OK);
    ck_assert_uint_eq(cured_call_retries(call), 2);
    cured_call_free(call);
    cured_region_free(region);
    close(fd);
}
END_TEST

/* Whatever order a program frees things in. */
START_TEST(freed_in_any_order) {
    cr_frame h;
    int fd = memory();
    cured_region *region = region_of(fd), *unsent = region_of(fd), *late = region_of(fd);
    cured_call *call = reduce(region, NULL), *never = reduce(unsent, NULL), *last = reduce(late, NULL);
    cured_region_free(unsent);
    cured_call_free(never);
    expect(CR_CALL_REGISTER, &h);
    cured_region_free(region); /* its reduction goes on */
    fake_settle(&f, conn);
    ck_assert(!cured_call_done(call));
    cured_close(conn);
    conn = NULL;
    ck_assert_int_eq(cured_call_status(call, &error), CURED_CANCELLED);
    ck_assert_int_eq(cured_call_status(last, &error), CURED_CANCELLED);
    ck_assert_int_eq(cured_region_wait(late, &error), CURED_FAILED_PRECONDITION);
    cured_region_free(late);
    cured_call_free(call);
    cured_call_free(last);
    close(fd);
}
END_TEST

START_TEST(names_and_device_memory) {
    cr_frame h;
    cured_region *named, *device, *passed, *none;
    static const unsigned char handle[64] = {1, 2, 3}, event[64] = {9};
    int fd = memory();
    ck_assert_int_eq(cured_region_shm(conn, "/frames", &named, &error), CURED_OK);
    cr_wire_call m = expect(CR_CALL_REGISTER, &h);
    ck_assert_int_eq(m.region.kind, CR_SHARED_NAME);
    ck_assert_str_eq(m.region.name, "/frames");
    ck_assert_uint_eq(h.descriptors, 0);
    static const char *const bad[] = {"", "/", "frames", "/a/b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_int_eq(cured_region_shm(conn, bad[i], &none, &error), CURED_INVALID_ARGUMENT);
    cured_cuda_memory memory_of = {
        .device = {7}, .handle = handle, .fd = -1, .offset = 256, .bytes = 1 << 20, .event = event};
    ck_assert_int_eq(cured_region_cuda(conn, &memory_of, &device, &error), CURED_OK);
    m = expect(CR_CALL_REGISTER, &h);
    ck_assert_int_eq(m.region.kind, CR_SHARED_CUDA_IPC);
    ck_assert(m.region.has_event && m.region.event[0] == 9 && m.region.handle[2] == 3 && m.region.device[0] == 7);
    ck_assert(m.region.offset == 256 && m.region.bytes == 1 << 20);
    memory_of.fd = fd;
    memory_of.handle = memory_of.event = NULL;
    ck_assert_int_eq(cured_region_cuda(conn, &memory_of, &passed, &error), CURED_OK);
    m = expect(CR_CALL_REGISTER, &h);
    ck_assert_int_eq(m.region.kind, CR_SHARED_CUDA_DESCRIPTOR);
    ck_assert(h.descriptors == 1 && !m.region.has_handle && !m.region.has_event);
    memory_of.fd = -1;
    ck_assert_int_eq(cured_region_cuda(conn, &memory_of, &none, &error), CURED_INVALID_ARGUMENT);
    memory_of.handle = handle;
    memory_of.bytes = 0;
    ck_assert_int_eq(cured_region_cuda(conn, &memory_of, &none, &error), CURED_INVALID_ARGUMENT);
    memory_of.bytes = 2;
    memory_of.offset = UINT64_MAX - 1;
    ck_assert_int_eq(cured_region_cuda(conn, &memory_of, &none, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_region_fd(conn, -1, &none, &error), CURED_INVALID_ARGUMENT);
    ck_assert_ptr_null(none);
    cured_region_free(named);
    cured_region_free(device);
    cured_region_free(passed);
    cured_region_free(NULL);
    close(fd);
}
END_TEST

START_TEST(arrays_are_sealed_and_there) {
    cured_array *array;
    struct stat st;
    ck_assert_msg(cured_array_alloc(CURED_F64, 100000, &array, &error) == CURED_OK, "%s", error.text);
    double *data = cured_array_data(array);
    ck_assert_uint_eq(cured_array_bytes(array), 800000);
    ck_assert(data[0] == 0 && data[99999] == 0);
    data[99999] = 4.5;
    int fd = cured_array_fd(array);
    double read_back = 0;
    ck_assert_int_eq(pread(fd, &read_back, 8, 799992), 8);
    ck_assert(read_back == 4.5);
    ck_assert(fstat(fd, &st) == 0 && st.st_size == 800000 && st.st_blocks * 512 >= st.st_size);
    ck_assert_int_ne(ftruncate(fd, 4096), 0);
    ck_assert_int_ne(ftruncate(fd, 1 << 20), 0);
    cured_array_free(array);
    cured_array_free(NULL);
    ck_assert_int_eq(cured_array_alloc(CURED_F64, 0, &array, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_array_alloc(CURED_BIGINT, 1, &array, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_array_alloc(CURED_F64, UINT64_MAX / 8 + 2, &array, &error), CURED_INVALID_ARGUMENT);
    ck_assert_int_eq(cured_array_alloc(CURED_U8, (uint64_t)1 << 62, &array, &error), CURED_RESOURCE_EXHAUSTED);
    ck_assert_ptr_null(array);
    struct rlimit before, most;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    most = (struct rlimit){4096, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &most), 0);
    cured_status status = cured_array_alloc(CURED_U8, 4097, &array, &error); /* no SIGXFSZ */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(status, CURED_RESOURCE_EXHAUSTED);
    ck_assert_ptr_null(array);
}
END_TEST

CR_CHECK_MAIN("client/regions") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, registered_once_reduced_often);
    tcase_add_test(tc, regions_together);
    tcase_add_test(tc, unregister_ends_it);
    tcase_add_test(tc, a_connection_made_anew_is_told_again);
    tcase_add_test(tc, a_refused_region_says_why);
    tcase_add_test(tc, no_room_now_is_tried_again);
    tcase_add_test(tc, freed_in_any_order);
    tcase_add_test(tc, names_and_device_memory);
    tcase_add_test(tc, arrays_are_sealed_and_there);
}
