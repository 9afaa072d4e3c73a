/* int: exact sums of integers, by column and by row.
 *
 * A value of up to 32 bits is added to digit 0 as it is; a wider one goes to digits 0 and 1. (For Σ|x|, magnitudes.) Bytes are first
 * added in lanes of 16 bits, over the lines that come at once.
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_INT_H
#define CURED_KERNELS_CPU_COLUMNS_INT_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/part.h"
#include "kernels/cpu/family/int.h"
#include "kernels/cpu/widen.h"

enum { INT_LANES = VB / 8, INT_BYTE_LANES = VB / 2, INT_ROW_ELEMENTS = 1 << 28 /* of a row at once */ };
_Static_assert(CR_LINES_HARD <= 128, "sums of so many bytes fit 16 bits, also signed ones");

/* A type's lines, compiled for each of both sums. */
#define INT_LINES(name)                                                                                      \
    NEVER void name##_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) { \
        if (which == 0) {                                                                                    \
            name##_columns(plan, strip, part, 0);                                                            \
        } else {                                                                                             \
            name##_columns(plan, strip, part, 1);                                                            \
        }                                                                                                    \
    }

/* Adds one vector's elements: narrow values into *low, wide ones into *low and *high. */
#define INT_ADD(name, element, from, is_signed, wide)                                                           \
    ALWAYS void name##_add(const uint8_t *p, bool absolute, vu64 *low, vu64 *high) {                            \
        vu64 x = (vu64)widen_##from##_64(p);                                                                    \
        if (is_signed && absolute) {                                                                            \
            vu64 sign = (vu64)((vs64)x < 0);                                                                    \
            x = (x ^ sign) - sign;                                                                              \
        }                                                                                                       \
        if (!wide) {                                                                                            \
            *low += x;                                                                                          \
        } else {                                                                                                \
            *low += x & (((uint64_t)1 << CR_DIGIT_BITS) - 1);                                                   \
            x >>= CR_DIGIT_BITS;                                                                                \
            if (is_signed && !absolute) x = (x ^ 0x800) - 0x800; /* the sign of the 12 bits that are left */    \
            *high += x;                                                                                         \
        }                                                                                                       \
    }                                                                                                           \
    ALWAYS void name##_columns(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) { \
        uint64_t *low = cr_strip_digit(plan, strip, which, 0) + part->first, *high = low + plan->columns;       \
        for (unsigned c = 0; c < part->columns; c += INT_LANES) {                                               \
            uint8_t pad[CR_LINES * VB];                                                                         \
            const struct part now = part_vector(part, c, INT_LANES, sizeof(element), pad, 0);                   \
            vu64 a = LOAD(vu64, low + c), b = wide ? LOAD(vu64, high + c) : (vu64){0};                          \
            for (unsigned t = 0; t < now.lines; t++) {                                                          \
                part_fetch(&now, now.p + t * now.stride);                                                       \
                name##_add(now.p + t * now.stride, which == 1, &a, &b);                                         \
            }                                                                                                   \
            memcpy(low + c, &a, VB);                                                                            \
            if (wide) memcpy(high + c, &b, VB);                                                                 \
        }                                                                                                       \
    }                                                                                                           \
    INT_LINES(name)
INT_ADD(int_u16, uint16_t, u16, false, false)
INT_ADD(int_i16, int16_t, s16, true, false)
INT_ADD(int_u32, uint32_t, u32, false, false)
INT_ADD(int_i32, int32_t, s32, true, false)
INT_ADD(int_u64, uint64_t, u64, false, true)
INT_ADD(int_i64, int64_t, s64, true, true)
#undef INT_ADD

/* Adds narrow sums to a digit of the columns that there are. */
#define DIGITS_ADD(from)                                                                      \
    ALWAYS void digits_add_##from(uint64_t *to, vu8 sums, unsigned columns) {                 \
        const unsigned size = sizeof((v##from){0}[0]);                                        \
        uint8_t narrow[VB];                                                                   \
        memcpy(narrow, &sums, VB);                                                            \
        for (unsigned i = 0; i < VB / size && i < columns; i += INT_LANES) {                  \
            const vu64 all = LOAD(vu64, to + i) + (vu64)widen_##from##_64(narrow + i * size); \
            memcpy(to + i, &all, VB);                                                         \
        }                                                                                     \
    }
DIGITS_ADD(u16)
DIGITS_ADD(s16)
DIGITS_ADD(u32)
#undef DIGITS_ADD

#define INT_BYTES(name, from, wider, is_signed, is_bool)                                                        \
    ALWAYS void name##_columns(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) { \
        uint64_t *low = cr_strip_digit(plan, strip, which, 0) + part->first;                                    \
        for (unsigned c = 0; c < part->columns; c += INT_BYTE_LANES) {                                          \
            uint8_t pad[CR_LINES * VB];                                                                         \
            const struct part now = part_vector(part, c, INT_BYTE_LANES, 1, pad, 0);                            \
            vu16 sum = {0};                                                                                     \
            for (unsigned t = 0; t < now.lines; t++) {                                                          \
                part_fetch(&now, now.p + t * now.stride);                                                       \
                vu16 x = (vu16)widen_##from##_16(now.p + t * now.stride);                                       \
                if (is_bool) x = min_vu16(x, ALL(vu16, 1));                                                     \
                if (is_signed && which == 1) x = magnitude_vs16((vs16)x);                                       \
                sum += x;                                                                                       \
            }                                                                                                   \
            digits_add_##wider(low + c, (vu8)sum, part->columns - c);                                           \
        }                                                                                                       \
    }                                                                                                           \
    INT_LINES(name)
INT_BYTES(int_bool, u8, u16, false, true)
INT_BYTES(int_u8, u8, u16, false, false)
INT_BYTES(int_i8, s8, s16, true, false)
#undef INT_BYTES
#undef INT_LINES

typedef void int_lines_of(const cr_axis_plan *, cr_strip *, const struct part *, int which);
static int_lines_of *const int_lines_by_dtype[] = {
    [CR_BOOL] = int_bool_lines, [CR_U8] = int_u8_lines,   [CR_I8] = int_i8_lines,
    [CR_U16] = int_u16_lines,   [CR_I16] = int_i16_lines, [CR_U32] = int_u32_lines,
    [CR_I32] = int_i32_lines,   [CR_U64] = int_u64_lines, [CR_I64] = int_i64_lines};

static void int_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int which) {
    cr_strip_sum *sum = &strip->sums[which];
    /* A value is at most 2^52, two units. */
    if (sum->units + 2 * part->lines > CR_DIGIT_UNITS) cr_strip_carry(plan, strip, which);
    sum->units += 2 * part->lines;
    if (sum->high < 2) cr_strip_extend(plan, strip, which, 0, 2);
    int_lines_by_dtype[plan->dtype](plan, strip, part, which);
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
    __int128 sum = 0;
    for (uint64_t done = 0, now; done < n; done += now, p += now * plan->size) {
        now = n - done < INT_ROW_ELEMENTS ? n - done : INT_ROW_ELEMENTS;
        sum += sum_int(p, now, plan->dtype, which == 1, row_ahead(p));
    }
    int_put(plan, strip, which, column, sum);
}

#endif
