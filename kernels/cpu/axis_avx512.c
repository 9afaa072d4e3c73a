/* axis_avx512: the folds along an axis for AVX512. */
#if defined(__x86_64__)
#define VB 64
#define VEC_AVX512 1
#define AXIS_NAME cr_axis_avx512
#define AXIS_TEXT "avx512"
#define AXIS_FOLDS cr_fold_avx512
#include "kernels/cpu/axis_impl.h"
#endif
