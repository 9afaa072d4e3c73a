/* input: where the elements of a call come from: memory as it is, a file that is read, a stream that is copied; and the regions
 * of this process. Files are read and never mapped, because a mapping of a file that is cut ends the process. Only memory that
 * nobody can cut (F_SEAL_SHRINK, no holes) is mapped.
 *
 * Thread: the one that uses the connection; pieces come back on any. Owner: the local owns all pieces. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/range.h"
#include "client/lib/call/gather.h"
#include "client/lib/embedded/embedded.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#ifndef F_SEAL_SHRINK
#define F_SEAL_SHRINK 2
#endif

enum {
    PIECES_ALONE = 2,
    PIECES_BESIDE_THREADS = 2,
    BLOCK_BYTES = 4096, /* of a disk whose kernel does not say them */
    BLOCKS_BYTES = 128 * 1024,
};

/* The size of what a descriptor names. */
static cr_status inspect(int fd, uint64_t *bytes, cr_error *error) {
    struct stat st;
    char byte;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &st) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: cannot inspect the file: %s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: a regular file or memfd is needed; stream the others");
    if (flags & O_PATH || ((flags & O_ACCMODE) != O_RDONLY && (flags & O_ACCMODE) != O_RDWR))
        return cr_fail(error, CR_INVALID_ARGUMENT, "descriptor: it was not opened for reading");
    if (st.st_size == 0 && pread(fd, &byte, 1, 0) > 0)
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "descriptor: the file has bytes, but a size of 0 (as in /proc), so its end is unknown; stream it");
    *bytes = (uint64_t)st.st_size;
    return CR_OK;
}

/* A mapping of memory that is whole and stays so; NULL: it is read. */
static void *map_sealed(int fd, uint64_t bytes) {
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (bytes == 0 || bytes > PTRDIFF_MAX || seals < 0 || (seals & F_SEAL_SHRINK) == 0) return NULL;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_blocks * 512 < bytes) return NULL;
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

cr_status cr_local_register(cured_call *call, cr_error *error) {
    const cr_wire_region *source = &call->request.region;
    uint64_t bytes = 0;
    if (source->kind == CR_SHARED_CUDA_IPC || source->kind == CR_SHARED_CUDA_DESCRIPTOR)
        return cr_fail(error, CR_UNIMPLEMENTED,
                       "region: calls in this process (embedded:) read no CUDA memory; start a daemon for it: cured");
    int fd = call->fd;
    call->fd = -1;
    if (fd < 0) fd = shm_open(source->name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return cr_fail(error, errno == ENOENT ? CR_NOT_FOUND : CR_PERMISSION_DENIED,
                       "name: cannot open the shared memory: %s", strerror(errno));
    cr_status status = inspect(fd, &bytes, error);
    if (status == CR_OK && source->writable) status = cr_local_writable(fd, error);
    if (status == CR_OK)
        cr_cl_region_opened(call->region, fd, map_sealed(fd, bytes), bytes);
    else
        close(fd);
    return status;
}

/* What says how many elements there must be. */
static const char *expects(const cured_call *call) {
    return call->geometry == CR_GEOMETRY_KEYS ? "keys: the input of their rows" : "axis: its shape";
}

cr_status cr_local_input_of(cured_call *call, cr_local_input *input, cr_error *error) {
    const cr_wire_reduce *r = &call->request.reduce;
    uint64_t size;
    *input = (cr_local_input){.memory = NULL, .fd = call->fd, .bytes = UINT64_MAX};
    if (call->kind == KIND_BUFFER) {
        input->memory = call->data_bytes != 0 ? call->data : (const uint8_t *)"";
        input->bytes = call->data_bytes;
    }
    if (call->kind == KIND_STREAM && r->length_known) input->bytes = r->length;
    if (call->kind != KIND_FD && call->kind != KIND_REGION) return CR_OK;
    if (call->kind == KIND_FD) {
        cr_status status = inspect(call->fd, &size, error);
        if (status != CR_OK) return status;
    } else {
        const cr_error *why = cr_cl_region_error(call->region);
        if (why != NULL) {
            *error = *why;
            return error->code;
        }
        input->fd = cr_cl_region_view(call->region, &input->memory, &size);
    }
    const cr_range_request asked = {.of = call->kind == KIND_FD ? "descriptor" : "region",
                                    .dtype = cr_dtype_name((cr_dtype)r->dtype),
                                    .element = cr_dtype_size((cr_dtype)r->dtype),
                                    .offset = r->offset,
                                    .to_end = !r->length_known,
                                    .count = r->length,
                                    .expects = call->elements != UINT64_MAX ? expects(call) : NULL,
                                    .expected = call->elements};
    input->offset = r->offset;
    cr_status status = cr_range_measure(&asked, size, &input->bytes, error);
    if (status == CR_OK && input->memory != NULL) input->memory += r->offset;
    return status;
}

/* ---- pieces ---- */

/* Pieces that are folded or spare. What stands still half full is beside these, or it would hold up other calls. */
static uint32_t most_pieces(const cr_local *local) {
    return local->pool != NULL ? local->threads + PIECES_BESIDE_THREADS : PIECES_ALONE;
}

static void piece_give(cr_piece *piece) {
    cr_local *local = piece->local;
    pthread_mutex_lock(&local->mutex);
    bool keep = local->pieces <= most_pieces(local);
    if (keep)
        cr_list_append(&local->spare, &piece->segment.link);
    else
        local->pieces--;
    pthread_mutex_unlock(&local->mutex);
    if (!keep) free(piece);
}

static void piece_release(cr_segment *segment) {
    cr_piece *piece = cr_container(segment, cr_piece, segment);
    cr_local *local = piece->local;
    piece_give(piece);
    cr_local_wake(local);
}

static cr_piece *piece_new(cr_local *local) {
    size_t head = (sizeof(cr_piece) + CR_LOCAL_ALIGNMENT - 1) / CR_LOCAL_ALIGNMENT * CR_LOCAL_ALIGNMENT;
    cr_piece *piece = aligned_alloc(CR_LOCAL_ALIGNMENT, head + CR_LOCAL_PIECE_BYTES);
    if (piece == NULL) return NULL;
    piece->local = local;
    piece->data = (uint8_t *)piece + head;
    return piece;
}

/* NULL: all that there may be are full. *lacking: there is no memory even for the first. */
static cr_piece *piece_take(cr_local *local, bool *lacking) {
    uint32_t most = most_pieces(local) + local->filling;
    *lacking = false;
    pthread_mutex_lock(&local->mutex);
    cr_list *node = cr_list_pop(&local->spare);
    cr_piece *piece = node != NULL ? cr_container(node, cr_piece, segment.link) : NULL;
    if (piece == NULL && local->pieces < most) {
        piece = piece_new(local);
        if (piece != NULL) local->pieces++;
        *lacking = piece == NULL && local->pieces == 0;
    }
    pthread_mutex_unlock(&local->mutex);
    if (piece == NULL) return NULL;
    piece->used = 0;
    local->filling++;
    return piece;
}

void cr_local_free_pieces(cr_local *local) {
    for (cr_list *node; (node = cr_list_pop(&local->spare)) != NULL;) free(cr_container(node, cr_piece, segment.link));
}

/* ---- feeding ---- */

typedef struct borrowed {
    cr_segment segment;
} borrowed;

static void borrowed_release(cr_segment *segment) { free(cr_container(segment, borrowed, segment)); }

void cr_work_publish_by(cr_work *work, cr_segment *segment, const void *data, uint64_t bytes,
                        void (*release)(cr_segment *segment), cr_local_fetch *fetch) {
    cr_queue *queue = work->line->queue;
    cr_segment_init(segment, work->job, data, work->index);
    segment->aligned = true;
    segment->release = release;
    segment->fetch = fetch;
    work->index += bytes / work->job->element;
    cr_queue_add(queue, segment);
    cr_queue_ready(queue, segment, bytes, true);
}

void cr_work_publish(cr_work *work, cr_segment *segment, const void *data, uint64_t bytes,
                     void (*release)(cr_segment *segment)) {
    cr_work_publish_by(work, segment, data, bytes, release, NULL);
}

cr_status cr_work_offer(cr_work *work, const uint8_t *data, uint64_t bytes, cr_error *error) {
    borrowed *b = bytes != 0 ? malloc(sizeof *b) : NULL;
    if (b == NULL && bytes != 0) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a call");
    cr_queue_set_total(work->line->queue, work->job, bytes);
    if (b != NULL) cr_work_publish(work, &b->segment, data, bytes, borrowed_release);
    cr_work_end_feed(work);
    return CR_OK;
}

void cr_work_end_feed(cr_work *work) {
    cr_work_forget_kept(work);
    if (work->piece != NULL) {
        work->local->filling--;
        piece_give(work->piece);
    }
    work->piece = NULL;
    if (work->feeding) cr_queue_unhold(work->line->queue, work->job);
    work->feeding = false;
}

void cr_work_feed_fails(cr_work *work, const cr_error *error) {
    cr_queue_stop(work->line->queue, work->job, error);
    cr_work_end_feed(work);
}

static void publish_piece(cr_work *work) {
    cr_piece *piece = work->piece;
    work->piece = NULL;
    work->local->filling--;
    cr_work_publish(work, &piece->segment, piece->data, piece->used, piece_release);
}

/* Memory that a descriptor with O_DIRECT reads into, by whole blocks alone; memory NULL: not made as yet. */
typedef struct blocks {
    uint8_t *memory;
    uint64_t block; /* bytes, as the file system wants places, lengths and memory to be multiples of */
} blocks;

/* What the kernel says of the file, from Linux 6.1 on; older headers do not name these two words of statx. */
static uint64_t block_of(int fd) {
    enum { DIOALIGN = 0x2000, MEMORY_ALIGN = 38, OFFSET_ALIGN = 39 };
    union {
        struct statx named;
        uint32_t words[sizeof(struct statx) / 4];
    } st;
    if (statx(fd, "", AT_EMPTY_PATH, DIOALIGN, &st.named) != 0 || (st.named.stx_mask & DIOALIGN) == 0)
        return BLOCK_BYTES;
    const uint32_t memory = st.words[MEMORY_ALIGN], offset = st.words[OFFSET_ALIGN];
    const uint32_t most = memory > offset ? memory : offset;
    return most > BLOCK_BYTES && most <= BLOCKS_BYTES && (most & (most - 1)) == 0 ? most : BLOCK_BYTES;
}

/* As pread of up to BLOCKS_BYTES. */
static ssize_t read_blocks(blocks *b, int fd, uint8_t *to, uint64_t bytes, uint64_t offset) {
    if (b->memory == NULL) {
        b->block = block_of(fd);
        b->memory = aligned_alloc(b->block, BLOCKS_BYTES);
    }
    if (b->memory == NULL) {
        errno = ENOMEM;
        return -1;
    }
    const uint64_t before = offset % b->block;
    const ssize_t n = pread(fd, b->memory, BLOCKS_BYTES, (off_t)(offset - before));
    uint64_t got = n > (ssize_t)before ? (uint64_t)n - before : 0;
    if (got > bytes) got = bytes;
    memcpy(to, b->memory + before, (size_t)got);
    return n < 0 ? -1 : (ssize_t)got;
}

static cr_status read_all(blocks *b, int fd, uint8_t *to, uint64_t bytes, uint64_t offset, cr_error *error) {
    while (bytes != 0) {
        ssize_t n = b->memory == NULL ? pread(fd, to, (size_t)bytes, (off_t)offset) : -1;
        if (b->memory != NULL || (n < 0 && errno == EINVAL && cr_ahead_passes_by(fd)))
            n = read_blocks(b, fd, to, bytes, offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cr_fail(error, CR_DATA_LOSS, "descriptor: cannot read the file: %s", strerror(errno));
        if (n == 0)
            return cr_fail(error, CR_DATA_LOSS,
                           "descriptor: the file ended at %llu while it was read: it was cut, or its size says nothing "
                           "of its end (as in /sys); stream it",
                           (unsigned long long)offset);
        to += n;
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return CR_OK;
}

cr_status cr_local_read(int fd, uint8_t *to, uint64_t bytes, uint64_t offset, cr_error *error) {
    blocks own = {NULL, 0};
    const cr_status status = read_all(&own, fd, to, bytes, offset, error);
    free(own.memory);
    return status;
}

/* Whole units: only there a job may be cut. */
static uint64_t piece_room(const cr_work *work) {
    uint64_t unit = cr_job_unit(work->job);
    return CR_LOCAL_PIECE_BYTES / unit * unit;
}

/* bytes of the input, in the job's order, from where they lie. */
cr_status cr_work_read(const cr_work *work, uint8_t *to, uint64_t bytes, cr_error *error) {
    cr_status status = CR_OK;
    for (uint64_t at = work->fed, end = at + bytes; status == CR_OK && at < end;) {
        uint64_t offset, now = cr_job_axis_run(work->job, at, &offset);
        if (now > end - at) now = end - at;
        if (work->memory != NULL)
            memcpy(to, work->memory + offset, now);
        else
            status = cr_local_read(work->fd, to, now, work->offset + offset, error);
        to += now;
        at += now;
    }
    return status;
}

/* What follows in a file that is read in its own order, as far as nobody waits for a disk: how many bytes. */
static uint64_t read_there(cr_work *work, uint8_t *to, uint64_t bytes) {
    if (work->memory != NULL || cr_job_axis_in_strips(work->job)) return 0;
    const uint64_t offset = work->offset + work->fed;
    return cr_ahead_read(&work->ahead, work->fd, to, (size_t)bytes, offset, offset + work->left);
}

static void feed_file(cr_work *work) {
    cr_error error;
    cr_piece *piece = work->piece;
    piece->used = work->left < piece_room(work) ? work->left : piece_room(work);
    const uint64_t there = read_there(work, piece->data, piece->used), missing = piece->used - there;
    work->fed += there;
    work->left -= there;
    if (cr_work_read(work, piece->data + there, missing, &error) != CR_OK) {
        cr_work_feed_fails(work, &error);
        return;
    }
    work->fed += missing;
    work->left -= missing;
    publish_piece(work);
    if (work->left == 0) cr_work_end_feed(work);
}

/* At the end of a stream: whether it was whole. */
static cr_status check_end(const cr_work *work, cr_error *error) {
    typedef unsigned long long ull;
    const cr_wire_reduce *r = &work->call->request.reduce;
    const uint64_t elements = work->call->elements;
    size_t size = work->job->element;
    if (elements != UINT64_MAX && work->received != elements * size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s has %llu elements of %zu bytes, %llu bytes came",
                       expects(work->call), (ull)elements, size, (ull)work->received);
    if (work->call->geometry == CR_GEOMETRY_OFFSETS && work->job->axis->till > work->received / size)
        return cr_fail(error, CR_INVALID_ARGUMENT, "offsets: the last is %llu, and %llu elements came",
                       (ull)work->job->axis->till, (ull)(work->received / size));
    if (work->received % size != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "input: %llu bytes are not a multiple of %zu, the size of %s",
                       (ull)work->received, size, cr_dtype_name((cr_dtype)r->dtype));
    return CR_OK;
}

bool cr_work_stream_ended(const cured_call *call) {
    return call->source_len == 0 && (call->end_wanted || call->handed == call->declared);
}

void cr_work_end_stream(cr_work *work) {
    cr_error error;
    if (check_end(work, &error) != CR_OK) {
        cr_work_feed_fails(work, &error);
        return;
    }
    cr_work_end_kept(work);
    if (work->piece != NULL && work->piece->used != 0) publish_piece(work);
    cr_work_end_feed(work);
}

bool cr_work_too_many_came(cr_work *work) {
    const uint64_t elements = work->call->elements;
    if (elements == UINT64_MAX || work->received <= elements * work->job->element) return false;
    cr_error error;
    cr_fail(&error, CR_INVALID_ARGUMENT, "%s has %llu elements, more bytes came than those take", expects(work->call),
            (unsigned long long)elements);
    cr_work_feed_fails(work, &error);
    return true;
}

/* What was handed over, or the next of what is gathered: how many bytes. */
static size_t take_bytes(cured_call *call, uint8_t *to, uint64_t room) {
    if (call->gather != NULL) return cr_cl_gather_into(call, to, room);
    const size_t n = call->source_len < room ? call->source_len : (size_t)room;
    if (n != 0) memcpy(to, call->source, n); /* of no bytes the caller may have given NULL */
    call->source += n;
    call->source_len -= n;
    return n;
}

static void feed_stream(cr_work *work) {
    cured_call *call = work->call;
    cr_piece *piece = work->piece;
    const size_t n = take_bytes(call, piece->data + piece->used, piece_room(work) - piece->used);
    piece->used += n;
    work->received += n;
    if (cr_work_too_many_came(work)) return;
    if (piece->used == piece_room(work)) publish_piece(work);
    if (cr_work_stream_ended(call)) cr_work_end_stream(work);
}

bool cr_work_feed(cr_work *work) {
    cured_call *call = work->call;
    bool stream = call != NULL && call->kind == KIND_STREAM, lacking = false;
    if (call == NULL || !work->feeding || work->done) return false;
    if (cr_queue_stopped(work->line->queue, work->job)) {
        cr_work_end_feed(work);
        return true;
    }
    if (stream && cr_work_keeps(work)) cr_cl_gather_next(call);
    if (stream && call->source_len == 0 && !cr_cl_gather_left(call)) {
        if (!cr_work_stream_ended(call)) return false;
        cr_work_end_stream(work);
        return true;
    }
    if (cr_work_keeps(work)) return cr_work_keep(work);
    if (work->piece == NULL) work->piece = piece_take(work->local, &lacking);
    if (lacking) {
        cr_error error;
        cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory to read the input into");
        cr_work_feed_fails(work, &error);
        return true;
    }
    if (work->piece == NULL) return false;
    if (stream)
        feed_stream(work);
    else
        feed_file(work);
    return true;
}
