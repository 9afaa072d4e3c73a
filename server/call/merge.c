/* merge: records of a length and a partial, cut out of the stream. Thread: the loop's. Owner: the call. */
#include "server/call/merge.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_BYTES = 2048 }; /* between two looks at the time: some 37 of the smallest partials */

cr_merge *cr_merge_new(void) {
    cr_merge *m = malloc(sizeof *m);
    if (m) m->merged = m->used = m->taken = 0;
    return m;
}

void cr_merge_room(cr_merge *m, uint8_t **at, size_t *room) {
    *at = m->record + m->used;
    *room = sizeof m->record - m->used < STEP_BYTES ? sizeof m->record - m->used : STEP_BYTES;
}

void cr_merge_filled(cr_merge *m, size_t bytes) { m->used += (uint32_t)bytes; }

/* What is not a whole partial moves to the front. */
static cr_status wait_for_more(cr_merge *m) {
    m->used -= m->taken;
    memmove(m->record, m->record + m->taken, m->used);
    m->taken = 0;
    return CR_OK;
}

cr_status cr_merge_step(cr_merge *m, bool *added, cr_error *error) {
    uint32_t len, left = m->used - m->taken;
    *added = false;
    if (left < CR_MERGE_LENGTH_BYTES) return wait_for_more(m);
    memcpy(&len, m->record + m->taken, sizeof len);
    len = le32toh(len);
    if (len > CR_SERIAL_MAX_BYTES)
        return cr_fail(error, CR_INVALID_ARGUMENT, "partial: its length is %u, limit is %d", len, CR_SERIAL_MAX_BYTES);
    if (left - CR_MERGE_LENGTH_BYTES < len) return wait_for_more(m);
    const uint8_t *bytes = m->record + m->taken + CR_MERGE_LENGTH_BYTES;
    cr_status status = cr_share_unpack(bytes, len, m->merged ? &m->next : &m->sum, error);
    if (status != CR_OK) return status;
    m->taken += CR_MERGE_LENGTH_BYTES + len;
    *added = true;
    return m->merged++ ? cr_share_merge(&m->sum, &m->next, error) : CR_OK;
}

cr_status cr_merge_check_end(const cr_merge *m, cr_error *error) {
    if (!m || !m->merged) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: there was none to merge");
    if (m->used) return cr_fail(error, CR_INVALID_ARGUMENT, "partial: END came in the middle of one");
    return CR_OK;
}
