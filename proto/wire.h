/* wire: the messages of cured.proto as plain structs of fixed size. What is read and written of each is a row of fields.def or
 * parts.def; nothing here allocates, whatever a peer sends.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. Unpacked structs hold no
 * pointers into the input, but for partials and array values. pack functions return the payload's length and write at most
 * cap bytes; 0 means that it does not fit, and out holds a part of it (no message of this protocol packs to 0 bytes of payload where that matters:
 * callers give cap ≥ CR_HEAD_MAX_BYTES or know the size). unpack functions return CR_OK or INVALID_ARGUMENT with a sentence
 * that names the message and the field. */
#ifndef CURED_PROTO_WIRE_H
#define CURED_PROTO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"

/* What may be beside an array, in the order of the wire. */
typedef enum cr_beside_kind {
#define CR_BESIDE(field, KIND, message, name) CR_BESIDE_##KIND,
#include "proto/beside.def"
#undef CR_BESIDE
    CR_BESIDES
} cr_beside_kind;

typedef struct cr_beside_names {
    const char *field, *message, *name; /* name: in sentences */
} cr_beside_names;

extern const cr_beside_names cr_beside_names_of[CR_BESIDES];

/* All features that this version knows: those of feature.def, then those of beside.def. */
typedef enum cr_feature {
#define CR_FEATURE(name, NAME, sentence) CR_FEATURE_##NAME,
#include "proto/feature.def"
#undef CR_FEATURE
    CR_FEATURE_BESIDE, /* what is beside.def's first */
    CR_WIRE_FEATURES = CR_FEATURE_BESIDE + CR_BESIDES
} cr_feature;
extern const char *const cr_wire_features[CR_WIRE_FEATURES];
/* What is said of a daemon without it; "" where there is nothing to say. */
extern const char *const cr_wire_feature_lacks[CR_FEATURE_BESIDE];

/* ---- the structs of fields.def: a member for each field of one message ---- */

typedef char cr_wire_word[CR_WIRE_WORD_BYTES];

/* What stands before and behind a member's name. */
#define CR_C_U32 uint32_t,
#define CR_C_U64 uint64_t,
#define CR_C_BOOL bool,
#define CR_C_CODE uint32_t,
#define CR_C_DOUBLE double,
#define CR_C_TEXT(bytes) char, [bytes]
#define CR_C_NAME(T, count, bytes) \
    uint32_t count;                \
    char, [bytes]
#define CR_C_RAW CR_C_NAME
#define CR_C_NAMES(T, count, most, bytes) \
    uint32_t count;                       \
    char, [most][bytes]
#define CR_C_TEXTS CR_C_NAMES
#define CR_C_POINTER(T, bytes) \
    const uint8_t *, ;         \
    size_t bytes
#define CR_C_MESSAGE(T, id) cr_wire_##T,
#define CR_C_LIST(in, count, most, T, id) \
    uint32_t count;                       \
    cr_wire_##T, [most]
#define CR_DECLARE(parts, member) CR_DECLARE_(parts, member)
#define CR_DECLARE_(before, behind, member) before member behind;

#define CR_MESSAGE(id, proto, name, T) typedef struct cr_wire_##T {
#define CR_FIELD(T, number, name, kind) CR_DECLARE(CR_C_##kind, name)
#define CR_FIELD_AS(T, number, name, member, kind) CR_DECLARE(CR_C_##kind, member)
#define CR_OPTIONAL(T, number, name, kind, has) \
    bool has;                                   \
    CR_DECLARE(CR_C_##kind, name)
#define CR_MEMBER(...) __VA_ARGS__;
#define CR_ROW(T, number, name, member, kind)
#define CR_INNER(T, number, name, id)
#define CR_END(id, T) \
    }                 \
    cr_wire_##T;
#include "proto/fields.def"

#include "proto/table_end.h"

typedef struct cr_wire_names cr_wire_names;

/* ---- requests and answers: several messages are one struct (parts.def) ---- */

typedef enum cr_wire_source {
    CR_SOURCE_STREAM = 1,
    CR_SOURCE_DESCRIPTOR = 2,
    CR_SOURCE_REGION = 3,
    CR_SOURCE_REGIONS = 4, /* length: how many pieces; cr_wire_unpack_pieces has them */
    CR_SOURCE_INLINE = 5,  /* gRPC: the array is in the request, or there is no word of it */
} cr_wire_source;

/* ReduceRequest with its Input. Numbers of dtype, op, nan and overflow are passed through unchecked: what they mean is
 * the next room's business; that ops are 1 … CR_CALL_MAX_OPS is checked here. parts.def counts on the order, and
 * callers on the size. */
typedef struct cr_wire_reduce {
    uint32_t dtype, result_dtype, nan, overflow;
    uint64_t ddof;
    uint32_t op_count;
    cr_wire_source source;
    bool length_known;        /* stream and inline: length in bytes; descriptor and region: length in elements */
    bool open;                /* reading: it was said that the length is not known */
    uint32_t pieces;          /* reading and writing: of regions */
    uint64_t length;          /* valid with length_known */
    uint64_t offset;          /* descriptor and region: bytes */
    uint64_t region;          /* its number */
    uint64_t outer, n, inner; /* with has_axis */
    uint64_t first;           /* index of the first element; no axis */
    uint32_t parameters;      /* how many ops have one; cr_wire_unpack_parameters has which */
    uint32_t outputs;         /* 0, or op_count: each op's answers go to a region; cr_wire_unpack_outputs has which */
    uint32_t data_bytes;      /* reading: of ReduceRequest.data */
    uint32_t beside_bytes;    /* reading: of ReduceRequest.beside */
    uint32_t axes;            /* of layout; cr_wire_unpack_layout has them */
    uint32_t kernel_bytes;    /* reading: how many came, as all members of such names */
    bool has_axis;
    bool has_input; /* reading */
    bool statuses;  /* with has_axis: each answer has one */
    bool want_partial;
    bool unplaced;   /* the partial has no position */
    bool keyed;      /* of a merge: its partials are by key */
    bool has_layout; /* it is of a block */
    union {          /* what it takes beside its array; cr_wire_unpack_besides has it */
        bool has_beside[CR_BESIDES];
        struct {
#define CR_BESIDE(field, KIND, message, name) bool has_##field;
#include "proto/beside.def"
#undef CR_BESIDE
        };
    };
    char kernel[CR_NAME_MAX_BYTES + 1]; /* "": none is asked for by name */
    uint32_t ops[CR_CALL_MAX_OPS];
} cr_wire_reduce;

/* A further input of a request, beside its array. */
typedef struct cr_wire_beside {
    cr_wire_source source;         /* a stream, a descriptor or a region; 0: there is none */
    bool by_stream, by_descriptor; /* reading and writing: which */
    uint64_t region, offset, count;
    uint32_t dtype;           /* of offsets and keys */
    uint32_t element;         /* their bytes, which whoever knows types fills in; 0: a mask */
    bool bits, leaves_out;    /* of a mask: Mask says what these are, */
    uint64_t first;           /* and this */
    uint64_t groups, columns; /* of keys: Keys says what these are, */
    bool drop;                /* and this */
} cr_wire_beside;

/* Whether a request takes anything beside its array. */
bool cr_wire_takes_beside(const cr_wire_reduce *m);
/* The bytes that it has; UINT64_MAX: more than there can be. */
uint64_t cr_wire_beside_bytes(const cr_wire_beside *beside);

/* One piece of an array that lies in several regions. */
typedef struct cr_wire_piece {
    uint64_t region, offset; /* bytes */
    bool to_end;             /* of the last one alone */
    uint64_t count;          /* elements; 0 with to_end */
} cr_wire_piece;

/* What an op asks besides: of quantile. */
typedef struct cr_wire_parameter {
    bool given;
    double share;
    uint32_t method;
} cr_wire_parameter;

/* Which block of a larger array the input is. */
typedef struct cr_wire_layout {
    uint32_t axes; /* CR_CALL_MAX_AXES at most, the outermost first */
    uint64_t shape[CR_CALL_MAX_AXES], start[CR_CALL_MAX_AXES], extent[CR_CALL_MAX_AXES];
} cr_wire_layout;

/* Where the answers of an op along an axis are written. */
typedef struct cr_wire_output {
    uint64_t region, offset; /* bytes */
} cr_wire_output;

typedef enum cr_wire_region_kind {
    CR_SHARED_DESCRIPTOR = 1, /* memfd or file: one descriptor comes with the CALL */
    CR_SHARED_NAME = 2,
    CR_SHARED_CUDA_IPC = 3,
    CR_SHARED_CUDA_DESCRIPTOR = 4, /* one descriptor comes with the CALL */
} cr_wire_region_kind;

/* RegisterRequest; of UnregisterRequest only id. Lengths and the form of the name are checked. */
typedef struct cr_wire_region {
    uint64_t id;
    cr_wire_region_kind kind;
    bool writable;              /* answers may be written there */
    bool has_handle, has_event; /* the IPC kind always has a handle; with a descriptor it is the pointer in a pool */
    uint32_t name_bytes, device_bytes, handle_bytes, event_bytes; /* reading */
    uint64_t offset, bytes;                                       /* of CUDA kinds */
    union {
        char name[CR_SHM_NAME_MAX_BYTES + 1]; /* with its slash; "" for kinds that are neither name nor CUDA */
        struct {                              /* of CUDA kinds */
            uint8_t device[CR_DEVICE_UUID_BYTES];
            uint8_t handle[CR_DEVICE_HANDLE_BYTES], event[CR_DEVICE_HANDLE_BYTES];
        };
    };
} cr_wire_region;

typedef enum cr_wire_kind {
    CR_CALL_REDUCE = 1,
    CR_CALL_INFO = 2,
    CR_CALL_MERGE = 3,
    CR_CALL_REGISTER = 4,
    CR_CALL_UNREGISTER = 5,
    CR_CALL_STATS = 6,
    CR_CALL_SLOW_LOG = 7,
    CR_CALL_RELOAD = 8,
    CR_CALL_CONFIG = 9,
} cr_wire_kind;

typedef struct cr_wire_call {
    uint32_t timeout_ms, progress_ms;
    cr_wire_kind kind;
    union {                    /* shared: a call then fits what malloc keeps at hand (1,032 bytes) */
        cr_wire_reduce reduce; /* with CR_CALL_REDUCE; with CR_CALL_MERGE too (dtype 0, no axis, source stream) */
        cr_wire_region region; /* with CR_CALL_REGISTER and CR_CALL_UNREGISTER */
    };
} cr_wire_call;

typedef struct cr_wire_timing {
    uint64_t queue_ns, run_ns, total_ns;
} cr_wire_timing;

typedef struct cr_wire_op_result {
    uint32_t op, status, dtype;
    uint32_t value_len, at_len;
    bool inexact;
    uint8_t value[CR_WIRE_VALUE_BYTES], at[8]; /* zeros to the end: readers of a value may load a whole word */
    char message[CR_ERROR_TEXT];
} cr_wire_op_result;

typedef struct cr_wire_result {
    uint64_t count;
    cr_wire_timing timing;
    uint32_t result_count;
    /* The partial that was asked for; NULL: none. Packing reads it; unpacking points it into the payload. */
    const uint8_t *partial;
    size_t partial_len;
    uint64_t written; /* bytes of answers in regions */
    cr_wire_op_result results[CR_CALL_MAX_OPS];
} cr_wire_result;

/* The head of an ArrayPart, but for its statuses. */
enum { CR_WIRE_PART_HEAD_BYTES = 48 };

size_t cr_wire_pack_hello(const cr_wire_hello *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_welcome(const cr_wire_welcome *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_call(const cr_wire_call *m, uint8_t *out, size_t cap);
/* The same of a reduction of CR_SOURCE_REGIONS, which has m->reduce.length pieces. */
size_t cr_wire_pack_pieces(const cr_wire_call *m, const cr_wire_piece *pieces, uint8_t *out, size_t cap);
/* What a reduction may have more; of each NULL: nothing. */
typedef struct cr_wire_more {
    const cr_wire_output *outputs;       /* regions that its answers go to: op_count of them */
    const cr_wire_beside *beside;        /* what is beside its array, by kind */
    const cr_wire_parameter *parameters; /* of ops: op_count of them */
    const cr_wire_layout *layout;        /* the block that its array is */
} cr_wire_more;
/* The same of a reduction with more. */
size_t cr_wire_pack_more(const cr_wire_call *m, const cr_wire_more *more, uint8_t *out, size_t cap);
size_t cr_wire_pack_result(const cr_wire_result *m, uint8_t *out, size_t cap);
/* Whether the name is among those that a HELLO or WELCOME had. */
bool cr_wire_has_feature(const char features[][CR_NAME_MAX_BYTES + 1], uint32_t count, const char *name);
/* Packs everything of an ArrayPart but its values, which must follow: m->values is not read. 32 bytes are enough. */
size_t cr_wire_pack_part_head(const cr_wire_part *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_info(const cr_wire_info *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_registered(const cr_wire_registered *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_status(const cr_wire_status *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_progress(const cr_wire_progress *m, uint8_t *out, size_t cap);
size_t cr_wire_pack_credit(uint64_t bytes, uint8_t *out, size_t cap);

cr_status cr_wire_unpack_hello(const uint8_t *in, size_t len, cr_wire_hello *m, cr_error *error);
cr_status cr_wire_unpack_welcome(const uint8_t *in, size_t len, cr_wire_welcome *m, cr_error *error);
cr_status cr_wire_unpack_call(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error);
/* The pieces of a CALL that unpacked with CR_SOURCE_REGIONS: reduce.length of them. They are not part of the request, so that a call
 * keeps its size. */
cr_status cr_wire_unpack_pieces(const uint8_t *in, size_t len, cr_wire_piece pieces[CR_CALL_MAX_PIECES],
                                cr_error *error);
/* Where the answers of each op go, of a CALL that unpacked with outputs: reduce.op_count of them, by op. */
cr_status cr_wire_unpack_outputs(const uint8_t *in, size_t len, cr_wire_output outputs[CR_CALL_MAX_OPS],
                                 cr_error *error);
/* What a request that unpacked takes beside its array, by kind, in the form that it came in. */
typedef enum cr_wire_form { CR_FORM_CALL, CR_FORM_REDUCE, CR_FORM_HEAD } cr_wire_form;
cr_status cr_wire_unpack_besides(cr_wire_form form, const uint8_t *in, size_t len, cr_wire_beside beside[CR_BESIDES],
                                 cr_error *error);
/* The parameters of such a request, by op. */
cr_status cr_wire_unpack_parameters(cr_wire_form form, const uint8_t *in, size_t len,
                                    cr_wire_parameter parameters[CR_CALL_MAX_OPS], cr_error *error);
/* The block of such a request that has_layout. */
cr_status cr_wire_unpack_layout(cr_wire_form form, const uint8_t *in, size_t len, cr_wire_layout *layout,
                                cr_error *error);
/* Requests of gRPC, without the array or partials in them: of Reduce, of Merge, and the head of ReduceStream. They fill m as a
 * Call does, but for timeout_ms, and its source may be CR_SOURCE_INLINE. */
cr_status cr_wire_unpack_reduce(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error);
cr_status cr_wire_unpack_merge(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error);
cr_status cr_wire_unpack_head(const uint8_t *in, size_t len, cr_wire_call *m, cr_error *error);
cr_status cr_wire_unpack_info_request(const uint8_t *in, size_t len, cr_error *error);
cr_status cr_wire_unpack_stats_request(const uint8_t *in, size_t len, cr_error *error);
cr_status cr_wire_unpack_slow_log_request(const uint8_t *in, size_t len, cr_error *error);

/* One field of a message, found without unpacking: for array bytes, which are too many to copy. */
typedef struct cr_wire_field {
    uint64_t number, value; /* value: of a varint or of fixed bits, or the length of bytes */
    const uint8_t *bytes;   /* into the payload; NULL: not a length-delimited field */
    uint8_t wire;           /* protobuf's wire type */
    bool overlong;          /* its tag or its length takes more bytes than any protobuf library writes */
} cr_wire_field;

/* The field at *at, which moves behind it. False at the end, and where the payload is not well formed: *at is len only in
 * the first case. */
bool cr_wire_next_field(const uint8_t *in, size_t len, size_t *at, cr_wire_field *field);

/* Where the bytes of a message lie that come in one field of it, its last. */
typedef struct cr_wire_bulk {
    size_t head;    /* bytes of the message before that field */
    size_t at;      /* where its bytes begin */
    uint64_t bytes; /* of them */
} cr_wire_bulk;

typedef enum cr_wire_scan { CR_SCAN_MORE, CR_SCAN_NONE, CR_SCAN_BULK, CR_SCAN_BAD } cr_wire_scan;

/* Looks for the field of that number (0: for none) in a message of whole bytes, of which len are here. MORE: it has not come yet,
 * and head bytes need not be looked at again. NONE: the message is here as a whole and has none. BAD: it is not well formed. */
cr_wire_scan cr_wire_find_bulk(const uint8_t *in, size_t len, uint64_t whole, uint32_t number, cr_wire_bulk *found);
/* What comes before bytes of the field of that number in its message; 12 bytes are enough. */
size_t cr_wire_pack_field_head(uint32_t number, uint64_t bytes, uint8_t *out);
cr_status cr_wire_unpack_result(const uint8_t *in, size_t len, cr_wire_result *m, cr_error *error);
cr_status cr_wire_unpack_part(const uint8_t *in, size_t len, cr_wire_part *m, cr_error *error);
cr_status cr_wire_unpack_info(const uint8_t *in, size_t len, cr_wire_info *m, cr_error *error);
cr_status cr_wire_unpack_registered(const uint8_t *in, size_t len, cr_wire_registered *m, cr_error *error);
cr_status cr_wire_unpack_status(const uint8_t *in, size_t len, cr_wire_status *m, cr_error *error);
cr_status cr_wire_unpack_progress(const uint8_t *in, size_t len, cr_wire_progress *m, cr_error *error);
cr_status cr_wire_unpack_credit(const uint8_t *in, size_t len, uint64_t *bytes, cr_error *error);

size_t cr_wire_pack_reloaded(const cr_wire_reloaded *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_reloaded(const uint8_t *in, size_t len, cr_wire_reloaded *m, cr_error *error);

size_t cr_wire_pack_settings(const cr_wire_settings *m, uint8_t *out, size_t cap);
cr_status cr_wire_unpack_settings(const uint8_t *in, size_t len, cr_wire_settings *m, cr_error *error);

#endif
