/* tls: see tls.h.
 *
 * OpenSSL reads from memory that recv has filled and seals into memory that is sent, so that no signal comes of a broken
 * connection and nothing blocks. The server's certificate must be one of the CA's and name the host.
 * Thread, owner: see tls.h. */
#include "client/lib/conn/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/lib/conn/address.h"
#include "client/lib/conn/conn.h"

enum {
    RECEIVE_BYTES = 64 * 1024, /* by one recv */
    SEAL_BYTES = 256 * 1024,   /* by one send */
};

/* What is used of OpenSSL, each by its name in the library. */
#define SSL_FUNCTIONS(X)                  \
    X(BIO_ctrl)                           \
    X(BIO_ctrl_pending)                   \
    X(BIO_free)                           \
    X(BIO_new)                            \
    X(BIO_read)                           \
    X(BIO_s_mem)                          \
    X(BIO_write)                          \
    X(ERR_clear_error)                    \
    X(ERR_peek_last_error)                \
    X(ERR_reason_error_string)            \
    X(SSL_CTX_ctrl)                       \
    X(SSL_CTX_free)                       \
    X(SSL_CTX_load_verify_locations)      \
    X(SSL_CTX_new)                        \
    X(SSL_CTX_set_default_verify_paths)   \
    X(SSL_CTX_set_verify)                 \
    X(SSL_CTX_use_PrivateKey_file)        \
    X(SSL_CTX_use_certificate_chain_file) \
    X(SSL_ctrl)                           \
    X(SSL_do_handshake)                   \
    X(SSL_free)                           \
    X(SSL_get0_param)                     \
    X(SSL_get_error)                      \
    X(SSL_get_verify_result)              \
    X(SSL_is_init_finished)               \
    X(SSL_new)                            \
    X(SSL_pending)                        \
    X(SSL_read_ex)                        \
    X(SSL_set1_host)                      \
    X(SSL_set_bio)                        \
    X(SSL_set_connect_state)              \
    X(SSL_write_ex)                       \
    X(TLS_client_method)                  \
    X(X509_VERIFY_PARAM_set1_ip_asc)      \
    X(X509_verify_cert_error_string)

#define SSL_MEMBER(name) __typeof__(&(name)) name;
struct cr_cl_tls {
    struct {
        SSL_FUNCTIONS(SSL_MEMBER)
    } f;
    void *library;
    SSL_CTX *context;
    char host[256];
    SSL *ssl; /* of the connection that is; NULL: there is none yet */
    BIO *received, *sealed;
    bool ended;
    char why[200]; /* the connection ended so */
    uint8_t in[RECEIVE_BYTES];
};

static cr_status load(struct cr_cl_tls *t, cr_error *error) {
    t->library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    if (t->library == NULL)
        return cr_fail(error, CR_UNIMPLEMENTED, "tls: OpenSSL 3 (libssl.so.3) cannot be loaded: %.200s", dlerror());
    void *function;
#define SSL_FIND(name)                                                                                \
    if ((function = dlsym(t->library, #name)) == NULL)                                                \
        return cr_fail(error, CR_UNIMPLEMENTED, "tls: this OpenSSL has no %s: it is too old", #name); \
    memcpy(&t->f.name, &function, sizeof function);
    SSL_FUNCTIONS(SSL_FIND)
    return CR_OK;
}

static const char *reason(const struct cr_cl_tls *t) {
    const char *text = t->f.ERR_reason_error_string(t->f.ERR_peek_last_error());
    return text != NULL ? text : "unknown error";
}

/* The option, or else the environment's; NULL: neither. */
static const char *choose(const char *option, const char *variable) {
    const char *text = option != NULL ? option : getenv(variable);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static cr_status read_files(struct cr_cl_tls *t, const cured_connect_options *o, cr_error *error) {
    const char *ca = choose(o->tls_ca, "CURED_TLS_CA");
    const char *certificate = choose(o->tls_certificate, "CURED_CLIENT_CERTIFICATE");
    const char *key = choose(o->tls_key, "CURED_CLIENT_KEY");
    t->f.ERR_clear_error();
    if (ca != NULL && t->f.SSL_CTX_load_verify_locations(t->context, ca, NULL) != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_ca: %.150s: %s", ca, reason(t));
    if (ca == NULL && t->f.SSL_CTX_set_default_verify_paths(t->context) != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_ca: the system's CAs cannot be read: %s", reason(t));
    if ((certificate == NULL) != (key == NULL))
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_certificate and tls_key: give both or neither");
    if (certificate != NULL && t->f.SSL_CTX_use_certificate_chain_file(t->context, certificate) != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_certificate: %.150s: %s", certificate, reason(t));
    if (key != NULL && t->f.SSL_CTX_use_PrivateKey_file(t->context, key, SSL_FILETYPE_PEM) != 1)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_key: %.150s: %s", key, reason(t));
    return CR_OK;
}

cr_status cr_cl_tls_prepare(cured_conn *conn, const cured_connect_options *o, cr_error *error) {
    struct cr_cl_tls *t = conn->tls = calloc(1, sizeof *t);
    if (t == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for TLS");
    cr_status status = cr_cl_address_host(conn->address, t->host, error);
    if (status == CR_OK) status = load(t, error);
    if (status == CR_OK && (t->context = t->f.SSL_CTX_new(t->f.TLS_client_method())) == NULL)
        status = cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for TLS");
    if (status == CR_OK) {
        t->f.SSL_CTX_ctrl(t->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL);
        t->f.SSL_CTX_ctrl(t->context, SSL_CTRL_MODE,
                          SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, NULL);
        t->f.SSL_CTX_set_verify(t->context, SSL_VERIFY_PEER, NULL);
        status = read_files(t, o, error);
    }
    if (status != CR_OK) cr_cl_tls_free(conn);
    return status;
}

void cr_cl_tls_reset(cured_conn *conn) {
    struct cr_cl_tls *t = conn->tls;
    if (t == NULL) return;
    if (t->ssl != NULL) t->f.SSL_free(t->ssl); /* and the BIOs with it; without a word, for it may be the parent's */
    t->ssl = NULL;
    t->ended = false;
    t->why[0] = '\0';
}

void cr_cl_tls_free(cured_conn *conn) {
    struct cr_cl_tls *t = conn->tls;
    if (t == NULL) return;
    cr_cl_tls_reset(conn);
    if (t->context != NULL) t->f.SSL_CTX_free(t->context);
    if (t->library != NULL) dlclose(t->library);
    free(t);
    conn->tls = NULL;
}

/* The host is a number or a name, and the certificate must have it. */
static bool name_host(struct cr_cl_tls *t) {
    if (t->f.X509_VERIFY_PARAM_set1_ip_asc(t->f.SSL_get0_param(t->ssl), t->host) == 1) return true;
    t->f.SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, t->host);
    return t->f.SSL_set1_host(t->ssl, t->host) == 1;
}

/* A connection begins. */
static bool begin(struct cr_cl_tls *t) {
    if (t->ssl != NULL) return true;
    t->ssl = t->f.SSL_new(t->context);
    t->received = t->f.BIO_new(t->f.BIO_s_mem());
    t->sealed = t->f.BIO_new(t->f.BIO_s_mem());
    if (t->ssl == NULL || t->received == NULL || t->sealed == NULL || !name_host(t)) {
        snprintf(t->why, sizeof t->why, "no memory for TLS");
        if (t->ssl != NULL) t->f.SSL_free(t->ssl);
        t->f.BIO_free(t->received);
        t->f.BIO_free(t->sealed);
        t->ssl = NULL;
        return false;
    }
    t->f.BIO_ctrl(t->received, BIO_C_SET_BUF_MEM_EOF_RETURN, -1, NULL); /* empty is "not yet" */
    t->f.SSL_set_bio(t->ssl, t->received, t->sealed);
    t->f.SSL_set_connect_state(t->ssl);
    return true;
}

bool cr_cl_tls_unsent(const cured_conn *conn) {
    const struct cr_cl_tls *t = conn->tls;
    return t != NULL && t->ssl != NULL && t->f.BIO_ctrl_pending(t->sealed) > 0;
}

bool cr_cl_tls_shakes(const cured_conn *conn) {
    const struct cr_cl_tls *t = conn->tls;
    return t != NULL && (t->ssl == NULL || !t->f.SSL_is_init_finished(t->ssl));
}

bool cr_cl_tls_pending(const cured_conn *conn) {
    const struct cr_cl_tls *t = conn->tls;
    return t != NULL && t->ssl != NULL && (t->f.SSL_pending(t->ssl) > 0 || t->f.BIO_ctrl_pending(t->received) > 0);
}

const char *cr_cl_tls_why(const cured_conn *conn) {
    return conn->tls != NULL && conn->tls->why[0] != '\0' ? conn->tls->why : NULL;
}

/* Sends what is sealed, as far as the socket takes it: what it does not take stays in t->sealed. */
static bool send_sealed(const cured_conn *conn) {
    const struct cr_cl_tls *t = conn->tls;
    char *at;
    for (long n; (n = t->f.BIO_ctrl(t->sealed, BIO_CTRL_INFO, 0, &at)) > 0;) {
        ssize_t sent = send(conn->calls.fd, at, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        uint8_t drop[4096]; /* BIO_read moves on */
        for (size_t left = (size_t)sent; left > 0;) {
            int step = t->f.BIO_read(t->sealed, drop, left < sizeof drop ? (int)left : (int)sizeof drop);
            if (step <= 0) return false;
            left -= (size_t)step;
        }
    }
    return true;
}

/* OpenSSL wants to go on later; false: it does not, and says why. */
static bool later(struct cr_cl_tls *t, int result) {
    const int error = t->f.SSL_get_error(t->ssl, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return true;
    const long verified = t->f.SSL_get_verify_result(t->ssl);
    if (error == SSL_ERROR_ZERO_RETURN)
        t->ended = true;
    else if (verified != X509_V_OK)
        snprintf(t->why, sizeof t->why, "TLS: the certificate of %.60s is not trusted: %.60s", t->host,
                 t->f.X509_verify_cert_error_string(verified));
    else
        snprintf(t->why, sizeof t->why, "TLS: %.100s", reason(t));
    return false;
}

/* One recv to OpenSSL. False: nothing came. */
static bool receive(cured_conn *conn) {
    struct cr_cl_tls *t = conn->tls;
    ssize_t n;
    do n = recv(conn->calls.fd, t->in, sizeof t->in, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) snprintf(t->why, sizeof t->why, "%s", strerror(errno));
    if (n == 0) t->ended = true;
    return n > 0 && t->f.BIO_write(t->received, t->in, (int)n) == n;
}

ssize_t cr_cl_tls_recv(cured_conn *conn, uint8_t *to, size_t n) {
    struct cr_cl_tls *t = conn->tls;
    size_t got;
    bool more = begin(t);
    for (int tries = 0; more && tries < 2; tries++) {
        t->f.ERR_clear_error();
        if (t->f.SSL_read_ex(t->ssl, to, n, &got) == 1) return (ssize_t)got;
        more = later(t, 0) && send_sealed(conn) && (tries > 0 || receive(conn));
    }
    if (t->ssl != NULL) send_sealed(conn); /* an alert may be among it */
    if (t->ssl != NULL && t->f.BIO_ctrl_pending(t->sealed) > 2 * SEAL_BYTES)
        snprintf(t->why, sizeof t->why, "TLS: the daemon asks for new keys, and does not read");
    if (t->ended) return 0;
    errno = t->why[0] != '\0' ? EPROTO : EAGAIN;
    return -1;
}

ssize_t cr_cl_tls_send(cured_conn *conn, const struct iovec *pieces, size_t count) {
    struct cr_cl_tls *t = conn->tls;
    size_t total = 0, once;
    errno = EPROTO;
    if (!begin(t) || !send_sealed(conn)) return -1;
    errno = EAGAIN;
    if (cr_cl_tls_unsent(conn)) return -1;
    for (size_t i = 0; i < count && total < SEAL_BYTES; i++) {
        const uint8_t *at = pieces[i].iov_base;
        for (size_t left = pieces[i].iov_len; left > 0 && total < SEAL_BYTES; left -= once, at += once, total += once) {
            const size_t step = left < SEAL_BYTES - total ? left : SEAL_BYTES - total;
            t->f.ERR_clear_error();
            if (t->f.SSL_write_ex(t->ssl, at, step, &once) == 1) continue;
            const bool waits = later(t, 0);
            if (!send_sealed(conn) || (!waits && total == 0)) return errno = EPROTO, -1;
            if (total == 0) return errno = EAGAIN, -1;
            return (ssize_t)total;
        }
    }
    return send_sealed(conn) ? (ssize_t)total : (errno = EPROTO, -1);
}
