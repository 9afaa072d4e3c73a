/* reply: the frames a server sends, packed into a connection's reply buffer.
 *
 * Thread: the loop's. Each returns false when the connection had to be closed for lack of memory. */
#ifndef CURED_SERVER_NATIVE_REPLY_H
#define CURED_SERVER_NATIVE_REPLY_H

#include "kernels/core/serial.h"
#include "kernels/cpu/axis.h"
#include "server/native/conn.h"

bool cr_reply_welcome(cr_conn *conn);
bool cr_reply_pong(cr_conn *conn, const uint8_t *payload, uint32_t length);
bool cr_reply_status(cr_conn *conn, uint32_t stream, const cr_error *error);
bool cr_reply_credit(cr_conn *conn, uint32_t stream, uint64_t bytes);
bool cr_reply_progress(cr_conn *conn, uint32_t stream, const cr_wire_progress *progress);
/* RESULT+END of a Register and of an Unregister call. */
bool cr_reply_registered(cr_conn *conn, uint32_t stream, uint64_t bytes);
bool cr_reply_unregistered(cr_conn *conn, uint32_t stream);
bool cr_reply_info(cr_conn *conn, uint32_t stream);
/* RESULT+END: op_count ops finished from partial. */
bool cr_reply_result(cr_conn *conn, uint32_t stream, const cr_partial *partial, const uint32_t *ops, uint32_t op_count,
                     const cr_finish_opts *finish, const cr_wire_timing *timing);
/* RESULT+END with values that are finished, of an input of count elements. */
bool cr_reply_values(cr_conn *conn, uint32_t stream, uint64_t count, const cr_value *values, const bool *exact,
                     uint32_t op_count, const cr_wire_timing *timing);
/* RESULT+END with the share instead of values. */
bool cr_reply_partial(cr_conn *conn, uint32_t stream, const cr_share *share, const cr_wire_timing *timing);
/* RESULT without END. */
bool cr_reply_part(cr_conn *conn, uint32_t stream, const cr_part *part);
/* RESULT+END after the last of them. */
bool cr_reply_array_end(cr_conn *conn, uint32_t stream, const cr_axis_spec *spec, const cr_wire_timing *timing);

#endif
