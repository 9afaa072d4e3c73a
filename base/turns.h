/* turns: a line in which users take turns, and within a user's turn its clients. What waits is a job, a task or a request for a
 * slab. A client may have thousands of them in line, and a user thousands of clients: its turn is worth as much as that of one
 * with a single job.
 *
 * Deficit round robin, twice: a turn is worth CR_TURN_WORTH_BYTES, and what is taken beyond is taken off the next turns, of the
 * client and of its user. A client that had nothing in line goes first among the clients of its user, for one turn, and such a
 * user goes first among users. It keeps its place until the ring has come to it with nothing in line, so coming back again and again gains nothing.
 *
 *   first in line: FRESH ──its turn is over, or nothing of it is left──► RING ──its turn comes, nothing waits──► gone
 *
 * Among what waits of one client the short goes before the large, but one in nine that are served is a large one.
 *
 * Users and clients stand in tables of fixed size, so that nothing is allocated while something is put in line or taken. With
 * more of them in line than a table has room for, some share a place, and so a turn.
 *
 * Thread: any; its owner's lock guards all of it. Owner: the line that embeds it; what waits belongs to its embedder. */
#ifndef CURED_BASE_TURNS_H
#define CURED_BASE_TURNS_H

#include <stdint.h>

#include "base/list.h"

enum {
    CR_TURN_WORTH_BYTES = 1024 * 1024,
    CR_TURN_LARGE_BYTES = 1024 * 1024, /* what is larger goes behind its client's others */
    CR_TURN_LEAST_BYTES = 16 * 1024,   /* that anything counts as: it costs its thread as much time */
};

typedef struct cr_turns cr_turns;
typedef struct cr_turns_client cr_turns_client;

/* Something that waits in line. */
typedef struct cr_waiting {
    cr_list link; /* in its client's list */
    cr_turns_client *client;
    bool large;
} cr_waiting;

static inline void cr_waiting_init(cr_waiting *w) { cr_list_init(&w->link); }
static inline bool cr_waiting_in_line(const cr_waiting *w) { return !cr_list_empty(&w->link); }
/* Out of the line, if it is in one. */
static inline void cr_waiting_leave(cr_waiting *w) { cr_list_remove(&w->link); }

/* NULL: no memory. */
cr_turns *cr_turns_new(void);
void cr_turns_free(cr_turns *turns);
/* Puts w, which is in no line, behind what else waits of that client of that user. */
void cr_turns_put(cr_turns *turns, uint64_t user, uint64_t client, cr_waiting *w, bool large);
/* The one whose turn it is, which stays in line. NULL: the line is empty. */
cr_waiting *cr_turns_next(cr_turns *turns);
/* `w`, which was next, has been given bytes. If `w` is still in line it goes behind its client's others. */
void cr_turns_charge(cr_turns *turns, cr_waiting *w, uint64_t bytes);
/* What was next, and has left the line, has been given more bytes. A client with nothing in line owes nothing. */
void cr_turns_charge_more(cr_turns *turns, uint64_t user, uint64_t client, uint64_t bytes);

/* For a line whose owner may want only some of what waits. */
typedef enum cr_choice { CR_CHOICE_PASS, CR_CHOICE_PASS_CLIENT, CR_CHOICE_TAKE } cr_choice;
typedef cr_choice (*cr_turns_ask)(void *argument, cr_waiting *w);
/* Whose turn it is among those that ask takes. It is the last that was asked. */
cr_waiting *cr_turns_pick(cr_turns *turns, cr_turns_ask ask, void *argument);
/* Goes through the whole line in the order of turns: through what waits of each client as far as its turn goes, then
 * through the rest. take may take w, and charge it, but touch nothing else in line. It returns false to end. */
void cr_turns_follow(cr_turns *turns, bool (*take)(void *argument, cr_waiting *w), void *argument);
/* Whether only the client of w is in line, and has been for a while. */
bool cr_turns_alone(const cr_turns *turns, const cr_waiting *w);

#endif
