/* Ranges by NVTX, without a GPU. With a tool (its library: the argument) they arrive there by name; without one none begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/gpu.h"

static int failed;

static void expect(int holds, const char *what) {
    if (!holds) fprintf(stderr, "test_nvtx: %s\n", what), failed = 1;
}

static void with_a_tool(const char *tool, const char *log) {
    static const char wanted[] = "= 0 cured\n+ 1 job 1: sum f32[10]\n+ 2 job 2: max i64[?]\n- 1\n+ 3 job 3\n- 3\n- 2\n";
    char got[512] = "";
    setenv("NVTX_INJECTION64_PATH", tool, 1);
    setenv("CURED_NVTX_LOG", log, 1);
    expect(cr_cuda.traced(), "the tool is not noticed");
    const uint64_t first = cr_cuda.trace_begin("job 1: sum f32[10]"), second = cr_cuda.trace_begin("job 2: max i64[?]");
    cr_cuda.trace_end(first);
    const uint64_t third = cr_cuda.trace_begin("job 3");
    cr_cuda.trace_end(third);
    cr_cuda.trace_end(second);
    FILE *file = fopen(log, "re");
    if (file) {
        got[fread(got, 1, sizeof got - 1, file)] = 0;
        fclose(file);
    }
    expect(strcmp(got, wanted) == 0, "the tool has seen something else:");
    if (failed) fputs(got, stderr);
}

int main(int argc, char **argv) {
    char log[] = "/tmp/cured-nvtx-XXXXXX";
    int fd = mkstemp(log);
    if (fd < 0) return 1;
    close(fd);
    if (argc > 1) {
        with_a_tool(argv[1], log);
    } else {
        unsetenv("NVTX_INJECTION64_PATH");
        expect(!cr_cuda.traced(), "a tool is seen where there is none");
        expect(cr_cuda.trace_begin("job 1") == 0, "a range begins, and nobody looks on");
    }
    unlink(log);
    return failed;
}
