/* square: exact sums of the squares of integers, straight into the limbs.
 *
 * Lanes hold 32-bit halves of the squares, so that 64-bit additions have room. Signed elements are squared by magnitude.
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_SQUARE_H
#define CURED_KERNELS_CPU_FAMILY_SQUARE_H

#include "kernels/core/limbs.h"
#include "kernels/core/partial.h"
#include "kernels/cpu/family/int.h"

static void square_put(cr_partial *part, unsigned __int128 sum, unsigned bit) {
    cr_sum *to = &part->sums[CR_AT_SUMSQ];
    cr_limbs_put(to->limbs, cr_sum_limbs(CR_AT_SUMSQ, (cr_dtype)part->dtype), &to->pending, sum, false, bit);
}

NEVER void square_8(cr_partial *part, const uint8_t *p, size_t bytes, struct ahead ahead) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    uint64_t total = 0;
    while (bytes > 0) {
        size_t now = bytes < (size_t)INT_STEPS * VB ? bytes : (size_t)INT_STEPS * VB;
        vu32 acc = {0}; /* grows by at most 4·255² a step */
        EACH_VECTOR(p, now, ahead, v, {
            if (dtype == CR_BOOL) v = min_vu8(v, ALL(vu8, 1));
            if (dtype == CR_I8) v = magnitude_vs8((vs8)v);
            vs16 even = (vs16)((vu16)v & 0xff), odd = (vs16)((vu16)v >> 8);
            acc += sum_pairs(even, even) + sum_pairs(odd, odd);
        });
        for (size_t i = 0; i < VB / 4; i++) total += acc[i];
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
    square_put(part, total, 0);
}

NEVER void square_16(cr_partial *part, const uint8_t *p, size_t bytes, struct ahead ahead) {
    /* u16 is s + 2^15 with s signed: x² = s² + 2^16·s + 2^30. */
    bool biased = part->dtype == CR_U16;
    size_t lanes = (bytes + VB - 1) / VB * (VB / 2);
    vu64 squares = {0};
    __int128 linear = 0;
    while (bytes > 0) {
        size_t now = bytes < (size_t)INT_STEPS * VB ? bytes : (size_t)INT_STEPS * VB;
        vu32 acc = {0};
        EACH_VECTOR(p, now, ahead, v, {
            vs16 s = (vs16)((vu16)v ^ (uint16_t)(biased ? 0x8000 : 0));
            vu64 two = (vu64)sum_pairs(s, s);
            squares += (two & 0xffffffffu) + (two >> 32);
            if (biased) acc += sum_pairs(s, ALL(vs16, 1));
        });
        for (size_t i = 0; i < VB / 4; i++) linear += (int32_t)acc[i];
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
    __int128 total = (__int128)lanes_u64(squares);
    if (biased) total += linear * 65536 + ((__int128)lanes << 30);
    square_put(part, (unsigned __int128)total, 0);
}

NEVER void square_32(cr_partial *part, const uint8_t *p, size_t bytes, struct ahead ahead) {
    bool negatives = part->dtype == CR_I32;
    vu64 low = {0}, high = {0};
    EACH_VECTOR(p, bytes, ahead, v, {
        vu32 x = (vu32)v;
        if (negatives) x = magnitude_vs32((vs32)x);
        vu64 even = multiply_low((vu64)x, (vu64)x), odd = multiply_low((vu64)x >> 32, (vu64)x >> 32);
        low += (even & 0xffffffffu) + (odd & 0xffffffffu);
        high += (even >> 32) + (odd >> 32);
    });
    unsigned __int128 total = 0;
    for (size_t i = 0; i < VB / 8; i++) total += low[i] + ((unsigned __int128)high[i] << 32);
    square_put(part, total, 0);
}

#if defined(VEC_NEON)
/* Two vectors at once: their halves side by side, and those of the products. */
ALWAYS void square_two(const uint8_t *p, bool negatives, vu64 sums[3][2]) {
    vu64 a = LOAD(vu64, p), b = LOAD(vu64, p + VB);
    if (negatives) a = magnitude_vs64((vs64)a), b = magnitude_vs64((vs64)b);
    const uint32x4_t l = vuzp1q_u32((uint32x4_t)a, (uint32x4_t)b), h = vuzp2q_u32((uint32x4_t)a, (uint32x4_t)b);
    const uint32x4_t x[3] = {l, l, h}, y[3] = {l, h, h};
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        const uint32x4_t low = (uint32x4_t)vmull_u32(vget_low_u32(x[i]), vget_low_u32(y[i])),
                         high = (uint32x4_t)vmull_high_u32(x[i], y[i]);
        sums[i][0] = (vu64)vpadalq_u32((uint64x2_t)sums[i][0], vuzp1q_u32(low, high));
        sums[i][1] = (vu64)vpadalq_u32((uint64x2_t)sums[i][1], vuzp2q_u32(low, high));
    }
}
#endif

NEVER void square_64(cr_partial *part, const uint8_t *p, size_t bytes, struct ahead ahead) {
    /* (h·2^32 + l)² = h²·2^64 + 2·h·l·2^32 + l², each product in halves. */
    bool negatives = part->dtype == CR_I64;
    vu64 sums[3][2] = {{{0}, {0}}, {{0}, {0}}, {{0}, {0}}};
#if defined(VEC_NEON)
    for (; bytes >= 2 * VB; p += 2 * VB, bytes -= 2 * VB) square_two(p, negatives, sums);
#endif
    EACH_VECTOR(p, bytes, ahead, v, {
        vu64 x = (vu64)v;
        if (negatives) x = magnitude_vs64((vs64)x);
        vu64 h = x >> 32;
        vu64 products[3] = {multiply_low(x, x), multiply_low(x, h), multiply_low(h, h)};
        _Pragma("GCC unroll 3") for (int i = 0; i < 3; i++) {
            sums[i][0] += products[i] & 0xffffffffu;
            sums[i][1] += products[i] >> 32;
        }
    });
    for (unsigned i = 0; i < 3; i++) {
        unsigned __int128 total = 0;
        for (size_t lane = 0; lane < VB / 8; lane++) {
            total += sums[i][0][lane] + ((unsigned __int128)sums[i][1][lane] << 32);
        }
        square_put(part, i == 1 ? 2 * total : total, 32 * i);
    }
}

static void square_int(cr_partial *part, const uint8_t *p, size_t n, struct ahead ahead) {
    switch ((cr_dtype)part->dtype) {
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
            square_8(part, p, n, ahead);
            break;
        case CR_U16:
        case CR_I16:
            square_16(part, p, n * 2, ahead);
            break;
        case CR_U32:
        case CR_I32:
            square_32(part, p, n * 4, ahead);
            break;
        case CR_U64:
        case CR_I64:
            square_64(part, p, n * 8, ahead);
            break;
        case CR_NO_INT:
            break;
    }
}

#endif
