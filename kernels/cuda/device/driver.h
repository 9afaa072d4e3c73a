/* driver: functions of CUDA's driver that the runtime does not offer.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CUDA_DEVICE_DRIVER_H
#define CURED_KERNELS_CUDA_DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* By name, and not linked: the program starts without a driver too. function: a pointer to a function, of so many bytes. As of CUDA 12.0. */
bool cr_cuda_find(const char *name, void *function, size_t size);

#endif
