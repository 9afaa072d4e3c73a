/* double: what tests ask of the runtime double: when work runs, what fails, and what was done. Beside these the library exports CUDA's
 * runtime under its own names (cuda_runtime_api.h), so that a test makes streams and memory as a program does. Plain C, for
 * ctypes too.
 *
 * Nothing runs when it is enqueued. Work runs in calls of the runtime that wait or query, and in cr_double_run(): one operation
 * after the other, in an order that streams, events and the legacy stream allow. A program that waits by looking at memory alone
 * waits for ever.
 *
 * Thread: any. Owner: the library, of everything. */
#ifndef CURED_TESTS_DOUBLE_DOUBLE_H
#define CURED_TESTS_DOUBLE_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CR_DOUBLE_CONTROL __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Draws the order of everything after this call; at the start CURED_TEST_SEED does, or 0. With 0 work runs as late as it may: a wait
 * runs what it waits for and no more, and a query one operation of what it asks for. With another seed a wait may run other
 * streams' work first, and a query runs some operations, or none. */
CR_DOUBLE_CONTROL void cr_double_seed(uint64_t seed);
/* Runs at most so many operations; gives how many there were to run. */
CR_DOUBLE_CONTROL size_t cr_double_run(size_t operations);
/* Operations that wait in queues, and those of one stream. */
CR_DOUBLE_CONTROL size_t cr_double_pending(void);
CR_DOUBLE_CONTROL size_t cr_double_pending_in(void *stream);

/* Enqueues a kernel that copies bytes, which are taken from `from` now, to device memory: in several steps, the last byte in the last. A
 * cudaError_t, as all that is int below. */
CR_DOUBLE_CONTROL int cr_double_slow_write(void *stream, void *to, const void *from, size_t bytes);
/* Enqueues a kernel that copies from device memory to device memory, both as they are when it runs. */
CR_DOUBLE_CONTROL int cr_double_copy_kernel(void *stream, void *to, const void *from, size_t bytes);

/* The nth call from now on of a function, such as "cudaMalloc" or "launch" (of a kernel), gives the error and does nothing
 * else; 1 is the next one. Several may be set. name NULL: forgets them all. */
CR_DOUBLE_CONTROL void cr_double_fail(const char *name, unsigned nth, int error);
/* Faults that were set and did not come yet. */
CR_DOUBLE_CONTROL unsigned cr_double_faults(void);
/* Calls of a function since the start, those that failed too. */
CR_DOUBLE_CONTROL uint64_t cr_double_calls(const char *name);
/* The current device fails as after a bad access: its work is lost, and all its calls give the error until cr_double_reset(). */
CR_DOUBLE_CONTROL void cr_double_break(int error);
/* As cudaDeviceReset(): the current device's work is dropped, and its streams, events and memory are gone. The next use makes a context
 * anew. */
CR_DOUBLE_CONTROL int cr_double_reset(void);
/* Whether this thread's current context is one that a program made itself, on its current device. */
CR_DOUBLE_CONTROL void cr_double_foreign_context(bool foreign);
/* As there is no driver, or an older one: 0, or 12040. At the start 13000. */
CR_DOUBLE_CONTROL void cr_double_driver(int version);
/* The least number of devices is 0; there are 2. */
CR_DOUBLE_CONTROL void cr_double_devices(int count);
/* What compute capability the devices say that they have. At the start 9.0. */
CR_DOUBLE_CONTROL void cr_double_capability(int major, int minor);
/* How many times as fast as their float64 the devices say that their float32 is. At the start 2. */
CR_DOUBLE_CONTROL void cr_double_ratio(int ratio);
/* Whether cudaFree() and cudaFreeHost() take memory away without waiting for the device, which CUDA does not promise. At the start
 * they wait, as CUDA does. */
CR_DOUBLE_CONTROL void cr_double_free_at_once(bool at_once);
/* Bytes that cudaMalloc and its like may give in all; UINT64_MAX: no limit. */
CR_DOUBLE_CONTROL void cr_double_memory(uint64_t bytes);

typedef struct cr_double_counts {
    uint64_t device_syncs; /* cudaDeviceSynchronize, and the waits of cudaFree, cudaFreeHost, cudaHostUnregister */
    uint64_t
        stream_syncs; /* cudaStreamSynchronize, and the waits of cudaMemcpy, of cudaMemset, and of copies to pageable memory */
    uint64_t event_syncs;                  /* cudaEventSynchronize */
    uint64_t queries;                      /* cudaStreamQuery and cudaEventQuery */
    uint64_t allocations;                  /* cudaMalloc, cudaMallocManaged */
    uint64_t frees;                        /* cudaFree, not of NULL */
    uint64_t pool_allocations, pool_frees; /* cudaMallocAsync, cudaFreeAsync */
    uint64_t host_allocations, host_frees; /* pinned memory */
    uint64_t live_bytes, live_blocks;      /* of all kinds, registered memory excepted */
    uint64_t launches; /* of kernels, captured ones too; a graph's are not counted again when it runs */
    uint64_t copies, sets, host_functions, graph_launches; /* enqueued */
    uint64_t enqueued;                                     /* operations, all in all */
    uint64_t ran;                                          /* operations that ran */
    uint64_t streams, events, graphs, execs, user_objects; /* that live */
    uint64_t stale;                                        /* uses of what was destroyed, or never was */
    uint64_t late_writes;                                  /* blocks that were written after they had been freed */
} cr_double_counts;
/* Also looks through the blocks that were freed and are kept, for late writes. */
CR_DOUBLE_CONTROL void cr_double_count(cr_double_counts *counts);
/* Bytes of device memory that live, pools' too. */
CR_DOUBLE_CONTROL uint64_t cr_double_device_bytes(void);
/* Operations that were enqueued in a stream, captured ones too. All but these are enqueued - cr_double_enqueued_in(stream). */
CR_DOUBLE_CONTROL uint64_t cr_double_enqueued_in(void *stream);
CR_DOUBLE_CONTROL uint64_t cr_double_launches_in(void *stream);

#ifdef __cplusplus
}
#endif
#endif
