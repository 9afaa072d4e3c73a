/* fold_portable: the folds in 16-byte generic vectors, for any machine. */
#define VB 16
#define FOLD_NAME cr_fold_portable
#define FOLD_TEXT "portable"
#include "kernels/cpu/fold_impl.h"
