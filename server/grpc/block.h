/* block: looks at header blocks before nghttp2 does, so that a field which is too long costs its request and not the connection.
 *
 * nghttp2 bears no string of more than 64 KiB in a block: it ends the session with COMPRESSION_ERROR. Such a string is shortened in place, to
 * one that empties the table of the block's fields as the long one would, and what is left of its bytes becomes fields of one byte
 * each. So both ends keep the same table, and the request, whose headers are far too long either way, is reset.
 *
 *   frame heads ─HEADERS, CONTINUATION─► FIELD ──► an index | a name, a value ──► FIELD
 *
 * Thread: the loop's. Owner: the connection. */
#ifndef CURED_SERVER_GRPC_BLOCK_H
#define CURED_SERVER_GRPC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CR_BLOCK_BYTES = 128 * 1024, /* of one header block: 16 KiB in HEADERS and in each CONTINUATION */
    CR_BLOCK_FRAMES = 8,         /* its CONTINUATIONs; nghttp2 takes no more */
};

typedef struct cr_block {
    uint32_t skip;   /* bytes that are no header block's: the preface, other frames, padding */
    uint32_t before; /* of HEADERS: the length of its padding, and its priority */
    uint32_t fragment, padding;
    uint8_t head[9], head_len;
    bool padded;
    uint8_t state; /* of the block, as in block.c */
    bool literal, in_name, huffman, drop, far;
    uint8_t shift;
    uint32_t bytes, frames; /* of the block so far */
    uint32_t length, left,
        cut; /* of a string: as nghttp2 sees it, and what of it is to come; bytes behind it that it does not see */
} cr_block;

void cr_block_init(cr_block *block);
/* The next n bytes of the client's, which may be changed. False: the block is too long, and nothing of it can be looked at. */
bool cr_block_look(cr_block *block, uint8_t *bytes, size_t n);

#endif
