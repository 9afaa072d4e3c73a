/* fold_avx2: the folds for AVX2 with F16C and FMA. */
#if defined(__x86_64__)
#define VB 32
#define VEC_AVX2 1
#define FOLD_NAME cr_fold_avx2
#define FOLD_TEXT "avx2"
#include "kernels/cpu/fold_impl.h"
#endif
