/* admission: the counters. Thread: the loop's. Owner: the daemon. */
#include "server/admit/admission.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/metrics.h"

typedef unsigned long long ull;

enum {
    MOST_REFUSED = 1024,
    LEAST_PARKED = 8,
    REQUESTS_OF_CALL = 4,
    MORE_REQUESTS = 1024,
    PART_KEPT = 8, /* of a limit, for the daemon's own user at most */
    PART_LEFT = 8, /* of what there is, by a user who is alone */
    PART_OF_CONNECTIONS_LEFT = 2,
};

/* How a refusal names each use, its limits, and what can be done. */
static const struct {
    const char *what, *option, *per_user, *advice;
} texts[CR_USES] = {
    [CR_USE_connections] = {"connections", "max_connections", "max_connections_per_user", "close some"},
    [CR_USE_calls] = {"calls", "max_jobs", "max_jobs_per_user", "wait for answers"},
    [CR_USE_bytes] = {"input: bytes", "max_bytes_in_flight", "max_bytes_in_flight_per_user", "wait for answers"},
    [CR_USE_state_bytes] = {"memory: bytes", "max_state_bytes", "max_state_bytes_per_user", "wait for answers"},
    [CR_USE_regions] = {"regions", "max_regions", "max_regions_per_user", "unregister some"},
    [CR_USE_region_bytes] = {"region: bytes", "max_total_region_bytes", "max_region_bytes_per_user", "unregister some"},
};

/* The last of each limit, which are for the daemon's own user. */
static const uint64_t kept[CR_USES] = {
    [CR_USE_connections] = 32,
    [CR_USE_calls] = 64,
    [CR_USE_descriptors] = 32,
};

/* What is left of most beside used. */
static uint64_t left_of(uint64_t most, uint64_t used) { return used < most ? most - used : 0; }

/* ---- users ---- */

void cr_admit_init(cr_admission *a) {
    cr_list_init(&a->by_age);
    a->short_of = CR_USES;
    for (int i = 0; i < CR_RANKS; i++) cr_list_init(&a->ranks[i]);
    cr_principals_init(&a->principals);
}

void cr_admit_free(cr_admission *a) {
    cr_table_free(&a->users);
    cr_principals_free(&a->principals);
}

static bool is_user(void *argument, uint64_t key) {
    const cr_admission *a = argument;
    return cr_table_find(&a->users, key) != NULL;
}

void cr_admit_principals(cr_admission *a, cr_principals *fresh) {
    cr_principals_renew(&a->principals, fresh, is_user, a);
}

static void let_go(cr_admission *a, cr_user *user) {
    if (--user->holders) return;
    for (int i = 0; i < CR_USES; i++) assert(!user->used[i]);
    assert(!user->requests && !user->shaking && cr_list_empty(&user->places));
    cr_list_remove(&user->link);
    cr_list_remove(&user->rank);
    cr_table_remove(&a->users, &user->node);
    free(user);
}

cr_status cr_admit_join(cr_admission *a, cr_peer *peer, cr_error *error) {
    cr_node *node = cr_table_find(&a->users, peer->owner);
    cr_user *user = node ? cr_container(node, cr_user, node) : calloc(1, sizeof *user);
    const cr_principal *line = peer->line ? peer->line : &cr_principal_plain;
    if (user && !node) {
        user->node.key = peer->owner;
        user->line = line;
        user->own = peer->own;
        user->salt = cr_hash_factor();
        cr_list_init(&user->places);
        cr_list_init(&user->rank);
        if (cr_table_add(&a->users, &user->node)) {
            cr_list_append(&a->by_age, &user->link);
        } else {
            free(user);
            user = NULL;
        }
    }
    peer->user = user;
    if (!user) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a connection");
    user->holders++;
    if (line->line < user->line->line) user->line = line;
    return CR_OK;
}

void cr_admit_leave(cr_admission *a, cr_peer *peer) {
    if (peer->user) let_go(a, peer->user);
    peer->user = NULL;
}

/* ---- the one rule ---- */

/* What the options leave to each user. */
static uint64_t cap_of_all(const cr_admission *a, cr_use use) {
    const uint64_t cap = a->most_per_user[use];
    return cap ? cap : UINT64_MAX;
}

static uint64_t cap_of(const cr_admission *a, const cr_user *user, cr_use use) {
    const uint64_t cap = cap_of_all(a, use), own = user->line->most[use];
    return own < cap ? own : cap;
}

static uint64_t kept_of(const cr_admission *a, cr_use use) {
    const uint64_t part = a->most[use] / PART_KEPT;
    return part < kept[use] ? part : kept[use];
}

/* What there is for the user, and for others. */
static uint64_t there_is(const cr_admission *a, const cr_user *user, cr_use use) {
    return user->own ? a->most[use] : a->most[use] - kept_of(a, use);
}

/* The rule, for a user beside whom others hold so much. */
static uint64_t share(const cr_admission *a, const cr_user *user, cr_use use, uint64_t others) {
    const uint64_t most = there_is(a, user, use), left = left_of(most, others);
    if (a->users.count > 1) return left - left / 2;
    const uint64_t part = most / (use == CR_USE_connections ? PART_OF_CONNECTIONS_LEFT : PART_LEFT);
    return left_of(left, part ? part : most > 1);
}

/* What others hold. */
static uint64_t beside(const cr_admission *a, const cr_user *user, cr_use use) {
    return a->used[use] - user->used[use];
}

const char *cr_admit_option(const cr_admission *a, cr_use use) {
    const bool of_files = use == CR_USE_connections && a->most[use] == a->max_files - a->max_files / 4;
    return of_files ? "three quarters of the open files" : texts[use].option;
}

/* Why n more are refused, or CR_OK. */
static cr_status explain(const cr_admission *a, const cr_user *user, cr_use use, uint64_t n, cr_error *error) {
    const uint64_t own = user->used[use], most = share(a, user, use, beside(a, user, use));
    const char *option = cr_admit_option(a, use);
    const char *advice = n > 1 && n > most ? "ask for less, or later" : texts[use].advice;
    if (n > left_of(user->line->most[use], own))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "%s: %llu more beside %llu of this user exceed %llu (%s= in its line of principals); %s",
                       texts[use].what, (ull)n, (ull)own, (ull)user->line->most[use], cr_use_names[use],
                       n > user->line->most[use] ? "ask for less" : texts[use].advice);
    if (n > left_of(cap_of_all(a, use), own))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "%s: %llu more beside %llu of this user exceed %s, %llu; %s",
                       texts[use].what, (ull)n, (ull)own, texts[use].per_user, (ull)cap_of_all(a, use),
                       texts[use].advice);
    if (n <= left_of(most, own)) return CR_OK;
    if (n > left_of(a->most[use], a->used[use]))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "%s: %llu more beside %llu of all users exceed %s, %llu; %s",
                       texts[use].what, (ull)n, (ull)a->used[use], option, (ull)a->most[use], advice);
    if (n > left_of(there_is(a, user, use), a->used[use]))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "%s: %llu more beside %llu of all users need the last %llu of %s, %llu, which are for the "
                       "daemon's own user; %s",
                       texts[use].what, (ull)n, (ull)a->used[use], (ull)kept_of(a, use), option, (ull)a->most[use],
                       advice);
    return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                   "%s: %llu more beside %llu of this user exceed %llu, %s of %s, %llu; %s", texts[use].what, (ull)n,
                   (ull)own, (ull)most,
                   a->users.count > 1 ? "half of what others leave free" : "all that one user may hold", option,
                   (ull)a->most[use], advice);
}

/* Mostly there is room. */
static inline cr_status check(const cr_admission *a, const cr_user *user, cr_use use, uint64_t n, cr_error *error) {
    if (n <= left_of(cr_admit_share(a, user, use), user->used[use])) return CR_OK;
    return explain(a, user, use, n, error);
}

static void add(cr_admission *a, cr_user *user, cr_use use, uint64_t n) {
    a->used[use] += n;
    a->spread[use] += n * user->salt;
    user->used[use] += n;
}

static void give(cr_admission *a, cr_user *user, cr_use use, uint64_t n) {
    assert(n <= a->used[use] && n <= user->used[use]);
    a->used[use] -= n;
    a->spread[use] -= n * user->salt;
    user->used[use] -= n;
}

/* Remembers what was short. */
static cr_status answer(cr_admission *a, cr_use use, cr_status status) {
    a->short_of = status == CR_OK ? CR_USES : use;
    return status;
}

static cr_status take(cr_admission *a, cr_user *user, cr_use use, uint64_t n, cr_error *error) {
    cr_status status = answer(a, use, check(a, user, use, n, error));
    if (status == CR_OK) add(a, user, use, n);
    return status;
}

/* ---- principals ---- */

cr_status cr_admit_visit(cr_admission *a, cr_peer *peer, const cr_principal *line, const char *principal,
                         cr_error *error) {
    peer->owner = cr_peer_principal(principal);
    peer->own = false;
    peer->place = NULL;
    cr_peer_goes_by(peer, line);
    cr_status status = cr_admit_join(a, peer, error);
    if (status == CR_OK) snprintf(peer->user->principal, sizeof peer->user->principal, "%s", principal);
    return status;
}

cr_status cr_admit_become(cr_admission *a, cr_peer *peer, const cr_principal *line, const char *principal,
                          cr_error *error) {
    cr_peer fresh = *peer;
    if (peer->owner == cr_peer_principal(principal)) {
        cr_peer_goes_by(peer, line);
        return CR_OK;
    }
    cr_status status = cr_admit_visit(a, &fresh, line, principal, error);
    if (status != CR_OK) return status;
    cr_place *place = peer->place;
    give(a, peer->user, CR_USE_connections, 1); /* the one that it takes anew */
    status = take(a, fresh.user, CR_USE_connections, 1, error);
    if (status != CR_OK) {
        add(a, peer->user, CR_USE_connections, 1);
        cr_admit_leave(a, &fresh);
        return status;
    }
    cr_admit_place(peer, NULL);
    cr_admit_ranks(a, peer->user);
    cr_admit_leave(a, peer);
    *peer = fresh;
    cr_admit_place(peer, place);
    cr_admit_ranks(a, peer->user);
    return status;
}

void cr_user_name(const cr_user *user, char *name, size_t room) {
    if (*user->principal)
        snprintf(name, room, "%s", user->principal);
    else
        cr_peer_name(user->node.key, name, room);
}

uint64_t cr_admit_share(const cr_admission *a, const cr_user *user, cr_use use) {
    const uint64_t most = share(a, user, use, beside(a, user, use)), cap = cap_of(a, user, use);
    return most < cap ? most : cap;
}

/* ---- connections and descriptors ---- */

void cr_admit_limit_descriptors(cr_admission *a, uint64_t most) {
    a->max_files = most;
    a->max_refused = most / 64 < 1 ? 1 : most / 64 < MOST_REFUSED ? most / 64 : MOST_REFUSED;
    a->most[CR_USE_descriptors] = most / 16 < LEAST_PARKED ? LEAST_PARKED : most / 16;
    if (a->most[CR_USE_connections] > most - most / 4) a->most[CR_USE_connections] = most - most / 4;
}

void cr_admit_parked(cr_admission *a, cr_peer *peer, int count) {
    uint64_t n = (uint64_t)(count < 0 ? -(int64_t)count : count);
    if (!peer->user) return;
    if (count < 0)
        give(a, peer->user, CR_USE_descriptors, n);
    else
        add(a, peer->user, CR_USE_descriptors, n);
}

cr_status cr_admit_check_parked(const cr_admission *a, const cr_peer *peer, const cr_user **user, cr_error *error) {
    const uint64_t used = a->used[CR_USE_descriptors], most = a->most[CR_USE_descriptors];
    *user = NULL;
    if (used > most)
        return cr_fail(
            error, CR_RESOURCE_EXHAUSTED,
            "descriptors: %llu of all clients wait for their frames or for what is beside their arrays, the limit is "
            "%llu: send them with their frame, and that at once",
            (ull)used, (ull)most);
    if (!peer->user) return CR_OK;
    const uint64_t own = peer->user->used[CR_USE_descriptors], cap = peer->user->line->most[CR_USE_descriptors];
    *user = peer->user;
    if (own > cap)
        return cr_fail(
            error, CR_RESOURCE_EXHAUSTED,
            "descriptors: %llu of this user wait for their frames or for what is beside their arrays, and its "
            "line of principals says descriptors=%llu: send them with their frame, and that at once",
            (ull)own, (ull)cap);
    if (own > cap_of_all(a, CR_USE_descriptors))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "descriptors: %llu of this user wait for their frames or for what is beside their arrays, "
                       "max_waiting_descriptors_per_user is %llu: send them with their frame, and that at once",
                       (ull)own, (ull)cap_of_all(a, CR_USE_descriptors));
    const uint64_t fair = cr_admit_share(a, *user, CR_USE_descriptors);
    if (own > fair)
        return cr_fail(
            error, CR_RESOURCE_EXHAUSTED,
            "descriptors: %llu of this user wait for their frames or for what is beside their arrays, and no more than "
            "%llu may, so that others find some free: send them with their frame, and that at once",
            (ull)own, (ull)fair);
    return CR_OK;
}

cr_status cr_admit_connection(cr_admission *a, cr_peer *peer, int descriptor, cr_error *error) {
    /* Linux gives the lowest free number, so all below this one are open. */
    const uint64_t most = a->max_files - a->max_files / 4 - kept_of(a, CR_USE_connections);
    if (!peer->user->own && (uint64_t)descriptor >= most)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "connections: %llu of the %llu files that the daemon may open are open; the others are for what "
                       "clients pass, and for the daemon's own user",
                       (ull)most, (ull)a->max_files);
    const cr_status status = take(a, peer->user, CR_USE_connections, 1, error);
    cr_admit_ranks(a, peer->user);
    return status;
}

bool cr_admit_refused(cr_admission *a) {
    if (a->refused >= a->max_refused) return false;
    a->refused++;
    return true;
}

void cr_admit_refused_over(cr_admission *a) { a->refused--; }

void cr_admit_connection_over(cr_admission *a, cr_peer *peer) {
    give(a, peer->user, CR_USE_connections, 1);
    cr_admit_place(peer, NULL);
    cr_admit_ranks(a, peer->user);
}

/* ---- calls ---- */

cr_status cr_admit_request(cr_admission *a, cr_user *user, cr_error *error) {
    const uint64_t calls = a->most[CR_USE_calls], most = REQUESTS_OF_CALL * calls + MORE_REQUESTS;
    const uint64_t left = left_of(user->own ? most : most - kept_of(a, CR_USE_calls), a->requests - user->requests);
    if (user->requests >= left - left / 2) {
        a->short_of = CR_USE_calls;
        return cr_fail(
            error, CR_RESOURCE_EXHAUSTED,
            "requests: %llu of this user are open, half of what others leave of the %llu for max_jobs, %llu; "
            "end some",
            (ull)user->requests, (ull)most, (ull)calls);
    }
    a->requests++;
    user->requests++;
    return CR_OK;
}

void cr_admit_request_over(cr_admission *a, cr_user *user) {
    assert(a->requests && user->requests);
    a->requests--;
    user->requests--;
}

/* From before bytes of one input to after. */
static cr_status take_bytes(cr_admission *a, cr_user *user, uint64_t before, uint64_t after, cr_error *error) {
    if (after > a->max_input_bytes)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes exceed max_input_bytes, %llu", (ull)after,
                       (ull)a->max_input_bytes);
    return after > before ? take(a, user, CR_USE_bytes, after - before, error) : CR_OK;
}

cr_status cr_admit_call(cr_admission *a, cr_peer *peer, uint64_t bytes, cr_ticket *ticket, cr_error *error) {
    a->short_of = CR_USE_calls;
    if (peer->calls >= a->max_calls_per_connection)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "calls: %llu are in flight on this connection, max_jobs_per_connection is %llu",
                       (ull)peer->calls, (ull)a->max_calls_per_connection);
    cr_status status = answer(a, CR_USE_calls, check(a, peer->user, CR_USE_calls, 1, error));
    if (status == CR_OK) status = take_bytes(a, peer->user, 0, bytes, error);
    if (status != CR_OK) return status;
    cr_admit_always(a, peer, ticket);
    ticket->bytes = bytes;
    return CR_OK;
}

bool cr_admit_lacks(const cr_admission *a, const cr_peer *peer, cr_use use, uint64_t n) {
    cr_error error;
    if (use == CR_USE_calls && peer->calls >= a->max_calls_per_connection) return false;
    if (use == CR_USE_state_bytes && n > left_of(a->max_state_bytes_per_connection, peer->state_bytes)) return false;
    return n && n <= cap_of(a, peer->user, use) && n <= share(a, peer->user, use, 0) &&
           check(a, peer->user, use, n, &error) != CR_OK;
}

bool cr_admit_capped(const cr_admission *a, const cr_user *user, cr_use use, uint64_t n) {
    return n > left_of(cap_of(a, user, use), user->used[use]);
}

uint64_t cr_admit_holds(const cr_ticket *ticket, cr_use use) {
    return use == CR_USE_calls ? 1 : use == CR_USE_bytes ? ticket->bytes : ticket->state_bytes;
}

bool cr_admit_full(const cr_admission *a, cr_use use) { return a->used[use] >= a->most[use] - kept_of(a, use); }

void cr_admit_always(cr_admission *a, cr_peer *peer, cr_ticket *ticket) {
    add(a, peer->user, CR_USE_calls, 1);
    peer->user->holders++;
    peer->calls++;
    *ticket = (cr_ticket){.peer = peer, .user = peer->user};
}

cr_status cr_admit_growth(cr_admission *a, cr_ticket *ticket, uint64_t bytes, cr_error *error) {
    if (bytes <= ticket->bytes) return CR_OK;
    cr_status status = take_bytes(a, ticket->user, ticket->bytes, bytes, error);
    if (status == CR_OK) ticket->bytes = bytes;
    return status;
}

cr_status cr_admit_state(cr_admission *a, uint64_t bytes, cr_ticket *ticket, cr_error *error) {
    uint64_t own = ticket->peer->state_bytes;
    a->short_of = CR_USE_state_bytes;
    if (bytes > left_of(a->max_state_bytes_per_connection, own))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "memory: %llu bytes beside %llu of this connection exceed "
                       "max_state_bytes_per_connection, %llu",
                       (ull)bytes, (ull)own, (ull)a->max_state_bytes_per_connection);
    cr_status status = take(a, ticket->user, CR_USE_state_bytes, bytes, error);
    if (status != CR_OK) return status;
    ticket->peer->state_bytes += bytes;
    ticket->state_bytes += bytes;
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
    give(a, ticket->user, CR_USE_calls, 1);
    give(a, ticket->user, CR_USE_bytes, ticket->bytes);
    give(a, ticket->user, CR_USE_state_bytes, ticket->state_bytes);
    cr_metric_sub(state_bytes, ticket->state_bytes);
    let_go(a, ticket->user);
    *ticket = (cr_ticket){0};
}

/* ---- regions ---- */

cr_status cr_admit_region(cr_admission *a, cr_peer *peer, cr_error *error) {
    a->short_of = CR_USE_regions;
    if (peer->regions >= a->max_regions_per_connection)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "regions: %llu are registered on this connection, max_regions_per_connection is %llu",
                       (ull)peer->regions, (ull)a->max_regions_per_connection);
    cr_status status = take(a, peer->user, CR_USE_regions, 1, error);
    if (status != CR_OK) return status;
    peer->user->holders++;
    peer->regions++;
    return CR_OK;
}

cr_status cr_admit_region_bytes(cr_admission *a, cr_peer *peer, uint64_t bytes, cr_error *error) {
    a->short_of = CR_USE_region_bytes;
    if (bytes > left_of(a->max_region_bytes, peer->region_bytes))
        return cr_fail(error, CR_RESOURCE_EXHAUSTED,
                       "region: %llu bytes beside %llu on this connection exceed max_region_bytes, %llu", (ull)bytes,
                       (ull)peer->region_bytes, (ull)a->max_region_bytes);
    cr_status status = take(a, peer->user, CR_USE_region_bytes, bytes, error);
    if (status == CR_OK) peer->region_bytes += bytes;
    return status;
}

void cr_admit_region_over(cr_admission *a, cr_user *user, cr_peer *peer, uint64_t bytes) {
    give(a, user, CR_USE_regions, 1);
    give(a, user, CR_USE_region_bytes, bytes);
    let_go(a, user);
    if (!peer) return;
    peer->regions--;
    peer->region_bytes -= bytes;
}
