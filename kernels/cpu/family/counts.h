/* counts: non-zero elements and NaNs.
 *
 * A comparison gives −1 in the lanes that match; subtracting it counts. Lanes are flushed before they wrap.
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_FAMILY_COUNTS_H
#define CURED_KERNELS_CPU_FAMILY_COUNTS_H

#include "kernels/core/partial.h"
#include "kernels/cpu/vec.h"

struct counts {
    uint64_t zeros, nans;
};

/* zero and nan are masks of lanes of `type`; steps keeps a lane below its limit. */
#define COUNT_LOOP(type, steps, zero, nan, has_nan)                                       \
    while (bytes > 0) {                                                                   \
        size_t now = bytes < (size_t)(steps)*VB ? bytes : (size_t)(steps)*VB;             \
        type zeros = {0}, nans = {0};                                                     \
        EACH_VECTOR(p, now, ahead, v, {                                                   \
            type x = (type)v;                                                             \
            zeros -= (type)(zero);                                                        \
            if (has_nan) nans -= (type)(nan);                                             \
        });                                                                               \
        for (size_t i = 0; i < sizeof(type) / sizeof zeros[0]; i++) c.zeros += zeros[i];  \
        if (has_nan)                                                                      \
            for (size_t i = 0; i < sizeof(type) / sizeof nans[0]; i++) c.nans += nans[i]; \
        p += now;                                                                         \
        ahead = ahead_by(ahead, now);                                                     \
        bytes -= now;                                                                     \
    }

NEVER struct counts count_8(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    while (bytes > 0) {
        size_t now = bytes < (size_t)255 * VB ? bytes : (size_t)255 * VB;
        vu8 zeros = {0};
        EACH_VECTOR(p, now, ahead, v, zeros -= (vu8)(v == 0););
        c.zeros += lanes_u64(sum_bytes(zeros));
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
    return c;
}

NEVER struct counts count_16(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu16, 32768, x == 0, x, false)
    return c;
}

NEVER struct counts count_32(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu32, 1 << 24, x == 0, x, false)
    return c;
}

NEVER struct counts count_64(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu64, 1 << 24, x == 0, x, false)
    return c;
}

/* Magnitudes are below the sign bit, so a signed comparison does. most: the largest that is no NaN. */
NEVER struct counts count_f8(const uint8_t *p, size_t bytes, struct ahead ahead, int8_t most) {
    struct counts c = {0, 0};
    while (bytes > 0) {
        size_t now = bytes < (size_t)255 * VB ? bytes : (size_t)255 * VB;
        vu8 zeros = {0}, nans = {0};
        EACH_VECTOR(p, now, ahead, v, {
            zeros -= (vu8)((v & 0x7f) == 0);
            nans -= (vu8)((vs8)(v & 0x7f) > most);
        });
        c.zeros += lanes_u64(sum_bytes(zeros));
        c.nans += lanes_u64(sum_bytes(nans));
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
    return c;
}

NEVER struct counts count_f16(const uint8_t *p, size_t bytes, struct ahead ahead, int16_t infinity) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu16, 32768, (x & 0x7fff) == 0, (vs16)(x & 0x7fff) > infinity, true)
    return c;
}

NEVER struct counts count_f32(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu32, 1 << 24, (x & 0x7fffffff) == 0, (vs32)(x & 0x7fffffff) > (int32_t)CR_INFINITY_OF(F32), true)
    return c;
}

NEVER struct counts count_f64(const uint8_t *p, size_t bytes, struct ahead ahead) {
    struct counts c = {0, 0};
    COUNT_LOOP(vu64, 1 << 24, (x & INT64_MAX) == 0, (vs64)(x & INT64_MAX) > CR_INFINITY_OF(F64), true)
    return c;
}

static void fold_counts(cr_partial *part, const uint8_t *p, size_t n, struct ahead ahead) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    size_t size = cr_dtype_size(dtype), bytes = n * size;
    struct counts c;
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F8_E4M3:
            c = count_f8(p, bytes, ahead, CR_INFINITY_OF(F8_E4M3));
            break;
        case CR_FORMAT_F8_E5M2:
            c = count_f8(p, bytes, ahead, CR_INFINITY_OF(F8_E5M2));
            break;
        case CR_FORMAT_F16:
            c = count_f16(p, bytes, ahead, CR_INFINITY_OF(F16));
            break;
        case CR_FORMAT_BF16:
            c = count_f16(p, bytes, ahead, CR_INFINITY_OF(BF16));
            break;
        case CR_FORMAT_F32:
            c = count_f32(p, bytes, ahead);
            break;
        case CR_FORMAT_F64:
            c = count_f64(p, bytes, ahead);
            break;
        case CR_FORMAT_INT:
            c = size == 1   ? count_8(p, bytes, ahead)
                : size == 2 ? count_16(p, bytes, ahead)
                : size == 4 ? count_32(p, bytes, ahead)
                            : count_64(p, bytes, ahead);
            break;
    }
    /* The padding of the last vector counted as zeros. */
    size_t lanes = (bytes + VB - 1) / VB * (VB / size);
    part->nonzero += lanes - c.zeros;
    part->nans += c.nans;
}

#endif
