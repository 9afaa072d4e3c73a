/* again: see again.h. Thread: the loop's. Owner: the calls. */
#include "server/call/again.h"

#include <string.h>

#include "server/call/call.h"

bool cr_call_again(cr_call *call, const uint8_t *payload, size_t bytes) {
    const cr_again *last = &call->calls->again;
    if (!last->bytes || bytes != last->bytes || memcmp(payload, last->payload, bytes) != 0) return false;
    call->request = last->request;
    call->dtype = last->dtype;
    call->geometry = CR_GEOMETRY_WHOLE;
    call->finish = last->finish;
    call->families = last->families;
    call->wants = last->wants;
    call->checked = true;
    return true;
}

void cr_call_remember(const cr_call *call, const uint8_t *payload, size_t bytes) {
    const cr_wire_reduce *r = &call->request.reduce;
    cr_again *last = &call->calls->again;
    const bool plain = call->request.kind == CR_CALL_REDUCE && r->source == CR_SOURCE_STREAM &&
                       call->geometry == CR_GEOMETRY_WHOLE && !r->kernel[0] && !r->outputs && !call->ranked &&
                       !call->block && !cr_wire_takes_beside(r);
    if (call->checked || !plain || bytes > sizeof last->payload) return;
    last->bytes = (uint32_t)bytes;
    memcpy(last->payload, payload, bytes);
    last->dtype = call->dtype;
    last->finish = call->finish;
    last->families = call->families;
    last->wants = call->wants;
    last->request = call->request;
}
