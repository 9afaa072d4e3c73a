/* files: threads that make every call on a client's descriptor or mapping, so that no other thread ever waits on one.
 *
 * Two pools. LOCAL runs calls that only wait on this machine's own memory and disks; clients take turns there
 * (base/turns.h), so a task should be over after some 4 MiB of work. FOREIGN runs those that a client can
 * make hang (FUSE, network file systems, anything unknown): its threads may all be stuck and LOCAL goes on. FOREIGN's
 * threads are started as they are needed. No client has more of them than are left to all others together: one with many files
 * that hang takes half, and others' are still read. The last quarter of them is for users who have none.
 *
 * Thread: any. Owner: a task belongs to its embedder; it may free it once run was called (and has done its work) or
 * cr_files_forget returned true. */
#ifndef CURED_ENGINE_MEMORY_FILES_H
#define CURED_ENGINE_MEMORY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/turns.h"
#include "proto/status.h"

typedef enum cr_files_pool { CR_FILES_LOCAL, CR_FILES_FOREIGN } cr_files_pool;

typedef struct cr_file_task {
    cr_waiting waiting;
    void (*run)(struct cr_file_task *task);
    uint64_t user, client; /* whose it is; set before it is submitted, and the same until it has run */
    uint64_t bytes;        /* that it will read; likewise */
    bool large;            /* of a job that goes behind its client's short ones; likewise */
    cr_files_pool pool;
    bool queued, counted; /* counted: in FOREIGN, as its client's */
} cr_file_task;

typedef struct cr_files cr_files;

cr_status cr_files_new(size_t local_threads, size_t foreign_threads, cr_files **files, cr_error *error);
/* Stops the threads after the tasks they have. Threads that do not come back within wait_ms are left behind (they hang in
 * a client's file system); then this returns false and the process should end without freeing what they may touch. */
bool cr_files_stop(cr_files *files, unsigned wait_ms);
/* Queues task for pool. The task's run will be called once, on a thread of that pool. */
void cr_files_submit(cr_files *files, cr_file_task *task, cr_files_pool pool);
/* Whether tasks of the pool wait for a thread: a long one should let them in. */
bool cr_files_waited_for(cr_files *files, cr_files_pool pool);
/* The task that runs reads bytes more than it was submitted for. */
void cr_files_charge(cr_files *files, const cr_file_task *task, uint64_t bytes);
/* Takes a task that has not begun out of its queue; false when it runs, ran, or was never queued. */
bool cr_files_forget(cr_files *files, cr_file_task *task);
/* Closes descriptor, which owner passed, on a thread where that may block. */
void cr_files_close(cr_files *files, uint64_t owner, int descriptor);
/* How many tasks of owner wait or run in FOREIGN: each may hold a descriptor for as long as its file system is silent. */
size_t cr_files_foreign_tasks(cr_files *files, uint64_t owner);
/* One call more of owner's reads a file of FOREIGN, until cr_files_call_over. False: there are most of them (0: any number), or there is
 * no memory. */
bool cr_files_call(cr_files *files, uint64_t owner, size_t most);
void cr_files_call_over(cr_files *files, uint64_t owner);
/* How many closes of owner's descriptors wait in LOCAL, some of which may prove to be FOREIGN's; or a few more, another user's. */
size_t cr_files_closing(cr_files *files, uint64_t owner);
/* How many users and clients FOREIGN's threads have looked at for their next task: what that costs. */
uint64_t cr_files_looked(cr_files *files);

#endif
