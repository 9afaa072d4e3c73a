/* int: exact sums of integers.
 *
 * Lanes are as narrow as the loop between two flushes allows; biased to unsigned where that saves a sign extension.
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_FAMILY_INT_H
#define CURED_KERNELS_CPU_FAMILY_INT_H

#include "kernels/core/dtype.h"
#include "kernels/cpu/vec.h"

/* Iterations between flushes of 32-bit lanes that grow by at most 2^17 each. */
enum { INT_STEPS = 4096 };

NEVER __int128 sum_8(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    vu64 acc = {0};
    if (dtype == CR_BOOL) {
        EACH_VECTOR(p, n, ahead, v, acc += sum_bytes(min_vu8(v, ALL(vu8, 1))););
        return lanes_u64(acc);
    }
    if (dtype == CR_U8) {
        EACH_VECTOR(p, n, ahead, v, acc += sum_bytes(v););
        return lanes_u64(acc);
    }
    if (absolute) {
        EACH_VECTOR(p, n, ahead, v, acc += sum_bytes(magnitude_vs8((vs8)v)););
        return lanes_u64(acc);
    }
    /* x + 128 is unsigned; the padding counts too. */
    EACH_VECTOR(p, n, ahead, v, acc += sum_bytes(v ^ 0x80););
    size_t lanes = (n + VB - 1) / VB * VB;
    return (__int128)lanes_u64(acc) - (__int128)128 * (__int128)lanes;
}

NEVER __int128 sum_16(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    /* u16 is biased to signed, so that pairs add by one multiply-add with ones. */
    absolute = absolute && dtype == CR_I16;
    uint16_t bias = dtype == CR_U16 || absolute ? 0x8000 : 0;
    size_t bytes = n * 2, lanes = (bytes + VB - 1) / VB * (VB / 2);
    int64_t total = 0;
    while (bytes > 0) {
        size_t now = bytes < (size_t)INT_STEPS * VB ? bytes : (size_t)INT_STEPS * VB;
        vu32 acc = {0};
        EACH_VECTOR(p, now, ahead, v, {
            vu16 x = absolute ? magnitude_vs16((vs16)v) : (vu16)v;
            acc += sum_pairs((vs16)(x ^ bias), ALL(vs16, 1));
        });
        for (size_t i = 0; i < VB / 4; i++) total += (int32_t)acc[i];
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
    return total + (__int128)bias * (__int128)lanes;
}

#if defined(VEC_NEON)
/* By an instruction that adds pairs to wider lanes. */
NEVER __int128 sum_32(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    if (dtype == CR_I32 && !absolute) {
        int64x2_t sum = vdupq_n_s64(0);
        EACH_VECTOR(p, n * 4, ahead, v, sum = vpadalq_s32(sum, (int32x4_t)v););
        return (__int128)sum[0] + sum[1];
    }
    uint64x2_t sum = vdupq_n_u64(0);
    if (dtype == CR_I32) {
        EACH_VECTOR(p, n * 4, ahead, v, sum = vpadalq_u32(sum, (uint32x4_t)magnitude_vs32((vs32)v)););
    } else {
        EACH_VECTOR(p, n * 4, ahead, v, sum = vpadalq_u32(sum, (uint32x4_t)v););
    }
    return (__int128)sum[0] + sum[1];
}
#else
NEVER __int128 sum_32(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    absolute = absolute && dtype == CR_I32;
    uint32_t bias = dtype == CR_I32 && !absolute ? 0x80000000u : 0;
    size_t lanes = (n * 4 + VB - 1) / VB * (VB / 4);
    vu64 even = {0}, odd = {0};
    EACH_VECTOR(p, n * 4, ahead, v, {
        vu64 x = (vu64)(absolute ? magnitude_vs32((vs32)v) : (vu32)v ^ bias);
        even += x & 0xffffffffu;
        odd += x >> 32;
    });
    __int128 total = 0;
    for (size_t i = 0; i < VB / 8; i++) total += (__int128)even[i] + odd[i];
    return total - (__int128)bias * (__int128)lanes;
}
#endif

#if defined(VEC_NEON)
/* With signs, of which a shift keeps the upper half's. */
NEVER __int128 sum_s64(const uint8_t *p, size_t n, struct ahead ahead) {
    vu64 low = {0};
    vs64 high = {0};
    __int128 total = 0;
    EACH_VECTOR(p, n * 8, ahead, v, {
        low += (vu64)v & 0xffffffffu;
        high += (vs64)v >> 32;
    });
    for (size_t i = 0; i < VB / 8; i++) total += low[i] + (__int128)high[i] * ((int64_t)1 << 32);
    return total;
}
#endif

NEVER __int128 sum_64(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    absolute = absolute && dtype == CR_I64;
#if defined(VEC_NEON)
    if (dtype == CR_I64 && !absolute) return sum_s64(p, n, ahead);
#endif
    uint64_t bias = dtype == CR_I64 && !absolute ? (uint64_t)1 << 63 : 0;
    size_t lanes = (n * 8 + VB - 1) / VB * (VB / 8);
    vu64 low = {0}, high = {0}; /* sums of 32-bit halves: good for 2^32 additions, more than a tile has */
    unsigned __int128 total = 0;
    EACH_VECTOR(p, n * 8, ahead, v, {
        vu64 x = absolute ? magnitude_vs64((vs64)v) : (vu64)v ^ bias;
        low += x & 0xffffffffu;
        high += x >> 32;
    });
    for (size_t i = 0; i < VB / 8; i++) total += low[i] + ((unsigned __int128)high[i] << 32);
    return (__int128)(total - (unsigned __int128)bias * lanes);
}

static __int128 sum_int(const uint8_t *p, size_t n, cr_dtype dtype, bool absolute, struct ahead ahead) {
    switch (dtype) {
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
            return sum_8(p, n, dtype, absolute, ahead);
        case CR_U16:
        case CR_I16:
            return sum_16(p, n, dtype, absolute, ahead);
        case CR_U32:
        case CR_I32:
            return sum_32(p, n, dtype, absolute, ahead);
        case CR_U64:
        case CR_I64:
            return sum_64(p, n, dtype, absolute, ahead);
        case CR_NO_INT:
            break;
    }
    return 0;
}

#endif
