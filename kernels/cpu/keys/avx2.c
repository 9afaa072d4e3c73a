/* avx2: the blocks of folds by key for AVX2. */
#if defined(__x86_64__)
#define VEC_AVX2 1
#include "kernels/cpu/keys/block.inc"
#endif
