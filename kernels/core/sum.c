/* sum: the exact sums' rows, and how long each is for each element type.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/sum.h"

const cr_sum_row cr_sum_rows[CR_SUMS] = {
#define CR_SUM(symbol, power, sign) [CR_AT_##symbol] = {CR_FAM_##symbol, power},
#include "kernels/core/sum.def"
#undef CR_SUM
};

#define CR_SUM(symbol, power, sign) \
    _Static_assert((power) >= 1 && (power) <= 3, "an integer's power times 2^63 fits the wire's 256 bits");
#include "kernels/core/sum.def"
#undef CR_SUM

#define CR_FLOAT(SYMBOL, bytes, mantissa, exponent, SUMMED, NANS) \
    [CR_##SYMBOL] = {CR_##SYMBOL##_GRID, CR_##SYMBOL##_SPAN},
static const struct {
    int16_t grid, span;
} floats[] = {
#include "kernels/core/float.def"
};
#undef CR_FLOAT

static bool is_float(cr_dtype dtype) { return dtype < sizeof floats / sizeof floats[0] && floats[dtype].span; }

unsigned cr_sum_limbs(cr_sum_at at, cr_dtype dtype) {
    const unsigned power = cr_sum_rows[at].power;
    /* Integers: 64 bits for each power, of up to 2^63 elements, and a sign. */
    return is_float(dtype) ? CR_POWER_LIMBS((unsigned)floats[dtype].span, power) : 2 * power + 3;
}

int cr_sum_grid(cr_sum_at at, cr_dtype dtype) {
    return is_float(dtype) ? cr_sum_rows[at].power * floats[dtype].grid : 0;
}
