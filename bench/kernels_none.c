/* cured-bench pack, gpu-axis, kernels and lane, and the rows of load with a GPU, in a build without CUDA. Thread: main. */
#include <stdio.h>

#include "bench/bench.h"
#include "bench/floors.h"

int bench_pack(int argc, char **argv) {
    (void)argc, (void)argv;
    fprintf(stderr, "cured-bench: pack: this build has no CUDA\n");
    return 69;
}

int bench_gpu_axis(int argc, char **argv) {
    (void)argc, (void)argv;
    fprintf(stderr, "cured-bench: gpu-axis: this build has no CUDA\n");
    return 69;
}

int bench_kernels(int argc, char **argv) {
    (void)argc, (void)argv;
    fprintf(stderr, "cured-bench: kernels: this build has no CUDA\n");
    return 69;
}

int bench_lane(int argc, char **argv) {
    (void)argc, (void)argv;
    fprintf(stderr, "cured-bench: lane: this build has no CUDA\n");
    return 69;
}

bool floors_device_rows(const floors_options *options, FILE *json) {
    (void)options, (void)json;
    return true;
}

bool floors_devices_rows(const floors_options *options, FILE *json) {
    (void)options, (void)json;
    return true;
}

bool floors_axis_rows(const floors_options *options, FILE *json) {
    (void)options, (void)json;
    return true;
}
