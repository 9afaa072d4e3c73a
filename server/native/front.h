/* front: the calls of a connection: from frames to the call, and from its answers to frames.
 *
 * Thread: the loop's. Owner: a stream lies with its call. */
#ifndef CURED_SERVER_NATIVE_FRONT_H
#define CURED_SERVER_NATIVE_FRONT_H

#include "server/native/conn.h"

/* What the native protocol keeps with a call. */
typedef struct cr_stream {
    cr_call *call;
    cr_conn *conn;
    cr_list link;    /* in conn->open */
    cr_list stalled; /* in conn->stalled: answers wait for room in the reply buffer */
    uint32_t id;
    bool beside_comes;       /* something beside the array comes in DATA, whatever its array is */
    uint64_t credit;         /* DATA bytes the client may still send */
    uint64_t to_grant;       /* consumed and not yet credited */
    uint64_t reply_credit;   /* bytes of array answers the client can take */
    struct cr_entry *region; /* the region that the call is about, or waits for */
    cr_list in_region;       /* among the reductions that wait until it is open */
    cr_reload_wait reload;   /* of a call that has the options read again */
    struct cr_group *group;  /* of a call over several regions, and of those that reduce its pieces; NULL: neither */
} cr_stream;

/* CALL with its payload. False when the connection ended. */
bool cr_stream_open(cr_conn *conn, const cr_frame *frame, const uint8_t *payload);
/* The open call by that number; NULL: it is over. */
cr_stream *cr_stream_find(cr_conn *conn, uint32_t id);
/* Whether the frame is a whole small array, which must be here in one piece. */
bool cr_stream_takes_whole(const cr_stream *stream, const cr_frame *frame);
/* DATA's header: checks length and credit. False when the connection ended. *take: the payload is the call's; otherwise it is to
 * be dropped (the call may be gone). */
bool cr_stream_data(cr_stream *stream, const cr_frame *frame, bool *take);
/* CREDIT: the client can take so many bytes of answers more. */
void cr_stream_credit(cr_stream *stream, uint64_t bytes);
void cr_stream_cancel(cr_stream *stream);
/* For every stream of conn whose answers waited for room in its reply buffer. */
void cr_streams_resume(cr_conn *conn);
/* Takes the call away without an answer (its connection is going). */
void cr_stream_drop(cr_stream *stream);

#endif
