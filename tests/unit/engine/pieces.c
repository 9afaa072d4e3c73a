/* pieces: see pieces.h. Thread: the test's. Owner: the test. */
#include "tests/unit/engine/pieces.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void release(cr_segment *segment) { cr_container(segment, piece, segment)->released++; }

piece *offer(cr_queue *to, cr_job *job, size_t bytes, uint64_t index, bool aligned, bool seal) {
    piece *p = calloc(1, sizeof *p);
    p->data = malloc(bytes ? bytes : 1);
    memset(p->data, 1, bytes);
    cr_segment_init(&p->segment, job, p->data, index);
    p->segment.aligned = aligned;
    p->segment.release = release;
    cr_queue_add(to, &p->segment);
    cr_queue_ready(to, &p->segment, bytes, seal);
    return p;
}

void free_piece(piece *p) {
    ck_assert_int_eq(p->released, 1);
    free(p->data);
    free(p);
}
