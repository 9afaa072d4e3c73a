/* fake_internal: the stand-in device as its files see it. Thread, owner: see fake_gpu.h. */
#ifndef CURED_TESTS_FAKE_FAKE_INTERNAL_H
#define CURED_TESTS_FAKE_FAKE_INTERNAL_H

#include <pthread.h>

#include "server/base/list.h"
#include "tests/fake/fake_gpu.h"

typedef enum kind { ALLOCATED, PINNED, ON_DEVICE } kind;

typedef struct area {
    cr_list link;
    kind kind;
    uint8_t *memory;
    size_t bytes;
} area;

struct cr_gpu {
    cr_gpu_info info;
    cr_list link, areas, streams;
    uint32_t events; /* open */
    pthread_t thread;
    bool lost;
};

/* Ends the process: the contract of gpu.h is broken. */
void fake_gpu_misused(const char *how);
void fake_gpu_check(const cr_gpu *gpu);
/* Memory of that kind: new, or for PINNED the given. */
cr_status fake_gpu_add(cr_gpu *gpu, kind k, void *memory, size_t bytes, void **out, cr_error *error);
void fake_gpu_drop(cr_gpu *gpu, kind k, void *memory);

/* fake_shared.c, as gpu.h has them. */
cr_status fake_gpu_inspect(int descriptor, cr_error *error);
cr_status fake_gpu_import(cr_gpu *gpu, const void *handle, int descriptor, size_t bytes, void **device,
                          cr_error *error);
void fake_gpu_release(cr_gpu *gpu, void *device);
cr_status fake_gpu_event_open(cr_gpu *gpu, const void *handle, void **event, cr_error *error);
cr_status fake_gpu_event_look(cr_gpu *gpu, void *event, bool *fired, cr_error *error);
void fake_gpu_event_close(cr_gpu *gpu, void *event);

#endif
