/* origin: whether calls on a descriptor can be made to hang by somebody else, found out without making such a call.
 *
 * fstat and fstatfs on a FUSE file are questions to its server, which need not answer. Linux tells a descriptor's
 * mount (/proc/self/fdinfo) and that mount's file system (/proc/self/mountinfo) by itself. A mount that is not in this
 * process's table (a descriptor from another mount namespace) counts as foreign, but for the mount of the process's own
 * root: in a plain chroot no table has it, so its file system is asked once.
 *
 * Thread: any. */
#ifndef CURED_ENGINE_MEMORY_ORIGIN_H
#define CURED_ENGINE_MEMORY_ORIGIN_H

#include <stdbool.h>

/* Opens what the others need, so that the descriptor is there from the start. Without a call, the first query does it. */
void cr_origin_open(void);
/* The same for a table and a root of the caller's, whose names must last; for tests. */
void cr_origin_open_at(const char *table, const char *root);
/* True for memfds and files of the local file systems known to answer. */
bool cr_origin_is_local(int descriptor);
/* True when statfs's f_type (from a call that came back) is one of those file systems. */
bool cr_origin_type_is_local(long type);

#endif
