/* avx512: the blocks of folds by key for AVX512. */
#if defined(__x86_64__)
#define VEC_AVX512 1
#include "kernels/cpu/keys/block.inc"
#endif
