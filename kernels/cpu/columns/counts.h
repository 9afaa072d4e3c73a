/* counts: zeros and NaNs of each column.
 *
 * Thread: any. Owner: the caller owns strip and data. */
#ifndef CURED_KERNELS_CPU_COLUMNS_COUNTS_H
#define CURED_KERNELS_CPU_COLUMNS_COUNTS_H

#include "kernels/cpu/axis/plan.h"
#include "kernels/cpu/columns/part.h"
#include "kernels/cpu/family/counts.h"
#include "kernels/cpu/family/extrema.h"
#include "kernels/cpu/widen.h"

/* Adds lanes to the counts of as many columns, or of the first `columns`. */
#define COUNT_ADD(bits)                                                                             \
    ALWAYS void count_add_##bits(uint64_t *to, vu##bits lanes, unsigned columns) {                  \
        enum { LANES = VB / (bits / 8) };                                                           \
        uint8_t bytes[VB];                                                                          \
        if (!any_bit((vu64)lanes)) return;                                                          \
        memcpy(bytes, &lanes, VB);                                                                  \
        for (unsigned i = 0; columns < LANES && i < columns; i++) to[i] += lanes[i];                \
        for (unsigned i = 0; columns >= LANES && i < LANES; i += VB / 8) {                          \
            const vu64 sum = LOAD(vu64, to + i) + (vu64)widen_u##bits##_64(bytes + i * (bits / 8)); \
            memcpy(to + i, &sum, VB);                                                               \
        }                                                                                           \
    }
COUNT_ADD(8)
COUNT_ADD(16)
COUNT_ADD(32)
COUNT_ADD(64)
#undef COUNT_ADD

/* zero and nan are masks of lanes of as many bits; CR_LINES additions never wrap a lane. */
#define COUNT_LINES(name, bits, zero, nan, has_nan)                                                         \
    NEVER void name(const cr_axis_plan *plan, cr_strip *strip, const struct part *part, int64_t infinity) { \
        enum { LANES = VB / (bits / 8) };                                                                   \
        uint64_t *zeros = (uint64_t *)cr_strip_array(strip, plan->zeros) + part->first;                     \
        uint64_t *nans = (uint64_t *)cr_strip_array(strip, plan->nans) + part->first;                       \
        (void)infinity;                                                                                     \
        for (unsigned c = 0; c < part->columns; c += LANES) {                                               \
            uint8_t pad[CR_LINES * VB];                                                                     \
            const struct part now = part_vector(part, c, LANES, VB / LANES, pad, 1);                        \
            vu##bits z = {0}, m = {0};                                                                      \
            for (unsigned t = 0; t < now.lines; t++) {                                                      \
                part_fetch(&now, now.p + t * now.stride);                                                   \
                const vu##bits x = LOAD(vu##bits, now.p + t * now.stride);                                  \
                z -= (vu##bits)(zero);                                                                      \
                if (has_nan) m -= (vu##bits)(nan);                                                          \
            }                                                                                               \
            count_add_##bits(zeros + c, z, part->columns - c);                                              \
            if (has_nan) count_add_##bits(nans + c, m, part->columns - c);                                  \
        }                                                                                                   \
    }
COUNT_LINES(count_lines_8, 8, x == 0, x, false)
COUNT_LINES(count_lines_16, 16, x == 0, x, false)
COUNT_LINES(count_lines_32, 32, x == 0, x, false)
COUNT_LINES(count_lines_64, 64, x == 0, x, false)
COUNT_LINES(count_lines_f8, 8, (x & 0x7f) == 0, (vs8)(x & 0x7f) > (int8_t)infinity, true)
COUNT_LINES(count_lines_f16, 16, (x & 0x7fff) == 0, (vs16)(x & 0x7fff) > (int16_t)infinity, true)
COUNT_LINES(count_lines_f32, 32, (x & 0x7fffffff) == 0, (vs32)(x & 0x7fffffff) > (int32_t)CR_INFINITY_OF(F32), true)
COUNT_LINES(count_lines_f64, 64, (x & INT64_MAX) == 0, (vs64)(x &INT64_MAX) > CR_INFINITY_OF(F64), true)
#undef COUNT_LINES

static void count_lines(const cr_axis_plan *plan, cr_strip *strip, const struct part *part) {
    switch (cr_dtype_format(plan->dtype)) {
        case CR_FORMAT_F8_E4M3:
            count_lines_f8(plan, strip, part, CR_INFINITY_OF(F8_E4M3));
            break;
        case CR_FORMAT_F8_E5M2:
            count_lines_f8(plan, strip, part, CR_INFINITY_OF(F8_E5M2));
            break;
        case CR_FORMAT_F16:
            count_lines_f16(plan, strip, part, CR_INFINITY_OF(F16));
            break;
        case CR_FORMAT_BF16:
            count_lines_f16(plan, strip, part, CR_INFINITY_OF(BF16));
            break;
        case CR_FORMAT_F32:
            count_lines_f32(plan, strip, part, 0);
            break;
        case CR_FORMAT_F64:
            count_lines_f64(plan, strip, part, 0);
            break;
        case CR_FORMAT_INT:
            (plan->size == 1   ? count_lines_8
             : plan->size == 2 ? count_lines_16
             : plan->size == 4 ? count_lines_32
                               : count_lines_64)(plan, strip, part, 0);
            break;
    }
}

static void count_row(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n) {
    cr_partial part; /* most of it stays untouched */
    part.dtype = (uint8_t)plan->dtype;
    uint64_t zeros = 0, nans = 0;
    for (uint64_t done = 0; done < n;) {
        size_t now = n - done < 1 << 24 ? (size_t)(n - done) : 1 << 24;
        part.nonzero = part.nans = 0;
        fold_counts(&part, p + done * plan->size, now, row_ahead(p + done * plan->size));
        zeros += now - part.nonzero;
        nans += part.nans;
        done += now;
    }
    ((uint64_t *)cr_strip_array(strip, plan->zeros))[column] += zeros;
    ((uint64_t *)cr_strip_array(strip, plan->nans))[column] += nans;
}

#endif
