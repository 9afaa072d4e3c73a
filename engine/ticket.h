/* ticket: what a job was admitted with. The engine only carries the ticket; whoever admits calls fills it and takes it back, and
 * alone knows what a peer and a user are.
 *
 * Thread: of whoever admits. Owner: the call, then its job. */
#ifndef CURED_ENGINE_TICKET_H
#define CURED_ENGINE_TICKET_H

#include <stdint.h>

/* Its peer's share goes back when the call is over, the rest when its job is, too. */
typedef struct cr_ticket {
    struct cr_peer *peer; /* NULL: its share is back */
    struct cr_user *user;
    uint64_t bytes, state_bytes;
} cr_ticket;

#endif
