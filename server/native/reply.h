/* reply: the frames a server sends, packed into a connection's reply buffer.
 *
 * Thread: the loop's. Each returns false when the connection had to be closed for lack of memory. */
#ifndef CURED_SERVER_NATIVE_REPLY_H
#define CURED_SERVER_NATIVE_REPLY_H

#include "server/call/answer.h"
#include "server/native/conn.h"

/* hello: what the client offers; granted is what this server has of it. */
bool cr_reply_welcome(cr_conn *conn, const cr_wire_hello *hello);
bool cr_reply_pong(cr_conn *conn, const uint8_t *payload, uint32_t length);
bool cr_reply_status(cr_conn *conn, uint32_t stream, const cr_error *error);
bool cr_reply_credit(cr_conn *conn, uint32_t stream, uint64_t bytes);
bool cr_reply_progress(cr_conn *conn, uint32_t stream, const cr_wire_progress *progress);
/* RESULT+END of a Register and of an Unregister call. read_only: though it was to be writable. */
bool cr_reply_registered(cr_conn *conn, uint32_t stream, uint64_t bytes, bool read_only);
bool cr_reply_reloaded(cr_conn *conn, uint32_t stream, const cr_reloaded *what);
bool cr_reply_unregistered(cr_conn *conn, uint32_t stream);
/* RESULT+END of Info, Stats and SlowLog. */
bool cr_reply_plain(cr_conn *conn, uint32_t stream, cr_wire_kind kind);
/* RESULT+END: the answer to what was asked, but for FAILED and DONE. */
bool cr_reply_answer(cr_conn *conn, uint32_t stream, const cr_answer *answer, const cr_wire_reduce *asked);
/* RESULT without END. */
bool cr_reply_part(cr_conn *conn, uint32_t stream, const cr_part *part);

#endif
