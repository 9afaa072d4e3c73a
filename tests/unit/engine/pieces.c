/* pieces: see pieces.h. Thread: the test's. Owner: the test. */
#include "tests/unit/engine/pieces.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void release(cr_segment *segment) { cr_container(segment, piece, segment)->released++; }

static piece *offer_data(cr_queue *to, cr_job *job, uint8_t *data, size_t bytes, uint64_t index, bool aligned,
                         bool seal) {
    piece *p = calloc(1, sizeof *p);
    p->data = data;
    cr_segment_init(&p->segment, job, p->data, index);
    p->segment.aligned = aligned;
    p->segment.release = release;
    cr_queue_add(to, &p->segment);
    cr_queue_ready(to, &p->segment, bytes, seal);
    return p;
}

piece *offer(cr_queue *to, cr_job *job, size_t bytes, uint64_t index, bool aligned, bool seal) {
    uint8_t *data = malloc(bytes ? bytes : 1);
    memset(data, 1, bytes);
    return offer_data(to, job, data, bytes, index, aligned, seal);
}

piece *offer_zeros(cr_queue *to, cr_job *job, size_t bytes) {
    return offer_data(to, job, calloc(bytes, 1), bytes, 0, false, true);
}

void free_piece(piece *p) {
    ck_assert_int_eq(p->released, 1);
    free(p->data);
    free(p);
}
