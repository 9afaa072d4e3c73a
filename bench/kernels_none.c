/* cured-bench pack, gpu-axis, gpu-call, gpu-segments, kernels and lane, and the rows of floors with a GPU, in a build without CUDA. Thread: main. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/floors.h"

static int none(char **argv) {
    fprintf(stderr, "cured-bench: %s: this build has no CUDA\n", argv[0]);
    return 69;
}

int bench_pack(int argc, char **argv) { return (void)argc, none(argv); }
int bench_gpu_axis(int argc, char **argv) { return (void)argc, none(argv); }
int bench_gpu_call(int argc, char **argv) { return (void)argc, none(argv); }
int bench_gpu_segments(int argc, char **argv) { return (void)argc, none(argv); }
int bench_kernels(int argc, char **argv) { return (void)argc, none(argv); }
int bench_lane(int argc, char **argv) { return (void)argc, none(argv); }

bool floors_device_rows(const floors_options *options) { return (void)options, true; }
bool floors_devices_rows(const floors_options *options) { return (void)options, true; }
bool floors_axis_rows(const floors_options *options) { return (void)options, true; }
