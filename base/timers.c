/* timers: the heap. Thread: the loop's. Owner: nodes belong to those who embed them. */
#include "base/timers.h"

#include <stdlib.h>

void cr_timers_init(cr_timers *timers) { *timers = (cr_timers){0}; }

void cr_timers_free(cr_timers *timers) {
    free(timers->heap);
    *timers = (cr_timers){0};
}

static void put(cr_timers *timers, size_t at, cr_timer *timer) {
    timers->heap[at] = timer;
    timer->slot = at + 1;
}

static void sift_up(cr_timers *timers, size_t at) {
    cr_timer *timer = timers->heap[at];
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (timers->heap[parent]->when_ms <= timer->when_ms) break;
        put(timers, at, timers->heap[parent]);
        at = parent;
    }
    put(timers, at, timer);
}

static void sift_down(cr_timers *timers, size_t at) {
    cr_timer *timer = timers->heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= timers->count) break;
        if (child + 1 < timers->count && timers->heap[child + 1]->when_ms < timers->heap[child]->when_ms) child++;
        if (timers->heap[child]->when_ms >= timer->when_ms) break;
        put(timers, at, timers->heap[child]);
        at = child;
    }
    put(timers, at, timer);
}

bool cr_timer_set(cr_timers *timers, cr_timer *timer, uint64_t when_ms) {
    cr_timer_stop(timers, timer);
    if (timers->count == timers->room) {
        size_t room = timers->room ? timers->room * 2 : 64;
        cr_timer **heap = realloc(timers->heap, room * sizeof *heap);
        if (!heap) return false;
        timers->heap = heap;
        timers->room = room;
    }
    timer->when_ms = when_ms;
    put(timers, timers->count, timer);
    sift_up(timers, timers->count++);
    return true;
}

void cr_timer_stop(cr_timers *timers, cr_timer *timer) {
    if (!timer->slot) return;
    size_t at = timer->slot - 1;
    timer->slot = 0;
    cr_timer *last = timers->heap[--timers->count];
    if (last == timer) return;
    put(timers, at, last);
    sift_up(timers, at);
    sift_down(timers, last->slot - 1);
}

void cr_timers_run(cr_timers *timers, uint64_t now_ms, size_t most) {
    while (most-- && timers->count && timers->heap[0]->when_ms <= now_ms) {
        cr_timer *timer = timers->heap[0];
        cr_timer_stop(timers, timer);
        timer->fire(timer);
    }
}

uint64_t cr_timers_next(const cr_timers *timers) { return timers->count ? timers->heap[0]->when_ms : UINT64_MAX; }
