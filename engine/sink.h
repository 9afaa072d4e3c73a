/* sink: where the answers of a job along an axis go, instead of into outputs that the loop sends: into memory of the client's, by
 * the thread that made them. A job with a sink never pauses for its answers, because they wait for nobody.
 *
 * Answers in a GPU's memory are those of a job whose input lies there too. That GPU's kernels put them there. What its lane answers
 * on the host goes there by `put`, which the lane sets before it folds.
 * Thread: write on any that folds, several at once; place, and what is in a GPU's memory, on that GPU's lane's; free once, on the
 * loop. Owner: the job. */
#ifndef CURED_ENGINE_SINK_H
#define CURED_ENGINE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "proto/status.h"

struct cr_kept;

typedef struct cr_sink {
    int32_t device;                 /* in whose memory all answers go; -1: the host's */
    uint32_t await_count;           /* regions of the device that have an event: */
    struct cr_kept *const *awaited; /* nothing is written before it has fired */
    /* Puts bytes of the answers of the op at that position, from byte `at` of them on. Whoever made the sink has checked that all
     * answers have room. DATA_LOSS: the memory is gone. */
    cr_status (*write)(struct cr_sink *sink, uint32_t op, uint64_t at, const void *values, size_t bytes,
                       cr_error *error);
    /* Where byte `at` of the answers of an op goes, in the device's memory. */
    void *(*place)(const struct cr_sink *sink, uint32_t op, uint64_t at);
    void (*free)(struct cr_sink *sink);
    cr_status (*put)(void *argument, void *to, const void *values, size_t bytes, cr_error *error);
    void *put_argument;
} cr_sink;

#endif
