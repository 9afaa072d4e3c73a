/* Any payload for every message: the first byte picks the message. What is understood is packed and understood again, to the
 * same bytes; what is refused has a sentence. The last number picks messages that are compared with protobuf-c. */
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "proto/wire_stats.h"
#include "tests/unit/proto/wire_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CAP = 64 * 1024 };
static uint8_t first[CAP], second[CAP];

#define TRY(name, type)                                                                                      \
    static void try_##name(const uint8_t *in, size_t len) {                                                  \
        static type m, n;                                                                                    \
        cr_error e = {CR_OK, ""};                                                                            \
        memset(&m, 0xa5, sizeof m);                                                                          \
        memset(&n, 0x5a, sizeof n);                                                                          \
        if (cr_wire_unpack_##name(in, len, &m, &e) != CR_OK) {                                               \
            if ((e.code != CR_INVALID_ARGUMENT && e.code != CR_UNIMPLEMENTED) || e.text[0] == '\0') abort(); \
            return;                                                                                          \
        }                                                                                                    \
        size_t a = cr_wire_pack_##name(&m, first, CAP);                                                      \
        if (a == 0) return; /* an empty message */                                                           \
        if (cr_wire_unpack_##name(first, a, &n, &e) != CR_OK) abort();                                       \
        size_t b = cr_wire_pack_##name(&n, second, CAP);                                                     \
        if (a != b || memcmp(first, second, a) != 0) abort();                                                \
    }
TRY(hello, cr_wire_hello)
TRY(welcome, cr_wire_welcome)
TRY(call, cr_wire_call)
TRY(result, cr_wire_result)
TRY(info, cr_wire_info)
TRY(stats, cr_wire_stats)
TRY(slow_log, cr_wire_slow_log)
TRY(status, cr_wire_status)
TRY(progress, cr_wire_progress)
TRY(registered, cr_wire_registered)

static void try_credit(const uint8_t *in, size_t len) {
    uint64_t bytes;
    cr_error e = {CR_OK, ""};
    if (cr_wire_unpack_credit(in, len, &bytes, &e) != CR_OK && e.text[0] == '\0') abort();
}

/* The next two bytes pick any message of the tables and a manner: it is read and written as by protobuf-c. */
static void try_oracle(const uint8_t *in, size_t len) {
    const wire_oracle *all;
    const size_t count = wire_oracle_all(&all);
    cr_status status;
    if (len < 2 || len > CAP / 8) return;
    if (wire_oracle_differs(&all[in[0] % count], (cr_wire_manner)(in[1] % 3), in + 2, len - 2, &status) != NULL)
        abort();
}

static bool same_beside(const cr_wire_beside *a, const cr_wire_beside *b) {
    return a->source == b->source && (a->region == b->region || a->source != CR_SOURCE_REGION) &&
           a->offset == b->offset && a->count == b->count && a->first == b->first && a->bits == b->bits &&
           a->leaves_out == b->leaves_out && a->dtype == b->dtype && a->groups == b->groups &&
           a->columns == b->columns && a->drop == b->drop;
}

/* What was taken once is taken again, and comes back from its own bytes. */
static void try_more(const uint8_t *in, size_t len) {
    static cr_wire_call m, n;
    cr_wire_output from[CR_CALL_MAX_OPS], back[CR_CALL_MAX_OPS];
    cr_wire_beside beside[CR_BESIDES], same[CR_BESIDES];
    cr_error e;
    if (cr_wire_unpack_call(in, len, &m, &e) != CR_OK || m.kind != CR_CALL_REDUCE) return;
    const bool writes = m.reduce.outputs != 0, takes = cr_wire_takes_beside(&m.reduce), asks = m.reduce.parameters != 0;
    cr_wire_parameter asked[CR_CALL_MAX_OPS], again[CR_CALL_MAX_OPS];
    cr_wire_layout layout, same_layout;
    const bool lies = m.reduce.has_layout;
    if (!writes && !takes && !asks && !lies) return;
    memset(&layout, 0, sizeof layout);
    memset(&same_layout, 0, sizeof same_layout);
    if (lies && cr_wire_unpack_layout(CR_FORM_CALL, in, len, &layout, &e) != CR_OK) abort();
    if (asks && cr_wire_unpack_parameters(CR_FORM_CALL, in, len, asked, &e) != CR_OK) abort();
    if (writes && (m.reduce.outputs != m.reduce.op_count || cr_wire_unpack_outputs(in, len, from, &e) != CR_OK))
        abort();
    if (takes && cr_wire_unpack_besides(CR_FORM_CALL, in, len, beside, &e) != CR_OK) abort();
    if (m.reduce.has_mask && cr_wire_beside_bytes(&beside[CR_BESIDE_MASK]) == UINT64_MAX) abort();
    if (m.reduce.source == CR_SOURCE_REGIONS || m.reduce.source == CR_SOURCE_INLINE) return;
    const cr_wire_more more = {writes ? from : NULL, takes ? beside : NULL, asks ? asked : NULL, lies ? &layout : NULL};
    size_t bytes = cr_wire_pack_more(&m, &more, first, CAP);
    if (bytes == 0 || cr_wire_unpack_call(first, bytes, &n, &e) != CR_OK || n.reduce.outputs != m.reduce.outputs ||
        n.reduce.parameters != m.reduce.parameters ||
        memcmp(n.reduce.has_beside, m.reduce.has_beside, sizeof n.reduce.has_beside) != 0)
        abort();
    if (lies && (cr_wire_unpack_layout(CR_FORM_CALL, first, bytes, &same_layout, &e) != CR_OK ||
                 memcmp(&layout, &same_layout, sizeof layout) != 0))
        abort();
    if (takes && cr_wire_unpack_besides(CR_FORM_CALL, first, bytes, same, &e) != CR_OK) abort();
    for (int kind = 0; takes && kind < CR_BESIDES; kind++)
        if (!same_beside(&beside[kind], &same[kind])) abort();
    if (asks && cr_wire_unpack_parameters(CR_FORM_CALL, first, bytes, again, &e) != CR_OK) abort();
    for (uint32_t i = 0; asks && i < m.reduce.op_count; i++)
        if (asked[i].given != again[i].given || (asked[i].given && asked[i].method != again[i].method)) abort();
    if (!writes) return;
    if (cr_wire_unpack_outputs(first, bytes, back, &e) != CR_OK) abort();
    for (uint32_t i = 0; i < m.reduce.outputs; i++)
        if (from[i].region != back[i].region || from[i].offset != back[i].offset) abort();
}

static void try_calls(const uint8_t *in, size_t len) {
    static cr_wire_call m;
    const bool asks =
        cr_wire_unpack_call(in, len, &m, NULL) == CR_OK && m.kind == CR_CALL_REDUCE && m.reduce.parameters != 0;
    if (!asks) try_call(in, len); /* which writes no parameters, and without these no op comes twice */
    try_more(in, len);
}

/* Its values must lie within the payload. */
static void try_part(const uint8_t *in, size_t len) {
    cr_wire_part m;
    cr_error e = {CR_OK, ""};
    if (cr_wire_unpack_part(in, len, &m, &e) != CR_OK) return;
    if (m.op >= CR_CALL_MAX_OPS) abort();
    if (m.values != NULL && (m.values < in || m.values_len > len || m.values + m.values_len > in + len)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const tries[])(const uint8_t *, size_t) = {
        try_hello,  try_welcome, try_calls,      try_result, try_info,     try_status, try_progress,
        try_credit, try_part,    try_registered, try_stats,  try_slow_log, try_oracle};
    if (size == 0) return 0;
    tries[data[0] % (sizeof tries / sizeof tries[0])](data + 1, size - 1);
    return 0;
}
