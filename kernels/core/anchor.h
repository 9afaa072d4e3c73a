/* anchor: where the anchors of a float type's sums lie (anchor.def), once for the CPU and the GPU. For a type T:
 *
 *   CR_T_LEVELS, CR_T_SQUARE_LEVELS   anchors that are tried first
 *   CR_T_MOST, CR_T_SQUARE_MOST       log2 of the unit of the highest first anchor
 *   CR_T_SQUARE_LOWEST                the lowest exponent field whose squares anchors take
 *
 * Thread: any; constants only. Owner: nothing. */
#ifndef CURED_KERNELS_CORE_ANCHOR_H
#define CURED_KERNELS_CORE_ANCHOR_H

#include <assert.h>

#include "kernels/core/float.h"

/* Values below 2^(a + CR_ANCHOR_REACH) go to an anchor whose unit is 2^a; the next unit is 2^(a - CR_ANCHOR_STEP), if each goes alone. */
enum { CR_ANCHOR_STEP = 52, CR_ANCHOR_REACH = CR_ANCHOR_STEP - 1 };

enum {
#define CR_ANCHORS(SYMBOL, levels, most, square_levels, square_most, square_lowest)                        \
    CR_##SYMBOL##_LEVELS = levels, CR_##SYMBOL##_MOST = most, CR_##SYMBOL##_SQUARE_LEVELS = square_levels, \
    CR_##SYMBOL##_SQUARE_MOST = square_most, CR_##SYMBOL##_SQUARE_LOWEST = square_lowest,
#include "kernels/core/anchor.def"
#undef CR_ANCHORS
};

#ifndef CURED_SUM_ALONE
/* The highest anchor takes the largest value, and is no higher; that of F64 stays finite. */
#define CR_ANCHORS(SYMBOL, levels, most, square_levels, square_most, square_lowest)                           \
    static_assert(CR_##SYMBOL##_BYTES == 8 ? (most) + CR_ANCHOR_STEP < CR_##SYMBOL##_TOP - CR_##SYMBOL##_BIAS \
                                           : (most) == CR_##SYMBOL##_BIAS + 1 - CR_ANCHOR_REACH,              \
                  #SYMBOL);                                                                                   \
    static_assert(CR_##SYMBOL##_BYTES == 8 ? (square_most) <= (most)                                          \
                                           : (square_most) == 2 * (CR_##SYMBOL##_BIAS + 1) - CR_ANCHOR_REACH, \
                  #SYMBOL);
#include "kernels/core/anchor.def"
#undef CR_ANCHORS
#endif

#endif
