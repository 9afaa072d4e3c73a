/* portable: the folds along an axis in 16-byte generic vectors, for any machine. */
#include "kernels/cpu/axis/axis.inc"
