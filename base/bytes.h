/* bytes: a buffer that grows at its end and is taken from its beginning.
 *
 * Thread: its owner's. Owner: whoever embeds it. */
#ifndef CURED_BASE_BYTES_H
#define CURED_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. */
typedef struct cr_bytes {
    uint8_t *at;
    uint32_t off, len, cap; /* [off, len) is waiting */
} cr_bytes;

static inline size_t cr_bytes_left(const cr_bytes *bytes) { return bytes->len - bytes->off; }
/* Room for at least n bytes at its end, beginning with first bytes of capacity; NULL: there is no memory, and nothing changed. */
uint8_t *cr_bytes_room(cr_bytes *bytes, size_t n, size_t first);
/* Appends a copy. False: there is no memory. */
bool cr_bytes_add(cr_bytes *bytes, const void *from, size_t n);
/* Empties it and frees its memory. */
void cr_bytes_free(cr_bytes *bytes);

#endif
