/* anchor_run: what a sum by anchors (anchor.h) holds while it runs, and how that goes to the limbs of a partial.
 *
 * Thread: any. Owner: the caller owns the state. */
#ifndef CURED_KERNELS_CPU_FAMILY_ANCHOR_RUN_H
#define CURED_KERNELS_CPU_FAMILY_ANCHOR_RUN_H

#include "kernels/core/anchor.h"
#include "kernels/core/dtype.h"
#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/vec.h"

struct spill;

enum {
    ANCHOR_BLOCK = 16384,                     /* bytes; a multiple of every step */
    ANCHOR_LEVELS = CR_F64_SQUARE_LEVELS + 1, /* at most */
    ANCHOR_ADDS = 4095,                       /* a lane wraps at 4,096 values just under 2^(a+51) */
    ANCHOR_SQUARE_ADDS = 2047, /* a level between the first and the last takes two parts of each square */
    UNLOOKED = 16,             /* one in so many blocks in bins is looked at, for a tier that would do */
    ANCHOR_PATIENCE = 4        /* easy blocks in a row before a harder tier is left, and hard ones before it is kept */
};

/* A chain of running anchors (whole/fused.h), where there are registers for one: it takes a wide window of float64, and all of
 * float32 and bfloat16 (mixed.h). */
enum {
    DEEP_LEVELS = 6,
    DEEP_LOG_ADDS = 5,  /* of the additions after which they begin anew */
    DEEP_STEP = 47,     /* from one to the next: 2^5 rests of half a unit are 2^51 units of the next */
    DEEP_F32_A = 82,    /* 2^5 · 2^128 is 2^51 of its units, and the last anchor's unit is 2^-153 */
    DEEP_ROUNDS = 4095, /* as ANCHOR_ADDS */
#if defined(VEC_AVX512)
    DEEP_USED = 1
#else
    DEEP_USED = 0
#endif
};
#define ANCHOR_DEEP (-1) /* for the number of levels */

/* How far apart the magnitudes of a block may lie: windows of few, of more and of many anchors, or anywhere. */
enum { TIER_NARROW, TIER_WIDE, TIER_DEEP, TIER_BINS, TIERS };

struct deep_run {
    vu64 acc[DEEP_LEVELS]; /* undefined while rounds is 0 */
    uint32_t rounds;       /* since the last flush */
    int a;                 /* of the first anchor */
    bool placed;           /* a is chosen */
};

struct anchor_run {
    vu64 acc[ANCHOR_LEVELS][2];
    uint32_t adds[ANCHOR_LEVELS]; /* per lane of each accumulator, since the last flush */
    int a;                        /* of the first anchor */
    bool placed;                  /* a is chosen */
    int tier;                     /* how blocks are tried first */
    bool masked;                  /* the last block held NaNs or infinities: expect more */
    unsigned calm, rough;         /* blocks in a row that needed less, or more, than tier */
    unsigned unlooked;            /* blocks that went to the bins without a look at their span */
    int64_t *limb;                /* of the partial */
    unsigned limbs;
    uint32_t *pending;
    int grid;
    bool absolute; /* Σ|x|: bins of negative elements are added to it */
    cr_specials special;
    struct spill *spill; /* bins for what no window takes (bins.h) */
    bool spilled;        /* they hold something */
    bool bins_only;      /* no window is tried */
    struct deep_run deep;
};

/* What a pass over a block found: magnitudes as bits, in lanes. */
struct guard {
    vu32 most,
        least; /* of |bits| and of |bits| − 1 (so that zero is the largest); f64: their upper halves in odd lanes */
};

/* A block folded but not yet believed. */
struct anchor_try {
    vu64 acc[ANCHOR_LEVELS][2], deep[DEEP_LEVELS];
    uint32_t rounds;
    struct guard guard;
    cr_specials special;
};

/* What a pass adds to: of fixed anchors m the sums of what was added to them; or running anchors. */
struct anchor_sums {
    vu64 acc[ANCHOR_LEVELS][2];
    vf64 m[ANCHOR_LEVELS];
    vf64 running[DEEP_LEVELS], left[DEEP_LEVELS - 1];
};

/* 1.5·2^(a+52) */
ALWAYS double anchor_of(int a) {
    uint64_t bits = ((uint64_t)(a + 52 + 1023) << 52) | (uint64_t)1 << 51;
    double m;
    memcpy(&m, &bits, sizeof m);
    return m;
}

/* The value of `adds` sums of anchor a's in each lane, without the anchors themselves. */
static __int128 anchor_lanes(vu64 acc, int a, uint32_t adds) {
    double m = anchor_of(a);
    uint64_t base;
    __int128 sum = 0;
    memcpy(&base, &m, sizeof base);
    for (unsigned i = 0; i < VB / 8; i++) sum += (int64_t)(acc[i] - base * adds);
    return sum;
}

/* Adds sum · 2^a to the limbs. */
static void anchor_put(struct anchor_run *run, __int128 sum, int a) {
    if (a < run->grid) { /* levels below the grid hold multiples of its unit */
        sum >>= run->grid - a;
        a = run->grid;
    }
    cr_limbs_put_signed(run->limb, run->limbs, run->pending, sum, (unsigned)(a - run->grid));
}

NEVER void anchor_flush(struct anchor_run *run) {
    for (int level = 0; level < ANCHOR_LEVELS; level++) {
        if (run->adds[level] == 0) continue;
        int a = run->a - CR_ANCHOR_STEP * level;
        __int128 sum = anchor_lanes(run->acc[level][0], a, run->adds[level]);
        anchor_put(run, sum + anchor_lanes(run->acc[level][1], a, run->adds[level]), a);
        run->acc[level][0] = run->acc[level][1] = (vu64){0};
        run->adds[level] = 0;
    }
}

NEVER void deep_flush(struct anchor_run *run) {
    struct deep_run *deep = &run->deep;
    for (int level = 0; level < DEEP_LEVELS && deep->rounds != 0; level++) {
        int a = deep->a - DEEP_STEP * level;
        anchor_put(run, anchor_lanes(deep->acc[level], a, deep->rounds), a);
    }
    deep->rounds = 0;
}

static void anchor_begin(struct anchor_run *run, int64_t *limb, unsigned limbs, uint32_t *pending, int grid,
                         bool absolute, struct spill *spill) {
#pragma GCC unroll 4 /* as in fused_begin */
    for (int level = 0; level < ANCHOR_LEVELS; level++) run->acc[level][0] = run->acc[level][1] = (vu64){0};
    memset(run->adds, 0, sizeof run->adds);
    run->deep.rounds = 0;
    run->deep.placed = false;
    run->placed = run->masked = run->spilled = false;
    run->bins_only = !cr_fast_on(CR_FAST_ANCHORS);
    run->tier = run->bins_only ? TIER_BINS : TIER_NARROW;
    run->calm = run->rough = run->unlooked = 0;
    run->limb = limb;
    run->limbs = limbs;
    run->pending = pending;
    run->grid = grid;
    run->absolute = absolute;
    run->special = (cr_specials){0};
    run->spill = spill;
}

/* After a block that needed `tier`: whether to try the next one otherwise. */
static void anchor_adapt(struct anchor_run *run, int tier) {
    if (tier == run->tier || run->bins_only) {
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

/* Adds x to the first running anchor, and to each other what the one before left over a step ago: so no step waits long for its
 * own results. An anchor takes the multiple of its unit that is nearest, and the last takes all. The multipliers help the adders. */
ALWAYS void deep_add(struct anchor_sums *s, vf64 x) {
#pragma GCC unroll 6
    for (int level = DEEP_LEVELS - 1; level >= 0; level--) {
        vf64 here = level == 0 ? x : s->left[level - 1], q = s->running[level] + here;
        if (level + 1 < DEEP_LEVELS) {
            vf64 taken = fused_minus(q, s->running[level]);
            s->left[level] = level % 2 ? fused_minus(here, taken) : here - taken;
        }
        s->running[level] = q;
    }
}

/* After a round: the bits of the running anchors are added up, and they begin anew. */
ALWAYS void deep_gather(struct anchor_sums *s, const vf64 *m, vu64 *acc) {
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS; level++) {
        acc[level] += (vu64)s->running[level];
        s->running[level] = m[level];
    }
}

#endif
