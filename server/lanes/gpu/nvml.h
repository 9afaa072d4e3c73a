/* nvml: what the driver's management library says of GPUs: temperature, how busy they are, memory in use.
 *
 * libnvidia-ml.so.1 comes with the driver and is loaded where it is. Its calls may take long, or never return, so a thread of its own
 * makes them: every two seconds, as long as somebody has asked in the last five minutes. Without the library, or a GPU that it
 * knows, nothing is told.
 * Thread: the thread that asks, one; the library's thread is within. Owner: the lanes. */
#ifndef CURED_SERVER_LANES_GPU_NVML_H
#define CURED_SERVER_LANES_GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

enum { CR_NVML_GPUS = 16, CR_NVML_UUID_BYTES = 48 };

typedef struct cr_nvml_reading {
    bool has_temperature, has_utilization, has_memory;
    uint32_t temperature_c, utilization_percent;
    uint64_t memory_used, memory_bytes;
} cr_nvml_reading;

typedef struct cr_nvml cr_nvml;

/* For GPUs of these UUIDs ("GPU-…"), up to CR_NVML_GPUS. It returns at once. NULL: there is no memory, or no thread. */
cr_nvml *cr_nvml_open(char (*uuids)[CR_NVML_UUID_BYTES], uint32_t count);
/* What was read last of a GPU. */
cr_nvml_reading cr_nvml_read(cr_nvml *nvml, uint32_t gpu);
/* Waits a moment for the thread. False: the driver does not let it go, and it is left behind with its memory; the process should end
 * without waiting for the driver. */
bool cr_nvml_close(cr_nvml *nvml);

#endif
