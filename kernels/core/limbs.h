/* limbs: the fixed-point superaccumulator under every exact sum.
 *
 * A number is Σ limb[i]·2^(32·i) on the grid of its type (2^cr_sum_grid): 32-bit digits in signed 64-bit limbs, so
 * that carries can wait. (Kulisch and Miranker 1986; Neal 2015, arXiv:1505.05571.) A limb takes 2^31 raw additions of
 * less than 2^32; `pending` counts them, and a carry pass brings every limb but the top back to [0, 2^32).
 *
 * Thread: any; the caller owns the limbs. */
#ifndef CURED_KERNELS_CORE_LIMBS_H
#define CURED_KERNELS_CORE_LIMBS_H

#include <stdbool.h>
#include <stdint.h>

/* Elements that are counted, and never added to the number. */
typedef struct cr_specials {
    uint64_t nans, pinfs, ninfs;
} cr_specials;

enum { CR_PENDING_MAX = 1 << 30 };

/* The carry pass. */
static inline void cr_limbs_carry(int64_t *limb, unsigned count, uint32_t *pending) {
    for (unsigned i = 0; i + 1 < count; i++) {
        int64_t carry = limb[i] >> 32; /* arithmetic: rounds down, which leaves a digit in [0, 2^32) */
        limb[i] = (int64_t)((uint64_t)limb[i] & 0xffffffffu);
        limb[i + 1] = (int64_t)((uint64_t)limb[i + 1] + (uint64_t)carry); /* the top one wraps: see cr_limbs_put */
    }
    *pending = 0;
}

/* Adds magnitude·2^bit, or takes it away. The top limb takes all that lies above it, modulo its 64 bits: numbers on the way to a sum may
 * end above the limbs, as a sign does that was carried up, but the sum of 2^63 elements does not (CR_SUM_LIMBS), so that it is right. */
static inline void cr_limbs_put(int64_t *limb, unsigned count, uint32_t *pending, unsigned __int128 magnitude,
                                bool negative, unsigned bit) {
    const unsigned top = count - 1;
    unsigned at = bit / 32, shift = bit % 32;
    uint64_t low = (uint64_t)magnitude & 0xffffffffu;
    unsigned __int128 rest = magnitude >> 32;
    uint64_t digit = low << shift; /* < 2^63 */
    bool more = true;
    while (more && at < top) {
        int64_t add = (int64_t)(digit & 0xffffffffu);
        limb[at++] += negative ? -add : add;
        uint64_t carry = digit >> 32;
        more = rest != 0 || carry != 0;
        digit = (((uint64_t)rest & 0xffffffffu) << shift) | carry;
        rest >>= 32;
    }
    if (more && at <= top + 1) {
        const uint64_t left = (digit + ((uint64_t)rest << 32 << shift)) << 32 * (at - top), was = (uint64_t)limb[top];
        limb[top] = (int64_t)(negative ? was - left : was + left);
    }
    if (++*pending >= CR_PENDING_MAX) cr_limbs_carry(limb, count, pending);
}

static inline void cr_limbs_put_signed(int64_t *limb, unsigned count, uint32_t *pending, __int128 value, unsigned bit) {
    if (value == 0) return;
    bool negative = value < 0;
    unsigned __int128 magnitude = negative ? -(unsigned __int128)value : (unsigned __int128)value;
    cr_limbs_put(limb, count, pending, magnitude, negative, bit);
}

/* Digits of up to 2^31 numbers that were added, as one number has them. False: they are more than limbs hold. in may be limbs. */
static inline bool cr_limbs_take(const int64_t *in, unsigned count, int64_t *limbs) {
    __int128 carry = 0;
    for (unsigned i = 0; i < count; i++) {
        const __int128 digit = in[i] + carry;
        carry = digit >> 32;
        limbs[i] = (int64_t)((uint64_t)digit & 0xffffffffu);
    }
    if (carry != 0 && carry != -1) return false;
    limbs[count - 1] += (int64_t)carry * ((int64_t)1 << 32); /* the top one has the sign */
    return true;
}

/* Whether counts of n elements are none below 0, and none above n. */
static inline bool cr_counts_take(const int64_t *in, unsigned count, uint64_t n) {
    for (unsigned i = 0; i < count; i++)
        if (in[i] < 0 || (uint64_t)in[i] > n) return false;
    return true;
}

#endif
