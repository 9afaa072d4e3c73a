/* avx512: the folds along an axis for AVX512. */
#if defined(__x86_64__)
#define VEC_AVX512 1
#include "kernels/cpu/axis/axis.inc"
#endif
