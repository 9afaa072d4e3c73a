/* http: cuts the bytes of a client into requests of HTTP/1.x, by llhttp, one at a time.
 *
 * No socket and no clock: a connection brings bytes and asks whether a request is whole. Only what reads is known here: a request
 * with a body, a method other than GET and HEAD, or a head that is too long is whole at once, with the status that says so.
 * Thread: the loop's. Owner: the connection. */
#ifndef CURED_SERVER_ADMIN_HTTP_H
#define CURED_SERVER_ADMIN_HTTP_H

#include <llhttp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CR_HTTP_HEAD_BYTES = 8 * 1024, /* of one request: its line and its headers */
    CR_HTTP_TARGET_BYTES = 1024,   /* of the request line's target */
    CR_HTTP_HOST_BYTES = 256,
    CR_HTTP_TOKEN_BYTES = 512,
    CR_HTTP_NAME_BYTES = 20, /* of a header's name that is looked at */
};

typedef struct cr_http_request {
    uint16_t status; /* 0: the request is good; else what to answer, because of why */
    const char *why;
    bool head; /* HEAD: the answer has no body */
    bool keep; /* the connection stays for another request */
    bool has_host;
    char path[CR_HTTP_TARGET_BYTES + 1]; /* without the query */
    char host[CR_HTTP_HOST_BYTES + 1];   /* as the client named the daemon, with its port */
    char token[CR_HTTP_TOKEN_BYTES + 1]; /* of "Authorization: Bearer TOKEN"; "": none */
} cr_http_request;

typedef struct cr_http {
    llhttp_t parser;
    cr_http_request request;
    size_t bytes; /* of the request so far */
    bool whole;
    bool encoded, authorized;      /* a Transfer-Encoding, an Authorization came */
    char last;                     /* byte before the next */
    char name[CR_HTTP_NAME_BYTES]; /* of the header that is being read */
    size_t name_len, value_len;
    char value[CR_HTTP_TOKEN_BYTES + 16];
} cr_http;

void cr_http_init(cr_http *http);
/* Takes up to n bytes; *used: how many. True: http->request is whole, and cr_http_next must come before more bytes. After one with
 * a status the bytes behind it mean nothing. */
bool cr_http_read(cr_http *http, const uint8_t *bytes, size_t n, size_t *used);
/* The request was answered. */
void cr_http_next(cr_http *http);
/* Whether a request has begun. */
static inline bool cr_http_begun(const cr_http *http) { return http->bytes > 0; }
/* Whether a name or address, with a port or without, can only mean this machine, or is no name that somebody else gives an address
 * to: an IP number, or localhost. */
bool cr_http_host_is_number(const char *host);

#endif
