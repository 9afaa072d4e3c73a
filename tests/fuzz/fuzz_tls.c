/* Any bytes as what a client of TLS sends: the daemon's rooms without its listeners answer in records, or end the connection, and have
 * nothing left of it afterwards. The first byte: bit 0, a true client shakes hands, and the bytes go within; bit 1, it shows a
 * certificate of our CA whose names come first: a byte that says how many bytes they take, and the names with zeros between, the
 * common name before the others; bit 2, the bytes come in two pieces, with turns of the loop between them; bit 3, the client ends at
 * once; bit 4, a byte of what the true client sends is another: two bytes say which, and one what is changed of it; bit 5, it offers
 * HTTP/2. */
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/socket/principals.h"
#include "tests/fuzz/rooms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *length);

enum {
    WITHIN = 1,
    SHOWS = 2,
    TWO_PIECES = 4,
    LEAVES = 8,
    CHANGED = 16,
    OFFERS_H2 = 32,
    MOST = 64 * 1024,
    TURNS = 4,
    MOST_STEPS = 1000,
    MOST_TURNS = 1000000,
    RECORD_HEAD = 5,
    RECORD_BYTES = 16384 + 256,
};

static EVP_PKEY *key; /* the daemon's, the CA's and each client's */
static X509 *ca;

/* Its connections come over TCP: no process stands behind them. */
int __wrap_getpeername(int fd, struct sockaddr *name, socklen_t *length) {
    const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    (void)fd;
    memcpy(name, &from, sizeof from);
    *length = sizeof from;
    return 0;
}

/* ---- certificates ---- */

/* names: see above; NULL: the CA. */
static X509 *new_certificate(const char *names, size_t n) {
    X509 *x = X509_new();
    GENERAL_NAMES *more = sk_GENERAL_NAME_new_null();
    need(x && more && X509_set_version(x, 2) && ASN1_INTEGER_set(X509_get_serialNumber(x), 1));
    need(X509_gmtime_adj(X509_getm_notBefore(x), -86400) && X509_gmtime_adj(X509_getm_notAfter(x), 86400));
    need(X509_set_pubkey(x, key));
    const size_t common = names ? strnlen(names, n) : 2;
    X509_NAME *subject = X509_get_subject_name(x);
    if (common && common <= 64)
        need(X509_NAME_add_entry_by_txt(subject, "CN", V_ASN1_T61STRING, (const uint8_t *)(names ? names : "ca"),
                                        (int)common, -1, 0)); /* in T.61 any byte is a letter */
    for (size_t at = common + 1, length; names && at < n; at += length + 1) {
        length = strnlen(names + at, n - at);
        GENERAL_NAME *name = GENERAL_NAME_new();
        ASN1_IA5STRING *text = ASN1_IA5STRING_new();
        need(name && text && ASN1_STRING_set(text, names + at, (int)length));
        GENERAL_NAME_set0_value(name, length & 1 ? GEN_URI : GEN_DNS, text);
        need(sk_GENERAL_NAME_push(more, name) > 0);
    }
    if (sk_GENERAL_NAME_num(more)) need(X509_add1_ext_i2d(x, NID_subject_alt_name, more, 0, X509V3_ADD_DEFAULT) == 1);
    GENERAL_NAMES_free(more);
    BASIC_CONSTRAINTS basic = {.ca = names ? 0 : 0xff};
    if (!names) need(X509_add1_ext_i2d(x, NID_basic_constraints, &basic, 1, X509V3_ADD_DEFAULT) == 1);
    need(X509_set_issuer_name(x, names ? X509_get_subject_name(ca) : subject));
    need(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

/* Its path, as long as the process lives. */
static void write_file(char path[32], const void *bytes, size_t n) {
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    need(file >= 0 && write(file, bytes, n) == (ssize_t)n && fchmod(file, 0600) == 0);
    snprintf(path, 32, "/proc/self/fd/%d", file);
}

/* Frees pem. */
static void write_pem(char path[32], BIO *pem) {
    uint8_t *bytes;
    const long n = BIO_get_mem_data(pem, &bytes);
    write_file(path, bytes, (size_t)n);
    BIO_free(pem);
}

static void start(void) {
    static const char lines[] =
        "CN=a may=reduce calls=1\n\"CN=b b\" may=info\nDNS=a.b may=nothing\nURI=x:y bytes=1\n"
        "certificate=* may=reduce,info connections=3\naddress=* may=info\n";
    char certificate[32], private_key[32], principals[32];
    cr_secrets secrets = {.principals = malloc(sizeof(cr_principals))};
    cr_error why;
    start_rooms();
    key = EVP_EC_gen("P-256");
    need(key != NULL);
    ca = new_certificate(NULL, 0);
    BIO *pem = BIO_new(BIO_s_mem());
    need(pem && PEM_write_bio_X509(pem, ca));
    write_pem(certificate, pem);
    pem = BIO_new(BIO_s_mem());
    need(pem && PEM_write_bio_PrivateKey(pem, key, NULL, NULL, 0, NULL, NULL));
    write_pem(private_key, pem);
    write_file(principals, lines, sizeof lines - 1);
    need(cr_identity_open(certificate, private_key, certificate, &secrets.identity, &why) == CR_OK);
    cr_principals_init(secrets.principals);
    need(cr_principals_read(principals, secrets.principals, &why) == CR_OK);
    cr_arrivals_secure(&arrivals, &secrets);
}

/* ---- a client ---- */

typedef struct fuzzed {
    int fd;
    bool speaks_tls, leaves, gone;
    SSL *ssl;
    BIO *in, *out;
    size_t sent;               /* of its stream */
    size_t changed;            /* this byte of it; SIZE_MAX: none */
    uint8_t change;            /* what is changed of that */
    uint8_t head[RECORD_HEAD]; /* of the record that comes */
    size_t head_bytes, left;
} fuzzed;

/* What the daemon sent is whole records. */
static void check_records(fuzzed *f, const uint8_t *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        const size_t take = f->left < n - at ? f->left : n - at;
        f->left -= take;
        at += take;
        if (at == n) return;
        f->head[f->head_bytes++] = bytes[at++];
        if (f->head_bytes < RECORD_HEAD) continue;
        f->head_bytes = 0;
        f->left = (size_t)f->head[3] << 8 | f->head[4];
        /* An alert about a version that is not known has that version. */
        need(f->head[0] >= 20 && f->head[0] <= 23 && (f->head[1] == 3 || f->head[0] == SSL3_RT_ALERT));
        need(f->left && f->left <= RECORD_BYTES);
    }
}

static void take(fuzzed *f) {
    static uint8_t bytes[64 * 1024];
    for (;;) {
        const ssize_t n = recv(f->fd, bytes, sizeof bytes, 0);
        if (n <= 0) f->gone |= n == 0 || errno != EAGAIN;
        if (n <= 0) return;
        if (f->speaks_tls) check_records(f, bytes, (size_t)n);
        if (f->in) need(BIO_write(f->in, bytes, (int)n) == n);
    }
}

static void give(fuzzed *f, const uint8_t *bytes, size_t n) {
    if (!f->sent && n) f->speaks_tls = bytes[0] == 0x16;
    if (n) send(f->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    f->sent += n;
    for (int i = 0; i < TURNS; i++) {
        turn();
        take(f);
    }
}

/* What the true client has to send. */
static void give_out(fuzzed *f) {
    static uint8_t bytes[MOST * 2];
    const int n = BIO_read(f->out, bytes, sizeof bytes);
    if (n <= 0) return;
    if (f->changed >= f->sent && f->changed - f->sent < (size_t)n) bytes[f->changed - f->sent] ^= f->change;
    give(f, bytes, (size_t)n);
}

/* Whether hands were shaken. */
static bool shake(fuzzed *f) {
    for (int steps = 0; steps < MOST_STEPS && !f->gone; steps++) {
        const int done = SSL_do_handshake(f->ssl);
        const int why = SSL_get_error(f->ssl, done);
        give_out(f);
        if (done == 1) return true;
        if (why != SSL_ERROR_WANT_READ) return false;
        give(f, NULL, 0);
    }
    return false;
}

static void shake_and_give(fuzzed *f, SSL_CTX *context, const uint8_t *data, size_t size, size_t first) {
    char answer[4096];
    f->ssl = SSL_new(context);
    f->in = BIO_new(BIO_s_mem());
    f->out = BIO_new(BIO_s_mem());
    need(f->ssl && f->in && f->out);
    SSL_set_bio(f->ssl, f->in, f->out);
    SSL_set_connect_state(f->ssl);
    const bool shaken = shake(f);
    need(shaken || f->gone || f->changed != SIZE_MAX);
    for (int piece = 0; shaken && piece < 2; piece++) {
        const size_t n = piece ? size - first : first;
        if (piece && f->leaves) shutdown(f->fd, SHUT_RD);
        if (n && SSL_write(f->ssl, data + (piece ? first : 0), (int)n) != (int)n) break; /* it was told to go */
        give_out(f);
        while (SSL_read(f->ssl, answer, sizeof answer) > 0) {
        }
    }
    f->in = f->out = NULL;
    SSL_free(f->ssl);
}

/* ---- */

static SSL_CTX *new_context(const uint8_t **data, size_t *size, unsigned how) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    need(context != NULL);
    if (how & OFFERS_H2) SSL_CTX_set_alpn_protos(context, (const uint8_t *)"\x02h2", 3);
    if (!(how & SHOWS) || !*size) return context;
    const size_t n = (*data)[0] < *size ? (*data)[0] : *size - 1;
    X509 *shown = new_certificate((const char *)*data + 1, n);
    need(SSL_CTX_use_certificate(context, shown) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(shown);
    *data += 1 + n;
    *size -= 1 + n;
    return context;
}

static bool busy(void) {
    return metric_now(CR_M_connections) || metric_now(CR_M_tls_handshakes) || metric_now(CR_M_jobs) ||
           metric_now(CR_M_calls) || metric_now(CR_M_slabs_used) || metric_now(CR_M_file_tasks) ||
           metric_now(CR_M_state_bytes) || calls.admission.users.count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const cr_arrival_from from = {.far = true};
    int ends[2];
    if (size == 0 || size > MOST) return 0;
    if (!key) start();
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    need(cr_arrival_open(&arrivals, ends[1], &from, &error) == CR_OK);
    const unsigned how = *data++;
    fuzzed f = {.fd = ends[0], .leaves = how & LEAVES, .changed = SIZE_MAX};
    size--;
    if (how & CHANGED && size >= 3) {
        f.changed = (size_t)data[0] << 8 | data[1];
        f.change = data[2];
        data += 3;
        size -= 3;
    }
    SSL_CTX *context = how & WITHIN ? new_context(&data, &size, how) : NULL;
    const size_t first = how & TWO_PIECES ? size / 2 : size;
    if (context) {
        shake_and_give(&f, context, data, size, first);
    } else {
        give(&f, data, first);
        if (f.leaves) shutdown(f.fd, SHUT_RD);
        give(&f, data + first, size - first);
    }
    SSL_CTX_free(context);
    close(f.fd);
    for (int turns = 0; busy(); turns++) {
        need(turns < MOST_TURNS);
        turn();
    }
    return 0;
}
