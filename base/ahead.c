/* ahead: looks, and asks. Thread: the one that reads. Owner: the embedder. */
#include "base/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

static void ask_to(cr_ahead *ahead, int fd, uint64_t from, uint64_t till) {
    if (ahead->asked < from) ahead->asked = from;
    for (; ahead->asked < till; ahead->asked += CR_AHEAD_STEP)
        if (posix_fadvise(fd, (off_t)ahead->asked, CR_AHEAD_STEP, POSIX_FADV_WILLNEED) != 0) return;
}

/* A descriptor whose reads pass by the page cache gains nothing by what lies there. */
static bool passes_by(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0;
}

size_t cr_ahead_read(cr_ahead *ahead, int fd, void *into, size_t bytes, uint64_t offset, uint64_t end) {
    if (ahead->unknown || bytes == 0) return 0;
    struct iovec part = {into, bytes};
    const ssize_t n = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (n < 0 && errno != EAGAIN) ahead->unknown = errno != EINTR;
    if (n < (ssize_t)bytes && ahead->asked == 0 && passes_by(fd)) ahead->unknown = true;
    const size_t got = n > 0 ? (size_t)n : 0;
    const uint64_t beyond = offset + bytes, left = end - beyond;
    const bool waits = got < bytes && !ahead->unknown && n != 0; /* n is 0 where the file ends */
    if (waits || ahead->asked > offset)
        ask_to(ahead, fd, offset + got, beyond + (left < CR_AHEAD_BYTES ? left : CR_AHEAD_BYTES));
    return got;
}
