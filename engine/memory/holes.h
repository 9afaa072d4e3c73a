/* holes: shared memory that is mapped without ever being filled.
 *
 * Whoever touches a hole of a tmpfs file through a mapping allocates a page, and pays for it. A client could make the daemon pay
 * so, because it may punch a hole at any time. Therefore a mapping of shared memory is one of these two:
 *   - watched by userfaultfd: a missing page is a SIGBUS, which the guard (guard.h) survives, and EFAULT to Linux itself;
 *   - of memory that nobody can punch or cut any more (seals), and that had no hole after it was sealed.
 * All other shared memory is read by pread, which fills nothing.
 *
 * Linux watches a mapping only where the descriptor may write. It refuses userfaultfd in most containers.
 *
 * Thread: any. Owner: the process; what it holds lasts as long as that. */
#ifndef CURED_ENGINE_MEMORY_HOLES_H
#define CURED_ENGINE_MEMORY_HOLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens what the others need, so that the descriptor is there from the start. Without a call, the first query does it. False: Linux
 * refuses userfaultfd, and *why says in words how. */
bool cr_holes_open(const char **why);
/* From now on no access fills a page of the mapping, whole pages of shared memory. False: it is not so. munmap ends it. */
bool cr_holes_watch(void *start, size_t bytes);
/* Whether nobody can make a hole before byte `bytes` of shared memory, and none is there. */
bool cr_holes_never(int descriptor, uint64_t bytes);
/* Whether shared memory has no hole before byte `bytes` now. True as well where that cannot be found out. */
bool cr_holes_none(int descriptor, uint64_t bytes);

#endif
