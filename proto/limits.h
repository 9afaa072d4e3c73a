/* limits: every bound of the wire, in one place. What an administrator may change is in base/options.def.
 *
 * Thread: any; constants only. */
#ifndef CURED_PROTO_LIMITS_H
#define CURED_PROTO_LIMITS_H

enum {
    CR_WIRE_VERSION_MIN = 1,
    CR_WIRE_VERSION_MAX = 1,
    CR_FRAME_HEADER_BYTES = 16,
    CR_HEAD_MAX_BYTES = 64 * 1024,   /* protobuf in one HELLO, WELCOME, CALL, RESULT, STATUS, PROGRESS or CREDIT */
    CR_DATA_MAX_BYTES = 1024 * 1024, /* array bytes in one DATA (and, in array results, one RESULT) */
    CR_PING_MAX_BYTES = 64,
    CR_FRAME_MAX_DESCRIPTORS = 4,
    CR_CONN_MAX_DESCRIPTORS = 8, /* received and not yet taken by a frame */
    CR_CALL_MAX_OPS = 32,
    CR_CALL_MAX_AXES = 32,                     /* of the array that a block is part of */
    CR_CALL_MAX_PIECES = 16,                   /* regions that one call reduces together */
    CR_PAIR_BLOCK_BYTES = 256 * 1024,          /* of an array in DATA, then of its second array, in turn */
    CR_CREDIT_INITIAL_BYTES = 4 * 1024 * 1024, /* DATA a client may send on a new stream before the first CREDIT */
    CR_NAME_MAX_BYTES = 64,                    /* client and server names, feature names */
    CR_TOKEN_MAX_BYTES = 128,                  /* with its name */
    CR_SHM_NAME_MAX_BYTES = 255,               /* with its slash */
    CR_DEVICE_UUID_BYTES = 16,
    CR_DEVICE_HANDLE_BYTES = 64, /* of CUDA's IPC handles and of an exported pointer */
    CR_TIMEOUT_MAX_MS = 24 * 60 * 60 * 1000,
};

/* Of messages, as structs hold them (wire.h). */
enum {
    CR_WIRE_VALUE_BYTES = 32,
    CR_WIRE_MAX_FEATURES = 16,
    CR_WIRE_MAX_LANES = 16,
    CR_WIRE_MAX_COUNTERS = 64,
    CR_WIRE_MAX_USERS = 32,
    CR_WIRE_MAX_REQUESTS = 128, /* rows of method, source and code; more are not told */
    CR_WIRE_MAX_STAGES = 8,
    CR_WIRE_MAX_NAMED = 32, /* ops, dtypes, reasons, fronts */
    CR_WIRE_MAX_POOLS = 8,
    CR_WIRE_MAX_SLOW = 32,
    CR_WIRE_MAX_OPTIONS = 128,
    CR_WIRE_WORD_BYTES = 24, /* names that the daemon chooses */
    CR_WIRE_OPTION_BYTES = 64,
    CR_WIRE_SETTING_BYTES = 256,
};

#endif
