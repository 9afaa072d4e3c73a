/* turned: rows (the elements of one first index, together) are turned many at a time. In the file a row's elements lie
 * shape[0] elements apart, and the rows of neighbouring first indices side by side: a run of rows is read for each element.
 *
 * Thread: one. */
#include "client/cli/turned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPAN_BYTES = 1 << 20, SHORT_RUN = 4096 };

struct turned {
    int fd;
    uint64_t base;
    size_t size;
    uint32_t dims;
    const uint64_t *shape;
    uint64_t length;      /* elements of a row */
    uint64_t most;        /* rows that are held at once */
    uint64_t first, rows; /* those that are held now */
    uint8_t *held, *span;
    size_t span_bytes;
};

turned *turned_begin(int fd, uint64_t base, size_t size, uint32_t dims, const uint64_t *shape, uint64_t room) {
    turned *t = calloc(1, sizeof *t);
    if (t == NULL) return NULL;
    *t = (turned){.fd = fd, .base = base, .size = size, .dims = dims, .shape = shape, .length = 1};
    for (uint32_t d = 1; d < dims; d++) t->length *= shape[d];
    t->most = room / size / t->length;
    if (t->most == 0) t->most = 1;
    if (t->most > shape[0]) t->most = shape[0];
    /* Short runs are picked from spans of the file, which hold whole runs of all rows if those are not too long. */
    t->span_bytes = t->most * size < SHORT_RUN ? SPAN_BYTES : (size_t)t->most * size;
    t->held = malloc(t->most * t->length * size);
    t->span = malloc(t->span_bytes);
    if (t->held == NULL || t->span == NULL) {
        turned_free(t);
        return NULL;
    }
    return t;
}

void turned_free(turned *t) {
    if (t == NULL) return;
    free(t->held);
    free(t->span);
    free(t);
}

/* All of `bytes` at `at` of the array; false at an error, and with errno 0 where the file ends. */
static bool read_all(turned *t, uint64_t at, size_t bytes) {
    for (size_t have = 0; have < bytes;) {
        const ssize_t got = pread(t->fd, t->span + have, bytes - have, (off_t)(t->base + at + have));
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = 0;
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

/* Where the element of a row that stands at `place` in the file stands in C order. */
static uint64_t turn(const turned *t, uint64_t place) {
    uint64_t to = 0, stride = t->length;
    for (uint32_t d = 1; d < t->dims; d++) {
        stride /= t->shape[d];
        to += place % t->shape[d] * stride;
        place /= t->shape[d];
    }
    return to;
}

static void put(turned *t, uint64_t place, const uint8_t *run) {
    uint8_t *to = t->held + turn(t, place) * t->size;
    for (uint64_t k = 0; k < t->rows; k++) memcpy(to + k * t->length * t->size, run + k * t->size, t->size);
}

static bool hold(turned *t, uint64_t first) {
    const uint64_t apart = t->shape[0] * t->size;
    t->first = first;
    t->rows = t->shape[0] - first < t->most ? t->shape[0] - first : t->most;
    const size_t run = (size_t)t->rows * t->size;
    const uint64_t together = t->most * t->size < SHORT_RUN && apart <= t->span_bytes ? t->span_bytes / apart : 1;
    for (uint64_t place = 0; place < t->length; place += together) {
        const uint64_t runs = t->length - place < together ? t->length - place : together;
        if (!read_all(t, place * apart + first * t->size, (size_t)((runs - 1) * apart) + run)) return false;
        for (uint64_t i = 0; i < runs; i++) put(t, place + i, t->span + i * apart);
    }
    return true;
}

bool turned_read(turned *t, uint64_t at, uint8_t *out, size_t most, size_t *n) {
    const uint64_t row = t->length * t->size, first = at / row;
    *n = 0;
    if (first >= t->shape[0]) return true;
    if (first < t->first || first >= t->first + t->rows) {
        if (!hold(t, first / t->most * t->most)) {
            t->rows = 0;
            return errno == 0;
        }
    }
    const uint64_t from = at - t->first * row, left = t->rows * row - from;
    *n = left < most ? (size_t)left : most;
    memcpy(out, t->held + from, *n);
    return true;
}
