/* int: exact sums of integers, by column and by row.
 *
 * A value of up to 32 bits is added to digit 0 as it is; a wider one goes to digits 0 and 1. (For Σ|x|, magnitudes.)
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_INT_H
#define CURED_KERNELS_CPU_COLUMNS_INT_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/part.h"

enum { INT_LANES = VB / 8, INT_STEPS_SAFE = 1024 /* additions of one lane before it is carried */ };

/* Adds one vector's elements: narrow values into *low, wide ones into *low and *high. */
#define INT_ADD(name, element, wide_type, is_signed, is_bool, wide)                                               \
    ALWAYS void name##_add(const uint8_t *p, bool absolute, vu64 *low, vu64 *high) {                              \
        typedef element elements __attribute__((vector_size(INT_LANES * sizeof(element))));                       \
        vu64 x = (vu64) __builtin_convertvector(LOAD(elements, p), wide_type);                                    \
        if (is_bool) x = (vu64)(x != 0) & 1;                                                                      \
        if (is_signed && absolute) {                                                                              \
            vu64 sign = (vu64)((vs64)x < 0);                                                                      \
            x = (x ^ sign) - sign;                                                                                \
        }                                                                                                         \
        if (!wide) {                                                                                              \
            *low += x;                                                                                            \
        } else {                                                                                                  \
            *low += x & (((uint64_t)1 << CR_DIGIT_BITS) - 1);                                                     \
            x >>= CR_DIGIT_BITS;                                                                                  \
            if (is_signed && !absolute) x = (x ^ 0x800) - 0x800; /* the sign of the 12 bits that are left */      \
            *high += x;                                                                                           \
        }                                                                                                         \
    }                                                                                                             \
    ALWAYS void name##_columns(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {   \
        uint64_t *low = cr_strip_digit(plan, strip, which, 0) + part->first, *high = low + plan->columns;         \
        for (unsigned c = 0; c < part->columns; c += INT_LANES) {                                                 \
            uint8_t pad[CR_LINES * VB];                                                                           \
            struct part now = *part;                                                                              \
            if (c + INT_LANES <= part->columns) {                                                                 \
                now.p += c * sizeof(element);                                                                     \
            } else {                                                                                              \
                now = part_rest(part, c, sizeof(element), pad, 0);                                                \
            }                                                                                                     \
            vu64 a = LOAD(vu64, low + c), b = wide ? LOAD(vu64, high + c) : (vu64){0};                            \
            for (unsigned t = 0; t < now.lines; t++) {                                                            \
                part_fetch(&now, now.p + t * now.stride);                                                         \
                name##_add(now.p + t * now.stride, which == 1, &a, &b);                                           \
            }                                                                                                     \
            memcpy(low + c, &a, VB);                                                                              \
            if (wide) memcpy(high + c, &b, VB);                                                                   \
        }                                                                                                         \
    }                                                                                                             \
    NEVER void name##_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {      \
        if (which == 0) {                                                                                         \
            name##_columns(plan, strip, part, 0);                                                                 \
        } else {                                                                                                  \
            name##_columns(plan, strip, part, 1);                                                                 \
        }                                                                                                         \
    }                                                                                                             \
    ALWAYS __int128 name##_stretch(const uint8_t *p, size_t n, bool absolute) {                                   \
        vu64 low = {0}, high = {0};                                                                               \
        size_t at = 0;                                                                                            \
        for (; at + INT_LANES <= n; at += INT_LANES) {                                                            \
            __builtin_prefetch((const void *)((uintptr_t)p + at * sizeof(element) + 8192));                       \
            name##_add(p + at * sizeof(element), absolute, &low, &high);                                          \
        }                                                                                                         \
        if (at < n) {                                                                                             \
            uint8_t pad[VB] = {0};                                                                                \
            memcpy(pad, p + at * sizeof(element), (n - at) * sizeof(element));                                    \
            name##_add(pad, absolute, &low, &high);                                                               \
        }                                                                                                         \
        __int128 sum = 0;                                                                                         \
        for (size_t i = 0; i < INT_LANES; i++) {                                                                  \
            sum += (int64_t)low[i] + ((__int128)(int64_t)high[i] * ((int64_t)1 << CR_DIGIT_BITS));                \
        }                                                                                                         \
        return sum;                                                                                               \
    }                                                                                                             \
    NEVER __int128 name##_row(const uint8_t *p, uint64_t n, bool absolute) {                                      \
        __int128 sum = 0;                                                                                         \
        for (uint64_t done = 0; done < n; done += INT_STEPS_SAFE * INT_LANES) {                                   \
            size_t now = n - done < INT_STEPS_SAFE * INT_LANES ? (size_t)(n - done) : INT_STEPS_SAFE * INT_LANES; \
            const uint8_t *from = p + done * sizeof(element);                                                     \
            sum += absolute ? name##_stretch(from, now, true) : name##_stretch(from, now, false);                 \
        }                                                                                                         \
        return sum;                                                                                               \
    }
INT_ADD(int_bool, uint8_t, vu64, false, true, false)
INT_ADD(int_u8, uint8_t, vu64, false, false, false)
INT_ADD(int_i8, int8_t, vs64, true, false, false)
INT_ADD(int_u16, uint16_t, vu64, false, false, false)
INT_ADD(int_i16, int16_t, vs64, true, false, false)
INT_ADD(int_u32, uint32_t, vu64, false, false, false)
INT_ADD(int_i32, int32_t, vs64, true, false, false)
INT_ADD(int_u64, uint64_t, vu64, false, false, true)
INT_ADD(int_i64, int64_t, vs64, true, false, true)
#undef INT_ADD

/* By dtype: columns and rows. */
static const struct {
    void (*lines)(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which);
    __int128 (*row)(const uint8_t *p, uint64_t n, bool absolute);
} int_sums[] = {[CR_BOOL] = {int_bool_lines, int_bool_row}, [CR_U8] = {int_u8_lines, int_u8_row},
                [CR_I8] = {int_i8_lines, int_i8_row},       [CR_U16] = {int_u16_lines, int_u16_row},
                [CR_I16] = {int_i16_lines, int_i16_row},    [CR_U32] = {int_u32_lines, int_u32_row},
                [CR_I32] = {int_i32_lines, int_i32_row},    [CR_U64] = {int_u64_lines, int_u64_row},
                [CR_I64] = {int_i64_lines, int_i64_row}};

static void int_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    cr_strip_sum *sum = &strip->sums[which];
    /* A value is at most 2^52, two units. */
    if (sum->units + 2 * part->lines > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, which);
    sum->units += 2 * part->lines;
    if (sum->high < 2) cr_strip_extend(plan, strip, which, 0, 2);
    int_sums[plan->dtype].lines(plan, strip, part, which);
}

/* Adds an exact integer to a column's sum. */
static void int_put(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, __int128 value) {
    const uint64_t digit = ((uint64_t)1 << CR_DIGIT_BITS) - 1;
    cr_strip_extend(plan, strip, which, 0, 3);
    for (unsigned d = 0; d < 3; d++) {
        cr_strip_digit(plan, strip, which, d)[column] += d < 2 ? (uint64_t)value & digit : (uint64_t)value;
        value >>= CR_DIGIT_BITS;
    }
    if (strip->sums[which].units < 4) strip->sums[which].units = 4;
}

static void int_row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n,
                    int which) {
    int_put(plan, strip, which, column, int_sums[plan->dtype].row(p, n, which == 1));
}

#endif
