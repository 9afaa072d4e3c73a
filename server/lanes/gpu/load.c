/* load: how the bytes of claims reach the device. What is pinned is copied from where it lies, or read over the bus.
 * Anything else goes through the stream's pinned staging buffer, a step at a time, so that the copy of one step runs
 * while the next is read. A client's mapping is read under the guard. The claims are held until the work ends: if the
 * device is lost, others fold them.
 *
 * Thread: the lane's. Owner: the lane. */
#include <assert.h>
#include <string.h>

#include "engine/memory/guard.h"
#include "engine/memory/kept.h"
#include "server/lanes/gpu/internal.h"

enum {
    STEP_BYTES = 2 * 1024 * 1024, /* through the staging buffer at a time */
    FEW_BYTES = 128 * 1024,       /* up to here a copy takes longer than reading over the bus */
};

bool cr_gpu_few(uint64_t bytes) { return bytes <= FEW_BYTES; }

cr_status cr_gpu_stage(const cr_claim *claim, uint64_t at, void *to, size_t bytes, cr_error *error) {
    cr_segment *segment = claim->segment;
    const uint8_t *from = claim->data + at;
    if (!segment->mapped) {
        memcpy(to, from, bytes);
        return CR_OK;
    }
    cr_guard_enter_shared(from, bytes, segment->kept ? &segment->kept->lost : NULL);
    memcpy(to, from, bytes);
    if (cr_guard_leave())
        return cr_fail(error, CR_DATA_LOSS,
                       "descriptor: the file was cut, or got holes, or its storage failed while it was read");
    return segment->still(segment, (uint64_t)(from - segment->data) + bytes, error);
}

/* Pinned, and of the file as it was (see cr_gpu_checked). */
bool cr_gpu_direct(const cr_claim *claim) {
    const cr_kept *kept = claim->segment->kept;
    if (!kept || !claim->segment->mapped) return claim->segment->pinned;
    return (uint64_t)(claim->data - kept->map.data) + claim->bytes <= atomic_load(&kept->pinned);
}

/* A copy may not go from one pinned piece of a region into the next. */
static uint64_t within_piece(const cr_claim *claim, uint64_t done, uint64_t step) {
    const cr_kept *kept = claim->segment->kept;
    if (!kept) return step;
    uint64_t left = CR_KEPT_PIN_BYTES - (uint64_t)(claim->data + done - kept->map.data) % CR_KEPT_PIN_BYTES;
    return step < left ? step : left;
}

void cr_gpu_copy_noted(cr_gpu_lane *lane, cr_gpu_work *work) {
    if (work->fate == CR_FATE_GOOD && work->copy_count &&
        lane->api->copies(work->stream, work->copies, work->copy_count, &work->error) != CR_OK)
        work->fate = CR_FATE_UNFIT;
    work->copy_count = 0;
}

/* Copies from pinned memory are made together: each alone would leave the bus idle for a while. Slabs are pinned as
 * one, and what lies side by side on both sides is one copy. */
static void note_copy(cr_gpu_lane *lane, cr_gpu_work *work, void *to, const void *from, size_t bytes, bool slab) {
    cr_gpu_copy *last = work->copy_count ? &work->copies[work->copy_count - 1] : NULL;
    if (slab && last && (const char *)last->host + last->bytes == from && (char *)last->device + last->bytes == to) {
        last->bytes += bytes;
        return;
    }
    if (work->copy_count == CR_GPU_COPIES) cr_gpu_copy_noted(lane, work);
    work->copies[work->copy_count++] = (cr_gpu_copy){to, from, bytes};
}

static void load_direct(cr_gpu_lane *lane, cr_gpu_work *work, const cr_claim *claim, uint8_t *to) {
    const bool slab = !claim->segment->kept && !claim->segment->mapped;
    for (uint64_t done = 0; done < claim->bytes && work->fate == CR_FATE_GOOD;) {
        const uint64_t step = within_piece(claim, done, claim->bytes - done);
        note_copy(lane, work, to + done, claim->data + done, step, slab);
        done += step;
    }
}

/* to NULL: the device reads the staging buffer. */
static void load_staged(cr_gpu_lane *lane, cr_gpu_work *work, const cr_claim *claim, uint8_t *to, uint8_t *staging) {
    for (uint64_t done = 0; done < claim->bytes && work->fate == CR_FATE_GOOD;) {
        const uint64_t left = claim->bytes - done, step = left < STEP_BYTES ? left : STEP_BYTES;
        if (cr_gpu_stage(claim, done, staging + done, step, &work->error) != CR_OK)
            work->fate = CR_FATE_BROKEN;
        else if (to && lane->api->copy(work->stream, to + done, staging + done, step, &work->error) != CR_OK)
            work->fate = CR_FATE_UNFIT;
        done += step;
    }
}

const uint8_t *cr_gpu_load(cr_gpu_lane *lane, cr_gpu_work *work, const cr_claim *claim, uint8_t *to, uint64_t at,
                           bool over_bus) {
    assert(work->state == CR_WORK_RUNNING);
    if (claim->job->device >= 0) return claim->data;
    if (cr_gpu_direct(claim)) {
        if (over_bus) return claim->data;
        load_direct(lane, work, claim, to);
        return to;
    }
    load_staged(lane, work, claim, over_bus ? NULL : to, work->staging + at);
    return over_bus ? work->staging + at : to;
}

cr_status cr_gpu_checked(const cr_claim *claim, cr_error *error) {
    cr_segment *segment = claim->segment;
    if (!segment->mapped || !segment->kept || claim->job->device >= 0) return CR_OK;
    return segment->still(segment, (uint64_t)(claim->data - segment->data) + claim->bytes, error);
}

void cr_gpu_check_all(cr_gpu_work *work) {
    for (uint32_t i = 0; i < work->claim_count && work->fate == CR_FATE_GOOD; i++)
        if (cr_gpu_checked(&work->claims[i], &work->error) != CR_OK) work->fate = CR_FATE_BROKEN;
}
