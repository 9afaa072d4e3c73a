/* fake_trace: the tool that looks on at the stand-in GPU: what begins, and that it ends once. Thread: any. Owner: see fake_gpu.h. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fake/fake_internal.h"

enum { KEPT = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char name[256];
    bool open;
} traces[KEPT]; /* of number n: at n % KEPT */
static uint32_t begun, ended;

/* Each line is one write, so that a process that is killed leaves whole ones. */
static void note(char what, uint32_t number, const char *name) {
    const char *path = getenv("CURED_TEST_GPU_TRACES");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    fprintf(file, *name ? "%c %u %s\n" : "%c %u\n", what, number, name);
    fclose(file);
}

uint64_t fake_gpu_trace_begin(const char *name) {
    pthread_mutex_lock(&mutex);
    uint32_t number = ++begun;
    if (traces[number % KEPT].open) fake_gpu_misused("a thousand ranges have not ended");
    snprintf(traces[number % KEPT].name, sizeof traces[0].name, "%s", name);
    traces[number % KEPT].open = true;
    note('+', number, name);
    pthread_mutex_unlock(&mutex);
    return number;
}

void fake_gpu_trace_end(uint64_t trace_id) {
    pthread_mutex_lock(&mutex);
    if (!trace_id || trace_id > begun || !traces[trace_id % KEPT].open)
        fake_gpu_misused("a range ends that is not open");
    traces[trace_id % KEPT].open = false;
    ended++;
    note('-', (uint32_t)trace_id, "");
    pthread_mutex_unlock(&mutex);
}

uint32_t fake_gpu_traces(uint32_t *open) {
    pthread_mutex_lock(&mutex);
    uint32_t count = begun;
    *open = begun - ended;
    pthread_mutex_unlock(&mutex);
    return count;
}

const char *fake_gpu_trace_name(uint32_t number) { return traces[number % KEPT].name; }
