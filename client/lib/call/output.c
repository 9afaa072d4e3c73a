/* output: what the calls of a connection send: frames, their order on the wire, and the numbers by which the daemon answers.
 *
 * Order on the wire: the rest of a frame that is partly sent, then the connection's own small frames, then the calls' pieces
 * in turn. A CALL with a descriptor starts a message of its own (SCM_RIGHTS goes with the first byte).
 *
 * Thread: the one that uses the connection. Owner: nothing is copied; the pieces belong to their calls. */
#include <string.h>

#include "client/lib/call/beside.h"
#include "client/lib/call/call.h"
#include "client/lib/call/gather.h"
#include "client/lib/call/keyed.h"
#include "client/lib/call/outputs.h"
#include "client/lib/call/regions.h"

enum {
    SHARED_FRAME_BYTES = 256 * 1024, /* a frame is no longer than this while other calls wait their turn */
    CREDIT_BYTES = 16,               /* a packed Credit, at most */
    ENOUGH_BYTES = 1024 * 1024,      /* more than any socket takes at once */
    ZERO_BYTES = 64 * 1024,
};

static void hash_insert(cured_call *call) {
    cured_call **bucket = &call->calls->hash[call->stream % CR_CL_BUCKETS];
    call->hash_next = *bucket;
    *bucket = call;
    call->hashed = true;
}

void cr_cl_call_forget(cured_call *call) {
    if (!call->hashed) return;
    cured_call **p = &call->calls->hash[call->stream % CR_CL_BUCKETS];
    while (*p != call) p = &(*p)->hash_next;
    *p = call->hash_next;
    call->hashed = false;
}

cured_call *cr_cl_call_lookup(const cr_cl_calls *calls, uint32_t stream) {
    cured_call *call = calls->hash[stream % CR_CL_BUCKETS];
    while (call != NULL && call->stream != stream) call = call->hash_next;
    return call;
}

static void put_frame(cured_call *call, cr_frame_type type, uint16_t flags, uint32_t length) {
    cr_frame f = {.type = (uint8_t)type, .flags = flags, .stream = call->stream, .length = length};
    if (type == CR_FRAME_CALL && call->fd >= 0) f.descriptors = 1;
    cr_frame_put(call->head + call->head_len, &f);
    call->head_len += CR_FRAME_HEADER_BYTES;
}

/* Whether the call's array comes in DATA. */
static bool streams(const cured_call *call) { return call->kind == KIND_BUFFER || call->kind == KIND_STREAM; }

/* Makes one DATA of at most most of the `left` bytes at *from, as far as credit goes. last: no bytes come behind all of them. Returns how
 * many, which *from moves by; SIZE_MAX: there is no DATA to send now. */
static size_t put_data(cured_call *call, const uint8_t **from, size_t left, uint64_t most, bool last) {
    const cr_cl_calls *calls = call->calls;
    const bool alone = calls->queue.next == calls->queue.prev;
    const size_t longest = alone ? CR_DATA_MAX_BYTES : SHARED_FRAME_BYTES;
    size_t n = left < longest ? left : longest;
    if (n > most) n = (size_t)most;
    if (n > call->credit) n = (size_t)call->credit;
    if (call->end_sent || (n == 0 && (left != 0 || !last))) return SIZE_MAX;
    call->end_sent = last && n == left;
    put_frame(call, CR_FRAME_DATA, call->end_sent ? CR_FLAG_END : 0, (uint32_t)n);
    call->body = *from;
    call->body_len = n;
    if (n != 0) *from += n;
    call->credit -= n;
    return n;
}

/* Adds the next DATA to the head, as far as bytes and credit go; false when there is none to send. */
static bool add_data(cured_call *call) {
    const bool before = call->beside_len != 0; /* the array's */
    if (!before) cr_cl_gather_next(call);      /* which moves `handed` */
    const bool all = call->end_wanted || call->handed == call->declared;
    bool is_second = false;
    uint64_t most = UINT64_MAX;
    const bool pairs = !before && cr_cl_beside_in_turn(call, &is_second, &most);
    size_t n;
    if (before) {
        n = put_data(call, &call->beside, call->beside_len, most, !streams(call) && cr_cl_beside_is_last(call));
        if (n != SIZE_MAX) call->beside_len -= n;
        if (n != SIZE_MAX) cr_cl_beside_next(call);
    } else if (is_second) {
        const uint8_t *from = call->second.data == NULL ? NULL : (const uint8_t *)call->second.data + call->second_sent;
        n = put_data(call, &from, (size_t)most, most, all && call->first_sent == call->declared);
        if (n != SIZE_MAX) call->second_sent += n;
    } else {
        n = put_data(call, &call->source, call->source_len, most, streams(call) ? all && !pairs : true);
        if (n != SIZE_MAX) call->source_len -= n;
        if (n != SIZE_MAX && pairs) call->first_sent += n;
    }
    if (n == SIZE_MAX) return false;
    call->body_is_input = !before && !is_second;
    return true;
}

bool cr_cl_call_next_frame(cured_call *call) {
    call->head_len = call->head_pos = 0;
    call->body = NULL;
    call->body_len = call->body_pos = 0;
    if (call->cancel_due) {
        call->cancel_due = false;
        put_frame(call, CR_FRAME_CANCEL, 0, 0);
        return true;
    }
    if (call->state != CALL_ACTIVE || call->held || !(streams(call) || cr_cl_beside_sends(call))) return false;
    return add_data(call);
}

/* Bytes of answers, beyond those that a daemon sends unasked. */
static uint64_t answers_credit(const cured_call *call) {
    if (call->array != NULL) return cr_cl_array_credit(call->array);
    const uint64_t most = cr_cl_keyed_asks(call) ? cr_cl_keyed_most(call) : 0;
    return most > CR_CREDIT_INITIAL_BYTES ? most - CR_CREDIT_INITIAL_BYTES : 0;
}

static void put_call(cured_call *call) {
    cr_cl_calls *calls = call->calls;
    call->stream = ++calls->last_stream;
    hash_insert(call);
    if (call->deadline_ns != 0) {
        uint64_t now = cr_now_ns();
        uint64_t left_ms = call->deadline_ns > now ? (call->deadline_ns - now) / 1000000 : 0;
        call->request.timeout_ms = left_ms > 0 ? (uint32_t)left_ms : 1;
    }
    const uint8_t *longer = NULL; /* than the head */
    size_t n;
    if (call->pieces != NULL) {
        n = cr_cl_regions_pack(call);
        longer = call->owned;
    } else if (cr_cl_outputs_written(call)) {
        n = cr_cl_outputs_pack(call, &longer);
    } else if (call->block != NULL) {
        longer = call->block->packed;
        n = cr_cl_beside_pack(call, NULL, call->block->packed, sizeof call->block->packed);
    } else {
        n = cr_cl_beside_pack(call, NULL, call->head + CR_FRAME_HEADER_BYTES,
                              sizeof call->head - 3 * CR_FRAME_HEADER_BYTES - CREDIT_BYTES);
    }
    bool no_data = !streams(call) && !cr_cl_beside_sends(call);
    put_frame(call, CR_FRAME_CALL, no_data ? CR_FLAG_END : 0, (uint32_t)n);
    call->fd_due = call->fd >= 0;
    if (longer != NULL) { /* DATA follows behind it */
        call->body = longer;
        call->body_len = n;
        call->body_is_input = false;
        return;
    }
    call->head_len += (uint32_t)n;
    const uint64_t due = answers_credit(call);
    if (due != 0) {
        uint8_t credit[CREDIT_BYTES];
        n = cr_wire_pack_credit(due, credit, sizeof credit);
        put_frame(call, CR_FRAME_CREDIT, 0, (uint32_t)n);
        memcpy(call->head + call->head_len, credit, n);
        call->head_len += (uint32_t)n;
    }
    if (!no_data) add_data(call);
}

/* Whether the call has to know first what the daemon grants, or that its outputs are open. */
static bool must_wait(const cured_call *call) {
    const cr_cl_calls *calls = call->calls;
    if (calls->welcomed) return calls->has[CR_FEATURE_OUTPUTS] && cr_cl_outputs_opening(call);
    return cr_cl_array_wants_statuses(call->array) || cr_cl_beside_sends(call) || cr_cl_beside_asks(call) ||
           call->block != NULL || cr_cl_keyed_asks(call) || cr_cl_keyed_merges(call) || call->outputs != NULL ||
           cr_cl_regions_writable(call);
}

void cr_cl_call_send(cured_call *call) {
    cr_cl_calls *calls = call->calls;
    cr_error error;
    call->held = must_wait(call);
    if (call->held) return;
    if (call->kind == KIND_REGISTER)
        call->request.region.writable = call->request.region.writable && calls->has[CR_FEATURE_OUTPUTS];
    if (cr_cl_beside_check(call, &error) != CR_OK || cr_cl_outputs_choose(call, &error) != CR_OK) {
        cr_cl_call_finish(call, error.code, 0, error.text);
        return;
    }
    if (call->array != NULL)
        call->request.reduce.statuses = calls->has[CR_FEATURE_STATUSES] && cr_cl_array_wants_statuses(call->array);
    call->credit = calls->credit;
    if (call->kind == KIND_PING) {
        call->ping_id = ++calls->last_ping;
        put_frame(call, CR_FRAME_PING, 0, sizeof call->ping_id);
        memcpy(call->head + call->head_len, &call->ping_id, sizeof call->ping_id);
        call->head_len += sizeof call->ping_id;
    } else {
        put_call(call);
    }
    cr_cl_call_enqueue(call);
}

void cr_cl_call_more(cured_call *call) {
    if (cr_list_empty(&call->queue) && cr_cl_call_next_frame(call)) cr_cl_call_enqueue(call);
}

/* ---- several calls together ---- */

static const uint8_t zeros[ZERO_BYTES];

static cured_call *first_call(const cr_cl_calls *calls) {
    return cr_list_empty(&calls->queue) ? NULL : cr_container(calls->queue.next, cured_call, queue);
}

static cured_call *call_after(const cr_cl_calls *calls, const cured_call *call) {
    return call->queue.next == &calls->queue ? NULL : cr_container(call->queue.next, cured_call, queue);
}

static void add(cr_cl_message *m, const void *base, size_t len) {
    if (len == 0) return;
    m->iov[m->pieces++] = (struct iovec){.iov_base = (void *)(uintptr_t)base, .iov_len = len};
    m->bytes += len;
}

static void add_call(cr_cl_message *m, const cured_call *call) {
    size_t left = call->body_len - call->body_pos;
    add(m, call->head + call->head_pos, call->head_len - call->head_pos);
    if (call->body != NULL) {
        add(m, call->body + call->body_pos, left);
    } else {
        add(m, zeros, left < ZERO_BYTES ? left : ZERO_BYTES);
        m->full = left > ZERO_BYTES; /* nothing may come between the rest of the zeros and these */
    }
    if (m->pieces > CR_CL_PIECES - 3 || m->bytes >= ENOUGH_BYTES) m->full = true;
}

void cr_cl_calls_gather(const cr_cl_calls *calls, const uint8_t *own, size_t own_bytes, cr_cl_message *m) {
    cured_call *call = first_call(calls);
    m->pieces = m->bytes = 0;
    m->fd_call = NULL;
    m->full = false;
    if (call != NULL && cr_cl_call_begun(call)) {
        add_call(m, call);
        call = call_after(calls, call);
    }
    if (m->full) return;
    add(m, own, own_bytes);
    for (; call != NULL && !m->full; call = call_after(calls, call)) {
        if (call->fd_due) {
            if (m->pieces != 0) return;
            m->fd_call = call;
            m->fd = call->fd;
        }
        add_call(m, call);
    }
}

/* Counts n sent bytes against one call; a call whose piece is sent readies its next and goes to the end of the queue. */
static void sent_by_call(cured_call *call, size_t *n) {
    size_t head = call->head_len - call->head_pos;
    if (head > *n) head = *n;
    call->head_pos += (uint32_t)head;
    *n -= head;
    size_t body = call->body_len - call->body_pos;
    if (body > *n) body = *n;
    call->body_pos += body;
    *n -= body;
    call->sent = true;
    call->fd_due = false;
    if (call->head_pos < call->head_len || call->body_pos < call->body_len) return;
    cr_list_remove(&call->queue);
    if (cr_cl_call_next_frame(call))
        cr_cl_call_enqueue(call);
    else if (call->freed)
        cr_cl_call_destroy(call);
}

size_t cr_cl_calls_sent(cr_cl_calls *calls, size_t own_bytes, size_t n) {
    cured_call *first = first_call(calls);
    if (first != NULL && cr_cl_call_begun(first)) sent_by_call(first, &n);
    if (own_bytes > n) own_bytes = n;
    n -= own_bytes;
    while (n != 0) sent_by_call(first_call(calls), &n);
    return own_bytes;
}

void cr_cl_calls_fd_refused(const cr_cl_message *message) {
    cr_cl_call_finish(message->fd_call, CR_RESOURCE_EXHAUSTED, 0,
                      "the descriptor could not be passed: too many are in flight");
}
