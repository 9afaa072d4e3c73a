/* extreme: the last step of extrema, their places and their range, of segments and by key: from the least and the greatest element to a
 * value of the result's type.
 *
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_AXIS_EXTREME_CUH
#define CURED_KERNELS_CUDA_AXIS_EXTREME_CUH

#include "kernels/cuda/axis/round.cuh"

/* Of an output of n elements: what round.cuh asks for. */
struct cr_closed {
    struct {
        uint64_t n;
    } at;
    uint64_t ddof;
    bool skip;
    uint64_t first; /* the number of the first output */
    cr_axis_failure *failure;
};

CR_DEVICE uint64_t cr_some_of(const cr_closed &of, uint64_t) { return of.at.n != 0 ? of.at.n : ~0ull; }

/* What an output's elements come to. */
struct cr_extremes {
    uint32_t dtype, size;
    bool is_float, is_signed, skip; /* skip: of NaNs */
    uint64_t count, nans;           /* nans: any number that is not 0 and not count, where some elements are NaNs and others are not */
    uint64_t most, least;           /* elements' bits; of no matter where all are NaNs */
    uint64_t most_at, least_at;     /* the first of them; where a NaN counts, the first of those */

    CR_DEVICE uint64_t top() const { return 1ull << (8 * size - 1); }
    CR_DEVICE uint64_t all() const { return top() | (top() - 1); }
    /* The element that a key stands for (kernels/core/key.h). */
    CR_DEVICE uint64_t bits_of(uint64_t key) const {
        if (is_signed) return key ^ top();
        if (is_float) return key & top() ? key ^ top() : ~key & all();
        return key;
    }
    CR_DEVICE uint64_t magnitude(uint64_t bits) const {
        if (is_float) return bits & (top() - 1);
        return is_signed && (bits & top()) != 0 ? (0 - bits) & all() : bits;
    }
    /* The element as a whole number. */
    CR_DEVICE cr_i128 value(uint64_t bits) const {
        const uint32_t unused = 64 - 8 * size;
        return is_signed ? (cr_i128)((int64_t)(bits << unused) >> unused) : (cr_i128)bits;
    }
};

/* A number that is not 0, as the highest bits of its magnitude, in units of 2^exponent. */
struct cr_scaled {
    uint64_t magnitude;
    int exponent;
    bool negative, infinite;

    CR_DEVICE cr_scaled(int dtype, uint64_t bits) {
        const cr_fields f = dtype == CR_F8_E4M3 ? cr_fields{CR_F8_E4M3_MANTISSA, CR_F8_E4M3_BIAS, CR_F8_E4M3_EXPONENT} : dtype == CR_F8_E5M2 ? cr_fields{CR_F8_E5M2_MANTISSA, CR_F8_E5M2_BIAS, CR_F8_E5M2_EXPONENT} : cr_fields_of(dtype);
        const int field = (int)(bits >> f.mantissa & ((1ull << f.width) - 1));
        const uint64_t own = (bits & ((1ull << f.mantissa) - 1)) | (uint64_t)(field != 0) << f.mantissa;
        const int up = __clzll((long long)own); /* 64 of a zero, which lies below all */
        magnitude = own == 0 ? 0 : own << up;
        exponent = own == 0 ? -(1 << 20) : max(field, 1) - f.bias - f.mantissa - up;
        negative = (bits >> (f.mantissa + f.width) & 1) != 0;
        infinite = field == (1 << f.width) - 1 && dtype != CR_F8_E4M3; /* which has none */
    }
};

/* The greatest less the least, rounded once. */
CR_CALLED uint64_t cr_float_range(int dtype, int result, uint64_t most, uint64_t least) {
    const cr_scaled high(dtype, most), low(dtype, least);
    if (most == least) return high.infinite ? cr_nan_bits(result) : 0;
    if (high.infinite || low.infinite) return cr_infinite_bits(result, false);
    const bool first = high.exponent > low.exponent || (high.exponent == low.exponent && high.magnitude >= low.magnitude);
    const cr_scaled &large = first ? high : low, &small = first ? low : high;
    const int down = min(large.exponent - small.exponent, 127);
    const cr_u128 part = (cr_u128)small.magnitude << 63, kept = part >> down;
    const bool sticky = kept << down != part;
    cr_u128 sum = (cr_u128)large.magnitude << 63;
    if (high.negative != low.negative) sum += kept;
    else sum -= kept + sticky; /* what is then too much lies above the sum again */
    return cr_rounded(result, false, sum, large.exponent - 63, sticky);
}

/* False: no element has that value; the answer is 0. */
CR_DEVICE bool cr_extreme_answer(const cr_closed &of, const cr_axis_out &out, uint64_t output, const cr_extremes &e) {
    const bool none = e.count == e.nans, nan = e.nans != 0 && (!e.skip || none);
    uint64_t bits = 0;
    if (e.count == 0) {
        cr_put_bits(out.to, output, out.result, 0);
        return out.term == CR_TERM_GREATEST_MAGNITUDE;
    }
    if (out.term == CR_TERM_RANGE && !e.is_float) {
        cr_words<2> value;
        value.set(e.value(e.most) - e.value(e.least));
        cr_int_answer(of, out, output, value);
        return true;
    }
    if (out.term == CR_TERM_LEAST_INDEX || out.term == CR_TERM_GREATEST_INDEX) {
        bits = none && e.skip ? UINT64_MAX : out.term == CR_TERM_LEAST_INDEX ? e.least_at : e.most_at;
    } else if (out.term == CR_TERM_RANGE) {
        bits = nan ? cr_nan_bits(out.result) : cr_float_range((int)e.dtype, out.result, e.most, e.least);
    } else if (out.term == CR_TERM_GREATEST_MAGNITUDE) {
        bits = nan && !e.skip ? cr_nan_bits((int)e.dtype) : none ? 0 : max(e.magnitude(e.most), e.magnitude(e.least));
    } else {
        bits = nan ? cr_nan_bits((int)e.dtype) : out.term == CR_TERM_LEAST ? e.least : e.most;
    }
    cr_put_bits(out.to, output, out.result, bits);
    return true;
}

CR_DEVICE void cr_report_no_value(unsigned long long *wrong, const cr_axis_out &out, uint64_t output) {
    atomicMax(wrong, (unsigned long long)(UINT32_MAX - (uint32_t)output) << 32 | CR_AXIS_NO_VALUE | (uint32_t)out.op << 8 | (uint32_t)out.result);
}

#endif
