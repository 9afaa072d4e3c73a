/* stream: headers, the call, and what the call tells. Thread: the loop's. Owner: see stream.h. */
#include "server/grpc/stream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "server/call/answer.h"

enum { MOST_HEADERS_BYTES = 4 * CR_GRPC_HEADERS_BYTES }; /* up to here the client is told its mistake */

cr_grpc_stream *cr_grpc_stream_new(cr_grpc_conn *conn, int32_t id) {
    cr_grpc_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return NULL;
    stream->conn = conn;
    stream->peer = &conn->peer;
    stream->id = id;
    stream->arrived_ms = stream->progress_ms = cr_now_ms();
    cr_list_init(&stream->stalled);
    cr_list_init(&stream->gathering);
    cr_list_init(&stream->watching);
    cr_list_append(&conn->streams, &stream->link);
    return stream;
}

/* ---- headers ---- */

static bool is(const char *text, size_t len, const char *what) {
    return len == strlen(what) && memcmp(text, what, len) == 0;
}

static void refuse_header(cr_grpc_stream *stream, cr_status code, const char *text) {
    if (stream->refused.code == CR_OK) cr_fail(&stream->refused, code, "%s", text);
}

/* Reads at most 8 digits and a unit. A timeout beyond the longest call is cut to that. */
static void read_timeout(cr_grpc_stream *stream, const char *value, size_t len) {
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {{'H', 3600000000000}, {'M', 60000000000}, {'S', 1000000000}, {'m', 1000000}, {'u', 1000}, {'n', 1}};
    uint64_t number = 0, ns = 0;
    size_t digits = 0;
    for (; digits < len && value[digits] >= '0' && value[digits] <= '9' && digits < 8; digits++)
        number = number * 10 + (uint64_t)(value[digits] - '0');
    for (size_t i = 0; digits && digits + 1 == len && i < sizeof units / sizeof units[0]; i++)
        if (value[digits] == units[i].unit) ns = units[i].ns;
    if (!ns) {
        refuse_header(stream, CR_INVALID_ARGUMENT,
                      "grpc-timeout: it must be 1 to 8 digits and one of H, M, S, m, u, n");
        return;
    }
    const uint64_t most = CR_TIMEOUT_MAX_MS,
                   ms = number > UINT64_MAX / 2 / ns ? most : (number * ns + 999999) / 1000000;
    stream->timed = true;
    stream->timeout_ms = (uint32_t)(ms < most ? ms : most);
}

/* "Bearer TOKEN"; other kinds of credentials are not for us. */
static void check_token(cr_grpc_stream *stream, const char *value, size_t len) {
    static const char bearer[] = "Bearer ";
    const size_t skip = sizeof bearer - 1;
    cr_error error;
    const cr_principal *who;
    if (len <= skip || strncasecmp(value, bearer, skip) != 0) return;
    cr_grpc_conn *conn = stream->conn;
    cr_status status =
        cr_arrived_check_token(conn->grpc->calls, conn->wants_token, value + skip, len - skip, &who, &error);
    if (status == CR_OK && who && !conn->peer.has_uid) status = cr_grpc_conn_guest(conn, who, &stream->peer, &error);
    if (status == CR_OK)
        stream->has_token = true;
    else
        refuse_header(stream, error.code, error.text);
}

/* The client's first request names it. Unprintable characters are left out, because people read the name. */
static void name_client(cr_peer *peer, const char *value, size_t len) {
    size_t used = 0;
    if (peer->name[0]) return;
    for (size_t i = 0; i < len && used < CR_NAME_MAX_BYTES; i++)
        if (value[i] >= ' ' && value[i] <= '~') peer->name[used++] = value[i];
    peer->name[used] = 0;
}

bool cr_grpc_stream_header(cr_grpc_stream *stream, const char *name, size_t name_len, const char *value, size_t len) {
    stream->header_bytes += (uint32_t)(name_len + len + 32);
    if (stream->head_read) /* trailers say nothing here */
        return stream->header_bytes <= MOST_HEADERS_BYTES;
    stream->too_long = stream->header_bytes > CR_GRPC_HEADERS_BYTES;
    if (stream->too_long)
        refuse_header(stream, CR_RESOURCE_EXHAUSTED, "headers: a request may have 16384 bytes of them");
    else if (is(name, name_len, ":path"))
        for (const cr_grpc_method *m = cr_grpc_methods; !stream->method && m->path; m++)
            stream->method = is(value, len, m->path) ? m : NULL;
    else if (is(name, name_len, ":method"))
        stream->is_post = is(value, len, "POST");
    else if (is(name, name_len, "content-type"))
        stream->is_grpc = is(value, len, "application/grpc") || is(value, len, "application/grpc+proto");
    else if (is(name, name_len, "authorization"))
        check_token(stream, value, len);
    else if (is(name, name_len, "user-agent"))
        name_client(&stream->conn->peer, value, len);
    else if (is(name, name_len, "grpc-timeout"))
        read_timeout(stream, value, len);
    else if (is(name, name_len, "grpc-encoding") && !is(value, len, "identity"))
        refuse_header(stream, CR_UNIMPLEMENTED, "grpc-encoding: messages are not compressed here, send identity");
    return stream->header_bytes <= MOST_HEADERS_BYTES;
}

/* Counts it, until it is freed. False: it is refused. */
static bool hold(cr_grpc_stream *stream) {
    cr_user *user = stream->peer->user;
    if (cr_admit_request(&stream->conn->grpc->calls->admission, user, &stream->refused) != CR_OK) return false;
    stream->holder = user;
    return true;
}

void cr_grpc_stream_begin(cr_grpc_stream *stream) {
    stream->head_read = true;
    if (stream->conn->refused) stream->refused = stream->conn->why;
    cr_error error;
    const cr_principal *nobody;
    if (stream->conn->wants_token && !stream->has_token &&
        cr_arrived_check_token(stream->conn->grpc->calls, true, "", 0, &nobody, &error) != CR_OK)
        refuse_header(stream, error.code, error.text);
    if (stream->method && stream->refused.code == CR_OK &&
        cr_peer_check(stream->peer, stream->method->name, &error) != CR_OK)
        refuse_header(stream, error.code, error.text);
    if (!stream->is_post || !stream->is_grpc) {
        stream->http_status = stream->is_post ? 415 : 405;
        refuse_header(stream, CR_INVALID_ARGUMENT,
                      "this is gRPC: POST with the content-type application/grpc or application/grpc+proto");
    } else if (!stream->method) {
        refuse_header(
            stream, CR_UNIMPLEMENTED,
            "no such method: cured.v1.Cured has Reduce, ReduceStream, Merge, MergeStream, Info, Stats and SlowLog");
    } else if (stream->conn->backlog > CR_GRPC_BACKLOG_MOST) {
        refuse_header(stream, CR_RESOURCE_EXHAUSTED, "4 MiB of answers to other calls wait to be read");
    }
    if (stream->refused.code == CR_OK && hold(stream)) return;
    cr_grpc_stream_fail(stream, &stream->refused);
}

void cr_grpc_stream_end(cr_grpc_stream *stream) {
    stream->ended = true;
    cr_grpc_reply_release(stream);
    if (stream->over) return;
    if (stream->method && stream->reading == CR_GRPC_PREFIX && !stream->prefix_len) {
        stream->method->end(stream);
        return;
    }
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT, "the client ended its stream within a message");
    cr_grpc_stream_fail(stream, &error);
}

/* ---- the call ---- */

/* What is kept with a call. */
typedef struct kept {
    cr_grpc_stream *stream;
} kept;

static cr_grpc_stream *stream_of(cr_call *call) { return ((kept *)cr_call_front(call))->stream; }

/* Bytes that come for it are dropped from now on. Those that wait are looked at yet: a second message may be in them. */
static void stop_reading(cr_grpc_stream *stream) {
    cr_grpc_conn *conn = stream->conn;
    cr_grpc_read_over(stream);
    if (conn->waiting == stream && conn->waits_for_room) cr_grpc_conn_has_room(conn);
}

void cr_grpc_stream_count(cr_grpc_stream *stream, const cr_error *error) {
    const cr_method name = stream->method ? stream->method->name : CR_METHOD_unknown;
    if (stream->counted) return;
    stream->counted = true;
    cr_calls_count_request(stream->conn->grpc->calls, &stream->conn->peer, name, stream->arrived_ms, error);
}

bool cr_grpc_stream_fail(cr_grpc_stream *stream, const cr_error *error) {
    if (stream->call) {
        cr_call_cancel(stream->call, error); /* answers it */
        return false;
    }
    stop_reading(stream);
    cr_grpc_reply_end(stream, error);
    return false;
}

/* Sends answers along an axis, as many as there is room for. The call may be gone. */
static void send_parts(cr_grpc_stream *stream) {
    cr_grpc_conn *conn = stream->conn;
    while (stream->call) {
        cr_part part;
        const size_t most = cr_grpc_reply_most(stream);
        const bool later = conn->answered >= CR_GO_ANSWERS;
        cr_pull pulled = cr_call_part(stream->call, later ? 0 : most, &part);
        if (pulled == CR_PULLED) return;
        cr_list_remove(&stream->stalled);
        stream->full = pulled == CR_LATER && !most;
        if (pulled == CR_LATER && most && later) cr_list_append(&conn->stalled, &stream->stalled);
        if (pulled == CR_LATER) break;
        cr_wire_part m = {.op = part.op,
                          .first = part.first,
                          .values_len = part.bytes,
                          .statuses = part.statuses,
                          .statuses_len = part.status_count};
        static uint8_t inner[CR_WIRE_PART_HEAD_BYTES + CR_GRPC_PART_BYTES]; /* the loop's */
        uint8_t outer[16];
        const size_t inner_len = cr_wire_pack_part_head(&m, inner, sizeof inner);
        const size_t outer_len = cr_wire_pack_field_head(1, inner_len + part.bytes, outer);
        uint8_t *at = cr_grpc_reply_room(stream, outer_len + inner_len + part.bytes);
        if (!at) break;
        memcpy(at, outer, outer_len);
        memcpy(at + outer_len, inner, inner_len);
        memcpy(at + outer_len + inner_len, part.values, part.bytes);
        cr_grpc_reply_message(stream, outer_len + inner_len + part.bytes);
        conn->answered += (uint32_t)part.bytes;
        cr_call_sent(stream->call);
    }
    cr_grpc_stream_grant(stream);
}

void cr_grpc_streams_resume(cr_grpc_conn *conn) {
    cr_list left;
    cr_list_init(&left);
    cr_list_move(&left, &conn->stalled);
    for (cr_list *node; (node = cr_list_pop(&left));) {
        cr_list_append(&conn->stalled, node);
        send_parts(cr_container(node, cr_grpc_stream, stalled));
    }
}

static void on_room(cr_call *call) { cr_grpc_conn_has_room(stream_of(call)->conn); }

static void on_parts(cr_call *call) {
    cr_grpc_stream *stream = stream_of(call);
    if (stream->method->parts)
        send_parts(stream);
    else
        cr_grpc_whole_parts(stream);
}

static void on_progress(cr_call *call, const cr_wire_progress *so_far) {
    cr_grpc_stream *stream = stream_of(call);
    uint8_t message[64], *at;
    if (cr_grpc_reply_backlog(stream)) return; /* nobody reads: not one more */
    const size_t n = cr_wire_pack_progress(so_far, message, sizeof message);
    if (!(at = cr_grpc_reply_room(stream, n + 12))) return;
    const size_t head = cr_wire_pack_field_head(2, n, at);
    memcpy(at + head, message, n);
    cr_grpc_reply_message(stream, head + n);
}

/* The ReduceResponse, of a stream within a ReduceAnswer. */
static void reply(cr_grpc_stream *stream, const cr_answer *answer, const cr_wire_reduce *asked) {
    size_t n;
    const uint8_t *packed = cr_answer_pack(answer, asked, &n);
    uint8_t head[12];
    if (answer->kind == CR_ANSWER_ARRAY && !stream->method->parts) {
        cr_grpc_whole_reply(stream, packed, n, asked);
        return;
    }
    const size_t head_len = stream->method->parts ? cr_wire_pack_field_head(3, n, head) : 0;
    uint8_t *at = cr_grpc_reply_room(stream, head_len + n);
    if (!at) return;
    memcpy(at, head, head_len);
    memcpy(at + head_len, packed, n);
    cr_grpc_reply_message(stream, head_len + n);
}

static void on_answer(cr_call *call, const cr_answer *answer) {
    cr_grpc_stream *stream = stream_of(call);
    if (answer->kind != CR_ANSWER_FAILED && answer->kind != CR_ANSWER_DONE)
        reply(stream, answer, &cr_call_request(call)->reduce);
    stream->call = NULL;
    stream->full = false;
    cr_list_remove(&stream->stalled);
    stop_reading(stream);
    cr_grpc_reply_end(stream, answer->kind == CR_ANSWER_FAILED ? answer->error : NULL);
}

static const cr_front grpc_front = {
    .bytes = sizeof(kept), .room = on_room, .parts = on_parts, .progress = on_progress, .answer = on_answer};

cr_call *cr_grpc_stream_ask(cr_grpc_stream *stream) {
    cr_call *call = cr_call_new(stream->conn->grpc->calls, &grpc_front, stream->peer);
    if (call) {
        ((kept *)cr_call_front(call))->stream = stream;
        cr_call_set_method(call, stream->method->name);
        stream->counted = true;
        return call;
    }
    cr_error error;
    cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    cr_grpc_stream_fail(stream, &error);
    return NULL;
}

/* The time of a call runs from its headers. */
static cr_status set_timeout(const cr_grpc_stream *stream, cr_wire_call *asked, cr_error *error) {
    const uint64_t took = cr_now_ms() - stream->arrived_ms;
    asked->timeout_ms = stream->timed ? stream->timeout_ms : 0;
    if (!stream->timed) return CR_OK;
    if (took >= stream->timeout_ms)
        return cr_fail(error, CR_DEADLINE_EXCEEDED, "grpc-timeout: %u ms passed before the request was there",
                       stream->timeout_ms);
    asked->timeout_ms -= (uint32_t)took;
    return CR_OK;
}

/* Whether a message that is whole has what the request names beside its array: in a field before its bulk, and nothing more there; or at
 * the bulk's begin, before the array. */
static cr_status check_before(const cr_grpc_stream *stream, const cr_wire_beside *beside, cr_error *error) {
    typedef unsigned long long ull;
    const uint64_t wanted = cr_call_beside_bytes(stream->call), array = cr_call_least_bytes(stream->call);
    if (stream->is_before && stream->bulk_left != wanted)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "beside: it has %llu bytes, and what the request names there takes %llu", (ull)stream->bulk_left,
                       (ull)wanted);
    if (stream->is_before || !wanted || (stream->bulk_left >= wanted && stream->bulk_left - wanted >= array))
        return CR_OK;
    int kind = 0;
    while (!beside[kind].source || kind == CR_BESIDE_SECOND) kind++; /* a second array is in data anyway */
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "%s: its bytes are missing; put the %llu bytes of what the request names beside its array into "
                   "beside, right before data",
                   cr_beside_names_of[kind].name, (ull)wanted);
}

bool cr_grpc_stream_call(cr_grpc_stream *stream, cr_call *call, const cr_wire_beside *beside, cr_status status,
                         const cr_error *why) {
    cr_error error;
    cr_wire_call *asked = cr_call_request(call);
    if (status != CR_OK) {
        error = *why;
        asked->kind = 0; /* what was read of it means nothing */
    } else if ((status = set_timeout(stream, asked, &error)) == CR_OK) {
        status = cr_call_admit(call, &error);
    }
    if (status != CR_OK) {
        cr_call_refuse(call, &error);
        return cr_grpc_stream_fail(stream, &error);
    }
    stream->call = call;
    cr_array input = {.kind = CR_STREAM, .descriptor = -1};
    cr_array of_beside[CR_BESIDES];
    const bool takes = asked->kind == CR_CALL_REDUCE && cr_wire_takes_beside(&asked->reduce);
    if (!cr_call_begin(call, beside)) return false;
    if (cr_grpc_whole_check(stream, &asked->reduce, &error) != CR_OK) return cr_grpc_stream_fail(stream, &error);
    for (int i = 0; i < CR_BESIDES; i++) of_beside[i] = input;
    if (stream->method->before && check_before(stream, beside, &error) != CR_OK)
        return cr_grpc_stream_fail(stream, &error);
    if (takes && !cr_call_beside(call, of_beside)) return false;
    return cr_call_input(call, &input);
}

void cr_grpc_stream_grant(cr_grpc_stream *stream) {
    if (!stream->to_grant || (stream->call && !cr_call_flows(stream->call))) return;
    nghttp2_session_consume_stream(stream->conn->session, stream->id, stream->to_grant);
    stream->to_grant = 0;
}

void cr_grpc_stream_free(cr_grpc_stream *stream) {
    cr_call *call = stream->call;
    stream->call = NULL;
    stop_reading(stream);
    if (stream->conn->waiting == stream) stream->conn->waiting = NULL;
    if (call) cr_call_cancel(call, NULL);
    cr_grpc_stream_count(stream, &(cr_error){.code = CR_CANCELLED, .text = "the client left"});
    cr_list_remove(&stream->link);
    cr_list_remove(&stream->stalled);
    cr_list_remove(&stream->watching);
    if (stream->holder) cr_admit_request_over(&stream->conn->grpc->calls->admission, stream->holder);
    stream->conn->backlog -= cr_bytes_left(&stream->out);
    cr_bytes_free(&stream->out);
    free(stream);
}
