/* sum: the exact sums that a partial can hold (sum.def), their places in it, and how long the longest is.
 *
 * Thread: any; constants only. Owner: nothing. */
#ifndef CURED_KERNELS_CORE_SUM_H
#define CURED_KERNELS_CORE_SUM_H

#include "kernels/core/float.h"

/* As long as the highest power. */
union cr_sum_powers {
#define CR_SUM(symbol, power, sign) char symbol[power];
#include "kernels/core/sum.def"
#undef CR_SUM
};

enum {
    CR_SUM_POWER = sizeof(union cr_sum_powers),
    /* 32-bit digits in signed 64-bit limbs (so that carries can wait), from the lowest bit of the type's grid to beyond
     * the sum of 2^63 of its largest values. Sized for f64; narrower types use a prefix on their own grid. */
    CR_SUM_LIMBS = CR_POWER_LIMBS(CR_F64_SPAN, CR_SUM_POWER),
};

#ifndef CURED_SUM_ALONE
#include "kernels/core/op.h"

/* The place of a sum among a partial's. */
typedef enum cr_sum_at {
#define CR_SUM(symbol, power, sign) CR_AT_##symbol,
#include "kernels/core/sum.def"
#undef CR_SUM
    CR_SUMS
} cr_sum_at;

/* Those that have ways of their own: Σx, Σ|x|, Σx². */
enum {
    CR_FAM_KNOWN_SUMS =
#define CR_SUM(symbol, power, sign) CR_FAM_##symbol |
#define CR_SUM_BY_POWERS(symbol, power, sign)
#include "kernels/core/sum.def"
#undef CR_SUM
        0,
    CR_KNOWN_SUMS = CR_AT_SUMSQ + 1
};

enum {
    CR_SUM_MAGNITUDE = 0,
    CR_SUM_SIGNED = 1,
    CR_FAM_SUMS = /* the families that are exact sums */
#define CR_SUM(symbol, power, sign) CR_FAM_##symbol |
#include "kernels/core/sum.def"
#undef CR_SUM
    0,
    CR_FAM_SIGNED = /* those to which a negative element adds less than nothing */
#define CR_SUM(symbol, power, sign) (CR_SUM_##sign && (power) % 2 ? CR_FAM_##symbol : 0) |
#define CR_SUM_OF_PAIRS(symbol, power, sign) (CR_SUM_##sign ? CR_FAM_##symbol : 0) |
#include "kernels/core/sum.def"
#undef CR_SUM
    0,
    CR_FAM_PAIRS = /* those of two arrays */
#define CR_SUM(symbol, power, sign)
#define CR_SUM_OF_PAIRS(symbol, power, sign) CR_FAM_##symbol |
#include "kernels/core/sum.def"
#undef CR_SUM
    0,
    CR_FAM_SINGLE = CR_FAM_ALL & ~CR_FAM_PAIRS, /* and of one */
};

/* A row of sum.def. */
typedef struct cr_sum_row {
    uint32_t family; /* CR_FAM_... */
    uint32_t power;
} cr_sum_row;
extern const cr_sum_row cr_sum_rows[CR_SUMS];

/* Of the sum of a type: limbs in use, and the power of two that limb 0's lowest bit stands for. */
unsigned cr_sum_limbs(cr_sum_at at, cr_dtype dtype);
int cr_sum_grid(cr_sum_at at, cr_dtype dtype);

/* The place of a family of CR_FAM_SUMS. */
static inline cr_sum_at cr_sum_of(uint32_t family) {
    unsigned at = 0;
    while (at + 1 < CR_SUMS && cr_sum_rows[at].family != family) at++;
    return (cr_sum_at)at;
}
#endif

#endif
