/* bench: what the benchmarks share.
 *
 * Thread: the main thread, but for bench_now and bench_pin. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "bench/bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int bench_pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

int bench_cores(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count < BENCH_MAX_THREADS ? count : BENCH_MAX_THREADS;
}

typedef struct together {
    void (*work)(void *argument, int id);
    void *argument;
    pthread_barrier_t gate;
} together;

typedef struct worker {
    together *all;
    int id;
} worker;

static void *at_once(void *argument) {
    const worker *me = argument;
    bench_pin(me->id);
    pthread_barrier_wait(&me->all->gate);
    me->all->work(me->all->argument, me->id);
    pthread_barrier_wait(&me->all->gate);
    return NULL;
}

double bench_together(int threads, void (*work)(void *argument, int id), void *argument) {
    pthread_t handles[BENCH_MAX_THREADS];
    worker workers[BENCH_MAX_THREADS];
    together all = {.work = work, .argument = argument};
    pthread_barrier_init(&all.gate, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){&all, i};
        if (pthread_create(&handles[i], NULL, at_once, &workers[i]) == 0) continue;
        fprintf(stderr, "cured-bench: cannot start a thread\n");
        exit(71);
    }
    double start = bench_now();
    pthread_barrier_wait(&all.gate);
    pthread_barrier_wait(&all.gate);
    double seconds = bench_now() - start;
    for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    pthread_barrier_destroy(&all.gate);
    return seconds;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, size_t n) {
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

void bench_machine(char *text, size_t cap) {
    char model[128] = "unknown processor", line[256];
    FILE *info = fopen("/proc/cpuinfo", "re");
    while (info != NULL && fgets(line, sizeof line, info) != NULL) {
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            snprintf(model, sizeof model, "%.100s", strchr(line, ':') + 2);
            model[strcspn(model, "\n")] = '\0';
            break;
        }
    }
    if (info != NULL) fclose(info);
    struct utsname system;
    const char *release = uname(&system) == 0 ? system.release : "?";
    snprintf(text, cap, "%s, %d cores, Linux %.60s", model, bench_cores(), release);
}

void bench_command(int argc, char **argv, char *text, size_t cap) {
    size_t used = (size_t)snprintf(text, cap, "cured-bench");
    for (int i = 0; i < argc && used < cap; i++) {
        int n = snprintf(text + used, cap - used, " %s", argv[i]);
        if (n < 0) break;
        used += (size_t)n;
    }
}

void bench_json_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(out, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, out);
        }
    }
    fputc('"', out);
}

const char *bench_beside(const char *name) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return name;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, sizeof path - (size_t)(slash + 1 - path), "%s", name);
    return strdup(path);
}
