/* Small inputs read where the call is: what is read so and what is left to a feed, the same sentences as a feed's, and where the
 * descriptor is closed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/small.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { ROOM = 16 * 1024 };

static uint8_t into[ROOM];
static uint64_t bytes;
static cr_error error;

/* A memfd whose byte i is i % 251. */
static int new_memfd(size_t size) {
    int fd = memfd_create("small", MFD_CLOEXEC);
    uint8_t *data = malloc(size + 1);
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)(i % 251);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, data, size), size);
    free(data);
    return fd;
}

static cr_feed_options whole_of(int fd) {
    return (cr_feed_options){
        .max_bytes = 1 << 30, .max_option = "most", .input = {1, {{.descriptor = fd}}}, .to_end = true};
}

static cr_small read_u32(const cr_feed_options *o) {
    memset(into, 0xee, sizeof into);
    return cr_small_read(o, CR_U32, into, sizeof into, &bytes, &error);
}

START_TEST(a_small_memfd_is_read) {
    static const size_t sizes[] = {0, 4, 4096, ROOM};
    int fd = new_memfd(sizes[_i]);
    cr_feed_options o = whole_of(fd);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_READ);
    ck_assert_uint_eq(bytes, sizes[_i]);
    for (size_t i = 0; i < sizes[_i]; i++) ck_assert_uint_eq(into[i], i % 251);
    close(fd);
}
END_TEST

START_TEST(a_range_of_a_large_one_is_read) {
    int fd = new_memfd(1000000);
    cr_feed_options o = whole_of(fd);
    o.to_end = false;
    o.count = 100;
    o.input.sources[0].offset = 500004;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_READ);
    ck_assert_uint_eq(bytes, 400);
    for (size_t i = 0; i < 400; i++) ck_assert_uint_eq(into[i], (500004 + i) % 251);
    ck_assert_uint_eq(into[400], 0xee);
    close(fd);
}
END_TEST

START_TEST(holes_are_zeros) {
    int fd = memfd_create("small", MFD_CLOEXEC);
    cr_feed_options o = whole_of(fd);
    ck_assert_int_eq(ftruncate(fd, 8192), 0);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_READ);
    for (size_t i = 0; i < 8192; i++) ck_assert_uint_eq(into[i], 0);
    close(fd);
}
END_TEST

START_TEST(what_is_larger_is_a_feed_s) {
    int fd = new_memfd(ROOM + 4);
    cr_feed_options o = whole_of(fd);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    o.to_end = false;
    o.count = ROOM / 4 + 1;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    o.count = UINT64_MAX;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    close(fd);
}
END_TEST

/* Reading a file may wait for its disk, or for whoever serves it. */
START_TEST(what_is_no_memory_is_a_feed_s) {
    const int fds[] = {open("/proc/self/exe", O_RDONLY | O_CLOEXEC), open("/dev/zero", O_RDONLY | O_CLOEXEC)};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        cr_feed_options o = whole_of(fds[i]);
        ck_assert_int_ge(fds[i], 0);
        o.to_end = false;
        o.count = 1;
        ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
        close(fds[i]);
    }
}
END_TEST

START_TEST(what_is_wrong_is_told_as_by_a_feed) {
    int fd = new_memfd(10);
    cr_feed_options o = whole_of(fd);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_FAILED);
    ck_assert_int_eq(error.code, CR_INVALID_ARGUMENT);
    ck_assert_pstr_eq(error.text, "descriptor: 10 bytes after the offset are not a multiple of 4, the size of u32");
    o.to_end = false;
    o.count = 3;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_FAILED);
    ck_assert_ptr_nonnull(strstr(error.text, "10 bytes"));
    o.count = 2;
    o.max_bytes = 7;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_FAILED);
    ck_assert_pstr_eq(error.text, "input: 8 bytes exceed most, 7");
    close(fd);
}
END_TEST

/* Of a region: its size is that of its registration, and one that was cut or lost is a feed's, which says so. */
START_TEST(a_region_is_read_while_it_is_whole) {
    int fd = new_memfd(8192);
    cr_kept kept = {.region = {.descriptor = fd, .size = 4096, .way = CR_REGION_READ, .shared = true}};
    cr_feed_options o = whole_of(-1);
    o.input.sources[0].kept = &kept;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_READ);
    ck_assert_uint_eq(bytes, 4096);
    ck_assert_uint_eq(into[4095], 4095 % 251);
    atomic_store(&kept.lost, true);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    atomic_store(&kept.lost, false);
    ck_assert_int_eq(ftruncate(fd, 4095), 0);
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    kept.region.shared = false;
    kept.region.size = 0;
    ck_assert_int_eq(read_u32(&o), CR_SMALL_NOT);
    close(fd);
}
END_TEST

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static gate entered = GATE_INIT, may_leave = GATE_INIT;

static void block_run(cr_file_task *task) {
    (void)task;
    gate_add(&entered);
    gate_wait(&may_leave, 1);
}

/* The last descriptor of much memory takes long to close, and that of a file system which is mounted nowhere any more. */
START_TEST(what_may_take_long_is_let_go_on_a_files_thread) {
    cr_files *files;
    cr_file_task task = {.run = block_run};
    assert_ok(cr_files_new(1, 1, &files, &error), error);
    cr_waiting_init(&task.waiting);
    cr_files_submit(files, &task, CR_FILES_LOCAL);
    gate_wait(&entered, 1);
    int small = new_memfd(4096), large = new_memfd(4 * 1024 * 1024),
        other = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    cr_feed_options o = whole_of(small);
    o.files = files;
    cr_small_close(&o);
    ck_assert(!is_open(small));
    o.input.sources[0].descriptor = large;
    cr_small_close(&o);
    o.input.sources[0].descriptor = other;
    cr_small_close(&o);
    ck_assert(is_open(large)); /* the one files thread is not free */
    ck_assert(is_open(other));
    gate_add(&may_leave);
    ck_assert(cr_files_stop(files, 60000));
    ck_assert(!is_open(large));
    ck_assert(!is_open(other));
}
END_TEST

CR_CHECK_MAIN("engine/small") {
    tcase_add_loop_test(tc, a_small_memfd_is_read, 0, 4);
    tcase_add_test(tc, a_range_of_a_large_one_is_read);
    tcase_add_test(tc, holes_are_zeros);
    tcase_add_test(tc, what_is_larger_is_a_feed_s);
    tcase_add_test(tc, what_is_no_memory_is_a_feed_s);
    tcase_add_test(tc, what_is_wrong_is_told_as_by_a_feed);
    tcase_add_test(tc, a_region_is_read_while_it_is_whole);
    tcase_add_test(tc, what_may_take_long_is_let_go_on_a_files_thread);
}
