/* wire_table: fields.def and parts.def as tables.
 *
 * Thread: any; constants only. */
#include "proto/wire_table.h"

#define CR_MESSAGE(id, proto, text, T)        \
    static const char name_of_##id[] = #text; \
    static const cr_wire_row rows_of_##id[] = {
#define CR_EMIT(no, ...) {__VA_ARGS__},
#define CR_TABLE(id, T, from, size)                                                                                \
    { .number = 0 }                                                                                                \
    }                                                                                                              \
    ;                                                                                                              \
    const cr_wire_message cr_message_##id = {                                                                      \
        name_of_##id, rows_of_##id, cr_read_##id, cr_write_##id, sizeof rows_of_##id / sizeof rows_of_##id[0] - 1, \
        from,         size};
#include "proto/table_rows.h"

#include "proto/fields.def"

#include "proto/parts.def"

#include "proto/table_end.h"
