/* methods: what gRPC clients may call, and how the methods of cured.v1.Cured become calls.
 *
 * Thread: the loop's. Owner: the stream. */
#include <endian.h>
#include <string.h>

#include "base/metrics.h"
#include "server/call/answer.h"
#include "server/grpc/health.h"
#include "server/grpc/reflection.h"
#include "server/grpc/stream.h"

typedef unsigned long long ull;

enum { REDUCE_BESIDE = 63, REDUCE_DATA = 100, MERGE_PARTIALS = 100, CHUNK_DATA = 2 };

static bool fail(cr_grpc_stream *stream, const char *text) {
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT, "%s", text);
    return cr_grpc_stream_fail(stream, &error);
}

/* A client that ends its stream without a message. */
static void end_unary(cr_grpc_stream *stream) {
    if (!stream->any_message) fail(stream, "the request has no message");
}

/* Makes the request a call whose array is streamed by its front: bytes are told, or not known. */
static cr_status as_stream(cr_wire_call *asked, bool known, uint64_t bytes, cr_error *error) {
    cr_wire_reduce *r = &asked->reduce;
    if (r->source == CR_SOURCE_DESCRIPTOR || r->source == CR_SOURCE_REGION || r->source == CR_SOURCE_REGIONS)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "input: descriptors and regions belong to the native protocol (libcured, cured-client)");
    if (r->outputs)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "outputs: regions belong to the native protocol (libcured, cured-client)");
    if (r->source == CR_SOURCE_INLINE && r->length_known && known && r->length != bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "Input.inline is %llu, and data has %llu bytes", (ull)r->length,
                       (ull)bytes);
    if (r->source == CR_SOURCE_STREAM) return CR_OK;
    r->source = CR_SOURCE_STREAM;
    r->length_known = known;
    r->length = bytes;
    return CR_OK;
}

/* What a request takes beside its array: all of its bytes come before the array's. */
static cr_status take_beside(cr_wire_form form, const uint8_t *in, size_t len, const cr_wire_call *asked,
                             cr_wire_beside *beside, cr_error *error) {
    if (asked->kind != CR_CALL_REDUCE || !cr_wire_takes_beside(&asked->reduce)) return CR_OK;
    cr_status status = cr_wire_unpack_besides(form, in, len, beside, error);
    for (int i = 0; status == CR_OK && i < CR_BESIDES; i++)
        if (beside[i].source && beside[i].source != CR_SOURCE_STREAM)
            status = cr_fail(error, CR_INVALID_ARGUMENT,
                             "%s: descriptors and regions belong to the native protocol (libcured, cured-client); set "
                             "stream",
                             cr_beside_names_of[i].name);
    return status;
}

/* ---- Reduce, Merge ---- */

static bool reduce_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    cr_call *call = cr_grpc_stream_ask(stream);
    if (!call) return false;
    cr_wire_call *asked = cr_call_request(call);
    cr_wire_beside beside[CR_BESIDES];
    cr_status status = cr_wire_unpack_reduce(in, len, asked, &error);
    if (status == CR_OK) status = take_beside(CR_FORM_REDUCE, in, len, asked, beside, &error);
    if (status == CR_OK) status = cr_call_parameters(call, CR_FORM_REDUCE, in, len, &error);
    if (status == CR_OK) status = cr_call_layout(call, CR_FORM_REDUCE, in, len, &error);
    if (status == CR_OK && asked->reduce.source == CR_SOURCE_STREAM)
        status = cr_fail(&error, CR_INVALID_ARGUMENT,
                         "input: an array that is a stream comes by ReduceStream; give data here");
    const bool takes = status == CR_OK && cr_wire_takes_beside(&asked->reduce);
    if (status == CR_OK && stream->is_before && !takes)
        status = cr_fail(&error, CR_INVALID_ARGUMENT, "beside: the request names nothing beside its array");
    if (status == CR_OK) /* how long an array is that comes behind other bytes shows at its end */
        status = as_stream(asked, !takes, whole ? 0 : stream->bulk_left, &error);
    return cr_grpc_stream_call(stream, call, beside, status, &error);
}

static bool reduce_bulk(cr_grpc_stream *stream, uint64_t bytes) {
    if (cr_call_takes_whole(stream->call, bytes) && bytes) {
        stream->reading = CR_GRPC_WHOLE;
        return true;
    }
    return cr_call_coming(stream->call, bytes);
}

static void call_over(cr_grpc_stream *stream) {
    if (stream->call) cr_call_end(stream->call);
}

/* The message is whole: what it lacks never comes. */
static void reduce_over(cr_grpc_stream *stream) {
    const uint64_t left = stream->call ? cr_call_second_left(stream->call) : 0;
    cr_error error;
    if (!left) {
        call_over(stream);
        return;
    }
    cr_fail(&error, CR_INVALID_ARGUMENT,
            "second: data ends %llu bytes before it does; put both arrays into data, in turn, %d bytes of each at a "
            "time",
            (ull)left, CR_PAIR_BLOCK_BYTES);
    cr_grpc_stream_fail(stream, &error);
}

static bool merge_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    (void)whole;
    cr_call *call = cr_grpc_stream_ask(stream);
    if (!call) return false;
    cr_wire_call *asked = cr_call_request(call);
    cr_status status = cr_wire_unpack_merge(in, len, asked, &error);
    if (status == CR_OK && asked->reduce.source == CR_SOURCE_STREAM)
        status =
            cr_fail(&error, CR_INVALID_ARGUMENT, "MergeRequest.input is for the native protocol; give partials here");
    if (status == CR_OK && asked->reduce.keyed && !stream->method->parts)
        status = cr_fail(&error, CR_INVALID_ARGUMENT,
                         "keyed: what partials by key give comes in parts, and Merge answers by one message: call "
                         "MergeStream");
    if (status == CR_OK) status = as_stream(asked, false, 0, &error);
    return cr_grpc_stream_call(stream, call, NULL, status, &error);
}

/* A partial. The call takes each behind its length. */
static bool merge_bulk(cr_grpc_stream *stream, uint64_t bytes) {
    const uint32_t length = htole32((uint32_t)bytes);
    if (bytes > UINT32_MAX) return fail(stream, "MergeRequest.partials: one of them is no partial");
    if (!cr_call_coming(stream->call, sizeof length + bytes)) return false;
    for (size_t put = 0; put < sizeof length;) {
        uint8_t *at;
        size_t room, step = sizeof length - put;
        if (cr_call_room(stream->call, &at, &room) != CR_ROOM) return false; /* merging always has room */
        if (step > room) step = room;
        memcpy(at, (const uint8_t *)&length + put, step);
        put += step;
        if (!cr_call_filled(stream->call, step)) return false;
    }
    return true;
}

/* ---- ReduceStream ---- */

static bool chunk_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    if (!whole && len)
        return fail(stream, "ReduceChunk has head and data, or data with progress_ms: one goes in a message");
    if (!whole && !stream->call) return fail(stream, "ReduceStream: data came before the head");
    if (!whole) return true;
    if (stream->call) return fail(stream, "ReduceStream: a second head came, or a chunk with neither head nor data");
    cr_call *call = cr_grpc_stream_ask(stream);
    if (!call) return false;
    cr_wire_call *asked = cr_call_request(call);
    cr_wire_beside beside[CR_BESIDES];
    cr_status status = cr_wire_unpack_head(in, len, asked, &error);
    if (status == CR_OK) status = take_beside(CR_FORM_HEAD, in, len, asked, beside, &error);
    if (status == CR_OK) status = cr_call_parameters(call, CR_FORM_HEAD, in, len, &error);
    if (status == CR_OK) status = cr_call_layout(call, CR_FORM_HEAD, in, len, &error);
    if (status == CR_OK) status = as_stream(asked, asked->reduce.length_known, asked->reduce.length, &error);
    return cr_grpc_stream_call(stream, call, beside, status, &error);
}

static bool chunk_bulk(cr_grpc_stream *stream, uint64_t bytes) { return cr_call_coming(stream->call, bytes); }

static void nothing(cr_grpc_stream *stream) { (void)stream; }

static void end_chunks(cr_grpc_stream *stream) {
    if (stream->call)
        cr_call_end(stream->call);
    else
        fail(stream, "ReduceStream: the stream ended before a head came");
}

/* ---- Info, Stats, SlowLog ---- */

static bool answer(cr_grpc_stream *stream, cr_wire_kind kind, cr_status status, const cr_error *error) {
    const cr_grpc_conn *conn = stream->conn;
    static uint8_t packed[CR_HEAD_MAX_BYTES]; /* the loop's */
    if (status != CR_OK) return cr_grpc_stream_fail(stream, error);
    const size_t n = cr_answer_plain(conn->grpc->calls, stream->peer, kind, packed, sizeof packed);
    uint8_t *at = cr_grpc_reply_room(stream, n);
    if (!at) return false;
    memcpy(at, packed, n);
    cr_grpc_reply_message(stream, n);
    cr_grpc_reply_end(stream, NULL);
    return true;
}

static bool info_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    (void)whole;
    return answer(stream, CR_CALL_INFO, cr_wire_unpack_info_request(in, len, &error), &error);
}

static bool stats_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    (void)whole;
    return answer(stream, CR_CALL_STATS, cr_wire_unpack_stats_request(in, len, &error), &error);
}

static bool slow_log_message(cr_grpc_stream *stream, const uint8_t *in, size_t len, bool whole) {
    cr_error error;
    (void)whole;
    return answer(stream, CR_CALL_SLOW_LOG, cr_wire_unpack_slow_log_request(in, len, &error), &error);
}

const cr_grpc_method cr_grpc_methods[] = {
    {"/cured.v1.Cured/Reduce", CR_METHOD_reduce, REDUCE_DATA, REDUCE_BESIDE, false, false, false, reduce_message,
     reduce_bulk, reduce_over, end_unary},
    {"/cured.v1.Cured/ReduceStream", CR_METHOD_reduce_stream, CHUNK_DATA, 0, false, true, true, chunk_message,
     chunk_bulk, nothing, end_chunks},
    {"/cured.v1.Cured/Merge", CR_METHOD_merge, MERGE_PARTIALS, 0, true, false, false, merge_message, merge_bulk,
     call_over, end_unary},
    {"/cured.v1.Cured/MergeStream", CR_METHOD_merge, MERGE_PARTIALS, 0, true, false, true, merge_message, merge_bulk,
     call_over, end_unary},
    {"/cured.v1.Cured/Info", CR_METHOD_info, 0, 0, false, false, false, info_message, NULL, nothing, end_unary},
    {"/cured.v1.Cured/Stats", CR_METHOD_stats, 0, 0, false, false, false, stats_message, NULL, nothing, end_unary},
    {"/cured.v1.Cured/SlowLog", CR_METHOD_slow_log, 0, 0, false, false, false, slow_log_message, NULL, nothing,
     end_unary},
    {"/grpc.health.v1.Health/Check", CR_METHOD_health, 0, 0, false, false, false, cr_health_check, NULL, nothing,
     end_unary},
    {"/grpc.health.v1.Health/Watch", CR_METHOD_health, 0, 0, false, false, false, cr_health_watch, NULL, nothing,
     end_unary},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", CR_METHOD_reflection, 0, 0, false, true, false,
     cr_reflection_message, NULL, nothing, cr_reflection_end},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", CR_METHOD_reflection, 0, 0, false, true, false,
     cr_reflection_message, NULL, nothing, cr_reflection_end},
    {0},
};
