/* fold_anchor: exact sums of f32, bf16 and f64 by anchors. Included once per instruction set; itself includes
 * fold_anchor_type.h once per element type.
 *
 * M_i = 1.5·2^(a_i + 52), a_1 = a, a_(i+1) = a_i − 52 (CR_ANCHOR_STEP). Adding x to M_1 in float64 rounds it to a multiple of 2^a, whose
 * integer value appears in the low bits of the sum; adding those bits as wrapping integers is exact, and what was rounded
 * off goes to the next anchor. K anchors take exactly every x with |x| < 2^(a+51) that is a multiple of 2^(a_K). (The
 * splitting is that of Demmel and Nguyen, "Fast Reproducible Floating-Point Summation", ARITH 2013, and Rump, Ogita and
 * Oishi, "Accurate Floating-Point Summation", SIAM J. Sci. Comput. 31, 2008; here it decides exactness, not just order.)
 *
 * A block is folded while its largest and smallest magnitudes are taken. When they leave the window, the accumulators
 * saved before the block come back and the block is folded again by what its span needs: another anchor, more anchors,
 * or bins by exponent. NaNs and infinities are counted, never added.
 * Thread: any. Owner: the caller owns state and data. */

struct spill;

enum {
    ANCHOR_BLOCK = 16384,                     /* bytes; a multiple of every step */
    ANCHOR_LEVELS = CR_F64_SQUARE_LEVELS + 1, /* at most */
    ANCHOR_ADDS = 4095,                       /* a lane wraps at 4,096 values just under 2^(a+51) */
    ANCHOR_SQUARE_ADDS = 2047, /* a level between the first and the last takes two parts of each square */
    ANCHOR_PATIENCE = 4        /* easy blocks in a row before a harder tier is left, and hard ones before it is kept */
};

/* How far apart the magnitudes of a block may lie: windows of few and of more anchors, or anywhere. */
enum { TIER_NARROW, TIER_WIDE, TIER_BINS };

struct anchor_run {
    vu64 acc[ANCHOR_LEVELS][2];
    uint32_t adds[ANCHOR_LEVELS]; /* per lane of each accumulator, since the last flush */
    int a;                        /* of the first anchor */
    bool placed;                  /* a is chosen */
    int tier;                     /* how blocks are tried first */
    bool masked;                  /* the last block held NaNs or infinities: expect more */
    unsigned calm, rough;         /* blocks in a row that needed less, or more, than tier */
    int64_t *limb;                /* of the partial */
    unsigned limbs;
    uint32_t *pending;
    int grid;
    cr_specials special;
    struct spill *spill; /* bins for what no window takes (fold_bins.h) */
    bool spilled;        /* they hold something */
};

/* What a pass over a block found: magnitudes as bits, in lanes. */
struct guard {
    vu32 most,
        least; /* of |bits| and of |bits| − 1 (so that zero is the largest); f64: their upper halves in odd lanes */
};

/* A block folded but not yet believed. */
struct anchor_try {
    vu64 acc[ANCHOR_LEVELS][2];
    struct guard guard;
    cr_specials special;
};

/* 1.5·2^(a+52) */
ALWAYS double anchor_of(int a) {
    uint64_t bits = ((uint64_t)(a + 52 + 1023) << 52) | (uint64_t)1 << 51;
    double m;
    memcpy(&m, &bits, sizeof m);
    return m;
}

NEVER void anchor_flush(struct anchor_run *run) {
    for (int level = 0; level < ANCHOR_LEVELS; level++) {
        if (run->adds[level] == 0) continue;
        int a = run->a - CR_ANCHOR_STEP * level;
        double m = anchor_of(a);
        uint64_t base;
        memcpy(&base, &m, sizeof base);
        base *= run->adds[level];
        __int128 sum = 0;
        for (unsigned i = 0; i < VB / 8; i++) {
            sum += (int64_t)(run->acc[level][0][i] - base);
            sum += (int64_t)(run->acc[level][1][i] - base);
        }
        /* Levels below the grid hold multiples of its unit. */
        if (a < run->grid) {
            sum >>= run->grid - a;
            a = run->grid;
        }
        cr_limbs_put_signed(run->limb, run->limbs, run->pending, sum, (unsigned)(a - run->grid));
        run->acc[level][0] = run->acc[level][1] = (vu64){0};
        run->adds[level] = 0;
    }
}

static void anchor_begin(struct anchor_run *run, int64_t *limb, unsigned limbs, uint32_t *pending, int grid,
                         struct spill *spill) {
#pragma GCC unroll 4 /* as in fused_begin */
    for (int level = 0; level < ANCHOR_LEVELS; level++) run->acc[level][0] = run->acc[level][1] = (vu64){0};
    memset(run->adds, 0, sizeof run->adds);
    run->placed = run->masked = run->spilled = false;
    run->tier = TIER_NARROW;
    run->calm = run->rough = 0;
    run->limb = limb;
    run->limbs = limbs;
    run->pending = pending;
    run->grid = grid;
    run->special = (cr_specials){0};
    run->spill = spill;
}

/* After a block that needed `tier`: whether to try the next one otherwise. */
static void anchor_adapt(struct anchor_run *run, int tier) {
    if (tier == run->tier) {
        run->calm = run->rough = 0;
        return;
    }
    unsigned *in_a_row = tier > run->tier ? &run->rough : &run->calm;
    if (tier > run->tier) {
        run->calm = 0;
    } else {
        run->rough = 0;
    }
    if (++*in_a_row >= (tier > run->tier ? 2 : ANCHOR_PATIENCE)) {
        run->tier = tier;
        run->calm = run->rough = 0;
    }
}

#include "kernels/cpu/fold_bins.h"
#include "kernels/cpu/fold_bins_square.h"

/* x² − h, exactly, for h = x² rounded: by a fused multiply-add, or by Dekker's and Veltkamp's splitting (Dekker, "A
 * floating-point technique for extending the available precision", Numer. Math. 18, 1971). */
ALWAYS vf64 square_rest(vf64 x, vf64 h) {
#if defined(VEC_AVX512)
    return (vf64)_mm512_fmsub_pd((__m512d)x, (__m512d)x, (__m512d)h);
#elif defined(VEC_AVX2)
    return (vf64)_mm256_fmsub_pd((__m256d)x, (__m256d)x, (__m256d)h);
#else
    vf64 c = x * 134217729.0, high = c - (c - x), low = x - high;
    return ((high * high - h) + 2.0 * high * low) + low * low;
#endif
}

#define TEMPLATE "kernels/cpu/fold_anchor_type.h"
#define FOR_F32 1
#include "kernels/cpu/instance.h"
#define FOR_BF16 1
#include "kernels/cpu/instance.h"
#define FOR_F64 1
#include "kernels/cpu/instance.h"
#define FOR_SQUARE 1
#define FOR_F32 1
#include "kernels/cpu/instance.h"
#define FOR_BF16 1
#include "kernels/cpu/instance.h"
#define FOR_F64 1
#include "kernels/cpu/instance.h"
#undef FOR_SQUARE
#undef TEMPLATE
