/* fork: what a child process does with the connections of its parent. Both have the same socket: bytes that a child sends
 * or reads are missing in the parent's stream. So a child lets go of its copy, ends its copies of the parent's calls and
 * connects anew when it has a call of its own.
 *
 * Linux itself says who is a child: a page that it hands to children as zeros (MADV_WIPEONFORK) costs one load a look,
 * where getpid() is a system call. A Linux without it (before 4.14) are asked for the process number.
 *
 * Thread: the one that uses the connection. Owner: the connection owns the page. */
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/call/calls.h"

enum { MARK_BYTES = 4096, MARKED = 1 };

void cr_cl_fork_mark(cr_cl_calls *calls) {
    calls->process = getpid();
    uint32_t *mark = mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return;
    if (madvise(mark, MARK_BYTES, MADV_WIPEONFORK) != 0) {
        munmap(mark, MARK_BYTES);
        return;
    }
    *mark = MARKED;
    calls->mark = mark;
}

void cr_cl_fork_unmark(cr_cl_calls *calls) {
    if (calls->mark != NULL) munmap((void *)(uintptr_t)calls->mark, MARK_BYTES);
    calls->mark = NULL;
}

void cr_cl_fork_check(cr_cl_calls *calls) {
    if (calls->mark != NULL ? *calls->mark == MARKED : calls->process == getpid()) return;
    cr_cl_fork_unmark(calls);
    cr_cl_fork_mark(calls);
    cr_cl_calls_inherited(calls);
}
