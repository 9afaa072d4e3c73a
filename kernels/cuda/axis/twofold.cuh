/* twofold: a number as the sum of two float64s and a bound of what they miss, so that the last step of a mean of squares, a root or a
 * variance is a few float64 operations where it is certain how the result is rounded, and long arithmetic (words.cuh) only where it is not.
 *
 * Sums and products are Dekker's and Knuth's (Dekker 1971; TAOCP 2, 4.2.2), the test is Ziv's (1991): the result is certain if both ends of
 * what the number may be round to it. Exponents are such that nothing overflows or is denormal; who makes a number sees to that.
 * Thread: GPU. Owner: none; plain values. */
#ifndef CURED_KERNELS_CUDA_AXIS_TWOFOLD_CUH
#define CURED_KERNELS_CUDA_AXIS_TWOFOLD_CUH

#include "kernels/cuda/thread/float.cuh"

/* The number lies within `off` of high + low; |low| is at most half of high's last bit. */
struct cr_twofold {
    double high, low, off;
    /* A step misses less than 2^-101 of its result; STEP bounds that with room. */
    static constexpr double STEP = 0x1p-100;

    /* value·2^unit, exactly; |value| is 2^62 at most. */
    static CR_DEVICE cr_twofold of(long long value, int unit) {
        const double high = __ll2double_rn(value), power = cr_power(unit);
        return {__dmul_rn(high, power), __dmul_rn(__ll2double_rn(value - __double2ll_rn(high)), power), 0};
    }
    /* high + low again with a small low. */
    static CR_DEVICE cr_twofold made(double high, double low, double off) {
        const double sum = __dadd_rn(high, low);
        return {sum, __dsub_rn(low, __dsub_rn(sum, high)), off};
    }
    CR_DEVICE cr_twofold plus(const cr_twofold &y) const {
        const double sum = __dadd_rn(high, y.high), back = __dsub_rn(sum, high);
        const double rest = __dadd_rn(__dsub_rn(high, __dsub_rn(sum, back)), __dsub_rn(y.high, back));
        return made(sum, __dadd_rn(rest, __dadd_rn(low, y.low)), __fma_rn(__dadd_rn(fabs(high), fabs(y.high)), STEP, __dadd_rn(off, y.off)));
    }
    CR_DEVICE cr_twofold negative() const { return {-high, -low, off}; }
    /* Of an exact one. */
    CR_DEVICE cr_twofold squared() const {
        const double square = __dmul_rn(high, high), rest = __fma_rn(high, high, -square);
        return made(square, __fma_rn(__dadd_rn(high, high), low, rest), __dmul_rn(square, STEP));
    }
    /* By an integer below 2^53, whose inverse is `inverse` rounded. */
    CR_DEVICE cr_twofold over(double n, double inverse) const {
        const double share = __dmul_rn(high, inverse), rest = __dadd_rn(__fma_rn(-share, n, high), low);
        return made(share, __dmul_rn(rest, inverse), __fma_rn(fabs(share), STEP, __dmul_rn(off, __dmul_rn(inverse, 1 + 0x1p-50))));
    }
    /* Of a positive one. */
    CR_DEVICE cr_twofold root() const {
        const double near = __dsqrt_rn(high), half = __ddiv_rn(0.5, near), more = __dmul_rn(__dadd_rn(__fma_rn(-near, near, high), low), half);
        return {near, more, __fma_rn(fabs(more), 0x1p-46, __fma_rn(near, STEP, __dmul_rn(off, __dadd_rn(half, half))))};
    }
    /* The number rounded, if that is certain. */
    CR_DEVICE bool rounded(double &to) const {
        const double wide = __fma_rn(fabs(high), STEP, __dmul_rn(off, 1 + 0x1p-50));
        to = __dadd_rn(high, __dsub_rn(low, wide));
        return to == __dadd_rn(high, __dadd_rn(low, wide));
    }
};

#endif
