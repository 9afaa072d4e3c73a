/* regions: tables, waiting calls and news of registered regions. Thread: the loop's, but for tell. Owner: see regions.h. */
#include "server/native/regions.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/shared.h"
#include "engine/memory/kept.h"
#include "server/native/reply.h"

typedef unsigned long long ull;

/* A connection's own. Made at its first Register: an idle connection has none. */
typedef struct cr_regions {
    cr_table found; /* entries that calls can find */
    cr_list all;    /* those and the ones that are hidden and not closed yet */
} cr_regions;

typedef struct cr_entry {
    cr_kept kept;
    cr_node node; /* by its number, in the connection's table while a call can find it */
    cr_list all;  /* in the connection's list */
    cr_list news; /* in native->region_news; this, opened and closed are guarded by native->mutex */
    bool opened, closed;
    cr_native *native;
    cr_conn *conn; /* NULL: gone */
    cr_user *user; /* of that connection; held until the region is over */
    uint64_t bytes;
    cr_region_kind kind;
    bool open, listed, leaving, hidden;     /* as the loop knows it; leaving: unregistered */
    cr_stream *registering, *unregistering; /* to be answered */
    cr_list waiting;                        /* reductions, until it is open */
} cr_entry;

static cr_region_kind kind_of(const cr_wire_region *asked) {
    if (asked->kind == CR_SHARED_DESCRIPTOR) return CR_REGIONS_file;
    return asked->kind == CR_SHARED_NAME ? CR_REGIONS_shm : CR_REGIONS_device;
}

/* Runs on a files thread. */
static void publish(cr_kept *kept, cr_kept_news news) {
    cr_entry *entry = cr_container(kept, cr_entry, kept);
    cr_native *native = entry->native;
    pthread_mutex_lock(&native->mutex);
    if (news == CR_KEPT_OPENED) entry->opened = true;
    if (news == CR_KEPT_CLOSED) entry->closed = true;
    if (cr_list_empty(&entry->news)) cr_list_append(&native->region_news, &entry->news);
    cr_loop_wake(native->loop);
    pthread_mutex_unlock(&native->mutex);
}

static cr_entry *find(const cr_conn *conn, uint64_t id) {
    cr_node *node = conn->regions ? cr_table_find(&conn->regions->found, id) : NULL;
    return node ? cr_container(node, cr_entry, node) : NULL;
}

cr_kept *cr_regions_find(const cr_conn *conn, uint64_t id) {
    cr_entry *entry = find(conn, id);
    return entry && entry->open ? &entry->kept : NULL;
}

/* No call finds it from here on. */
static void unlist(cr_entry *entry) {
    if (!entry->listed) return;
    entry->listed = false;
    cr_table_remove(&entry->conn->regions->found, &entry->node);
}

static void not_found(cr_stream *stream, uint64_t id) {
    cr_error error;
    cr_fail(&error, CR_NOT_FOUND, "region: %llu is not registered on this connection", (ull)id);
    cr_call_cancel(stream->call, &error);
}

/* Ends the call in slot; error NULL: it was answered. */
static void end(cr_stream **slot, const cr_error *error) {
    cr_stream *stream = *slot;
    *slot = NULL;
    stream->region = NULL;
    if (error)
        cr_call_cancel(stream->call, error);
    else
        cr_call_done(stream->call);
}

static void reduce(cr_stream *stream, cr_entry *entry) {
    cr_call_input(stream->call, &(cr_array){.kind = CR_KEPT, .kept = &entry->kept});
}

/* Calls that came before the region was open: they start, or end with error. */
static void settle_waiting(cr_entry *entry, const cr_error *error) {
    for (cr_list *node; (node = cr_list_pop(&entry->waiting));) {
        cr_stream *stream = cr_container(node, cr_stream, in_region);
        stream->region = NULL;
        if (error)
            cr_call_cancel(stream->call, error);
        else
            reduce(stream, entry);
    }
}

/* It is closed when the last job lets go of it. */
static void hide(cr_entry *entry) {
    if (entry->hidden) return;
    entry->hidden = true;
    unlist(entry);
    cr_kept_release(&entry->kept);
}

static cr_status make_regions(cr_conn *conn, cr_error *error) {
    if (conn->regions) return CR_OK;
    cr_regions *regions = calloc(1, sizeof *regions);
    if (!regions) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the connection's regions");
    cr_list_init(&regions->all);
    conn->regions = regions;
    return CR_OK;
}

/* The driver believes the bytes of a handle, and what their owner keeps beside them, so they are no stranger's. A descriptor is Linux's
 * word. */
static cr_status check_handles(const cr_conn *conn, const cr_wire_region *r, cr_error *error) {
    const cr_peer *peer = &conn->peer;
    if (!(r->has_handle || r->has_event) || conn->native->calls->config->device_handles == CR_DEVICE_HANDLES_ANY)
        return CR_OK;
    if (peer->has_uid && (peer->uid == 0 || peer->uid == geteuid())) return CR_OK;
    return cr_fail(error, CR_PERMISSION_DENIED,
                   "%s: only clients of the daemon's user may share by it (device_handles); a descriptor of "
                   "cuMemCreate's memory is anybody's",
                   r->has_handle ? "handle" : "event");
}

static cr_status set_source(const cr_stream *stream, int descriptor, cr_kept_source *source, cr_error *error) {
    const cr_wire_region *r = &cr_call_request(stream->call)->region;
    const cr_conn *conn = stream->conn;
    source->descriptor = descriptor;
    if (!conn->passes_descriptors)
        return cr_fail(error, CR_PERMISSION_DENIED, "regions: memory is shared over Unix sockets only");
    source->writable = r->writable;
    if (r->kind == CR_SHARED_DESCRIPTOR) {
        source->kind = CR_KEPT_FILE;
        return r->writable ? cr_shared_writable(descriptor, error) : cr_region_readable(descriptor, error);
    }
    if (r->kind == CR_SHARED_NAME) {
        if (!conn->native->calls->config->shm_names)
            return cr_fail(error, CR_PERMISSION_DENIED,
                           "name: this daemon takes no names of shared memory (shm_names); pass its descriptor");
        if (!conn->peer.has_uid) return cr_fail(error, CR_PERMISSION_DENIED, "name: the client's user is not known");
        source->kind = CR_KEPT_NAME;
        source->peer = conn->peer.uid;
        memcpy(source->name, r->name, sizeof source->name);
        return CR_OK;
    }
    source->kind = CR_KEPT_DEVICE;
    source->memory.has_handle = r->has_handle;
    source->memory.has_event = r->has_event;
    source->memory.offset = r->offset;
    source->memory.bytes = r->bytes;
    memcpy(source->memory.device, r->device, sizeof r->device);
    memcpy(source->memory.handle, r->handle, sizeof r->handle);
    memcpy(source->memory.event, r->event, sizeof r->event);
    return check_handles(conn, r, error);
}

/* A new entry for the region that the stream asks for; NULL: error says why. descriptor is the entry's. */
static cr_entry *entry_new(cr_stream *stream, uint64_t id, int descriptor, cr_error *error) {
    cr_conn *conn = stream->conn;
    cr_admission *admission = &conn->native->calls->admission;
    if (make_regions(conn, error) != CR_OK) return NULL;
    if (find(conn, id)) {
        cr_fail(error, CR_ALREADY_EXISTS, "region: %llu is registered on this connection", (ull)id);
        return NULL;
    }
    if (cr_admit_region(admission, &conn->peer, error) != CR_OK) return NULL;
    cr_entry *entry = calloc(1, sizeof *entry);
    cr_status status = entry ? set_source(stream, descriptor, &entry->kept.source, error) : CR_OK;
    if (entry) entry->node.key = id;
    if (status == CR_OK && entry && cr_table_add(&conn->regions->found, &entry->node)) {
        entry->listed = true;
        return entry;
    }
    if (status == CR_OK) cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for a region");
    cr_admit_region_over(admission, conn->peer.user, &conn->peer, 0);
    free(entry);
    return NULL;
}

void cr_regions_register(cr_stream *stream, int descriptor) {
    cr_error error;
    cr_conn *conn = stream->conn;
    cr_native *native = conn->native;
    uint64_t id = cr_call_request(stream->call)->region.id;
    cr_entry *entry = entry_new(stream, id, descriptor, &error);
    if (!entry) {
        if (descriptor >= 0) cr_files_close(native->calls->files, conn->peer.owner, descriptor);
        cr_call_cancel(stream->call, &error);
        return;
    }
    cr_list_init(&entry->news);
    cr_list_init(&entry->waiting);
    entry->native = native;
    entry->conn = conn;
    entry->user = conn->peer.user;
    entry->registering = stream;
    entry->kind = kind_of(&cr_call_request(stream->call)->region);
    stream->region = entry;
    cr_list_append(&conn->regions->all, &entry->all);
    entry->kept.files = native->calls->files;
    entry->kept.task.user = conn->peer.owner;
    entry->kept.task.client = conn->peer.client;
    entry->kept.hook = native->device_hook;
    entry->kept.publish = publish;
    cr_kept_open(&entry->kept);
}

void cr_regions_unregister(cr_stream *stream) {
    uint64_t id = cr_call_request(stream->call)->region.id;
    cr_entry *entry = find(stream->conn, id);
    if (!entry) {
        not_found(stream, id);
        return;
    }
    entry->unregistering = stream;
    stream->region = entry;
    entry->leaving = true;
    unlist(entry);
    if (entry->open) hide(entry); /* otherwise the calls that found it wait for it still */
}

void cr_regions_reduce(cr_stream *stream) {
    uint64_t id = cr_call_request(stream->call)->reduce.region;
    cr_entry *entry = find(stream->conn, id);
    if (!entry) {
        not_found(stream, id);
    } else if (entry->open) {
        reduce(stream, entry);
    } else {
        stream->region = entry;
        cr_list_append(&entry->waiting, &stream->in_region);
    }
}

void cr_regions_forget(cr_stream *stream, const cr_error *why) {
    cr_entry *entry = stream->region;
    if (!entry) return;
    stream->region = NULL;
    cr_list_remove(&stream->in_region);
    if (entry->unregistering == stream) entry->unregistering = NULL;
    if (entry->registering != stream) return;
    /* Register has ended before the region is open, which must never appear. Those that wait for it end with the same status. */
    entry->registering = NULL;
    cr_error error;
    cr_fail(&error, why ? why->code : CR_CANCELLED, "region: %llu was not registered to the end%s%s",
            (ull)entry->node.key, why ? ": " : "", why ? why->text : "");
    hide(entry);
    settle_waiting(entry, &error);
}

void cr_regions_drop(cr_conn *conn) {
    cr_regions *regions = conn->regions;
    if (!regions) return;
    for (cr_list *node; (node = cr_list_pop(&regions->all));) {
        cr_entry *entry = cr_container(node, cr_entry, all);
        hide(entry);
        entry->conn = NULL;
    }
    cr_table_free(&regions->found);
    free(regions);
    conn->regions = NULL;
}

static void on_opened(cr_entry *entry) {
    cr_error *error = &entry->kept.error;
    cr_conn *conn = entry->conn;
    if (entry->hidden) return;
    uint64_t bytes = entry->kept.region.size;
    if (error->code == CR_OK) cr_admit_region_bytes(&entry->native->calls->admission, &conn->peer, bytes, error);
    if (error->code != CR_OK) {
        hide(entry);
        end(&entry->registering, error);
        settle_waiting(entry, error);
        return;
    }
    entry->open = true;
    entry->bytes = bytes;
    cr_metric_add(region_bytes, bytes);
    cr_stats_region(&entry->native->calls->stats, entry->kind, 1, (int64_t)bytes);
    cr_reply_registered(conn, entry->registering->id, bytes,
                        entry->kept.source.writable && !entry->kept.region.writable);
    end(&entry->registering, NULL);
    settle_waiting(entry, NULL);
    if (entry->leaving) hide(entry);
}

static void on_closed(cr_entry *entry) {
    cr_admit_region_over(&entry->native->calls->admission, entry->user, entry->conn ? &entry->conn->peer : NULL,
                         entry->bytes);
    cr_metric_sub(region_bytes, entry->bytes);
    if (entry->open) cr_stats_region(&entry->native->calls->stats, entry->kind, -1, -(int64_t)entry->bytes);
    if (entry->conn) cr_list_remove(&entry->all);
    if (entry->unregistering) {
        cr_reply_unregistered(entry->unregistering->conn, entry->unregistering->id);
        end(&entry->unregistering, NULL);
    }
    free(entry);
}

bool cr_regions_news(cr_native *native, uint64_t most_ns) {
    for (const uint64_t until = cr_now_ns() + most_ns; cr_now_ns() < until;) {
        pthread_mutex_lock(&native->mutex);
        cr_list *node = cr_list_pop(&native->region_news);
        cr_entry *entry = node ? cr_container(node, cr_entry, news) : NULL;
        bool opened = entry && entry->opened, closed = entry && entry->closed;
        if (entry) entry->opened = false;
        pthread_mutex_unlock(&native->mutex);
        if (!entry) return false;
        if (opened) on_opened(entry);
        if (closed) on_closed(entry);
    }
    return true;
}
