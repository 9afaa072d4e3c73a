/* session: nghttp2's callbacks. None of them closes a connection: a session must not go while it calls.
 *
 * Flow control: nghttp2 gives nothing back to a client's windows by itself. A connection's window is given back as its bytes
 * are taken, a stream's as its call can take more (cr_grpc_stream_grant).
 * Thread: the loop's. Owner: the connection. */
#include "server/grpc/session.h"

static cr_grpc_stream *stream_of(nghttp2_session *session, int32_t id) {
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    cr_grpc_conn *conn = user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    cr_grpc_stream *stream = cr_grpc_stream_new(conn, frame->hd.stream_id);
    if (!stream) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *user) {
    (void)flags;
    (void)user;
    cr_grpc_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream || cr_grpc_stream_header(stream, (const char *)name, name_len, (const char *)value, value_len))
        return 0;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* resets it: unpacked, the rest could be a thousand times as long */
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    cr_grpc_conn *conn = user;
    if (frame->hd.type == NGHTTP2_SETTINGS && conn->state == CR_GRPC_GREETING) conn->state = CR_GRPC_OPEN;
    if (frame->hd.type == NGHTTP2_PING && frame->hd.flags & NGHTTP2_FLAG_ACK) cr_grpc_conn_heard(conn);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    cr_grpc_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        conn->requests++;
        cr_grpc_stream_begin(stream);
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) cr_grpc_stream_end(stream);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user) {
    (void)flags;
    cr_grpc_conn *conn = user;
    cr_grpc_stream *stream = stream_of(session, id);
    nghttp2_session_consume_connection(session, n);
    if (!stream) {
        nghttp2_session_consume_stream(session, id, n);
        return 0;
    }
    size_t used = cr_grpc_read(stream, bytes, n);
    if (used < n && !cr_grpc_conn_hold(conn, stream, bytes + used, n - used)) return NGHTTP2_ERR_CALLBACK_FAILURE;
    conn->halted = used < n || cr_grpc_conn_go_is_over(conn);
    return conn->halted ? NGHTTP2_ERR_PAUSE : 0;
}

/* An answer went before the client had sent all: it need not send the rest. */
static void spare_rest(nghttp2_session *session, int32_t id) {
    if (nghttp2_session_get_stream_remote_close(session, id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    cr_grpc_conn *conn = user;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || frame->hd.type == NGHTTP2_RST_STREAM) return 0;
    if (conn->paused)
        conn->early = true; /* the rest may have come, and not be looked at */
    else
        spare_rest(session, frame->hd.stream_id);
    return 0;
}

void cr_session_spare_rests(cr_grpc_conn *conn) {
    conn->early = false;
    for (cr_list *node = conn->streams.next; node != &conn->streams; node = node->next) {
        const int32_t id = cr_container(node, cr_grpc_stream, link)->id;
        if (nghttp2_session_get_stream_local_close(conn->session, id) == 1) spare_rest(conn->session, id);
    }
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user) {
    (void)code;
    (void)user;
    cr_grpc_stream *stream = stream_of(session, id);
    if (stream) cr_grpc_stream_free(stream);
    nghttp2_session_set_stream_user_data(session, id, NULL);
    return 0;
}

bool cr_session_setup(cr_grpc *grpc) {
    if (nghttp2_session_callbacks_new(&grpc->callbacks) != 0 || nghttp2_option_new(&grpc->options) != 0) return false;
    nghttp2_session_callbacks *c = grpc->callbacks;
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_close);
    nghttp2_option_set_no_auto_window_update(grpc->options, 1);
    nghttp2_option_set_no_closed_streams(grpc->options, 1);
    return true;
}

bool cr_session_open(cr_grpc_conn *conn) {
    const cr_grpc *grpc = conn->grpc;
    if (nghttp2_session_server_new2(&conn->session, grpc->callbacks, conn, grpc->options) != 0) return false;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)grpc->calls->config->max_jobs_per_connection},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CR_GRPC_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, CR_GRPC_HEADERS_BYTES},
    };
    return nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof settings[0]) ==
               0 &&
           nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, CR_GRPC_CONNECTION_WINDOW) == 0;
}
