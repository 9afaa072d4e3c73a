/* internal: the lane of one GPU, as its files see it.
 *
 *   lane.c   its thread: opens the device, keeps its streams busy, loses it, closes it
 *   batch.c  one stream's work: claims, their way to the device, their partials' way back
 *   pack.c   a stream's work when the claims are small, of one job or of many
 *   axis.c   a stream's work when the answers are an array
 *   named.c  jobs that name a kernel: their whole input on the device
 *   start.c  how many GPUs there are, asked of a driver that may hang
 *   trace.c  how a tool that looks on sees its jobs
 *   watch.c  a call of the driver that does not return
 *   ask.c    what other threads want of the device: pinning, memory of other processes
 *
 * Thread: everything is the lane thread's, but for the members under mutex and those set before it runs. Owner: main. */
#ifndef CURED_SERVER_LANES_GPU_INTERNAL_H
#define CURED_SERVER_LANES_GPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/job/axis.h"
#include "server/lanes/gpu/lane.h"
#include "server/lanes/gpu/probe.h"
#include "server/lanes/gpu/rates.h"
#include "server/lanes/lane.h"
#include "server/memory/pin.h"

enum {
    CR_BATCH_CLAIMS = 64,               /* of one job */
    CR_BATCH_MANY = CR_GPU_BATCH_FOLDS, /* of small jobs */
    CR_GPU_RUNS = 4,            /* kernels asked for by name at a time: each has its whole input on the device */
    CR_BATCH_SLACK = 64 * 1024, /* a device buffer's room for aligning runs of claims */
    CR_AXIS_KEEP_BYTES = 8 * 1024 * 1024, /* of answers along an axis, a stream's */
    CR_EVENTS_ASKED = 8,                  /* at a turn: asking one takes a microsecond */
};

/* What becomes of a batch's claims. */
typedef enum cr_batch_fate {
    CR_BATCH_GOOD,
    CR_BATCH_UNFIT,  /* this GPU cannot fold this job: the CPU does */
    CR_BATCH_BROKEN, /* their bytes could not be read: the job fails */
} cr_batch_fate;

/* The input of a job that names a kernel, as far as it is on the device. */
typedef struct cr_gpu_run {
    cr_job *job; /* held; NULL: free */
    uint8_t *device;
    uint64_t bytes;
} cr_gpu_run;

/* Claims of one job on one stream, or of many small ones. */
typedef struct cr_gpu_batch {
    cr_gpu_stream *stream;
    uint8_t *device, *staging;
    bool busy;
    bool many; /* each claim is a fold of the device's batch, and its job's own business: fate is that of all of them */
    cr_batch_fate fate;
    cr_error error;  /* unless GOOD */
    cr_gpu_run *run; /* copied there, and not folded; NULL: folded */
    uint32_t claim_count, fold_count, copy_count;
    uint64_t bytes, queued_bytes; /* queued_bytes: those that come over the bus */
    uint64_t claimed_ns, started_ns;
    cr_claim claims[CR_BATCH_MANY];
    cr_gpu_fold folds[CR_BATCH_MANY];
    cr_gpu_copy copies[CR_GPU_COPIES]; /* to be enqueued together */
    /* Of a job along an axis. */
    cr_gpu_axis axis;
    uint64_t failed, fetched,
        fetch_count; /* the output whose integer does not fit; its elements that were fetched, and are */
    bool fetching, emitting;
    bool parked; /* its next elements are not fetched before the lane has done what others ask of the device */
    const void *answers[CR_GPU_AXIS_OPS]; /* that are to be copied to the job's outputs */
    uint64_t emitted;                     /* of claim number emit_claim */
    uint32_t emit_claim;
    cr_partial column; /* of those */
} cr_gpu_batch;

typedef struct cr_gpu_lane {
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
    cr_gpu_run runs[CR_GPU_RUNS];
    uint64_t queued_bytes; /* in batches under way */
    uint32_t waiting;      /* jobs seen in line that wait for an event */
    uint32_t ask_from;     /* the first of them to be asked next time */
    uint32_t asked_count;
    struct {
        struct cr_kept *kept; /* used */
        cr_error error;       /* NOT OK: it cannot be waited for; the job fails */
        bool fired;
    } events[CR_EVENTS_ASKED];   /* looked at for the claims of this turn */
    const cr_error *event_error; /* of the job that was claimed; NULL: none */
    uint64_t gather_bytes;       /* what may still join the claims that are taken now */
    cr_gpu_phases phases;
    cr_partial partial; /* of the claim that ends */
    cr_axis_hand hand;  /* of what the lane folds itself; empty between claims */
    _Atomic bool hung;  /* it does not answer: it is not even closed */
    _Atomic bool stuck; /* its thread is in a call that does not return */
    cr_list pins;       /* of cr_pin: what is pinned */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool opened, started, ended, over; /* mutex; over: the thread makes no more calls */
    bool given_up;          /* mutex: it was not opened in time; its thread stops there, and it is never freed */
    _Atomic bool attended;  /* the loop runs, and looks whether calls of the driver return */
    cr_status start_status; /* mutex */
    cr_error start_error;   /* mutex */
    cr_list asked;          /* mutex: of cr_ask */
    struct cr_ask *current; /* mutex: the one that is being done */
    _Atomic bool asking;    /* asked is not empty: nothing new is begun until nothing is under way */
    _Atomic bool lost;
    cr_error lost_error; /* written before lost is set */

    uint32_t batch_count;
    cr_gpu_batch batches[];
} cr_gpu_lane;

/* ---- batch.c ---- */

/* The batch's stream and buffers. What it has is given back by cr_gpu_batch_close, whatever open returned. */
cr_status cr_gpu_batch_open(cr_gpu_lane *lane, cr_gpu_batch *batch, cr_error *error);
void cr_gpu_batch_close(cr_gpu_lane *lane, cr_gpu_batch *batch);
/* Claims something and sets it under way; false when there is nothing it wants. */
bool cr_gpu_batch_start(cr_gpu_lane *lane, cr_gpu_batch *batch);
/* Ends the batch if it is done: true. */
bool cr_gpu_batch_poll(cr_gpu_lane *lane, cr_gpu_batch *batch);
/* The device is gone: its claims go back. */
void cr_gpu_batch_abandon(cr_gpu_lane *lane, cr_gpu_batch *batch);

/* For pack.c. Whether a GPU may copy the claim from where it is. */
bool cr_gpu_batch_direct(const cr_claim *claim);
/* Reads bytes of a claim, from `at` on, into pinned memory. */
cr_status cr_gpu_batch_stage(const cr_claim *claim, uint64_t at, void *to, size_t bytes, cr_error *error);
/* Whether what was read from a client's mapping without the guard was the file's to the end. */
cr_status cr_gpu_batch_checked(const cr_claim *claim, cr_error *error);
/* What a GPU could not fold: claims of one job go to the CPU, or end it. */
void cr_gpu_batch_unfit(cr_gpu_lane *lane, const cr_claim *claims, uint32_t count, const cr_error *error);

/* For axis.c. Brings a claim's bytes to where the device reads them: `at` in the batch's buffer, or where they are. Some may be only
 * noted until cr_gpu_batch_copy enqueues all that is. */
const uint8_t *cr_gpu_batch_load(cr_gpu_lane *lane, cr_gpu_batch *batch, const cr_claim *claim, uint64_t at);
void cr_gpu_batch_copy(cr_gpu_lane *lane, cr_gpu_batch *batch);
/* cr_gpu_batch_checked of all claims; false: batch->error says why. */
bool cr_gpu_batch_all_checked(cr_gpu_batch *batch);

/* ---- axis.c ---- */

/* Sets a batch's claims, whole blocks of one job along an axis, under way. */
void cr_gpu_axis_start(cr_gpu_lane *lane, cr_gpu_batch *batch);
/* How many bytes to take of a job in this device's memory now. */
uint64_t cr_gpu_axis_wants(const cr_gpu_lane *lane, const cr_job *job);
/* What was under way is done. True: the batch ends, with what its fate says, and the answers of a good one have gone out; false: more is
 * under way. */
bool cr_gpu_axis_done(cr_gpu_lane *lane, cr_gpu_batch *batch);

/* Of a parked batch: goes on; false while others still wait. */
bool cr_gpu_axis_unpark(cr_gpu_lane *lane, cr_gpu_batch *batch);

/* ---- pack.c ---- */

/* Whether a job is small: what it has to claim can be one of a batch. Under the queue's lock. */
bool cr_gpu_many_fits(const cr_job *job);
/* Sets a batch's claims, all small, under way. Some may be given back meanwhile; false: none is left. */
bool cr_gpu_many_start(cr_gpu_lane *lane, cr_gpu_batch *batch);
void cr_gpu_many_end(cr_gpu_lane *lane, cr_gpu_batch *batch);
void cr_gpu_many_abandon(cr_gpu_lane *lane, cr_gpu_batch *batch);

/* ---- watch.c ---- */

/* A table that makes the same calls, watched, on the thread that has begun for the lane. */
void cr_gpu_watch_table(const cr_gpu_api *api, cr_gpu_api *watched);
void cr_gpu_watch_begin(cr_gpu_lane *lane);
/* For the loop: takes the lane from its thread if that has been in one call for longer than the limit. True: it is the caller's. */
bool cr_gpu_watch_take(cr_gpu_lane *lane);

/* ---- named.c ---- */

/* The run of job; of NULL: a free one. NULL: there is none. */
cr_gpu_run *cr_gpu_run_of(cr_gpu_lane *lane, const cr_job *job);
bool cr_gpu_run_wants(cr_gpu_lane *lane, const cr_job *job);
/* The run of a job with a claim in hand, begun if need be. NULL: it cannot be. */
cr_gpu_run *cr_gpu_run_begin(cr_gpu_lane *lane, cr_job *job, cr_error *error);
/* All of the input is in this device's memory. */
cr_status cr_gpu_run_in_place(cr_gpu_lane *lane, cr_job *job, const void *data, uint64_t bytes, cr_error *error);
/* Runs what is complete, and forgets what was stopped. True when there was something. */
bool cr_gpu_run_look(cr_gpu_lane *lane);
/* The device is gone. */
void cr_gpu_run_lose(cr_gpu_lane *lane);

/* ---- start.c ---- */

/* A condition whose timed waits end at times of cr_gpu_until. */
void cr_gpu_cond_init(pthread_cond_t *changed);
struct timespec cr_gpu_until(uint64_t ms);

/* ---- trace.c ---- */

enum { CR_GPU_RANGE_TEXT = 256 };
/* Under the queue's lock. */
void cr_gpu_range_name(const cr_job *job, char text[CR_GPU_RANGE_TEXT]);
/* Lets a tool that looks on see the jobs that GPUs take from now on; where none does, nothing is paid. */
void cr_gpu_trace(cr_queue *queue, const cr_gpu_api *api);

/* ---- ask.c ---- */

/* The lane is taken from its thread: who waits for that is let go. */
void cr_gpu_ask_lose(cr_gpu_lane *lane);
/* Does what was asked for; while nothing is under way. With refuse: says that the device is gone. */
void cr_gpu_answer(cr_gpu_lane *lane, bool refuse);
void cr_gpu_unpin_all(cr_gpu_lane *lane);

#endif
