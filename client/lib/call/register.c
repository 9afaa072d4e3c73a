/* register: the calls that tell the daemon of a region and of its end, and the functions that make regions. See regions.h.
 *
 * Thread: the one that uses the connection. Owner: a region owns its Register call; nobody waits for an Unregister call but the program,
 * where it has asked for it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/call/call.h"
#include "client/lib/call/regions.h"
#include "client/lib/error.h"
#include "client/lib/options.h"
#include "client/lib/region/cuda.h"

enum { REGISTER_MS = 60000 }; /* for the daemon to open the memory: its file system may hang */

cr_cl_calls *cr_cl_region_calls(const cured_region *region) {
    return cr_container(cr_cl_region_home(region), cr_cl_calls, regions);
}

cr_status cr_cl_region_ensure(cured_region *region, cr_error *error) {
    if (cr_cl_region_registered(region)) return CR_OK;
    if (cr_cl_region_home(region) == NULL)
        return cr_fail(error, CR_FAILED_PRECONDITION, "the region's connection is closed");
    const int fd = cr_cl_region_descriptor(region), copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd >= 0 && copy < 0)
        return cr_fail(error, CR_RESOURCE_EXHAUSTED, "cannot duplicate the region's descriptor: %s", strerror(errno));
    cured_options o = CURED_OPTIONS_INIT;
    o.retries = 0; /* the calls that name it are tried again, and register it anew */
    o.timeout_ms = REGISTER_MS;
    cured_call *call = cr_cl_new_call(cr_cl_region_calls(region), KIND_REGISTER, 0, &o, error);
    if (call == NULL) {
        if (copy >= 0) close(copy);
        return error->code;
    }
    cured_call_free(cr_cl_region_opening(region));
    cr_cl_region_opens(region, call);
    call->fd = copy;
    call->request.kind = CR_CALL_REGISTER;
    call->request.region = *cr_cl_region_source(region);
    call->region = region; /* not counted: the region owns this call */
    cr_cl_call_submit(call);
    return CR_OK;
}

/* A call that tells the daemon; without a daemon that knows the region it is done at once. */
static cured_call *start_unregister(cured_region *region, const cured_options *o, cr_error *error) {
    const cr_wire_region *source = cr_cl_region_source(region);
    cured_call *call = cr_cl_new_call(cr_cl_region_calls(region), KIND_UNREGISTER, 0, o, error);
    if (call == NULL) return NULL;
    call->retries_left = 0; /* a connection that is lost takes the region along */
    call->request.kind = CR_CALL_UNREGISTER;
    call->request.region.id = source->id;
    call->request.region.writable = source->writable;
    if (cr_cl_region_known(region))
        cr_cl_call_submit(call);
    else
        cr_cl_call_finish(call, CR_OK, 0, "");
    cr_cl_region_ends(region);
    return call;
}

void cr_cl_region_release(cured_region *region) {
    if (!cr_cl_region_leave(region)) return;
    cr_error ignored;
    cured_options o = CURED_OPTIONS_INIT;
    cured_call *opening = cr_cl_region_opening(region);
    if (cr_cl_region_known(region)) {
        cured_call *call = start_unregister(region, &o, &ignored);
        if (call != NULL) cr_cl_call_detach(call);
    }
    if (opening != NULL) {
        opening->region = NULL;
        cr_cl_call_detach(opening);
    }
    cr_cl_region_free(region);
}

/* ---- for programs ---- */

/* fd is taken over. */
static cured_status new_region(cured_conn *conn, const cr_wire_region *source, int fd, cured_region **out,
                               cured_error *error) {
    cr_error e = {CR_OK, ""};
    *out = NULL;
    cured_region *region = cr_cl_region_new(&cr_cl_calls_of(conn)->regions, source, fd);
    if (region == NULL) return cr_cl_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a region");
    if (cr_cl_region_ensure(region, &e) != CR_OK) {
        cr_cl_region_release(region);
        return cr_cl_give(error, &e, 0);
    }
    *out = region;
    return cr_cl_give(error, &e, 0);
}

static cured_status check_unix(cured_conn *conn, cured_error *error) {
    if (!cr_cl_calls_of(conn)->tcp) return CURED_OK;
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

static cured_status region_cuda(cured_conn *conn, const cured_cuda_memory *memory, bool writable, cured_region **region,
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
    return region_cuda(conn, memory, false, region, error);
}

cured_status cured_region_cuda_writable(cured_conn *conn, const cured_cuda_memory *memory, cured_region **region,
                                        cured_error *error) {
    return region_cuda(conn, memory, true, region, error);
}

static cured_status of_pointer(cured_conn *conn, const void *pointer, uint64_t bytes, void *event, bool writable,
                               cured_region **region, cured_error *error) {
    cr_cl_cuda found;
    *region = NULL;
    cured_status status = cr_cl_cuda_find(pointer, bytes, event, &found, error);
    if (status == CURED_OK) status = region_cuda(conn, &found.memory, writable, region, error);
    if (found.memory.fd >= 0) close(found.memory.fd); /* the region has its own */
    return status;
}

cured_status cured_region_cuda_pointer(cured_conn *conn, const void *pointer, uint64_t bytes, void *event,
                                       cured_region **region, cured_error *error) {
    return of_pointer(conn, pointer, bytes, event, false, region, error);
}

cured_status cured_region_cuda_pointer_writable(cured_conn *conn, const void *pointer, uint64_t bytes, void *event,
                                                cured_region **region, cured_error *error) {
    return of_pointer(conn, pointer, bytes, event, true, region, error);
}

cured_call *cr_cl_region_awaited(cured_region *region, cr_error *error) {
    if (!cr_cl_region_usable(region)) {
        cr_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
        return NULL;
    }
    cr_cl_calls *calls = cr_cl_region_calls(region);
    if (calls->busy) {
        cr_fail(error, CR_FAILED_PRECONDITION, "cured_region_wait was called from inside a callback");
        return NULL;
    }
    cr_cl_fork_check(calls);
    if (!cr_cl_region_current(region) && cr_cl_region_ensure(region, error) != CR_OK) return NULL;
    return cr_cl_region_opening(region);
}

cured_status cured_region_unregister(cured_region *region, const cured_options *options, cured_call **out,
                                     cured_error *error) {
    cr_error e = {CR_OK, ""};
    cured_options o;
    *out = NULL;
    if (!cr_cl_region_usable(region))
        return cr_cl_fail(error, CR_FAILED_PRECONDITION, "the region, or its connection, is closed");
    if (cr_cl_take_options(options, &o, &e) == CR_OK) *out = start_unregister(region, &o, &e);
    if (*out != NULL) cr_cl_region_close(region);
    return cr_cl_give(error, &e, 0);
}

void cured_region_free(cured_region *region) {
    if (region == NULL) return;
    cr_cl_region_close(region);
    cr_cl_region_release(region);
}
