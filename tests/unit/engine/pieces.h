/* pieces: segments of ones for the tests of the run queue, which must each be let go once.
 *
 * Thread: the test's. Owner: the test. */
#ifndef CURED_TESTS_UNIT_ENGINE_PIECES_H
#define CURED_TESTS_UNIT_ENGINE_PIECES_H

#include "engine/queue.h"

typedef struct piece {
    cr_segment segment;
    uint8_t *data;
    int released;
} piece;

/* bytes of ones, from element index of job on, offered to a queue as a whole. */
piece *offer(cr_queue *to, cr_job *job, size_t bytes, uint64_t index, bool aligned, bool seal);
/* A job's only segment, of zeros: large ones cost nothing until they are read. */
piece *offer_zeros(cr_queue *to, cr_job *job, size_t bytes);
/* Fails the test unless the queue has let it go exactly once. */
void free_piece(piece *p);

#endif
