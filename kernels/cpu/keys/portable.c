/* portable: the blocks of folds by key for any machine. */
#include "kernels/cpu/keys/block.inc"
