/* tls_bare: a bare TLS loop, the floor of what a daemon can do under TLS: it takes one connection, reads it to its end, and prints
 * the bytes and the CPU seconds of its process. "send" is its other half. scripts/bench-tls alone builds and runs it.
 *
 * usage: tls_bare serve CERTIFICATE KEY    prints its port first
 *        tls_bare send PORT BYTES
 * Thread: main's. */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[1 << 20];

static void fail(const char *what) {
    fprintf(stderr, "tls_bare: %s\n", what);
    exit(1);
}

static double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static int serve(const char *certificate, const char *key) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
        fail("the certificate or the key cannot be used");
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(context, 0); /* the sender would leave them unread, and Linux drop its last bytes */
    SSL_CTX_set_read_ahead(context, 1);  /* its best: one read brings several records */
    SSL_CTX_set_default_read_buffer_len(context, 65536);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&name, sizeof name) != 0 || listen(listener, 1) != 0) fail("cannot listen");
    getsockname(listener, (struct sockaddr *)&name, &length);
    printf("%d\n", ntohs(name.sin_port));
    fflush(stdout);
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, accept(listener, NULL, NULL));
    if (SSL_accept(ssl) != 1) fail("the handshake failed");
    size_t all = 0, n;
    const double begin = cpu_seconds();
    while (SSL_read_ex(ssl, buffer, sizeof buffer, &n) == 1) all += n;
    printf("%zu %.6f\n", all, cpu_seconds() - begin);
    return 0;
}

static int send_bytes(int port, size_t left) {
    const struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&name, sizeof name) != 0) fail("cannot connect");
    SSL *ssl = SSL_new(SSL_CTX_new(TLS_client_method()));
    SSL_set_fd(ssl, fd);
    if (SSL_connect(ssl) != 1) fail("the handshake failed");
    for (size_t n; left; left -= n)
        if (SSL_write_ex(ssl, buffer, left < sizeof buffer ? left : sizeof buffer, &n) != 1)
            fail("the connection broke");
    SSL_shutdown(ssl);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "serve") == 0) return serve(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "send") == 0) return send_bytes(atoi(argv[2]), (size_t)atoll(argv[3]));
    fail("usage: tls_bare serve CERTIFICATE KEY | send PORT BYTES");
    return 1;
}
