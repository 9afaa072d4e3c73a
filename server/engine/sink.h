/* sink: where the answers of a job along an axis go, instead of into outputs that the loop sends: into memory of the client's, by
 * the thread that made them. A job with a sink never pauses for its answers, because they wait for nobody.
 *
 * Thread: write on any that folds, several at once; free once, on the loop. Owner: the job. */
#ifndef CURED_SERVER_ENGINE_SINK_H
#define CURED_SERVER_ENGINE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

typedef struct cr_sink {
    /* Puts bytes of the answers of the op at that position, from byte `at` of them on. Whoever made the sink has checked that all
     * answers have room. DATA_LOSS: the memory is gone. */
    cr_status (*write)(struct cr_sink *sink, uint32_t op, uint64_t at, const void *values, size_t bytes,
                       cr_error *error);
    void (*free)(struct cr_sink *sink);
} cr_sink;

#endif
