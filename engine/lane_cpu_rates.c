/* lane_cpu_rates: threads that begin together, each on a share of its own. Thread: see the header. Owner: the caller. */
#include "engine/lane_cpu_rates.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/feed.h"
#include "engine/worker.h"
#include "kernels/cpu/fold.h"

enum {
    ROUNDS = 5,
    SHARED_BYTES = 2 * 1024 * 1024, /* of shared memory, for each thread */
};

double cr_cpu_rate_hot(void) {
    enum { BYTES = 1 << 20 };
    float *data = malloc(BYTES);
    if (!data) return 0;
    for (size_t i = 0; i < BYTES / sizeof *data; i++) data[i] = (float)(i % 1000) - 499.5f;
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 5; round++) {
        cr_partial partial;
        cr_partial_init(&partial, CR_F32, CR_FAM_SUM);
        uint64_t start = cr_now_ns();
        cr_cpu_fold(&partial, data, BYTES / sizeof *data, 0);
        uint64_t took = cr_now_ns() - start;
        if (took < best) best = took;
    }
    free(data);
    return best ? BYTES * 1e9 / (double)best : 0;
}

/* What a thread does once all are ready. */
typedef enum work { FOLD, READ_AND_FOLD, READ } work;

typedef struct share {
    pthread_t thread;
    atomic_uint *ready;
    atomic_bool *go;
    work what;
    uint8_t *data; /* FOLD: what is folded; READ…: where a piece is read to */
    size_t bytes, piece;
    int descriptor; /* READ…: the shared memory, of bytes */
    bool failed;
    uint64_t end_ns, busy_ns; /* busy_ns: of its core */
} share;

/* Out of the caches, where the input of a large job is not either. */
static void flush(const uint8_t *data, size_t bytes) {
#if defined(__x86_64__)
    for (size_t i = 0; i < bytes; i += 64) __builtin_ia32_clflush(data + i);
#else
    (void)data;
    (void)bytes;
#endif
}

/* Writes the shared memory: a map of it would end the process where there is no memory. */
static bool fill_shared(const share *own) {
    for (size_t at = 0; at < own->bytes; at += own->piece)
        if (pwrite(own->descriptor, own->data, own->piece, (off_t)at) != (ssize_t)own->piece) return false;
    const uint8_t *map = mmap(NULL, own->bytes, PROT_READ, MAP_SHARED, own->descriptor, 0);
    if (map == MAP_FAILED) return false;
    flush(map, own->bytes);
    munmap((void *)(uintptr_t)map, own->bytes);
    return true;
}

static void run_share(share *own, cr_partial *partial) {
    const size_t step = own->what == FOLD ? own->bytes : own->piece;
    for (size_t at = 0; at < own->bytes; at += step) {
        if (own->what != FOLD && pread(own->descriptor, own->data, step, (off_t)at) != (ssize_t)step)
            own->failed = true;
        if (own->what != READ) cr_cpu_fold(partial, own->data, step / sizeof(float), 0);
    }
}

static uint64_t core_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *share_main(void *argument) {
    share *own = argument;
    cr_partial partial;
    cr_partial_init(&partial, CR_F32, CR_FAM_SUM);
    memset(own->data, 0x3f, own->what == FOLD ? own->bytes : own->piece);
    if (own->what == FOLD)
        flush(own->data, own->bytes);
    else
        own->failed = !fill_shared(own);
    atomic_fetch_add(own->ready, 1);
    while (!atomic_load(own->go)) sched_yield();
    const uint64_t begun = core_ns();
    run_share(own, &partial);
    own->busy_ns = core_ns() - begun;
    own->end_ns = cr_now_ns();
    return NULL;
}

/* Runs as many of the shares as it has threads for, which it returns; *took: until the last of them ends. */
static uint32_t run_shares(share *shares, uint32_t count, uint64_t *took) {
    atomic_uint ready = 0;
    atomic_bool go = false;
    uint32_t n = 0;
    for (; n < count; n++) {
        shares[n].ready = &ready;
        shares[n].go = &go;
        if (pthread_create(&shares[n].thread, NULL, share_main, &shares[n]) != 0) break;
    }
    while (atomic_load(&ready) < n) sched_yield();
    uint64_t start = cr_now_ns(), end = start;
    atomic_store(&go, true);
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(shares[i].thread, NULL);
        if (shares[i].end_ns > end) end = shares[i].end_ns;
    }
    *took = end - start;
    return n;
}

double cr_cpu_rate_all(const cr_lane_options *o) {
    const size_t bytes = o->scratch_bytes / o->workers / 4096 * 4096;
    share *shares = bytes ? calloc(o->workers, sizeof *shares) : NULL;
    if (!shares) return 0;
    for (uint32_t i = 0; i < o->workers; i++)
        shares[i] = (share){.what = FOLD, .data = (uint8_t *)o->scratch + i * bytes, .bytes = bytes};
    uint64_t took;
    const uint32_t n = run_shares(shares, o->workers, &took);
    free(shares);
    return took ? (double)bytes * n * 1e9 / (double)took : 0;
}

/* Each thread reads a memfd of its own, piece by piece. Time of cores counts: another program that is busy now would have those
 * win who have more threads. */
static double time_reading(const cr_lane_options *o, work what, uint32_t threads, size_t piece) {
    if (threads > o->scratch_bytes / piece) threads = (uint32_t)(o->scratch_bytes / piece);
    share *shares = threads ? calloc(threads, sizeof *shares) : NULL;
    double best = 0;
    uint64_t took;
    if (!shares) return 0;
    for (uint32_t i = 0; i < threads; i++)
        shares[i] = (share){.what = what,
                            .data = (uint8_t *)o->scratch + i * piece,
                            .bytes = SHARED_BYTES,
                            .piece = piece,
                            .descriptor = memfd_create("cured-rates", MFD_CLOEXEC)};
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t n = run_shares(shares, threads, &took);
        double rate = 0;
        for (uint32_t i = 0; i < n; i++)
            if (!shares[i].failed && shares[i].busy_ns) rate += SHARED_BYTES * 1e9 / (double)shares[i].busy_ns;
        if (rate > best) best = rate;
    }
    for (uint32_t i = 0; i < threads; i++) close(shares[i].descriptor);
    free(shares);
    return best;
}

double cr_cpu_rate_shared(const cr_lane_options *o) {
    return time_reading(o, READ_AND_FOLD, o->workers, CR_WORKER_FETCH_BYTES);
}

double cr_cpu_rate_slabs(const cr_lane_options *o) {
    return time_reading(o, READ, o->workers < CR_FEED_SLOTS ? o->workers : CR_FEED_SLOTS, CR_SLAB_BYTES);
}
