/* lanes: which lanes there are, by the option backend and by what the machine has; which of them take a job; and what became
 * of them.
 *
 * Thread: main's, and then the loop's. Owner: the server. */
#ifndef CURED_SERVER_LANES_LANES_H
#define CURED_SERVER_LANES_LANES_H

#include <pthread.h>

#include "base/config.h"
#include "engine/lane.h"
#include "engine/memory/device.h"
#include "engine/memory/slab.h"
#include "server/lanes/gpu/nvml.h"

enum { CR_MAX_LANES = 16 };

typedef struct cr_lanes {
    const cr_lane_type *types[CR_MAX_LANES];
    cr_lane *lanes[CR_MAX_LANES];
    uint32_t count;
    cr_seats seats;             /* of the threads of lanes and of the loop that look for work before they sleep */
    uint32_t workers;           /* of the CPU: how many may keep state of one job along an axis */
    const char *backend;        /* "cpu", or the GPUs' name, "cuda" */
    char reason[CR_ERROR_TEXT]; /* why this backend, in a sentence */
    uint32_t gpus, gpus_lost;
    const cr_gpu_api *gpu; /* NULL: none */
    uint32_t kinds;        /* CR_BY_* of the jobs that a GPU can fold */
    uint64_t gpu_from;     /* for cr_job.gpu_from */
    uint64_t slabs_from;   /* for cr_job.slabs_from */
    uint64_t chunk_bytes;  /* that a GPU takes at a time */
    cr_nvml *nvml;         /* of the GPUs, by their place without the CPU's lane; NULL: none */
    cr_device_hook hook;   /* for regions; of use when there are GPUs */
    pthread_mutex_t pins_mutex;
    cr_list pins;      /* pins_mutex: hook.c's */
    bool left_behind;  /* a thread in a driver that hung at start */
    _Atomic bool news; /* a GPU was lost and cr_lanes_check has not seen it */
    void (*wake)(void *argument);
    void *wake_argument;
} cr_lanes;

typedef struct cr_lanes_options {
    const cr_config *config;
    cr_queue *queue;
    cr_slabs *slabs;
    const cr_gpu_api *gpu; /* NULL: there is none, and no_gpu says why */
    const char *no_gpu;
    const char *probe; /* for the lanes of GPUs, see lane.h */
    /* Called on any thread when cr_lanes_check has something to see; it must only post. */
    void (*wake)(void *argument);
    void *wake_argument;
} cr_lanes_options;

/* Opens the lanes, measures them, and pins the slabs where there is a GPU. FAILED_PRECONDITION when backend asks for what is not
 * there. What was opened is closed by cr_lanes_close in either case. */
cr_status cr_lanes_open(cr_lanes *lanes, const cr_lanes_options *options, cr_error *error);
/* For the loop, a few times in gpu_timeout_ms: loses the GPUs whose driver does not return from a call. */
void cr_lanes_watch(cr_lanes *lanes);
/* After cr_queue_close: waits for their threads. The slabs are plain memory again. False: a GPU does not answer, and the process should end
 * without waiting for its driver. */
bool cr_lanes_close(cr_lanes *lanes, cr_slabs *slabs);
/* Pins for all GPUs; only where there are some. */
cr_pinner cr_lanes_pinner(cr_lanes *lanes);
/* What regions ask of the GPUs; only where there are some. */
cr_device_hook cr_lanes_device_hook(cr_lanes *lanes);
/* Whether GPUs answer a job that was made along an axis of a GPU's memory. */
bool cr_lanes_axis(const cr_lanes *lanes, const cr_job *job);
/* Says who may claim from a job that is not open to lanes yet. */
void cr_lanes_place(const cr_lanes *lanes, cr_job *job);
/* For the loop: true once after each loss of a GPU; backend and reason then say what is left. */
bool cr_lanes_check(cr_lanes *lanes);

#endif
