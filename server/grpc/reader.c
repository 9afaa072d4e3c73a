/* reader: the messages of a stream, as their bytes come (gRPC's "Length-Prefixed-Message"). The array of a request lies in the
 * last field of its message, its bulk. What comes before the bulk is gathered, and the bulk goes where its call wants it.
 *
 *   PREFIX ─5 bytes─► HEAD ─up to the bulk─► BULK ─its end─► PREFIX          PREFIX, HEAD, BULK ──the call is over──► OVER
 *                       │ └─a small array─► WHOLE ─its end─► PREFIX          BULK ──another of a message (Merge)──► TAG ──► BULK
 *                       └─a message without bulk, its end─► PREFIX
 *
 * Thread: the loop's. Owner: the stream. */
#include <string.h>

#include "base/clock.h"
#include "server/grpc/stream.h"

enum { TAG_BYTES = 12 }; /* a tag and a length, at most */

/* ---- what is gathered ---- */

static void forget(cr_grpc_stream *stream) {
    stream->conn->grpc->gathered -= stream->gathered.cap;
    stream->scanned = 0;
    cr_bytes_free(&stream->gathered);
    cr_list_remove(&stream->gathering);
}

/* Too much is gathered: who has gathered for longest is no honest client. */
static void make_room(cr_grpc *grpc) {
    cr_error error;
    while (grpc->gathered > CR_GRPC_GATHERED_BYTES && !cr_list_empty(&grpc->gathering)) {
        cr_grpc_stream *oldest = cr_container(grpc->gathering.next, cr_grpc_stream, gathering);
        cr_fail(&error, CR_RESOURCE_EXHAUSTED,
                "message: all clients together leave more than %d bytes of messages unfinished",
                CR_GRPC_GATHERED_BYTES);
        cr_grpc_stream_fail(oldest, &error);
    }
}

static bool gather(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    cr_grpc *grpc = stream->conn->grpc;
    cr_error error;
    const uint32_t before = stream->gathered.cap;
    if (!cr_bytes_add(&stream->gathered, bytes, n)) {
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for a message");
        return cr_grpc_stream_fail(stream, &error);
    }
    grpc->gathered += stream->gathered.cap - before;
    if (cr_list_empty(&stream->gathering)) cr_list_append(&grpc->gathering, &stream->gathering);
    make_room(grpc);
    return stream->reading != CR_GRPC_OVER;
}

void cr_grpc_read_over(cr_grpc_stream *stream) {
    stream->reading = CR_GRPC_OVER;
    forget(stream);
}

/* ---- the parts of a message ---- */

/* A message is over. */
static void message_over(cr_grpc_stream *stream) {
    cr_grpc_conn *conn = stream->conn;
    conn->requests++;
    conn->grpc->calls->last_ns = cr_now_ns();
    forget(stream);
    stream->reading = CR_GRPC_PREFIX;
    stream->prefix_len = 0;
    stream->method->message_over(stream);
}

static size_t read_prefix(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    size_t take = sizeof stream->prefix - stream->prefix_len;
    cr_error error;
    if (stream->any_message && !stream->method->several) {
        cr_grpc_reply_second(stream);
        return n;
    }
    if (take > n) take = n;
    memcpy(stream->prefix + stream->prefix_len, bytes, take);
    stream->prefix_len += (uint8_t)take;
    if (stream->prefix_len < sizeof stream->prefix) return take;
    const uint8_t *p = stream->prefix;
    if (p[0]) {
        cr_fail(&error, p[0] == 1 ? CR_UNIMPLEMENTED : CR_INTERNAL,
                "a message's first byte is %u: messages are not compressed here, so it is 0", p[0]);
        cr_grpc_stream_fail(stream, &error);
    }
    if (stream->reading == CR_GRPC_OVER) return take;
    stream->any_message = true;
    stream->message_left = (uint64_t)p[1] << 24 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 8 | p[4];
    stream->reading = CR_GRPC_HEAD;
    return take;
}

static bool fail_message(cr_grpc_stream *stream, const char *what) {
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT, "%s: %s", stream->method->path, what);
    return cr_grpc_stream_fail(stream, &error);
}

/* The bulk is whole. */
static void bulk_over(cr_grpc_stream *stream) {
    if (stream->message_left)
        stream->reading = CR_GRPC_TAG;
    else
        message_over(stream);
}

static void begin_bulk(cr_grpc_stream *stream, uint64_t bytes) {
    stream->bulk_left = bytes;
    stream->reading = CR_GRPC_BULK;
    if (!stream->method->bulk_begins(stream, bytes)) return;
    if (stream->reading == CR_GRPC_BULK && !bytes) bulk_over(stream);
}

/* The bulk of the message, or what lies before it: whichever comes first. */
static cr_wire_scan find_bulk(cr_grpc_stream *stream, const uint8_t *in, size_t len, uint64_t whole,
                              cr_wire_bulk *found) {
    const cr_grpc_method *method = stream->method;
    cr_wire_bulk before;
    const cr_wire_scan scan = cr_wire_find_bulk(in, len, whole, method->bulk, found);
    stream->is_before = method->before && scan != CR_SCAN_BAD &&
                        cr_wire_find_bulk(in, len, whole, method->before, &before) == CR_SCAN_BULK &&
                        (scan != CR_SCAN_BULK || before.at < found->at);
    if (!stream->is_before) return scan;
    *found = before;
    return CR_SCAN_BULK;
}

/* Bytes of HEAD, or of a further TAG: gathered until they tell. Where all of them are in one piece they need no copy. */
static size_t read_head(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    const size_t before = stream->gathered.len, limit = CR_GRPC_HEAD_BYTES;
    size_t take = n < stream->message_left ? n : (size_t)stream->message_left;
    if (before + take > limit) take = limit - before;
    const uint8_t *all = bytes;
    if (before && !gather(stream, bytes, take)) return take;
    if (before) all = stream->gathered.at;
    cr_wire_bulk bulk = {0};
    const uint64_t whole = before + stream->message_left;
    const size_t here = before + take, from = stream->scanned;
    cr_wire_scan scan = find_bulk(stream, all + from, here - from, whole - from, &bulk);
    bulk.head += from;
    bulk.at += from;
    if (scan == CR_SCAN_BAD) {
        fail_message(stream, "a message is no valid protobuf message");
    } else if (scan == CR_SCAN_MORE && here >= limit) {
        fail_message(stream, "the fields before the array take more than 4096 bytes");
    } else if (scan == CR_SCAN_MORE) {
        if (!before && take && !gather(stream, bytes, take)) return take;
        stream->message_left -= take;
        stream->scanned = bulk.head;
    } else if (scan == CR_SCAN_NONE) {
        stream->message_left = 0;
        if (stream->method->message(stream, all, here, true)) message_over(stream);
    } else {
        const size_t used = bulk.at - before; /* the rest of take is bulk, and comes again */
        stream->message_left -= used;
        stream->bulk_left = bulk.bytes;
        const bool last = stream->method->repeats || stream->is_before || bulk.bytes == stream->message_left;
        if (!last) fail_message(stream, "the array must be the last field of its message");
        const bool good = last && stream->method->message(stream, all, bulk.head, false);
        if (good) forget(stream);
        if (good) begin_bulk(stream, bulk.bytes);
        return used;
    }
    return take;
}

/* The beginning of one more field of bulk. */
static size_t read_tag(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    const size_t before = stream->gathered.len;
    cr_wire_bulk bulk;
    size_t take = n < stream->message_left ? n : (size_t)stream->message_left;
    if (take > TAG_BYTES - before) take = TAG_BYTES - before;
    if (!gather(stream, bytes, take)) return take;
    cr_wire_scan scan = cr_wire_find_bulk(stream->gathered.at, before + take, before + stream->message_left,
                                          stream->method->bulk, &bulk);
    if (scan == CR_SCAN_MORE && before + take < TAG_BYTES) {
        stream->message_left -= take;
        return take;
    }
    if (scan != CR_SCAN_BULK || bulk.head) {
        fail_message(stream, stream->is_before ? "the array must be the last field of its message"
                                               : "partials must be the last fields of their message");
        return take;
    }
    const size_t used = bulk.at - before;
    stream->message_left -= used;
    forget(stream);
    stream->is_before = false;
    begin_bulk(stream, bulk.bytes);
    return used;
}

/* Array bytes go where the call wants them. Fewer than n: there is no room, or merging took the rest of the go. */
static size_t read_bulk(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    cr_grpc_conn *conn = stream->conn;
    cr_calls *calls = conn->grpc->calls;
    size_t used = 0;
    while (used < n && stream->bulk_left && stream->reading == CR_GRPC_BULK) {
        uint8_t *at;
        size_t room, step = n - used < stream->bulk_left ? n - used : (size_t)stream->bulk_left;
        cr_room answer = cr_call_room(stream->call, &at, &room);
        if (answer == CR_WAIT) conn->waits_for_room = true;
        if (answer != CR_ROOM) return answer == CR_GONE ? n : used;
        if (step > room) step = room;
        memcpy(at, bytes + used, step);
        used += step;
        stream->bulk_left -= step;
        stream->message_left -= step;
        const uint64_t merged = calls->merged;
        if (!cr_call_filled(stream->call, step)) return n;
        if (calls->merged == merged) continue;
        conn->requests += (uint32_t)(calls->merged - merged);
        calls->last_ns = cr_now_ns();
        if (cr_grpc_conn_go_is_over(conn)) break;
    }
    if (stream->reading == CR_GRPC_BULK && !stream->bulk_left) bulk_over(stream);
    return used;
}

/* A small array is folded where it lies, if it lies there as a whole; otherwise it is gathered first. */
static size_t read_whole(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    const uint8_t *all = bytes;
    size_t take = n < stream->bulk_left ? n : (size_t)stream->bulk_left;
    const bool first = !stream->gathered.len;
    if ((!first || take < stream->bulk_left) && !gather(stream, bytes, take)) return take;
    if (!first) all = stream->gathered.at;
    stream->bulk_left -= take;
    stream->message_left -= take;
    if (stream->bulk_left) return take;
    const size_t bytes_here = first ? take : stream->gathered.len;
    cr_call_whole(stream->call, all, bytes_here);
    return take;
}

size_t cr_grpc_read(cr_grpc_stream *stream, const uint8_t *bytes, size_t n) {
    size_t used = 0;
    bool waits = false;
    stream->progress_ms = stream->conn->last_progress_ms;
    while (!waits) {
        const uint8_t *at = bytes + used;
        const size_t left = n - used;
        const bool empty = stream->reading == CR_GRPC_HEAD && !stream->message_left;
        if (stream->reading == CR_GRPC_OVER && left && stream->over && !stream->head_sent) cr_grpc_reply_second(stream);
        if (stream->reading == CR_GRPC_OVER) used = n;
        if (used == n && !empty) break;
        size_t took = 0;
        switch ((cr_grpc_reading)stream->reading) {
            case CR_GRPC_PREFIX:
                took = read_prefix(stream, at, left);
                break;
            case CR_GRPC_HEAD:
                took = read_head(stream, at, left);
                break;
            case CR_GRPC_TAG:
                took = read_tag(stream, at, left);
                break;
            case CR_GRPC_BULK:
                took = read_bulk(stream, at, left);
                waits = stream->reading == CR_GRPC_BULK && took < left && stream->bulk_left;
                break;
            case CR_GRPC_WHOLE:
                took = read_whole(stream, at, left);
                break;
            case CR_GRPC_OVER:
                break;
        }
        used += took;
        /* Many small messages may be in these bytes. */
        const bool between = stream->reading == CR_GRPC_PREFIX && !stream->prefix_len;
        if (between && cr_grpc_conn_go_is_over(stream->conn)) break;
    }
    stream->to_grant += used;
    cr_grpc_stream_grant(stream);
    return used;
}
