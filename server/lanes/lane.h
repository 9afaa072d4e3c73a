/* lane: something that claims input from the run queue and folds it: CPU workers, and later a GPU's streams.
 *
 * Thread: open and close on main's; run on threads of the lane's own. Owner: main. Every lane gives the same bits for the
 * same elements, so none is ever asked for by a job. */
#ifndef CURED_SERVER_LANES_LANE_H
#define CURED_SERVER_LANES_LANE_H

#include "server/job/queue.h"

typedef struct cr_lane cr_lane;

typedef struct cr_lane_options {
    cr_queue *queue;
    uint32_t workers; /* 0: the lane decides */
    const char *isa;  /* CPU: "auto", "portable", "avx2", "avx512" */
    uint64_t spin_ns;
} cr_lane_options;

typedef struct cr_lane_info {
    const char *name;   /* "cpu" */
    const char *device; /* instruction set or GPU name */
    uint32_t workers;
    double bytes_per_second; /* folding an f32 sum, measured at open; 0: not measured */
} cr_lane_info;

typedef struct cr_lane_type {
    const char *name;
    /* Starts the lane's threads; they claim at once. */
    cr_status (*open)(const cr_lane_options *options, cr_lane **lane, cr_error *error);
    cr_lane_info (*info)(const cr_lane *lane);
    /* Waits for the threads, after cr_queue_close, and frees the lane. */
    void (*close)(cr_lane *lane);
} cr_lane_type;

extern const cr_lane_type cr_lane_cpu;

#endif
