/* answer: from what a fold of a float sum has found to an answer, by one thread; see answer.h.
 *
 * Thread: GPU. Owner: the kernel, of the number's memory. */
#ifndef CURED_KERNELS_CUDA_AXIS_ANSWER_CUH
#define CURED_KERNELS_CUDA_AXIS_ANSWER_CUH

#include "kernels/cuda/axis/answer.h"
#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/plan/burst_float.h"

/* Digits of 32 bits: those of a window of the sum's grid, or all. */
struct cr_answer_number {
    static constexpr int ROOM = CR_F64_SQUARE_LIMBS + 4;
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
    /* The highest 97 to 128 bits; exponent: of the lowest of them, in units of the grid. */
    CR_DEVICE cr_u128 leading(int &exponent, bool &sticky) const {
        int top = count - 1;
#pragma unroll 1
        while (top > 3 && digit[top] == 0) top--;
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
