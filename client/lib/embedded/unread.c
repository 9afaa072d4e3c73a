/* unread: a file that nobody has read yet, as one segment of which each thread reads the claims that it folds. So reading, which is a
 * copy of the page cache, is spread over all threads, as folding is.
 *
 * What the page cache lacks is asked of the disk ahead of the claims, by whoever meets it: they come in the file's order. File systems that
 * cannot say what is there (tmpfs, FUSE) are only read.
 *
 * Thread: cr_work_offer_file on the one that uses the connection; the others on any. Owner: the segment, until it is released. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "client/lib/embedded/embedded.h"

typedef struct unread {
    cr_segment segment;
    int fd;
    uint64_t offset, end;   /* of the input in the file */
    _Atomic uint64_t asked; /* of the disk, up to here */
    _Atomic bool silent;    /* the file system does not say what is there, or it is of no use */
} unread;

static void release(cr_segment *segment) { free(cr_container(segment, unread, segment)); }

/* How many bytes are there without a wait. *ends: the file does. */
static size_t read_there(unread *u, void *into, size_t bytes, uint64_t at, bool *ends) {
    struct iovec part = {into, bytes};
    if (atomic_load_explicit(&u->silent, memory_order_relaxed)) return 0;
    const ssize_t n = preadv2(u->fd, &part, 1, (off_t)at, RWF_NOWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) atomic_store_explicit(&u->silent, true, memory_order_relaxed);
    *ends = n == 0;
    return n > 0 ? (size_t)n : 0;
}

/* Has the disk bring what nobody has asked of it yet, up to CR_AHEAD_BYTES beyond `at`. */
static void ask_ahead(unread *u, uint64_t at) {
    const uint64_t till = u->end - at < CR_AHEAD_BYTES ? u->end : at + CR_AHEAD_BYTES;
    uint64_t from = atomic_load(&u->asked);
    do {
        if (from >= till) return;
    } while (!atomic_compare_exchange_weak(&u->asked, &from, till));
    if (from < at) from = at;
    for (uint64_t step; from < till; from += step) {
        step = till - from < CR_AHEAD_STEP ? till - from : CR_AHEAD_STEP;
        if (posix_fadvise(u->fd, (off_t)from, (off_t)step, POSIX_FADV_WILLNEED) != 0) return;
    }
}

static cr_status fetch(cr_segment *segment, uint64_t offset, void *into, size_t bytes, cr_error *error) {
    unread *u = cr_container(segment, unread, segment);
    const uint64_t at = u->offset + offset;
    bool ends = false;
    const size_t there = read_there(u, into, bytes, at, &ends);
    if (!ends && !atomic_load_explicit(&u->silent, memory_order_relaxed) &&
        (there < bytes || atomic_load(&u->asked) != 0))
        ask_ahead(u, at + there);
    return cr_local_read(u->fd, (uint8_t *)into + there, bytes - there, at + there, error);
}

bool cr_work_reads_apart(const cr_work *work) {
    const cr_job *job = work->job;
    return (work->wide || work->local->pool != NULL) && job->axis == NULL && !job->in_order;
}

cr_status cr_work_offer_file(cr_work *work, int fd, uint64_t offset, uint64_t bytes, cr_error *error) {
    static const uint8_t nowhere;
    unread *u = malloc(sizeof *u);
    if (u == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    u->fd = fd;
    u->offset = offset;
    u->end = offset + bytes;
    atomic_init(&u->asked, 0);
    atomic_init(&u->silent, cr_ahead_passes_by(fd));
    cr_queue_set_total(work->line->queue, work->job, bytes);
    cr_work_publish_by(work, &u->segment, &nowhere, bytes, release, fetch);
    cr_work_end_feed(work);
    return CR_OK;
}
