/* driver: functions of CUDA's driver that the runtime does not offer.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CUDA_DEVICE_DRIVER_H
#define CURED_KERNELS_CUDA_DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/status.h"

/* By name, and not linked: the program starts without a driver too. function: a pointer to a function, of so many bytes. As of CUDA 12.0. */
bool cr_cuda_find(const char *name, void *function, size_t size);

/* Whether the kernels run on a chip of this compute capability, which they do from 8.0 on: chips before it cannot add up a warp's integers
 * in one instruction. The text names the device, what it has, and what is needed. */
cr_status cr_cuda_capable(const char *device, int major, int minor, cr_error *error);

#endif
