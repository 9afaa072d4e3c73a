/* format: files that are no arrays are told by their first bytes; raw elements are not taken for them. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/format.h"
#include "tests/unit/check_main.h"

enum { BYTES = 600 };

static const char *find(const void *bytes, size_t len, const char *name, bool by_name) {
    uint8_t *exact = malloc(len != 0 ? len : 1); /* so that a read beyond is seen */
    memcpy(exact, bytes, len);
    const format *f = format_find(exact, len, name, by_name);
    free(exact);
    return f != NULL ? f->what : "";
}

static const struct sample {
    const char *bytes;
    size_t len;
    const char *what, *name;
} samples[] = {
    {"PK\3\4\24\0\0\0\0\0", 10, "ZIP", "a.NPZ"},
    {"PK\5\6\0\0\0\0\0\0", 10, "ZIP", "a.zip"},
    {"\x1f\x8b\x08\0\0\0\0\0", 8, "gzip", "a.bin.gz"},
    {"\x28\xb5\x2f\xfd\4\0\0\0", 8, "Zstandard", "a.zst"},
    {"\xfd\x37\x7a\x58\x5a\0\0\4", 8, "xz", "a.xz"},
    {"BZh9\x31\x41\x59\x26\x53\x59\0\0", 12, "bzip2", "a.bz2"},
    {"\x04\x22\x4d\x18\0\0\0\0", 8, "LZ4", "a.lz4"},
    {"PAR1\x15\4\x15\x10", 8, "Parquet", "a.parquet"},
    {"\x89HDF\r\n\x1a\n\0\0\0\0", 12, "HDF5", "a.h5"},
    {"ARROW1\0\0", 8, "Arrow", "a.feather"},
    {"CDF\1\0\0\0\0", 8, "NetCDF", "a.nc"},
    {"SIMPLE  =                    T", 30, "FITS", "a.fits"},
    {"MATLAB 5.0 MAT-file, Platform", 29, "MATLAB", "a.mat"},
    {"II*\0\10\0\0\0", 8, "TIFF", "a.tiff"},
    {"RIFF\24\0\0\0WAVE", 12, "RIFF", "a.wav"},
    {"SQLite format 3\0\20\0", 18, "SQLite", "a.db"},
    {"CP\1\14\1\0\0\0\0\0\0\0", 12, "partial", "a.crp"},
    {"1.5\n2.5\n", 8, "text", "a.txt"},
    {"x,y\n1,2\nthree,four\nfive,six\n", 28, "text", "a.CSV"},
    {"{\"values\": [1, 2, 3, 4, 5, 6]}", 30, "text", "a.json"},
    {"The quick brown fox\r\njumps", 26, "text", "a.log"},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static bool numbers(const char *bytes, size_t len, bool whole) {
    uint8_t *exact = malloc(len != 0 ? len : 1);
    memcpy(exact, bytes, len);
    const bool found = format_numbers(exact, len, whole);
    free(exact);
    return found;
}

START_TEST(numbers_written_out) {
    static const char *const texts[] = {"1\n2\n", "-1.5e+30,\t2E-7;\r\n", "8\n", "\n\n0", " 1 2 3\n 4 5 6\n"},
                             *const others[] = {"", "12345678", "\n\n\n", "1\n2\na", "0x1\n", "\n-+.eE", "1\n\0016"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(numbers(texts[i], strlen(texts[i]), true), "%s", texts[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(!numbers(others[i], strlen(others[i]), true), "%s", others[i]);
    ck_assert(numbers("12345678", 8, false)); /* a line may end behind it */
    ck_assert(!numbers("1\n2\0", 4, false));
    char all[NUMBERS_BYTES + 1];
    memset(all, '7', sizeof all);
    all[NUMBERS_BYTES - 1] = '\n';
    all[NUMBERS_BYTES] = '\1'; /* not looked at */
    ck_assert(numbers(all, sizeof all, true));
    all[NUMBERS_BYTES - 1] = '7';
    all[NUMBERS_BYTES] = '\n';
    ck_assert(!numbers(all, sizeof all, true));
}
END_TEST

START_TEST(formats_are_known) {
    const struct sample *s = &samples[_i];
    ck_assert_ptr_nonnull(strstr(find(s->bytes, s->len, NULL, false), s->what));
    ck_assert_ptr_nonnull(strstr(find(s->bytes, s->len, "a.bin", false), s->what));
    /* somebody says that these are elements: then the name has to promise the format */
    ck_assert_ptr_nonnull(strstr(find(s->bytes, s->len, s->name, true), s->what));
    ck_assert_str_eq(find(s->bytes, s->len, "a.bin", true), "");
    ck_assert_str_eq(find(s->bytes, s->len, NULL, true), "");
    for (size_t len = 0; len < 3; len++) ck_assert_str_eq(find(s->bytes, len, NULL, false), "");
}
END_TEST

START_TEST(names_alone_say_nothing) {
    static const float values[] = {0.5f, 1, 2};
    static const char *const names[] = {"a.npz", "a.txt", "a.gz", "a.parquet"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_str_eq(find(values, sizeof values, names[i], false), "");
    ck_assert_str_eq(find("", 0, "a.txt", false), "");
    ck_assert_str_eq(find("3\n", 2, "a.txt", false), "text"); /* but they help where there is little to see */
    ck_assert_str_eq(find("3\n", 2, "a.bin", false), "");
}
END_TEST

static uint64_t state = 5;

static double uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) * 0x1p-53;
}

/* Arrays of all kinds of floats, also very short ones: hardly any looks like something else. */
START_TEST(floats_are_floats) {
    int refused[8] = {0};
    enum { ROUNDS = 100000 };
    for (int i = 0; i < ROUNDS; i++) {
        float values[8];
        double scale = exp2(floor(uniform() * 60 - 30));
        for (int k = 0; k < 8; k++) values[k] = (float)(scale * (1 + uniform()));
        for (size_t n = 1; n <= 8; n++) refused[n - 1] += *find(values, n * sizeof values[0], "x.bin", false) != '\0';
    }
    for (int n = 0; n < 8; n++) ck_assert_int_le(refused[n], 1);
    /* whole numbers, constants, and memory filled with one letter */
    for (int v = -5000; v <= 5000; v++) {
        float constant[8];
        for (int k = 0; k < 8; k++) constant[k] = (float)v;
        ck_assert_str_eq(find(constant, sizeof constant, NULL, false), "");
    }
    uint8_t filled[BYTES];
    for (int letter = 0; letter < 256; letter++) {
        if (letter == ' ' || (letter >= '\t' && letter <= '\r')) continue;
        memset(filled, letter, sizeof filled);
        ck_assert_str_eq(find(filled, sizeof filled, NULL, false), "");
    }
}
END_TEST

/* Text that turns into something else within what is looked at is none. */
START_TEST(text_to_the_last_byte) {
    uint8_t bytes[BYTES];
    memset(bytes, ' ', sizeof bytes);
    ck_assert_str_eq(find(bytes, sizeof bytes, NULL, false), "text");
    bytes[FORMAT_BYTES - 1] = 0;
    ck_assert_str_eq(find(bytes, sizeof bytes, NULL, false), "");
    bytes[FORMAT_BYTES - 1] = ' ';
    bytes[FORMAT_BYTES] = 0;
    ck_assert_str_eq(find(bytes, sizeof bytes, NULL, false), "text");
}
END_TEST

CR_CHECK_MAIN("format") {
    tcase_add_loop_test(tc, formats_are_known, 0, SAMPLES);
    tcase_add_test(tc, names_alone_say_nothing);
    tcase_add_test(tc, floats_are_floats);
    tcase_add_test(tc, text_to_the_last_byte);
    tcase_add_test(tc, numbers_written_out);
}
