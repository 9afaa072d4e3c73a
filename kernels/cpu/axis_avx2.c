/* axis_avx2: the folds along an axis for AVX2. */
#if defined(__x86_64__)
#define VB 32
#define VEC_AVX2 1
#define AXIS_NAME cr_axis_avx2
#define AXIS_TEXT "avx2"
#define AXIS_FOLDS cr_fold_avx2
#include "kernels/cpu/axis_impl.h"
#endif
