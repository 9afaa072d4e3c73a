/* http: requests of operators, cut out of bytes that come in any pieces. */
#include <stdlib.h>
#include <string.h>

#include "server/admin/http.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

static cr_http http;

/* The request that text is, given in pieces of step bytes; *left: bytes behind it. */
static const cr_http_request *read_text(const char *text, size_t step, size_t *left) {
    size_t n = strlen(text), at = 0, used;
    bool whole = false;
    cr_http_init(&http);
    while (!whole && at < n) {
        whole = cr_http_read(&http, (const uint8_t *)text + at, n - at < step ? n - at : step, &used);
        ck_assert(whole || used);
        at += used;
    }
    *left = n - at;
    return whole ? &http.request : NULL;
}

START_TEST(a_request_in_any_pieces) {
    static const char text[] =
        "GET /metrics?x=1 HTTP/1.1\r\nhost: LOCALHOST:1\r\nX-Other: a\r\n"
        "authorization: bearer name.secret\r\nHosts: b\r\n\r\nGET";
    for (size_t step = 1; step < sizeof text; step++) {
        size_t left;
        const cr_http_request *r = read_text(text, step, &left);
        ck_assert_ptr_nonnull(r);
        ck_assert_uint_eq(r->status, 0);
        ck_assert_str_eq(r->path, "/metrics");
        ck_assert_str_eq(r->host, "LOCALHOST:1");
        ck_assert_str_eq(r->token, "name.secret");
        ck_assert(r->keep && !r->head && r->has_host);
        ck_assert_uint_eq(left, 3);
    }
}
END_TEST

START_TEST(requests_follow_each_other) {
    static const char text[] = "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.0\r\n\r\n";
    size_t used;
    cr_http_init(&http);
    ck_assert(cr_http_read(&http, (const uint8_t *)text, sizeof text - 1, &used));
    ck_assert(http.request.head && http.request.keep);
    ck_assert_str_eq(http.request.path, "/a");
    cr_http_next(&http);
    ck_assert(!cr_http_begun(&http));
    const size_t rest = sizeof text - 1 - used;
    ck_assert(cr_http_read(&http, (const uint8_t *)text + used, rest, &used));
    ck_assert_uint_eq(used, rest);
    ck_assert_str_eq(http.request.path, "/b");
    ck_assert(!http.request.head && !http.request.keep && !http.request.has_host);
    ck_assert_str_eq(http.request.host, "");
}
END_TEST

/* A request whose target, or one of whose headers, has n bytes. */
static uint16_t status_of(const char *before, size_t n, const char *after) {
    const size_t room = strlen(before) + n + strlen(after) + 1;
    char *text = malloc(room);
    size_t left;
    strcpy(text, before);
    memset(text + strlen(before), 'a', n);
    strcpy(text + strlen(before) + n, after);
    const cr_http_request *r = read_text(text, 4096, &left);
    free(text);
    return r ? r->status : 1;
}

START_TEST(limits_are_exact) {
    static const char end[] = " HTTP/1.1\r\nHost: x\r\n\r\n";
    ck_assert_uint_eq(status_of("GET /", CR_HTTP_TARGET_BYTES - 1, end), 0);
    ck_assert_uint_eq(status_of("GET /", CR_HTTP_TARGET_BYTES, end), 414);
    static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
    const size_t fixed = sizeof head - 1 + 4;
    ck_assert_uint_eq(status_of(head, CR_HTTP_HEAD_BYTES - fixed, "\r\n\r\n"), 0);
    ck_assert_uint_eq(status_of(head, CR_HTTP_HEAD_BYTES - fixed + 1, "\r\n\r\n"), 431);
    ck_assert_uint_eq(status_of("GET / HTTP/1.1\r\nHost: ", CR_HTTP_HOST_BYTES, "\r\n\r\n"), 0);
    ck_assert_uint_eq(status_of("GET / HTTP/1.1\r\nHost: ", CR_HTTP_HOST_BYTES + 1, "\r\n\r\n"), 400);
    static const char token[] = "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ";
    ck_assert_uint_eq(status_of(token, CR_HTTP_TOKEN_BYTES, "\r\n\r\n"), 0);
    ck_assert_uint_eq(status_of(token, CR_HTTP_TOKEN_BYTES + 1, "\r\n\r\n"), 431);
    ck_assert_uint_eq(status_of(head, 100, ""), 1); /* not whole */
}
END_TEST

START_TEST(hosts_that_are_numbers) {
    static const char *const good[] = {"localhost",     "Localhost:80", "127.0.0.1",
                                       "10.0.0.1:7738", "[::1]",        "[::1]:7738"};
    static const char *const wrong[] = {"",
                                        "evil.example",
                                        "127.0.0.1.evil.example",
                                        "localhost.evil.example",
                                        "[::1",
                                        "::1",
                                        "[::1]x",
                                        "127.1",
                                        "127.0.0.1:8a",
                                        "[localhost]",
                                        "[::1]:1:",
                                        "localhost:1 "};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(cr_http_host_is_number(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!cr_http_host_is_number(wrong[i]), "%s", wrong[i]);
}
END_TEST

CR_CHECK_MAIN("server/admin_http") {
    tcase_add_test(tc, a_request_in_any_pieces);
    tcase_add_test(tc, requests_follow_each_other);
    tcase_add_test(tc, limits_are_exact);
    tcase_add_test(tc, hosts_that_are_numbers);
}
