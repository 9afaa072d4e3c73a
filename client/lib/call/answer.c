/* answer: what a call that is done says: count, timing, values, the daemon's description of itself.
 *
 * Thread: the one that uses the connection. Owner: everything returned belongs to the call. */
#include "client/lib/call/call.h"

static bool answered(const cured_call *call) { return call->state == CALL_DONE && call->error.code == CR_OK; }

uint64_t cured_call_count(const cured_call *call) { return answered(call) ? call->count : 0; }

cured_timing cured_call_timing(const cured_call *call) { return call->timing; }

uint64_t cured_call_elapsed_ns(const cured_call *call) { return call->elapsed_ns; }

uint32_t cured_call_retries(const cured_call *call) { return call->retries; }

const cured_value *cured_call_value(const cured_call *call, size_t index) {
    const bool counted = call->ranked != NULL && call->ranked->counts_only;
    const bool has = answered(call) && call->array == NULL && call->partial == NULL && !counted;
    return has && index < call->value_count ? &call->values[index] : NULL;
}

const cured_value *cured_call_find(const cured_call *call, cured_op op) {
    for (size_t i = 0; i < call->value_count; i++)
        if (call->values[i].op == (unsigned)op) return cured_call_value(call, i);
    return NULL;
}

const void *cured_call_partial(const cured_call *call, size_t *bytes) {
    *bytes = answered(call) ? call->partial_bytes : 0;
    return *bytes != 0 ? call->partial : NULL;
}

const uint64_t *cured_call_counts(const cured_call *call, size_t *count) {
    const bool counted = answered(call) && call->ranked != NULL && call->ranked->counts_only;
    *count = counted ? cr_quantile_words(&call->ranked->asked) : 0;
    return counted ? call->ranked->counts : NULL;
}

const cured_reloaded *cured_call_reloaded(const cured_call *call) { return answered(call) ? call->reloaded : NULL; }
const char *cured_call_json(const cured_call *call) { return answered(call) ? call->json : NULL; }

const cured_server_info *cured_call_info(const cured_call *call) { return answered(call) ? call->info : NULL; }
