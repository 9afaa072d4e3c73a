/* answer: from what a fold of a float sum has found to an answer, by one thread; see answer.h.
 *
 * Thread: GPU. Owner: the kernel, of the number's memory. */
#ifndef CURED_KERNELS_CUDA_AXIS_ANSWER_CUH
#define CURED_KERNELS_CUDA_AXIS_ANSWER_CUH

#include "kernels/cuda/axis/answer.h"
#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/plan/burst_float.h"
#include "kernels/cuda/thread/float.cuh"

/* Digits of 32 bits: those of a window of the sum's grid, or all, which are LIMBS at most. */
template <int LIMBS> struct cr_answer_digits {
    static constexpr int ROOM = LIMBS + 4;
    int64_t digit[ROOM];
    int first, count; /* the window's first limb on the grid, and how many it has */
    bool negative;

    CR_DEVICE void put(int64_t value, int bit) {
        const int at = bit / 32 - first, by = bit % 32;
        if (value == 0 || at < 0 || at + 1 >= count) return;
        digit[at] += (uint32_t)((uint64_t)value << by);
        digit[at + 1] += by == 0 ? value >> 32 : value >> (32 - by);
    }
    /* Digits below 2^32, and the sign apart. */
    CR_DEVICE void settle() {
        int64_t carry = 0;
#pragma unroll 1
        for (int i = 0; i < count; i++) {
            const int64_t sum = digit[i] + carry;
            digit[i] = (uint32_t)sum;
            carry = sum >> 32;
        }
        negative = carry < 0;
        uint64_t one = 1;
#pragma unroll 1
        for (int i = 0; i < count && negative; i++) {
            one += (uint32_t)~digit[i];
            digit[i] = (uint32_t)one;
            one >>= 32;
        }
    }
    /* Up to the highest digit that is not 0. */
    CR_DEVICE int length() const {
        int top = count;
#pragma unroll 1
        while (top > 0 && digit[top - 1] == 0) top--;
        return top;
    }
    /* Up by whole digits, which there is room for. */
    CR_DEVICE void raise(int length, int by) {
#pragma unroll 1
        for (int i = length - 1; i >= 0; i--) digit[i + by] = digit[i];
#pragma unroll 1
        for (int i = 0; i < by; i++) digit[i] = 0;
    }
    /* Up until the highest of `length` digits has its highest bit set. Gives by how many bits. */
    CR_DEVICE int normalise(int length) {
        const int by = __clz((int)digit[length - 1]);
#pragma unroll 1
        for (int i = length - 1; by > 0 && i >= 0; i--)
            digit[i] = (uint32_t)(digit[i] << by) | (i > 0 ? (uint32_t)digit[i - 1] >> (32 - by) : 0);
        return by;
    }
    /* The highest 97 to 128 bits; exponent: of the lowest of them, in units of the grid. */
    CR_DEVICE cr_u128 leading(int &exponent, bool &sticky) const {
        const int top = length() - 1;
        cr_u128 value = 0;
#pragma unroll 1
        for (int i = top; i > top - 4 && i >= 0; i--) value = value << 32 | (uint32_t)digit[i];
        const int low = top > 3 ? top - 3 : 0;
        exponent += 32 * (first + low);
#pragma unroll 1
        for (int i = 0; i < low; i++) sticky |= digit[i] != 0;
        return value;
    }
};

typedef cr_answer_digits<CR_F64_SQUARE_LIMBS> cr_answer_number;

/* Takes q·y, of `length` digits, from the digits of x from place `at` on. Gives what is owed beyond them. */
CR_DEVICE int64_t cr_answer_less(cr_answer_number &x, int at, const cr_answer_number &y, int length, uint32_t q) {
    uint64_t carry = 0;
    int64_t borrow = 0;
#pragma unroll 1
    for (int i = 0; i < length; i++) {
        carry += (uint64_t)q * (uint32_t)y.digit[i];
        const int64_t rest = x.digit[at + i] - (int64_t)(uint32_t)carry + borrow;
        x.digit[at + i] = (uint32_t)rest;
        borrow = rest >> 32;
        carry >>= 32;
    }
    return (int64_t)carry - borrow;
}
/* Adds y to them. Gives what is carried beyond. */
CR_DEVICE int64_t cr_answer_more(cr_answer_number &x, int at, const cr_answer_number &y, int length) {
    uint64_t carry = 0;
#pragma unroll 1
    for (int i = 0; i < length; i++) {
        carry += (uint64_t)x.digit[at + i] + (uint64_t)y.digit[i];
        x.digit[at + i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (int64_t)carry;
}

/* x/y, which has `length` digits, as 96 bits or one more, whose unit is that of the numbers times 2^exponent. Changes both. Digit by digit,
 * as one divides by hand: from the two highest digits of what is left follows a digit that is right, or one or two too large. */
CR_DEVICE cr_u128 cr_answer_ratio(cr_answer_number &x, cr_answer_number &y, int length, int &exponent, bool &sticky) {
    enum { DIGITS = 3 };
    int top = x.length();
    if (top == 0) return 0;
    exponent += 32 * (x.first - y.first) + y.normalise(length) - x.normalise(top);
    if (top < length + DIGITS) {
        const int by = length + DIGITS - top;
        x.raise(top, by);
        top += by;
        exponent -= 32 * by;
    }
    exponent += 32 * (top - length - DIGITS);
    cr_u128 quotient = 1;
    if (cr_answer_less(x, top - length, y, length, 1) != 0) {
        cr_answer_more(x, top - length, y, length);
        quotient = 0;
    }
    const uint64_t highest = (uint32_t)y.digit[length - 1];
#pragma unroll 1
    for (int at = top - length - 1; at >= top - length - DIGITS; at--) {
        const uint64_t left = (uint64_t)x.digit[at + length] << 32 | (uint32_t)x.digit[at + length - 1];
        uint32_t q = (uint32_t)min(left / highest, (uint64_t)UINT32_MAX);
        x.digit[at + length] -= cr_answer_less(x, at, y, length, q);
#pragma unroll 1
        for (; x.digit[at + length] < 0; q--) x.digit[at + length] += cr_answer_more(x, at, y, length);
        quotient = quotient << 32 | q;
    }
#pragma unroll 1
    for (int i = 0; i < top; i++) sticky |= x.digit[i] != 0;
    return quotient;
}

/* As the host reads it: take_sum in plan/launchers.c. Gives what NaNs and infinities there were. */
CR_DEVICE uint64_t cr_answer_take(cr_answer_number &number, const cr_sum_found &found, int limbs, int grid) {
    const bool all = cr_sum_in_limbs(&found);
    const int digits = (int)cr_sum_digits(&found), width = cr_sum_digit_bits(&found), bit = found.unit - grid;
    uint64_t marks = 0;
    number.first = all ? 0 : bit / 32;
    number.count = min(all ? limbs + 3 : digits * width / 32 + 5, (int)cr_answer_number::ROOM);
#pragma unroll 1
    for (int i = 0; i < number.count; i++) number.digit[i] = all && i < limbs ? found.limbs[i] : 0;
#pragma unroll 1
    for (int i = 0; i < digits; i++) number.put(cr_sum_digit(&found, (uint32_t)i), bit + width * i);
    if (all) {
        marks = found.special[0] & CR_MARK_NANS;
        if (found.special[1] != 0) marks |= CR_MARK_PLUS;
        if (found.special[2] != 0) marks |= CR_MARK_MINUS;
    }
    number.settle();
    return marks;
}

/* What the fold has left of a sum, to shared memory, word by word and all at once: one thread alone would wait for each word. */
CR_DEVICE void cr_answer_fetch(cr_sum_found &found, const cr_sum_found &left, uint32_t thread, uint32_t threads) {
    static_assert(sizeof(cr_sum_found) % 8 == 0, "whole words");
    const unsigned long long *from = reinterpret_cast<const unsigned long long *>(&left);
    unsigned long long *to = reinterpret_cast<unsigned long long *>(&found);
#pragma unroll 4
    for (uint32_t i = thread; i < sizeof(cr_sum_found) / 8; i += threads) to[i] = __ldcg(from + i);
}

/* Answer k. */
CR_DEVICE void cr_answer_make(const cr_answer_args &args, uint32_t k, const cr_sum_found &found, cr_answer_number &number) {
    int exponent = args.sum[k].grid;
    bool sticky = false;
    const uint64_t marks = cr_answer_take(number, found, args.sum[k].limbs, exponent);
    const cr_u128 magnitude = number.leading(exponent, sticky);
    cr_float_answer(args.axis, args.axis.out[k], 0, number.negative, magnitude, exponent, sticky, marks);
}

#endif
