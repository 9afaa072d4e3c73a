/* drain: while the daemon ends, what makes no progress ends too. Thread: the loop's. Owner: main. */
#include "base/metrics.h"
#include "server/call/beside.h"
#include "server/call/call.h"

/* What the call has got, and what has become of it: any of that is progress. */
static uint64_t progress_of(const cr_call *call) {
    uint64_t folded = call->job ? cr_queue_progress(call->calls->queue, call->job).folded_bytes : 0;
    return call->received + cr_beside_progress(call) + call->wait.total + call->outputs.bytes_sent + folded;
}

/* The lanes have all of its input: it may only wait for them. */
static bool waits_for_lanes(const cr_call *call) { return call->input == CR_CLOSED && call->output == CR_NONE; }

void cr_calls_hurry(cr_calls *calls) {
    cr_error error;
    const uint64_t claims = atomic_load_explicit(&cr_metrics[CR_M_claims_total], memory_order_relaxed);
    const bool lanes_work = claims != calls->claims_seen;
    calls->claims_seen = claims;
    cr_fail(&error, CR_UNAVAILABLE, "the server is shutting down, and the call made no progress for %d ms",
            CR_HURRY_MS);
    cr_list left;
    cr_list_init(&left);
    cr_list_move(&left, &calls->open);
    /* The end of one may be the end of others, too: those that wait for the region that it was to register. */
    for (cr_list *node; (node = cr_list_pop(&left));) {
        cr_call *call = cr_container(node, cr_call, open);
        cr_list_append(&calls->open, node);
        const uint64_t progress = progress_of(call);
        const bool stands = call->seen_draining && progress == call->progress_seen;
        call->seen_draining = true;
        call->progress_seen = progress;
        if (stands && !(waits_for_lanes(call) && lanes_work)) cr_call_fail(call, &error);
    }
}
