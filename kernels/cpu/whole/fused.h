/* fused: Σx or Σ|x|, and Σx², of f32 and f64, and with them the extrema and the counts, in one reading of the data. Includes
 * fused_type.inc once per element type.
 *
 * A block is folded on trial, as in family/anchor.h, while its smallest and largest magnitudes are taken: they certify the
 * window of the sums. A block with zeros is folded again with the zeros counted, and more such blocks are expected. A
 * block that no window of this file takes, or that holds NaNs or infinities, is left to the separate folds.
 *
 * The anchors run along: S = 1.5·2^(a+52) grows by the multiple of 2^a nearest to each x, and what was rounded off is x
 * less S's change; that goes to the next running anchor, the last of which takes all there is. After a few steps, before
 * any S can leave its binade, their bits are added to integers, and they begin anew. So an element costs one addition for
 * each sum that takes all of it, and four for one that passes something on. An S in another binade tells of a NaN.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_WHOLE_FUSED_H
#define CURED_KERNELS_CPU_WHOLE_FUSED_H

#include "kernels/core/anchor.h"
#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/family/anchor.h"
#ifndef CURED_SUM_ALONE
#include "kernels/cpu/family/extrema.h"
#endif

enum {
    FUSED_BLOCK = 16384, /* bytes */
    FUSED_ADDS = 4095,   /* as ANCHOR_ADDS */
    FUSED_PATIENCE = 4   /* blocks without zeros before they are no longer expected */
};

/* Of Σx: none, of the elements, or of their magnitudes. */
enum fused_sums { FUSED_NO_SUM, FUSED_SUM, FUSED_SUM_ABSOLUTE };

/* What is added up: Σx's high parts and (f64 only) rests; Σx²'s high parts, middle parts (f64 only) and rests. */
enum { FUSED_HIGH, FUSED_REST, FUSED_SQUARE_HIGH, FUSED_SQUARE_MIDDLE, FUSED_SQUARE_REST, FUSED_SUMS };

/* What a pass looks for beside the sums' window, there being no zeros: nothing, or extrema; or both and zeros. */
enum fused_look { FUSED_WINDOW, FUSED_EXTREMA, FUSED_ZEROS };

/* Where a sum goes: limbs, and the power of two that limb 0's lowest bit stands for. */
struct fused_to {
    int64_t *limb;
    unsigned limbs;
    uint32_t *pending;
    int grid;
};

struct fused_run {
    vu64 acc[FUSED_SUMS];
    uint32_t adds; /* per lane of each, since the last flush */
    int a[FUSED_SUMS];
    bool live[FUSED_SUMS]; /* those that are asked for */
    uint64_t least, most;  /* magnitudes that the window takes, as bits */
    uint64_t min, max;     /* the extrema so far, as bits; before the first, +inf and -inf */
    uint32_t families;     /* that this file folds; 0: none */
    enum fused_sums sums;  /* what passes add up of Σx; */
    bool squares;          /* and whether of Σx² */
    bool blind;            /* nothing is asked of sums, and passes add them up only to find NaNs */
    bool placed;
    bool zeros;                 /* expect zeros */
    unsigned calm, fails, skip; /* blocks: without zeros; failed in a row; to pass over */
    struct fused_to to[2];      /* of sums and of squares */
};

/* What a block has, as bits. */
struct fused_seen {
    uint64_t low, high; /* smallest magnitude that is not zero, or less; largest magnitude, or more */
    uint64_t min, max;  /* if looked for */
    uint64_t zeros;     /* counted, if they are expected */
    bool zero;          /* if not, whether there are any */
    bool unsure;        /* min or max is a zero, of whatever sign */
};

/* A block folded but not yet believed. */
struct fused_try {
    vu64 acc[FUSED_SUMS];
    uint32_t adds; /* per lane of each */
    bool quiet;    /* all of it fits, and no extremum is new: then seen is not filled in */
    struct fused_seen seen;
};

ALWAYS vf64 fused_summand(vf64 x, enum fused_sums sums) {
    return sums == FUSED_SUM_ABSOLUTE ? (vf64)((vu64)x & INT64_MAX) : x;
}

NEVER void fused_flush(struct fused_run *run) {
    if (run->adds == 0) return;
    for (int i = 0; i < FUSED_SUMS; i++) {
        if (!run->live[i]) continue;
        double m = anchor_of(run->a[i]);
        uint64_t base, lanes[VB / 8];
        memcpy(&base, &m, sizeof base);
        memcpy(lanes, &run->acc[i], VB);
        __int128 sum = 0;
        for (unsigned lane = 0; lane < VB / 8; lane++) sum += (int64_t)(lanes[lane] - base * run->adds);
        const struct fused_to *to = &run->to[i >= FUSED_SQUARE_HIGH];
        int a = run->a[i];
        if (a < to->grid) { /* multiples of the grid's unit all the same */
            sum >>= to->grid - a;
            a = to->grid;
        }
        cr_limbs_put_signed(to->limb, to->limbs, to->pending, sum, (unsigned)(a - to->grid));
        run->acc[i] = (vu64){0};
    }
    run->adds = 0;
}

/* Begins with sums and squares, or one of them, of f64 (wide) or f32. */
static void fused_begin_sums(struct fused_run *run, enum fused_sums sums, bool squares, bool wide) {
    const bool sum = sums != FUSED_NO_SUM && !run->blind;
    run->sums = sums;
    run->squares = squares;
#pragma GCC unroll 5 /* a loop would become rep stos, which takes longer than the rest of a small fold's beginning */
    for (int i = 0; i < FUSED_SUMS; i++) run->acc[i] = (vu64){0};
    run->adds = 0;
    run->placed = run->zeros = false;
    run->calm = run->fails = run->skip = 0;
    run->live[FUSED_HIGH] = sum;
    run->live[FUSED_REST] = sum && wide;
    run->live[FUSED_SQUARE_HIGH] = run->live[FUSED_SQUARE_REST] = squares;
    run->live[FUSED_SQUARE_MIDDLE] = squares && wide;
}

#ifndef CURED_SUM_ALONE
static struct fused_to fused_sum_of(cr_partial *part, cr_sum_at at) {
    const cr_dtype dtype = (cr_dtype)part->dtype;
    cr_sum *sum = &part->sums[at];
    return (struct fused_to){sum->limbs, cr_sum_limbs(at, dtype), &sum->pending, cr_sum_grid(at, dtype)};
}

static void fused_begin(struct fused_run *run, cr_partial *part) {
    run->families = 0;
    if (!cr_fast_on(CR_FAST_FUSED)) return;
    if (part->dtype != CR_F32 && part->dtype != CR_F64) return;
    if (part->families & CR_FAM_PROD) return; /* its tiles may be larger than a block */
    const uint32_t all = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS;
    uint32_t families = part->families & all;
    if (families & CR_FAM_SUM) families &= ~(uint32_t)CR_FAM_SUMABS; /* one of the two goes alone */
    bool alone = (families & (families - 1)) == 0;
    if (alone && (families & (CR_FAM_SUM | CR_FAM_SUMSQ)) == 0) return;
    run->families = families;
    run->blind = (families & (CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ)) == 0;
    const enum fused_sums sums = families & CR_FAM_SUMABS              ? FUSED_SUM_ABSOLUTE
                                 : run->blind || families & CR_FAM_SUM ? FUSED_SUM
                                                                       : FUSED_NO_SUM;
    fused_begin_sums(run, sums, (families & CR_FAM_SUMSQ) != 0, part->dtype == CR_F64);
    run->to[0] = fused_sum_of(part, sums == FUSED_SUM_ABSOLUTE ? CR_AT_SUMABS : CR_AT_SUM);
    run->to[1] = fused_sum_of(part, CR_AT_SUMSQ);
}

/* The float key of family/extrema.h. */
ALWAYS int64_t fused_key(uint64_t bits, unsigned width) {
    uint64_t top = (uint64_t)1 << (width - 1);
    return (bits & top) ? -1 - (int64_t)(bits ^ top) : (int64_t)bits;
}

/* The bits of a key. */
ALWAYS uint64_t fused_bits(int64_t key, unsigned width) {
    return key < 0 ? (uint64_t)(-1 - key) | (uint64_t)1 << (width - 1) : (uint64_t)key;
}

/* Takes the extrema of a block without NaNs. */
static void fused_extrema(struct extremum_run *run, const struct fused_seen *seen, const uint8_t *block, size_t n,
                          uint64_t index, unsigned width) {
    int64_t min = fused_key(seen->min, width), max = fused_key(seen->max, width);
    if (run->min.block == NULL || min < run->min.key) run->min = (struct extremum_block){block, index, n, min};
    if (run->max.block == NULL || max > run->max.key) run->max = (struct extremum_block){block, index, n, max};
}
#endif

#define TEMPLATE "kernels/cpu/whole/fused_type.inc"
#define FOR_F32 1
#include "kernels/cpu/instance.inc"
#define FOR_F64 1
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

#ifndef CURED_SUM_ALONE
static bool fused_tile(struct fused_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p,
                       size_t n, uint64_t index, struct ahead ahead) {
    return (part->dtype == CR_F32 ? fused_tile_f32 : fused_tile_f64)(run, extrema, part, p, n, index, ahead);
}
#endif

#endif
