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

#include "client/lib/internal.h"

enum { MARK_BYTES = 4096, MARKED = 1 };

void cr_cl_fork_mark(cured_conn *conn) {
    conn->process = getpid();
    uint32_t *mark = mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mark == MAP_FAILED) return;
    if (madvise(mark, MARK_BYTES, MADV_WIPEONFORK) != 0) {
        munmap(mark, MARK_BYTES);
        return;
    }
    *mark = MARKED;
    conn->mark = mark;
}

void cr_cl_fork_unmark(cured_conn *conn) {
    if (conn->mark != NULL) munmap((void *)(uintptr_t)conn->mark, MARK_BYTES);
    conn->mark = NULL;
}

void cr_cl_fork_check(cured_conn *conn) {
    if (conn->mark != NULL ? *conn->mark == MARKED : conn->process == getpid()) return;
    cr_cl_fork_unmark(conn);
    cr_cl_fork_mark(conn);
    cr_cl_conn_inherited(conn);
}
