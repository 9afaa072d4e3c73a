/* cured-bench peer: times one fold after another, as its standard input asks, for scripts/bench-numpy to hold beside NumPy.
 *
 * A line "FILE BYTES DTYPE OP" is answered by a line "NANOSECONDS HEX": the time of one reduction of the first BYTES of FILE,
 * by one thread, fold and finish, averaged over as many as fill about five milliseconds; and the answer's bytes.
 * Thread: main. Owner: this file owns the mapping. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "kernels/cpu/fold.h"

enum { LINE = 4096 };

typedef struct mapped {
    char name[LINE];
    void *data;
    size_t bytes;
} mapped;

/* Keeps the last file in memory, which is what NumPy's arrays lie in, with huge pages where the system gives them: the same
 * file is asked about again and again. */
static int map_file(mapped *m, const char *name) {
    if (m->data && strcmp(m->name, name) == 0) return 0;
    if (m->data) munmap(m->data, m->bytes);
    m->data = NULL;
    struct stat st;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    uint8_t *data = MAP_FAILED;
    size_t got = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data != MAP_FAILED) {
        m->bytes = (size_t)st.st_size;
        madvise(data, m->bytes, MADV_HUGEPAGE);
        for (ssize_t now; got < m->bytes; got += (size_t)now) {
            now = pread(fd, data + got, m->bytes - got, (off_t)got);
            if (now <= 0) break;
        }
        if (got == m->bytes) m->data = data;
        if (!m->data) munmap(data, m->bytes);
    }
    close(fd);
    if (!m->data) return -1;
    snprintf(m->name, sizeof m->name, "%s", name);
    return 0;
}

static void reduce(const void *data, size_t bytes, cr_dtype dtype, cr_op op, cr_value *value) {
    static const cr_finish_opts defaults;
    cr_partial partial;
    cr_partial_init(&partial, dtype, cr_op_needs(op, dtype));
    cr_partial_want(&partial, cr_op_wants(op));
    cr_cpu_fold(&partial, data, bytes / cr_dtype_size(dtype), 0);
    cr_partial_finish(&partial, op, &defaults, value);
}

static void answer(const void *data, size_t bytes, cr_dtype dtype, cr_op op) {
    cr_value value;
    reduce(data, bytes, dtype, op, &value);
    unsigned long times = 1;
    double took;
    for (;; times *= 2) {
        double start = bench_now();
        for (unsigned long i = 0; i < times; i++) reduce(data, bytes, dtype, op, &value);
        took = bench_now() - start;
        if (took >= 0.005) break;
    }
    printf("%.1f ", took / (double)times * 1e9);
    for (unsigned i = 0; i < value.len; i++) printf("%02x", value.bytes[i]);
    printf("\n");
    fflush(stdout);
}

int bench_peer(int argc, char **argv) {
    (void)argc;
    (void)argv;
    static mapped m;
    char line[LINE], name[LINE], dtype_name[32], op_name[32];
    cr_error error;
    while (fgets(line, sizeof line, stdin)) {
        size_t bytes;
        cr_dtype dtype;
        cr_op op;
        if (sscanf(line, "%4095s %zu %31s %31s", name, &bytes, dtype_name, op_name) != 4 ||
            cr_dtype_parse(dtype_name, &dtype, &error) != CR_OK || cr_op_parse(op_name, &op, &error) != CR_OK ||
            cr_op_supports(op, dtype, &error) != CR_OK || map_file(&m, name) != 0 || bytes > m.bytes) {
            fprintf(stderr, "cured-bench peer: cannot do: %s", line);
            return 1;
        }
        answer(m.data, bytes, dtype, op);
    }
    return 0;
}
