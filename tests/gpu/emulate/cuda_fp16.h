/* cuda_fp16 (emulated): halves, for the host: what the ladder uses of them.
 *
 * Thread: any. */
#ifndef CURED_TESTS_GPU_EMULATE_CUDA_FP16_H
#define CURED_TESTS_GPU_EMULATE_CUDA_FP16_H

#include "cuda_runtime.h"

struct __half {
    uint16_t bits;
};
static inline __half __ushort_as_half(unsigned short bits) { return __half{bits}; }
static inline float __half2float(__half h) {
    unsigned exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    float x = exponent == 31 ? (fraction ? NAN : INFINITY)
              : exponent     ? std::ldexp((float)(1024 + fraction), (int)exponent - 25)
                             : std::ldexp((float)fraction, -24);
    return h.bits >> 15 ? -x : x;
}

#endif
