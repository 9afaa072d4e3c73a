/* frame: encoding and checking of the 16-byte header; the list of types is frame.def.
 *
 * Thread: any; the only data here is a constant table. Owner: the caller owns every buffer. */
#include "proto/frame.h"

#include <string.h>

enum frame_place { CONNECTION, STREAM, EITHER };

struct frame_rule {
    const char *name;
    uint32_t max_length;
    uint8_t place;
    bool from_client, from_server;
};

/* Indexed by type; a NULL name marks a number that no type has. */
static const struct frame_rule rules[] = {
#define CR_FRAME(symbol, number, name_, max_length_, where, client, server) \
    [number] = {                                                            \
        .name = name_,                                                      \
        .max_length = max_length_,                                          \
        .place = where,                                                     \
        .from_client = client,                                              \
        .from_server = server,                                              \
    },
#include "proto/frame.def"
#undef CR_FRAME
};

enum { RULES = sizeof rules / sizeof rules[0] };

static const struct frame_rule *rule_of(uint8_t type) {
    return type < RULES && rules[type].name != NULL ? &rules[type] : NULL;
}

static void put_u16(uint8_t *out, uint16_t v) {
    out[0] = (uint8_t)v;
    out[1] = (uint8_t)(v >> 8);
}

static void put_u32(uint8_t *out, uint32_t v) {
    put_u16(out, (uint16_t)v);
    put_u16(out + 2, (uint16_t)(v >> 16));
}

static uint16_t get_u16(const uint8_t *in) { return (uint16_t)(in[0] | in[1] << 8); }

static uint32_t get_u32(const uint8_t *in) { return (uint32_t)get_u16(in) | (uint32_t)get_u16(in + 2) << 16; }

const char *cr_frame_name(uint8_t type) {
    const struct frame_rule *rule = rule_of(type);
    return rule != NULL ? rule->name : "unknown";
}

void cr_frame_put(uint8_t out[CR_FRAME_HEADER_BYTES], const cr_frame *f) {
    out[0] = 'C';
    out[1] = 'R';
    out[2] = f->version != 0 ? f->version : CR_WIRE_VERSION_MAX;
    out[3] = f->type;
    put_u16(out + 4, f->flags);
    out[6] = f->descriptors;
    out[7] = 0;
    put_u32(out + 8, f->stream);
    put_u32(out + 12, f->length);
}

/* What must hold for every frame, whatever its type. */
static cr_status check_common(const uint8_t in[CR_FRAME_HEADER_BYTES], const cr_frame *f, cr_error *error) {
    if (in[0] != 'C' || in[1] != 'R')
        return cr_fail(error, CR_INVALID_ARGUMENT, "frame magic is 0x%02x%02x, must be 0x4352 ('CR')", in[0], in[1]);
    if (f->version < CR_WIRE_VERSION_MIN || f->version > CR_WIRE_VERSION_MAX)
        return cr_fail(error, CR_UNIMPLEMENTED, "frame version is %u, supported are %d to %d", f->version,
                       CR_WIRE_VERSION_MIN, CR_WIRE_VERSION_MAX);
    if (in[7] != 0) return cr_fail(error, CR_INVALID_ARGUMENT, "frame byte 7 is %u, must be 0", in[7]);
    if ((f->flags & ~CR_FLAGS_KNOWN) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "frame flags are 0x%04x, known are 0x%04x", f->flags,
                       CR_FLAGS_KNOWN);
    return CR_OK;
}

static cr_status check_unknown(const cr_frame *f, bool *skip, cr_error *error) {
    if ((f->flags & CR_FLAG_IGNORABLE) == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "frame type %u is unknown and not marked ignorable", f->type);
    if (f->length > CR_DATA_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "frame of unknown type %u has %u bytes, limit is %d", f->type,
                       f->length, CR_DATA_MAX_BYTES);
    if (f->descriptors != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "frame of unknown type %u carries %u descriptors, limit is 0",
                       f->type, f->descriptors);
    *skip = true;
    return CR_OK;
}

static cr_status check_known(const struct frame_rule *rule, const cr_frame *f, bool from_client, cr_error *error) {
    if (from_client ? !rule->from_client : !rule->from_server)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s is not a frame that a %s sends", rule->name,
                       from_client ? "client" : "server");
    if (f->length > rule->max_length)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s frame has %u bytes, limit is %u", rule->name, f->length,
                       rule->max_length);
    if (rule->place == CONNECTION && f->stream != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s frame has stream %u, must be 0", rule->name, f->stream);
    if (rule->place == STREAM && f->stream == 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s frame has stream 0, must be at least 1", rule->name);
    unsigned limit = f->type == CR_FRAME_CALL ? CR_FRAME_MAX_DESCRIPTORS : 0;
    if (f->descriptors > limit)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s frame carries %u descriptors, limit is %u", rule->name,
                       f->descriptors, limit);
    return CR_OK;
}

cr_status cr_frame_get(const uint8_t in[CR_FRAME_HEADER_BYTES], bool from_client, cr_frame *f, bool *skip,
                       cr_error *error) {
    f->version = in[2];
    f->type = in[3];
    f->flags = get_u16(in + 4);
    f->descriptors = in[6];
    f->stream = get_u32(in + 8);
    f->length = get_u32(in + 12);
    *skip = false;
    cr_status status = check_common(in, f, error);
    if (status != CR_OK) return status;
    const struct frame_rule *rule = rule_of(f->type);
    return rule == NULL ? check_unknown(f, skip, error) : check_known(rule, f, from_client, error);
}
