/* call: the life of a call inside the library: queued, sent, answered or given up, tried again, freed.
 *
 *   cr_cl_call_submit ─▶ ACTIVE ─▶ DONE        cr_cl_call_finish; cr_cl_call_abandon also sends CANCEL
 *                    │ ▲
 *                    ▼ │ cr_cl_call_submit, when the time has come
 *                   RETRY                cr_cl_call_failed
 *
 * Thread: the one that uses the connection. Owner: internal.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/internal.h"

enum {
    SHARED_FRAME_BYTES = 256 * 1024, /* a frame is no longer than this while other calls wait their turn */
    RETRY_FIRST_MS = 10,
    RETRY_LAST_MS = 1000,
    CREDIT_BYTES = 16, /* a packed Credit, at most */
};

static bool queued(const cured_call *call) { return !cr_list_empty(&call->queue); }

static bool begun(const cured_call *call) { return call->head_pos != 0 || call->body_pos != 0; }

static void hash_insert(cured_call *call) {
    cured_call **bucket = &call->conn->hash[call->stream % HASH_BUCKETS];
    call->hash_next = *bucket;
    *bucket = call;
    call->hashed = true;
}

static void hash_remove(cured_call *call) {
    if (!call->hashed) return;
    cured_call **p = &call->conn->hash[call->stream % HASH_BUCKETS];
    while (*p != call) p = &(*p)->hash_next;
    *p = call->hash_next;
    call->hashed = false;
}

cured_call *cr_cl_call_lookup(const cured_conn *conn, uint32_t stream) {
    cured_call *call = conn->hash[stream % HASH_BUCKETS];
    while (call != NULL && call->stream != stream) call = call->hash_next;
    return call;
}

void cr_cl_call_enqueue(cured_call *call) {
    if (!queued(call)) cr_list_append(&call->conn->queue, &call->queue);
}

void cr_cl_call_dequeue(cured_call *call) {
    cr_list_remove(&call->queue);
    if (call->freed) cr_cl_call_destroy(call);
}

void cr_cl_call_destroy(cured_call *call) {
    if (call->fd >= 0) close(call->fd);
    for (uint32_t i = 0; i < call->value_count; i++) free(call->values[i].message);
    free(call->info);
    free(call->reloaded);
    free(call->json);
    cr_cl_array_free(call->array);
    free(call->partial);
    free(call->owned);
    free(call->pieces);
    cr_cl_outputs_free(call);
    free(call);
}

static void put_frame(cured_call *call, cr_frame_type type, uint16_t flags, uint32_t length) {
    cr_frame f = {.type = (uint8_t)type, .flags = flags, .stream = call->stream, .length = length};
    if (type == CR_FRAME_CALL && call->fd >= 0) f.descriptors = 1;
    cr_frame_put(call->head + call->head_len, &f);
    call->head_len += CR_FRAME_HEADER_BYTES;
}

/* Adds the next DATA to the head, as far as bytes and credit go; false when there is none to send. */
static bool add_data(cured_call *call) {
    const cured_conn *conn = call->conn;
    bool complete = call->end_wanted || call->handed == call->declared;
    size_t n = call->source_len;
    bool alone = conn->queue.next == conn->queue.prev;
    size_t longest = alone ? CR_DATA_MAX_BYTES : SHARED_FRAME_BYTES;
    if (n > longest) n = longest;
    if (n > call->credit) n = (size_t)call->credit;
    if (call->end_sent || (n == 0 && (call->source_len != 0 || !complete))) return false;
    call->end_sent = complete && n == call->source_len;
    put_frame(call, CR_FRAME_DATA, call->end_sent ? CR_FLAG_END : 0, (uint32_t)n);
    call->body = call->source;
    call->body_len = n;
    if (n != 0) call->source += n;
    call->source_len -= n;
    call->framed += n;
    call->credit -= n;
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
    if (call->state != CALL_ACTIVE || call->held || (call->kind != KIND_BUFFER && call->kind != KIND_STREAM))
        return false;
    return add_data(call);
}

static void put_call(cured_call *call) {
    cured_conn *conn = call->conn;
    call->stream = ++conn->last_stream;
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
    } else {
        n = cr_wire_pack_call(&call->request, call->head + CR_FRAME_HEADER_BYTES,
                              sizeof call->head - 3 * CR_FRAME_HEADER_BYTES - CREDIT_BYTES);
    }
    bool no_data = call->kind != KIND_BUFFER && call->kind != KIND_STREAM;
    put_frame(call, CR_FRAME_CALL, no_data ? CR_FLAG_END : 0, (uint32_t)n);
    call->fd_due = call->fd >= 0;
    if (longer != NULL) { /* DATA follows behind it */
        call->body = longer;
        call->body_len = n;
        return;
    }
    call->head_len += (uint32_t)n;
    if (call->array != NULL && cr_cl_array_credit(call->array) != 0) {
        uint8_t credit[CREDIT_BYTES];
        n = cr_wire_pack_credit(cr_cl_array_credit(call->array), credit, sizeof credit);
        put_frame(call, CR_FRAME_CREDIT, 0, (uint32_t)n);
        memcpy(call->head + call->head_len, credit, n);
        call->head_len += (uint32_t)n;
    }
    if (!no_data) add_data(call);
}

void cr_cl_call_submit(cured_call *call) {
    cured_conn *conn = call->conn;
    /* A call that waits for another try has its region registered, and waits with it. */
    bool waits = call->retries != 0 || call->kind == KIND_REGISTER;
    uint32_t away_ms = waits ? 0 : cr_cl_conn_circuit_ms(conn);
    cr_error error;
    if (away_ms != 0) {
        cr_fail(&error, CR_UNAVAILABLE, "no daemon at the last %u attempts: %.150s", conn->failures, conn->error.text);
        cr_cl_call_finish(call, error.code, away_ms, error.text);
        return;
    }
    if (conn->calls.next == conn->calls.prev) cr_cl_conn_watch(conn, call->retries == 0 ? call->start_ns : cr_now_ns());
    if ((call->kind == KIND_REGION && cr_cl_regions_ensure(call, &error) != CR_OK) ||
        cr_cl_outputs_ensure(call, &error) != CR_OK) {
        cr_cl_call_finish(call, error.code, 0, error.text);
        return;
    }
    call->state = CALL_ACTIVE;
    call->sent = call->end_sent = false;
    call->head_len = call->head_pos = 0;
    call->body = NULL;
    call->body_len = call->body_pos = 0;
    call->source = call->data;
    call->source_len = (size_t)call->data_bytes;
    call->framed = 0;
    if (call->array != NULL) cr_cl_array_reset(call->array);
    call->conn->way->begin(call);
}

static void send_held(cured_conn *conn, bool registers) {
    for (cr_list *l = conn->calls.next, *next; l != &conn->calls; l = next) {
        cured_call *call = cr_container(l, cured_call, all);
        next = l->next;
        if (call->state == CALL_ACTIVE && call->held && (call->kind == KIND_REGISTER) == registers)
            cr_cl_call_send(call);
    }
}

void cr_cl_calls_held(cured_conn *conn) {
    conn->registered = false;
    send_held(conn, true); /* of a call that is tried again it comes behind the call */
    send_held(conn, false);
}

/* Whether the call has to know first what the daemon grants, or that its outputs are open. */
static bool must_wait(const cured_call *call) {
    const cured_conn *conn = call->conn;
    if (conn->welcomed) return conn->has_outputs && cr_cl_outputs_opening(call);
    return cr_cl_array_wants_statuses(call->array) || call->outputs != NULL || cr_cl_regions_writable(call);
}

void cr_cl_call_send(cured_call *call) {
    cured_conn *conn = call->conn;
    cr_error error;
    call->held = must_wait(call);
    if (call->held) {
        cr_cl_conn_want(conn);
        return;
    }
    if (call->kind == KIND_REGISTER) call->request.region.writable = call->request.region.writable && conn->has_outputs;
    if (cr_cl_outputs_choose(call, &error) != CR_OK) {
        cr_cl_call_finish(call, error.code, 0, error.text);
        return;
    }
    if (call->array != NULL)
        call->request.reduce.statuses = conn->has_statuses && cr_cl_array_wants_statuses(call->array);
    call->credit = conn->credit;
    if (call->kind == KIND_PING) {
        call->ping_id = ++conn->last_ping;
        put_frame(call, CR_FRAME_PING, 0, sizeof call->ping_id);
        memcpy(call->head + call->head_len, &call->ping_id, sizeof call->ping_id);
        call->head_len += sizeof call->ping_id;
    } else {
        put_call(call);
    }
    cr_cl_call_enqueue(call);
    cr_cl_conn_want(conn);
}

void cr_cl_call_finish(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text) {
    if (call->state == CALL_DONE) return;
    cured_conn *conn = call->conn;
    call->state = CALL_DONE;
    call->elapsed_ns = (conn->came_ns != 0 ? conn->came_ns : cr_now_ns()) - call->start_ns;
    if (code != CR_OK) cr_fail(&call->error, code, "%s", text); /* which is CR_OK from the start */
    if (conn->way->over != NULL) conn->way->over(call);         /* text may go with it */
    call->retry_after_ms = retry_after_ms;
    hash_remove(call);
    call->source = NULL;
    call->source_len = 0;
    call->body = NULL; /* what is left of a begun frame goes out as zeros */
    if (call->fd >= 0) close(call->fd);
    call->fd = -1;
    cr_list_remove(&call->all);
    if (call->on_done != NULL) cr_list_append(&conn->finished, &call->all);
    if (call->kind == KIND_REGION) cr_cl_regions_release(call);
    cr_cl_outputs_release(call);
    if (call->kind == KIND_REGISTER) conn->registered = true;
    call->region = NULL;
    bool waits = queued(call) && begun(call);
    if (call->detached) call->freed = true;
    if (queued(call) && !begun(call))
        cr_cl_call_dequeue(call);
    else if (call->detached && !waits)
        cr_cl_call_destroy(call);
}

void cr_cl_call_detach(cured_call *call) {
    if (call->state == CALL_DONE)
        cured_call_free(call);
    else
        call->detached = true;
}

void cr_cl_call_abandon(cured_call *call, cr_status code, const char *text) {
    if (call->state == CALL_DONE) return;
    bool tell = call->state == CALL_ACTIVE && call->sent && call->stream != 0;
    bool detached = call->detached;
    call->detached = false; /* it stays until CANCEL is sent */
    cr_cl_call_finish(call, code, 0, text);
    call->cancel_due = tell;
    if (tell && !queued(call) && cr_cl_call_next_frame(call)) cr_cl_call_enqueue(call);
    if (!detached) return;
    call->freed = true;
    if (!queued(call)) cr_cl_call_destroy(call);
}

/* Half to all of the library's own step, or the daemon's advice and up to half of it more. The random part keeps clients that
 * were turned away together from coming back together. */
static uint64_t retry_delay_ns(cured_call *call, uint32_t retry_after_ms) {
    if (retry_after_ms > call->max_wait_ms) retry_after_ms = call->max_wait_ms;
    uint64_t ms = (uint64_t)RETRY_FIRST_MS << (call->retries < 10 ? call->retries : 10);
    if (ms > RETRY_LAST_MS) ms = RETRY_LAST_MS;
    if (retry_after_ms > ms) ms = retry_after_ms;
    uint64_t half = ms * 500000;
    return (retry_after_ms == ms ? 2 * half : half) + cr_cl_conn_random(call->conn) % (half + 1);
}

void cr_cl_call_failed(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text) {
    bool again = (code == CR_UNAVAILABLE || code == CR_RESOURCE_EXHAUSTED) && call->kind != KIND_STREAM &&
                 call->retries_left > 0 && call->conn->state != CONN_DEAD &&
                 !(call->array != NULL && cr_cl_array_handed_over(call->array));
    uint64_t when = 0, now = cr_now_ns();
    if (again) {
        when = now + retry_delay_ns(call, retry_after_ms);
        uint64_t advised = now + retry_after_ms * UINT64_C(1000000); /* an earlier try would be in vain */
        again = call->deadline_ns == 0 || (when < call->deadline_ns && advised < call->deadline_ns);
    }
    if (!again) {
        cr_cl_call_finish(call, code, retry_after_ms, text);
        return;
    }
    hash_remove(call);
    call->state = CALL_RETRY;
    call->retries_left--;
    call->retries++;
    call->retry_ns = when;
    call->source = NULL;
    call->source_len = 0;
    if (queued(call) && !begun(call)) cr_cl_call_dequeue(call);
    cr_cl_process_wake_at(call->conn, when);
}

void cr_cl_call_run_callbacks(cured_conn *conn) {
    while (!cr_list_empty(&conn->finished)) {
        cured_call *call = cr_container(conn->finished.next, cured_call, all);
        cr_list_remove(&call->all);
        call->on_done(call, call->user); /* may free it */
        cr_cl_fork_check(conn);          /* and may have forked */
    }
}

void cured_cancel(cured_call *call) {
    if (call->state == CALL_DONE) return;
    cr_cl_call_abandon(call, CR_CANCELLED, "the call was cancelled by this program");
    cr_list_remove(&call->all);
}

void cured_call_free(cured_call *call) {
    if (call == NULL) return;
    cured_cancel(call);
    cr_list_remove(&call->all);
    call->freed = true;
    if (!queued(call)) cr_cl_call_destroy(call);
}

bool cured_call_done(const cured_call *call) { return call->state == CALL_DONE; }

cured_status cured_call_status(const cured_call *call, cured_error *error) {
    if (call->state != CALL_DONE) return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the call is not done yet");
    return cr_cl_give(error, &call->error, call->retry_after_ms);
}
