/* progress: the line that says how far a call is, for any numbers that a daemon may send. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cli.h"
#include "tests/unit/check_main.h"

static const char *text_of(uint64_t done, uint64_t total, double seconds) {
    static char text[160];
    cli_progress_text("a.bin", done, total, seconds, text, sizeof text);
    return text;
}

START_TEST(what_it_says) {
    ck_assert_str_eq(text_of(0, 1000, 1), "a.bin [....................]   0 % of 1.0 kB, 0 B/s");
    ck_assert_str_eq(text_of(500, 1000, 1), "a.bin [##########..........]  50 % of 1.0 kB, 500 B/s, 0:01 left");
    ck_assert_str_eq(text_of(3000000000, 12000000000, 2),
                     "a.bin [#####...............]  25 % of 12 GB, 1.5 GB/s, 0:06 left");
    ck_assert_str_eq(text_of(1000000, UINT64_C(7201000000), 1),
                     "a.bin [....................]   0 % of 7.2 GB, 1.0 MB/s, "
                     "2:00:00 left");
    ck_assert_str_eq(text_of(1234567, 0, 0.5), "a.bin 1.2 MB, 2.5 MB/s");
    ck_assert_str_eq(text_of(999, 0, 1), "a.bin 999 B, 999 B/s");
}
END_TEST

START_TEST(hostile_numbers) {
    static const uint64_t numbers[] = {0, 1, 999, 1000, UINT64_C(1) << 53, UINT64_MAX - 1, UINT64_MAX};
    enum { N = sizeof numbers / sizeof numbers[0] };
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (double seconds = 0; seconds < 1e10; seconds = seconds * 1000 + 1e-9)
                ck_assert_uint_lt(strlen(text_of(numbers[i], numbers[k], seconds)), 120);
    ck_assert_ptr_nonnull(strstr(text_of(2000, 1000, 1), "100 % of 1.0 kB"));
    /* it keeps to its buffer */
    char small[20];
    memset(small, 'x', sizeof small);
    cli_progress_text("a name that is longer than what there is room for", 5, 10, 1, small, 10);
    ck_assert_uint_eq(strlen(small), 9);
    ck_assert_int_eq(small[10], 'x');
}
END_TEST

CR_CHECK_MAIN("progress") {
    tcase_add_test(tc, what_it_says);
    tcase_add_test(tc, hostile_numbers);
}
