/* admission: the counters. Thread: the loop's. Owner: the daemon. */
#include "server/admit/admission.h"

#include <stddef.h>

#include "server/base/metrics.h"

typedef unsigned long long ull;

enum { MOST_REFUSED = 1024, LEAST_PARKED = 8 };

void cr_admit_limit_descriptors(cr_admission *a, uint64_t most) {
    a->max_files = most;
    a->max_refused = most / 64 < 1 ? 1 : most / 64 < MOST_REFUSED ? most / 64 : MOST_REFUSED;
    a->max_parked = most / 16 < LEAST_PARKED ? LEAST_PARKED : most / 16;
}

void cr_admit_parked(cr_admission *a, int count) { a->parked += (uint64_t)(int64_t)count; }

cr_status cr_admit_check_parked(const cr_admission *a, cr_error *error) {
    if (a->parked <= a->max_parked) return CR_OK;
    return cr_fail(
        error, CR_RESOURCE_EXHAUSTED,
        "descriptors: %llu of all clients wait for their frames, the limit is %llu: send them with their frame",
        (ull)a->parked, (ull)a->max_parked);
}

cr_status cr_admit_connection(cr_admission *a, int descriptor, cr_error *error) {
    if (a->connections >= a->max_connections)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "connections: %llu are open, max_connections is %llu",
                       (ull)a->connections, (ull)a->max_connections);
    /* The kernel gives the lowest free number, so all below this one are open. */
    if ((uint64_t)descriptor >= a->max_files - a->max_files / 4)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "connections: three quarters of the %llu files that the daemon may open are open",
                       (ull)a->max_files);
    a->connections++;
    return CR_OK;
}

bool cr_admit_refused(cr_admission *a) {
    if (a->refused >= a->max_refused) return false;
    a->refused++;
    return true;
}

void cr_admit_refused_over(cr_admission *a) { a->refused--; }

void cr_admit_connection_over(cr_admission *a) { a->connections--; }

static cr_status check_bytes(const cr_admission *a, uint64_t held, uint64_t bytes, cr_error *error) {
    if (bytes > a->max_input_bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes exceed max_input_bytes, %llu", (ull)bytes,
                       (ull)a->max_input_bytes);
    uint64_t others = a->bytes - held;
    if (bytes > a->max_bytes - (others < a->max_bytes ? others : a->max_bytes))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "input: %llu bytes beside %llu in flight exceed max_bytes_in_flight, %llu", (ull)bytes,
                       (ull)others, (ull)a->max_bytes);
    return CR_OK;
}

cr_status cr_admit_call(cr_admission *a, cr_peer *peer, uint64_t bytes, cr_ticket *ticket, cr_error *error) {
    if (peer->calls >= a->max_calls_per_connection)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "calls: %llu are in flight on this connection, max_jobs_per_connection is %llu",
                       (ull)peer->calls, (ull)a->max_calls_per_connection);
    if (a->calls >= a->max_calls)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "calls: %llu are in flight, max_jobs is %llu", (ull)a->calls,
                       (ull)a->max_calls);
    cr_status status = check_bytes(a, 0, bytes, error);
    if (status != CR_OK) return status;
    cr_admit_always(a, peer, ticket);
    a->bytes += bytes;
    ticket->bytes = bytes;
    return CR_OK;
}

void cr_admit_always(cr_admission *a, cr_peer *peer, cr_ticket *ticket) {
    a->calls++;
    peer->calls++;
    *ticket = (cr_ticket){.peer = peer};
}

cr_status cr_admit_growth(cr_admission *a, cr_ticket *ticket, uint64_t bytes, cr_error *error) {
    if (bytes <= ticket->bytes) return CR_OK;
    cr_status status = check_bytes(a, ticket->bytes, bytes, error);
    if (status != CR_OK) return status;
    a->bytes += bytes - ticket->bytes;
    ticket->bytes = bytes;
    return CR_OK;
}

/* What is left of most beside used. */
static uint64_t left_of(uint64_t most, uint64_t used) { return used < most ? most - used : 0; }

cr_status cr_admit_state(cr_admission *a, uint64_t bytes, cr_ticket *ticket, cr_error *error) {
    uint64_t own = ticket->peer->state_bytes;
    if (bytes > left_of(a->max_state_bytes_per_connection, own))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "axis: %llu bytes of memory beside %llu of this connection exceed "
                       "max_state_bytes_per_connection, %llu",
                       (ull)bytes, (ull)own, (ull)a->max_state_bytes_per_connection);
    if (bytes > left_of(a->max_state_bytes, a->state_bytes))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "axis: %llu bytes of memory beside %llu in flight exceed max_state_bytes, %llu", (ull)bytes,
                       (ull)a->state_bytes, (ull)a->max_state_bytes);
    a->state_bytes += bytes;
    ticket->peer->state_bytes += bytes;
    ticket->state_bytes = bytes;
    cr_metric_add(state_bytes, bytes);
    return CR_OK;
}

void cr_admit_answered(cr_ticket *ticket) {
    if (!ticket->peer) return;
    ticket->peer->calls--;
    ticket->peer->state_bytes -= ticket->state_bytes;
    ticket->peer = NULL;
}

void cr_admit_over(cr_admission *a, cr_ticket *ticket) {
    cr_admit_answered(ticket);
    a->calls--;
    a->bytes -= ticket->bytes;
    a->state_bytes -= ticket->state_bytes;
    cr_metric_sub(state_bytes, ticket->state_bytes);
    *ticket = (cr_ticket){0};
}

cr_status cr_admit_region(cr_admission *a, cr_peer *peer, cr_error *error) {
    if (peer->regions >= a->max_regions_per_connection)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "regions: %llu are registered on this connection, max_regions_per_connection is %llu",
                       (ull)peer->regions, (ull)a->max_regions_per_connection);
    if (a->regions >= a->max_regions)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "regions: %llu are registered, max_regions is %llu",
                       (ull)a->regions, (ull)a->max_regions);
    a->regions++;
    peer->regions++;
    return CR_OK;
}

cr_status cr_admit_region_bytes(const cr_admission *a, cr_peer *peer, uint64_t bytes, cr_error *error) {
    if (bytes > left_of(a->max_region_bytes, peer->region_bytes))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "region: %llu bytes beside %llu on this connection exceed max_region_bytes, %llu", (ull)bytes,
                       (ull)peer->region_bytes, (ull)a->max_region_bytes);
    peer->region_bytes += bytes;
    return CR_OK;
}

void cr_admit_region_over(cr_admission *a, cr_peer *peer, uint64_t bytes) {
    a->regions--;
    if (!peer) return;
    peer->regions--;
    peer->region_bytes -= bytes;
}
