/* internal: the lane of one GPU, as its files see it.
 *
 *   lane.c    its thread: opens the device, keeps its streams busy, loses it, closes it
 *   work.h    what a stream does at a time (work.c, claim.c, load.c), and the five kinds of that (chunks.c, pack.c,
 *             axis.c, fetched.c, named.c)
 *   place.c   which jobs along an axis GPUs may claim from
 *   rates.h   what was measured at start, and how much of a job the GPU takes
 *   errand.c  what other threads want of the device: pinning, memory of other processes
 *   probe.h   the process that opens memory of other processes first
 *   watch.c   a call of the driver that does not return
 *   start.c   how many GPUs there are, asked of a driver that may hang
 *   trace.c   how a tool that looks on sees its jobs
 *
 * Thread: the lane's, but for the members under mutex and those that are set before it runs. Owner: main. */
#ifndef CURED_SERVER_LANES_GPU_INTERNAL_H
#define CURED_SERVER_LANES_GPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/job_axis.h"
#include "engine/lane.h"
#include "engine/memory/pin.h"
#include "server/lanes/gpu/lane.h"
#include "server/lanes/gpu/probe.h"
#include "server/lanes/gpu/rates.h"
#include "server/lanes/gpu/work.h"

enum {
    CR_GPU_INPUTS = 4,   /* kernels asked for by name at a time: each has its whole input on the device */
    CR_EVENTS_ASKED = 8, /* at a turn: asking one takes a microsecond */
};

/* The input of a job that names a kernel, as far as it is on the device. */
struct cr_gpu_input {
    cr_job *job; /* held; NULL: free */
    uint8_t *device;
    uint64_t bytes;
    uint32_t ran; /* of the job's ops */
};

struct cr_gpu_lane {
    cr_lane_options options;
    const cr_gpu_api *api; /* watched */
    cr_gpu_api watched;
    _Atomic uint64_t call_ns; /* see watch.c */
    cr_gpu_probe *probe;      /* NULL: none */
    cr_gpu *gpu;
    cr_gpu_info device;
    cr_gpu_rates rates;
    pthread_t thread;
    cr_gpu_stream *kernel_stream;
    cr_gpu_input inputs[CR_GPU_INPUTS];
    bool ops_left;         /* a kernel of theirs has answered some of its job's ops */
    uint64_t queued_bytes; /* of all works: those that come over the bus */
    bool silent;           /* no call of the device may be made now */
    cr_lookout lookout;
    cr_gpu_pace pace, axis_pace;
    uint32_t waiting;  /* jobs seen in line that wait for an event */
    uint32_t ask_from; /* the first of them to be asked next time */
    uint32_t ask_to;   /* behind the last that was asked */
    uint32_t asked_count;
    struct cr_gpu_event {
        struct cr_kept *kept; /* used */
        cr_error error;       /* NOT OK: it cannot be waited for; the job fails */
        bool fired;
    } events[CR_EVENTS_ASKED + 1 + CR_AXIS_MAX_OPS]; /* looked at for the claims of this turn: of a job all or none */
    const cr_error *event_error;                     /* of the job that was claimed; NULL: none */
    const cr_gpu_kind *claimed_kind;                 /* of that job */
    uint64_t gather_bytes;                           /* what may still join the claims that are taken now */
    cr_gpu_phases phases;
    cr_lane_meter meter;
    _Atomic uint64_t errors[CR_GPU_ERRORS];
    cr_partial partial;    /* of the claim that ends */
    cr_job_axis_hand hand; /* of what the lane folds itself; empty between claims */
    _Atomic bool hung;     /* it does not answer: it is not even closed */
    _Atomic bool stuck;    /* its thread is in a call that does not return */
    cr_list pins;          /* of cr_pin: what is pinned */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool opened, started, ended, over; /* mutex; over: the thread makes no more calls */
    bool given_up;             /* mutex: it was not opened in time; its thread stops there, and it is never freed */
    _Atomic bool attended;     /* the loop runs, and looks whether calls of the driver return */
    cr_status start_status;    /* mutex */
    cr_error start_error;      /* mutex */
    cr_list errands;           /* mutex */
    struct cr_errand *current; /* mutex: the one that is being done */
    _Atomic bool asking;       /* asked is not empty: no work starts until none is RUNNING */
    _Atomic bool lost;
    cr_error lost_error; /* written before lost is set */

    uint32_t work_count;
    cr_gpu_work works[];
};

/* ---- lane.c ---- */

/* Counts an error of the GPU. */
static inline void cr_gpu_count_error(cr_gpu_lane *lane, cr_gpu_error kind) { cr_meter_add(&lane->errors[kind], 1); }
/* Works that are RUNNING. */
uint32_t cr_gpu_running(const cr_gpu_lane *lane);

/* ---- watch.c ---- */

/* A table that makes the same calls, watched, on the thread that has begun for the lane. */
void cr_gpu_watch_table(const cr_gpu_api *api, cr_gpu_api *watched);
void cr_gpu_watch_begin(cr_gpu_lane *lane);
/* Whether the lane's thread is in no call of the device, or the lane was taken from it. */
bool cr_gpu_between_calls(const cr_gpu_lane *lane);
/* For the loop: takes the lane from its thread if that has been in one call for longer than the limit. True: the lane
 * is the caller's. */
bool cr_gpu_watch_take(cr_gpu_lane *lane);

/* ---- named.c ---- */

/* Runs the kernels whose input is complete, and forgets the jobs that were stopped. True when there was something. */
bool cr_gpu_inputs_look(cr_gpu_lane *lane);
/* The device is lost. */
void cr_gpu_inputs_lose(cr_gpu_lane *lane);

/* ---- start.c ---- */

/* A condition whose timed waits end at times of cr_gpu_until. */
void cr_gpu_cond_init(pthread_cond_t *changed);
struct timespec cr_gpu_until(uint64_t ms);

/* ---- trace.c ---- */

enum { CR_GPU_TRACE_TEXT = 256 };
/* Under the queue's lock. */
void cr_gpu_trace_name(const cr_job *job, char text[CR_GPU_TRACE_TEXT]);
/* Lets a tool that looks on see the jobs that GPUs take from now on; where none does, nothing is paid. */
void cr_gpu_trace(cr_queue *queue, const cr_gpu_api *api);

/* ---- errand.c ---- */

/* The lane was taken from its thread: whoever waits for the thread is let go. */
void cr_gpu_errands_lose(cr_gpu_lane *lane);
/* Does what was asked for, while no work is RUNNING. With refuse it says that the device is lost. */
void cr_gpu_errands_run(cr_gpu_lane *lane, bool refuse);
void cr_gpu_unpin_all(cr_gpu_lane *lane);

#endif
