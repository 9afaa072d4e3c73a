/* power: the generic way of the exact sums.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#include "kernels/cpu/family/power.h"

#include "kernels/core/limbs.h"

bool cr_power_term(const cr_sum_row *row, const number *x, uint64_t words[CR_SUM_POWER]) {
    memset(words, 0, CR_SUM_POWER * sizeof *words);
    words[0] = x->magnitude;
    for (unsigned k = 1; k < row->power; k++) {
        unsigned __int128 carry = 0;
        for (unsigned i = 0; i <= k; i++) {
            carry += (unsigned __int128)words[i] * x->magnitude;
            words[i] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return x->negative && (row->family & CR_FAM_SIGNED);
}

static void add(cr_sum *sum, unsigned limbs, const cr_sum_row *row, const number *x) {
    if (x->nan || x->infinite) {
        number_count(&sum->special, x->nan, x->infinite, x->negative);
        return;
    }
    uint64_t words[CR_SUM_POWER];
    const bool negative = cr_power_term(row, x, words);
    for (unsigned i = 0; i < row->power; i++)
        if (words[i]) cr_limbs_put(sum->limbs, limbs, &sum->pending, words[i], negative, x->bit * row->power + 64 * i);
}

void cr_power_fold(cr_partial *part, uint32_t families, const uint8_t *p, size_t n) {
    const cr_dtype dtype = (cr_dtype)part->dtype;
    const size_t size = cr_dtype_size(dtype);
    for (unsigned at = 0; at < CR_SUMS; at++) {
        const cr_sum_row *row = &cr_sum_rows[at];
        if (!(families & row->family)) continue;
        const unsigned limbs = cr_sum_limbs((cr_sum_at)at, dtype);
        for (size_t i = 0; i < n; i++) {
            const number x = number_at(dtype, p + i * size);
            add(&part->sums[at], limbs, row, &x);
        }
    }
}
