/* stream: one request: from HTTP/2 to a call, and from its answers to HTTP/2.
 *
 *   HEADERS ──► the method is known, or refused
 *      └─ messages (reader.h) ──► a call, or an answer at once ──► answers, trailers ──► closed by nghttp2
 *
 * Thread: the loop's. Owner: nghttp2's stream: it is freed when that is closed, or with its connection. */
#ifndef CURED_SERVER_GRPC_STREAM_H
#define CURED_SERVER_GRPC_STREAM_H

#include "server/grpc/conn.h"

typedef struct cr_grpc_stream cr_grpc_stream;

/* What a client may call. A line in methods.c is all that a new one needs, beside its functions. */
typedef struct cr_grpc_method {
    const char *path;
    cr_method name;  /* that it is counted by */
    uint32_t bulk;   /* the field whose bytes may be long, and lie at the end of a message; 0: none */
    uint32_t before; /* another, which lies right before that; 0: none */
    bool repeats;    /* there may be several of them in a message */
    bool several;    /* the client may send several messages */
    bool parts;      /* what answers is ReduceAnswers, as many as it takes */
    /* A message, but for its bulk: false, when the call has failed. whole: it has none */
    bool (*message)(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole);
    /* So many bytes of bulk come. */
    bool (*bulk_begins)(cr_grpc_stream *stream, uint64_t bytes);
    /* A message is over. */
    void (*message_over)(cr_grpc_stream *stream);
    /* The client sends nothing more. */
    void (*end)(cr_grpc_stream *stream);
} cr_grpc_method;

typedef enum cr_grpc_reading {
    CR_GRPC_PREFIX, /* of a message: whether it is compressed, and its length */
    CR_GRPC_HEAD,   /* the message up to its bulk */
    CR_GRPC_TAG,    /* the beginning of a further field of bulk */
    CR_GRPC_BULK,
    CR_GRPC_WHOLE, /* bulk that is gathered, to be folded in one piece */
    CR_GRPC_OVER,  /* nothing is taken any more */
} cr_grpc_reading;

struct cr_grpc_stream {
    cr_grpc_conn *conn;
    cr_peer *peer;   /* who asks: the connection's, or that of the token's principal */
    cr_user *holder; /* whose request it is counted as; NULL: it is refused */
    cr_list link, stalled, gathering, watching;
    int32_t id;
    const cr_grpc_method *method;
    cr_call *call; /* NULL: none yet, or it is over */
    uint64_t arrived_ms, progress_ms;
    uint32_t timeout_ms; /* 0: none */
    uint32_t header_bytes;
    cr_error refused; /* by its headers */
    uint16_t http_status;
    uint8_t told;   /* of health, to one that watches */
    bool too_long;  /* its headers are: trying again does not help */
    bool counted;   /* it had a call, which is counted at its end, or its end was */
    bool has_token; /* that was taken, in authorization */
    bool is_post, is_grpc, timed, head_read;

    uint8_t reading; /* cr_grpc_reading */
    bool any_message;
    bool is_before; /* the bulk that comes is method->before */
    uint8_t prefix_len;
    uint8_t prefix[5];
    uint64_t message_left; /* of the message, not yet taken */
    uint64_t bulk_left;
    cr_bytes gathered;
    size_t scanned;  /* of gathered: whole fields, none of them bulk */
    size_t to_grant; /* taken, and not yet given back to the client's window */

    bool ended; /* the client sends nothing more */
    bool head_sent, trailers_sent, over, deferred;
    bool full;       /* the call's answers wait until out has room */
    cr_error status; /* with over */
    uint32_t retry_ms;
    cr_bytes out;
};

extern const cr_grpc_method cr_grpc_methods[];

/* HEADERS begins. NULL: there is no memory. */
cr_grpc_stream *cr_grpc_stream_new(cr_grpc_conn *conn, int32_t id);
/* One header of it. False: there are so many that nobody need look at the rest. */
bool cr_grpc_stream_header(cr_grpc_stream *stream, const char *name, size_t name_len, const char *value, size_t len);
/* All headers came. */
void cr_grpc_stream_begin(cr_grpc_stream *stream);
/* The client sends nothing more. */
void cr_grpc_stream_end(cr_grpc_stream *stream);
/* nghttp2 has closed it, or its connection goes: its call ends without an answer. */
void cr_grpc_stream_free(cr_grpc_stream *stream);

/* The request is over; error NULL: it went well. Counts it, unless that is done or its call does. */
void cr_grpc_stream_count(cr_grpc_stream *stream, const cr_error *error);
/* Ends the request with an error, and its call. Returns false, for `return cr_grpc_stream_fail(…)`. */
bool cr_grpc_stream_fail(cr_grpc_stream *stream, const cr_error *error);
/* Begins a call for the request that cr_grpc_stream_ask unpacked. False: it has failed. */
cr_call *cr_grpc_stream_ask(cr_grpc_stream *stream);
/* beside: by kind, of a request that takes any. */
bool cr_grpc_stream_call(cr_grpc_stream *stream, cr_call *call, const cr_wire_beside *beside, cr_status status,
                         const cr_error *error);
/* Lets the client send as much more as was taken. */
void cr_grpc_stream_grant(cr_grpc_stream *stream);
/* For every stream of conn whose answers waited for room. */
void cr_grpc_streams_resume(cr_grpc_conn *conn);

/* reply.c: one message of bytes, of which at most as many follow as room was asked for. NULL: no memory, and the connection ends. */
uint8_t *cr_grpc_reply_room(cr_grpc_stream *stream, size_t bytes);
void cr_grpc_reply_message(cr_grpc_stream *stream, size_t bytes);
/* The trailers: the last that is sent. error NULL: OK. */
void cr_grpc_reply_end(cr_grpc_stream *stream, const cr_error *error);
/* The client has ended its request: the answer of a unary method goes, which waits for that. */
void cr_grpc_reply_release(cr_grpc_stream *stream);
/* A second message came in a request that may have one: it fails, even if the answer to the first waits already. */
void cr_grpc_reply_second(cr_grpc_stream *stream);
/* What a stream's buffer holds back. */
size_t cr_grpc_reply_backlog(const cr_grpc_stream *stream);
/* How long a message of answers may be now; 0: the client has to read first. */
size_t cr_grpc_reply_most(const cr_grpc_stream *stream);

/* whole.c: answers along an axis in one message, of Reduce. Whether they fit: INVALID_ARGUMENT. */
cr_status cr_grpc_whole_check(const cr_grpc_stream *stream, const cr_wire_reduce *asked, cr_error *error);
/* The lanes have made answers: once all are there, they are gathered and the call is answered. It may be gone. */
void cr_grpc_whole_parts(cr_grpc_stream *stream);
/* The answer, packed with no values; those that were gathered come into it. */
void cr_grpc_whole_reply(cr_grpc_stream *stream, const uint8_t *packed, size_t n, const cr_wire_reduce *asked);

/* reader.c: bytes of DATA. Those taken; fewer: the rest has no room now. */
size_t cr_grpc_read(cr_grpc_stream *stream, const uint8_t *bytes, size_t n);
void cr_grpc_read_over(cr_grpc_stream *stream);

#endif
