/* lane: what a GPU's lane offers beside the vtable of engine/lane.h.
 *
 * Thread: any but the lane's own. Owner: main. */
#ifndef CURED_SERVER_LANES_GPU_LANE_H
#define CURED_SERVER_LANES_GPU_LANE_H

#include "engine/lane.h"
#include "engine/memory/device.h"
#include "engine/memory/pin.h"
#include "server/lanes/gpu/rates.h"

/* Where the time of small jobs goes, summed up: from the claim until the launch has returned, from there until the
 * answers are seen, from there until the jobs are told. */
typedef struct cr_gpu_phases {
    _Atomic uint64_t packs, jobs, launch_ns, device_ns, end_ns;
} cr_gpu_phases;
cr_gpu_phases *cr_lane_gpu_phases(cr_lane *lane);

/* Whether GPUs answer every claim of a job that was made along an axis of a GPU's memory (cr_job_axis_make_on_device). */
bool cr_gpu_axis_takes_claims(const cr_gpu_api *api, const cr_job *job);

/* What placing depends on beside the job. */
typedef struct cr_gpu_placing {
    uint32_t kinds; /* CR_BY_*: who may claim what a GPU can do */
    uint32_t workers;
    uint64_t gpu_from, chunk_bytes;
} cr_gpu_placing;
/* Lets GPUs claim from a job along an axis, whose input is in host memory, if they answer it and its blocks can be
 * claimed whole. */
void cr_gpu_axis_place(const cr_gpu_api *api, cr_job *job, const cr_gpu_placing *placing);

/* The api's count, but no longer than the limit: 0, then, and *hung: a thread is left behind in the driver. */
uint32_t cr_gpu_count(const cr_gpu_api *api, uint64_t limit_ms, bool *hung, cr_error *why);

/* For lanes that cr_lane_gpu opened. Its open fails with DEADLINE_EXCEEDED, and with nothing else so, when a thread is
 * left behind in the driver: then the process should end without waiting for that. */
cr_pinner cr_lane_gpu_pinner(cr_lane *lane);
const cr_gpu_rates *cr_lane_gpu_rates(const cr_lane *lane);
const cr_gpu_info *cr_lane_gpu_device(const cr_lane *lane);
/* For the loop, now and then: true when the lane was lost just now, for a call of its driver does not return. */
bool cr_lane_gpu_watch(cr_lane *lane);
/* Whether the loop calls that from now on. Before and afterwards, whoever waits for the lane's thread does so
 * meanwhile. */
void cr_lane_gpu_attend(cr_lane *lane, bool attended);
/* Once the queue is closed: waits until the lane has ended, or a call of its driver does not return. False when its
 * device does not answer: then the process should end without waiting for the driver. */
bool cr_lane_gpu_await_end(cr_lane *lane);
/* Memory of another process, and its event if there is one (NULL otherwise), as cr_gpu_api's import and event_open. */
cr_status cr_lane_gpu_import(cr_lane *lane, const cr_device_memory *source, void **memory, void **event,
                             cr_error *error);
void cr_lane_gpu_release(cr_lane *lane, void *memory, void *event);

#endif
