/* fold_avx512: the folds for AVX-512 F, BW, DQ and VL. */
#if defined(__x86_64__)
#define VB 64
#define VEC_AVX512 1
#define FOLD_NAME cr_fold_avx512
#define FOLD_TEXT "avx512"
#include "kernels/cpu/fold_impl.h"
#endif
