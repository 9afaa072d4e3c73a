/* fold_impl: all folds for one instruction set. fold_portable.c, fold_avx2.c and fold_avx512.c define VB, the VEC_*
 * switch and FOLD_NAME, and include this once.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#include "kernels/core/anchor.h"
#include "kernels/core/key.h"
#include "kernels/core/limbs.h"
#include "kernels/core/prod.h"
#include "kernels/cpu/fold_table.h"
#include "kernels/cpu/vec.h"

#include "kernels/cpu/fold_int.h"

#include "kernels/cpu/fold_anchor.h"
#include "kernels/cpu/fold_bits.h"
#include "kernels/cpu/fold_counts.h"
#include "kernels/cpu/fold_extrema.h"
#include "kernels/cpu/fold_f16.h"
#include "kernels/cpu/fold_float_prod.h"
#include "kernels/cpu/fold_fused.h"
#include "kernels/cpu/fold_plain.h"
#include "kernels/cpu/fold_prod.h"
#include "kernels/cpu/fold_square.h"

#include "kernels/cpu/fold_half.h"
#include "kernels/cpu/fold_ints.h"

enum {
    TILE_ONE = 1 << 28,   /* bytes a family takes at once when it is alone: keeps 32-bit counters safe */
    TILE_SEVERAL = 16384, /* when there are several: two of these stay in the nearest cache */
    TILE_SUMS = 131072,   /* when sums of narrow floats are: they compute too long to fetch for others meanwhile */
    AHEAD = 8192,         /* measured: hardware prefetching alone is slowest, less than 4 KiB slower than 4 … 32 */
    SOON = 4096           /* into the nearest cache: 2 … 4 % more than either alone */
};

enum sum_kind { SUM_PLAIN, SUM_ABSOLUTE, SUM_SQUARE };

/* Σx, Σ|x| or Σx² while it runs. */
struct sum_run {
    enum sum_kind kind;
    struct anchor_run anchor;
    struct f16_run f16;
    struct plain_run plain;
    __int128 integer;
    int64_t *limb;
    unsigned limbs;
    uint32_t *pending;
    cr_specials *special;
};

static void sum_begin(struct sum_run *run, cr_partial *part, enum sum_kind kind, struct spill *spill) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    run->kind = kind;
    run->limbs = kind == SUM_SQUARE ? cr_sumsq_limbs(dtype) : cr_sum_limbs(dtype);
    if (kind == SUM_PLAIN) {
        run->limb = part->sum;
        run->pending = &part->sum_pending;
        run->special = &part->sum_special;
    } else if (kind == SUM_ABSOLUTE) {
        run->limb = part->sumabs;
        run->pending = &part->sumabs_pending;
        run->special = &part->sumabs_special;
    } else {
        run->limb = part->sumsq;
        run->pending = &part->sumsq_pending;
        run->special = &part->sumsq_special;
    }
    run->integer = 0;
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT) return;
    run->f16 = (struct f16_run){0};
    run->plain = (struct plain_run){0};
    anchor_begin(&run->anchor, run->limb, run->limbs, run->pending,
                 kind == SUM_SQUARE ? cr_sumsq_grid(dtype) : cr_sum_grid(dtype), kind == SUM_ABSOLUTE, spill);
}

static void sum_tile(struct sum_run *run, cr_dtype dtype, const uint8_t *p, size_t n, struct ahead ahead) {
    bool absolute = run->kind == SUM_ABSOLUTE;
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F16:
            f16_tile(&run->f16, p, n * 2, absolute, ahead);
            break;
        case CR_FORMAT_BF16:
            plain_tile(&run->plain, &run->anchor, p, n * 2, absolute, ahead);
            break;
        case CR_FORMAT_F32:
            anchor_tile_f32(&run->anchor, p, n * 4, absolute, ahead);
            break;
        case CR_FORMAT_F64:
            anchor_tile_f64(&run->anchor, p, n * 8, absolute, ahead);
            break;
        case CR_FORMAT_INT:
            run->integer += sum_int(p, n, dtype, absolute, ahead);
            break;
    }
}

static void square_tile(struct sum_run *run, cr_partial *part, const uint8_t *p, size_t n, struct ahead ahead) {
    switch (cr_dtype_format((cr_dtype)part->dtype)) {
        case CR_FORMAT_F16:
            f16_square_tile(&run->anchor, p, n * 2, ahead);
            break;
        case CR_FORMAT_BF16:
            anchor_tile_bf16_square(&run->anchor, p, n * 2, false, ahead);
            break;
        case CR_FORMAT_F32:
            anchor_tile_f32_square(&run->anchor, p, n * 4, false, ahead);
            break;
        case CR_FORMAT_F64:
            anchor_tile_f64_square(&run->anchor, p, n * 8, false, ahead);
            break;
        case CR_FORMAT_INT:
            square_int(part, p, n, ahead);
            break;
    }
}

static void add_specials(cr_specials *into, const cr_specials *from) {
    into->nans += from->nans;
    into->pinfs += from->pinfs;
    into->ninfs += from->ninfs;
}

static void sum_end(struct sum_run *run, cr_dtype dtype) {
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT) {
        cr_limbs_put_signed(run->limb, run->limbs, run->pending, run->integer, 0);
        return;
    }
    if (dtype == CR_F16 && run->kind != SUM_SQUARE) {
        cr_limbs_put_signed(run->limb, run->limbs, run->pending, run->f16.sum, 0);
        add_specials(run->special, &run->f16.special);
        return;
    }
    plain_flush(&run->plain, &run->anchor);
    anchor_flush(&run->anchor);
    deep_flush(&run->anchor);
    if (run->kind == SUM_SQUARE) {
        bins_square_flush(&run->anchor, dtype);
    } else {
        bins_flush(&run->anchor, dtype);
    }
    add_specials(run->special, &run->anchor.special);
}

/* One pass alone runs ahead of itself. So does the first pass over a long tile, which the others find in the second cache.
 * Otherwise several share the next tile among them, so that the memory stays busy while a tile that is already here is read
 * again. */
static struct ahead pass_ahead(const uint8_t *p, bool apart, unsigned passes, unsigned pass, uint64_t bytes) {
    uintptr_t here = (uintptr_t)p;
    if (bytes < 4 * AHEAD)
        return (struct ahead){here, 63, here, 0}; /* too short to be worth it: one address again and again */
    if (passes == 1 || (apart && pass == 0)) return (struct ahead){here + AHEAD, 0, here + SOON, UINTPTR_MAX};
    if (apart) return (struct ahead){here, 63, here + SOON, UINTPTR_MAX};
    static const struct {
        uint8_t shift, quarter;
    } shares[3][4] = {
        {{1, 0}, {1, 2}, {63, 3}, {63, 3}}, {{1, 0}, {2, 2}, {2, 3}, {63, 3}}, {{2, 0}, {2, 1}, {2, 2}, {2, 3}}};
    unsigned row = passes < 4 ? passes - 2 : 2, column = pass < 4 ? pass : 3;
    return (struct ahead){here + TILE_SEVERAL + shares[row][column].quarter * (TILE_SEVERAL / 4),
                          shares[row][column].shift, here, 0};
}

/* What a fold holds between its tiles. Only the live families' members are initialised. */
struct fold_run {
    struct extremum_run extrema;
    struct sum_run sum, sumabs, sumsq;
    struct spill spills[3];
    struct fused_run fused;
    struct ints_run ints;
    struct half_run half;
    bool apart; /* tiles are TILE_SUMS long */
};

static void fold_begin(struct fold_run *run, cr_partial *part) {
    uint32_t families = part->families;
    if (families & CR_FAM_EXTREMA) extrema_begin(&run->extrema, part);
    if (families & CR_FAM_SUM) sum_begin(&run->sum, part, SUM_PLAIN, &run->spills[0]);
    if (families & CR_FAM_SUMABS) sum_begin(&run->sumabs, part, SUM_ABSOLUTE, &run->spills[1]);
    if (families & CR_FAM_SUMSQ) sum_begin(&run->sumsq, part, SUM_SQUARE, &run->spills[2]);
    fused_begin(&run->fused, part);
    ints_begin(&run->ints, part);
    half_begin(&run->half, part);
    bool sums = (families & (CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ)) != 0;
    bool narrow = cr_dtype_kind((cr_dtype)part->dtype) == CR_KIND_FLOAT && part->dtype != CR_F64;
    run->apart = sums && narrow && run->fused.families == 0;
}

/* Each of `families` by itself; `pass` others have gone over the tile before. bytes: of the whole fold. */
static void fold_singly(struct fold_run *run, cr_partial *part, uint32_t families, unsigned pass, const uint8_t *p,
                        size_t n, uint64_t index, uint64_t bytes) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    unsigned passes = pass + (unsigned)__builtin_popcount(families);
#define PASS() pass_ahead(p, run->apart, passes, pass++, bytes)
    if (families & CR_FAM_SUM) sum_tile(&run->sum, dtype, p, n, PASS());
    if (families & CR_FAM_SUMABS) sum_tile(&run->sumabs, dtype, p, n, PASS());
    if (families & CR_FAM_SUMSQ) square_tile(&run->sumsq, part, p, n, PASS());
    if (families & CR_FAM_EXTREMA) extrema_tile(&run->extrema, dtype, part->wants, p, n, index, PASS());
    if (families & CR_FAM_COUNTS) fold_counts(part, p, n, PASS());
    if (families & CR_FAM_BITS) bits_tile(part, p, n, PASS());
    if (families & CR_FAM_PROD) prod_tile(part, p, n, index, PASS());
#undef PASS
}

/* What the first of several passes, which takes many families at once, fetches. */
static struct ahead joint_ahead(const cr_partial *part, uint32_t joint, const uint8_t *p, uint64_t bytes) {
    return pass_ahead(p, false, 1 + (unsigned)__builtin_popcount(part->families & ~joint), 0, bytes);
}

/* A tile of float16, block by block; after a block that fails the rest of the tile goes the other way. */
static void fold_half(struct fold_run *run, cr_partial *part, const uint8_t *p, size_t n, uint64_t index,
                      uint64_t bytes) {
    struct half_run *half = &run->half;
    for (size_t done = 0, now; done < n; done += now, p += now * 2) {
        now = n - done < HALF_BLOCK / 2 ? n - done : HALF_BLOCK / 2;
        struct ahead ahead = joint_ahead(part, half->families, p, bytes);
        if (!half_tile(half, &run->extrema, part, p, now, index + done, ahead)) {
            if (half->fails < 6) half->fails++;
            half->skip = (1u << half->fails) - 2;
            fold_singly(run, part, part->families, 0, p, n - done, index + done, bytes);
            return;
        }
        half->fails = 0;
        fold_singly(run, part, part->families & ~half->families, 1, p, now, index + done, bytes);
    }
}

static void fold_tile(struct fold_run *run, cr_partial *part, const uint8_t *p, size_t n, uint64_t index,
                      uint64_t bytes) {
    uint32_t joint = 0;
    if (run->half.skip > 0) {
        run->half.skip--;
    } else if (run->half.families != 0) {
        fold_half(run, part, p, n, index, bytes);
        return;
    }
    if (run->fused.families != 0) {
        struct ahead ahead = joint_ahead(part, run->fused.families, p, bytes);
        if (fused_tile(&run->fused, &run->extrema, part, p, n, index, ahead)) joint = run->fused.families;
    } else if (run->ints.families != 0) {
        joint = run->ints.families;
        ints_tile(&run->ints, &run->extrema, part, p, n, index, joint_ahead(part, joint, p, bytes));
    }
    fold_singly(run, part, part->families & ~joint, joint != 0, p, n, index, bytes);
}

static void fold(cr_partial *part, const uint8_t *p, uint64_t n, uint64_t index) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    uint32_t families = part->families;
    size_t size = cr_dtype_size(dtype);
    struct fold_run run;
    fold_begin(&run, part);
    bool tiles = (families & (families - 1)) != 0 || (run.fused.families | run.half.families) != 0;
    size_t several = run.apart ? TILE_SUMS : TILE_SEVERAL;
    size_t tile = (tiles ? several : TILE_ONE) / size, grain = cr_partial_grain(dtype, families);
    if (tile < grain) tile = grain; /* both are powers of two */
    for (uint64_t done = 0; done < n;) {
        size_t now = n - done < tile ? (size_t)(n - done) : tile;
        fold_tile(&run, part, p, now, index + done, n * size);
        p += now * size;
        done += now;
    }
    if (families & CR_FAM_EXTREMA) extrema_end(&run.extrema, part);
    if (run.fused.families != 0) fused_flush(&run.fused, part);
    if (run.ints.families != 0) ints_flush(&run.ints, part);
    if (run.half.families != 0) half_flush(&run.half, part);
    if (families & CR_FAM_SUM) sum_end(&run.sum, dtype);
    if (families & CR_FAM_SUMABS) sum_end(&run.sumabs, dtype);
    if (families & CR_FAM_SUMSQ) sum_end(&run.sumsq, dtype);
    part->n += n;
}

const cr_fold_isa FOLD_NAME = {FOLD_TEXT, fold, array_extrema};
