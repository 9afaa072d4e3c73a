/* beside: see beside.h. Thread, owner: see there. */
#include "client/lib/call/beside.h"
#include "client/lib/call/keyed.h"

/* Only the bytes that say something are sent. */
static bool of_mask(const cured_call *call, cr_wire_beside *wire, const uint8_t **bytes) {
    const bool bits = call->mask.kind == CR_MASK_BITS;
    if (call->mask.kind == CR_MASK_NONE) return false;
    wire->bits = bits;
    wire->leaves_out = call->mask.leaves_out;
    wire->first = bits ? call->mask.first % 8 : 0;
    wire->count = call->mask_count;
    if (call->mask_count != 0) *bytes = call->mask.data + (bits ? call->mask.first / 8 : call->mask.first);
    return true;
}

static bool of_segments(const cured_call *call, cr_wire_beside *wire, const uint8_t **bytes) {
    if (call->geometry != CR_GEOMETRY_OFFSETS) return false;
    wire->count = call->offsets.count + 1;
    wire->dtype = (uint32_t)call->offsets.dtype;
    wire->element = (uint32_t)cr_dtype_size(call->offsets.dtype);
    *bytes = call->offsets.data;
    return true;
}

static bool of_keys(const cured_call *call, cr_wire_beside *wire, const uint8_t **bytes) {
    const cr_keys *keys = &call->keys;
    if (call->geometry != CR_GEOMETRY_KEYS || call->request.kind == CR_CALL_MERGE) return false;
    wire->count = keys->count;
    wire->dtype = (uint32_t)keys->dtype;
    wire->element = (uint32_t)cr_dtype_size(keys->dtype);
    wire->groups = keys->groups;
    wire->columns = keys->columns;
    wire->drop = keys->drop;
    *bytes = keys->data;
    return true;
}

static bool of_second(const cured_call *call, cr_wire_beside *wire, const uint8_t **bytes) {
    if (!call->has_second) return false;
    wire->count = call->second.count;
    wire->element = (uint32_t)cr_dtype_size((cr_dtype)call->second.dtype);
    *bytes = call->second.data;
    return true;
}

/* Whether the call takes any of each kind, what is said of it, and where its bytes are. */
static bool (*const rows[CR_BESIDES])(const cured_call *call, cr_wire_beside *wire, const uint8_t **bytes) = {
    [CR_BESIDE_MASK] = of_mask,
    [CR_BESIDE_SEGMENTS] = of_segments,
    [CR_BESIDE_KEYS] = of_keys,
    [CR_BESIDE_SECOND] = of_second,
};

/* The same of a daemon's call. */
static bool take(const cured_call *call, uint32_t kind, cr_wire_beside *wire, const uint8_t **bytes) {
    *wire = (cr_wire_beside){.count = 0};
    *bytes = NULL;
    if (call->calls->local != NULL || !rows[kind](call, wire, bytes)) return false;
    wire->source = CR_SOURCE_STREAM;
    return true;
}

bool cr_cl_beside_sends(const cured_call *call) {
    cr_wire_beside wire;
    const uint8_t *bytes;
    bool any = false;
    for (uint32_t kind = 0; kind < CR_BESIDES; kind++) any |= take(call, kind, &wire, &bytes);
    return any;
}

static bool in_turn(const cured_call *call) {
    return call->has_second && call->calls->local == NULL && (call->kind == KIND_BUFFER || call->kind == KIND_STREAM);
}

bool cr_cl_beside_in_turn(const cured_call *call, bool *is_second, uint64_t *bytes) {
    if (!in_turn(call)) return false;
    const uint64_t all = call->second.count * cr_dtype_size((cr_dtype)call->second.dtype);
    uint64_t end = call->second_sent / CR_PAIR_BLOCK_BYTES * CR_PAIR_BLOCK_BYTES + CR_PAIR_BLOCK_BYTES;
    if (end > all) end = all;
    *is_second = call->first_sent == end;
    *bytes = (*is_second ? call->first_sent : end) - (*is_second ? call->second_sent : call->first_sent);
    return true;
}

/* How many bytes the next kind has that has any, from *kind on, which moves behind it; 0: none has. */
static size_t next_bytes(const cured_call *call, uint32_t *kind, const uint8_t **bytes) {
    cr_wire_beside wire;
    while (*kind < CR_BESIDES) {
        const uint32_t now = (*kind)++;
        if (now == CR_BESIDE_SECOND && in_turn(call)) continue;
        if (take(call, now, &wire, bytes) && cr_wire_beside_bytes(&wire) != 0)
            return (size_t)cr_wire_beside_bytes(&wire);
    }
    return 0;
}

bool cr_cl_beside_is_last(const cured_call *call) {
    const uint8_t *bytes;
    uint32_t kind = call->beside_kind;
    return next_bytes(call, &kind, &bytes) == 0;
}

void cr_cl_beside_next(cured_call *call) {
    if (call->beside_len == 0) call->beside_len = next_bytes(call, &call->beside_kind, &call->beside);
}

void cr_cl_beside_restart(cured_call *call) {
    call->beside_len = call->beside_kind = 0;
    call->first_sent = call->second_sent = 0;
    cr_cl_beside_next(call);
}

bool cr_cl_beside_asks(const cured_call *call) {
    bool any = false;
    for (uint32_t i = 0; call->ranked != NULL && call->calls->local == NULL && i < call->value_count; i++)
        any |= cr_op_takes_share((cr_op)call->values[i].op);
    return any;
}

static bool has_block(const cured_call *call) { return call->block != NULL; }

static bool makes_keyed(const cured_call *call) { return cr_cl_keyed_asks(call) && !cr_cl_keyed_merges(call); }

static bool has_keyed_pairs(const cured_call *call) { return call->has_second && call->geometry == CR_GEOMETRY_KEYS; }

static bool ranks_many(const cured_call *call) {
    return call->ranked != NULL && (call->geometry == CR_GEOMETRY_OFFSETS || call->geometry == CR_GEOMETRY_KEYS);
}

/* What wants a feature of feature.def, without which the call cannot be. */
static bool (*const wants[CR_FEATURE_BESIDE])(const cured_call *call) = {
    [CR_FEATURE_PARAMETERS] = cr_cl_beside_asks,
    [CR_FEATURE_LAYOUT] = has_block,
    [CR_FEATURE_KEYED] = makes_keyed,
    [CR_FEATURE_MERGE_KEYED] = cr_cl_keyed_merges,
    [CR_FEATURE_KEYED_PAIRS] = has_keyed_pairs,
    [CR_FEATURE_RANKED_MANY] = ranks_many,
};

cr_status cr_cl_beside_check(const cured_call *call, cr_error *error) {
    cr_wire_beside wire;
    const uint8_t *bytes;
    if (call->ranked != NULL && call->calls->local == NULL && call->pieces != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "ops: medians and quantiles are of one array, and not of several regions together");
    if (call->block != NULL && call->pieces != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "layout: not with several regions; reduce each of them by itself, with the block that it is");
    for (uint32_t kind = 0; kind < CR_BESIDES; kind++) {
        const char *const name = cr_beside_names_of[kind].name;
        if (!take(call, kind, &wire, &bytes)) continue;
        if (call->pieces != NULL)
            return cr_fail(error, CR_INVALID_ARGUMENT,
                           "%s: not with several regions; reduce each of them with its part of the %s", name, name);
        if (!call->calls->has[CR_FEATURE_BESIDE + kind])
            return cr_fail(
                error, CR_UNIMPLEMENTED,
                "%s: this daemon is too old to take any; a connection to \"embedded:\" does, in this process", name);
    }
    for (int i = 0; i < CR_FEATURE_BESIDE; i++)
        if (wants[i] != NULL && wants[i](call) && !call->calls->has[i])
            return cr_fail(error, CR_UNIMPLEMENTED, "%s; a connection to \"embedded:\" does, in this process",
                           cr_wire_feature_lacks[i]);
    return CR_OK;
}

size_t cr_cl_beside_pack(const cured_call *call, const cr_wire_output *outputs, uint8_t *out, size_t cap) {
    cr_wire_beside beside[CR_BESIDES];
    cr_wire_parameter parameters[CR_CALL_MAX_OPS];
    const uint8_t *bytes;
    const bool asks = cr_cl_beside_asks(call);
    for (uint32_t kind = 0; kind < CR_BESIDES; kind++) take(call, kind, &beside[kind], &bytes);
    for (uint32_t i = 0; asks && i < call->value_count; i++) {
        const cr_quantile_item *item = &call->ranked->items[i];
        parameters[i] = (cr_wire_parameter){cr_op_takes_share((cr_op)call->values[i].op), item->share, item->method};
    }
    const cr_wire_more more = {outputs, beside, asks ? parameters : NULL,
                               call->block != NULL ? &call->block->wire : NULL};
    return cr_wire_pack_more(&call->request, &more, out, cap);
}
