/* TLS in steps: whatever a client sends, one read takes few records, and a handshake few bytes. The client is OpenSSL's. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/socket/tls.h"
#include "tests/unit/check_main.h"
#include "tests/unit/support.h"

enum { MANY = 1000, A_STEP = 16, MOST_SHAKE = 16 * 1024 };

static int ends[2]; /* the daemon's, and the client's */
static SSL_CTX *context;
static SSL *client;
static cr_identity *identity;
static cr_tls *tls;

/* Writes a key and its own certificate, for three days. */
static void write_files(const char *certificate, const char *key) {
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3 * 86400L);
    X509_set_pubkey(x, pair);
    ck_assert_int_gt(X509_sign(x, pair, EVP_sha256()), 0);
    FILE *f = fopen(certificate, "w"), *k = fopen(key, "w");
    ck_assert(f && k && PEM_write_X509(f, x) && PEM_write_PrivateKey(k, pair, NULL, NULL, 0, NULL, NULL));
    fclose(f);
    fclose(k);
    X509_free(x);
    EVP_PKEY_free(pair);
}

static void setup(void) {
    char certificate[] = "/tmp/cured-test-XXXXXX", key[] = "/tmp/cured-test-XXXXXX";
    cr_error error;
    const int made = mkstemp(certificate), too = mkstemp(key), room = 4 << 20;
    ck_assert(made >= 0 && too >= 0 && close(made) == 0 && close(too) == 0);
    write_files(certificate, key);
    assert_ok(cr_identity_open(certificate, key, NULL, &identity, &error), error);
    ck_assert(unlink(certificate) == 0 && unlink(key) == 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    context = SSL_CTX_new(TLS_client_method());
    client = SSL_new(context);
    SSL_set_bio(client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(client);
}

static void teardown(void) {
    if (tls) cr_tls_free(tls);
    tls = NULL;
    SSL_free(client);
    SSL_CTX_free(context);
    cr_identity_free(identity);
    close(ends[0]);
    close(ends[1]);
}

static void put(const void *bytes, size_t n) { ck_assert_int_eq(send(ends[1], bytes, n, MSG_NOSIGNAL), (ssize_t)n); }

/* What the client has to say, as it is, or its handshake in records of `most` bytes. */
static void say(size_t most) {
    uint8_t *at;
    const size_t n = (size_t)BIO_get_mem_data(SSL_get_wbio(client), &at);
    const bool cut = most && n && at[0] == 22;
    for (size_t i = 5; cut && i < n; i += most) {
        const size_t take = n - i < most ? n - i : most;
        uint8_t record[5 + 256] = {22, 3, 1, 0, (uint8_t)take};
        memcpy(record + 5, at + i, take);
        put(record, 5 + take);
    }
    if (!cut) put(at, n);
    (void)BIO_reset(SSL_get_wbio(client));
}

static void hear(void) {
    uint8_t bytes[16384];
    const ssize_t n = recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) BIO_write(SSL_get_rbio(client), bytes, (int)n);
}

/* The steps that the daemon takes while the client's hello comes in records of `most` bytes; 0: in one. */
static unsigned shake(size_t most) {
    cr_error error;
    cr_status status = CR_UNAVAILABLE;
    unsigned steps = 0;
    bool done = false;
    tls = cr_tls_new(identity, ends[0], (const uint8_t *)"", 0);
    for (; !done || status != CR_OK; steps++) {
        if (!done) done = SSL_do_handshake(client) == 1;
        say(most);
        if (status != CR_OK) status = cr_tls_shake(tls, &error);
        ck_assert_msg(status == CR_OK || status == CR_UNAVAILABLE, "%s", error.text);
        hear();
        ck_assert_uint_lt(steps, MANY);
    }
    return steps;
}

START_TEST(a_hello_in_single_bytes_takes_many_steps) {
    ck_assert_uint_gt(shake(1), 3);
    SSL_write(client, "hello", 5);
    say(0);
    char got[8];
    const struct iovec part = {got, sizeof got};
    ck_assert_int_eq(cr_tls_read(tls, &part, 1), 5);
}
END_TEST

START_TEST(an_endless_hello_is_refused) {
    uint8_t record[5 + 64] = {22, 3, 1, 0, 64, 1, 0, 0xff, 0xff, 3, 3};
    cr_error error;
    cr_status status = CR_UNAVAILABLE;
    size_t sent = 0;
    tls = cr_tls_new(identity, ends[0], (const uint8_t *)"", 0);
    for (; status == CR_UNAVAILABLE && sent < 4 * MOST_SHAKE; sent += sizeof record) {
        put(record, sizeof record);
        memset(record + 5, 0, 64);
        status = cr_tls_shake(tls, &error);
    }
    assert_fails(status, CR_UNAUTHENTICATED, error, "16384");
    ck_assert_uint_le(sent, MOST_SHAKE + 2 * sizeof record);
}
END_TEST

/* All that the client says comes, in its order, few records at a time. */
START_TEST(a_read_takes_few_records) {
    char got[MANY + 1];
    const struct iovec part = {got, sizeof got};
    shake(0);
    for (unsigned i = 0; i < MANY; i++) {
        const char byte = (char)i;
        ck_assert_int_eq(SSL_write(client, &byte, 1), 1);
    }
    say(0);
    for (unsigned had = 0; had < MANY;) {
        const ssize_t n = cr_tls_read(tls, &part, 1);
        ck_assert(n > 0 && n <= A_STEP);
        for (ssize_t i = 0; i < n; i++) ck_assert_int_eq(got[i], (char)(had + (unsigned)i));
        had += (unsigned)n;
        ck_assert(cr_tls_has_more(tls) == (had < MANY));
    }
}
END_TEST

/* Each new key costs as much as 20 records of data. */
START_TEST(a_read_takes_few_new_keys) {
    char got[8];
    const struct iovec part = {got, sizeof got};
    unsigned reads = 1;
    shake(0);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert(SSL_key_update(client, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(client) == 1);
    }
    ck_assert_int_eq(SSL_write(client, "!", 1), 1);
    say(0);
    for (ssize_t n; (n = cr_tls_read(tls, &part, 1)) != 1; reads++) {
        ck_assert(n == -1 && errno == EAGAIN);
        ck_assert(cr_tls_has_more(tls));
        ck_assert_uint_lt(reads, MANY);
    }
    ck_assert_uint_ge(reads, MANY / A_STEP);
    ck_assert_int_eq(got[0], '!');
}
END_TEST

START_TEST(keys_that_take_long_are_not_agreed_on) {
    static const struct {
        const char *group;
        bool taken;
    } all[] = {{"X25519", true}, {"P-256", true},      {"P-521", true},
               {"P-384", true},  {"ffdhe2048", false}, {"ffdhe8192", false}};
    cr_error error;
    ck_assert_int_eq(SSL_set1_groups_list(client, all[_i].group), 1);
    if (all[_i].taken) {
        shake(0);
        return;
    }
    tls = cr_tls_new(identity, ends[0], (const uint8_t *)"", 0);
    SSL_do_handshake(client);
    say(0);
    ck_assert_int_eq(cr_tls_shake(tls, &error), CR_UNAUTHENTICATED);
}
END_TEST

CR_CHECK_MAIN("server/tls") {
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_hello_in_single_bytes_takes_many_steps);
    tcase_add_test(tc, an_endless_hello_is_refused);
    tcase_add_test(tc, a_read_takes_few_records);
    tcase_add_test(tc, a_read_takes_few_new_keys);
    tcase_add_loop_test(tc, keys_that_take_long_are_not_agreed_on, 0, 6);
}
