/* wire_internal: what the wire files share: the scratch area that unpacking allocates from, and the copying of
 * strings and bytes into fields of fixed size. Included by them only; protobuf-c's types end here.
 *
 * Thread: any. Owner: a scratch belongs to the function that declares it; nothing in it outlives that function. */
#ifndef CURED_PROTO_WIRE_INTERNAL_H
#define CURED_PROTO_WIRE_INTERNAL_H

#include <protobuf-c/protobuf-c.h>
#include <stdalign.h>
#include <stddef.h>

#include "cured.pb-c.h"
#include "proto/wire.h"

/* Room for the largest message that keeps its limits (a StatsResponse with every row takes about 50 KiB), and little enough
 * for a stack: a message that needs more is refused. */
enum { CR_WIRE_SCRATCH_BYTES = 64 * 1024 };

/* A bump allocator: free() does nothing, everything is gone when the caller returns. */
typedef struct cr_wire_scratch {
    ProtobufCAllocator allocator;
    size_t used;
    alignas(max_align_t) uint8_t bytes[CR_WIRE_SCRATCH_BYTES];
} cr_wire_scratch;

/* Unpacks in[0..len) into *s after cr_wire_check; NULL after filling *error. The message lives as long as *s. */
void *cr_wire_parse(cr_wire_scratch *s, const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len,
                    cr_error *error);
/* Packs m when it fits into cap bytes; 0 when it does not. */
size_t cr_wire_emit(const ProtobufCMessage *m, uint8_t *out, size_t cap);
/* The bytes of the UTF-8 character that text begins with; 0: it is the end, or nothing that may be printed. */
size_t cr_wire_printable(const char *text);
/* Copies a peer's string, cut to what fits, with control characters replaced: it will be printed by someone. */
void cr_wire_copy_text(char *out, size_t cap, const char *in);
/* The same for a name, which must fit. */
cr_status cr_wire_copy_name(char out[CR_NAME_MAX_BYTES + 1], const char *in, const char *field, cr_error *error);
/* Copies the names that fit, at most CR_WIRE_MAX_FEATURES: what is longer or beyond is an extension nobody knows. */
uint32_t cr_wire_copy_features(char out[CR_WIRE_MAX_FEATURES][CR_NAME_MAX_BYTES + 1], size_t n, char *const *in);

/* Refuses bytes that are no message of this type, and what protobuf-c would change in silence: a NUL in a string, a number
 * of more bits than its field has. */
cr_status cr_wire_check(const ProtobufCMessageDescriptor *type, const uint8_t *in, size_t len, cr_error *error);
/* For requests: UNIMPLEMENTED where a field is not known, and no hint, or is for gRPC only and this is not. cr_wire_check has
 * taken the bytes. */
cr_status cr_wire_check_known(const ProtobufCMessageDescriptor *type, bool is_grpc, const uint8_t *in, size_t len,
                              cr_error *error);

/* The varint at *at, which moves behind it; false when it is cut short or has more than 64 bits. */
bool cr_wire_get_varint(const uint8_t *in, size_t len, size_t *at, uint64_t *value);

/* Parses a request: cr_wire_check and cr_wire_check_known, then protobuf-c, into *scratch; *m is the message. */
cr_status cr_wire_parse_request(cr_wire_scratch *scratch, const ProtobufCMessageDescriptor *type, bool is_grpc,
                                const uint8_t *in, size_t len, void **m, cr_error *error);
/* may_lack_input: then it counts as inline. */
cr_status cr_wire_reduce_in(const Cured__V1__ReduceRequest *p, bool may_lack_input, cr_wire_reduce *m, cr_error *error);
cr_status cr_wire_merge_in(const Cured__V1__MergeRequest *p, cr_wire_reduce *m, cr_error *error);

/* Reads a Call that reduces an array and has no unusual field; false: ask protobuf-c (*m may have changed). */
bool cr_wire_read_plain_call(const uint8_t *in, size_t len, cr_wire_call *m);
/* The same of a ReduceRequest that may lack its input, or whose input is inline. */
bool cr_wire_read_plain_reduce(const uint8_t *in, size_t len, cr_wire_reduce *m);
/* Reads the outputs of a plain Call; false: it has none, or is unusual. */
bool cr_wire_read_plain_outputs(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS]);
/* Reads a ReduceResponse whose answers have no messages, and which has no partial; false: as above. */
bool cr_wire_read_plain_result(const uint8_t *in, size_t len, cr_wire_result *m);
/* Packs a Call that reduces one input and has no unusual field; 0: ask protobuf-c. outputs: one for each op; NULL: none. */
size_t cr_wire_write_plain_call(const cr_wire_call *m, const cr_wire_output *outputs, uint8_t *out, size_t cap);

/* RegisterRequest and UnregisterRequest. Packs call with them; checks what they say. */
size_t cr_wire_emit_region(const cr_wire_call *m, Cured__V1__Call *call, uint8_t *out, size_t cap);
cr_status cr_wire_register_in(const Cured__V1__RegisterRequest *p, cr_wire_region *m, cr_error *error);
cr_status cr_wire_unregister_in(const Cured__V1__UnregisterRequest *p, cr_wire_region *m, cr_error *error);

/* The packed form of a user, with what it points at. */
typedef struct cr_wire_user_out {
    Cured__V1__User user;
    Cured__V1__Held used, limit;
} cr_wire_user_out;
/* count users, at most CR_WIRE_MAX_USERS; their number. */
size_t cr_wire_users_out(const cr_wire_user *users, uint32_t count, cr_wire_user_out *out, Cured__V1__User **pointers);
uint32_t cr_wire_users_in(Cured__V1__User *const *from, size_t count, cr_wire_user *users);
/* Input.file_descriptor and Input.region. */
cr_status cr_wire_descriptor_in(const Cured__V1__DescriptorInput *p, cr_wire_reduce *m, cr_error *error);
cr_status cr_wire_region_in(const Cured__V1__RegionInput *p, cr_wire_reduce *m, cr_error *error);
/* Input.regions: m->length becomes how many pieces there are; pieces NULL: they are only checked. */
cr_status cr_wire_regions_in(const Cured__V1__RegionsInput *p, cr_wire_reduce *m,
                             cr_wire_piece pieces[CR_CALL_MAX_PIECES], cr_error *error);
/* wire.c: a Call that reduces them, or whose answers go there; NULL: not this. */
size_t cr_wire_emit_reduce(const cr_wire_call *m, Cured__V1__RegionsInput *regions, Cured__V1__Output **outputs,
                           uint8_t *out, size_t cap);
/* wire_outputs.c: ReduceRequest.outputs of a request whose ops are known; outputs NULL: they are only checked. */
cr_status cr_wire_outputs_in(const Cured__V1__ReduceRequest *p, cr_wire_reduce *m, cr_wire_output *outputs,
                             cr_error *error);

void cr_wire_limits_out(const cr_wire_limits *m, Cured__V1__Limits *p);
void cr_wire_limits_in(const Cured__V1__Limits *p, cr_wire_limits *m);

#endif
