/* probe: what clients share of a GPU is opened and read in a process of its own first. The CUDA driver takes the 64
 * bytes of a handle, of a pointer's export or of an event for true. Wrong ones have ended the process that opened
 * them, or its GPU context at the first read. Here they end the probe, which is started anew for the next.
 *
 *   daemon: cr_gpu_probe_try ──► probe: open, read all of it, close ──► status ──► the daemon's lane opens it
 *
 * Between them stands a keeper: the same program, --probe-gpu ORDINAL LIMIT_MS. It is started before there are
 * clients, because a process that is started later would first have to close what clients have passed, and a client's
 * file may never answer that. The keeper starts the probe when it is first needed, and again when it has ended. The
 * probe has a context of its own on the GPU.
 * Thread: try on files threads, one at a time by its mutex, which may wait as long as the limit; new and free on
 * main's. Owner: the lane. */
#ifndef CURED_SERVER_LANES_GPU_PROBE_H
#define CURED_SERVER_LANES_GPU_PROBE_H

#include "engine/memory/device.h"
#include "kernels/cuda/gpu.h"

typedef struct cr_gpu_probe cr_gpu_probe;

/* program: of this daemon, which calls cr_gpu_probe_main. Without a keeper every try is UNAVAILABLE. NULL when there
 * is no memory. */
cr_gpu_probe *cr_gpu_probe_new(const char *program, uint32_t ordinal, uint64_t limit_ms);
void cr_gpu_probe_free(cr_gpu_probe *probe);
/* OK when the memory, and its event, can be opened and read to the end. */
cr_status cr_gpu_probe_try(cr_gpu_probe *probe, const cr_device_memory *memory, cr_error *error);

/* The keeper itself, on descriptor 0. Returns the process's exit status when its daemon is gone. */
int cr_gpu_probe_main(const cr_gpu_api *api, const char *ordinal, const char *limit_ms);

#endif
