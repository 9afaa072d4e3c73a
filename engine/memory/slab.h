/* slab: the pool of 1 MiB buffers that streamed and unmappable input passes through.
 *
 * Made and touched once at start, never freed while the daemon runs: a fresh page costs more to touch than a full one
 * to fold. Taken last-in-first-out, so the hottest is reused. Who gets none leaves a waiter. Slabs that come back go to
 * waiters first; their clients take turns (base/turns.h).
 *
 * No owner holds more than CR_SLAB_SHARE times what is free, so that some are left to those who come next. An owner that
 * alone has asked for a while is not bound by that.
 *
 * Thread: any; one mutex. Owner: a slab belongs to whoever took it until given back. */
#ifndef CURED_ENGINE_MEMORY_SLAB_H
#define CURED_ENGINE_MEMORY_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/turns.h"
#include "engine/memory/pin.h"
#include "proto/status.h"

enum {
    CR_SLAB_BYTES = 1024 * 1024,
    CR_SLAB_SHARE = 8,
    CR_SLAB_ALONE = 16, /* an owner is alone when the last asks, so many for each slab there is, were its own */
};

typedef struct cr_slabs cr_slabs;

/* Who asks for a slab, and for what. */
typedef struct cr_slab_asker {
    uint64_t client, owner; /* as in cr_peer: turns go by both, the share by the owner */
    bool large;             /* a job that goes behind its client's short ones */
} cr_slab_asker;

/* Someone who waits for a slab. granted runs on the thread that gave the slab back, outside the pool's lock; it must only
 * post (to the loop, or to a files thread). The slab is then the waiter's. */
typedef struct cr_slab_waiter {
    cr_waiting waiting;
    cr_slab_asker asker;
    void (*granted)(struct cr_slab_waiter *waiter, void *slab);
    void *slab; /* the pool's, between the grant and granted */
    bool in_line;
} cr_slab_waiter;

cr_status cr_slabs_new(size_t count, cr_slabs **slabs, cr_error *error);
/* Makes GPUs copy from slabs where they are; before the first is taken. cr_slabs_unpin before the pinner goes. */
cr_status cr_slabs_pin(cr_slabs *slabs, const cr_pinner *pinner, cr_error *error);
void cr_slabs_unpin(cr_slabs *slabs);
bool cr_slabs_pinned(const cr_slabs *slabs);
/* All of them as one piece, while none is taken: room for measurements at start. */
void *cr_slabs_memory(cr_slabs *slabs, size_t *bytes);
/* All slabs must be back, and unpinned. */
void cr_slabs_free(cr_slabs *slabs);
/* A slab, or NULL when there is none for the asker now. */
void *cr_slab_take(cr_slabs *slabs, const cr_slab_asker *asker);
/* A slab, or NULL after putting waiter in line for its asker; its granted will be called. */
void *cr_slab_take_or_wait(cr_slabs *slabs, cr_slab_waiter *waiter);
/* Takes waiter out of the line; false when it is not in it any more (granted was or is being called). */
bool cr_slab_forget(cr_slabs *slabs, cr_slab_waiter *waiter);
void cr_slab_give(cr_slabs *slabs, void *slab);
/* True when a waiter is in line or fewer than an eighth of the slabs are free: time to seal the idle ones. */
bool cr_slabs_low(cr_slabs *slabs);

#endif
