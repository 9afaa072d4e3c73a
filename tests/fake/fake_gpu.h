/* fake_gpu: a GPU made of host memory, for kernels/cuda/gpu.h. Each poll does one piece of what is enqueued, by the CPU's
 * folds. Its faults are chosen. It ends the process when it is used as no GPU may be: from two threads, beyond its
 * buffers, from memory that is not pinned, after it was lost, or closed with something still open.
 *
 * "Memory of another process" is a file, whose path the handle holds, or a descriptor of a file with a head
 * (fake_shared.c: shared_head). It is read once, when it is opened. An event is a file too, and has fired when the file
 * is not empty. What begins with "killing!" or "hanging!" does that to the process that opens it, "poisoned" to the device
 * that folds it.
 * Thread: as gpu.h says; fake_gpu_plan from any. Owner: the test, or the daemon cured-fake-gpu, which reads its plan from
 * the environment: CURED_TEST_GPU="devices=2,fail_fold=3". */
#ifndef CURED_TESTS_FAKE_FAKE_GPU_H
#define CURED_TESTS_FAKE_FAKE_GPU_H

#include "kernels/cuda/gpu.h"

enum { FAKE_LATE_MS = 300 };

/* Ordinal numbers count from the plan on (in the daemon: from the first pin, which comes after measuring); 0: never. */
typedef struct fake_gpu_faults {
    uint32_t devices;                          /* 0: none, with a reason */
    uint32_t fail_open;                        /* not 0: opening fails */
    uint32_t hang_count, hang_open;            /* not 0: to count or to open does not return while the plan says so */
    uint32_t fail_pin;                         /* not 0: pinning fails */
    uint32_t fail_copy, fail_fold, fail_fault; /* this call alone fails; fail_fault: this poll, with the work lost */
    uint32_t lose_at;                          /* the copy, fold or poll at which the device is lost */
    uint32_t hang_at;                          /* the fold that never finishes */
    uint32_t stuck_at, stuck_pin, stuck_put;   /* the fold that never returns; the pin; the put */
    uint32_t stuck_unpin;                      /* not 0: nor does any unpin */
    uint32_t lacks;                            /* families it does not implement */
    uint32_t lies_at;                          /* the fold whose partial misses an element */
    uint32_t room;                             /* folds that a stream's packs take; 0: as many as may be */
    uint32_t untraced;                         /* not 0: no tool looks on, and to begin a range is misuse */
    uint32_t polls;                            /* looks that each copy or fold takes; 0 is 1 */
    uint32_t late_at;                          /* the poll that takes FAKE_LATE_MS, and sees nothing done */
    uint32_t late_import;                      /* not 0: opening what others share takes FAKE_LATE_MS, then works */
} fake_gpu_faults;

/* Ranges of jobs are recorded, and an end that has no begin is misuse. With CURED_TEST_GPU_TRACES=PATH they are written there, a line
 * each: "+ 3 NAME", "- 3". */
uint32_t fake_gpu_traces(uint32_t *open); /* begun; *open: and not ended */
const char *fake_gpu_trace_name(
    uint32_t number); /* the name of the number-th from 1, of the last 1,024; it stays until those are over */

void fake_gpu_plan(const fake_gpu_faults *faults);

typedef struct fake_gpu_counts {
    uint32_t copies, folds, pinned_copies; /* pinned_copies: of memory that was pinned, not allocated */
    uint32_t alive;                        /* devices open */
    uint32_t pinned;                       /* pieces of memory that some device has pinned now */
    uint32_t packs, largest_pack;          /* largest_pack: asked for in one call, since the process began */
    uint64_t linger_ns;                    /* of the device that was told last */
    uint32_t copy_calls;                   /* in which the copies were enqueued */
    uint64_t copied_bytes;
    uint32_t fold_calls, axes, fetches, puts, kernels, polls, trims, allocations, frees; /* calls of these */
} fake_gpu_counts;
fake_gpu_counts fake_gpu_seen(void);

extern const cr_gpu_api cr_fake_gpu;

#endif
