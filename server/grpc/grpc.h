/* grpc: the door of gRPC (docs/GRPC.md): what its connections share.
 *
 * HTTP/2 itself is libnghttp2's (RFC 9113, RFC 7541); what gRPC makes of it is gRPC's "PROTOCOL-HTTP2.md".
 * Thread: the loop's. Owner: main. */
#ifndef CURED_SERVER_GRPC_GRPC_H
#define CURED_SERVER_GRPC_GRPC_H

#include <nghttp2/nghttp2.h>

#include "server/loop/loop.h"
#include "server/loop/rounds.h"

enum {
    CR_GRPC_READ_BYTES = 128 * 1024,              /* read from one connection in one turn */
    CR_GRPC_STREAM_WINDOW = 4 * 1024 * 1024,      /* what a client may send of one call ahead of the lanes */
    CR_GRPC_CONNECTION_WINDOW = 16 * 1024 * 1024, /* and of all calls of a connection */
    CR_GRPC_HEADERS_BYTES = 16 * 1024,            /* of one request, as SETTINGS_MAX_HEADER_LIST_SIZE counts */
    CR_GRPC_HEAD_BYTES = 4096,                    /* of one message, before its array */
    CR_GRPC_PART_BYTES = 256 * 1024,              /* answers in one message of a stream */
    CR_GRPC_WHOLE_BYTES = 1000 * 1000, /* answers along an axis in the one message of Reduce, which has 1 MiB at most */
    CR_GRPC_BACKLOG_BYTES = 1024 * 1024, /* answers that a connection leaves unread; then each call has PART_LEAST */
    CR_GRPC_PART_LEAST = 4096,
    CR_GRPC_BACKLOG_MOST = 4 * 1024 * 1024,    /* and then it begins no calls */
    CR_GRPC_GATHERED_BYTES = 64 * 1024 * 1024, /* of messages that are not whole yet, on all connections */
};

typedef struct cr_grpc {
    cr_door door;
    cr_loop *loop;
    cr_calls *calls;
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    cr_list connections, dirty; /* all; those with something to write at the end of the turn */
    cr_list gathering;          /* streams with the beginning of a message, the oldest first */
    size_t gathered;            /* bytes of those */
    cr_list watchers;           /* streams of Health.Watch */
    cr_timer later;             /* for what they are to hear */
    uint64_t told_ms;
    uint8_t told; /* to all of them; 0: not the same */
    cr_rounds rounds;
    uint64_t until_ns; /* the end of the turn */
    uint8_t *buffer;   /* CR_GRPC_READ_BYTES */
    bool draining;     /* the clients know that it ends */
} cr_grpc;

/* Becomes a door of loop. */
cr_status cr_grpc_init(cr_grpc *grpc, cr_loop *loop, cr_error *error);
/* Its connections are gone. */
void cr_grpc_free(cr_grpc *grpc);

#endif
