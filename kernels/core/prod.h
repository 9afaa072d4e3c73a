/* prod: products that merge: of integers as far as any result could show them, of floats by one fixed tree.
 *
 * Float arithmetic is double-double: a product's error by Dekker's split (Dekker 1971; TwoProduct in Ogita, Rump and Oishi
 * 2005), sums by Fast2Sum (Dekker 1971). A fused multiply-add gives the same error, to the bit and the sign of zero.
 *
 * Thread: any; the caller owns every state. */
#ifndef CURED_KERNELS_CORE_PROD_H
#define CURED_KERNELS_CORE_PROD_H

#include "kernels/core/partial.h"

void cr_int_prod_init(cr_int_prod *p);
/* Multiplies the magnitude alone by factor, which is not 0. */
void cr_int_prod_times(cr_int_prod *p, uint64_t factor);
void cr_int_prod_merge(cr_int_prod *into, const cr_int_prod *from);

void cr_float_prod_init(cr_float_prod *p);
/* Adds block `index` (of CR_PROD_BLOCK elements), whose product is (h + l)·2^exponent with h in [1, 2). */
void cr_float_prod_add(cr_float_prod *p, uint64_t index, double h, double l, int64_t exponent);
void cr_float_prod_merge(cr_float_prod *into, const cr_float_prod *from);
/* The product of all nodes: what the tree gives when all that is missing is ones. */
cr_prod_node cr_float_prod_root(const cr_float_prod *p);
/* The place of the node that begins a run of `count` (not 0) whole blocks from `first` on; *blocks: how many it covers. */
uint64_t cr_prod_place(uint64_t first, uint64_t count, uint64_t *blocks);

/* a·b − p, exactly, for p = a·b rounded. */
static inline double cr_prod_error(double a, double b, double p) {
    double wide_a = a * 0x1.000002p27, wide_b = b * 0x1.000002p27;
    double high_a = wide_a - (wide_a - a), high_b = wide_b - (wide_b - b);
    double low_a = a - high_a, low_b = b - high_b;
    return (((high_a * high_b - p) + low_a * high_b) + high_a * low_b) + low_a * low_b;
}

/* (h, l) times (g, k); the operands need not be in [1, 2). */
static inline void cr_prod_join(double *h, double *l, double g, double k) {
    double p = *h * g, e = cr_prod_error(*h, g, p);
    double t = *h * k + *l * g, u = e + t, s = p + u;
    *l = u - (s - p);
    *h = s;
}

/* Brings h to [1, 2), and gives the exponent that it had. */
static inline int64_t cr_prod_normalise(double *h, double *l) {
    union {
        double value;
        uint64_t bits;
    } x = {.value = *h}, scale;
    int64_t field = (int64_t)(x.bits >> 52);
    scale.bits = (uint64_t)(2046 - field) << 52;
    *h *= scale.value;
    *l *= scale.value;
    return field - 1023;
}

#endif
