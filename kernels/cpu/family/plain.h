/* plain: Σx or Σ|x| of bfloat16 by plain additions, four elements in float32 and those sums in float64. Where the processor
 * tells that no addition was rounded, the sum is exact: an element has 8 bits, so four of them seldom lie too far apart. A block in
 * which one was, or which holds NaNs or infinities, is left to the anchors.
 *
 * The total runs on from block to block. Before a block it is kept, so that a block that failed leaves nothing behind.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_PLAIN_H
#define CURED_KERNELS_CPU_FAMILY_PLAIN_H

#include "kernels/core/fast.h"
#include "kernels/core/float.h"
#include "kernels/cpu/family/anchor.h"

struct plain_run {
    vf64 total;
    unsigned fails, skip; /* blocks that failed in a row; to pass over */
    bool on;
};

static void plain_begin(struct plain_run *run) {
    *run = (struct plain_run){.on = cr_fast_on(CR_FAST_PLAIN) && cr_fast_tells_inexact()};
}

#if defined(VEC_TELLS_INEXACT)
enum { PLAIN_BLOCK = 16384, PLAIN_STEP = 4 * VB, PLAIN_PATIENCE = 6 };

ALWAYS vf32 plain_pairs(vu16 x, bool absolute) {
    if (absolute) x &= 0x7fff;
    return (vf32)((vu32)x << 16) + (vf32)((vu32)x & 0xffff0000u);
}

/* *total and a block more, to *to. Not inlined: the flag is read around it. */
NEVER void plain_block(const vf64 *total, vf64 *to, const uint8_t *p, size_t bytes, bool absolute, struct ahead ahead) {
    vf64 sum[4] = {{0}};
    size_t at = 0;
    for (; at + PLAIN_STEP <= bytes; at += PLAIN_STEP) {
        fetch(ahead, at, PLAIN_STEP);
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            const uint8_t *here = p + at + 2 * i * VB;
            vf32 x = plain_pairs(LOAD_ONCE(vu16, here), absolute) + plain_pairs(LOAD_ONCE(vu16, here + VB), absolute);
            sum[2 * i] += widen_low(x);
            sum[2 * i + 1] += widen_high(x);
        }
    }
    for (; at < bytes; at += VB) {
        vu16 x = {0};
        memcpy(&x, p + at, bytes - at < VB ? bytes - at : VB);
        vf32 pairs = plain_pairs(x, absolute);
        sum[0] += widen_low(pairs);
        sum[1] += widen_high(pairs);
    }
    *to = *total + ((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

NEVER void plain_lanes(const vf64 *total, double *to) {
    double sum = 0;
    for (size_t i = 0; i < VB / 8; i++) sum += (*total)[i];
    *to = sum;
}

/* Adds x, which is finite, to what the anchors put in place. */
static void plain_put(struct anchor_run *anchor, double x) {
    const uint64_t hidden = (uint64_t)1 << CR_F64_MANTISSA;
    uint64_t bits;
    if (x == 0) return; /* no other sum of float32s is a denormal */
    memcpy(&bits, &x, sizeof bits);
    const int64_t value = (int64_t)((bits & (hidden - 1)) | hidden);
    const int exponent = (int)(bits >> CR_F64_MANTISSA & CR_F64_TOP);
    anchor_put(anchor, bits >> 63 ? -value : value, exponent - CR_F64_BIAS - CR_F64_MANTISSA);
}
#endif

static void plain_flush(struct plain_run *run, struct anchor_run *anchor) {
#if defined(VEC_TELLS_INEXACT)
    double sum;
    if (!any_bit((vu64)run->total)) return;
    inexact_clear();
    plain_lanes(&run->total, &sum);
    if (!inexact_seen()) {
        plain_put(anchor, sum);
    } else {
        for (size_t i = 0; i < VB / 8; i++) plain_put(anchor, run->total[i]);
    }
    run->total = (vf64){0};
#else
    (void)run, (void)anchor;
#endif
}

#if defined(VEC_TELLS_INEXACT)
/* Adds a block, or leaves everything as it was and returns false. */
static bool plain_take(struct plain_run *run, const uint8_t *p, size_t bytes, bool absolute, struct ahead ahead) {
    if (!run->on) return false;
    if (run->skip > 0) return run->skip--, false;
    vf64 total;
    fetch_pages(ahead, p, bytes);
    inexact_clear();
    plain_block(&run->total, &total, p, bytes, absolute, ahead);
    if (inexact_seen() || any_bit(not_finite(total))) {
        if (run->fails < PLAIN_PATIENCE) run->fails++;
        run->skip = (1u << run->fails) - 2;
        return false;
    }
    run->total = total;
    run->fails = 0;
    return true;
}
#endif

static void plain_tile(struct plain_run *run, struct anchor_run *anchor, const uint8_t *p, size_t bytes, bool absolute,
                       struct ahead ahead) {
#if defined(VEC_TELLS_INEXACT)
    for (size_t now; bytes > 0; p += now, bytes -= now, ahead = ahead_by(ahead, now)) {
        now = bytes < PLAIN_BLOCK ? bytes : PLAIN_BLOCK;
        if (plain_take(run, p, now, absolute, ahead)) continue;
        plain_flush(run, anchor); /* it may be the total that is too large for these elements */
        anchor_tile_bf16(anchor, p, now, absolute, ahead);
    }
#else
    (void)run;
    anchor_tile_bf16(anchor, p, bytes, absolute, ahead);
#endif
}

#endif
