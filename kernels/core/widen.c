/* widen: see widen.h. Thread: any; nothing here holds state. */
#include "kernels/core/widen.h"

#include <stdio.h>
#include <string.h>

#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.h"

/* Bits of the magnitudes of an integer type, and whether it has a sign. */
static unsigned bits_of(cr_dtype dtype, bool *is_signed) {
    *is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
    return cr_dtype_kind(dtype) == CR_KIND_BOOL ? 1 : 8 * (unsigned)cr_dtype_size(dtype) - *is_signed;
}

static cr_dtype common_integer(uint32_t types) {
    unsigned bits = 0;
    bool is_signed = false, own;
    for (unsigned t = 1; t <= CR_DTYPE_INPUTS; t++) {
        if (!(types >> t & 1)) continue;
        const unsigned more = bits_of((cr_dtype)t, &own);
        if (more > bits) bits = more;
        is_signed |= own;
    }
    for (unsigned t = 1; t <= CR_DTYPE_INPUTS; t++) /* they rise, an unsigned type before the signed one of its size */
        if (cr_dtype_is_input((cr_dtype)t) && cr_dtype_kind((cr_dtype)t) != CR_KIND_FLOAT &&
            bits_of((cr_dtype)t, &own) >= bits && (own || !is_signed))
            return (cr_dtype)t;
    return CR_DTYPE_NONE;
}

cr_status cr_widen_common(uint32_t types, cr_dtype *wide, cr_error *error) {
    unsigned floats = 0, integers = 0;
    char names[160] = "";
    for (unsigned t = 1; t <= CR_DTYPE_INPUTS; t++) {
        if (!(types >> t & 1)) continue;
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", cr_dtype_name((cr_dtype)t));
        *(cr_dtype_kind((cr_dtype)t) == CR_KIND_FLOAT ? &floats : &integers) += 1;
        *wide = (cr_dtype)t;
    }
    if (floats + integers == 1) return CR_OK;
    if (floats && integers)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "the list has arrays of %s: floats and integers are not one array, because an integer may have "
                       "no float of its value: cast them",
                       names);
    *wide = floats ? types >> CR_F64 & 1 ? CR_F64 : CR_F32 : common_integer(types);
    if (*wide != CR_DTYPE_NONE) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "the list has arrays of %s: they are not one array, because no type holds all of their elements: "
                   "cast them",
                   names);
}

cr_status cr_widen_check(cr_dtype wide, uint32_t families, cr_error *error) {
    if (families & CR_FAM_DIGEST)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "digest: of arrays of one type, because in a wider one an element has other bytes: cast the "
                       "arrays to %s",
                       cr_dtype_name(wide));
    if (!(families & CR_FAM_PROD) || cr_dtype_kind(wide) != CR_KIND_FLOAT) return CR_OK;
    return cr_fail(error, CR_INVALID_ARGUMENT,
                   "prod: of floats of one type, because the bits go by blocks of it: cast the arrays to %s",
                   cr_dtype_name(wide));
}

/* The bits that an element has. */
static uint64_t mask_of(cr_dtype dtype) {
    const unsigned width = dtype == CR_BOOL ? 1 : 8 * (unsigned)cr_dtype_size(dtype);
    return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
}

/* An integer's bits in 64. */
static uint64_t extended(cr_dtype dtype, uint64_t bits) {
    const uint64_t mask = mask_of(dtype), top = mask ^ mask >> 1;
    return cr_dtype_kind(dtype) == CR_KIND_SINT && bits & top ? bits | ~mask : bits & mask;
}

static uint64_t widened_bits(cr_dtype dtype, cr_dtype wide, uint64_t bits) {
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) return cr_float_nearest(wide, cr_float_value(dtype, bits));
    return extended(dtype, bits) & mask_of(wide);
}

static void widen_extremum(cr_extremum *e, cr_dtype dtype, cr_dtype wide) {
    if (e->index == UINT64_MAX) return;
    const uint64_t bits = widened_bits(dtype, wide, cr_bits_of_key(dtype, e->key));
    const uint64_t mask = mask_of(wide), top = mask ^ mask >> 1;
    const bool has_sign = cr_dtype_kind(wide) == CR_KIND_SINT || cr_dtype_kind(wide) == CR_KIND_FLOAT;
    e->key = !has_sign ? bits : cr_dtype_kind(wide) == CR_KIND_FLOAT && (bits & top) != 0 ? ~bits & mask : bits ^ top;
}

static void widen_sum(cr_sum *sum, cr_sum_at at, cr_dtype dtype, cr_dtype wide) {
    const unsigned from = cr_sum_limbs(at, dtype), to = cr_sum_limbs(at, wide);
    const unsigned finer = (unsigned)(cr_sum_grid(at, dtype) - cr_sum_grid(at, wide));
    int64_t limbs[CR_SUM_LIMBS];
    cr_limbs_carry(sum->limbs, from, &sum->pending);
    memcpy(limbs, sum->limbs, from * sizeof *limbs);
    memset(sum->limbs, 0, to * sizeof *limbs);
    for (unsigned i = 0; i < from; i++) cr_limbs_put_signed(sum->limbs, to, &sum->pending, limbs[i], 32 * i + finer);
}

cr_status cr_partial_widen(cr_partial *p, cr_dtype wide, cr_error *error) {
    const cr_dtype dtype = (cr_dtype)p->dtype;
    if (dtype == wide) return CR_OK;
    if (cr_widen_check(wide, p->families, error) != CR_OK) return error->code;
    p->dtype = (uint8_t)wide;
    if (p->families & CR_FAM_EXTREMA) {
        widen_extremum(&p->min, dtype, wide);
        widen_extremum(&p->max, dtype, wide);
    }
    if (p->families & CR_FAM_BITS && p->n != 0) { /* of nothing they are the same in every type */
        p->bit_and = extended(dtype, p->bit_and) | ~mask_of(wide);
        p->bit_or = widened_bits(dtype, wide, p->bit_or);
        p->bit_xor = widened_bits(dtype, wide, p->bit_xor);
    }
    for (unsigned at = 0; at < CR_SUMS; at++)
        if (p->families & cr_sum_rows[at].family) widen_sum(&p->sums[at], (cr_sum_at)at, dtype, wide);
    return CR_OK;
}
