/* avx2: the folds along an axis for AVX2. */
#if defined(__x86_64__)
#define VEC_AVX2 1
#include "kernels/cpu/axis/axis.inc"
#endif
