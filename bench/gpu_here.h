/* gpu_here: what the files of `cured-bench gpu-here` share.
 *
 * Thread: main. Owner: gpu_here.c owns the memory. */
#ifndef CURED_BENCH_GPU_HERE_H
#define CURED_BENCH_GPU_HERE_H

#include <stdbool.h>

/* Of 8 KiB at least: pinned, and in device memory; to: of 8 bytes. */
typedef struct gpu_here_memory {
    void *host, *device, *to;
} gpu_here_memory;

/* gpu_driver.c: prints what the driver's own calls cost, medians of so many rounds. False: the driver failed, which is printed. Overwrites
 * the first 8 KiB of device memory with what is in host memory, and `to`. */
bool gpu_driver_floors(const gpu_here_memory *memory, int rounds);

#endif
