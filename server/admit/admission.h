/* admission: may this call in? Counters against limits, O(1), no queue.
 *
 * Thread: the loop's. Owner: the daemon. */
#ifndef CURED_SERVER_ADMIT_ADMISSION_H
#define CURED_SERVER_ADMIT_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/status.h"
#include "server/admit/peer.h"

typedef struct cr_admission {
    uint64_t max_connections, max_calls, max_calls_per_connection, max_input_bytes, max_bytes;
    uint64_t max_regions, max_regions_per_connection, max_region_bytes;
    uint64_t max_state_bytes, max_state_bytes_per_connection;
    uint64_t max_files, max_refused, max_parked; /* of RLIMIT_NOFILE: see cr_admit_limit_descriptors */
    uint64_t connections, refused, parked, calls, bytes, regions, state_bytes;
} cr_admission;

/* What one call was admitted with. Its peer's share goes back when the call is over, the rest when its job is, too. */
typedef struct cr_ticket {
    cr_peer *peer; /* NULL: its share is back */
    uint64_t bytes, state_bytes;
} cr_ticket;

/* What a refused client is told to wait. */
enum { CR_RETRY_AFTER_MS = 20 };

/* Shares out the descriptors of a process that may open most files: connections may take three quarters of them, and leave
 * the rest to what clients pass. A refused connection stays open for a moment, to be told why: a 64th of most may do so, and
 * 1,024 at most. */
void cr_admit_limit_descriptors(cr_admission *admission, uint64_t most);
/* Lets in a connection whose socket is descriptor. RESOURCE_EXHAUSTED. */
cr_status cr_admit_connection(cr_admission *admission, int descriptor, cr_error *error);
void cr_admit_connection_over(cr_admission *admission);
/* Descriptors that clients passed wait for the frames that take them: count more, or count fewer where it is negative. A 16th
 * of the table may wait so, of all connections together, or one client could leave no descriptor to the others. */
void cr_admit_parked(cr_admission *admission, int count);
/* RESOURCE_EXHAUSTED: too many wait. A connection that has some of them must end. */
cr_status cr_admit_check_parked(const cr_admission *admission, cr_error *error);
/* Whether a refused connection may stay open until its client has read why. */
bool cr_admit_refused(cr_admission *admission);
void cr_admit_refused_over(cr_admission *admission);

/* Lets in a call of bytes input (0: not known yet). INVALID_ARGUMENT when it is too large ever; RESOURCE_EXHAUSTED when it is
 * too much now. */
cr_status cr_admit_call(cr_admission *admission, cr_peer *peer, uint64_t bytes, cr_ticket *ticket, cr_error *error);
/* A call that takes nothing and is wanted above all when there is no room. */
void cr_admit_always(cr_admission *admission, cr_peer *peer, cr_ticket *ticket);
/* A call whose length was not known has come to bytes in all. */
cr_status cr_admit_growth(cr_admission *admission, cr_ticket *ticket, uint64_t bytes, cr_error *error);
/* An admitted call along an axis needs bytes of memory: RESOURCE_EXHAUSTED when that is too much now. */
cr_status cr_admit_state(cr_admission *admission, uint64_t bytes, cr_ticket *ticket, cr_error *error);
/* The call is over; its job may still hold what it was admitted with. */
void cr_admit_answered(cr_ticket *ticket);
/* Call and job are over. */
void cr_admit_over(cr_admission *admission, cr_ticket *ticket);

/* One region more of peer; RESOURCE_EXHAUSTED. */
cr_status cr_admit_region(cr_admission *admission, cr_peer *peer, cr_error *error);
/* The region has bytes. */
cr_status cr_admit_region_bytes(const cr_admission *admission, cr_peer *peer, uint64_t bytes, cr_error *error);
/* peer: NULL when it is gone. bytes: those that were admitted. */
void cr_admit_region_over(cr_admission *admission, cr_peer *peer, uint64_t bytes);

#endif
