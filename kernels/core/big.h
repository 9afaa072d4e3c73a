/* big: natural numbers of fixed capacity on the stack, for finishing exact sums.
 *
 * Schoolbook arithmetic on 32-bit digits (Knuth, TAOCP 2, 4.3.1). It runs once per answer; the longest operand is the
 * longest sum of a partial (sum.def), or the square of a float64 sum (4,352 bits). Digits above `n` are not initialised; the top digit is never zero.
 *
 * Thread: any. Owner: the caller. Nothing allocates. */
#ifndef CURED_KERNELS_CORE_BIG_H
#define CURED_KERNELS_CORE_BIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/core/sum.h"

enum { CR_BIG_DIGITS = CR_SUM_LIMBS + 26 }; /* and a carry, a factor of 64 bits, a shift */

typedef struct cr_big {
    uint32_t n; /* digits in use; 0 is zero */
    uint32_t d[CR_BIG_DIGITS];
} cr_big;

#ifndef CURED_SUM_ALONE
void cr_big_set(cr_big *x, unsigned __int128 value);
#endif
/* |Σ limb[i]·2^(32·i)|; returns whether the number is negative. */
bool cr_big_from_limbs(cr_big *x, const int64_t *limb, unsigned count);
/* Bits up to and with the highest one; 0 for zero. */
unsigned cr_big_bits(const cr_big *x);
#ifndef CURED_SUM_ALONE
int cr_big_compare(const cr_big *a, const cr_big *b);
void cr_big_shift_left(cr_big *x, unsigned bits);
#endif
/* Returns whether a one was shifted out. */
bool cr_big_shift_right(cr_big *x, unsigned bits);
#ifndef CURED_SUM_ALONE
/* a += b. */
void cr_big_add(cr_big *a, const cr_big *b);
/* a -= b, for a >= b. */
void cr_big_subtract(cr_big *a, const cr_big *b);
/* out = a·b; out is neither a nor b. */
void cr_big_multiply(cr_big *out, const cr_big *a, const cr_big *b);
/* x /= divisor (not 0), rounded down; returns the remainder. */
uint64_t cr_big_divide(cr_big *x, uint64_t divisor);
/* x becomes what x / divisor leaves; returns the quotient, which is below 2^128. The divisor has two digits or more, and the top one's highest
 * bit is set. */
unsigned __int128 cr_big_divide_long(cr_big *x, const cr_big *divisor);
/* floor(sqrt(x)) for x >= 2^126. */
uint64_t cr_root_of_128(unsigned __int128 x);
/* x = floor(sqrt(x)) for x < 2^128; returns whether there was a remainder. */
bool cr_big_root(cr_big *x);
#endif
/* The lowest 128 bits. */
unsigned __int128 cr_big_low(const cr_big *x);
#ifndef CURED_SUM_ALONE
/* Decimal digits into text (cut to cap, always terminated). */
void cr_big_decimal(const cr_big *x, bool negative, char *text, size_t cap);
#endif

#endif
