/* avx512: the folds for AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#define VEC_AVX512 1
#include "kernels/cpu/whole/fold.inc"
#endif
