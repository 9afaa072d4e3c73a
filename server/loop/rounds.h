/* rounds: whose turn it is on the loop.
 *
 * Clients take turns, not connections. A connection with something to do waits in its client's line, a client whose line is not
 * empty waits in one of two rings. A go ends when it is full, because one connection has done so much (one of CR_GO_...), or with
 * the time of the turn. A connection goes once in a turn. A client whose last go was full is heavy: it waits behind all that are
 * light, and has a quarter of each turn at least.
 *
 *   idle ──cr_rounds_wait──► light ──its go was full, or left something──► heavy ──nothing is left──► idle
 *            └──its last go was full────────────────────────────────────►┘
 *
 * Thread: the loop's. Owner: a door. */
#ifndef CURED_SERVER_LOOP_ROUNDS_H
#define CURED_SERVER_LOOP_ROUNDS_H

#include "base/list.h"
#include "base/table.h"

enum {
    CR_TURN_NS = 500000,        /* the time of one turn, of each of its halves: news of calls, and connections */
    CR_GO_FRAMES = 256,         /* of one connection in one turn: frames, and partials of a merge */
    CR_GO_ANSWERS = 128 * 1024, /* bytes of answers made for one connection in one turn */
    CR_GO_READ = 32 * 1024,     /* who brings so many bytes at once waits behind those who bring less */
    CR_GO_NS = 125000,          /* and who takes so long, behind those who take less */
};

typedef struct cr_rounds {
    cr_table clients;
    cr_list light, heavy; /* rings of clients that wait */
    size_t waiting;       /* connections */
    uint32_t turn;
} cr_rounds;

/* A connection's place. */
typedef struct cr_seat {
    cr_list link; /* in its client's line */
    struct cr_sitter *client;
    uint32_t turn; /* the last in which it went */
    bool waits;
} cr_seat;

void cr_rounds_init(cr_rounds *rounds);
/* All seats were left. */
void cr_rounds_free(cr_rounds *rounds);
/* seat is a connection's of that client, see cr_peer. False: there is no memory. */
bool cr_rounds_join(cr_rounds *rounds, cr_seat *seat, uint64_t client);
void cr_rounds_leave(cr_rounds *rounds, cr_seat *seat);
/* The connection has something to do: it goes in this turn or in a later one. */
void cr_rounds_wait(cr_rounds *rounds, cr_seat *seat);
/* One turn, from now_ns on. go does what the connection has to do, not much beyond the time until_ns; true: that was a full go. True: somebody
 * still waits. */
bool cr_rounds_turn(cr_rounds *rounds, uint64_t now_ns, bool (*go)(cr_seat *seat, uint64_t until_ns));

#endif
