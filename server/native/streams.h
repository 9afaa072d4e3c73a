/* streams: a connection's open calls by the number of their stream.
 *
 * Numbers only rise, so the table is an array in their order: a call is added at its end and found by halving, however a
 * client chooses its numbers. A call that is over leaves a gap; gaps go when the array is full, or with its end.
 * Thread: the loop's. Owner: the connection; the calls are not the table's. */
#ifndef CURED_SERVER_NATIVE_STREAMS_H
#define CURED_SERVER_NATIVE_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cr_streams_entry {
    uint32_t stream;
    void *call; /* NULL: a gap */
} cr_streams_entry;

/* Zero-initialise. */
typedef struct cr_streams {
    cr_streams_entry *entries;
    uint32_t used, room, open; /* entries, gaps among them; and calls */
} cr_streams;

/* stream must be above all before. False: there is no memory. */
bool cr_streams_add(cr_streams *streams, uint32_t stream, void *call);
/* NULL: none is open by that number. */
void *cr_streams_find(const cr_streams *streams, uint32_t stream);
/* stream must be in it. */
void cr_streams_remove(cr_streams *streams, uint32_t stream);
void cr_streams_free(cr_streams *streams);

#endif
