/* Any bytes as what an operator's client sends: requests are cut out of them within their limits, and are the same however the bytes
 * come: all at once, or one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/admin/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 * 1024, REQUESTS = 64 };

typedef struct seen {
    cr_http_request requests[REQUESTS];
    size_t count, used;
} seen;

static void need(bool good) {
    if (!good) abort();
}

static void check(const cr_http_request *r) {
    need(memchr(r->path, '\0', sizeof r->path) && memchr(r->host, '\0', sizeof r->host));
    need(memchr(r->token, '\0', sizeof r->token) != NULL);
    (void)cr_http_host_is_number(r->host);
    if (r->status) {
        need(r->status >= 400 && r->status < 600 && r->why && *r->why && !r->keep);
        return;
    }
    need(r->path[0] == '/' && !strpbrk(r->path, "?#"));
}

/* Until the bytes are taken, a request is bad, or there are too many. */
static void read_all(seen *s, const uint8_t *data, size_t size, size_t step) {
    static cr_http http;
    cr_http_init(&http);
    *s = (seen){0};
    while (s->used < size && s->count < REQUESTS) {
        size_t used, n = size - s->used < step ? size - s->used : step;
        /* A copy of just so many bytes: a read beyond them is noticed. */
        uint8_t *piece = malloc(n);
        need(piece != NULL);
        memcpy(piece, data + s->used, n);
        const bool whole = cr_http_read(&http, piece, n, &used);
        free(piece);
        need(used <= n && (whole || used == n) && http.bytes <= CR_HTTP_HEAD_BYTES);
        s->used += used;
        if (!whole) continue;
        check(&http.request);
        s->requests[s->count++] = http.request;
        if (http.request.status) return;
        cr_http_next(&http);
    }
}

static bool same(const cr_http_request *a, const cr_http_request *b) {
    return a->status == b->status && a->head == b->head && a->keep == b->keep &&
           (a->status || (!strcmp(a->path, b->path) && !strcmp(a->host, b->host) && !strcmp(a->token, b->token)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static seen whole, pieces;
    if (size > MOST) return 0;
    read_all(&whole, data, size, MOST);
    read_all(&pieces, data, size, 1);
    need(whole.count == pieces.count);
    for (size_t i = 0; i < whole.count; i++) need(same(&whole.requests[i], &pieces.requests[i]));
    return 0;
}
