/* group: see group.h. Thread: the loop's. Owner: the stream of the client's call. */
#include "server/native/group.h"

#include <stdlib.h>

#include "kernels/core/serial.h"
#include "server/native/regions.h"

typedef unsigned long long ull;

typedef struct cr_group {
    cr_stream *whole; /* the client's call */
    uint32_t count, left;
    bool starting, failed;                 /* while pieces start, none may end the client's call */
    cr_error error;                        /* with failed */
    bool merged;                           /* sum holds something */
    cr_stream *pieces[CR_CALL_MAX_PIECES]; /* NULL: over */
    cr_wire_progress so_far[CR_CALL_MAX_PIECES];
    cr_share sum;
} cr_group;

static uint32_t index_of(const cr_group *group, const cr_stream *piece) {
    uint32_t i = 0;
    while (group->pieces[i] != piece) i++;
    return i;
}

/* The calls of all pieces end, without an answer. */
static void cancel_pieces(cr_group *group) {
    for (uint32_t i = 0; i < group->count; i++) {
        cr_stream *piece = group->pieces[i];
        group->pieces[i] = NULL;
        if (!piece) continue;
        cr_regions_forget(piece, NULL);
        cr_call_cancel(piece->call, NULL);
    }
}

/* Ends the client's call if there is nothing to wait for any more. The group may be gone. */
static void settle(cr_group *group) {
    if (group->starting) return;
    cr_error error = group->error;
    if (group->failed)
        cr_call_cancel(group->whole->call, &error);
    else if (!group->left)
        cr_call_merged(group->whole->call, &group->sum);
}

static void fail(cr_group *group, uint32_t index, const cr_error *why) {
    if (group->failed) return;
    group->failed = true;
    cr_fail(&group->error, why->code, "regions[%u]: %s", index, why->text);
}

/* ---- what the call of a piece tells ---- */

static void on_progress(cr_call *call, const cr_wire_progress *so_far) {
    const cr_stream *piece = cr_call_front(call);
    piece->group->so_far[index_of(piece->group, piece)] = *so_far;
}

static void on_answer(cr_call *call, const cr_answer *answer) {
    cr_stream *piece = cr_call_front(call);
    cr_group *group = piece->group;
    cr_error error;
    const uint32_t index = index_of(group, piece);
    cr_regions_forget(piece, answer->error);
    group->pieces[index] = NULL;
    group->left--;
    if (answer->kind == CR_ANSWER_FAILED) {
        fail(group, index, answer->error);
    } else if (!group->merged) {
        group->sum = *answer->share;
        group->merged = true;
    } else if (cr_share_merge(&group->sum, answer->share, &error) != CR_OK) {
        fail(group, index, &error);
    }
    settle(group);
}

static const cr_front piece_front = {.bytes = sizeof(cr_stream), .progress = on_progress, .answer = on_answer};

/* ---- beginning ---- */

/* A call for the piece; NULL: error says why not. */
static cr_stream *make_piece(cr_group *group, const cr_wire_piece *from, uint64_t first, cr_error *error) {
    cr_stream *whole = group->whole;
    cr_call *call = cr_call_new(whole->conn->native->calls, &piece_front, &whole->conn->peer);
    if (!call) {
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
        return NULL;
    }
    cr_call_is_piece(call, whole->call);
    cr_wire_call *asked = cr_call_request(call);
    *asked = *cr_call_request(whole->call);
    asked->timeout_ms = 0; /* the client's call has the deadline */
    cr_wire_reduce *r = &asked->reduce;
    r->source = CR_SOURCE_REGION;
    r->region = from->region;
    r->offset = from->offset;
    r->length_known = !from->to_end;
    r->length = from->count;
    r->first = first;
    r->want_partial = true;
    if (cr_call_admit(call, error) != CR_OK) {
        cr_call_refuse(call, error);
        return NULL;
    }
    cr_stream *piece = cr_call_front(call);
    piece->call = call;
    piece->conn = whole->conn;
    piece->group = group;
    cr_list_init(&piece->link);
    cr_list_init(&piece->stalled);
    cr_list_init(&piece->in_region);
    return piece;
}

/* What a call over several regions cannot ask for. */
static cr_status check(const cr_wire_reduce *r, const cr_wire_piece *pieces, cr_error *error) {
    uint64_t end = r->first;
    if (r->has_axis)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "regions: answers along an axis do not merge; reduce each region along it by itself");
    if (r->has_layout)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "layout: not with several regions; reduce each of them by itself, with the block that it is");
    if (r->kernel[0])
        return cr_fail(error, CR_INVALID_ARGUMENT, "regions: kernel %s folds one array; name one region", r->kernel);
    for (uint64_t i = 0; i < r->length; i++) {
        if (pieces[i].count > (uint64_t)INT64_MAX - end)
            return cr_fail(error, CR_INVALID_ARGUMENT, "regions[%llu]: first and all counts so far exceed 2^63",
                           (ull)i);
        end += pieces[i].count;
    }
    return CR_OK;
}

/* Makes and starts the calls of all pieces. */
static void start(cr_group *group, const cr_wire_piece *pieces) {
    cr_error error;
    const cr_wire_reduce r = cr_call_request(group->whole->call)->reduce;
    uint64_t first = r.first;
    group->starting = true;
    for (uint32_t i = 0; i < group->count && !group->failed; i++) {
        cr_stream *piece = make_piece(group, &pieces[i], first, &error);
        if (!piece) {
            fail(group, i, &error);
            break;
        }
        group->pieces[i] = piece;
        group->left++;
        if (!r.unplaced) first += pieces[i].count;
        if (cr_call_begin(piece->call, NULL)) cr_regions_reduce(piece);
    }
    group->starting = false;
}

void cr_group_begin(cr_stream *stream, const uint8_t *payload, size_t bytes) {
    cr_error error;
    cr_wire_piece pieces[CR_CALL_MAX_PIECES];
    const cr_wire_reduce *r = &cr_call_request(stream->call)->reduce;
    cr_group *group = NULL;
    cr_status status = cr_wire_unpack_pieces(payload, bytes, pieces, &error);
    if (status == CR_OK) status = check(r, pieces, &error);
    if (status == CR_OK && !(group = calloc(1, sizeof *group)))
        status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for several regions");
    if (status != CR_OK) {
        cr_call_cancel(stream->call, &error);
        return;
    }
    stream->group = group;
    group->whole = stream;
    group->count = (uint32_t)r->length;
    cr_call_split(stream->call);
    start(group, pieces);
    settle(group);
}

void cr_group_drop(cr_stream *stream) {
    cr_group *group = stream->group;
    if (!group) return;
    stream->group = NULL;
    cancel_pieces(group);
    free(group);
}

bool cr_group_progress(const cr_stream *stream, cr_wire_progress *sum) {
    const cr_group *group = stream->group;
    if (!group) return false;
    *sum = (cr_wire_progress){0, 0};
    for (uint32_t i = 0; i < group->count; i++) {
        sum->bytes_done += group->so_far[i].bytes_done;
        sum->bytes_total += group->so_far[i].bytes_total;
    }
    return true;
}
