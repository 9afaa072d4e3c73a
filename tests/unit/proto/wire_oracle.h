/* wire_oracle: protobuf-c beside proto/wire_read.c and wire_write.c: the same bytes read by both, and what one writes read by the
 * other.
 *
 * Thread: one. Owner: the caller's bytes. */
#ifndef CURED_TESTS_UNIT_PROTO_WIRE_ORACLE_H
#define CURED_TESTS_UNIT_PROTO_WIRE_ORACLE_H

#include <protobuf-c/protobuf-c.h>

#include "proto/wire_table.h"

typedef struct wire_oracle {
    const char *name;
    const cr_wire_message *message;
    const cr_wire_row *rows; /* the last has the number 0 */
    size_t row_count, bytes; /* bytes: of the struct */
    const ProtobufCMessageDescriptor *type;
} wire_oracle;

/* Every message of fields.def and parts.def. */
size_t wire_oracle_all(const wire_oracle **all);
/* What a row of type MESSAGE, LIST or COUNTED holds. */
const wire_oracle *wire_oracle_of_row(const cr_wire_row *row);
/* Reads in[0..len) both ways, and writes what was read. NULL: both agree, and *status is what they say; or how they differ. */
const char *wire_oracle_differs(const wire_oracle *o, cr_wire_manner manner, const uint8_t *in, size_t len,
                                cr_status *status);

#endif
