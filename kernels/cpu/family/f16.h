/* f16: exact sums of float16.
 *
 * A float16 is a multiple of 2^-24 below 2^16, so float64 lanes add 8,192 of them exactly, in any order. A lane that is
 * no longer finite means an infinity or a NaN in the block, which is then folded again without them.
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_FAMILY_F16_H
#define CURED_KERNELS_CPU_FAMILY_F16_H

#include "kernels/core/partial.h"
#include "kernels/cpu/family/anchor_run.h"

enum { F16_BLOCK = 16384 /* bytes: at most 1,024 additions per lane */, F16_INFINITE = CR_INFINITY_OF(F16) };

struct f16_run {
    __int128 sum; /* in units of 2^-24 */
    cr_specials special;
    bool masked;
};

ALWAYS void f16_add(vu16 x, bool absolute, vf64 acc[4]) {
    if (absolute) x &= 0x7fff;
    vf32 a = halves_a(x), b = halves_b(x);
    acc[0] += widen_low(a);
    acc[1] = fused_plus(widen_high(a), acc[1]); /* the multipliers help the adders */
    acc[2] += widen_low(b);
    acc[3] = fused_plus(widen_high(b), acc[3]);
}

ALWAYS vf64 f16_block(const uint8_t *p, size_t bytes, bool absolute, bool masked, struct ahead ahead,
                      cr_specials *special) {
    vf64 acc[4] = {{0}, {0}, {0}, {0}};
    vu16 nans = {0}, pinfs = {0}, ninfs = {0};
    EACH_VECTOR(p, bytes, ahead, v, {
        vu16 x = (vu16)v;
        if (masked) {
            vs16 magnitude = (vs16)(x & 0x7fff);
            nans -= (vu16)(magnitude > F16_INFINITE);
            pinfs -= (vu16)(x == F16_INFINITE);
            ninfs -= (vu16)(x == (F16_INFINITE | 0x8000));
            x &= (vu16)(magnitude < F16_INFINITE);
        }
        f16_add(x, absolute, acc);
    });
    if (masked) {
        for (size_t i = 0; i < VB / 2; i++) {
            special->nans += nans[i];
            special->pinfs += pinfs[i];
            special->ninfs += ninfs[i];
        }
    }
    return (acc[0] + acc[1]) + (acc[2] + acc[3]);
}

#define INSTANCE(name, absolute, masked)                                                        \
    NEVER vf64 name(const uint8_t *p, size_t bytes, struct ahead ahead, cr_specials *special) { \
        return f16_block(p, bytes, absolute, masked, ahead, special);                           \
    }
INSTANCE(f16_plain, false, false)
INSTANCE(f16_plain_masked, false, true)
INSTANCE(f16_absolute, true, false)
INSTANCE(f16_absolute_masked, true, true)
#undef INSTANCE

static void f16_tile(struct f16_run *run, const uint8_t *p, size_t bytes, bool absolute, struct ahead ahead) {
    while (bytes > 0) {
        size_t now = bytes < F16_BLOCK ? bytes : F16_BLOCK;
        cr_specials found = {0};
        vf64 sums = {0};
        bool finite = false;
        if (!run->masked) {
            sums = (absolute ? f16_absolute : f16_plain)(p, now, ahead, &found);
            vu64 special = (vu64)(((vu64)sums & (uint64_t)CR_INFINITY_OF(F64)) == (uint64_t)CR_INFINITY_OF(F64));
            finite = !any_bit(special);
        }
        if (!finite) {
            sums = (absolute ? f16_absolute_masked : f16_plain_masked)(p, now, ahead, &found);
            run->special.nans += found.nans;
            run->special.pinfs += found.pinfs;
            run->special.ninfs += found.ninfs;
            run->masked = (found.nans | found.pinfs | found.ninfs) != 0;
        }
        for (size_t i = 0; i < VB / 8; i++) run->sum += (int64_t)(sums[i] * 0x1p24);
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
}

/* Squares: multiples of 2^-48 below 2^32, exact in float32. Two anchors that never move take them all. */
enum { F16_SQUARE_A = 4, F16_SQUARE_ADDS = 2 };

ALWAYS void f16_square_lanes(vf32 x, vu64 acc[2][2], const vf64 m[2]) {
    x *= x;
    vf64 halves[2] = {widen_low(x), widen_high(x)};
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        vf64 q = halves[i] + m[0], rest = halves[i] - (q - m[0]);
        acc[0][i] += (vu64)q;
        acc[1][i] += (vu64)(rest + m[1]);
    }
}

NEVER void f16_square_tile(struct anchor_run *run, const uint8_t *p, size_t bytes, struct ahead ahead) {
    const vf64 m[2] = {ALL(vf64, anchor_of(F16_SQUARE_A)), ALL(vf64, anchor_of(F16_SQUARE_A - 52))};
    run->a = F16_SQUARE_A;
    while (bytes > 0) {
        size_t now = bytes < F16_BLOCK ? bytes : F16_BLOCK;
        uint32_t adds = (uint32_t)((now + VB - 1) / VB) * F16_SQUARE_ADDS;
        vu16 nans = {0}, pinfs = {0}, ninfs = {0};
        if (run->adds[0] + adds > ANCHOR_ADDS) anchor_flush(run);
        vu64 acc[2][2] = {{run->acc[0][0], run->acc[0][1]}, {run->acc[1][0], run->acc[1][1]}};
        EACH_VECTOR(p, now, ahead, v, {
            vu16 x = (vu16)v;
            vs16 magnitude = (vs16)(x & 0x7fff);
            nans -= (vu16)(magnitude > F16_INFINITE);
            pinfs -= (vu16)(x == F16_INFINITE);
            ninfs -= (vu16)(x == (F16_INFINITE | 0x8000));
            x &= (vu16)(magnitude < F16_INFINITE);
            f16_square_lanes(halves_a(x), acc, m);
            f16_square_lanes(halves_b(x), acc, m);
        });
        for (int level = 0; level < 2; level++) {
            run->acc[level][0] = acc[level][0];
            run->acc[level][1] = acc[level][1];
            run->adds[level] += adds;
        }
        for (size_t i = 0; i < VB / 2; i++) {
            run->special.nans += nans[i];
            run->special.pinfs += pinfs[i];
            run->special.ninfs += ninfs[i];
        }
        p += now;
        ahead = ahead_by(ahead, now);
        bytes -= now;
    }
}

#endif
