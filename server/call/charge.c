/* charge: what a call holds besides its slot, and which call ends when that, or a slot, is short. Thread: the loop's. Owner: the
 * call. */
#include "base/metrics.h"
#include "server/call/beside.h"
#include "server/call/call.h"

typedef struct asking {
    const cr_call *call;
    cr_use use;
    bool capped; /* by what its user alone may hold */
} asking;

/* Whether the end of a call brings the asking one some of what it lacks, and fairly: it is a call of the same user, or of one who
 * holds more. */
static bool gives_way(const void *argument, const cr_wait *wait) {
    const asking *a = argument;
    const cr_call *other = cr_container(wait, const cr_call, wait);
    const cr_user *user = other->ticket.user, *own = a->call->peer->user;
    if (other == a->call || !cr_admit_holds(&other->ticket, a->use)) return false;
    return user == own || (!a->capped && user->used[a->use] > own->used[a->use]);
}

bool cr_call_make_room(cr_call *call, cr_use use, uint64_t n) {
    cr_calls *calls = call->calls;
    const asking want = {call, use, cr_admit_capped(&calls->admission, call->peer->user, use, n)};
    cr_error error;
    if (!cr_admit_lacks(&calls->admission, call->peer, use, n)) return false;
    cr_wait *wait = cr_patience_least(&calls->patience, gives_way, &want);
    if (!wait) return false;
    cr_fail(&error, CR_RESOURCE_EXHAUSTED,
            "%s: there is no room for another call, and this one's client brought or took least for %llu ms "
            "(stall_timeout_ms); begin a call when its bytes are there, and give CREDIT",
            cr_admit_option(&calls->admission, use), (unsigned long long)calls->config->stall_timeout_ms);
    cr_metric_add(calls_impatient_total, 1);
    cr_call *other = cr_container(wait, cr_call, wait);
    other->refused = CR_REASON_impatient;
    cr_call_fail(other, &error);
    return true;
}

cr_status cr_call_grow(cr_call *call, uint64_t bytes, cr_error *error) {
    cr_admission *admission = &call->calls->admission;
    const uint64_t beside = cr_call_beside_bytes(call), turn = cr_beside_in_turn(call);
    bytes = bytes <= UINT64_MAX - beside ? bytes + beside : UINT64_MAX;
    if (turn != UINT64_MAX) bytes = bytes <= UINT64_MAX - turn ? bytes + turn : UINT64_MAX;
    cr_status status = cr_admit_growth(admission, &call->ticket, bytes, error);
    if (status == CR_RESOURCE_EXHAUSTED && cr_call_make_room(call, CR_USE_bytes, bytes - call->ticket.bytes))
        status = cr_admit_growth(admission, &call->ticket, bytes, error);
    return status;
}

cr_status cr_call_hold_state(cr_call *call, uint64_t bytes, cr_error *error) {
    cr_admission *admission = &call->calls->admission;
    cr_status status = cr_admit_state(admission, bytes, &call->ticket, error);
    if (status == CR_RESOURCE_EXHAUSTED && cr_call_make_room(call, CR_USE_state_bytes, bytes))
        status = cr_admit_state(admission, bytes, &call->ticket, error);
    return status;
}

cr_status cr_call_charge(cr_call *call, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    if (call->request.kind != CR_CALL_REDUCE || r->source == CR_SOURCE_STREAM || r->source == CR_SOURCE_REGIONS ||
        r->length_known)
        return CR_OK;
    return cr_call_grow(call, cr_queue_progress(call->calls->queue, call->job).total_bytes, error);
}
