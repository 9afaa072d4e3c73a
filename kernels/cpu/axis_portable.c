/* axis_portable: the folds along an axis in 16-byte generic vectors, for any machine. */
#define VB 16
#define AXIS_NAME cr_axis_portable
#define AXIS_TEXT "portable"
#define AXIS_FOLDS cr_fold_portable
#include "kernels/cpu/axis_impl.h"
