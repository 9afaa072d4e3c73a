/* reply: messages and trailers of a stream. nghttp2 takes them as the client's windows allow.
 *
 * Thread: the loop's. Owner: the stream. */
#include <stdio.h>
#include <string.h>

#include "server/call/answer.h"
#include "server/grpc/stream.h"

enum { PREFIX_BYTES = 5, OUT_FIRST = 256 };

#define HEADER(name, value, length) \
    { (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), sizeof(name) - 1, length, NGHTTP2_NV_FLAG_NONE }
#define PLAIN(name, value) HEADER(name, value, sizeof(value) - 1)

size_t cr_grpc_reply_backlog(const cr_grpc_stream *stream) { return cr_bytes_left(&stream->out); }

size_t cr_grpc_reply_most(const cr_grpc_stream *stream) {
    const size_t most = stream->conn->backlog < CR_GRPC_BACKLOG_BYTES ? CR_GRPC_PART_BYTES : CR_GRPC_PART_LEAST;
    return cr_bytes_left(&stream->out) < most ? most : 0;
}

uint8_t *cr_grpc_reply_room(cr_grpc_stream *stream, size_t bytes) {
    uint8_t *at = cr_bytes_room(&stream->out, PREFIX_BYTES + bytes, OUT_FIRST);
    if (at) return at + PREFIX_BYTES;
    stream->conn->broken = true;
    cr_grpc_conn_dirty(stream->conn);
    return NULL;
}

/* What is printable, and no '%', goes as it is (gRPC's PROTOCOL-HTTP2.md). */
static size_t encode(const char *text, char *out, size_t cap) {
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text && n + 3 <= cap; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c >= 0x20 && c <= 0x7e && c != '%') {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return n;
}

/* grpc-status and what belongs to it. Returns their number. */
static size_t fill_status(const cr_grpc_stream *stream, nghttp2_nv *to, char *text, size_t cap) {
    size_t n = 0;
    const size_t number = (size_t)snprintf(text, cap, "%d", (int)stream->status.code);
    to[n++] = (nghttp2_nv)HEADER("grpc-status", text, number);
    if (stream->status.code == CR_OK) return n;
    char *message = text + number + 1;
    const size_t len = encode(stream->status.text, message, cap - number - 1 - 16);
    to[n++] = (nghttp2_nv)HEADER("grpc-message", message, len);
    if (!stream->retry_ms) return n;
    char *retry = message + len;
    to[n++] = (nghttp2_nv)HEADER("grpc-retry-pushback-ms", retry, (size_t)snprintf(retry, 16, "%u", stream->retry_ms));
    return n;
}

static ssize_t on_read(nghttp2_session *session, int32_t id, uint8_t *to, size_t most, uint32_t *flags,
                       nghttp2_data_source *source, void *user) {
    cr_grpc_stream *stream = source->ptr;
    cr_bytes *out = &stream->out;
    size_t n = cr_bytes_left(out) < most ? cr_bytes_left(out) : most;
    (void)user;
    if (!n && !stream->over) {
        stream->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n) memcpy(to, out->at + out->off, n);
    out->off += (uint32_t)n;
    stream->conn->backlog -= n;
    if (n) stream->progress_ms = stream->conn->last_progress_ms;
    if (stream->full && cr_grpc_reply_most(stream)) {
        stream->full = false;
        cr_list_append(&stream->conn->stalled, &stream->stalled);
    }
    if (cr_bytes_left(out)) return (ssize_t)n;
    cr_bytes_free(out);
    if (!stream->over) return (ssize_t)n;
    char text[3 * CR_ERROR_TEXT + 64];
    nghttp2_nv trailers[3];
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    stream->trailers_sent = true;
    if (nghttp2_submit_trailer(session, id, trailers, fill_status(stream, trailers, text, sizeof text)) != 0)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    return (ssize_t)n;
}

/* The headers of an answer with messages. */
static void begin(cr_grpc_stream *stream) {
    static const nghttp2_nv headers[] = {PLAIN(":status", "200"), PLAIN("content-type", "application/grpc")};
    const nghttp2_data_provider messages = {{.ptr = stream}, on_read};
    stream->head_sent = true;
    if (nghttp2_submit_response(stream->conn->session, stream->id, headers, 2, &messages) != 0)
        stream->conn->broken = true;
}

/* The answer to a request that is one message waits for the client's end: behind the message another may come, and then the request is
 * no good, however soon the first was answered. */
static bool is_held(const cr_grpc_stream *stream) {
    return !stream->ended && stream->method && !stream->method->several;
}

static void go_on(cr_grpc_stream *stream) {
    if (stream->deferred) nghttp2_session_resume_data(stream->conn->session, stream->id);
    stream->deferred = false;
    cr_grpc_conn_dirty(stream->conn);
}

void cr_grpc_reply_message(cr_grpc_stream *stream, size_t bytes) {
    uint8_t *at = stream->out.at + stream->out.len;
    at[0] = 0; /* not compressed */
    for (int i = 0; i < 4; i++) at[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
    if (!cr_bytes_left(&stream->out)) stream->progress_ms = stream->conn->last_progress_ms;
    stream->out.len += (uint32_t)(PREFIX_BYTES + bytes);
    stream->conn->backlog += PREFIX_BYTES + bytes;
    if (!stream->head_sent && !is_held(stream)) begin(stream);
    go_on(stream);
}

/* Headers and trailers in one: no message came before. */
static void end_at_once(cr_grpc_stream *stream) {
    char text[3 * CR_ERROR_TEXT + 64], http[8];
    nghttp2_nv headers[5] = {PLAIN(":status", "200"), PLAIN("content-type", "application/grpc")};
    if (stream->http_status)
        headers[0] =
            (nghttp2_nv)HEADER(":status", http, (size_t)snprintf(http, sizeof http, "%u", stream->http_status));
    const size_t n = 2 + fill_status(stream, headers + 2, text, sizeof text);
    stream->head_sent = stream->trailers_sent = true;
    if (nghttp2_submit_response(stream->conn->session, stream->id, headers, n, NULL) != 0) stream->conn->broken = true;
    cr_grpc_conn_dirty(stream->conn);
}

void cr_grpc_reply_end(cr_grpc_stream *stream, const cr_error *error) {
    if (stream->over) return;
    stream->over = true;
    cr_list_remove(&stream->watching);
    cr_grpc_stream_count(stream, error);
    if (error) stream->status = *error;
    if (error) stream->retry_ms = stream->too_long ? 0 : cr_answer_retry_ms(error);
    if (!stream->head_sent && error)
        end_at_once(stream);
    else if (!stream->head_sent && !is_held(stream))
        begin(stream);
    go_on(stream);
}

void cr_grpc_reply_release(cr_grpc_stream *stream) {
    if (stream->head_sent || !(stream->over || cr_bytes_left(&stream->out))) return;
    begin(stream);
    go_on(stream);
}

void cr_grpc_reply_second(cr_grpc_stream *stream) {
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT, "a request of this method is one message, a second came");
    if (!stream->over) {
        cr_grpc_stream_fail(stream, &error);
        return;
    }
    if (stream->head_sent) return;
    stream->conn->backlog -= cr_bytes_left(&stream->out);
    cr_bytes_free(&stream->out);
    stream->status = error;
    end_at_once(stream);
}
