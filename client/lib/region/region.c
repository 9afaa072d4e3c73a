/* region: see region.h. Thread, owner: see there. */
#include "client/lib/region/region.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* NONE: no Register call was made yet. The others are of the last one. */
typedef enum registration {
    REGISTRATION_NONE,
    REGISTRATION_UNDER_WAY,
    REGISTRATION_OK,
    REGISTRATION_FAILED
} registration;

struct cured_region {
    cr_cl_regions *home; /* NULL once the connection is closed */
    cr_list all;         /* in home->all */
    uint32_t uses;       /* the program, and calls that name it and are not done */
    cr_wire_region source;
    int fd;              /* -1: none is needed */
    uint64_t epoch;      /* of the connection it was registered on; 0: none */
    uint64_t ended;      /* the same for Unregister */
    cured_call *opening; /* the last Register call; NULL: there was none */
    registration registration;
    cr_error error; /* why that failed */
    uint64_t bytes;
    bool read_only; /* says the daemon, though it was to be writable */
    void *memory;   /* in this process: the mapping of one that nobody can cut; NULL: none */
    bool closed;    /* by the program: no more calls */
};

void cr_cl_regions_init(cr_cl_regions *regions) {
    cr_list_init(&regions->all);
    regions->epoch = 1;
}

void cr_cl_regions_close(cr_cl_regions *regions) {
    for (cr_list *node; (node = cr_list_pop(&regions->all)) != NULL;)
        cr_container(node, cured_region, all)->home = NULL;
}

cured_region *cr_cl_region_new(cr_cl_regions *regions, const cr_wire_region *source, int fd) {
    cured_region *region = calloc(1, sizeof *region);
    if (region == NULL) {
        if (fd >= 0) close(fd);
        return NULL;
    }
    region->home = regions;
    region->uses = 1;
    region->source = *source;
    region->source.id = ++regions->last;
    region->fd = fd;
    cr_list_append(&regions->all, &region->all);
    return region;
}

cr_cl_regions *cr_cl_region_home(const cured_region *region) { return region->home; }

const cr_wire_region *cr_cl_region_source(const cured_region *region) { return &region->source; }

int cr_cl_region_descriptor(const cured_region *region) { return region->fd; }

uint64_t cured_region_bytes(const cured_region *region) { return region->bytes; }

/* ---- who uses it ---- */

void cr_cl_region_close(cured_region *region) { region->closed = true; }

bool cr_cl_region_usable(const cured_region *region) { return region->home != NULL && !region->closed; }

void cr_cl_region_use(cured_region *region) { region->uses++; }

static bool on_device(const cured_region *region) {
    return region->source.kind == CR_SHARED_CUDA_IPC || region->source.kind == CR_SHARED_CUDA_DESCRIPTOR;
}

cr_status cr_cl_region_keep(cured_region *region, const cr_cl_regions *regions, uint32_t index, bool has_results,
                            cr_error *error) {
    if (!cr_cl_region_usable(region))
        return cr_fail(error, CR_FAILED_PRECONDITION, "outputs[%u]: the region, or its connection, is closed", index);
    if (region->home != regions)
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
    cr_cl_region_use(region);
    return CR_OK;
}

bool cr_cl_region_leave(cured_region *region) { return --region->uses == 0; }

void cr_cl_region_free(cured_region *region) {
    cr_list_remove(&region->all);
    if (region->memory != NULL) munmap(region->memory, (size_t)region->bytes);
    if (region->fd >= 0) close(region->fd);
    free(region);
}

/* ---- whether the daemon knows it ---- */

bool cr_cl_region_current(const cured_region *region) {
    return region->home != NULL && region->epoch == region->home->epoch;
}

bool cr_cl_region_registered(const cured_region *region) {
    return cr_cl_region_current(region) &&
           (region->registration == REGISTRATION_UNDER_WAY || region->registration == REGISTRATION_OK);
}

bool cr_cl_region_known(const cured_region *region) {
    return cr_cl_region_registered(region) && region->ended != region->epoch;
}

void cr_cl_region_ends(cured_region *region) { region->ended = region->epoch; }

void cr_cl_region_opens(cured_region *region, cured_call *opening) {
    region->opening = opening;
    region->registration = REGISTRATION_UNDER_WAY;
    region->epoch = region->home->epoch;
}

cured_call *cr_cl_region_opening(const cured_region *region) { return region->opening; }

void cr_cl_region_is_open(cured_region *region, const cr_wire_registered *r) {
    region->bytes = r->bytes;
    region->read_only = r->read_only;
}

void cr_cl_region_opened(cured_region *region, int fd, void *memory, uint64_t bytes) {
    if (region->fd >= 0 && region->fd != fd) close(region->fd);
    if (region->memory != NULL) munmap(region->memory, (size_t)region->bytes);
    region->fd = fd;
    region->memory = memory;
    region->bytes = bytes;
}

void cr_cl_region_answered(cured_region *region, const cr_error *error) {
    region->registration = error->code == CR_OK ? REGISTRATION_OK : REGISTRATION_FAILED;
    region->error = *error;
}

cr_cl_region_state cr_cl_region_is(const cured_region *region, const cr_error **why) {
    static const cr_error gone = {CR_UNAVAILABLE, "the region is not registered on this connection"};
    static const cr_error unwatched = {CR_FAILED_PRECONDITION,
                                       "this daemon may not use userfaultfd, so it writes into no shared memory; give "
                                       "results, too"};
    *why = region->registration == REGISTRATION_FAILED ? &region->error : &gone;
    if (!cr_cl_region_registered(region)) return CR_REGION_FAILED;
    if (region->registration == REGISTRATION_UNDER_WAY) return CR_REGION_OPENING;
    *why = &unwatched;
    return region->read_only ? CR_REGION_FAILED : CR_REGION_OPEN;
}

const cr_error *cr_cl_region_error(const cured_region *region) {
    return region->registration == REGISTRATION_FAILED ? &region->error : NULL;
}

int cr_cl_region_view(const cured_region *region, const uint8_t **memory, uint64_t *bytes) {
    *memory = region->memory;
    *bytes = region->bytes;
    return region->fd;
}
