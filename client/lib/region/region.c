/* region: memory that the daemon keeps open for this connection: registering it, naming it in calls, letting it go.
 *
 * A region is registered by a call of its own, which goes out before the first reduction that names it, and again before the
 * first one on every connection that was made anew; nothing waits for its answer. The library keeps what it needs to do so (a
 * duplicate of the descriptor).
 *
 * Thread: the one that uses the connection. Owner: the program until cured_region_free; calls that name it keep it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/internal.h"

enum {
    REGISTER_MS = 60000, /* for the daemon to open the memory: its file system may hang */
    PIECES_BYTES = 1024, /* the longest CALL of several regions */
};

struct cured_region {
    cured_conn *conn; /* NULL once the connection is closed */
    cr_list all;      /* in conn->regions */
    uint32_t uses;    /* the program, and calls that name it and are not done */
    cr_wire_region source;
    int fd;              /* -1: none is needed */
    uint64_t epoch;      /* of the connection it was registered on; 0: none */
    uint64_t ended;      /* the same for Unregister */
    cured_call *opening; /* the last Register call; NULL: there was none */
    uint64_t bytes;
    bool read_only; /* says the daemon, though it was to be writable */
    void *memory;   /* in this process: the mapping of one that nobody can cut; NULL: none */
    bool closed;    /* by the program: no more calls */
};

/* Whether the Register call of this connection failed. */
static bool failed(const cured_region *region) {
    const cured_call *call = region->opening;
    return call == NULL || (call->state == CALL_DONE && call->error.code != CR_OK);
}

static bool is_registered(const cured_region *region) {
    return region->conn != NULL && region->epoch == region->conn->epoch && !failed(region);
}

cr_status cr_cl_region_ensure(cured_region *region, cr_error *error) {
    cured_conn *conn = region->conn;
    if (is_registered(region)) return CR_OK;
    if (conn == NULL) return cr_fail(error, CR_FAILED_PRECONDITION, "the region's connection is closed");
    int copy = region->fd >= 0 ? fcntl(region->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (region->fd >= 0 && copy < 0)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot duplicate the region's descriptor: %s", strerror(errno));
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = 0; /* the calls that name it are tried again, and register it anew */
    o.timeout_ms = REGISTER_MS;
    cured_call *call = cr_cl_new_call(conn, KIND_REGISTER, 0, &o, error);
    if (call == NULL) {
        if (copy >= 0) close(copy);
        return error->code;
    }
    cured_call_free(region->opening);
    region->opening = call;
    region->epoch = conn->epoch;
    call->fd = copy;
    call->request.kind = CR_CALL_REGISTER;
    call->request.region = region->source;
    call->region = region; /* not counted: the region owns this call */
    cr_cl_call_submit(call);
    return CR_OK;
}

static bool on_device(const cured_region *region) {
    return region->source.kind == CR_SHARED_CUDA_IPC || region->source.kind == CR_SHARED_CUDA_DESCRIPTOR;
}

cr_status cr_cl_region_keep(cured_region *region, const cured_conn *conn, uint32_t index, bool has_results,
                            cr_error *error) {
    if (region->conn == NULL || region->closed)
        return cr_fail(error, CR_FAILED_PRECONDITION, "outputs[%u]: the region, or its connection, is closed", index);
    if (region->conn != conn)
        return cr_fail(error, CR_INVALID_ARGUMENT, "outputs[%u]: its region belongs to another connection", index);
    if (!region->source.writable)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "outputs[%u]: its region is only read; make it by cured_region_fd_writable() or "
                       "cured_region_cuda_pointer_writable()",
                       index);
    if (has_results && on_device(region))
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "outputs[%u]: its region is a GPU's memory, which the library cannot fill; leave out results",
                       index);
    region->uses++;
    return CR_OK;
}

uint64_t cr_cl_region_id(const cured_region *region) { return region->source.id; }

int cr_cl_region_descriptor(const cured_region *region) { return region->fd; }

cr_cl_region_state cr_cl_region_is(const cured_region *region, const cr_error **why) {
    static const cr_error gone = {CR_UNAVAILABLE, "the region is not registered on this connection"};
    static const cr_error unwatched = {CR_FAILED_PRECONDITION,
                                       "this daemon may not use userfaultfd, so it writes into no shared memory; give "
                                       "results, too"};
    *why = region->opening != NULL && failed(region) ? &region->opening->error : &gone;
    if (!is_registered(region)) return CR_REGION_FAILED;
    if (region->opening->state != CALL_DONE) return CR_REGION_OPENING;
    *why = &unwatched;
    return region->read_only ? CR_REGION_FAILED : CR_REGION_OPEN;
}

void cr_cl_region_registered(cured_call *call, const cr_wire_registered *r) {
    if (call->region == NULL) return;
    call->region->bytes = r->bytes;
    call->region->read_only = r->read_only;
}

void cr_cl_region_opened(cured_call *call, int fd, void *memory, uint64_t bytes) {
    cured_region *region = call->region;
    if (region->fd >= 0 && region->fd != fd) close(region->fd);
    if (region->memory != NULL) munmap(region->memory, (size_t)region->bytes);
    region->fd = fd;
    region->memory = memory;
    region->bytes = bytes;
}

int cr_cl_region_view(const cured_call *call, const uint8_t **memory, uint64_t *bytes) {
    const cured_region *region = call->region;
    *memory = region->memory;
    *bytes = region->bytes;
    return region->fd;
}

/* What a call of several regions keeps. */
struct cr_pieces {
    cured_region *regions[CR_CALL_MAX_PIECES];
    cr_wire_piece wire[CR_CALL_MAX_PIECES];
    size_t count;
};

static size_t regions_of(const cured_call *call, cured_region *const **regions) {
    *regions = call->pieces != NULL ? call->pieces->regions : &call->region;
    return call->pieces != NULL ? call->pieces->count : 1;
}

bool cr_cl_regions_writable(const cured_call *call) {
    cured_region *const *regions;
    if (call->kind == KIND_REGISTER || call->kind == KIND_UNREGISTER) return call->request.region.writable;
    const size_t count = call->kind == KIND_REGION ? regions_of(call, &regions) : 0;
    for (size_t i = 0; i < count; i++)
        if (regions[i]->source.writable) return true;
    return false;
}

const cr_error *cr_cl_region_error(const cured_call *call) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    for (size_t i = 0; i < count; i++)
        if (regions[i]->opening != NULL && failed(regions[i])) return &regions[i]->opening->error;
    return NULL;
}

cr_status cr_cl_regions_ensure(cured_call *call, cr_error *error) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    for (size_t i = 0; i < count; i++)
        if (cr_cl_region_ensure(regions[i], error) != CR_OK) return error->code;
    return CR_OK;
}

void cr_cl_regions_release(cured_call *call) {
    cured_region *const *regions;
    const size_t count = regions_of(call, &regions);
    for (size_t i = 0; i < count; i++) cr_cl_region_release(regions[i]);
}

size_t cr_cl_regions_pack(cured_call *call) {
    return cr_wire_pack_pieces(&call->request, call->pieces->wire, call->owned, PIECES_BYTES);
}

/* A call that tells the daemon; without a daemon that knows the region it is done at once. */
static cured_call *start_unregister(cured_region *region, const cured_options *o, cr_error *error) {
    cured_call *call = cr_cl_new_call(region->conn, KIND_UNREGISTER, 0, o, error);
    if (call == NULL) return NULL;
    call->retries_left = 0; /* a connection that is lost takes the region along */
    call->request.kind = CR_CALL_UNREGISTER;
    call->request.region.id = region->source.id;
    call->request.region.writable = region->source.writable;
    if (is_registered(region) && region->ended != region->epoch)
        cr_cl_call_submit(call);
    else
        cr_cl_call_finish(call, CR_OK, 0, "");
    region->ended = region->epoch;
    return call;
}

void cr_cl_region_release(cured_region *region) {
    if (--region->uses != 0) return;
    cr_error ignored;
    cured_options o = CURED_OPTIONS_INIT;
    if (is_registered(region) && region->ended != region->epoch) {
        cured_call *call = start_unregister(region, &o, &ignored);
        if (call != NULL) cr_cl_call_detach(call);
    }
    cr_list_remove(&region->all);
    if (region->opening != NULL) {
        region->opening->region = NULL;
        cr_cl_call_detach(region->opening);
    }
    if (region->memory != NULL) munmap(region->memory, (size_t)region->bytes);
    if (region->fd >= 0) close(region->fd);
    free(region);
}

void cr_cl_regions_close(cured_conn *conn) {
    while (!cr_list_empty(&conn->regions)) {
        cured_region *region = cr_container(conn->regions.next, cured_region, all);
        region->conn = NULL;
        cr_list_remove(&region->all);
    }
}

/* fd is taken over. */
static cured_status new_region(cured_conn *conn, const cr_wire_region *source, int fd, cured_region **out,
                               cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    cured_region *region = calloc(1, sizeof *region);
    if (region == NULL) {
        if (fd >= 0) close(fd);
        return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a region");
    }
    region->conn = conn;
    region->uses = 1;
    region->source = *source;
    region->source.id = ++conn->last_region;
    region->fd = fd;
    cr_list_append(&conn->regions, &region->all);
    if (cr_cl_region_ensure(region, &e) != CR_OK) {
        cr_cl_region_release(region);
        return cr_cl_give(error, &e, 0);
    }
    *out = region;
    return cr_cl_give(error, &e, 0);
}

static cured_status check_unix(const cured_conn *conn, cured_error *error) {
    if (!conn->tcp) return CURED_OK;
    return cr_cl_fail(error, CR_FAILED_PRECONDITION, "memory can be shared over a Unix socket only");
}

static cured_status with_descriptor(cured_conn *conn, const cr_wire_region *source, int fd, cured_region **region,
                                    cured_error *error) {
    *region = NULL;
    cured_status status = check_unix(conn, error);
    if (status != CURED_OK) return status;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return cr_cl_fail(error, errno == EBADF ? CR_INVALID_ARGUMENT : CR_RESOURCE_EXHAUSTED,
                          "cannot duplicate descriptor %d: %s", fd, strerror(errno));
    return new_region(conn, source, copy, region, error);
}

cured_status cured_region_fd(cured_conn *conn, int fd, cured_region **region, cured_error *error) {
    cr_wire_region source = {.kind = CR_SHARED_DESCRIPTOR};
    return with_descriptor(conn, &source, fd, region, error);
}

cured_status cured_region_fd_writable(cured_conn *conn, int fd, cured_region **region, cured_error *error) {
    cr_wire_region source = {.kind = CR_SHARED_DESCRIPTOR, .writable = true};
    return with_descriptor(conn, &source, fd, region, error);
}

cured_status cured_region_shm(cured_conn *conn, const char *name, cured_region **region, cured_error *error) {
    cr_wire_region source = {.kind = CR_SHARED_NAME};
    *region = NULL;
    cured_status status = check_unix(conn, error);
    if (status != CURED_OK) return status;
    size_t len = strlen(name);
    if (len < 2 || len > CR_SHM_NAME_MAX_BYTES || name[0] != '/' || strchr(name + 1, '/') != NULL)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "name must be \"/\" and 1 to %d bytes without another \"/\"",
                          CR_SHM_NAME_MAX_BYTES - 1);
    memcpy(source.name, name, len + 1);
    return new_region(conn, &source, -1, region, error);
}

cured_status cr_cl_region_cuda(cured_conn *conn, const cured_cuda_memory *memory, bool writable, cured_region **region,
                               cured_error *error) {
    cr_wire_region source = {.offset = memory->offset, .bytes = memory->bytes, .writable = writable};
    *region = NULL;
    if (memory->handle == NULL && memory->fd < 0)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "memory has neither a handle nor a descriptor");
    if (memory->bytes == 0 || memory->offset > UINT64_MAX - memory->bytes)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "bytes is %llu from offset %llu, must be 1 to 2^64",
                          (unsigned long long)memory->bytes, (unsigned long long)memory->offset);
    cured_status status = check_unix(conn, error);
    if (status != CURED_OK) return status;
    source.kind = memory->fd >= 0 ? CR_SHARED_CUDA_DESCRIPTOR : CR_SHARED_CUDA_IPC;
    memcpy(source.device, memory->device, sizeof source.device);
    source.has_handle = memory->handle != NULL;
    source.has_event = memory->event != NULL;
    if (memory->handle != NULL) memcpy(source.handle, memory->handle, sizeof source.handle);
    if (memory->event != NULL) memcpy(source.event, memory->event, sizeof source.event);
    if (memory->fd >= 0) return with_descriptor(conn, &source, memory->fd, region, error);
    return new_region(conn, &source, -1, region, error);
}

cured_status cured_region_cuda(cured_conn *conn, const cured_cuda_memory *memory, cured_region **region,
                               cured_error *error) {
    return cr_cl_region_cuda(conn, memory, false, region, error);
}

cured_status cured_region_cuda_writable(cured_conn *conn, const cured_cuda_memory *memory, cured_region **region,
                                        cured_error *error) {
    return cr_cl_region_cuda(conn, memory, true, region, error);
}

cured_status cured_region_wait(cured_region *region, cured_error *error) {
    cr_error e = {CR_OK, ""};
    if (region->conn == NULL || region->closed)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
    if (region->conn->busy)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "cured_region_wait was called from inside a callback");
    cr_cl_fork_check(region->conn);
    if (region->epoch != region->conn->epoch && cr_cl_region_ensure(region, &e) != CR_OK)
        return cr_cl_give(error, &e, 0);
    return cured_wait(region->opening, error);
}

uint64_t cured_region_bytes(const cured_region *region) { return region->bytes; }

cured_status cured_region_reduce(cured_region *region, cured_dtype dtype, const cured_op *ops, size_t op_count,
                                 uint64_t offset, uint64_t count, const cured_options *options, cured_call **out,
                                 cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    if (region->conn == NULL || region->closed)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
    cured_call *call = cr_cl_new_reduce(region->conn, KIND_REGION, dtype, ops, op_count, count, options, &e);
    if (call == NULL) return cr_cl_give(error, &e, 0);
    cr_wire_reduce *r = &call->request.reduce;
    r->source = CR_SOURCE_REGION;
    r->region = region->source.id;
    r->offset = offset;
    r->length_known = count != CURED_TO_END;
    r->length = count != CURED_TO_END ? count : 0;
    call->region = region;
    region->uses++;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

/* The pieces as the wire has them. *elements: of all, CURED_TO_END where that is not known. */
static cr_status take_pieces(const cured_piece *pieces, size_t count, size_t size, struct cr_pieces *out,
                             uint64_t *elements, cr_error *error) {
    const cured_conn *conn = pieces[0].region->conn;
    *elements = 0;
    for (size_t i = 0; i < count; i++) {
        cured_region *region = pieces[i].region;
        uint64_t length = pieces[i].count;
        if (region->conn == NULL || region->closed)
            return cr_fail(error, CR_FAILED_PRECONDITION, "pieces[%zu]: the region, or its connection, is closed", i);
        if (region->conn != conn)
            return cr_fail(error, CR_INVALID_ARGUMENT, "pieces[%zu]: its region belongs to another connection", i);
        const bool open = region->bytes != 0 && !(failed(region)) && region->epoch == conn->epoch;
        if (length == CURED_TO_END && i + 1 < count) {
            if (!open)
                return cr_fail(error, CR_FAILED_PRECONDITION,
                               "pieces[%zu] goes to the end of a region that is not open: give its count, or call "
                               "cured_region_wait() first",
                               i);
            if (pieces[i].offset > region->bytes || (region->bytes - pieces[i].offset) % size != 0)
                return cr_fail(error, CR_INVALID_ARGUMENT,
                               "pieces[%zu]: from byte %llu on the region has no whole elements of %zu bytes", i,
                               (unsigned long long)pieces[i].offset, size);
            length = (region->bytes - pieces[i].offset) / size;
        }
        out->regions[i] = region;
        out->wire[i] = (cr_wire_piece){region->source.id, pieces[i].offset, length == CURED_TO_END,
                                       length == CURED_TO_END ? 0 : length};
        if (length == CURED_TO_END || length > (uint64_t)INT64_MAX - *elements)
            *elements = CURED_TO_END;
        else
            *elements += length;
    }
    out->count = count;
    return CR_OK;
}

cured_status cured_reduce_regions(const cured_piece *pieces, size_t count, cured_dtype dtype, const cured_op *ops,
                                  size_t op_count, const cured_options *options, cured_call **out, cured_error *error) {
    cr_error e = {CR_OK, ""};
    uint64_t elements;
    *out = NULL;
    const size_t size = cured_dtype_size(dtype);
    if (count < 1 || count > CR_CALL_MAX_PIECES)
        return cr_cl_fail(error, CR_INVALID_ARGUMENT, "count is %zu, must be 1 to %d pieces", count,
                          CR_CALL_MAX_PIECES);
    struct cr_pieces *taken = calloc(1, sizeof *taken);
    void *packed = malloc(PIECES_BYTES);
    cured_call *call = NULL;
    if (taken == NULL || packed == NULL)
        cr_fail(&e, CR_RESOURCE_EXHAUSTED, "no memory for %zu pieces", count);
    else if (take_pieces(pieces, count, size != 0 ? size : 1, taken, &elements, &e) == CR_OK)
        call = cr_cl_new_reduce(pieces[0].region->conn, KIND_REGION, dtype, ops, op_count, elements, options, &e);
    if (call == NULL) {
        free(taken);
        free(packed);
        return cr_cl_give(error, &e, 0);
    }
    cr_wire_reduce *r = &call->request.reduce;
    r->source = CR_SOURCE_REGIONS;
    r->length_known = false;
    r->length = count;
    call->pieces = taken;
    call->owned = packed;
    call->region = taken->regions[0];
    for (size_t i = 0; i < count; i++) taken->regions[i]->uses++;
    cr_cl_call_submit(call);
    *out = call;
    return cr_cl_give(error, &e, 0);
}

cured_status cured_region_unregister(cured_region *region, const cured_options *options, cured_call **out,
                                     cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *out = NULL;
    if (region->conn == NULL || region->closed)
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
    if (cr_cl_take_options(options, &o, &e) == CR_OK) *out = start_unregister(region, &o, &e);
    if (*out != NULL) region->closed = true;
    return cr_cl_give(error, &e, 0);
}

void cured_region_free(cured_region *region) {
    if (region == NULL) return;
    region->closed = true;
    cr_cl_region_release(region);
}
