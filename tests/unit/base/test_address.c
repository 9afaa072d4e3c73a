/* Addresses: which forms pass, what they give, and which are refused with what words. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "tests/unit/check_main.h"

static const struct {
    const char *text, *path, *host;
    unsigned port;
    bool local;
} good[] = {
    {"unix:/run/cured/cured.sock", "/run/cured/cured.sock", "", 0, true},
    {"unix:relative.sock", "relative.sock", "", 0, true},
    {"unix:a:b c", "a:b c", "", 0, true},
    {"unix:a,b", "a,b", "", 0, true},
    {"tcp:127.0.0.1:7070", "", "127.0.0.1", 7070, true},
    {"tcp:127.255.255.254:1", "", "127.255.255.254", 1, true},
    {"tcp:localhost:0", "", "localhost", 0, true},
    {"tcp:LocalHost:65535", "", "LocalHost", 65535, true},
    {"tcp:[::1]:7070", "", "::1", 7070, true},
    {"tcp:0.0.0.0:7070", "", "0.0.0.0", 7070, false},
    {"tcp:128.0.0.1:7070", "", "128.0.0.1", 7070, false},
    {"tcp:[::]:7070", "", "::", 7070, false},
    {"tcp:[fe80::1%eth0]:7070", "", "fe80::1%eth0", 7070, false},
    {"tcp:127.0.0.1.example:7070", "", "127.0.0.1.example", 7070, false},
    {"tcp:localhost.example:7070", "", "localhost.example", 7070, false},
    {"tcp:node-1:7070", "", "node-1", 7070, false},
};

START_TEST(forms_that_pass) {
    cr_address a;
    cr_error e = {CR_OK, ""};
    ck_assert_msg(cr_address_parse(good[_i].text, &a, &e) == CR_OK, "%s: %s", good[_i].text, e.text);
    ck_assert_str_eq(a.path, good[_i].path);
    ck_assert_str_eq(a.host, good[_i].host);
    ck_assert_uint_eq(a.port, good[_i].port);
    ck_assert_int_eq(a.kind, good[_i].path[0] ? CR_ADDRESS_UNIX : CR_ADDRESS_TCP);
    ck_assert_int_eq(cr_address_is_local(&a), good[_i].local);
}
END_TEST

static const struct {
    const char *text, *words;
} bad[] = {
    {"", "unix:PATH or tcp:HOST:PORT"},
    {"/run/cured.sock", "unix:PATH or tcp:HOST:PORT"},
    {"udp:127.0.0.1:1", "unix:PATH or tcp:HOST:PORT"},
    {"UNIX:/x", "unix:PATH or tcp:HOST:PORT"},
    {"unix:", "path is missing"},
    {"unix:/a,unix:/b", "once for each"},
    {"unix:/a,tcp:127.0.0.1:1", "once for each"},
    {"tcp:", "the form is"},
    {"tcp:127.0.0.1", "the form is"},
    {"tcp::7070", "host is missing"},
    {"tcp:[]:7070", "host is missing"},
    {"tcp:[::1]7070", "the form is"},
    {"tcp:[::1", "the form is"},
    {"tcp:::1:7070", "in brackets"},
    {"tcp:[127.0.0.1]:7070", "brackets are for IPv6"},
    {"tcp:a b:7070", "the host may hold"},
    {"tcp:a/b:7070", "the host may hold"},
    {"tcp:localhost:", "the port"},
    {"tcp:localhost:x", "the port"},
    {"tcp:localhost:65536", "the port"},
    {"tcp:localhost:99999999999999999999", "the port"},
    {"tcp:localhost:-1", "the port"},
    {"tcp:localhost: 1", "the port"},
    {"tcp:localhost:1 ", "the port"},
};

START_TEST(forms_that_are_refused) {
    cr_address a;
    cr_error e = {CR_OK, ""};
    ck_assert_int_eq(cr_address_parse(bad[_i].text, &a, &e), CR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(e.text, bad[_i].words) != NULL, "%s: \"%s\" lacks \"%s\"", bad[_i].text, e.text,
                  bad[_i].words);
}
END_TEST

START_TEST(lengths_at_their_limits) {
    cr_address a;
    char text[400];
    memset(text, 'p', sizeof text);
    memcpy(text, "unix:", 5);
    text[5 + 107] = '\0';
    ck_assert_int_eq(cr_address_parse(text, &a, NULL), CR_OK);
    ck_assert_uint_eq(strlen(a.path), 107);
    text[5 + 107] = 'p';
    text[5 + 108] = '\0';
    ck_assert_int_eq(cr_address_parse(text, &a, NULL), CR_INVALID_ARGUMENT);

    memset(text, 'h', sizeof text);
    memcpy(text, "tcp:", 4);
    strcpy(text + 4 + 253, ":1");
    ck_assert_int_eq(cr_address_parse(text, &a, NULL), CR_OK);
    memset(text + 4, 'h', 254);
    strcpy(text + 4 + 254, ":1");
    ck_assert_int_eq(cr_address_parse(text, &a, NULL), CR_INVALID_ARGUMENT);
}
END_TEST

CR_CHECK_MAIN("base/address") {
    tcase_add_loop_test(tc, forms_that_pass, 0, sizeof good / sizeof *good);
    tcase_add_loop_test(tc, forms_that_are_refused, 0, sizeof bad / sizeof *bad);
    tcase_add_test(tc, lengths_at_their_limits);
}
