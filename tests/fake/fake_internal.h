/* fake_internal: the stand-in device as its files see it. Thread, owner: see fake_gpu.h. */
#ifndef CURED_TESTS_FAKE_FAKE_INTERNAL_H
#define CURED_TESTS_FAKE_FAKE_INTERNAL_H

#include <pthread.h>

#include "base/list.h"
#include "tests/fake/fake_gpu.h"

typedef enum kind { ALLOCATED, PINNED, ON_DEVICE } kind;

typedef struct area {
    cr_list link;
    kind kind;
    uint8_t *memory;
    size_t bytes;
    int fd;     /* of another process's memory that may be written: what is written there goes there, too; -1: none */
    int64_t at; /* where it begins in that file */
} area;

/* What was enqueued and is done when it is polled. */
typedef struct op {
    cr_gpu_fold fold; /* of a copy: data is its target */
    const void *from; /* NULL: a fold */
    void *own;        /* bytes that a put has copied; freed with it */
    size_t bytes;
    uint32_t number, polls;
    bool hangs, lies, packed;
    void (*carry_out)(cr_gpu_stream *stream, const struct op *o); /* NULL: a copy or a fold */
    size_t width, pitch, count;                                   /* of a fetch, to fold.data */
} op;

/* A stream's reduction along an axis, and its answers in one piece of memory. */
typedef struct fake_axis {
    cr_gpu_axis asked;
    bool enqueued; /* since the last idle moment */
    bool done;
    uint8_t *answers;
    size_t bytes, at[CR_GPU_AXIS_OPS];
    cr_error error; /* OUT_OF_RANGE, of output `failed` */
    uint64_t failed;
} fake_axis;

enum { MOST_OPS = 4096 };

struct cr_gpu_stream {
    cr_list link;
    cr_gpu *gpu;
    uint32_t results, begin, end;
    uint32_t packed; /* results of packs since the last idle moment */
    bool failed;
    cr_partial *partials, *pack_partials;
    fake_axis axis;
    op ops[MOST_OPS];
};

struct cr_gpu {
    cr_gpu_info info;
    cr_list link, areas, streams;
    uint32_t events; /* open */
    pthread_t thread;
    bool lost;
};

/* fake_plan.c: what is planned and what was seen, of all devices; under fake_gpu_mutex. */
typedef struct fake_gpu_state {
    fake_gpu_faults plan;
    bool armed;
    uint32_t copies, folds, polls, looks, calls, pins, puts; /* since the plan; looks: polls, too */
    fake_gpu_counts counts;
} fake_gpu_state;
extern pthread_mutex_t fake_gpu_mutex;
extern fake_gpu_state fake_gpu_now;
/* From now on calls are counted for the plan. Under the mutex. */
void fake_gpu_arm(void);
fake_gpu_faults fake_gpu_planned(void);
/* One of fake_gpu_now.counts. */
void fake_gpu_count(uint32_t *counter);
/* Counts one call: true at the wanted-th since the plan. */
bool fake_gpu_nth(uint32_t *counter, uint32_t wanted);
void fake_gpu_plan_from_environment(void);

/* Ends the process: the contract of gpu.h is broken. */
void fake_gpu_misused(const char *how);
void fake_gpu_check(const cr_gpu *gpu);
/* Memory of that kind: new, or for PINNED the given. */
cr_status fake_gpu_add(cr_gpu *gpu, kind k, void *memory, size_t bytes, void **out, cr_error *error);
void fake_gpu_drop(cr_gpu *gpu, kind k, void *memory);

/* The area of that kind where bytes at memory are, NULL: there is none. What one device pinned or allocated of host memory serves all. */
area *fake_gpu_find(const cr_gpu *gpu, kind k, const void *memory, size_t bytes);
/* Counts a call that may be the device's last. */
cr_status fake_gpu_count_call(cr_gpu *gpu, cr_error *error);
op *fake_gpu_enqueue(cr_gpu_stream *stream);
/* Whether a fold can be enqueued. */
cr_status fake_gpu_check_fold(cr_gpu *gpu, const cr_gpu_fold *fold, cr_error *error);
/* The next call's, or the next fold's of a pack, as planned; false: it fails. o: hangs and lies. */
bool fake_gpu_plan_fold(uint32_t count, op *o);

/* fake_axis.c, as gpu.h has them. */
bool fake_gpu_axis_takes(const cr_gpu_axis *axis);
cr_status fake_gpu_axis(cr_gpu_stream *stream, const cr_gpu_axis *axis, cr_error *error);
cr_status fake_gpu_axis_result(cr_gpu_stream *stream, const void *out[CR_GPU_AXIS_OPS], uint64_t *failed,
                               cr_error *error);
void fake_gpu_axis_trim(cr_gpu_stream *stream, size_t most);
void fake_gpu_axis_free(fake_axis *axis);
cr_status fake_gpu_put(cr_gpu_stream *stream, void *device, const void *host, size_t bytes, cr_error *error);
cr_status fake_gpu_fetch(cr_gpu_stream *stream, void *host, const void *device, size_t width, size_t pitch,
                         size_t count, cr_error *error);

/* fake_trace.c, as gpu.h has them. */
uint64_t fake_gpu_trace_begin(const char *name);
void fake_gpu_trace_end(uint64_t trace_id);

/* fake_shared.c, as gpu.h has them. */
cr_status fake_gpu_inspect(int descriptor, cr_error *error);
cr_status fake_gpu_import(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, bool writable, void **device,
                          cr_error *error);
/* Writes into the device's memory; where that is another process's, it must have been imported writable. */
void fake_gpu_write(const cr_gpu *gpu, void *device, const void *from, size_t bytes);
void fake_gpu_release(cr_gpu *gpu, void *device);
cr_status fake_gpu_event_open(cr_gpu *gpu, const void *handle, void **event, cr_error *error);
cr_status fake_gpu_event_look(cr_gpu *gpu, void *event, bool *fired, cr_error *error);
void fake_gpu_event_close(cr_gpu *gpu, void *event);

#endif
