/* ahead: what is read at once, and what the disk is asked for. This program's preadv2 and posix_fadvise stand before libc's, and the
 * page cache is what `cached` says. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/ahead.h"
#include "tests/unit/check_main.h"

enum { MIB = 1024 * 1024 };

static uint64_t cached, asked_from, asked_till, size;
static int refusal, file;
static unsigned asks;
static char into[MIB];

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags) {
    const uint64_t at = (uint64_t)offset, end = cached < size ? cached : size;
    ck_assert_int_eq(fd, file);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(flags, RWF_NOWAIT);
    errno = refusal != 0 ? refusal : EAGAIN;
    if (refusal != 0) return -1;
    if (at >= size) return 0;
    if (at >= end) return -1;
    const size_t n = end - at < parts->iov_len ? (size_t)(end - at) : parts->iov_len;
    memset(parts->iov_base, 'x', n);
    return (ssize_t)n;
}

/* Steps follow each other. */
int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
    ck_assert_int_eq(fd, file);
    ck_assert_int_eq(advice, POSIX_FADV_WILLNEED);
    ck_assert_int_ge(bytes, 1);
    ck_assert_int_le(bytes, CR_AHEAD_STEP);
    if (asks++ == 0) asked_from = (uint64_t)offset;
    if (asks > 1) ck_assert_uint_eq((uint64_t)offset, asked_till);
    asked_till = (uint64_t)(offset + bytes);
    return 0;
}

static void setup(void) {
    file = 1 << 20; /* not open */
    asks = 0;
    asked_from = asked_till = 0;
    refusal = 0;
    cached = 0;
    size = UINT64_MAX;
}

static size_t take(cr_ahead *ahead, uint64_t offset, uint64_t end) {
    return cr_ahead_read(ahead, file, into, sizeof into, offset, end);
}

START_TEST(what_is_there_costs_no_asking) {
    cr_ahead ahead = {0};
    cached = UINT64_MAX;
    for (uint64_t i = 0; i < 100; i++) ck_assert_uint_eq(take(&ahead, i * MIB, 100 * MIB), MIB);
    ck_assert_uint_eq(asks, 0);
}
END_TEST

/* From the first byte that lacks on; then by what was read, and no byte twice. */
START_TEST(the_disk_is_kept_ahead) {
    cr_ahead ahead = {0};
    cached = 3 * MIB + 100;
    ck_assert_uint_eq(take(&ahead, 3 * MIB, 100 * MIB), 100);
    ck_assert_uint_eq(asked_from, 3 * MIB + 100);
    ck_assert_uint_ge(asked_till, 4 * MIB + CR_AHEAD_BYTES);
    ck_assert_uint_lt(asked_till, 4 * MIB + CR_AHEAD_BYTES + CR_AHEAD_STEP);
    cached = 5 * MIB; /* some of it came */
    ck_assert_uint_eq(take(&ahead, 4 * MIB, 100 * MIB), MIB);
    ck_assert_uint_ge(asked_till, 5 * MIB + CR_AHEAD_BYTES);
    ck_assert_uint_eq(asks, (asked_till - asked_from) / CR_AHEAD_STEP);
}
END_TEST

START_TEST(nothing_beyond_the_end_is_asked_for) {
    cr_ahead ahead = {0};
    ck_assert_uint_eq(take(&ahead, 8 * MIB, 9 * MIB), 0);
    ck_assert_uint_eq(asked_from, 8 * MIB);
    ck_assert_uint_eq(asked_till, 9 * MIB);
    for (uint64_t more = 1; more <= CR_AHEAD_STEP; more += CR_AHEAD_STEP - 1) {
        ahead = (cr_ahead){0};
        asks = 0;
        ck_assert_uint_eq(take(&ahead, 8 * MIB, 9 * MIB + more), 0);
        ck_assert_uint_eq(asked_till, 9 * MIB + more);
        ck_assert_uint_eq(cr_ahead_read(&ahead, file, into, more, 9 * MIB, 9 * MIB + more), 0);
        ck_assert_uint_eq(asked_till, 9 * MIB + more); /* nothing twice */
    }
    ahead = (cr_ahead){0};
    asks = 0;
    size = 9 * MIB; /* it was cut */
    ck_assert_uint_eq(take(&ahead, 20 * MIB, 100 * MIB), 0);
    ck_assert_uint_eq(asks, 0);
}
END_TEST

/* From what the cache has again on, as after a hole in it, until bytes lack once more. */
START_TEST(a_reader_that_caught_up_asks_no_more) {
    cr_ahead ahead = {0};
    take(&ahead, 0, 100 * MIB);
    asks = 0;
    cached = UINT64_MAX;
    take(&ahead, 50 * MIB, 100 * MIB);
    ck_assert_uint_eq(asks, 0);
}
END_TEST

/* As quantiles do, which read a file several times: what was asked for at the first reading may be gone. */
START_TEST(a_reader_that_begins_anew_asks_anew) {
    cr_ahead ahead = {0};
    for (uint64_t i = 0; i < 100; i++) take(&ahead, i * MIB, 100 * MIB);
    ck_assert_uint_eq(asked_till, 100 * MIB);
    asks = 0;
    ck_assert_uint_eq(take(&ahead, 0, 100 * MIB), 0);
    ck_assert_uint_eq(asked_from, 0);
    ck_assert_uint_eq(asked_till, MIB + CR_AHEAD_BYTES);
    ahead.asked = 100 * MIB;
    asks = 0;
    cached = UINT64_MAX; /* all of it is there still */
    for (uint64_t i = 0; i < 100; i++) ck_assert_uint_eq(take(&ahead, i * MIB, 100 * MIB), MIB);
    ck_assert_uint_eq(asks, 0);
}
END_TEST

START_TEST(file_systems_that_cannot_say_are_asked_once) {
    cr_ahead ahead = {0};
    refusal = EOPNOTSUPP;
    ck_assert_uint_eq(take(&ahead, 0, 100 * MIB), 0);
    refusal = 0;
    ck_assert_uint_eq(take(&ahead, MIB, 100 * MIB), 0);
    ck_assert(ahead.unknown);
    ck_assert_uint_eq(asks, 0);
}
END_TEST

/* Whose reads do not come from the page cache. */
START_TEST(direct_descriptors_are_left_alone) {
    cr_ahead ahead = {0};
    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(fcntl(file, F_SETFL, 0), 0);
    take(&ahead, 0, 100 * MIB);
    ck_assert_uint_gt(asks, 0);
    close(file);
    char path[] = "/var/tmp/unit-ahead-XXXXXX";
    const int made = mkstemp(path);
    ck_assert_int_ge(made, 0);
    file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    const int why = errno;
    unlink(path);
    close(made);
    if (file < 0) { /* a file system without */
        ck_assert_int_eq(why, EINVAL);
        return;
    }
    ahead = (cr_ahead){0};
    asks = 0;
    take(&ahead, 0, 100 * MIB);
    ck_assert(ahead.unknown);
    ck_assert_uint_eq(asks, 0);
    close(file);
}
END_TEST

CR_CHECK_MAIN("base/ahead") {
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, what_is_there_costs_no_asking);
    tcase_add_test(tc, the_disk_is_kept_ahead);
    tcase_add_test(tc, nothing_beyond_the_end_is_asked_for);
    tcase_add_test(tc, a_reader_that_caught_up_asks_no_more);
    tcase_add_test(tc, a_reader_that_begins_anew_asks_anew);
    tcase_add_test(tc, direct_descriptors_are_left_alone);
    tcase_add_test(tc, file_systems_that_cannot_say_are_asked_once);
}
