/* cured-bench lane: the lanes of the daemon on one array in host memory, without the wire: the CPU's workers alone, the GPU's
 * lane alone, and both, as `auto` places them; input in slabs that are filled again as they come back, in a stack's order as the daemon's
 * (by nobody: the time is the lane's); one small job after the other, with the lane's share of the time; and many small jobs at once.
 * All answers must be the right bits.
 *
 * In each round every row has a turn; figures are medians over rounds. The pinned copy rate of the same run is the floor.
 *
 * Thread: main; the lanes have their own. Owner: this file owns the bench. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/config.h"
#include "base/log.h"
#include "bench/bench.h"
#include "bench/options.h"
#include "bench/rows.h"
#include "server/lanes/gpu/lane.h"
#include "server/lanes/lanes.h"

extern const cr_gpu_api CURED_GPU_API;

enum { ROUNDS_MAX = 99, SLABS = 64, SMALL = 4096, SMALL_JOBS = 2000, SMALL_WARM = 50, CROWD = 1024, PIECE = 64 << 20 };

typedef enum row { PINNED_CPU, PINNED_GPU, PINNED_AUTO, PLAIN_GPU, PLAIN_AUTO, SLABS_GPU, ROWS } row;
static const char *const row_names[ROWS] = {"pinned, cpu", "pinned, gpu", "pinned, auto",
                                            "plain, gpu",  "plain, auto", "slabs, gpu"};

static struct bench {
    cr_queue *queue;
    cr_slabs *slabs;
    cr_lanes lanes;
    cr_config config;
    uint8_t *data;
    size_t bytes;
    int rounds;
    bench_table table;
    atomic_uint wakes, released;
    cr_value answer; /* of the first run */
    unsigned wrong;
    double copy_rate;
    double slab_sums[SLABS]; /* of the first pieces of the array, which are what the slabs hold */
    pthread_mutex_t mutex;
    unsigned free_slabs[SLABS], free_count; /* mutex */
} b = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void woken(void *argument) { atomic_fetch_add((atomic_uint *)argument, 1); }

static void keep(cr_segment *segment) {
    (void)segment;
    atomic_fetch_add(&b.released, 1);
}

/* Segments are let go a moment after their jobs are done, and must not be used again before. */
static void await_released(unsigned count) {
    while (atomic_load(&b.released) < count) {
    }
    atomic_store(&b.released, 0);
}

/* One of the array's first pieces, offered as often as it comes back. */
typedef struct slab {
    cr_segment segment;
    unsigned number;
} slab;

static void slab_back(cr_segment *segment) {
    pthread_mutex_lock(&b.mutex);
    b.free_slabs[b.free_count++] = cr_container(segment, slab, segment)->number;
    pthread_mutex_unlock(&b.mutex);
}

/* -1: none is free. */
static int take_slab(void) {
    pthread_mutex_lock(&b.mutex);
    int number = b.free_count ? (int)b.free_slabs[--b.free_count] : -1;
    pthread_mutex_unlock(&b.mutex);
    return number;
}

/* Sleeps between looks, but for small jobs: there are not more cores than workers. */
static cr_job *await_job(bool spin) {
    const struct timespec nap = {.tv_nsec = 20000};
    cr_list list;
    while (atomic_load(&b.wakes) == 0)
        if (!spin) nanosleep(&nap, NULL);
    atomic_store(&b.wakes, 0);
    cr_queue_completed(b.queue, &list);
    return cr_container(cr_list_pop(&list), cr_job, done);
}

static void check(cr_job *job, bool small) {
    static cr_value small_answer;
    cr_value value;
    memset(&value, 0, sizeof value);
    cr_partial_finish(&job->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    cr_value *first = small ? &small_answer : &b.answer;
    if (!first->len) *first = value;
    if (job->error.code != CR_OK || memcmp(value.bytes, first->bytes, sizeof value.bytes) != 0) b.wrong++;
}

static cr_job *new_job(uint32_t kinds) {
    cr_job *job = cr_job_new(CR_F32, CR_FAM_SUM);
    if (!job) abort();
    job->kinds = kinds;
    job->gpu_from = kinds == CR_BY_GPU ? 1 : b.lanes.gpu_from;
    return job;
}

/* Seconds for [0, bytes) of the array as one piece. */
static double run_whole(uint32_t kinds, size_t bytes, bool pinned) {
    cr_job *job = new_job(kinds);
    cr_segment segment;
    cr_segment_init(&segment, job, b.data, 0);
    segment.aligned = true;
    segment.pinned = pinned;
    segment.release = keep;
    double start = bench_now();
    cr_queue_set_total(b.queue, job, bytes);
    cr_queue_add(b.queue, &segment);
    cr_queue_ready(b.queue, &segment, bytes, true);
    cr_queue_unhold(b.queue, job);
    cr_job *done = await_job(bytes == SMALL);
    double took = bench_now() - start;
    check(done, bytes == SMALL);
    cr_job_free(done);
    await_released(1);
    return took;
}

static double run_small(void *context, int which) {
    (void)context, (void)which;
    return run_whole(CR_BY_GPU, SMALL, true) * 1e6;
}

/* Microseconds for CROWD small jobs that wait together, each. */
static double run_crowd(void *context, int which) {
    (void)context, (void)which;
    static cr_segment segments[CROWD];
    double start = bench_now();
    for (unsigned i = 0; i < CROWD; i++) {
        cr_job *job = new_job(CR_BY_GPU);
        cr_segment_init(&segments[i], job, b.data, 0);
        segments[i].pinned = true;
        segments[i].release = keep;
        cr_queue_add(b.queue, &segments[i]);
        cr_queue_ready(b.queue, &segments[i], SMALL, true);
        cr_queue_unhold(b.queue, job);
    }
    for (unsigned got = 0; got < CROWD;) {
        cr_list list;
        cr_queue_completed(b.queue, &list);
        for (cr_list *node; (node = cr_list_pop(&list)); got++) {
            cr_job *job = cr_container(node, cr_job, done);
            check(job, true);
            cr_job_free(job);
        }
    }
    double took = bench_now() - start;
    atomic_store(&b.wakes, 0);
    await_released(CROWD);
    return took * 1e6 / CROWD;
}

/* Seconds for as many bytes, 1 MiB at a time, at most SLABS of them out. The values are whole numbers, so that their sum is known. */
static double run_slabs(void) {
    static slab slabs[SLABS];
    cr_job *job = new_job(CR_BY_GPU);
    double sum = 0, start = bench_now();
    b.free_count = 0;
    for (unsigned i = SLABS; i-- > 0;) b.free_slabs[b.free_count++] = i;
    for (size_t at = 0; at + CR_SLAB_BYTES <= b.bytes;) {
        int number = take_slab();
        if (number < 0) continue;
        slab *s = &slabs[number];
        cr_segment_init(&s->segment, job, b.data + (size_t)number * CR_SLAB_BYTES, at / sizeof(float));
        s->number = (unsigned)number;
        s->segment.pinned = true;
        s->segment.release = slab_back;
        cr_queue_add(b.queue, &s->segment);
        cr_queue_ready(b.queue, &s->segment, CR_SLAB_BYTES, true);
        sum += b.slab_sums[number];
        at += CR_SLAB_BYTES;
    }
    cr_queue_unhold(b.queue, job);
    cr_job *done = await_job(false);
    double took = bench_now() - start, got;
    cr_value value;
    for (unsigned back = 0; back < SLABS;) back += take_slab() >= 0; /* some come a moment after the job is done */
    cr_partial_finish(&done->partial, CR_OP_SUM, &(cr_finish_opts){0}, &value);
    memcpy(&got, value.bytes, sizeof got);
    if (done->error.code != CR_OK || got != sum) b.wrong++;
    cr_job_free(done);
    return took;
}

/* Seconds. */
static double run_row(void *context, int which) {
    (void)context;
    switch ((row)which) {
        case PINNED_CPU:
            return run_whole(CR_BY_CPU, b.bytes, true);
        case PINNED_GPU:
            return run_whole(CR_BY_GPU, b.bytes, true);
        case PINNED_AUTO:
            return run_whole(CR_BY_CPU | CR_BY_GPU, b.bytes, true);
        case PLAIN_GPU:
            return run_whole(CR_BY_GPU, b.bytes, false);
        case PLAIN_AUTO:
            return run_whole(CR_BY_CPU | CR_BY_GPU, b.bytes, false);
        case SLABS_GPU:
            return run_slabs();
        case ROWS:
            break;
    }
    return 0;
}

/* Bytes a second of nothing but copies of pinned memory, in pieces of 64 MiB. */
static cr_status measure_copies(cr_error *error) {
    const cr_gpu_api *api = &CURED_GPU_API;
    cr_gpu *gpu = NULL;
    cr_gpu_stream *stream = NULL;
    void *device = NULL, *host = NULL;
    cr_status status = api->open(0, &gpu, error);
    if (status == CR_OK) status = api->stream_open(gpu, 1, &stream, error);
    if (status == CR_OK) status = api->device_alloc(gpu, PIECE, &device, error);
    if (status == CR_OK) status = api->host_alloc(gpu, PIECE, &host, error);
    if (status == CR_OK) memset(host, 1, PIECE);
    for (int round = 0; round < 3 && status == CR_OK; round++) {
        double start = bench_now();
        for (int i = 0; i < 16 && status == CR_OK; i++) status = api->copy(stream, device, host, PIECE, error);
        for (bool idle = false; status == CR_OK && !idle;) status = api->poll(stream, &idle, error);
        double rate = 16.0 * PIECE / (bench_now() - start);
        if (rate > b.copy_rate) b.copy_rate = rate;
    }
    if (stream) api->stream_close(stream);
    if (device) api->device_free(gpu, device);
    if (host) api->host_free(gpu, host);
    if (gpu) api->close(gpu);
    return status;
}

static void fill(void *argument, int id) {
    const size_t cores = *(const size_t *)argument, share = (size_t)id, n = b.bytes / sizeof(float);
    float *data = (float *)(void *)b.data;
    for (size_t i = n / cores * share; i < (share + 1 == cores ? n : n / cores * (share + 1)); i++)
        data[i] = (float)((i * 2654435761u) % 2001) - 1000.0f;
}

static cr_status open_all(cr_error *error) {
    static const char *const argv[] = {"bench"};
    char *const env[] = {(char[]){"XDG_RUNTIME_DIR=/tmp"}, NULL};
    cr_config_action action;
    cr_status status = cr_config_load(1, (char **)(uintptr_t)argv, env, &b.config, &action, error);
    b.config.spin_us = 1000;
    if (status == CR_OK) status = measure_copies(error);
    if (status == CR_OK) status = cr_queue_new(woken, &b.wakes, &b.queue, error);
    if (status == CR_OK) status = cr_slabs_new(256, &b.slabs, error);
    cr_lanes_options options = {.config = &b.config,
                                .queue = b.queue,
                                .slabs = b.slabs,
                                .gpu = &CURED_GPU_API,
                                .wake = woken,
                                .wake_argument = &b.wakes};
    if (status == CR_OK) status = cr_lanes_open(&b.lanes, &options, error);
    if (status == CR_OK && !b.lanes.gpus) status = cr_fail(error, CR_UNAVAILABLE, "%s", b.lanes.reason);
    return status;
}

static void sum_slabs(void) {
    for (unsigned i = 0; i < SLABS; i++) {
        const float *data = (const float *)(const void *)(b.data + (size_t)i * CR_SLAB_BYTES);
        b.slab_sums[i] = 0;
        for (size_t k = 0; k < CR_SLAB_BYTES / sizeof *data; k++) b.slab_sums[i] += data[k];
    }
}

/* One job after the other, and what each took in every phase on the lane. */
static bool measure_small(void) {
    cr_gpu_phases *p = cr_lane_gpu_phases(b.lanes.lanes[1]);
    bench_race race = {.count = 1, .rounds = SMALL_JOBS, .measure = run_small};
    for (int i = 0; i < SMALL_WARM; i++) run_small(NULL, 0);
    const uint64_t before[4] = {p->packs, p->launch_ns, p->device_ns, p->end_ns};
    if (!bench_race_run(&race)) return false;
    const bench_spread took = bench_race_of(&race, 0);
    bench_race_end(&race);
    const double packs = (double)(p->packs - before[0]) * 1e3;
    const double launch = (double)(p->launch_ns - before[1]) / packs,
                 device = (double)(p->device_ns - before[2]) / packs, end = (double)(p->end_ns - before[3]) / packs;
    printf("%-14s %8.2f us   (lowest %.2f)\n", "4 KiB, gpu", took.median, took.least);
    printf("%-14s %8.2f us until the launch returns, %.2f until its answer is seen, %.2f until the job is told\n",
           "  on the lane", launch, device, end);
    bench_table_note(&b.table, BENCH_CELLS(CELL_TEXT("row", NULL, 0, "4 KiB, gpu"), CELL_NOTE("us", took.median),
                                           CELL_NOTE("launch_us", launch), CELL_NOTE("device_us", device),
                                           CELL_NOTE("end_us", end)));
    return true;
}

static bool measure_crowd(void) {
    const double each = bench_repeat(b.rounds, run_crowd, NULL, 0);
    printf("%-14s %8.3f us each\n", "1024 at once", each);
    bench_table_note(&b.table, BENCH_CELLS(CELL_TEXT("row", NULL, 0, "1024 at once"), CELL_NOTE("us", each)));
    return each >= 0;
}

static void print_rate(const char *name, double rate, const char *of, double share) {
    printf("%-14s %8.1f GB/s", name, rate / 1e9);
    if (of) printf("   %.3f of %s", share, of);
    putchar('\n');
    bench_table_note(&b.table, BENCH_CELLS(CELL_TEXT("row", NULL, 0, name), CELL_NOTE("gb_per_s", rate / 1e9)));
}

static bool measure_rows(void) {
    double rate[ROWS];
    bench_race race = {.count = ROWS, .rounds = b.rounds, .warm = 1, .measure = run_row};
    if (!bench_race_run(&race)) return false;
    for (int r = 0; r < ROWS; r++) rate[r] = (double)b.bytes / bench_race_of(&race, r).median;
    bench_race_end(&race);
    const double better = rate[PINNED_CPU] > rate[PINNED_GPU] ? rate[PINNED_CPU] : rate[PINNED_GPU];
    print_rate("pinned copies", b.copy_rate, NULL, 0);
    for (int r = 0; r < ROWS; r++) {
        const bool both = r == PINNED_AUTO, alone = r == SLABS_GPU || r == PINNED_GPU;
        print_rate(row_names[r], rate[r],
                   both    ? "the better of cpu and gpu alone"
                   : alone ? "pinned copies"
                           : NULL,
                   rate[r] / (both ? better : b.copy_rate));
    }
    return true;
}

int bench_lane(int argc, char **argv) {
    size_t cores = (size_t)bench_cores();
    cr_error error;
    b.bytes = (size_t)4 << 30;
    b.rounds = 7;
    const bench_option options[] = {
        {"bytes", BENCH_BYTES, &b.bytes, "BYTES", .what = "of the array (4G)", .least = (double)SLABS * CR_SLAB_BYTES,
         .most = 0x1p40},
        {"rounds", BENCH_NUMBER, &b.rounds, "N", .what = "turns of every row (7)", .least = 1, .most = ROUNDS_MAX},
        BENCH_WITHOUT("gpu_linger"),
        BENCH_JSON(&b.table.path),
    };
    int status = bench_options(options, sizeof options / sizeof options[0], NULL, argc, argv);
    if (status >= 0) return status;
    if (open_all(&error) != CR_OK) {
        fprintf(stderr, "cured-bench: lane: %s\n", error.text);
        return 77;
    }
    b.data = mmap(NULL, b.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.data == MAP_FAILED) return 71;
    bench_together((int)cores, fill, &cores);
    sum_slabs();
    cr_pinner pinner = cr_lane_gpu_pinner(b.lanes.lanes[1]);
    if (pinner.pin(pinner.argument, b.data, b.bytes, false, &error) != CR_OK) {
        fprintf(stderr, "cured-bench: lane: %s\n", error.text);
        return 71;
    }
    status = bench_table_open(&b.table, argc, argv, NULL,
                              BENCH_CELLS(CELL_NOTE("bytes", b.bytes), CELL_NOTE("rounds", b.rounds)));
    if (status != 0) return status;
    const bool good = measure_rows() && measure_small() && measure_crowd();
    pinner.unpin(pinner.argument, b.data);
    cr_queue_close(b.queue);
    cr_lanes_close(&b.lanes, b.slabs);
    cr_slabs_free(b.slabs);
    cr_queue_free(b.queue);
    printf("%u answers of %d were wrong\n", b.wrong, b.rounds * (ROWS + CROWD) + SMALL_JOBS);
    return bench_table_close(&b.table, BENCH_CELLS(CELL_NOTE("wrong", b.wrong))) && good && b.wrong == 0 ? 0 : 1;
}
