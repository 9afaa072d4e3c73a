/* kept: input that stays in memory until it is of use: a stream whose columns come in strips; one that is read several times, for ops
 * by rank; and blocks along an axis that are answered as wholes and are longer than a piece.
 *
 * Thread: the one that uses the connection; blocks come back on any. Owner: the work until it is published. */
#include <stdlib.h>
#include <string.h>

#include "client/lib/embedded/embedded.h"

enum { KEPT_FIRST_BYTES = 4 * 1024 * 1024 };

typedef struct cr_kept {
    cr_segment segment;
    cr_local *local;
    uint64_t room, used;
    uint8_t *data;
} cr_kept;

static void kept_free(cr_kept *kept) {
    if (kept != NULL) free(kept->data);
    free(kept);
}

static void kept_release(cr_segment *segment) {
    cr_kept *kept = cr_container(segment, cr_kept, segment);
    cr_local *local = kept->local;
    kept_free(kept);
    atomic_fetch_sub(&local->kept, 1);
    cr_local_wake(local);
}

void cr_work_forget_kept(cr_work *work) {
    kept_free(work->kept);
    work->kept = NULL;
}

static void no_room(cr_work *work, uint64_t bytes) {
    cr_error error;
    cr_fail(&error, CR_RESOURCE_EXHAUSTED, "no memory to keep %llu bytes of the input", (unsigned long long)bytes);
    cr_work_feed_fails(work, &error);
}

/* work->kept has room for so many bytes; false: there is no memory, and the feed has failed. */
static bool make_room(cr_work *work, uint64_t bytes) {
    if (work->kept == NULL) work->kept = calloc(1, sizeof *work->kept);
    if (work->kept != NULL && work->kept->room >= bytes) return true;
    uint8_t *more = work->kept != NULL && bytes <= SIZE_MAX / 2 ? realloc(work->kept->data, (size_t)bytes) : NULL;
    if (more == NULL) {
        no_room(work, bytes);
        return false;
    }
    work->kept->local = work->local;
    work->kept->data = more;
    work->kept->room = bytes;
    return true;
}

static void publish(cr_work *work) {
    cr_kept *kept = work->kept;
    work->kept = NULL;
    atomic_fetch_add(&work->local->kept, 1);
    cr_work_publish(work, &kept->segment, kept->data, kept->used, kept_release);
}

/* ---- Streams ---- */

static size_t handed(const cured_call *call) {
    return call->source_len < CR_LOCAL_PIECE_BYTES ? call->source_len : CR_LOCAL_PIECE_BYTES;
}

/* What the program has handed over, to its places in strips. */
static bool keep_strips(cr_work *work) {
    cured_call *call = work->call;
    uint64_t from = work->received, at;
    size_t left = handed(call);
    work->received += left;
    if (cr_work_too_many_came(work)) return false;
    if (!make_room(work, call->elements * work->job->element)) return false;
    work->kept->used = work->received;
    while (left != 0) {
        uint64_t run = cr_job_axis_turned(work->job, from, &at);
        size_t n = left < run ? left : (size_t)run;
        memcpy(work->kept->data + at, call->source, n);
        from += n;
        left -= n;
        call->source += n;
        call->source_len -= n;
    }
    return true;
}

cr_status cr_work_check_stream(uint64_t bytes, cr_error *error) {
    if (bytes <= CR_LOCAL_KEPT_BYTES) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "input: ops by rank read it several times, so a stream is kept, and has %d bytes at most: pass "
                   "memory or a file",
                   CR_LOCAL_KEPT_BYTES);
}

/* The same one after the other. */
static bool keep_all(cr_work *work) {
    cured_call *call = work->call;
    const size_t n = handed(call);
    const uint64_t had = work->kept != NULL ? work->kept->room : 0, wanted = work->received + n;
    uint64_t room = had != 0 ? 2 * had : call->declared != UINT64_MAX ? call->declared : KEPT_FIRST_BYTES;
    cr_error error;
    if (cr_work_check_stream(wanted, &error) != CR_OK) {
        cr_work_feed_fails(work, &error);
        return false;
    }
    if (room > CR_LOCAL_KEPT_BYTES) room = CR_LOCAL_KEPT_BYTES;
    if (!make_room(work, wanted > room ? wanted : had >= wanted ? had : room)) return false;
    memcpy(work->kept->data + work->kept->used, call->source, n);
    work->received = work->kept->used = wanted;
    call->source += n;
    call->source_len -= n;
    return true;
}

/* Whether there are several reads. */
static bool is_read_again(const cr_work *work) { return work->rereads != NULL && !work->rereads->once; }

void cr_work_end_kept(cr_work *work) {
    if (work->kept == NULL) return;
    if (!is_read_again(work)) {
        publish(work);
        return;
    }
    cr_error error;
    work->memory = work->kept->data; /* which stays until the work goes */
    work->whole = work->kept;
    work->kept = NULL;
    if (cr_work_offer(work, work->memory, work->received, &error) != CR_OK) cr_work_feed_fails(work, &error);
}

void cr_work_free_whole(cr_work *work) {
    kept_free(work->whole);
    work->whole = NULL;
}

/* ---- Blocks ---- */

static bool is_stream(const cr_work *work) { return work->call->kind == KIND_STREAM; }

cr_status cr_work_check_block(const cr_work *work, cr_error *error) {
    const uint64_t bytes = cr_job_unit(work->job);
    if (work->job->axis == NULL || bytes <= CR_LOCAL_KEPT_BYTES) return CR_OK;
    const bool keyed = work->call->geometry == CR_GEOMETRY_KEYS;
    if (work->job->as_one)
        return cr_fail(
            error, CR_INVALID_ARGUMENT,
            "%s: ops by rank need all %s at once, of a file or stream %d bytes at most, and these have %llu: "
            "pass memory",
            keyed ? "keys" : "offsets", keyed ? "rows" : "segments", CR_LOCAL_KEPT_BYTES, (unsigned long long)bytes);
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "axis: ops by rank need all of a block at once, of a file or stream %d bytes at most, and this one "
                   "has %llu: pass memory",
                   CR_LOCAL_KEPT_BYTES, (unsigned long long)bytes);
}

/* More of a block. False: nothing can be done now. */
static bool keep_block(cr_work *work) {
    cured_call *call = work->call;
    cr_error error;
    const uint64_t unit = cr_job_unit(work->job);
    if (work->kept == NULL && atomic_load(&work->local->kept) > work->line->threads) return false;
    if (!make_room(work, unit)) return true;
    cr_kept *kept = work->kept;
    uint64_t n = is_stream(work) ? call->source_len : work->left;
    if (n > CR_LOCAL_PIECE_BYTES) n = CR_LOCAL_PIECE_BYTES;
    if (n > kept->room - kept->used) n = kept->room - kept->used;
    if (is_stream(work)) {
        memcpy(kept->data + kept->used, call->source, (size_t)n);
        call->source += n;
        call->source_len -= (size_t)n;
        work->received += n;
        if (cr_work_too_many_came(work)) return true;
    } else {
        if (cr_work_read(work, kept->data + kept->used, n, &error) != CR_OK) {
            cr_work_feed_fails(work, &error);
            return true;
        }
        work->fed += n;
        work->left -= n;
    }
    kept->used += n;
    if (kept->used == kept->room) publish(work);
    if (!is_stream(work) && work->left == 0) cr_work_end_feed(work);
    return true;
}

bool cr_work_keeps(const cr_work *work) {
    if (is_stream(work) && (is_read_again(work) || cr_job_axis_in_strips(work->job))) return true;
    return work->job->axis != NULL && cr_job_unit(work->job) > CR_LOCAL_PIECE_BYTES;
}

bool cr_work_keep(cr_work *work) {
    if (is_stream(work) && is_read_again(work)) {
        if (!keep_all(work)) return true;
    } else if (is_stream(work) && cr_job_axis_in_strips(work->job)) {
        if (!keep_strips(work)) return true;
    } else if (!keep_block(work)) {
        return false;
    }
    if (work->feeding && is_stream(work) && cr_work_stream_ended(work->call)) cr_work_end_stream(work);
    return true;
}
