/* avx2: the folds for AVX2 with F16C and FMA. */
#if defined(__x86_64__)
#define VEC_AVX2 1
#include "kernels/cpu/whole/fold.inc"
#endif
