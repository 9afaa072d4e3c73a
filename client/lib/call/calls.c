/* calls: see calls.h. All calls of a connection: whose time has come, what ends them together. Thread, owner: see there. */
#include "client/lib/call/calls.h"

#include "client/lib/call/call.h"

enum { RETRY_BUSY_NS = 1000000 }; /* a frame of the try before is still on its way */

void cr_cl_calls_init(cr_cl_calls *calls) {
    calls->fd = -1;
    calls->random = cr_now_ns() | 1;
    cr_list_init(&calls->all);
    cr_list_init(&calls->queue);
    cr_list_init(&calls->finished);
    cr_cl_regions_init(&calls->regions);
}

uint64_t cr_cl_calls_random(cr_cl_calls *calls) {
    calls->random ^= calls->random << 13;
    calls->random ^= calls->random >> 7;
    calls->random ^= calls->random << 17;
    return calls->random;
}

void cr_cl_calls_wake_at(cr_cl_calls *calls, uint64_t when_ns) {
    if (calls->wake_ns == 0 || when_ns < calls->wake_ns) calls->wake_ns = when_ns;
}

/* Looks through all calls, but only when the earliest of their times has come. */
void cr_cl_calls_due(cr_cl_calls *calls) {
    uint64_t now = cr_now_ns();
    if (now < calls->wake_ns) return;
    calls->wake_ns = 0;
    cr_list *l = calls->all.next;
    while (l != &calls->all) {
        cured_call *call = cr_container(l, cured_call, all);
        l = l->next;
        if (call->deadline_ns != 0 && now >= call->deadline_ns) {
            cr_cl_call_abandon(call, CR_DEADLINE_EXCEEDED, "the call's timeout_ms ran out");
            continue;
        }
        if (call->deadline_ns != 0) cr_cl_calls_wake_at(calls, call->deadline_ns);
        if (call->state != CALL_RETRY) continue;
        if (now < call->retry_ns)
            cr_cl_calls_wake_at(calls, call->retry_ns);
        else if (cr_list_empty(&call->queue))
            cr_cl_call_submit(call);
        else
            cr_cl_calls_wake_at(calls, now + RETRY_BUSY_NS);
    }
}

static void send_held(cr_cl_calls *calls, bool registers) {
    for (cr_list *l = calls->all.next, *next; l != &calls->all; l = next) {
        cured_call *call = cr_container(l, cured_call, all);
        next = l->next;
        if (call->state == CALL_ACTIVE && call->held && (call->kind == KIND_REGISTER) == registers)
            cr_cl_call_send(call);
    }
}

void cr_cl_calls_held(cr_cl_calls *calls) {
    calls->registered = false;
    send_held(calls, true); /* of a call that is tried again it comes behind the call */
    send_held(calls, false);
}

void cr_cl_calls_run_callbacks(cr_cl_calls *calls) {
    while (!cr_list_empty(&calls->finished)) {
        cured_call *call = cr_container(calls->finished.next, cured_call, all);
        cr_list_remove(&call->all);
        call->on_done(call, call->user); /* may free it */
        cr_cl_fork_check(calls);         /* and may have forked */
    }
}

bool cr_cl_calls_waiting(const cr_cl_calls *calls) {
    for (const cr_list *l = calls->all.next; l != &calls->all; l = l->next)
        if (cr_container(l, const cured_call, all)->state == CALL_ACTIVE) return true;
    return false;
}

/* ---- what ends them together ---- */

/* Takes every call out of the queue: what was half sent will never be whole. The daemon's regions are gone, too. */
static void disconnect(cr_cl_calls *calls) {
    calls->regions.epoch++;
    while (!cr_list_empty(&calls->queue)) cr_cl_call_dequeue(cr_container(calls->queue.next, cured_call, queue));
}

/* Ends all calls without callbacks. */
static void cancel(cr_cl_calls *calls, const char *text) {
    while (!cr_list_empty(&calls->all)) {
        cured_call *call = cr_container(calls->all.next, cured_call, all);
        if (call->detached) {
            cr_list_remove(&call->all);
            cr_cl_call_destroy(call);
            continue;
        }
        cr_cl_call_finish(call, CR_CANCELLED, 0, text);
        cr_list_remove(&call->all); /* from finished: no callbacks from here */
    }
    while (!cr_list_empty(&calls->finished)) cr_list_remove(calls->finished.next);
}

void cr_cl_calls_lost(cr_cl_calls *calls, const cr_error *error, uint32_t retry_after_ms) {
    disconnect(calls);
    /* Calls that wait for another try already stay; the others fail, which takes each out of the list or parks it. */
    cr_list *l = calls->all.next;
    while (l != &calls->all) {
        cured_call *call = cr_container(l, cured_call, all);
        l = l->next;
        if (call->state == CALL_ACTIVE) cr_cl_call_failed(call, error->code, retry_after_ms, error->text);
    }
}

void cr_cl_calls_die(cr_cl_calls *calls, const cr_error *error) {
    calls->dead = error;
    disconnect(calls);
    while (!cr_list_empty(&calls->all))
        cr_cl_call_finish(cr_container(calls->all.next, cured_call, all), error->code, 0, error->text);
    calls->wake_ns = 0;
}

void cr_cl_calls_inherited(cr_cl_calls *calls) {
    calls->way->inherited(calls);
    calls->wake_ns = 0;
    calls->random ^= cr_now_ns() | 1; /* or parent and child would come back together */
    disconnect(calls);                /* before the calls end: the daemon knows no region of this process */
    cancel(calls, "the call belongs to the process that this one was forked from");
}

void cr_cl_calls_close(cr_cl_calls *calls) {
    disconnect(calls);
    cr_cl_regions_close(&calls->regions);
    cancel(calls, "the connection was closed by this program");
    cr_cl_fork_unmark(calls);
    if (calls->way->close != NULL) calls->way->close(calls);
}
