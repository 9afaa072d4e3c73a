/* bytes: see bytes.h. Thread: its owner's. Owner: whoever embeds it. */
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

uint8_t *cr_bytes_room(cr_bytes *b, size_t n, size_t first) {
    if (b->cap - b->len < n && b->off && b->off >= b->len / 2) {
        /* A reader that never takes all: once half of the bytes were taken, the rest moves to the front. */
        memmove(b->at, b->at + b->off, b->len - b->off);
        b->len -= b->off;
        b->off = 0;
    }
    if (b->cap - b->len < n) {
        size_t cap = b->cap ? b->cap : first;
        while (cap - b->len < n) cap *= 2;
        uint8_t *at = cap <= UINT32_MAX ? realloc(b->at, cap) : NULL;
        if (!at) return NULL;
        b->at = at;
        b->cap = (uint32_t)cap;
    }
    return b->at + b->len;
}

bool cr_bytes_add(cr_bytes *b, const void *from, size_t n) {
    uint8_t *to = n ? cr_bytes_room(b, n, n < 64 ? 64 : n) : b->at;
    if (!to) return !n;
    memcpy(to, from, n);
    b->len += (uint32_t)n;
    return true;
}

void cr_bytes_free(cr_bytes *b) {
    free(b->at);
    *b = (cr_bytes){0};
}
