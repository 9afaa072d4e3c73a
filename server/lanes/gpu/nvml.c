/* nvml: the library, and its thread. Thread: see nvml.h. Owner: the lanes. */
#include "server/lanes/gpu/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"

enum { EVERY_MS = 2000, WANTED_MS = 300000, END_MS = 1000 };

/* As nvml.h of the CUDA toolkit has them, which is not needed to build. */
typedef struct utilization {
    unsigned gpu, memory; /* percent */
} utilization;
typedef struct memory_info {
    unsigned long long total, free, used;
} memory_info;

typedef struct library {
    void *handle;
    int (*init)(void);
    int (*by_uuid)(const char *uuid, void **device);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*utilization)(void *device, utilization *rates);
    int (*memory)(void *device, memory_info *info);
} library;

struct cr_nvml {
    pthread_t thread;
    uint32_t count;
    char uuids[CR_NVML_GPUS][CR_NVML_UUID_BYTES];
    library library;             /* the thread's */
    void *devices[CR_NVML_GPUS]; /* the thread's; NULL: unknown */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends;                              /* mutex */
    uint64_t asked_ms;                      /* mutex: when somebody did last; 0: nobody has */
    cr_nvml_reading readings[CR_NVML_GPUS]; /* mutex */
};

static bool load(library *l) {
    static const struct {
        const char *name;
        size_t offset;
    } all[] = {{"nvmlInit_v2", offsetof(library, init)},
               {"nvmlDeviceGetHandleByUUID", offsetof(library, by_uuid)},
               {"nvmlDeviceGetTemperature", offsetof(library, temperature)},
               {"nvmlDeviceGetUtilizationRates", offsetof(library, utilization)},
               {"nvmlDeviceGetMemoryInfo", offsetof(library, memory)}};
    l->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!l->handle) return false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *symbol = dlsym(l->handle, all[i].name);
        if (!symbol) return false;
        memcpy((char *)l + all[i].offset, &symbol, sizeof symbol);
    }
    return l->init() == 0;
}

static cr_nvml_reading look(const library *l, void *device) {
    cr_nvml_reading r = {0};
    utilization rates = {0};
    memory_info memory = {0};
    unsigned celsius = 0;
    if (!device) return r;
    r.has_temperature = l->temperature(device, 0, &celsius) == 0;
    r.has_utilization = l->utilization(device, &rates) == 0;
    r.has_memory = l->memory(device, &memory) == 0;
    r.temperature_c = celsius;
    r.utilization_percent = rates.gpu;
    r.memory_used = memory.used;
    r.memory_bytes = memory.total;
    return r;
}

/* Until ms have passed, or for as long as nobody asks. False: it ends. */
static bool rest(cr_nvml *n, uint64_t ms) {
    const uint64_t until = cr_now_ms() + ms;
    pthread_mutex_lock(&n->mutex);
    while (!n->ends) {
        const uint64_t now = cr_now_ms();
        const bool wanted = n->asked_ms && now < n->asked_ms + WANTED_MS;
        const struct timespec then = {.tv_sec = (time_t)(until / 1000), .tv_nsec = (long)(until % 1000) * 1000000};
        if (wanted && now >= until) break;
        if (wanted)
            pthread_cond_timedwait(&n->changed, &n->mutex, &then);
        else
            pthread_cond_wait(&n->changed, &n->mutex);
    }
    const bool goes_on = !n->ends;
    pthread_mutex_unlock(&n->mutex);
    return goes_on;
}

static void *run(void *argument) {
    cr_nvml *n = argument;
    if (!rest(n, 0)) return NULL;
    if (!load(&n->library)) {
        cr_info("libnvidia-ml.so.1 cannot be used here: nothing is known of the GPUs' temperature");
        return NULL;
    }
    for (uint32_t i = 0; i < n->count; i++)
        if (n->library.by_uuid(n->uuids[i], &n->devices[i]) != 0) n->devices[i] = NULL;
    do {
        for (uint32_t i = 0; i < n->count; i++) {
            const cr_nvml_reading r = look(&n->library, n->devices[i]);
            pthread_mutex_lock(&n->mutex);
            n->readings[i] = r;
            pthread_mutex_unlock(&n->mutex);
        }
    } while (rest(n, EVERY_MS));
    return NULL;
}

cr_nvml *cr_nvml_open(char (*uuids)[CR_NVML_UUID_BYTES], uint32_t count) {
    cr_nvml *n = calloc(1, sizeof *n);
    pthread_condattr_t monotonic;
    if (!n) return NULL;
    n->count = count < CR_NVML_GPUS ? count : CR_NVML_GPUS;
    memcpy(n->uuids, uuids, n->count * sizeof *uuids);
    pthread_mutex_init(&n->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&n->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&n->thread, NULL, run, n) == 0) return n;
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mutex);
    free(n);
    return NULL;
}

cr_nvml_reading cr_nvml_read(cr_nvml *n, uint32_t gpu) {
    cr_nvml_reading reading = {0};
    pthread_mutex_lock(&n->mutex); /* held for a copy only */
    n->asked_ms = cr_now_ms();
    if (gpu < n->count) reading = n->readings[gpu];
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->mutex);
    return reading;
}

bool cr_nvml_close(cr_nvml *n) {
    struct timespec limit;
    pthread_mutex_lock(&n->mutex);
    n->ends = true;
    pthread_cond_signal(&n->changed);
    pthread_mutex_unlock(&n->mutex);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += END_MS / 1000;
    if (pthread_timedjoin_np(n->thread, NULL, &limit) != 0) return false;
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mutex);
    free(n); /* the library stays loaded: the driver's own may still use it */
    return true;
}
