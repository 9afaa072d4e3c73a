/* tls: see tls.h. Thread: the loop's. Owner: see tls.h. */
#include "server/socket/tls.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/text_file.h"

enum {
    RECEIVE_BYTES = 256 * 1024, /* by one recv */
    SEAL_BYTES = 64 * 1024,     /* by one write */
    UNSENT_BYTES = 128 * 1024,  /* a client that has more written to it by what it sends reads nothing */
    STEP_RECORDS = 16,          /* read in one step, because a new key takes 24 us, and a byte of data 2 us */
    SHAKE_BYTES = 16 * 1024,    /* of a client's handshake: a hello of 64 KiB took 10 ms */
    FILE_BYTES = 4 << 20,       /* of certificates: a system's CAs take 0.2 MiB */
    CHAIN_BYTES = 8 * 1024,     /* of a client's certificates in it: one of 1 KiB takes 0.5 ms */
};

struct cr_identity {
    SSL_CTX *context;
    int64_t expires_s;
};

struct cr_tls {
    SSL *ssl;
    int fd;
    const uint8_t *at; /* received, and not yet taken by OpenSSL: in what is being received, or in left */
    size_t n;
    cr_bytes left, out;
    uint32_t asked; /* by OpenSSL in this step: a record takes twice, its head and its body */
    size_t shaken;  /* bytes of the client's handshake */
    bool ended;     /* nothing more comes */
};

/* ---- identity ---- */

/* What OpenSSL says last, without its numbers. */
static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text ? text : "unknown error";
}

static cr_status refuse(cr_identity *identity, const char *option, const char *file, cr_error *error) {
    cr_fail(error, CR_INVALID_ARGUMENT, "%s: %.200s: %s", option, file, reason());
    cr_identity_free(identity);
    return CR_INVALID_ARGUMENT;
}

/* HTTP/2 where the client can: the first bytes say it anyway, but clients insist. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned in_len, void *argument) {
    static const unsigned char spoken[] =
        "\x02h2\x05"
        "cured";
    (void)ssl;
    (void)argument;
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, spoken, sizeof spoken - 1, in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* 0: it does not say. */
static int64_t until_s(const X509 *certificate) {
    struct tm tm = {0};
    return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* OpenSSL would wait for a FIFO, and read a device without end. */
static cr_status look_at(const char *option, const char *file, cr_error *error) {
    char shown[256], *text;
    size_t length;
    snprintf(shown, sizeof shown, "%s: %.200s", option, file);
    const cr_status status = cr_text_file_read(file, shown, FILE_BYTES, NULL, &text, &length, error);
    if (status == CR_OK) {
        OPENSSL_cleanse(text, length);
        free(text);
    }
    return status == CR_NOT_FOUND ? error->code = CR_INVALID_ARGUMENT : status;
}

cr_status cr_identity_open(const char *certificate, const char *key, const char *client_ca, cr_identity **out,
                           cr_error *error) {
    cr_status status = look_at("tls_certificate", certificate, error);
    if (status == CR_OK) status = look_at("tls_key", key, error);
    if (status == CR_OK && client_ca) status = look_at("tls_client_ca", client_ca, error);
    if (status != CR_OK) return status;
    cr_identity *identity = calloc(1, sizeof *identity);
    if (identity) identity->context = SSL_CTX_new(TLS_server_method());
    if (!identity || !identity->context) {
        free(identity);
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for TLS");
    }
    SSL_CTX *c = identity->context;
    ERR_clear_error();
    SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_options(c,
                        SSL_OP_NO_TICKET); /* a client's tickets are none of ours, and looking into each takes time */
    SSL_CTX_set_max_cert_list(c, CHAIN_BYTES);
    /* Without ffdhe8192, whose key takes the loop 98 ms. Where OpenSSL is held to FIPS 140 it has no X25519. */
    if (SSL_CTX_set1_groups_list(c, "X25519:P-256:P-521:P-384") != 1 &&
        SSL_CTX_set1_groups_list(c, "P-256:P-521:P-384") != 1)
        return refuse(identity, "tls_certificate", certificate, error);
    SSL_CTX_set_alpn_select_cb(c, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(c, certificate) != 1)
        return refuse(identity, "tls_certificate", certificate, error);
    if (SSL_CTX_use_PrivateKey_file(c, key, SSL_FILETYPE_PEM) != 1) return refuse(identity, "tls_key", key, error);
    if (SSL_CTX_check_private_key(c) != 1) return refuse(identity, "tls_key", key, error);
    if (client_ca) {
        STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(client_ca);
        if (!names || SSL_CTX_load_verify_locations(c, client_ca, NULL) != 1) {
            sk_X509_NAME_pop_free(names, X509_NAME_free);
            return refuse(identity, "tls_client_ca", client_ca, error);
        }
        SSL_CTX_set_client_CA_list(c, names);
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER, NULL);
    }
    const X509 *own = SSL_CTX_get0_certificate(c);
    identity->expires_s = own ? until_s(own) : 0;
    *out = identity;
    return CR_OK;
}

void cr_identity_free(cr_identity *identity) {
    if (identity) SSL_CTX_free(identity->context);
    free(identity);
}

int64_t cr_identity_expires_s(const cr_identity *identity) { return identity->expires_s; }

/* ---- the BIO: what OpenSSL reads and writes ---- */

static bool too_long(const cr_tls *tls) { return tls->shaken > SHAKE_BYTES && !SSL_is_init_finished(tls->ssl); }

static int bio_read(BIO *bio, char *to, int n) {
    cr_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    const bool later = tls->asked >= 2 * STEP_RECORDS || too_long(tls);
    if (later || (!tls->n && !tls->ended)) BIO_set_retry_read(bio);
    if (later || !tls->n) return tls->ended && !later ? 0 : -1;
    const size_t take = (size_t)n < tls->n ? (size_t)n : tls->n;
    tls->asked++;
    if (!SSL_is_init_finished(tls->ssl)) tls->shaken += take;
    memcpy(to, tls->at, take);
    tls->at += take;
    tls->n -= take;
    return (int)take;
}

static int bio_write(BIO *bio, const char *from, int n) {
    cr_tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    return cr_bytes_add(&tls->out, from, (size_t)n) ? n : -1;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer) {
    const cr_tls *tls = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP || (command == BIO_CTRL_EOF && tls->ended);
}

static BIO_METHOD *method(void) {
    static BIO_METHOD *made; /* kept until the process ends */
    if (made) return made;
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cured");
    if (!m) return NULL;
    BIO_meth_set_read(m, bio_read);
    BIO_meth_set_write(m, bio_write);
    BIO_meth_set_ctrl(m, bio_ctrl);
    return made = m;
}

cr_tls *cr_tls_new(const cr_identity *identity, int fd, const uint8_t *bytes, size_t n) {
    cr_tls *tls = calloc(1, sizeof *tls);
    BIO *bio = tls && method() ? BIO_new(method()) : NULL;
    if (bio) tls->ssl = SSL_new(identity->context);
    if (!bio || !tls->ssl || !cr_bytes_add(&tls->left, bytes, n)) {
        BIO_free(bio);
        if (tls) SSL_free(tls->ssl);
        if (tls) cr_bytes_free(&tls->left);
        free(tls);
        return NULL;
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_accept_state(tls->ssl);
    tls->fd = fd;
    tls->at = tls->left.at;
    tls->n = n;
    return tls;
}

/* ---- bytes ---- */

/* One recv, into the loop's one buffer. False: nothing came; errno says why, 0: the end. */
static bool receive(cr_tls *tls) {
    static uint8_t buffer[RECEIVE_BYTES]; /* the loop's */
    cr_bytes_free(&tls->left);
    ssize_t n = recv(tls->fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) tls->at = buffer;
    if (n > 0) tls->n = (size_t)n;
    if (n == 0) tls->ended = true;
    if (n == 0) errno = 0;
    return n > 0;
}

/* What is left over lies in the loop's buffer, or further back in left: it moves to a left of its own. False: there is no memory. */
static bool keep_left(cr_tls *tls) {
    cr_bytes left = {0};
    if (tls->n && tls->left.at) return true; /* there it is */
    if (!tls->n) cr_bytes_free(&tls->left);
    if (!tls->n) return true;
    if (!cr_bytes_add(&left, tls->at, tls->n)) return false;
    cr_bytes_free(&tls->left);
    tls->left = left;
    tls->at = left.at;
    return true;
}

/* Sends what is sealed. False: the connection is at its end. */
static bool send_out(cr_tls *tls) {
    while (cr_bytes_left(&tls->out)) {
        ssize_t n = send(tls->fd, tls->out.at + tls->out.off, cr_bytes_left(&tls->out), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        tls->out.off += (uint32_t)n;
    }
    cr_bytes_free(&tls->out);
    return true;
}

cr_status cr_tls_shake(cr_tls *tls, cr_error *error) {
    bool received = tls->n > 0;
    tls->asked = 0;
    for (;;) {
        ERR_clear_error();
        const int done = SSL_do_handshake(tls->ssl);
        const int why = SSL_get_error(tls->ssl, done);
        const bool sent = send_out(tls);
        if (done == 1) SSL_free_buffers(tls->ssl);
        if (done == 1 && sent)
            return keep_left(tls) ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for TLS");
        if (!sent || (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE))
            return cr_fail(error, CR_UNAUTHENTICATED, "TLS handshake: %s", reason());
        if (too_long(tls))
            return cr_fail(error, CR_UNAUTHENTICATED, "TLS handshake: the client's is longer than %d bytes",
                           SHAKE_BYTES);
        if (received && !keep_left(tls)) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for TLS");
        if (received || why != SSL_ERROR_WANT_READ) return CR_UNAVAILABLE;
        received = receive(tls);
        if (!received && errno != EAGAIN && errno != EWOULDBLOCK)
            return cr_fail(error, CR_UNAUTHENTICATED, "TLS handshake: the client left");
        if (!received) return CR_UNAVAILABLE;
    }
}

bool cr_tls_trusts_client(const cr_tls *tls) { return SSL_get_verify_result(tls->ssl) == X509_V_OK; }

bool cr_tls_knows_client(const cr_tls *tls) {
    return SSL_get0_peer_certificate(tls->ssl) && SSL_get_verify_result(tls->ssl) == X509_V_OK;
}

int64_t cr_tls_client_until_s(const cr_tls *tls) {
    const X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    return certificate ? until_s(certificate) : 0;
}

/* Gives a name of n bytes to take, if it is printable ASCII and fits. True: it did. */
static bool give_name(cr_tls_take_name take, void *argument, cr_known_by by, const unsigned char *text, int n) {
    char name[CR_NAME_MAX_BYTES + 1];
    if (!text || n < 1 || (size_t)n >= sizeof name) return false;
    for (int i = 0; i < n; i++) {
        if (text[i] < ' ' || text[i] > '~') return false;
        name[i] = by == CR_KNOWN_DNS ? (char)tolower(text[i]) : (char)text[i];
    }
    name[n] = '\0';
    take(argument, by, name);
    return true;
}

void cr_tls_client_names(const cr_tls *tls, cr_tls_take_name take, void *argument) {
    const X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    const X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;
    const int at = subject ? X509_NAME_get_index_by_NID(subject, NID_commonName, -1) : -1;
    const ASN1_STRING *common = at >= 0 ? X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)) : NULL;
    if (common) give_name(take, argument, CR_KNOWN_CN, ASN1_STRING_get0_data(common), ASN1_STRING_length(common));
    GENERAL_NAMES *more = certificate ? X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL) : NULL;
    const int count = more ? sk_GENERAL_NAME_num(more) : 0;
    for (int i = 0, told = 0; i < count && told < CR_TLS_MOST_NAMES; i++) {
        int type;
        const ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(more, i), &type);
        if (type != GEN_DNS && type != GEN_URI) continue;
        told += give_name(take, argument, type == GEN_DNS ? CR_KNOWN_DNS : CR_KNOWN_URI, ASN1_STRING_get0_data(value),
                          ASN1_STRING_length(value));
    }
    GENERAL_NAMES_free(more);
}

/* Reads what there is into the part. -1: nothing more is there; -2: the connection is at its end. */
static ssize_t read_part(cr_tls *tls, uint8_t *to, size_t n) {
    ERR_clear_error();
    size_t got;
    if (SSL_read_ex(tls->ssl, to, n, &got) == 1) return (ssize_t)got;
    return SSL_get_error(tls->ssl, 0) == SSL_ERROR_WANT_READ ? -1 : -2;
}

ssize_t cr_tls_read(cr_tls *tls, const struct iovec *parts, int count) {
    ssize_t total = 0, n = 0;
    bool received = false;
    tls->asked = 0;
    for (int i = 0; i < count && n != -2; i++) {
        uint8_t *to = parts[i].iov_base;
        size_t room = parts[i].iov_len;
        while (room) {
            n = read_part(tls, to, room);
            if (n == -1 && !tls->n && !received && (received = true) && receive(tls)) continue;
            if (n < 0) break;
            to += n;
            room -= (size_t)n;
            total += n;
        }
        if (n < 0) break;
    }
    SSL_free_buffers(tls->ssl); /* not after each record; those of a record that is not whole stay */
    if (cr_bytes_left(&tls->out) && !send_out(tls)) return 0; /* an answer to a new key */
    if (cr_bytes_left(&tls->out) > UNSENT_BYTES) return 0;
    if (!keep_left(tls)) return 0;
    if (total || tls->ended || n == -2) return total;
    errno = EAGAIN;
    return -1;
}

ssize_t cr_tls_write(cr_tls *tls, const void *bytes, size_t n) {
    size_t taken = 0;
    errno = EPIPE;
    if (!send_out(tls)) return -1;
    if (cr_bytes_left(&tls->out)) {
        errno = EAGAIN;
        return -1;
    }
    if (n > SEAL_BYTES) n = SEAL_BYTES;
    for (size_t once; taken < n; taken += once) {
        ERR_clear_error();
        if (SSL_write_ex(tls->ssl, (const uint8_t *)bytes + taken, n - taken, &once) == 1) continue;
        errno = EPIPE;
        return -1;
    }
    SSL_free_buffers(tls->ssl);
    errno = EPIPE;
    return send_out(tls) ? (ssize_t)n : -1;
}

bool cr_tls_has_more(const cr_tls *tls) { return tls->n > 0 || SSL_pending(tls->ssl) > 0; }

bool cr_tls_unsent(const cr_tls *tls) { return cr_bytes_left(&tls->out) > 0; }

void cr_tls_end(cr_tls *tls) {
    ERR_clear_error();
    if (SSL_is_init_finished(tls->ssl)) SSL_shutdown(tls->ssl);
    send_out(tls);
}

void cr_tls_free(cr_tls *tls) {
    cr_tls_end(tls);
    SSL_free(tls->ssl);
    cr_bytes_free(&tls->left);
    cr_bytes_free(&tls->out);
    free(tls);
}
