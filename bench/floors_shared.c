/* floors_shared: shared memory through a daemon as it is by default, beside a daemon without its GPUs (backend cpu): every kind of memory,
 * small and large, f32 and bf16. A GPU must not make it slower.
 *
 * Thread: main. Owner: the rows. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/floors.h"
#include "cured/cured.h"

enum { BLOCK = 4096, SLOWER_PERCENT = 5, LEAST_NS = 2000000, TRIES_MOST = 1000 };

typedef enum memory_kind { MEMFD, SEALED_MEMFD, POSIX_SHM, TMPFS_FILE, REGION, SEALED_REGION, KINDS } memory_kind;
static const char *const kind_names[KINDS] = {"memfd",      "sealed memfd", "POSIX shm",
                                              "tmpfs file", "region",       "sealed region"};

typedef struct side {
    floors_options options;
    pid_t daemon;
    cured_conn *conn;
    cured_region *region;
} side;

typedef struct shared_row {
    side sides[2]; /* by default, and with backend cpu */
    memory_kind kind;
    cured_dtype dtype;
    uint64_t bytes;
    int file;
    double sum;
} shared_row;

/* A block whose sum, as often as it is repeated, is exact in a double; returns it. bf16 are the upper halves of such f32. */
static double fill_block(cured_dtype dtype, unsigned char block[BLOCK]) {
    const size_t size = cured_dtype_size(dtype);
    double sum = 0;
    for (size_t i = 0; i < BLOCK / size; i++) {
        const float value = (float)(i * 2654435761u >> 7 & 255) - 100;
        memcpy(block + i * size, (const unsigned char *)&value + sizeof value - size, size);
        sum += (double)value;
    }
    return sum;
}

static int open_memory(memory_kind kind) {
    char name[64];
    if (kind != POSIX_SHM && kind != TMPFS_FILE) return memfd_create("cured-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    snprintf(name, sizeof name, "%s/cured-bench-%d", kind == TMPFS_FILE ? "/dev/shm" : "", (int)getpid());
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    const int fd = kind == TMPFS_FILE ? open(name, flags, 0600) : shm_open(name, flags, 0600);
    if (kind == TMPFS_FILE)
        unlink(name);
    else
        shm_unlink(name);
    return fd;
}

static bool make_memory(shared_row *r) {
    unsigned char block[BLOCK], *many = malloc(256 * BLOCK);
    r->file = open_memory(r->kind);
    r->sum = fill_block(r->dtype, block) * (double)(r->bytes / BLOCK);
    for (int i = 0; many && i < 256; i++) memcpy(many + (size_t)i * BLOCK, block, BLOCK);
    bool good = many && r->file >= 0;
    for (uint64_t at = 0, step; good && at < r->bytes; at += step) {
        step = r->bytes - at < 256 * BLOCK ? r->bytes - at : 256 * BLOCK;
        good = floors_write(r->file, many, step);
    }
    free(many);
    if (good && (r->kind == SEALED_MEMFD || r->kind == SEALED_REGION))
        good = fcntl(r->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
    if (!good) fprintf(stderr, "cured-bench: there is no shared memory of %llu bytes\n", (unsigned long long)r->bytes);
    return good;
}

static bool open_regions(shared_row *r) {
    cured_error error;
    for (int i = 0; i < 2; i++)
        if (cured_region_fd(r->sides[i].conn, r->file, &r->sides[i].region, &error) != CURED_OK) {
            fprintf(stderr, "cured-bench: %s\n", error.text);
            return false;
        }
    return true;
}

static bool ask(const shared_row *r, const side *s) {
    const cured_op op = CURED_OP_SUM;
    cured_call *call = NULL;
    cured_error error = {0};
    double value = 0;
    const cured_status status =
        s->region ? cured_region_reduce(s->region, r->dtype, &op, 1, 0, CURED_TO_END, NULL, &call, &error)
                  : cured_reduce_fd(s->conn, r->dtype, &op, 1, r->file, 0, CURED_TO_END, NULL, &call, &error);
    bool good = status == CURED_OK && cured_wait(call, &error) == CURED_OK &&
                cured_value_double(cured_call_value(call, 0), &value) == CURED_OK && value == r->sum;
    if (!good) fprintf(stderr, "cured-bench: %s, %.17g for %.17g\n", error.text, value, r->sum);
    cured_call_free(call);
    return good;
}

/* Microseconds of a call: of short ones, the mean of as many as take 2 ms. */
static double measure(void *context, int floor) {
    const shared_row *r = context;
    const double start = bench_now();
    double took = 0;
    int tries = 0;
    while (took < LEAST_NS / 1e9 && tries < TRIES_MOST) {
        if (!ask(r, &r->sides[floor])) return -1;
        tries++;
        took = bench_now() - start;
    }
    return took / tries * 1e6;
}

static bool run_row(shared_row *r, const char *name) {
    const floors_row row = {name, "us", "backend cpu", true, 100.0 / (100 + SLOWER_PERCENT), 0, 0, measure, r};
    const bool good = make_memory(r) && (r->kind < REGION || open_regions(r)) && floors_run(&r->sides[0].options, &row);
    for (int i = 0; i < 2; i++) {
        cured_region_free(r->sides[i].region);
        r->sides[i].region = NULL;
    }
    if (r->file >= 0) close(r->file);
    return good;
}

static bool start_side(side *s, const floors_options *o, const char *backend) {
    char address[128];
    cured_error error = {0};
    s->options = *o;
    s->options.backend = backend;
    s->options.workers = "0";
    snprintf(s->options.socket, sizeof s->options.socket, "%.70s.%s", o->socket, backend);
    snprintf(address, sizeof address, "unix:%s", s->options.socket);
    s->daemon = floors_daemon_start(&s->options, -1);
    if (s->daemon > 0 && cured_connect(address, NULL, &s->conn, &error) == CURED_OK) return true;
    fprintf(stderr, "cured-bench: %s\n", error.text);
    return false;
}

static bool sizes_rows(shared_row *r, const floors_options *o, bool run, bool *any) {
    static const uint64_t sizes[] = {4ull << 10,   64ull << 10, 1ull << 20, 16ull << 20,
                                     256ull << 20, 1ull << 30,  4ull << 30, 8ull << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && sizes[i] <= o->shared_bytes; i++) {
        const int unit = sizes[i] >= 1ull << 30 ? 2 : sizes[i] >= 1ull << 20 ? 1 : 0;
        char name[96];
        snprintf(name, sizeof name, "shared %s %s, %llu %ciB", kind_names[r->kind], cured_dtype_name(r->dtype),
                 (unsigned long long)sizes[i] >> (10 + 10 * unit), "KMG"[unit]);
        if (!bench_wanted(o->only, name)) continue;
        *any = true;
        r->bytes = sizes[i];
        if (run && !run_row(r, name)) return false;
    }
    return true;
}

static bool all_rows(shared_row *r, const floors_options *o, bool run, bool *any) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int half = 0; half < 2; half++) {
            r->kind = (memory_kind)kind;
            r->dtype = half ? CURED_BF16 : CURED_F32;
            if (!sizes_rows(r, o, run, any)) return false;
        }
    return true;
}

bool floors_shared_rows(const floors_options *o) {
    shared_row r = {.file = -1};
    bool any = false;
    all_rows(&r, o, false, &any);
    if (!any) return true;
    bool good = start_side(&r.sides[0], o, "auto") && start_side(&r.sides[1], o, "cpu") && all_rows(&r, o, true, &any);
    for (int i = 0; i < 2; i++) {
        cured_close(r.sides[i].conn);
        floors_stop(r.sides[i].daemon);
    }
    return good;
}
