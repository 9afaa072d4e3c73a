/* turns: how the bits of a type's elements become order-preserving unsigned keys, which cr_bits_of_key undoes (kernels/core/key.h): looked
 * up once, for loops over many elements.
 *
 * Thread: any; a plain value. Owner: the caller. */
#ifndef CURED_KERNELS_CORE_TURNS_H
#define CURED_KERNELS_CORE_TURNS_H

#include "kernels/core/round.h"

/* top: the sign's bit. with_sign, without: what bits that have it, and that have it not, are turned by. last: the greatest magnitude that
 * is no NaN's. */
typedef struct cr_turns {
    uint64_t top, with_sign, without, last;
} cr_turns;

static inline cr_turns cr_turns_of(cr_dtype dtype) {
    const uint64_t top = (uint64_t)1 << (8 * cr_dtype_size(dtype) - 1);
    const cr_kind kind = cr_dtype_kind(dtype);
    cr_turns t = {top, kind == CR_KIND_SINT ? top : 0, kind == CR_KIND_SINT ? top : 0, UINT64_MAX};
    if (kind != CR_KIND_FLOAT) return t;
    t.with_sign = top | (top - 1);
    t.without = top;
    t.last = cr_float_infinity(dtype, false);
    if (cr_float_is_nan(dtype, t.last)) t.last--; /* it has none */
    return t;
}

static inline uint64_t cr_turned(const cr_turns *t, uint64_t bits) {
    return bits ^ (bits & t->top ? t->with_sign : t->without);
}

/* Of bits without a NaN's, and of any of another type than floats. */
static inline bool cr_turns_number(const cr_turns *t, uint64_t bits) { return (bits & (t->top - 1)) <= t->last; }

#endif
