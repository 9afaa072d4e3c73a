/* floors_file: a page-cached file passed by descriptor, beside a loop that maps it afresh, reads and unmaps it; one that is on the
 * disk alone, beside threads that read it with O_DIRECT; and the whole cured-client process on a small file.
 *
 * Thread: main. Owner: the row; its files are unlinked when it ends. */
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/cpu.h"
#include "bench/floors.h"

extern char **environ;

enum { BLOCK = 1 << 20, SMALL_BYTES = 4 << 20, DISK_THREADS = 8 };

typedef struct file_row {
    const floors_options *options;
    int file, conn;
    bool populate; /* the floor maps with MAP_POPULATE */
    uint32_t stream;
    uint64_t bytes;
    double sum;
    const cpu_floor *reader;
    char path[160], connect[160], expected[64];
    volatile uint64_t sink;
    int direct;            /* the file again, with O_DIRECT */
    _Atomic uint64_t next; /* byte that no thread has taken to read */
    atomic_bool failed;
} file_row;

/* A file of f32 whose sum is exact in a double. Synced, so that nothing writes it back while it is measured. */
static bool make_file(file_row *f, uint64_t bytes, const char *name) {
    snprintf(f->path, sizeof f->path, "%s/cured-bench-%d-%s", f->options->dir, (int)getpid(), name);
    f->file = open(f->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    float *block = malloc(BLOCK);
    bool good = f->file >= 0 && block;
    double sum = 0;
    for (size_t i = 0; good && i < BLOCK / sizeof *block; i++) {
        block[i] = (float)((i * 2654435761u >> 7) % 4096) / 64 - 32;
        sum += (double)block[i];
    }
    for (f->bytes = 0, f->sum = 0; good && f->bytes < bytes; f->bytes += BLOCK, f->sum += sum)
        good = floors_write(f->file, block, BLOCK);
    free(block);
    good = good && fsync(f->file) == 0;
    if (!good) fprintf(stderr, "cured-bench: cannot write %s\n", f->path);
    return good;
}

static double floor_seconds(file_row *f) {
    double start = bench_now();
    void *at = mmap(NULL, f->bytes, PROT_READ, MAP_SHARED | (f->populate ? MAP_POPULATE : 0), f->file, 0);
    if (at == MAP_FAILED) return -1;
    f->sink = f->reader->run(at, f->bytes);
    munmap(at, f->bytes);
    return bench_now() - start;
}

static double daemon_seconds(file_row *f) {
    uint8_t bytes[1024];
    uint32_t length;
    cr_error error;
    cr_wire_result result;
    cr_wire_call call = {.kind = CR_CALL_REDUCE, .reduce.source = CR_SOURCE_DESCRIPTOR};
    double start = bench_now(), sum;
    const size_t n = floors_call(bytes, sizeof bytes, ++f->stream, &call);
    if (!floors_send(f->conn, bytes, n, f->file) ||
        !floors_receive(f->conn, CR_FRAME_RESULT, bytes, sizeof bytes, &length))
        return -1;
    double took = bench_now() - start;
    if (cr_wire_unpack_result(bytes, length, &result, &error) != CR_OK) return -1;
    memcpy(&sum, result.results[0].value, sizeof sum);
    return result.results[0].status == 0 && sum == f->sum ? took : -1;
}

static double failed(const char *what) {
    fprintf(stderr, "cured-bench: %s\n", what);
    return -1;
}

static double measure(void *context, int floor) {
    file_row *f = context;
    const double took = floor ? floor_seconds(f) : daemon_seconds(f);
    return took > 0 ? took : failed(floor ? "the reading loop failed" : "the daemon failed or gave a wrong sum");
}

static double reader_seconds(void *context, const cpu_floor *reader) {
    file_row *f = context;
    f->reader = reader;
    return floor_seconds(f);
}

static bool open_conn(void *context) {
    file_row *f = context;
    f->stream = 0;
    f->conn = floors_connect(f->options, false);
    return f->conn >= 0;
}

static void close_conn(void *context) {
    file_row *f = context;
    if (f->conn >= 0) close(f->conn);
    f->conn = -1;
}

static bool large_row(file_row *f, const char *name, int core, bool populate, double target) {
    const floors_options *o = f->options;
    char floor[96];
    if (!bench_wanted(o->only, name)) return true;
    f->populate = populate;
    floors_pin_client(o);
    f->reader = cpu_floor_best(reader_seconds, f);
    snprintf(floor, sizeof floor, "mmap%s, %s, munmap", populate ? " MAP_POPULATE" : "", f->reader->name);
    const floors_row row = {name, "GB/s", floor, false, target, 0, f->bytes, measure, f};
    return floors_run_alone(o, &row, core, open_conn, close_conn);
}

static void *read_directly(void *context) {
    file_row *f = context;
    void *block = NULL;
    if (posix_memalign(&block, 4096, BLOCK) != 0) atomic_store(&f->failed, true);
    for (uint64_t at; block && (at = atomic_fetch_add(&f->next, BLOCK)) < f->bytes;)
        if (pread(f->direct, block, BLOCK, (off_t)at) != BLOCK) atomic_store(&f->failed, true);
    free(block);
    return NULL;
}

/* As many reads under way as a disk can use, and nothing done with what they bring. */
static double direct_seconds(file_row *f) {
    pthread_t threads[DISK_THREADS];
    atomic_store(&f->next, 0);
    double start = bench_now();
    int begun = 0;
    while (begun < DISK_THREADS && pthread_create(&threads[begun], NULL, read_directly, f) == 0) begun++;
    for (int i = 0; i < begun; i++) pthread_join(threads[i], NULL);
    return begun && !atomic_load(&f->failed) ? bench_now() - start : -1;
}

static double measure_disk(void *context, int floor) {
    file_row *f = context;
    posix_fadvise(f->file, 0, 0, POSIX_FADV_DONTNEED);
    if (!floor) return measure(f, false);
    const double took = direct_seconds(f);
    return took > 0 ? took : failed("reading with O_DIRECT failed");
}

static bool disk_row(file_row *f, const char *name) {
    if (!bench_wanted(f->options->only, name)) return true;
    f->direct = open(f->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (f->direct < 0) {
        printf("%s: left out, files of %s cannot be opened with O_DIRECT\n", name, f->options->dir);
        return true;
    }
    const floors_row row = {name, "GB/s", "O_DIRECT, 8 reads of 1 MiB", false, 0.95, 0, f->bytes, measure_disk, f};
    const bool good = floors_run_alone(f->options, &row, -1, open_conn, close_conn);
    close(f->direct);
    return good;
}

/* Milliseconds from before the client process begins until it is gone. */
static double whole_process(void *context, int floor) {
    (void)floor;
    file_row *f = context;
    char *arguments[] = {(char *)(uintptr_t)f->options->client, "sum", f->path, "--connect", f->connect, NULL};
    char answer[64] = "";
    int ends[2], status = -1;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    double start = bench_now();
    int failed = posix_spawn(&pid, f->options->client, &actions, NULL, arguments, environ);
    close(ends[1]);
    if (!failed) waitpid(pid, &status, 0);
    double took = bench_now() - start;
    ssize_t n = read(ends[0], answer, sizeof answer - 1);
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
    if (!failed && status == 0 && n > 0 && strtod(answer, NULL) == f->sum) return took * 1e3;
    fprintf(stderr, "cured-bench: %s sum %s: status %d, answer %s, expected %.17g\n", f->options->client, f->path,
            status, answer, f->sum);
    return -1;
}

static bool process_row(file_row *f, const char *name) {
    const floors_options *o = f->options;
    snprintf(f->connect, sizeof f->connect, "unix:%s", o->socket);
    const floors_row row = {name, "ms", NULL, true, 10, 3 * o->rounds, 0, whole_process, f};
    return floors_run_alone(o, &row, -1, open_conn, close_conn);
}

bool floors_file_rows(const floors_options *o) {
    static const char *const names[] = {"file by descriptor, any core", "file by descriptor, one core",
                                        "file, floor with MAP_POPULATE", "file on the disk alone",
                                        "cured-client sum, 4 MiB file"};
    file_row f = {.options = o, .file = -1, .conn = -1};
    bool good = true, large = false;
    for (int i = 0; i < 4; i++) large |= bench_wanted(o->only, names[i]);
    if (large) {
        good = make_file(&f, o->file_bytes, "large") && large_row(&f, names[0], -1, false, 0.9) &&
               large_row(&f, names[1], o->server_core, false, 0) && large_row(&f, names[2], -1, true, 0) &&
               disk_row(&f, names[3]);
        if (f.file >= 0) close(f.file);
        unlink(f.path);
    }
    if (good && bench_wanted(o->only, names[4])) {
        good = make_file(&f, SMALL_BYTES, "small.f32") && process_row(&f, names[4]);
        if (f.file >= 0) close(f.file);
        unlink(f.path);
    }
    return good;
}
