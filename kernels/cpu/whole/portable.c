/* portable: the folds in 16-byte generic vectors, for any machine. */
#include "kernels/cpu/whole/fold.inc"
