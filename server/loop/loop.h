/* loop: the turns of the daemon's thread: wakes, timers, sleep, draining.
 *
 * Thread: everything here is the loop's, but for cr_loop_wake (any thread). Owner: main, or an annex, makes it, starts it and frees
 * it. No globals, because annexes (native/annex.h) have loops, too. */
#ifndef CURED_SERVER_LOOP_LOOP_H
#define CURED_SERVER_LOOP_LOOP_H

#include <uv.h>

#include "server/call/calls.h"
#include "server/loop/door.h"
#include "server/loop/trim.h"

enum { CR_LOOP_MAX_DOORS = 4 };

typedef struct cr_loop {
    uv_loop_t *uv;
    cr_calls *calls;
    cr_door *doors[CR_LOOP_MAX_DOORS];
    uint32_t door_count;

    uv_timer_t clock;              /* set to the next of calls->timers */
    uint64_t clock_set, clock_due; /* for when; and when it should come, if that is over */
    unsigned catches_up;           /* so often in a row the clock came late, and comes again: clients come first */
    uv_async_t wake;
    uv_prepare_t prepare; /* before each sleep: doors write, the clock is set */
    uv_check_t check;     /* after each: connections have their turns */
    uv_idle_t looking;    /* runs while nobody sleeps: something is left, or something is soon to come */
    cr_lookout busy;      /* for waits while calls are open: they end with a job */
    cr_lookout idle;      /* for others: they end with a call */
    cr_lookout sure;      /* for waits for a job that is nearly done */
    bool job_ends;        /* there is one */
    cr_lookout *waits;    /* of the wait that is on; NULL: none is */
    uint64_t waits_ns;    /* since when */
    cr_look look;
    bool looks;       /* of that wait; a seat is held */
    uint64_t came_ns; /* when something came in this turn; 0: nothing did */
    bool just_came;   /* and it is still that time */
    bool left;        /* somebody waits for the next turn */
    uv_poll_t reserve;
    cr_timer hurry; /* set while draining */
    cr_trim trim;

    void (*drained)(struct cr_loop *loop);   /* called once, when draining and the last call is over */
    void (*lane_lost)(struct cr_loop *loop); /* called after a GPU was lost */
} cr_loop;

cr_status cr_loop_init(cr_loop *loop, uv_loop_t *uv, cr_calls *calls, cr_error *error);
/* Makes libuv's table large enough for so many descriptors, once: libuv ends the process when the table cannot grow later.
 * Fewer are reserved where this process may not open so many. */
void cr_loop_reserve(cr_loop *loop, uint64_t descriptors);
void cr_loop_add(cr_loop *loop, cr_door *door);
/* For doors: something came. */
void cr_loop_came(cr_loop *loop);
/* The time; who asks first after something came saves a look at the clock. */
uint64_t cr_loop_now(cr_loop *loop);
/* The next turn comes at once. For cr_queue_new, too. */
void cr_loop_wake(void *loop);
/* New calls are refused; drained is called when the running ones are over. */
void cr_loop_drain(cr_loop *loop, void (*drained)(cr_loop *loop));
/* Ends every connection of every door. */
void cr_loop_close_doors(cr_loop *loop);
/* Closes the loop's handles; it then has to run until they are gone. */
void cr_loop_close_handles(cr_loop *loop);

#endif
