/* call: see call.h. The life of a call: begun, answered or given up, tried again, freed. Thread, owner: see there. */
#include "client/lib/call/call.h"

#include <stdlib.h>
#include <unistd.h>

#include "client/lib/call/beside.h"
#include "client/lib/call/gather.h"
#include "client/lib/call/keyed.h"
#include "client/lib/call/outputs.h"
#include "client/lib/call/regions.h"
#include "client/lib/error.h"

enum { RETRY_FIRST_MS = 10, RETRY_LAST_MS = 1000 };

static bool queued(const cured_call *call) { return !cr_list_empty(&call->queue); }

void cr_cl_call_enqueue(cured_call *call) {
    if (!queued(call)) cr_list_append(&call->calls->queue, &call->queue);
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
    cr_cl_gather_free(call->gather);
    free(call->block);
    if (call->ranked != NULL) free(call->ranked->counts);
    free(call->ranked);
    free(call->pieces);
    cr_cl_outputs_free(call);
    free(call);
}

void cr_cl_call_submit(cured_call *call) {
    cr_cl_calls *calls = call->calls;
    /* A call that waits for another try has its region registered, and waits with it. */
    bool waits = call->retries != 0 || call->kind == KIND_REGISTER;
    cr_error error;
    uint32_t away_ms = waits || calls->way->away_ms == NULL ? 0 : calls->way->away_ms(calls, &error);
    if (away_ms != 0) {
        cr_cl_call_finish(call, error.code, away_ms, error.text);
        return;
    }
    if (calls->way->watch != NULL && calls->all.next == calls->all.prev)
        calls->way->watch(calls, call->retries == 0 ? call->start_ns : cr_now_ns());
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
    cr_cl_beside_restart(call);
    cr_cl_gather_restart(call);
    if (call->array != NULL) cr_cl_array_reset(call->array);
    cr_cl_keyed_reset(call);
    calls->way->begin(call);
}

void cr_cl_call_finish(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text) {
    if (call->state == CALL_DONE) return;
    cr_cl_calls *calls = call->calls;
    call->state = CALL_DONE;
    call->elapsed_ns = (calls->came_ns != 0 ? calls->came_ns : cr_now_ns()) - call->start_ns;
    if (code != CR_OK) cr_fail(&call->error, code, "%s", text); /* which is CR_OK from the start */
    if (calls->way->over != NULL) calls->way->over(call);       /* text may go with it */
    call->retry_after_ms = retry_after_ms;
    cr_cl_call_forget(call);
    call->source = NULL;
    call->source_len = call->beside_len = 0;
    call->body = NULL; /* what is left of a begun frame goes out as zeros */
    if (call->fd >= 0) close(call->fd);
    call->fd = -1;
    cr_list_remove(&call->all);
    if (call->on_done != NULL) cr_list_append(&calls->finished, &call->all);
    if (call->kind == KIND_REGION) cr_cl_regions_release(call);
    cr_cl_outputs_release(call);
    if (call->kind == KIND_REGISTER) {
        calls->registered = true;
        if (call->region != NULL) cr_cl_region_answered(call->region, &call->error);
    }
    call->region = NULL;
    bool waits = queued(call) && cr_cl_call_begun(call);
    if (call->detached) call->freed = true;
    if (queued(call) && !cr_cl_call_begun(call))
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
    return (retry_after_ms == ms ? 2 * half : half) + cr_cl_calls_random(call->calls) % (half + 1);
}

void cr_cl_call_failed(cured_call *call, cr_status code, uint32_t retry_after_ms, const char *text) {
    bool again = (code == CR_UNAVAILABLE || code == CR_RESOURCE_EXHAUSTED) &&
                 (call->kind != KIND_STREAM || call->gather != NULL) && call->retries_left > 0 &&
                 call->calls->dead == NULL && !(call->array != NULL && cr_cl_array_handed_over(call->array));
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
    cr_cl_call_forget(call);
    call->state = CALL_RETRY;
    call->retries_left--;
    call->retries++;
    call->retry_ns = when;
    call->source = NULL;
    call->source_len = call->beside_len = 0;
    if (queued(call) && !cr_cl_call_begun(call)) cr_cl_call_dequeue(call);
    cr_cl_calls_wake_at(call->calls, when);
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

cr_cl_awaited *cr_cl_call_awaited(cured_call *call) { return &call->awaited; }

cr_cl_calls *cr_cl_call_calls(const cured_call *call) { return call->calls; }

uint64_t cr_cl_call_kind(const cured_call *call) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (call->kind == KIND_STREAM || call->request.kind != CR_CALL_REDUCE) return 0;
    const uint64_t words[] = {(uint64_t)call->kind << 32 | r->dtype, r->length_known ? r->length : r->region,
                              r->has_axis ? r->n : 0, r->has_axis ? r->inner : 0, r->outputs};
    const size_t count = sizeof words / sizeof words[0];
    uint64_t kind = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count + r->op_count; i++) {
        kind ^= i < count ? words[i] : (uint64_t)r->ops[i - count] + 1;
        kind *= UINT64_C(0x100000001b3);
        kind ^= kind >> 32;
    }
    return kind;
}
