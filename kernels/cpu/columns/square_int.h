/* square_int: exact sums of squares of integers by column.
 *
 * A square below 2^32 is added to digit 0 as it is, one below 2^64 to digits 0 and 1. That of h·2^32 + l is h²·2^64 + h·l·2^33 + l²,
 * each product cut where digits 0, 1 and 2 meet. Those of bytes are first added in lanes of 32 bits, over the lines that come at once.
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_SQUARE_INT_H
#define CURED_KERNELS_CPU_COLUMNS_SQUARE_INT_H

#include "kernels/cpu/columns/int.h"
#include "kernels/cpu/widen.h"

enum {
    SQUARE_INT_LANES = VB / 8,
    SQUARE_BYTE_LANES = VB / 4,
    SQUARE_INT_DIGITS = 3,
    SQUARE_INT_UNITS = 4 /* that a line adds to a digit at most */
};

/* Digits that an element's square goes to. */
ALWAYS int square_int_digits(size_t size) { return size == 8 ? 3 : size == 4 ? 2 : 1; }

/* Adds the squares of lanes that hold elements of `size` bytes, widened. */
ALWAYS void square_int_add(vu64 x, size_t size, bool is_signed, vu64 *digit) {
    const uint64_t below = ((uint64_t)1 << CR_DIGIT_BITS) - 1;
    if (size <= 4) {
        const vu64 square = is_signed ? multiply_signed(x, x) : multiply_low(x, x);
        digit[0] += size == 4 ? square & below : square;
        if (size == 4) digit[1] += square >> CR_DIGIT_BITS;
        return;
    }
    if (is_signed) x = magnitude_vs64((vs64)x);
    const vu64 h = x >> 32, low = multiply_low(x, x), middle = multiply_low(x, h), high = multiply_low(h, h);
    digit[0] += (low & below) + ((middle << 33) & below);
    digit[1] += (low >> CR_DIGIT_BITS) + (middle >> (CR_DIGIT_BITS - 33)) + ((high << 12) & below);
    digit[2] += high >> (CR_DIGIT_BITS - 12);
}

#define SQUARE_BYTES(name, from, is_signed, is_bool)                                      \
    NEVER void name(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) { \
        uint64_t *to = cr_strip_digit(plan, strip, CR_AT_SUMSQ, 0) + part->first;         \
        for (unsigned c = 0; c < part->columns; c += SQUARE_BYTE_LANES) {                 \
            uint8_t pad[CR_LINES * VB];                                                   \
            const struct part now = part_vector(part, c, SQUARE_BYTE_LANES, 1, pad, 0);   \
            vu32 sum = {0};                                                               \
            for (unsigned t = 0; t < now.lines; t++) {                                    \
                const uint8_t *p = now.p + t * now.stride;                                \
                part_fetch(&now, p);                                                      \
                vu32 x = (vu32)widen_##from##_32(p);                                      \
                if (is_bool) x = min_vu32(x, ALL(vu32, 1));                               \
                if (is_signed) x = magnitude_vs32((vs32)x);                               \
                sum += sum_pairs((vs16)x, (vs16)x);                                       \
            }                                                                             \
            digits_add_u32(to + c, (vu8)sum, part->columns - c);                          \
        }                                                                                 \
    }
SQUARE_BYTES(square_int_bool, u8, false, true)
SQUARE_BYTES(square_int_u8, u8, false, false)
SQUARE_BYTES(square_int_i8, s8, true, false)
#undef SQUARE_BYTES

#define SQUARE_INT(name, element, from, is_signed)                                        \
    NEVER void name(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) { \
        enum { SIZE = sizeof(element), LANES = SQUARE_INT_LANES };                        \
        const int digits = square_int_digits(SIZE);                                       \
        uint64_t *to = cr_strip_digit(plan, strip, CR_AT_SUMSQ, 0) + part->first;         \
        for (unsigned c = 0; c < part->columns; c += LANES, to += LANES) {                \
            uint8_t pad[CR_LINES * VB];                                                   \
            const struct part now = part_vector(part, c, LANES, SIZE, pad, 0);            \
            vu64 digit[SQUARE_INT_DIGITS];                                                \
            _Pragma("GCC unroll 3") for (int d = 0; d < digits; d++) digit[d] =           \
                LOAD(vu64, to + (size_t)d * plan->columns);                               \
            for (unsigned t = 0; t < now.lines; t++) {                                    \
                const uint8_t *p = now.p + t * now.stride;                                \
                part_fetch(&now, p);                                                      \
                vu64 x = (vu64)widen_##from##_64(p);                                      \
                square_int_add(x, SIZE, is_signed, digit);                                \
            }                                                                             \
            _Pragma("GCC unroll 3") for (int d = 0; d < digits; d++)                      \
                memcpy(to + (size_t)d * plan->columns, &digit[d], VB);                    \
        }                                                                                 \
    }
SQUARE_INT(square_int_u16, uint16_t, u16, false)
SQUARE_INT(square_int_i16, int16_t, s16, true)
SQUARE_INT(square_int_u32, uint32_t, u32, false)
SQUARE_INT(square_int_i32, int32_t, s32, true)
SQUARE_INT(square_int_u64, uint64_t, u64, false)
SQUARE_INT(square_int_i64, int64_t, s64, true)
#undef SQUARE_INT

static void square_int_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) {
    typedef void lines_of(const cr_axis_plan *, cr_strip *, const struct part *);
    static lines_of *const lines_by_dtype[] = {
        [CR_BOOL] = square_int_bool, [CR_U8] = square_int_u8,   [CR_I8] = square_int_i8,
        [CR_U16] = square_int_u16,   [CR_I16] = square_int_i16, [CR_U32] = square_int_u32,
        [CR_I32] = square_int_i32,   [CR_U64] = square_int_u64, [CR_I64] = square_int_i64};
    cr_strip_sum *sum = &strip->sums[CR_AT_SUMSQ];
    const unsigned units = SQUARE_INT_UNITS * part->lines, digits = (unsigned)square_int_digits(plan->size);
    if (sum->units + units > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, CR_AT_SUMSQ);
    sum->units += units;
    if (sum->high < digits) cr_strip_extend(plan, strip, CR_AT_SUMSQ, 0, digits);
    lines_by_dtype[plan->dtype](plan, strip, part);
}

#endif
