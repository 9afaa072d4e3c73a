/* thread_pool: the threads of this process that fold large arrays in memory beside the thread that asks. There is one pool, and one call
 * at a time has it: what other calls bring meanwhile they fold by themselves. So threads of Dask or of a program do not multiply.
 *
 *   no pool ──first array of 1 MiB and more──► workers start, and what it takes to wake them is measured
 *   a worker    asleep ──a call──► takes part ──the call is over──► looks for 50 µs ──nothing comes──► asleep
 *
 * A pool has a thread for each core that the process may use (base/cores.h), the caller's among them; CURED_NUM_THREADS, or without it
 * OMP_NUM_THREADS, makes them fewer. On one core there is none. Workers block all signals, are never joined, and end with the process.
 * A forked child has no pool, and starts its own.
 *
 * Whoever calls opens a gate, and closes it when it finds nothing left to do. It waits for workers that went in, and for no other: a
 * worker that wakes late costs nothing but its wake-up.
 *
 * Thread: any. Owner: the process; slots belong to the call that has the pool, each to one of its threads. */
#ifndef CURED_CLIENT_LIB_EMBEDDED_THREAD_POOL_H
#define CURED_CLIENT_LIB_EMBEDDED_THREAD_POOL_H

#include <stdatomic.h>

#include "kernels/core/partial.h"
#include "proto/status.h"

enum {
    CR_THREAD_POOL_LEAST_BYTES = 1024 * 1024, /* smaller arrays never ask */
    CR_THREAD_POOL_MOST_THREADS = 1024,
    CR_THREAD_POOL_LOOK_NS = 50 * 1000,
};

/* What one thread has during a call. */
typedef struct cr_thread_slot {
    _Alignas(64) _Atomic uint64_t next; /* of its range, the first element that nobody has taken */
    uint64_t end;
    _Alignas(64) bool used; /* its partial has something; cr_thread_pool_run makes it false */
    uint8_t *fetched; /* what it reads files into (cr_worker); NULL: none yet. The slot keeps it from call to call */
    cr_partial partial;
} cr_thread_slot;

typedef struct cr_thread_pool cr_thread_pool;

/* How many threads the environment allows; UINT32_MAX: it does not say. INVALID_ARGUMENT: CURED_NUM_THREADS is no number from 1 to 1,024. */
cr_status cr_thread_pool_wanted(uint32_t *threads, cr_error *error);
/* The pool, for an array of so many bytes at data; the caller gives it back. NULL: the array is too small, there is none, or another call
 * has it. The first call starts it, and reads the array's first 256 KiB; of a file data is NULL. Of smaller arrays this is one comparison. */
cr_thread_pool *cr_thread_pool_take(const void *data, uint64_t bytes);
void cr_thread_pool_give(cr_thread_pool *pool);
/* With the caller's; at least 2. */
uint32_t cr_thread_pool_threads(const cr_thread_pool *pool);
/* Of threads [0, cr_thread_pool_threads). The caller's is number 0. */
cr_thread_slot *cr_thread_pool_slot(cr_thread_pool *pool, uint32_t number);
/* Has the caller and up to so many workers run the function, and returns when all that began are back. A worker may run it twice. bytes: how
 * much there is to fold; where it is little, workers that sleep are let sleep. */
void cr_thread_pool_run(cr_thread_pool *pool, uint32_t workers, uint64_t bytes,
                        void (*run)(void *argument, uint32_t number), void *argument);
/* As many threads as a call will find, as far as that is known: 1 on one core, 0 before the pool is there. */
uint32_t cr_thread_pool_known(void);
/* Whether no call has the pool, or there is none yet: soon another may. */
bool cr_thread_pool_is_free(void);
/* For tests: lets go of the pool. The next has so many threads, and wakes workers from so many bytes on; 0: as always. */
void cr_thread_pool_renew(uint32_t threads, uint64_t from);

#endif
