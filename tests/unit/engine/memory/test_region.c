/* Regions: what each kind of descriptor is taken for, bounds, windows, reads, and files that shrink. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/memory/region.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

enum { SIZE = 300001 };

static uint8_t bytes[SIZE];
static cr_error error;

static void setup(void) {
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * 7 + (i >> 8));
}

static cr_region region_of(int fd) {
    cr_region region;
    fill_file(fd, bytes, SIZE);
    assert_ok(cr_region_inspect(&region, fd, &error), error);
    ck_assert_uint_eq(region.size, SIZE);
    return region;
}

START_TEST(rights_are_checked) {
    char path[] = "/tmp/unit-region-XXXXXX";
    int fd = mkstemp(path), named = open(path, O_PATH), writer = open(path, O_WRONLY), reader = open(path, O_RDONLY),
        neither = open(path, O_ACCMODE);
    assert_ok(cr_region_readable(fd, &error), error);
    assert_ok(cr_region_readable(reader, &error), error);
    assert_fails(cr_region_readable(named, &error), CR_INVALID_ARGUMENT, error, "O_PATH");
    assert_fails(cr_region_readable(writer, &error), CR_INVALID_ARGUMENT, error, "write-only");
    assert_fails(cr_region_readable(neither, &error), CR_INVALID_ARGUMENT, error, "for nothing");
    close(neither);
    close(reader);
    assert_fails(cr_region_readable(reader, &error), CR_INVALID_ARGUMENT, error, "not open");
    close(fd);
    close(named);
    close(writer);
    unlink(path);
}
END_TEST

static void assert_refused(int fd, const char *what) {
    cr_region region;
    assert_fails(cr_region_inspect(&region, fd, &error), CR_INVALID_ARGUMENT, error, what);
    close(fd);
}

START_TEST(what_is_no_file_is_named) {
    char dir[] = "/tmp/unit-fifo-XXXXXX", fifo[64];
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    assert_refused(ends[0], "FIFO");
    assert_refused(ends[1], "FIFO");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(fifo, sizeof fifo, "%s/fifo", dir);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    assert_refused(open(fifo, O_RDONLY | O_NONBLOCK), "FIFO");
    unlink(fifo);
    rmdir(dir);
    assert_refused(open("/tmp", O_RDONLY | O_DIRECTORY), "directory");
    assert_refused(open("/dev/null", O_RDONLY), "character device");
    assert_refused(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
    cr_region region;
    ck_assert_int_eq(cr_region_inspect(&region, -1, &error), CR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(the_way_follows_the_file) {
    int disk = disk_file(), memory = memory_file(), sparse = disk_file(), foreign = foreign_file();
    ck_assert_int_eq(region_of(memory).way, CR_REGION_READ);
    ck_assert_int_eq(region_of(disk).way, CR_REGION_MAP);
    ck_assert_int_eq(ftruncate(sparse, 10 << 20), 0);
    cr_region region;
    assert_ok(cr_region_inspect(&region, sparse, &error), error);
    ck_assert_int_eq(region.way, CR_REGION_READ);
    ck_assert_uint_eq(region.size, 10 << 20);
    cr_region_close(&region);
    ck_assert_int_eq(fcntl(sparse, F_GETFD), -1);
    cr_region_close(&region); /* twice does no harm */
    close(disk);
    close(memory);
    if (foreign < 0) return;
    assert_ok(cr_region_inspect(&region, foreign, &error), error);
    ck_assert_int_eq(region.way, CR_REGION_SLOW);
    ck_assert_int_eq(region.descriptor, foreign);
    cr_region_close(&region);
}
END_TEST

START_TEST(a_size_of_0_is_not_believed) {
    cr_region region;
    int fd = sizeless_file(), empty = disk_file();
    assert_fails(cr_region_inspect(&region, fd, &error), CR_INVALID_ARGUMENT, error, "a size of 0");
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 0);
    assert_ok(cr_region_inspect(&region, empty, &error), error);
    ck_assert_uint_eq(region.size, 0);
    close(fd);
    close(empty);
}
END_TEST

START_TEST(memory_without_reads_is_refused) {
    int fd = (int)syscall(SYS_memfd_secret, 0);
    if (fd < 0) {
        printf("skipped in part: memfd_secret: %s\n", strerror(errno));
        return;
    }
    ck_assert_int_eq(ftruncate(fd, SIZE), 0);
    assert_refused(fd, "memfd_secret");
}
END_TEST

START_TEST(ranges_lie_within) {
    assert_ok(cr_range_check(0, 0, 0, &error), error);
    assert_ok(cr_range_check(10, 0, 10, &error), error);
    assert_ok(cr_range_check(3, 7, 10, &error), error);
    assert_ok(cr_range_check(0, UINT64_MAX, UINT64_MAX, &error), error);
    assert_fails(cr_range_check(11, 0, 10, &error), CR_INVALID_ARGUMENT, error, "offset");
    assert_fails(cr_range_check(3, 8, 10, &error), CR_INVALID_ARGUMENT, error, "count");
    assert_fails(cr_range_check(5, UINT64_MAX - 2, 10, &error), CR_INVALID_ARGUMENT, error, "count");
    assert_fails(cr_range_check(UINT64_MAX, UINT64_MAX, 10, &error), CR_INVALID_ARGUMENT, error, "offset");
}
END_TEST

START_TEST(windows_show_the_file_at_any_offset) {
    int fd = disk_file();
    cr_region region = region_of(fd);
    static const uint64_t offsets[] = {0, 1, 128, 4095, 4096, 4097, 100003, SIZE - 1};
    uint64_t windows = metric_now(CR_M_windows);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        cr_window window;
        size_t n = SIZE - offsets[i] < 50000 ? (size_t)(SIZE - offsets[i]) : 50000;
        assert_ok(cr_region_map(&region, offsets[i], n, &window, &error), error);
        ck_assert_uint_eq(metric_now(CR_M_windows), windows + 1);
        cr_region_fetch(&region, offsets[i], window.data, n);
        ck_assert(memcmp(window.data, bytes + offsets[i], n) == 0);
        cr_region_unmap(&window);
        cr_region_unmap(&window);
        ck_assert_uint_eq(metric_now(CR_M_windows), windows);
    }
    close(fd);
}
END_TEST

START_TEST(reads_are_whole_and_leave_the_position) {
    int fd = _i ? disk_file() : memory_file();
    cr_region region = region_of(fd);
    uint8_t *into = malloc(SIZE);
    lseek(fd, 77, SEEK_SET);
    assert_ok(cr_region_read(&region, 0, into, SIZE, &error), error);
    ck_assert(memcmp(into, bytes, SIZE) == 0);
    assert_ok(cr_region_read(&region, 12345, into, 999, &error), error);
    ck_assert(memcmp(into, bytes + 12345, 999) == 0);
    ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 77);
    assert_fails(cr_region_read(&region, SIZE - 5, into, 6, &error), CR_DATA_LOSS, error, "ended at 300001 ");
    assert_fails(cr_region_read(&region, SIZE + 9, into, 6, &error), CR_DATA_LOSS, error, "ended at 300001 ");
    close(fd);
    assert_fails(cr_region_read(&region, 0, into, 1, &error), CR_DATA_LOSS, error, "cannot read");
    free(into);
}
END_TEST

START_TEST(a_cut_is_noticed) {
    int fd = disk_file();
    cr_region region = region_of(fd);
    assert_ok(cr_region_still(&region, SIZE, &error), error);
    ck_assert_int_eq(ftruncate(fd, 1000), 0);
    assert_ok(cr_region_still(&region, 1000, &error), error);
    assert_fails(cr_region_still(&region, 1001, &error), CR_DATA_LOSS, error, "cut");
    close(fd);
}
END_TEST

START_TEST(a_descriptor_that_cannot_be_mapped_is_said) {
    cr_region region = {.descriptor = open("/proc/self/status", O_RDONLY), .size = 4096, .way = CR_REGION_MAP};
    cr_window window;
    ck_assert_int_ne(cr_region_map(&region, 0, 4096, &window, &error), CR_OK);
    ck_assert(strstr(error.text, "map") != NULL);
    ck_assert_ptr_null(window.base); /* by this a region is read in memory, or not */
    ck_assert_ptr_null(window.data);
    cr_region_close(&region);
}
END_TEST

CR_CHECK_MAIN("engine/region") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, rights_are_checked);
    tcase_add_test(tc, what_is_no_file_is_named);
    tcase_add_test(tc, the_way_follows_the_file);
    tcase_add_test(tc, a_size_of_0_is_not_believed);
    tcase_add_test(tc, memory_without_reads_is_refused);
    tcase_add_test(tc, ranges_lie_within);
    tcase_add_test(tc, windows_show_the_file_at_any_offset);
    tcase_add_loop_test(tc, reads_are_whole_and_leave_the_position, 0, 2);
    tcase_add_test(tc, a_cut_is_noticed);
    tcase_add_test(tc, a_descriptor_that_cannot_be_mapped_is_said);
}
