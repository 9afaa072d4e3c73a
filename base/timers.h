/* timers: any number of deadlines behind one clock, a binary heap of embedded nodes.
 *
 * libuv's own timers would do, but closing a uv_timer_t is asynchronous, and a call or connection must be able to go
 * away at once. Thread: the loop's. Owner: whoever embeds the node; it must be stopped before its memory goes. */
#ifndef CURED_BASE_TIMERS_H
#define CURED_BASE_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cr_timer {
    uint64_t when_ms;
    size_t slot; /* heap position + 1; 0: not set */
    void (*fire)(struct cr_timer *timer);
} cr_timer;

typedef struct cr_timers {
    cr_timer **heap;
    size_t count, room;
} cr_timers;

void cr_timers_init(cr_timers *timers);
void cr_timers_free(cr_timers *timers);
/* Sets, or moves, timer to when_ms on cr_now_ms's clock. False when there is no memory for another node. */
bool cr_timer_set(cr_timers *timers, cr_timer *timer, uint64_t when_ms);
/* Does nothing when the timer is not set. */
void cr_timer_stop(cr_timers *timers, cr_timer *timer);
/* Fires what is due at now_ms, each after taking it out of the heap (so fire may set it again). */
void cr_timers_run(cr_timers *timers, uint64_t now_ms, size_t most);
/* When the next one is due; UINT64_MAX: none is set. */
uint64_t cr_timers_next(const cr_timers *timers);

#endif
