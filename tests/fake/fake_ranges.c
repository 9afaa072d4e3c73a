/* fake_ranges: the tool that looks on at the stand-in GPU: what begins, and that it ends once. Thread: any. Owner: see fake_gpu.h. */
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
} ranges[KEPT]; /* of number n: at n % KEPT */
static uint32_t begun, ended;

/* Each line is one write, so that a process that is killed leaves whole ones. */
static void note(char what, uint32_t number, const char *name) {
    const char *path = getenv("CURED_TEST_GPU_RANGES");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    fprintf(file, *name ? "%c %u %s\n" : "%c %u\n", what, number, name);
    fclose(file);
}

uint64_t fake_gpu_range_begin(const char *name) {
    pthread_mutex_lock(&mutex);
    uint32_t number = ++begun;
    if (ranges[number % KEPT].open) fake_gpu_misused("a thousand ranges have not ended");
    snprintf(ranges[number % KEPT].name, sizeof ranges[0].name, "%s", name);
    ranges[number % KEPT].open = true;
    note('+', number, name);
    pthread_mutex_unlock(&mutex);
    return number;
}

void fake_gpu_range_end(uint64_t range) {
    pthread_mutex_lock(&mutex);
    if (!range || range > begun || !ranges[range % KEPT].open) fake_gpu_misused("a range ends that is not open");
    ranges[range % KEPT].open = false;
    ended++;
    note('-', (uint32_t)range, "");
    pthread_mutex_unlock(&mutex);
}

uint32_t fake_gpu_ranges(uint32_t *open) {
    pthread_mutex_lock(&mutex);
    uint32_t count = begun;
    *open = begun - ended;
    pthread_mutex_unlock(&mutex);
    return count;
}

const char *fake_gpu_range(uint32_t number) { return ranges[number % KEPT].name; }
