/* bits: the kernel of caller/bits.c: a byte of 0 or 1 for each bit. A thread has 16 bits, and writes their bytes by one store.
 *
 * Thread: GPU; the launcher is called by the stream's thread. Owner: the caller. */
#include "kernels/cuda/bits/bits.h"
#include "kernels/cuda/thread/array.cuh"

enum { CR_BITS_THREADS = 256 };

/* Four bits as four bytes. */
CR_DEVICE uint32_t cr_bits_spread(uint32_t bits) { return (bits & 15) * 0x00204081u & 0x01010101u; }

static __global__ void __launch_bounds__(CR_BITS_THREADS) cr_bits_kernel(const uint8_t *bits, uint64_t first, uint64_t count, uint4 *to) {
    const uint64_t i = (uint64_t)blockIdx.x * CR_BITS_THREADS + threadIdx.x, bit = first + i * CR_BITS_AT_ONCE;
    if (i * CR_BITS_AT_ONCE >= count) return;
    const uint64_t last = (first + count - 1) / 8;
    uint32_t some = 0;
#pragma unroll
    for (uint64_t k = 0; k < CR_BITS_AT_ONCE / 8 + 1; k++)
        if (bit / 8 + k <= last) some |= (uint32_t)bits[bit / 8 + k] << 8 * k;
    some >>= bit % 8;
    to[i] = make_uint4(cr_bits_spread(some), cr_bits_spread(some >> 4), cr_bits_spread(some >> 8), cr_bits_spread(some >> 12));
}

extern "C" int cr_bits_launch(const void *bits, uint64_t first, uint64_t count, void *to, void *stream) {
    const uint64_t threads = (count + CR_BITS_AT_ONCE - 1) / CR_BITS_AT_ONCE, blocks = (threads + CR_BITS_THREADS - 1) / CR_BITS_THREADS;
    return CR_LAUNCH(cr_bits_kernel, (uint32_t)blocks, CR_BITS_THREADS, stream, (const uint8_t *)bits, first, count, (uint4 *)to);
}
