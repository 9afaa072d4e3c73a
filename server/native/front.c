/* front: see front.h. Thread: the loop's. Owner: the call. */
#include "server/native/front.h"

#include "base/clock.h"
#include "server/native/frames.h"
#include "server/native/group.h"
#include "server/native/outputs.h"
#include "server/native/regions.h"
#include "server/native/reply.h"

typedef unsigned long long ull;

enum {
    GRANT_BYTES = 1024 * 1024, /* CREDIT goes out in steps of this */
    PART_BYTES = 64 * 1024,    /* answers in one frame */
};

_Static_assert(sizeof(cr_stream) <= CR_FRONT_BYTES, "malloc keeps what a native call takes at hand");

static cr_stream *stream_of(cr_call *call) { return cr_call_front(call); }

cr_stream *cr_stream_find(cr_conn *conn, uint32_t id) { return cr_streams_find(&conn->streams, id); }

/* The call is over: nothing of the connection leads to it any more. why: it failed; NULL: it did not, or its connection is gone. */
static void leave(cr_stream *stream, const cr_error *why) {
    cr_conn *conn = stream->conn;
    cr_regions_forget(stream, why);
    cr_group_drop(stream);
    cr_list_remove(&stream->link);
    cr_list_remove(&stream->stalled);
    cr_list_remove(&stream->reload.link);
    cr_streams_remove(&conn->streams, stream->id);
    if (conn->payload_stream != stream) return;
    conn->payload_stream = NULL; /* the rest of its payload is dropped, and needs no room */
    conn->waits_for_room = false;
}

/* CREDIT for what was consumed, when it is worth a frame. */
static bool grant(cr_stream *stream) {
    if (stream->to_grant < GRANT_BYTES || !cr_call_flows(stream->call)) return true;
    uint64_t bytes = stream->to_grant;
    stream->to_grant = 0;
    stream->credit += bytes;
    return cr_reply_credit(stream->conn, stream->id, bytes);
}

/* Sends the answers that the client can take and the reply buffer has room for. The call may be gone. */
static void send_parts(cr_stream *stream) {
    cr_conn *conn = stream->conn;
    for (;;) {
        cr_part part;
        bool room = !cr_conn_full(conn);
        uint64_t most = !room ? 0 : stream->reply_credit < PART_BYTES ? stream->reply_credit : PART_BYTES;
        cr_pull pulled = cr_call_part(stream->call, most, &part);
        if (pulled == CR_PULLED) return;
        cr_list_remove(&stream->stalled);
        if (pulled == CR_LATER && !room) cr_list_append(&conn->stalled, &stream->stalled);
        if (pulled == CR_LATER || !cr_reply_part(conn, stream->id, &part)) break;
        stream->reply_credit -= part.bytes;
        cr_call_sent(stream->call);
    }
    if (cr_call_receives(stream->call)) grant(stream);
}

/* ---- what the call tells ---- */

static void on_room(cr_call *call) { cr_conn_has_room(stream_of(call)->conn); }

static void on_parts(cr_call *call) { send_parts(stream_of(call)); }

static void on_progress(cr_call *call, const cr_wire_progress *so_far) {
    cr_stream *stream = stream_of(call);
    if (cr_conn_backlog(stream->conn) >= CR_BACKLOG_BYTES) return; /* nobody reads: not one more */
    cr_wire_progress all;
    cr_reply_progress(stream->conn, stream->id, cr_group_progress(stream, &all) ? &all : so_far);
}

static void on_answer(cr_call *call, const cr_answer *answer) {
    cr_stream *stream = stream_of(call);
    cr_conn *conn = stream->conn;
    if (answer->kind == CR_ANSWER_FAILED)
        cr_reply_status(conn, stream->id, answer->error);
    else if (answer->kind != CR_ANSWER_DONE) /* of which whoever did it has said so */
        cr_reply_answer(conn, stream->id, answer, &cr_call_request(call)->reduce);
    leave(stream, answer->kind == CR_ANSWER_FAILED ? answer->error : NULL);
}

static const cr_front native_front = {
    .bytes = sizeof(cr_stream), .room = on_room, .parts = on_parts, .progress = on_progress, .answer = on_answer};

/* ---- CALL ---- */

/* What came with a CALL: of its array, or of its region, and of what is beside the array; -1: none. */
typedef struct passed {
    int array, beside[CR_BESIDES];
} passed;

static const passed nothing_passed = {.array = -1, .beside = {[0 ... CR_BESIDES - 1] = -1}};

/* 1 for each that the call takes. */
static passed wants_descriptors(const cr_wire_call *asked, const cr_wire_beside *beside) {
    const cr_wire_region_kind kind = asked->kind == CR_CALL_REGISTER ? asked->region.kind : CR_SHARED_NAME;
    const bool reduces = asked->kind == CR_CALL_REDUCE;
    passed wants = {.array = reduces ? asked->reduce.source == CR_SOURCE_DESCRIPTOR
                                     : kind == CR_SHARED_DESCRIPTOR || kind == CR_SHARED_CUDA_DESCRIPTOR};
    for (int i = 0; i < CR_BESIDES; i++)
        wants.beside[i] = reduces && asked->reduce.has_beside[i] && beside[i].source == CR_SOURCE_DESCRIPTOR;
    return wants;
}

static void close_passed(cr_conn *conn, passed *came) {
    cr_files *files = conn->native->calls->files;
    if (came->array >= 0) cr_files_close(files, conn->peer.owner, came->array);
    for (int i = 0; i < CR_BESIDES; i++)
        if (came->beside[i] >= 0) cr_files_close(files, conn->peer.owner, came->beside[i]);
    *came = nothing_passed;
}

/* Descriptors the frame brought beyond what the request uses: closed, and the call fails. */
static cr_status take_descriptors(cr_conn *conn, passed wants, uint32_t count, passed *came, cr_error *error) {
    uint32_t wanted = (uint32_t)wants.array;
    for (int i = 0; i < CR_BESIDES; i++) wanted += (uint32_t)wants.beside[i];
    *came = nothing_passed;
    for (uint32_t i = 0; i < count && count != wanted; i++)
        cr_files_close(conn->native->calls->files, conn->peer.owner, cr_conn_take_descriptor(conn));
    if (count == wanted) {
        if (wants.array) came->array = cr_conn_take_descriptor(conn);
        for (int i = 0; i < CR_BESIDES; i++)
            if (wants.beside[i]) came->beside[i] = cr_conn_take_descriptor(conn);
        return CR_OK;
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "descriptors: %u came with CALL, this call takes %u", count, wanted);
}

static void answer_plain(cr_stream *stream, cr_wire_kind kind) {
    cr_conn *conn = stream->conn;
    uint32_t id = stream->id;
    cr_call_done(stream->call); /* first: it is not in flight in its own answer */
    cr_reply_plain(conn, id, kind);
}

static void on_reloaded(cr_reload_wait *wait, const cr_error *why, const cr_reloaded *what) {
    cr_stream *stream = cr_container(wait, cr_stream, reload);
    cr_conn *conn = stream->conn;
    uint32_t id = stream->id;
    cr_error error;
    if (why) {
        const bool later = why->code == CR_UNAVAILABLE || why->code == CR_RESOURCE_EXHAUSTED;
        cr_fail(&error, later ? why->code : CR_FAILED_PRECONDITION, "%s; everything stays as it was", why->text);
        cr_call_cancel(stream->call, &error);
        return;
    }
    cr_call_done(stream->call);
    cr_reply_reloaded(conn, id, what);
}

static void begin_reload(cr_stream *stream) {
    cr_calls *calls = stream->conn->native->calls;
    stream->reload.told = on_reloaded;
    calls->reload(calls->reload_argument, &stream->reload);
}

/* False: the call has failed and is gone. Descriptors of what is beside the array are taken over. */
static bool begin_beside(cr_stream *stream, const cr_wire_beside *beside, passed *came) {
    cr_array from[CR_BESIDES];
    cr_error error;
    for (int i = 0; i < CR_BESIDES; i++) {
        from[i] = (cr_array){.kind = CR_STREAM, .descriptor = came->beside[i]};
        if (beside[i].source == CR_SOURCE_DESCRIPTOR) from[i].kind = CR_DESCRIPTOR;
        if (beside[i].source != CR_SOURCE_REGION) continue;
        from[i].kind = CR_KEPT;
        from[i].kept = cr_regions_find(stream->conn, beside[i].region);
        if (from[i].kept) continue;
        cr_fail(&error, CR_NOT_FOUND,
                "%s: region %llu is not registered on this connection, or its registration was not answered yet",
                cr_beside_names_of[i].name, (ull)beside[i].region);
        cr_call_cancel(stream->call, &error);
        return false;
    }
    for (int i = 0; i < CR_BESIDES; i++) came->beside[i] = -1;
    return cr_call_beside(stream->call, from);
}

static void begin_reduce(cr_stream *stream, passed *came, const cr_wire_beside *beside, const uint8_t *payload,
                         size_t bytes) {
    cr_call *call = stream->call;
    cr_array input = {.kind = came->array >= 0 ? CR_DESCRIPTOR : CR_STREAM, .descriptor = came->array};
    const cr_wire_reduce *r = &cr_call_request(call)->reduce;
    const cr_wire_source source = r->source;
    const bool writes = r->outputs != 0, reduces = cr_call_request(call)->kind == CR_CALL_REDUCE;
    const bool takes = reduces && cr_wire_takes_beside(r);
    cr_error error;
    if (!cr_call_begin(call, beside)) return;
    cr_call_remember(call, payload, bytes);
    if (writes && cr_outputs_open(stream, payload, bytes, &error) != CR_OK) {
        cr_call_cancel(call, &error);
        return;
    }
    if (takes && !begin_beside(stream, beside, came)) return;
    if (source == CR_SOURCE_REGION) {
        cr_regions_reduce(stream);
    } else if (source == CR_SOURCE_REGIONS) {
        cr_group_begin(stream, payload, bytes);
    } else {
        came->array = -1;
        cr_call_input(call, &input);
    }
}

/* Whether DATA comes: its array, or what is beside it. */
static bool is_streamed(const cr_stream *stream) {
    const cr_wire_call *asked = cr_call_request(stream->call);
    return (asked->kind == CR_CALL_REDUCE || asked->kind == CR_CALL_MERGE) &&
           (asked->reduce.source == CR_SOURCE_STREAM || stream->beside_comes);
}

/* What the request asks for begins. What it needs of what came is taken over. */
static void begin(cr_stream *stream, passed *came, const cr_wire_beside *beside, const cr_frame *frame,
                  const uint8_t *payload) {
    cr_conn *conn = stream->conn;
    uint32_t id = stream->id;
    const cr_wire_call *asked = cr_call_request(stream->call);
    for (int i = 0; asked->kind == CR_CALL_REDUCE && i < CR_BESIDES; i++)
        stream->beside_comes |= asked->reduce.has_beside[i] && beside[i].source == CR_SOURCE_STREAM;
    const bool streamed = is_streamed(stream);
    switch (asked->kind) {
        case CR_CALL_INFO:
        case CR_CALL_STATS:
        case CR_CALL_SLOW_LOG:
        case CR_CALL_CONFIG:
            answer_plain(stream, asked->kind);
            return;
        case CR_CALL_RELOAD:
            begin_reload(stream);
            return;
        case CR_CALL_REGISTER:
            cr_regions_register(stream, came->array);
            came->array = -1;
            return;
        case CR_CALL_UNREGISTER:
            cr_regions_unregister(stream);
            return;
        case CR_CALL_REDUCE:
        case CR_CALL_MERGE:
            begin_reduce(stream, came, beside, payload, frame->length);
    }
    if (frame->flags & CR_FLAG_END && streamed && (stream = cr_stream_find(conn, id))) cr_call_end(stream->call);
}

bool cr_stream_open(cr_conn *conn, const cr_frame *frame, const uint8_t *payload) {
    cr_error error, more;
    cr_wire_beside beside[CR_BESIDES];
    passed came;
    cr_calls *calls = conn->native->calls;
    cr_call *call = cr_call_new(calls, &native_front, &conn->peer);
    if (!call || !cr_streams_add(&conn->streams, frame->stream, stream_of(call))) {
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
        if (call) cr_call_refuse(call, &error);
        return cr_conn_fail(conn, &error);
    }
    cr_wire_call *asked = cr_call_request(call);
    const bool again = cr_call_again(call, payload, frame->length);
    cr_status status = again ? CR_OK : cr_wire_unpack_call(payload, frame->length, asked, &error);
    if (status == CR_OK && !again && asked->kind == CR_CALL_REDUCE && cr_wire_takes_beside(&asked->reduce))
        status = cr_wire_unpack_besides(CR_FORM_CALL, payload, frame->length, beside, &error);
    if (status == CR_OK) status = cr_call_parameters(call, CR_FORM_CALL, payload, frame->length, &error);
    if (status == CR_OK) status = cr_call_layout(call, CR_FORM_CALL, payload, frame->length, &error);
    if (status != CR_OK) asked->kind = 0;
    const passed wants = wants_descriptors(asked, beside);
    if (take_descriptors(conn, wants, frame->descriptors, &came, &more) != CR_OK && status == CR_OK)
        error = more, status = more.code;
    if (status == CR_OK) status = cr_peer_check(&conn->peer, cr_call_method(call), &error);
    if (status == CR_OK) status = cr_call_admit(call, &error);
    if (status != CR_OK) {
        close_passed(conn, &came);
        cr_streams_remove(&conn->streams, frame->stream);
        cr_call_refuse(call, &error);
        return cr_reply_status(conn, frame->stream, &error);
    }
    cr_stream *stream = stream_of(call);
    stream->call = call;
    stream->conn = conn;
    stream->id = frame->stream;
    stream->credit = stream->reply_credit = CR_CREDIT_INITIAL_BYTES;
    cr_list_init(&stream->stalled);
    cr_list_init(&stream->in_region);
    cr_list_init(&stream->reload.link);
    cr_list_append(&conn->open, &stream->link);
    begin(stream, &came, beside, frame, payload);
    close_passed(conn, &came); /* what a call did not take that has failed */
    return conn->state == CR_CONN_OPEN;
}

/* ---- DATA, CREDIT, CANCEL ---- */

bool cr_stream_takes_whole(const cr_stream *stream, const cr_frame *frame) {
    return frame->flags & CR_FLAG_END && cr_call_takes_whole(stream->call, frame->length);
}

/* Why the call takes no DATA. */
static void refuse_data(cr_stream *stream) {
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT,
            is_streamed(stream) ? "DATA: it came after END" : "DATA: this call takes no DATA, its input is no stream");
    cr_call_cancel(stream->call, &error);
}

bool cr_stream_data(cr_stream *stream, const cr_frame *frame, bool *take) {
    cr_conn *conn = stream->conn;
    *take = false;
    if (frame->length > stream->credit) {
        cr_error error;
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "DATA: %u bytes on stream %u exceed its credit of %llu", frame->length,
                frame->stream, (ull)stream->credit);
        return cr_conn_fail(conn, &error);
    }
    bool whole = cr_stream_takes_whole(stream, frame);
    if (!cr_call_receives(stream->call)) {
        if (stream->beside_comes && !frame->length) return true; /* END behind what is beside an array that is passed */
        refuse_data(stream);
        return conn->state == CR_CONN_OPEN;
    }
    if (!whole && !cr_call_coming(stream->call, frame->length)) return conn->state == CR_CONN_OPEN;
    stream->credit -= frame->length;
    stream->to_grant += frame->length;
    *take = true;
    return frame->flags & CR_FLAG_END || grant(stream);
}

void cr_stream_credit(cr_stream *stream, uint64_t bytes) {
    const cr_wire_call *asked = cr_call_request(stream->call);
    const bool reduced = asked->kind == CR_CALL_REDUCE && cr_call_geometry(stream->call) != CR_GEOMETRY_WHOLE;
    if (!reduced && (asked->kind != CR_CALL_MERGE || !asked->reduce.keyed)) return; /* one answer of few bytes */
    stream->reply_credit = bytes > UINT64_MAX - stream->reply_credit ? UINT64_MAX : stream->reply_credit + bytes;
    send_parts(stream);
}

void cr_stream_cancel(cr_stream *stream) {
    cr_error error;
    cr_fail(&error, CR_CANCELLED, "the client cancelled the call");
    cr_call_cancel(stream->call, &error);
}

void cr_streams_resume(cr_conn *conn) {
    while (!cr_conn_full(conn)) {
        cr_list *node = cr_list_pop(&conn->stalled);
        if (!node) return;
        send_parts(cr_container(node, cr_stream, stalled));
    }
}

void cr_stream_drop(cr_stream *stream) {
    leave(stream, NULL);
    cr_call_cancel(stream->call, NULL);
}
