/* bits: what caller/bits.c and its kernel share. Thread: one at a time for `to`. Owner: the caller. */
#ifndef CURED_KERNELS_CUDA_BITS_BITS_H
#define CURED_KERNELS_CUDA_BITS_BITS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CR_BITS_AT_ONCE = 16 }; /* whose bytes are one store */

/* Enqueues; gives a cudaError_t. to: a byte for each of `count` bits, at least one, and for more up to a multiple of CR_BITS_AT_ONCE; at a
 * multiple of that. Of the bits no byte is read that holds none of them. count below 2^40. */
int cr_bits_launch(const void *bits, uint64_t first, uint64_t count, void *to, void *stream);

#ifdef __cplusplus
}
#endif
#endif
