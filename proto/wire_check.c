/* wire_check: what protobuf-c takes in silence and this protocol refuses. protobuf-c ends a string at its first NUL and
 * cuts a number to the 32 bits of its field: both would make something else of what the peer said. It also passes over
 * fields that it does not know, which in a request could change the answer.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire_internal.h"

typedef unsigned long long ull;

static cr_status check_number(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                              uint64_t value, cr_error *error) {
    bool fits = true;
    if (field->type == PROTOBUF_C_TYPE_UINT32) fits = value <= UINT32_MAX;
    /* Enums are signed, and negative ones have 64 bits on the wire. */
    if (field->type == PROTOBUF_C_TYPE_ENUM) fits = value <= INT32_MAX || value >= UINT64_MAX - INT32_MAX;
    if (fits) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s.%s is %llu, which is no number of 32 bits", type->short_name,
                   field->name, (ull)value);
}

static cr_status check_packed(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                              const uint8_t *in, size_t len, cr_error *error) {
    uint64_t value;
    cr_status status = CR_OK;
    for (size_t at = 0; status == CR_OK && at < len;) {
        if (!cr_wire_get_varint(in, len, &at, &value))
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s.%s has a number of more than 64 bits", type->short_name,
                           field->name);
        status = check_number(type, field, value, error);
    }
    return status;
}

static cr_status check_field(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                             const cr_wire_field *found, cr_error *error) {
    size_t len = (size_t)found->value;
    if (found->bytes == NULL) return check_number(type, field, found->value, error);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) return cr_wire_check(field->descriptor, found->bytes, len, error);
    if (field->type == PROTOBUF_C_TYPE_ENUM) return check_packed(type, field, found->bytes, len, error);
    if (field->type == PROTOBUF_C_TYPE_STRING && memchr(found->bytes, '\0', len) != NULL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s.%s has a NUL byte, strings have none", type->short_name,
                       field->name);
    return CR_OK;
}

static const ProtobufCFieldDescriptor *known_field(const ProtobufCMessageDescriptor *type, uint64_t number) {
    return number <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(type, (unsigned)number) : NULL;
}

cr_status cr_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len, cr_error *error) {
    size_t at = 0;
    cr_wire_field found;
    cr_status status = CR_OK;
    if (len > CR_DATA_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %zu bytes, limit is %d", type->short_name, len,
                       CR_DATA_MAX_BYTES);
    while (status == CR_OK && cr_wire_next_field(in, len, &at, &found)) {
        const ProtobufCFieldDescriptor *field = known_field(type, found.number);
        if (field != NULL) status = check_field(type, field, &found, error);
    }
    if (status == CR_OK && at != len)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s is not a valid protobuf message", type->short_name);
    return status;
}

enum { FIRST_HINT = 64, LAST_HINT = 99 }; /* numbers of fields of requests that may be ignored */

static const struct reserved {
    const ProtobufCMessageDescriptor *type;
    uint32_t number;
    const char *name;
} reserved[] = {
#define CR_RESERVED(message, number, name) {&cured__v1__##message##__descriptor, number, name},
#include "proto/reserved.def"
#undef CR_RESERVED
};

/* Refuses a field of a request that this program does not know, unless it is a hint. */
static cr_status check_unknown(const ProtobufCMessageDescriptor *type, uint64_t number, cr_error *error) {
    if (number >= FIRST_HINT && number <= LAST_HINT) return CR_OK;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (reserved[i].type == type && reserved[i].number == number)
            return cr_fail(error, CR_UNIMPLEMENTED, "%s.%s (field %llu) is not in this server", type->short_name,
                           reserved[i].name, (ull)number);
    return cr_fail(error, CR_UNIMPLEMENTED, "%s has field %llu, which this server does not know", type->short_name,
                   (ull)number);
}

/* Fields whose bytes come in DATA where the protocol is ours. */
static const struct {
    const ProtobufCMessageDescriptor *type;
    uint32_t number;
} of_grpc[] = {
    {&cured__v1__reduce_request__descriptor, 100},
    {&cured__v1__merge_request__descriptor, 100},
    {&cured__v1__input__descriptor, 5},
};

static cr_status check_own(const ProtobufCMessageDescriptor *type, const ProtobufCFieldDescriptor *field,
                           cr_error *error) {
    for (size_t i = 0; i < sizeof of_grpc / sizeof of_grpc[0]; i++)
        if (of_grpc[i].type == type && of_grpc[i].number == field->id)
            return cr_fail(error, CR_UNIMPLEMENTED,
                           "%s.%s (field %u) is for gRPC; over this protocol its bytes come in DATA", type->short_name,
                           field->name, field->id);
    return CR_OK;
}

cr_status cr_wire_check_known(const ProtobufCMessageDescriptor *type, bool is_grpc, const uint8_t *in, size_t len,
                              cr_error *error) {
    size_t at = 0;
    cr_wire_field found;
    cr_status status = CR_OK;
    while (status == CR_OK && cr_wire_next_field(in, len, &at, &found)) {
        const ProtobufCFieldDescriptor *field = known_field(type, found.number);
        if (field == NULL)
            status = check_unknown(type, found.number, error);
        else if (!is_grpc && (status = check_own(type, field, error)) != CR_OK)
            break;
        else if (field->type == PROTOBUF_C_TYPE_MESSAGE && found.bytes != NULL)
            status = cr_wire_check_known(field->descriptor, is_grpc, found.bytes, (size_t)found.value, error);
    }
    return status;
}
