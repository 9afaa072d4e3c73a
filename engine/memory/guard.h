/* guard: reading a mapping that its owner may truncate under the read.
 *
 * A read beyond the end of a mapped file raises SIGBUS. The handler finds this thread's current view, lays anonymous
 * zero pages over the rest of it and marks it; the fold runs on over zeros and its caller learns of the fault when it
 * leaves the view. No jump out of a signal handler, so nothing a fold holds is lost. A fault outside a view still ends
 * the process, as it must.
 *
 * Thread: install once at start; enter and leave on the thread that reads. Owner: a view is the thread's. */
#ifndef CURED_ENGINE_MEMORY_GUARD_H
#define CURED_ENGINE_MEMORY_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

cr_status cr_guard_install(cr_error *error);
/* Begins reading [start, start + bytes) of a mapping. Views do not nest. */
void cr_guard_enter(const void *start, size_t bytes);
/* The same of a mapping that others read too, and later. *lost becomes true before the first zeros are laid, so whoever
 * read zeros there finds it set afterwards. */
void cr_guard_enter_shared(const void *start, size_t bytes, _Atomic bool *lost);
/* Ends it; true when a read in between faulted: what was read there is zeros, not the file. */
bool cr_guard_leave(void);
/* Begins writing [start, start + bytes) of a mapping, beside a view that is read. What is written where the mapping is gone is
 * lost, and *lost becomes true. */
void cr_guard_enter_writing(const void *start, size_t bytes, _Atomic bool *lost);
/* Ends that; true when a write in between faulted. */
bool cr_guard_leave_writing(void);

#endif
