/* frame: the 16-byte header in front of everything on a native connection (proto/PROTOCOL.md, "Frames").
 *
 *   'C' 'R' | u8 version | u8 type | u16 flags | u8 descriptors | u8 0 | u32 stream | u32 length      little-endian
 *
 * Thread: any; nothing here holds state, allocates or does I/O. */
#ifndef CURED_PROTO_FRAME_H
#define CURED_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"

typedef enum cr_frame_type {
#define CR_FRAME(symbol, number, name, max_length, where, from_client, from_server) CR_FRAME_##symbol = (number),
#include "proto/frame.def"
#undef CR_FRAME
} cr_frame_type;

enum {
    CR_FLAG_END = 1 << 0,       /* the sender's last frame on this stream */
    CR_FLAG_IGNORABLE = 1 << 1, /* a receiver that does not know the type skips the frame */
    CR_FLAGS_KNOWN = CR_FLAG_END | CR_FLAG_IGNORABLE,
};

typedef struct cr_frame {
    uint8_t version; /* set by cr_frame_put to CR_WIRE_VERSION_MAX when 0 */
    uint8_t type;
    uint16_t flags;
    uint8_t descriptors;
    uint32_t stream;
    uint32_t length;
} cr_frame;

/* "DATA"; "unknown" for a type outside the list. */
const char *cr_frame_name(uint8_t type);
/* Writes the header of f to out[0..16). */
void cr_frame_put(uint8_t out[CR_FRAME_HEADER_BYTES], const cr_frame *f);
/* Reads and checks a header: magic, version, reserved byte, known flags, the type's own length limit, whether the type
 * lives on a stream (stream != 0) or on the connection (stream 0), descriptors (CALL only, at most
 * CR_FRAME_MAX_DESCRIPTORS), and whether this side may receive it. An unknown type passes only with IGNORABLE and a
 * length within CR_DATA_MAX_BYTES (then *skip is true). INVALID_ARGUMENT names the field and its limit; UNIMPLEMENTED a
 * version outside [CR_WIRE_VERSION_MIN, CR_WIRE_VERSION_MAX]. A failed header ends the connection: there is no way to
 * find the next frame. */
cr_status cr_frame_get(const uint8_t in[CR_FRAME_HEADER_BYTES], bool from_client, cr_frame *f, bool *skip,
                       cr_error *error);

#endif
