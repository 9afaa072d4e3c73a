/* Guard: files cut under the read, 200 times over; faults elsewhere still kill. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/memory/guard.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { PAGES = 64, ROUNDS = 200 };

static size_t page;

static void setup(void) {
    cr_error error;
    page = (size_t)sysconf(_SC_PAGESIZE);
    assert_ok(cr_guard_install(&error), error);
}

static int full_of_ones(size_t bytes) {
    int fd = disk_file();
    uint8_t *ones = malloc(bytes);
    memset(ones, 1, bytes);
    fill_file(fd, ones, bytes);
    free(ones);
    return fd;
}

static const uint8_t *map(int fd, size_t bytes) {
    const uint8_t *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(at != MAP_FAILED);
    return at;
}

/* Bytes that are 1, from the front. */
static size_t count_ones(const uint8_t *at, size_t bytes) {
    const volatile uint8_t *p = at;
    size_t i = 0;
    while (i < bytes && p[i] == 1) i++;
    return i;
}

START_TEST(nothing_happens_to_a_whole_file) {
    int fd = full_of_ones(4 * page);
    const uint8_t *at = map(fd, 4 * page);
    uint64_t faults = metric_now(CR_M_faults_total);
    cr_guard_enter(at, 4 * page);
    ck_assert_uint_eq(count_ones(at, 4 * page), 4 * page);
    ck_assert(!cr_guard_leave());
    ck_assert_uint_eq(metric_now(CR_M_faults_total), faults);
    munmap((void *)(uintptr_t)at, 4 * page);
    close(fd);
}
END_TEST

START_TEST(what_was_cut_reads_as_zeros_and_is_reported) {
    int fd = full_of_ones(8 * page);
    const uint8_t *at = map(fd, 8 * page);
    uint64_t faults = metric_now(CR_M_faults_total);
    ck_assert_int_eq(ftruncate(fd, (off_t)(3 * page)), 0);
    /* The view begins and ends within pages, as a claim of a file with a header does. */
    cr_guard_enter(at + 128, 8 * page - 300);
    ck_assert_uint_eq(count_ones(at + 128, 8 * page - 300), 3 * page - 128);
    for (size_t i = 3 * page; i < 8 * page - 300; i++) ck_assert_uint_eq(at[i], 0);
    ck_assert(cr_guard_leave());
    ck_assert_uint_eq(metric_now(CR_M_faults_total), faults + 1);
    /* The next view starts clean. */
    cr_guard_enter(at, page);
    ck_assert_uint_eq(count_ones(at, page), page);
    ck_assert(!cr_guard_leave());
    munmap((void *)(uintptr_t)at, 8 * page);
    close(fd);
}
END_TEST

/* Each view knows its own faults: what is written beside what is read, and the other way round; both where they are one mapping. */
START_TEST(two_views_at_a_time) {
    for (int cut = 0; cut < 3; cut++) {
        _Atomic bool lost[2] = {false, false};
        int fds[2] = {full_of_ones(4 * page), full_of_ones(4 * page)};
        uint8_t *at[2];
        for (int i = 0; i < 2; i++) {
            at[i] = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
            ck_assert(at[i] != MAP_FAILED);
            if (cut != 1 - i) ck_assert_int_eq(ftruncate(fds[i], (off_t)page), 0);
        }
        cr_guard_enter_shared(at[0], 4 * page, &lost[0]);
        cr_guard_enter_writing(at[1] + 7, 3 * page, &lost[1]);
        memset(at[1] + 7, 2, 3 * page);
        ck_assert_uint_eq(count_ones(at[0], 4 * page), cut == 1 ? 4 * page : page);
        ck_assert_int_eq(cr_guard_leave_writing(), cut != 0);
        ck_assert_int_eq(cr_guard_leave(), cut != 1);
        ck_assert(lost[0] == (cut != 1) && lost[1] == (cut != 0));
        ck_assert(at[1][6] == 1 && at[1][7] == 2 && at[1][page - 1] == 2 && at[1][3 * page + 6] == 2);
        ck_assert_uint_eq((uint64_t)lseek(fds[1], 0, SEEK_END), cut == 0 ? 4 * page : page); /* no longer again */
        if (cut == 0) ck_assert_uint_eq(at[1][3 * page + 7], 1);
        for (int i = 0; i < 2; i++) munmap(at[i], 4 * page), close(fds[i]);
    }
}
END_TEST

static struct {
    const uint8_t *at;
    gate reading;
    size_t ones;
    bool faulted;
} reader = {.reading = GATE_INIT};

/* Reads the view over and over until something is missing. */
static void *read_on(void *argument) {
    (void)argument;
    cr_guard_enter(reader.at, PAGES * page);
    bool told = false;
    while ((reader.ones = count_ones(reader.at, PAGES * page)) == PAGES * page) {
        if (!told) gate_add(&reader.reading);
        told = true;
    }
    reader.faulted = cr_guard_leave();
    if (!told) gate_add(&reader.reading);
    return NULL;
}

START_TEST(two_hundred_truncations_under_the_read) {
    uint64_t state = 7;
    for (unsigned round = 0; round < ROUNDS; round++) {
        int fd = full_of_ones(PAGES * page);
        pthread_t thread;
        reader.at = map(fd, PAGES * page);
        pthread_create(&thread, NULL, read_on, NULL);
        gate_wait(&reader.reading, round + 1);
        size_t kept = random_next(&state) % PAGES;
        ck_assert_int_eq(ftruncate(fd, (off_t)(kept * page)), 0);
        pthread_join(thread, NULL);
        /* The kernel clears what is mapped as it truncates, so a pass may see a page go that it has not come to yet. */
        ck_assert_uint_ge(reader.ones, kept * page);
        ck_assert(reader.faulted);
        munmap((void *)(uintptr_t)reader.at, PAGES * page);
        close(fd);
    }
}
END_TEST

START_TEST(a_fault_outside_a_view_kills) {
    int fd = full_of_ones(page);
    const volatile uint8_t *at = map(fd, page);
    cr_guard_enter((const void *)(uintptr_t)at, page);
    cr_guard_leave();
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_uint_eq(at[0], 1); /* SIGBUS */
}
END_TEST

START_TEST(a_fault_before_or_behind_the_view_kills) {
    int fd = full_of_ones(3 * page);
    const volatile uint8_t *at = map(fd, 3 * page);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    cr_guard_enter((const uint8_t *)(uintptr_t)at + page, page);
    ck_assert_uint_eq(at[_i ? 2 * page : page - 1], 1); /* SIGBUS */
}
END_TEST

CR_CHECK_MAIN("engine/guard") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, nothing_happens_to_a_whole_file);
    tcase_add_test(tc, what_was_cut_reads_as_zeros_and_is_reported);
    tcase_add_test(tc, two_views_at_a_time);
    tcase_add_test(tc, two_hundred_truncations_under_the_read);
    tcase_add_test_raise_signal(tc, a_fault_outside_a_view_kills, SIGBUS);
    tcase_add_loop_test_raise_signal(tc, a_fault_before_or_behind_the_view_kills, SIGBUS, 0, 2);
}
