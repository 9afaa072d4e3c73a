/* bytes: the array of a call as its bytes come: counted, checked, and put where the lanes, a merge or the loop read them. Thread: the
 * loop's. Owner: the call. */
#include "base/clock.h"
#include "base/metrics.h"
#include "kernels/cpu/fold.h"
#include "kernels/cpu/layout.h"
#include "server/call/beside.h"
#include "server/call/block.h"
#include "server/call/call.h"
#include "server/call/check.h"
#include "server/call/gather.h"
#include "server/call/merge.h"
#include "server/call/ranked.h"

typedef unsigned long long ull;

enum { HERE_BYTES = 64 * 1024 }; /* of a stream that came whole: the loop may fold them: 2 to 10 us, 30 of any bits */

bool cr_call_receives(const cr_call *call) { return call->input == CR_RECEIVING; }

/* Whether bytes more array bytes are what the call declared. */
static cr_status check_more(cr_call *call, uint64_t bytes, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    const char *what;
    const uint64_t expected = cr_call_expects(call, &what);
    if (what && bytes > expected * cr_dtype_size(call->dtype) - call->received)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %llu elements, more bytes came than those take", what,
                       (ull)expected);
    if (r->length_known && bytes > r->length - call->received)
        return cr_fail(error, CR_INVALID_ARGUMENT, "bytes: %llu were declared, more came", (ull)r->length);
    if (r->length_known) return CR_OK;
    return cr_call_grow(call, call->received + bytes, error);
}

/* At the end: whether the array is whole. */
static cr_status check_whole(const cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    size_t size = cr_dtype_size(call->dtype);
    if (r->length_known && call->received != r->length)
        return cr_fail(error, CR_DATA_LOSS, "bytes: %llu were declared, END came after %llu", (ull)r->length,
                       (ull)call->received);
    if (call->request.kind == CR_CALL_MERGE) return CR_OK;
    const char *what;
    const uint64_t expected = cr_call_expects(call, &what);
    if (what && call->received != expected * size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %llu elements of %zu bytes, %llu bytes came", what,
                       (ull)expected, size, (ull)call->received);
    const uint64_t paired = cr_beside_complete(call, call->received);
    if (paired != call->received)
        return cr_fail(error, CR_DATA_LOSS, "second: %llu bytes were declared, END came after %llu",
                       (ull)call->received, (ull)paired);
    const cr_offsets offsets = cr_beside_offsets(call);
    const uint64_t till = offsets.dtype ? cr_offsets_at(&offsets, offsets.count) : 0;
    if (till > call->received / size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: the last is %llu, and %llu elements came", (ull)till,
                       (ull)(call->received / size));
    if (call->received % size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes are not a multiple of %zu, the size of %s",
                       (ull)call->received, size, cr_dtype_name(call->dtype));
    return CR_OK;
}

/* Something that can take the array bytes. */
static cr_status make_place(cr_call *call, cr_error *error) {
    if (call->request.kind == CR_CALL_REDUCE) return call->job ? CR_OK : cr_call_make_job(call, NULL, error);
    if (cr_call_gathers(call)) {
        if (!call->gather) call->gather = cr_gather_new();
        return call->gather ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
    }
    if (!call->merge) call->merge = cr_merge_new();
    return call->merge ? CR_OK : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for merging");
}

bool cr_call_coming(cr_call *call, uint64_t bytes) {
    cr_error error;
    cr_status status = CR_OK;
    bytes = cr_beside_announce(call, bytes);
    if (bytes && call->request.reduce.source != CR_SOURCE_STREAM)
        status = cr_fail(&error, CR_INVALID_ARGUMENT,
                         "DATA: more came than what is beside the array takes, and the input is no stream");
    if (status == CR_OK) status = check_more(call, bytes, &error);
    if (status == CR_OK && bytes && cr_beside_there(call) && !call->ranked) status = make_place(call, &error);
    if (status == CR_OK) {
        call->received += bytes;
        return true;
    }
    cr_call_fail(call, &error);
    return false;
}

cr_room cr_call_room(cr_call *call, uint8_t **at, size_t *room) {
    cr_error error;
    if (call->merge) {
        cr_call_gathers(call) ? cr_gather_room(call->gather, at, room) : cr_merge_room(call->merge, at, room);
        return CR_ROOM;
    }
    if (cr_beside_room(call, at, room)) return CR_ROOM;
    if (!cr_beside_there(call)) {
        cr_patience_end(&call->wait);
        return CR_WAIT;
    }
    if ((call->ranked ? cr_ranked_room(call, at, room, &error) : make_place(call, &error)) != CR_OK) {
        cr_call_fail(call, &error);
        return CR_GONE;
    }
    if (call->ranked) return CR_ROOM;
    bool waits = !cr_outputs_flow(&call->outputs, call->job, cr_beside_complete(call, call->received));
    if (cr_upload_room(&call->upload, waits, at, room, &error)) return CR_ROOM;
    if (error.code == CR_OK) {
        if (!call->outputs.output) cr_patience_end(&call->wait); /* for the daemon, until what came has room */
        return CR_WAIT;
    }
    cr_call_fail(call, &error);
    return CR_GONE;
}

/* The first partial says what type all are of, and whether the asked ops can be answered from them. */
static cr_status merge_filled(cr_call *call, size_t bytes, cr_error *error) {
    cr_merge *m = call->merge;
    cr_status status = CR_OK;
    cr_merge_filled(m, bytes);
    for (bool added = true; status == CR_OK && added;) {
        status = cr_merge_step(m, &added, error);
        call->calls->merged += added;
        if (status != CR_OK || !added || m->merged > 1) continue;
        call->dtype = (cr_dtype)m->sum.partial.dtype;
        status = cr_check_ops(call, error);
        if (status == CR_OK) /* whether they are a whole shows at the end */
            status = cr_share_answers(&m->sum, call->request.reduce.ops, call->request.reduce.op_count, false, error);
    }
    return status;
}

bool cr_call_filled(cr_call *call, size_t bytes) {
    cr_error error;
    cr_patience_brought(&call->calls->patience, &call->wait, bytes);
    if (call->beside && call->beside->coming) return cr_beside_filled(call, bytes);
    if (call->ranked) cr_ranked_filled(call, bytes);
    const bool merges = call->request.kind == CR_CALL_MERGE;
    if (!merges && !call->ranked) cr_upload_filled(&call->upload, bytes);
    if (!merges) return true;
    if ((cr_call_gathers(call) ? cr_gather_filled(call, bytes, &error) : merge_filled(call, bytes, &error)) == CR_OK)
        return true;
    cr_call_fail(call, &error);
    return false;
}

bool cr_call_in_place(const cr_call *call) { return !call->merge || cr_call_gathers(call); }

bool cr_call_flows(const cr_call *call) {
    return cr_outputs_room(&call->outputs, call->job, cr_beside_complete(call, call->received));
}

bool cr_call_takes_whole(const cr_call *call, size_t bytes) {
    return call->input == CR_RECEIVING && call->request.kind == CR_CALL_REDUCE && !call->job && !call->received &&
           cr_beside_there(call) && cr_beside_in_turn(call) == UINT64_MAX &&
           call->request.reduce.source == CR_SOURCE_STREAM && call->geometry == CR_GEOMETRY_WHOLE &&
           !call->request.reduce.kernel[0] && !call->ranked && bytes <= CR_INLINE_BYTES;
}

void cr_call_fold_here(cr_call *call, const uint8_t *data, const uint8_t *second, size_t bytes) {
    cr_partial partial;
    cr_calls *calls = call->calls;
    cr_call_move(call, CR_CLOSED, call->output);
    call->on_loop = true;
    cr_partial_init(&partial, call->dtype, call->families);
    cr_partial_want(&partial, call->wants);
    const cr_view view = {.data = data, .mask = cr_beside_mask(call), .second = second};
    const uint64_t elements = bytes / cr_dtype_size(call->dtype);
    if (call->block)
        cr_cpu_fold_layout(&partial, &call->block->at, data, elements, 0);
    else
        cr_cpu_fold_view(&partial, &view, elements, call->request.reduce.first);
    uint64_t start = calls->last_ns, end = calls->last_ns = cr_now_ns();
    cr_wire_timing timing = {start - call->arrived_ns, end - start, end - call->arrived_ns};
    cr_metric_own_add(calls->counts, calls_inline, 1);
    cr_metric_add_to(calls->counts, input_bytes_total, bytes);
    cr_call_answer_partial(call, &partial, &timing);
}

void cr_call_whole(cr_call *call, const uint8_t *data, size_t bytes) {
    cr_error error;
    cr_status status = check_more(call, bytes, &error);
    if (status == CR_OK) call->received = bytes;
    if (status == CR_OK) status = check_whole(call, &error);
    if (status != CR_OK)
        cr_call_fail(call, &error);
    else
        cr_call_fold_here(call, data, cr_beside_second(call, 0), bytes);
}

/* Whether a fold of HERE_BYTES takes the loop no longer than to wake a worker for it. */
static bool is_quick(uint32_t families) { return __builtin_popcount(families) <= 2 && !(families & CR_FAM_PROD); }

/* A stream that need not wait for a worker, and its second array. NULL: it goes to the lanes. */
static const uint8_t *needs_no_worker(const cr_call *call, uint32_t *bytes, const uint8_t **second) {
    const uint8_t *data = call->job ? cr_upload_whole(&call->upload, bytes, second) : NULL;
    if (!data || *bytes > HERE_BYTES) return NULL;
    return is_quick(call->families) || cr_queue_busy(call->calls->queue) ? data : NULL;
}

void cr_call_end(cr_call *call) {
    cr_error error;
    const uint8_t *data, *second;
    uint32_t bytes;
    const cr_wire_call *asked = &call->request;
    if (!cr_beside_end(call)) return;
    bool merges = asked->kind == CR_CALL_MERGE,
         needs_job = call->geometry != CR_GEOMETRY_WHOLE || asked->reduce.kernel[0] || call->ranked;
    cr_status status = check_whole(call, &error);
    call->closed_ns = call->calls->read_ns;
    if (status == CR_OK && cr_call_gathers(call)) {
        if (cr_gather_end(call, &error) != CR_OK) cr_call_fail(call, &error);
        return;
    }
    if (status == CR_OK && merges) status = cr_merge_check_end(call->merge, &error);
    if (status == CR_OK && merges && !asked->reduce.want_partial)
        status = cr_share_answers(&call->merge->sum, asked->reduce.ops, asked->reduce.op_count, true, &error);
    if (status == CR_OK && !merges && !call->job && needs_job) status = cr_call_make_job(call, NULL, &error);
    if (status == CR_OK && !merges && !needs_job && (data = needs_no_worker(call, &bytes, &second))) {
        cr_queue_unhold(call->calls->queue, call->job); /* over, with nothing in it */
        cr_call_fold_here(call, data, second, bytes);
        return;
    }
    if (status == CR_OK && call->job && !cr_upload_finish(&call->upload))
        status = cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory for the end of the upload");
    if (status != CR_OK) {
        cr_call_fail(call, &error);
    } else if (merges) {
        cr_call_merged(call, &call->merge->sum);
    } else if (!call->job) {
        cr_call_fold_here(call, NULL, NULL, 0);
    } else {
        cr_upload_drop(&call->upload);
        if (call->ranked && cr_ranked_offer(call, &error) != CR_OK) {
            cr_call_fail(call, &error);
            return;
        }
        cr_call_move(call, CR_CLOSED, call->output);
        if (!call->ranked) cr_queue_unhold(call->calls->queue, call->job);
    }
}
