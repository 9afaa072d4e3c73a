/* Log: the form of a line, levels, quoting, and that no text makes two lines of one. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/check_main.h"

/* Runs print with standard error going to a pipe; out gets what came through. */
static void capture(void (*print)(void), char *out, size_t cap) {
    int ends[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    print();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t got = read(ends[0], out, cap - 1);
    close(ends[0]);
    ck_assert_int_ge(got, 0);
    out[got] = '\0';
}

static void one_line(void) {
    errno = EPIPE;
    cr_info("hello path=%s n=%d", "/x", 7);
    ck_assert_int_eq(errno, EPIPE);
}

START_TEST(line_has_time_level_text) {
    char out[256];
    regex_t form;
    capture(one_line, out, sizeof out);
    ck_assert_int_eq(regcomp(&form,
                             "^20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
                             "INFO hello path=/x n=7\n$",
                             REG_EXTENDED | REG_NOSUB),
                     0);
    ck_assert_msg(regexec(&form, out, 0, NULL, 0) == 0, "%s", out);
    regfree(&form);
}
END_TEST

static void all_levels(void) {
    cr_debug("a");
    cr_info("b");
    cr_warn("c");
    cr_error_log("d");
}

START_TEST(levels_below_the_set_one_are_dropped) {
    static const char *const texts[] = {"DEBUG a\n", "INFO b\n", "WARN c\n", "ERROR d\n"};
    for (int least = CR_LOG_DEBUG; least <= CR_LOG_ERROR; least++) {
        char out[512];
        cr_log_set_level((cr_log_level)least);
        capture(all_levels, out, sizeof out);
        for (int i = 0; i < 4; i++) ck_assert_int_eq(strstr(out, texts[i]) != NULL, i >= least);
    }
}
END_TEST

static void forged(void) { cr_info("name=%s", "x\n2026-01-01T00:00:00.000Z ERROR forged\x1b[31m"); }
static void endless(void) {
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cr_info("%s", text);
}

START_TEST(a_message_stays_one_line) {
    char out[8192];
    capture(forged, out, sizeof out);
    ck_assert_ptr_eq(strchr(out, '\n'), out + strlen(out) - 1);
    ck_assert_ptr_null(strchr(out, '\x1b'));
    capture(endless, out, sizeof out);
    ck_assert_ptr_eq(strchr(out, '\n'), out + strlen(out) - 1);
    ck_assert_uint_eq(strlen(out), 2048);
}
END_TEST

START_TEST(quoting) {
    char out[16];
    ck_assert_str_eq(cr_log_quote(out, sizeof out, "plain ~"), "plain ~");
    ck_assert_str_eq(cr_log_quote(out, sizeof out, "a\nb\x7f\xc3"), "a\\x0ab\\x7f\\xc3");
    ck_assert_str_eq(cr_log_quote(out, sizeof out, "0123456789abcdefgh"), "0123456789abcde");
    /* An escape is written whole or not at all. */
    ck_assert_str_eq(cr_log_quote(out, sizeof out, "0123456789ab\n"), "0123456789ab");
    ck_assert_str_eq(cr_log_quote(out, sizeof out, "0123456789a\n"), "0123456789a\\x0a");
    ck_assert_str_eq(cr_log_quote(out, 1, "x"), "");
    ck_assert_str_eq(cr_log_quote(out, 0, "x"), "");
}
END_TEST

START_TEST(a_repeated_message_is_written_once_a_second) {
    cr_log_limit limit = {0};
    uint64_t left_out = 7, written = 0;
    ck_assert(cr_log_due(&limit, 5000, &left_out));
    ck_assert_uint_eq(left_out, 0);
    for (uint64_t now = 5000; now < 15000; now++)
        if (cr_log_due(&limit, now, &left_out)) {
            written++;
            ck_assert_uint_eq(left_out, 1000 - (written > 1));
        }
    ck_assert_uint_eq(written, 9);
}
END_TEST

/* Writes without waiting until nothing fits; standard error then waits as it did. Bytes that went in. */
static size_t fill(int fd) {
    char bytes[4096] = {0};
    size_t filled = 0;
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    for (size_t step = sizeof bytes; step; step /= 2)
        for (ssize_t n; (n = write(fd, bytes, step)) > 0;) filled += (size_t)n;
    fcntl(fd, F_SETFL, flags);
    return filled;
}

START_TEST(a_log_that_nobody_reads_is_not_waited_for) {
    int ends[2], saved = dup(STDERR_FILENO);
    char out[256];
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    size_t filled = fill(STDERR_FILENO);
    cr_warn("lost");
    for (ssize_t n; filled && (n = read(ends[0], out, filled < sizeof out ? filled : sizeof out)) > 0;)
        filled -= (size_t)n;
    cr_warn("read again");
    ssize_t got = read(ends[0], out, sizeof out - 1);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    ck_assert_int_gt(got, 0);
    out[got] = '\0';
    ck_assert_ptr_null(strstr(out, "lost"));
    ck_assert_ptr_nonnull(strstr(out, "WARN read again\n"));
}
END_TEST

static void many(void) {
    static cr_log_limit limit;
    for (int i = 0; i < 10000; i++) cr_warn_seldom(&limit, "again %d", i);
}

START_TEST(a_repeated_message_does_not_fill_the_log) {
    char out[4096];
    size_t lines = 0;
    capture(many, out, sizeof out);
    for (const char *at = out; (at = strstr(at, "WARN again ")); at++) lines++;
    ck_assert_uint_ge(lines, 1);
    ck_assert_uint_le(lines, 10); /* a second each, should this take so long */
}
END_TEST

static const cr_log_field fields[] = {{"n", NULL, 42},
                                      {"plain", "sum,max", 0},
                                      {"spaced", "uid 1000", 0},
                                      {"hostile", "a\"b\\c\nd\xff", 0},
                                      {"none", "", 0}};

static void with_fields(void) { cr_log_fields(CR_LOG_INFO, "call", fields, sizeof fields / sizeof fields[0]); }

START_TEST(fields_are_escaped) {
    char out[512];
    capture(with_fields, out, sizeof out);
    ck_assert_msg(strstr(out,
                         " INFO call n=42 plain=sum,max spaced=\"uid 1000\" "
                         "hostile=\"a\\\"b\\\\c\\x0ad\\xff\" none=\"\"\n") != NULL,
                  "%s", out);
}
END_TEST

START_TEST(json_lines_are_objects) {
    char out[512];
    cr_log_set_json(true);
    capture(with_fields, out, sizeof out);
    ck_assert_int_eq(strncmp(out, "{\"time\":\"20", 11), 0);
    ck_assert_msg(
        strstr(out,
               "Z\",\"level\":\"info\",\"message\":\"call\",\"n\":42,\"plain\":\"sum,max\",\"spaced\":\"uid 1000\","
               "\"hostile\":\"a\\\"b\\\\c\\u000ad\\u00ff\",\"none\":\"\"}\n") != NULL,
        "%s", out);
    capture(one_line, out, sizeof out);
    ck_assert_msg(strstr(out, "\"message\":\"hello path=/x n=7\"}\n") != NULL, "%s", out);
    cr_log_set_json(false);
}
END_TEST

static char long_text[5000];
static void long_fields(void) {
    const cr_log_field many[] = {{"a", long_text, 0}, {"b", long_text, 0}, {"c", NULL, 7}};
    cr_log_fields(CR_LOG_INFO, long_text, many, 3);
}

/* Cut, but whole in form: one line, and as JSON one object whose quotes are closed. */
START_TEST(long_lines_are_cut) {
    static char out[8192];
    for (int json = 0; json < 2; json++)
        for (size_t n = 1; n < sizeof long_text; n += 97) {
            memset(long_text, n % 2 ? '"' : 'x', n);
            long_text[n] = 0;
            cr_log_set_json(json);
            capture(long_fields, out, sizeof out);
            cr_log_set_json(false);
            const size_t length = strlen(out);
            ck_assert_uint_le(length, 2048);
            ck_assert_ptr_eq(strchr(out, '\n'), out + length - 1);
            size_t quotes = 0;
            for (size_t i = 0; i < length; i++) {
                if (out[i] == '\\')
                    i++;
                else
                    quotes += out[i] == '"';
            }
            if (json) ck_assert_msg(out[length - 2] == '}' && quotes % 2 == 0, "%zu: %s", n, out);
        }
}
END_TEST

CR_CHECK_MAIN("base/log") {
    tcase_add_test(tc, line_has_time_level_text);
    tcase_add_test(tc, fields_are_escaped);
    tcase_add_test(tc, json_lines_are_objects);
    tcase_add_test(tc, long_lines_are_cut);
    tcase_add_test(tc, levels_below_the_set_one_are_dropped);
    tcase_add_test(tc, a_message_stays_one_line);
    tcase_add_test(tc, quoting);
    tcase_add_test(tc, a_repeated_message_is_written_once_a_second);
    tcase_add_test(tc, a_repeated_message_does_not_fill_the_log);
    tcase_add_test(tc, a_log_that_nobody_reads_is_not_waited_for);
}
