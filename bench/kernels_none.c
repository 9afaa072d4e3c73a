/* cured-bench kernels, in a build without CUDA. Thread: main. */
#include <stdio.h>

#include "bench/bench.h"

int bench_kernels(int argc, char **argv) {
    (void)argc, (void)argv;
    fprintf(stderr, "cured-bench: kernels: this build has no CUDA\n");
    return 69;
}
