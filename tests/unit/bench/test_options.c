/* Options of cured-bench: what is set, and which words are refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options.h"
#include "tests/unit/check_main.h"

static struct {
    uint64_t bytes;
    int rounds;
    double seconds;
    const char *only;
    bool follow;
    unsigned words;
} got;

static bool count_word(void *to, const char *word) {
    ++*(unsigned *)to;
    return strcmp(word, "stranger") != 0;
}

static int read_options(int argc, char **argv) {
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &got.bytes, "BYTES", .what = "bytes", .least = 16, .most = 0x1p40, .step = 16},
        {"rounds", BENCH_NUMBER, &got.rounds, "N", .what = "rounds", .least = 5, .most = 64},
        {"seconds", BENCH_REAL, &got.seconds, "S", .what = "seconds"},
        {"only", BENCH_TEXT, &got.only, "TEXT", .what = "rows"},
        {"words", BENCH_WORDS, &got.words, "A,…", .what = "words", .each = count_word},
        {"follow", BENCH_SWITCH, &got.follow, NULL, .what = "a switch"},
    };
    memset(&got, 0, sizeof got);
    return bench_options(options, sizeof options / sizeof options[0], NULL, argc, argv);
}

#define READ(...) \
    read_options((int)(sizeof((char *[]){"row", __VA_ARGS__}) / sizeof(char *)), (char *[]){"row", __VA_ARGS__})

START_TEST(values) {
    ck_assert_int_eq(
        READ("--bytes", "1.5K", "--rounds=7", "--seconds", "0.25", "--only", "sum f32", "--words", "a,b", "--follow"),
        -1);
    ck_assert_uint_eq(got.bytes, 1536);
    ck_assert_int_eq(got.rounds, 7);
    ck_assert_double_eq(got.seconds, 0.25);
    ck_assert_str_eq(got.only, "sum f32");
    ck_assert_uint_eq(got.words, 2);
    ck_assert(got.follow);
    ck_assert_int_eq(READ("--bytes", "100"), -1);
    ck_assert_uint_eq(got.bytes, 96); /* a multiple of the step */
    ck_assert_int_eq(read_options(1, (char *[]){"row"}), -1);
}
END_TEST

START_TEST(refused) {
    ck_assert_int_eq(READ("--help"), 0);
    ck_assert_int_eq(READ("--unknown", "1"), 64);
    ck_assert_int_eq(READ("--round", "7"), 64); /* no abbreviations */
    ck_assert_int_eq(READ("rounds", "7"), 64);
    ck_assert_int_eq(READ("--rounds"), 64);
    ck_assert_int_eq(READ("--rounds", "4"), 64);
    ck_assert_int_eq(READ("--rounds", "65"), 64);
    ck_assert_int_eq(READ("--rounds", "7.5"), 64);
    ck_assert_int_eq(READ("--rounds", "7x"), 64);
    ck_assert_int_eq(READ("--bytes", "1KB"), 64);
    ck_assert_int_eq(READ("--bytes", "-1"), 64);
    ck_assert_int_eq(READ("--bytes", "nan"), 64);
    ck_assert_int_eq(READ("--follow=yes"), 64);
    ck_assert_int_eq(READ("--words", "a,stranger"), 64);
    ck_assert_int_eq(READ("--words", "a,,b"), 64);
    ck_assert_int_eq(READ("--words", ""), 64);
}
END_TEST

START_TEST(sizes) {
    ck_assert_uint_eq(bench_bytes("64"), 64);
    ck_assert_uint_eq(bench_bytes("4K"), 4096);
    ck_assert_uint_eq(bench_bytes("16M"), 16u << 20);
    ck_assert_uint_eq(bench_bytes("1G"), 1u << 30);
    ck_assert_uint_eq(bench_bytes("0"), 0);
    ck_assert_uint_eq(bench_bytes("4T"), 0);
    ck_assert_uint_eq(bench_bytes(""), 0);
}
END_TEST

CR_CHECK_MAIN("options") {
    tcase_add_test(tc, values);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, sizes);
}
