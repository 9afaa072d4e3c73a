/* upload: array bytes from a connection into slabs, and slabs to the lanes.
 *
 * A slab is offered in steps while it fills, so that its bytes are folded while they are in the cache, and sealed when it
 * is full, when its client pauses, or when others need slabs: a slab never waits for a client. So what may have to wait until
 * a client takes answers (of an axis) goes into memory of its own instead.
 * Thread: the loop's (release: whoever folded last). Owner: the call, until a segment is offered and sealed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/call/call.h"
#include "server/call/merge.h"
#include "server/call/outputs.h"

enum { OFFER_BYTES = 128 * 1024 };

typedef struct cr_slab_segment {
    cr_segment segment;
    cr_slabs *slabs;
    uint8_t *slab; /* NULL: own instead */
    uint8_t *own;  /* memory of its own, freed with it */
    bool added;    /* the queue knows it */
} cr_slab_segment;

static void release(cr_segment *segment) {
    cr_slab_segment *s = cr_container(segment, cr_slab_segment, segment);
    if (s->slab) cr_slab_give(s->slabs, s->slab);
    free(s->own);
    free(s);
}

/* A segment at the upload's place, over a slab or over memory of its own. */
static cr_slab_segment *new_segment(const cr_call *call, uint8_t *slab, uint8_t *own) {
    cr_slab_segment *s = malloc(sizeof *s);
    if (!s) return NULL;
    cr_segment_init(&s->segment, call->job, slab ? slab : own, call->upload.handed);
    s->segment.release = release;
    s->slabs = call->conn->server->slabs;
    s->segment.pinned = slab && cr_slabs_pinned(s->slabs);
    s->slab = slab;
    s->own = own;
    s->added = false;
    return s;
}

static void on_sealing(uv_timer_t *timer) { cr_upload_seal_idle(timer->data, CR_SLAB_IDLE_MS); }

static void touch(cr_call *call) {
    cr_server *server = call->conn->server;
    call->upload.touched_ms = uv_now(server->loop);
    cr_list_remove(&call->upload.filling);
    if (cr_list_empty(&server->filling)) uv_timer_start(&server->sealing, on_sealing, CR_SLAB_IDLE_MS, CR_SLAB_IDLE_MS);
    cr_list_append(&server->filling, &call->upload.filling);
}

/* A granted slab first, then the pool; or the connection gets in line. */
static uint8_t *take_slab(cr_conn *conn) {
    void *slab = conn->spare_slab;
    conn->spare_slab = NULL;
    if (slab) return slab;
    slab = cr_slab_take_or_wait(conn->server->slabs, &conn->slab_waiter);
    conn->waits_for_slab = slab == NULL;
    return slab;
}

/* Begins the next segment, with what the last could not hand over. False as cr_upload_room. */
static bool open_segment(cr_call *call, bool waits, cr_error *error) {
    cr_upload *up = &call->upload;
    uint8_t *slab = waits ? NULL : take_slab(call->conn), *own = waits ? malloc(CR_SLAB_BYTES) : NULL;
    if (!slab && !waits) {
        cr_upload_seal_idle(call->conn->server, 0);
        return false;
    }
    if (waits && call->conn->spare_slab) cr_slab_give(call->conn->server->slabs, take_slab(call->conn));
    if (slab || own) up->slab = new_segment(call, slab, own);
    if (!up->slab) {
        if (slab) cr_slab_give(call->conn->server->slabs, slab);
        free(own);
        cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the upload");
        return false;
    }
    if (up->tail_len) memcpy(slab ? slab : own, up->tail, up->tail_len);
    up->filled = up->tail_len;
    up->offered = up->tail_len = 0;
    touch(call);
    return true;
}

bool cr_upload_room(cr_call *call, uint8_t **at, size_t *room, cr_error *error) {
    cr_upload *up = &call->upload;
    bool waits = !cr_outputs_flow(call);
    error->code = CR_OK;
    if (call->merge) return cr_merge_room(call, at, room), true;
    if (up->slab && up->filled == CR_SLAB_BYTES) { /* no memory for its tail, when it became full */
        cr_upload_seal(call);
        if (up->slab) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for the upload") == CR_OK;
    }
    if (waits && up->slab && up->slab->slab) cr_upload_seal(call);
    if (!up->slab && !open_segment(call, waits, error)) return false;
    *at = up->slab->slab ? up->slab->slab + up->filled : up->slab->own + up->filled;
    *room = CR_SLAB_BYTES - up->filled;
    return true;
}

/* Moves the ready mark to bytes; seal: for the last time, after which the slab is the lanes'. */
static void offer(cr_call *call, uint32_t bytes, bool seal) {
    cr_upload *up = &call->upload;
    cr_slab_segment *s = up->slab;
    cr_queue *queue = call->conn->server->queue;
    if (seal) {
        up->slab = NULL;
        up->handed += bytes / call->job->element;
        cr_list_remove(&up->filling);
        if (!bytes && !s->added) {
            release(&s->segment);
            return;
        }
    }
    if (!s->added) cr_queue_add(queue, &s->segment);
    s->added = true;
    up->offered = bytes;
    cr_queue_ready(queue, &s->segment, bytes, seal);
}

cr_status cr_upload_advance(cr_call *call, size_t bytes, cr_error *error) {
    cr_upload *up = &call->upload;
    if (call->merge) return cr_merge_advance(call, bytes, error);
    up->filled += (uint32_t)bytes;
    assert(up->filled <= CR_SLAB_BYTES);
    touch(call);
    if (up->filled == CR_SLAB_BYTES) {
        cr_upload_seal(call);
    } else if (up->filled - up->offered >= OFFER_BYTES) {
        offer(call, up->filled - (uint32_t)(up->filled % cr_job_unit(call->job)), false);
    }
    return CR_OK;
}

void cr_upload_seal(cr_call *call) {
    cr_upload *up = &call->upload;
    if (!up->slab) return;
    uint32_t tail = (uint32_t)(up->filled % cr_job_unit(call->job)), whole = up->filled - tail;
    if (tail) {
        if (!up->tail) up->tail = malloc(cr_job_unit(call->job));
        if (!up->tail) return; /* the slab stays until there is memory */
        memcpy(up->tail, up->slab->segment.data + whole, tail);
    }
    up->tail_len = tail;
    offer(call, whole, true);
}

bool cr_upload_finish(cr_call *call) {
    cr_upload *up = &call->upload;
    if (!up->slab && up->tail_len) {
        /* An incomplete block of prod, left by an earlier seal: its buffer goes to the lanes as it is. */
        up->slab = new_segment(call, NULL, up->tail);
        if (!up->slab) return false;
        up->filled = up->tail_len;
        up->tail = NULL;
        up->tail_len = 0;
    }
    if (up->slab) offer(call, up->filled, true);
    return true;
}

void cr_upload_drop(cr_call *call) {
    cr_upload *up = &call->upload;
    if (up->slab) offer(call, up->offered, true);
    free(up->tail);
    up->tail = NULL;
    up->tail_len = 0;
}

void cr_upload_seal_idle(cr_server *server, uint64_t idle_ms) {
    uint64_t now = uv_now(server->loop);
    for (cr_list *node = server->filling.next, *next; node != &server->filling; node = next) {
        next = node->next;
        cr_call *call = cr_container(node, cr_call, upload.filling);
        if (idle_ms && now - call->upload.touched_ms < idle_ms) break;
        if (call->upload.slab->slab) {
            cr_upload_seal(call);
            if (!idle_ms) break;
        } else if (idle_ms) { /* no slab: it may wait for more, but what is whole may be folded */
            offer(call, call->upload.filled - (uint32_t)(call->upload.filled % cr_job_unit(call->job)), false);
            cr_list_remove(node);
        }
    }
    if (cr_list_empty(&server->filling)) uv_timer_stop(&server->sealing);
}
