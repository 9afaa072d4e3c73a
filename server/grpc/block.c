/* block: see block.h (RFC 9113, 4.1, 6.2, 6.10; RFC 7541, 5 and 6). Thread: the loop's. Owner: the connection. */
#include "server/grpc/block.h"

#include <string.h>

enum {
    PREFACE_BYTES = 24,
    HEAD_BYTES = 9,
    HEADERS = 1,
    CONTINUATION = 9,
    PADDED = 0x8,
    PRIORITY = 0x20,
    PRIORITY_BYTES = 5,
    LONGEST = 65536,     /* of a string, for nghttp2 */
    STEP_SHIFT = 14,     /* 127 + (127 << 7) + (1 << 14) is less than that, and more than the 4 KiB of the table */
    FIELD_OF_ONE = 0x90, /* "accept-encoding: gzip, deflate", the 16th of the static table */
    NO_VALUE = 0x00,
};

enum state { FIELD, INDEX, LENGTH, LENGTH_MORE, STRING, CUT, LOST };

void cr_block_init(cr_block *block) {
    memset(block, 0, sizeof *block);
    block->skip = PREFACE_BYTES;
}

/* ---- strings ---- */

static void begin_string(cr_block *b, bool is_name) {
    b->state = LENGTH;
    b->in_name = is_name;
    b->length = b->cut = 0;
    b->far = false;
    b->shift = 0;
}

static void string_over(cr_block *b) {
    const bool long_name = b->in_name && b->cut;
    if (long_name) b->drop = true; /* its value is no value any more: there is one of no bytes already */
    if (b->in_name) {
        begin_string(b, false);
        return;
    }
    b->state = FIELD;
    b->drop = false;
}

static void length_over(cr_block *b) {
    b->left = b->length;
    b->state = STRING;
    if (!b->length) string_over(b);
}

/* A byte of a length, after the first. */
static bool more_length(cr_block *b, uint8_t *byte) {
    const bool last = !(*byte & 0x80);
    const uint32_t bits = *byte & 0x7f;
    if (b->shift > STEP_SHIFT && bits) b->far = true; /* 2 MiB */
    if (b->shift > 28 || (b->shift == 28 && bits > 0xf)) b->state = LOST;
    if (b->shift <= STEP_SHIFT) {
        const uint32_t longer = b->length + (bits << b->shift);
        if (longer > LONGEST && !b->drop) { /* only the third byte of it can make it so long */
            b->length += 1u << STEP_SHIFT;
            b->cut = longer - b->length;
            *byte = (uint8_t)((*byte & 0x80) | 1);
        } else {
            b->length = longer;
        }
    }
    b->shift += 7;
    if (!last || b->state == LOST) return true;
    if (!b->far) length_over(b);
    return !b->far;
}

/* What stands for a string that is cut: letters, or Huffman's code of so many zeros, which ends in ones. */
static uint8_t filler(const cr_block *b) {
    if (!b->huffman) return 'x';
    return b->left == 1 ? (uint8_t)((1u << b->length * 8 % 5) - 1) : 0;
}

/* ---- the block ---- */

static void begin_field(cr_block *b, uint8_t byte) {
    const uint8_t mask = byte & 0x80 ? 0x7f : byte & 0x40 ? 0x3f : byte & 0x20 ? 0x1f : 0x0f;
    const uint8_t index = byte & mask;
    b->literal = !(byte & 0x80) && (byte & 0x60) != 0x20; /* else an index alone, or a new size of the table */
    if (index == mask)
        b->state = INDEX;
    else if (b->literal)
        begin_string(b, index == 0);
}

static bool look_at(cr_block *b, uint8_t *byte) {
    const uint8_t was = *byte;
    if (b->drop && b->state != FIELD) *byte = FIELD_OF_ONE;
    switch ((enum state)b->state) {
        case FIELD:
            begin_field(b, was);
            return true;
        case INDEX:
            if (was & 0x80) return true;
            b->state = FIELD;
            if (b->literal) begin_string(b, false);
            return true;
        case LENGTH:
            b->huffman = was & 0x80;
            b->length = was & 0x7f;
            b->state = LENGTH_MORE;
            if (b->length < 0x7f) length_over(b);
            return true;
        case LENGTH_MORE: {
            uint8_t changed = was;
            const bool good = more_length(b, &changed);
            if (!b->drop) *byte = changed;
            return good;
        }
        case STRING:
            if (b->cut) *byte = filler(b);
            if (--b->left) return true;
            b->left = b->cut;
            b->state = CUT;
            if (!b->cut) string_over(b);
            return true;
        case CUT:
            *byte = b->in_name && b->left == b->cut ? NO_VALUE : FIELD_OF_ONE;
            if (!--b->left) string_over(b);
            return true;
        case LOST: /* nghttp2 ends the session */
            return true;
    }
    return true;
}

/* ---- frames ---- */

static bool begin_frame(cr_block *b) {
    const uint8_t *h = b->head, type = h[3], flags = h[4];
    const uint32_t length = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
    b->head_len = 0;
    b->skip = b->before = b->fragment = b->padding = 0;
    b->padded = false;
    if (type == CONTINUATION) {
        b->fragment = length;
        return ++b->frames <= CR_BLOCK_FRAMES;
    }
    if (type != HEADERS) {
        b->skip = length;
        return true;
    }
    b->state = FIELD;
    b->drop = false;
    b->bytes = b->frames = 0;
    b->padded = flags & PADDED;
    b->before = (b->padded ? 1 : 0) + (flags & PRIORITY ? PRIORITY_BYTES : 0);
    if (b->before > length) b->before = length;
    b->fragment = length - b->before;
    return true;
}

/* What of HEADERS comes before its fragment. */
static void look_before(cr_block *b, uint8_t byte) {
    b->before--;
    if (!b->padded) return;
    b->padded = false;
    b->padding = byte < b->fragment ? byte : b->fragment;
    b->fragment -= b->padding;
}

/* Bytes of a fragment, up to n. A long run of a string as it is takes no look at each. */
static bool look_in(cr_block *b, uint8_t *bytes, size_t n, size_t *used) {
    const size_t most = n < b->fragment ? n : b->fragment;
    size_t at = 0;
    b->bytes += (uint32_t)most;
    while (at < most) {
        if (b->state == STRING && !b->cut && !b->drop && b->left > 1) {
            const size_t run = b->left - 1 < most - at ? b->left - 1 : most - at;
            b->left -= (uint32_t)run;
            at += run;
        } else if (!look_at(b, bytes + at++)) {
            return false;
        }
    }
    b->fragment -= (uint32_t)most;
    *used = most;
    if (b->fragment == 0) {
        b->skip = b->padding;
        b->padding = 0;
    }
    return b->bytes <= CR_BLOCK_BYTES;
}

bool cr_block_look(cr_block *b, uint8_t *bytes, size_t n) {
    for (size_t at = 0; at < n;) {
        size_t used = 1;
        if (b->skip) {
            used = n - at < b->skip ? n - at : b->skip;
            b->skip -= (uint32_t)used;
        } else if (b->before) {
            look_before(b, bytes[at]);
            if (!b->before && !b->fragment) b->skip = b->padding;
        } else if (b->fragment) {
            if (!look_in(b, bytes + at, n - at, &used)) return false;
        } else {
            b->head[b->head_len++] = bytes[at];
            if (b->head_len == HEAD_BYTES && !begin_frame(b)) return false;
        }
        at += used;
    }
    return true;
}
