/* launch: which kernels a fold takes, and what becomes of what they leave.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/core/limbs.h"
#include "kernels/cuda/short.h"

static cr_fold_launcher float_sum(cr_dtype dtype, uint32_t family) {
    switch ((int)dtype) {
        case CR_F16:
            return cr_launch_sum_f16(family);
        case CR_BF16:
            return cr_launch_sum_bf16(family);
        case CR_F32:
            return cr_launch_sum_f32(family);
        default:
            return cr_launch_sum_f64(family);
    }
}

static cr_fold_launcher launcher_of(cr_dtype dtype, uint32_t family, uint32_t wants) {
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    switch (family) {
        case CR_FAM_COUNTS:
            return cr_launch_counts(dtype);
        case CR_FAM_EXTREMA:
            return cr_launch_extrema(dtype, wants);
        case CR_FAM_BITS:
            return cr_launch_bits(dtype);
        case CR_FAM_PROD:
            return cr_launch_prod(dtype);
        default:
            return floats ? float_sum(dtype, family) : cr_launch_int_sum(dtype, family);
    }
}

/* Takes from *families those that have kernels together. Of integers, the squares come along for what they cost: little. */
static uint32_t fused(cr_dtype dtype, uint32_t *families, cr_fold_launcher out[CR_FOLD_LAUNCHES]) {
    static const uint32_t sets[] = {CR_FUSED_DESCRIBE, CR_FUSED_SUMMARY, CR_FUSED_SPREAD};
    const uint32_t range = CR_FAM_SUM | CR_FAM_EXTREMA;
    uint32_t count = 0;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT) {
        bool extrema = (*families & range) == range;
        if (!extrema && (*families & CR_FUSED_SPREAD) != CR_FUSED_SPREAD) return 0;
        const uint32_t set = CR_FUSED_SPREAD | (extrema ? CR_FAM_EXTREMA : 0);
        out[count++] = cr_launch_fused_int(dtype, set);
        *families &= ~set;
        return count;
    }
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if ((*families & sets[i]) != sets[i]) continue;
        out[count++] = dtype == CR_F32   ? cr_launch_fused_f32(sets[i])
                       : dtype == CR_F64 ? cr_launch_fused_f64(sets[i])
                                         : cr_launch_fused_half(dtype, sets[i]);
        *families &= ~sets[i];
    }
    return count;
}

cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, uint32_t wants, cr_fold_launcher out[CR_FOLD_LAUNCHES],
                            uint32_t *count, cr_error *error) {
    *count = fused(dtype, &families, out);
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(families & family)) continue;
        cr_fold_launcher launcher = launcher_of(dtype, family, wants);
        if (launcher == NULL) {
            return cr_fail(error, CR_UNIMPLEMENTED, "the GPU has no kernel for family %u of dtype %s", family,
                           cr_dtype_name(dtype));
        }
        out[(*count)++] = launcher;
    }
    return CR_OK;
}

void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot) {
    args->data = data;
    args->n = n;
    args->index = index;
    args->plan = cr_fold_plan_make((uintptr_t)data, n, (uint32_t)cr_dtype_size(dtype), multiprocessors);
    args->multiprocessors = multiprocessors;
    args->follows = false;
    args->state = state;
    args->slot = slot;
}

/* Whether something of a sum lies in the limbs. */
static bool in_limbs(const cr_sum_found *found) {
    if (!(found->digits & CR_SHORT)) return found->control != 0;
    return (found->words[0] >> CR_SHORT_DIRTY_AT & CR_SHORT_COUNTED) != 0;
}

static int64_t digit_of(const cr_sum_found *found, unsigned i) {
    if (!(found->digits & CR_SHORT)) return (int64_t)(found->words[i] - found->blocks * CR_DIGIT_BIAS);
    const bool last = i + 1 == (found->digits & ~(uint32_t)CR_SHORT);
    const uint64_t digit = found->words[i] & (((uint64_t)1 << CR_SHORT_DIRTY_AT) - 1);
    return (int64_t)(digit - (last ? found->blocks * CR_SHORT_BIAS : 0));
}

static void take_sum(const cr_sum_found *found, cr_dtype dtype, bool squares, cr_specials *special, int64_t *limb,
                     uint32_t *pending) {
    unsigned limbs = squares ? cr_sumsq_limbs(dtype) : cr_sum_limbs(dtype);
    int grid = squares ? cr_sumsq_grid(dtype) : cr_sum_grid(dtype);
    memset(limb, 0, limbs * sizeof *limb);
    *pending = 0;
    *special = (cr_specials){0};
    if (in_limbs(found)) {
        for (unsigned i = 0; i < limbs; i++) limb[i] = found->limbs[i];
        *special = (cr_specials){found->special[0], found->special[1], found->special[2]};
        cr_limbs_carry(limb, limbs, pending);
    }
    const unsigned digits = found->digits & ~(unsigned)CR_SHORT,
                   bits = found->digits & CR_SHORT ? CR_SHORT_BITS : CR_DIGIT_BITS;
    for (unsigned i = 0; i < digits && i < CR_SUM_DIGITS; i++) {
        cr_limbs_put_signed(limb, limbs, pending, digit_of(found, i), (unsigned)(found->unit - grid) + bits * i);
    }
    cr_limbs_carry(limb, limbs, pending);
}

void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n) {
    cr_partial *p = &slot->partial;
    p->dtype = (uint8_t)dtype;
    p->families = families;
    p->n = n;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT || n == 0) return;
    const cr_sum_found *found = slot->sums;
    if (families & CR_FAM_SUM) take_sum(&found[0], dtype, false, &p->sum_special, p->sum, &p->sum_pending);
    if (families & CR_FAM_SUMABS) take_sum(&found[1], dtype, false, &p->sumabs_special, p->sumabs, &p->sumabs_pending);
    if (families & CR_FAM_SUMSQ) take_sum(&found[2], dtype, true, &p->sumsq_special, p->sumsq, &p->sumsq_pending);
}
