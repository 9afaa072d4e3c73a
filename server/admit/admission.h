/* admission: may this come in? Counters against limits, O(1), no queue.
 *
 * What clients hold (proto/use.def) is counted by user: of a Unix peer the user of its process; over TCP the principal that a token or
 * certificate names, or the address. One rule for all of it (cr_admit_share): whoever comes finds something left. With
 *
 *   M    the limit of all users together
 *   L    M, but for the last 64 calls, 32 connections and 32 waiting descriptors, an eighth of M at most: they are for the daemon's
 *        own user, that is root and whoever runs the daemon. L is M for that user, and where M is bytes or regions
 *   W    what the others leave of L
 *
 * a user may hold
 *
 *   alone         L - max(L/8, 1), of connections L - max(L/2, 1); all where L is 1
 *   beside others W - W/2
 *
 * and no more than the option for each user and the line of its principal say. Nothing that runs is taken away for it: when another
 * comes, nothing new is given to the first before the rule holds. Idle connections alone may end for others, see cr_admit_end_idle.
 *
 * The first loop's admission is the daemon's. That of an annex (native/annex.h) counts what is there at the moment.
 *
 * Thread: the loop's. Owner: its calls. */
#ifndef CURED_SERVER_ADMIT_ADMISSION_H
#define CURED_SERVER_ADMIT_ADMISSION_H

#include "base/list.h"
#include "base/table.h"
#include "engine/ticket.h"
#include "proto/status.h"
#include "server/admit/peer.h"

/* A connection that was let in. It may end while it is idle, so that another user has its place. */
typedef struct cr_place {
    cr_list link; /* in its user's, the oldest first */
    /* Ends the connection, if it has no call and no region. quiet: and only if nothing else of it is under way. False: it stays. */
    bool (*end)(struct cr_place *place, bool quiet);
} cr_place;

/* Somebody who holds something. */
typedef struct cr_user {
    cr_node node;                          /* by cr_peer's owner */
    cr_list link;                          /* in the admission's list, the newest last */
    char principal[CR_NAME_MAX_BYTES + 1]; /* "": the key says who it is */
    const cr_principal *line;              /* what it may hold: the first line of those that its peers go by */
    uint64_t holders;
    uint64_t used[CR_USES];
    uint64_t salt;     /* of the admission's spread */
    uint64_t requests; /* of gRPC, see cr_admit_request */
    uint64_t shaking;  /* TLS handshakes under way; the transport's */
    bool own;          /* the daemon's own, see cr_peer */
    _Atomic bool full; /* annexes take no calls of it (native/annex.h), because it has none left, or few bytes */
    cr_list places;    /* of its connections */
    cr_list rank;      /* in the admission's ranks, where it has connections */
} cr_user;

enum { CR_RANKS = 65 };

/* All zero: cr_admit_init. */
typedef struct cr_admission {
    uint64_t most[CR_USES], most_per_user[CR_USES]; /* of all users together; of one, 0: no less than all */
    uint64_t max_calls_per_connection, max_input_bytes;
    uint64_t max_regions_per_connection, max_region_bytes;
    uint64_t max_state_bytes_per_connection;
    uint64_t max_files, max_refused; /* of RLIMIT_NOFILE: see cr_admit_limit_descriptors */
    uint64_t used[CR_USES], refused, requests;
    uint64_t spread[CR_USES]; /* a sum that is another one when users hold other shares of used */
    cr_use short_of;          /* by the latest answer: CR_USES, nothing was */
    cr_table users;
    cr_list by_age;          /* users */
    cr_list ranks[CR_RANKS]; /* users by how many connections they have, by powers of two */
    cr_principals principals;
} cr_admission;

/* What a refused client is told to wait. */
enum { CR_RETRY_AFTER_MS = 20 };

void cr_admit_init(cr_admission *admission);
/* Takes over what fresh says of principals, at start and after a reload: see cr_principals_renew. */
void cr_admit_principals(cr_admission *admission, cr_principals *fresh);
/* Nobody holds anything any more. */
void cr_admit_free(cr_admission *admission);

/* Shares out the descriptors of a process that may open most files: connections may take three quarters of them, and leave
 * the rest to what clients pass; a 16th may wait for the frames that take them. A refused connection stays open for a moment, to
 * be told why: a 64th of most may do so, and 1,024 at most. After the limit of connections is set. */
void cr_admit_limit_descriptors(cr_admission *admission, uint64_t most);
/* peer, which cr_peer_see has seen, becomes one of its user's. Until cr_admit_leave. RESOURCE_EXHAUSTED: no memory. */
cr_status cr_admit_join(cr_admission *admission, cr_peer *peer, cr_error *error);
void cr_admit_leave(cr_admission *admission, cr_peer *peer);
/* peer, which holds nothing, is one of that principal's and goes by its line, without a connection of its own. Until
 * cr_admit_leave. */
cr_status cr_admit_visit(cr_admission *admission, cr_peer *peer, const cr_principal *line, const char *principal,
                         cr_error *error);
/* peer, which holds a connection and nothing else, becomes one of that principal's and goes by its line. RESOURCE_EXHAUSTED: the
 * principal has too many connections; peer stays what it was. */
cr_status cr_admit_become(cr_admission *admission, cr_peer *peer, const cr_principal *line, const char *principal,
                          cr_error *error);
/* The user's principal, "uid 1000", or the address. */
void cr_user_name(const cr_user *user, char *name, size_t room);
/* Lets in a connection whose socket is descriptor. RESOURCE_EXHAUSTED. */
cr_status cr_admit_connection(cr_admission *admission, cr_peer *peer, int descriptor, cr_error *error);
/* The connection that was let in is at that place, in place of where it was before, until it is over or has none (NULL). */
void cr_admit_place(cr_peer *peer, cr_place *place);
/* The user has more connections than before, or fewer: cr_admit_end_idle finds it where it belongs. */
void cr_admit_ranks(cr_admission *admission, cr_user *user);
/* Ends an idle connection, of the user with most connections, so that user may have one more; of that one the oldest, and rather one
 * on which nothing is under way. None ends of whoever would then have fewer than user. False: none ended. */
bool cr_admit_end_idle(cr_admission *admission, const cr_user *user);
/* Whether anybody has so many connections that one of them might end so. Who asks for more than all others is so refused at once. */
bool cr_admit_might_end_idle(const cr_admission *admission, const cr_user *user);
void cr_admit_connection_over(cr_admission *admission, cr_peer *peer);
/* Descriptors that clients passed wait for the frames that take them: count more, or count fewer where it is negative. */
void cr_admit_parked(cr_admission *admission, cr_peer *peer, int count);
/* RESOURCE_EXHAUSTED: too many wait. A connection that has some of them must end: of *user, NULL: of anybody. */
cr_status cr_admit_check_parked(const cr_admission *admission, const cr_peer *peer, const cr_user **user,
                                cr_error *error);
/* Whether a refused connection may stay open until its client has read why. */
bool cr_admit_refused(cr_admission *admission);
void cr_admit_refused_over(cr_admission *admission);

/* A request of gRPC more, which is no call yet, or never (Watch): the user may hold half of what others leave, also when it is alone,
 * because nobody can make it end one. In all there are some for each call that may be in flight. RESOURCE_EXHAUSTED. */
cr_status cr_admit_request(cr_admission *admission, cr_user *user, cr_error *error);
void cr_admit_request_over(cr_admission *admission, cr_user *user);

/* Lets in a call of bytes input (0: not known yet). INVALID_ARGUMENT when it is too large ever; RESOURCE_EXHAUSTED when it is
 * too much now. */
cr_status cr_admit_call(cr_admission *admission, cr_peer *peer, uint64_t bytes, cr_ticket *ticket, cr_error *error);
/* Whether the peer would be refused n more calls, bytes or state bytes because of what all clients, or its user, hold: not for
 * what it asks alone, or for what its connection holds. */
bool cr_admit_lacks(const cr_admission *admission, const cr_peer *peer, cr_use use, uint64_t n);
/* Whether n more are refused by what an option or its line leave the user: then nobody else's end helps. */
bool cr_admit_capped(const cr_admission *admission, const cr_user *user, cr_use use, uint64_t n);
/* What a call holds of calls, bytes or state bytes. */
uint64_t cr_admit_holds(const cr_ticket *ticket, cr_use use);
/* Whether nobody but the daemon's own user gets more of it. */
bool cr_admit_full(const cr_admission *admission, cr_use use);
/* The option that limits the use of all users together; NULL: none does. */
const char *cr_admit_option(const cr_admission *admission, cr_use use);
/* A call that takes nothing and is wanted above all when there is no room. */
void cr_admit_always(cr_admission *admission, cr_peer *peer, cr_ticket *ticket);
/* A call whose length was not known has come to bytes in all. */
cr_status cr_admit_growth(cr_admission *admission, cr_ticket *ticket, uint64_t bytes, cr_error *error);
/* An admitted call needs bytes of memory more, along an axis or beside its array: RESOURCE_EXHAUSTED when that is too much now. */
cr_status cr_admit_state(cr_admission *admission, uint64_t bytes, cr_ticket *ticket, cr_error *error);
/* The call is over; its job may still hold what it was admitted with. */
void cr_admit_answered(cr_ticket *ticket);
/* Call and job are over. */
void cr_admit_over(cr_admission *admission, cr_ticket *ticket);

/* One region more of peer; RESOURCE_EXHAUSTED. Its user is held until the region is over. */
cr_status cr_admit_region(cr_admission *admission, cr_peer *peer, cr_error *error);
/* The region has bytes. */
cr_status cr_admit_region_bytes(cr_admission *admission, cr_peer *peer, uint64_t bytes, cr_error *error);
/* peer: NULL when it is gone. bytes: those that were admitted. */
void cr_admit_region_over(cr_admission *admission, cr_user *user, cr_peer *peer, uint64_t bytes);

/* How much of it the user may hold now: the rule. */
uint64_t cr_admit_share(const cr_admission *admission, const cr_user *user, cr_use use);

#endif
