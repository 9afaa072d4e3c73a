/* ahead: looks, and asks. Thread: the one that reads. Owner: the embedder. */
#include "base/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Whole steps, but for the one at the end. */
static void ask_to(cr_ahead *ahead, int fd, uint64_t from, uint64_t till, uint64_t end) {
    if (ahead->asked < from) ahead->asked = from;
    while (ahead->asked < till) {
        const uint64_t step = least(end - ahead->asked, CR_AHEAD_STEP);
        if (posix_fadvise(fd, (off_t)ahead->asked, (off_t)step, POSIX_FADV_WILLNEED) != 0) return;
        ahead->asked += step;
    }
}

bool cr_ahead_passes_by(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0;
}

size_t cr_ahead_read(cr_ahead *ahead, int fd, void *into, size_t bytes, uint64_t offset, uint64_t end) {
    if (ahead->unknown || bytes == 0) return 0;
    const uint64_t beyond = offset + bytes, till = beyond + least(end - beyond, CR_AHEAD_BYTES);
    if (ahead->asked >= till + CR_AHEAD_STEP) ahead->asked = 0; /* more than this reading asked for: it begins anew */
    struct iovec part = {into, bytes};
    const ssize_t n = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);
    if (n < 0 && errno != EAGAIN) ahead->unknown = errno != EINTR;
    if (n < (ssize_t)bytes && ahead->asked == 0 && cr_ahead_passes_by(fd)) ahead->unknown = true;
    const size_t got = n > 0 ? (size_t)n : 0;
    const bool waits = got < bytes && !ahead->unknown && n != 0; /* n is 0 where the file ends */
    if (waits || ahead->asked > offset) ask_to(ahead, fd, offset + got, till, end);
    return got;
}
