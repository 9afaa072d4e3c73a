/* again: the last request whose checks depend on nothing but its bytes. Clients ask for the same again and again, and a CALL of the
 * same bytes is the same request: it is neither read nor checked anew. What depends on anything else (admission, limits of options,
 * lanes, what is beside the array) is asked each time, or keeps a request from being remembered.
 *
 * Thread: the loop's. Owner: the calls. */
#ifndef CURED_SERVER_CALL_AGAIN_H
#define CURED_SERVER_CALL_AGAIN_H

#include "server/call/front.h"

enum { CR_AGAIN_BYTES = 64 }; /* longer requests are not remembered */

typedef struct cr_again {
    uint32_t bytes; /* of payload; 0: none is remembered */
    uint8_t payload[CR_AGAIN_BYTES];
    cr_dtype dtype;
    cr_finish_opts finish;
    uint32_t families, wants;
    cr_wire_call request;
} cr_again;

/* True: the new call asks by these bytes for what the last one did, and has its request and what the checks found. */
bool cr_call_again(cr_call *call, const uint8_t *payload, size_t bytes);
/* The call's request came by these bytes, and its checks are over. */
void cr_call_remember(const cr_call *call, const uint8_t *payload, size_t bytes);

#endif
