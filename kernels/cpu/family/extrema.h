/* extrema: minimum, maximum, their lowest indices, and the first NaN. Includes extrema_lane.inc once per lane type.
 *
 * Elements become signed keys of their own width, ordered as the values are (−0 below +0). The loop only notes which
 * block holds the best key; the index is looked up in that block afterwards, and stays inside it whatever another
 * process has written there meanwhile.
 *
 * A NaN's key lies beyond an infinity's, so a block whose keys stay within the infinities has none, at no extra cost.
 * float32 and float64 are compared as they are first, which is cheaper but takes −0 for +0; where that could matter, keys
 * decide.
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_FAMILY_EXTREMA_H
#define CURED_KERNELS_CPU_FAMILY_EXTREMA_H

#include "kernels/core/partial.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/vec.h"

enum { EXTREMA_BLOCK = 16384, EXTREMA_PATIENCE = 16 };

typedef float float_32;
typedef double float_64;

/* The block that holds the best key so far. */
struct extremum_block {
    const uint8_t *block; /* NULL: none yet */
    uint64_t index;       /* of its first element */
    size_t n;
    int64_t key; /* signed */
};

struct extremum_run {
    struct extremum_block min, max;
    uint64_t first_nan;
    bool nans;      /* the last block had NaNs: expect more */
    unsigned zeros; /* blocks to compare by keys, because one's minimum or maximum was a zero */
};

enum { KEY_SIGNED, KEY_UNSIGNED, KEY_BOOL, KEY_FLOAT };

#define TEMPLATE "kernels/cpu/family/extrema_lane.inc"
#define LANE 8
#include "kernels/cpu/instance.inc"
#define LANE 16
#include "kernels/cpu/instance.inc"
#define LANE 32
#include "kernels/cpu/instance.inc"
#define LANE 64
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

static void extrema_begin(struct extremum_run *run, const cr_partial *part) {
    *run = (struct extremum_run){.first_nan = part->first_nan};
}

/* How keys are formed, as compile-time constants of each instance. Of floats: the largest magnitude that is no NaN, most often that
 * of an infinity. */
#define EXTREMA_CASES(CASE)                                 \
    CASE(CR_BOOL, 8, KEY_BOOL, 0)                           \
    CASE(CR_U8, 8, KEY_UNSIGNED, 0)                         \
    CASE(CR_I8, 8, KEY_SIGNED, 0)                           \
    CASE(CR_U16, 16, KEY_UNSIGNED, 0)                       \
    CASE(CR_I16, 16, KEY_SIGNED, 0)                         \
    CASE(CR_U32, 32, KEY_UNSIGNED, 0)                       \
    CASE(CR_I32, 32, KEY_SIGNED, 0)                         \
    CASE(CR_U64, 64, KEY_UNSIGNED, 0)                       \
    CASE(CR_I64, 64, KEY_SIGNED, 0)                         \
    CASE(CR_F8_E4M3, 8, KEY_FLOAT, CR_INFINITY_OF(F8_E4M3)) \
    CASE(CR_F8_E5M2, 8, KEY_FLOAT, CR_INFINITY_OF(F8_E5M2)) \
    CASE(CR_F16, 16, KEY_FLOAT, CR_INFINITY_OF(F16))        \
    CASE(CR_BF16, 16, KEY_FLOAT, CR_INFINITY_OF(BF16))      \
    CASE(CR_F32, 32, KEY_FLOAT, CR_INFINITY_OF(F32))        \
    CASE(CR_F64, 64, KEY_FLOAT, CR_INFINITY_OF(F64))

/* One of each: floats of one size differ by their infinity alone. */
#define EXTREMA_KEYS(CASE) \
    CASE(8, KEY_BOOL)      \
    CASE(8, KEY_UNSIGNED)  \
    CASE(8, KEY_SIGNED)    \
    CASE(8, KEY_FLOAT)     \
    CASE(16, KEY_UNSIGNED) \
    CASE(16, KEY_SIGNED)   \
    CASE(16, KEY_FLOAT)    \
    CASE(32, KEY_UNSIGNED) \
    CASE(32, KEY_SIGNED)   \
    CASE(32, KEY_FLOAT)    \
    CASE(64, KEY_UNSIGNED) \
    CASE(64, KEY_SIGNED)   \
    CASE(64, KEY_FLOAT)

#define INSTANCE(lane, kind, name, wants)                                                                             \
    NEVER void extrema_##name##_##lane##_##kind(struct extremum_run *run, const uint8_t *p, size_t n, uint64_t index, \
                                                int##lane##_t infinity, struct ahead ahead) {                         \
        extrema_tile_##lane(run, p, n, index, kind, infinity, wants, ahead);                                          \
    }
#define CASE(lane, kind)                    \
    INSTANCE(lane, kind, min, CR_WANTS_MIN) \
    INSTANCE(lane, kind, max, CR_WANTS_MAX) \
    INSTANCE(lane, kind, both, CR_WANTS_MIN | CR_WANTS_MAX)
EXTREMA_KEYS(CASE)
#undef CASE
#undef INSTANCE

static void extrema_tile(struct extremum_run *run, cr_dtype dtype, uint32_t wants, const uint8_t *p, size_t n,
                         uint64_t index, struct ahead ahead) {
    const bool min = wants & CR_WANTS_MIN, max = wants & CR_WANTS_MAX;
    switch (dtype) {
#define CASE(dtype, lane, kind, infinity)                                         \
    case dtype:                                                                   \
        (min && max ? extrema_both_##lane##_##kind                                \
         : min      ? extrema_min_##lane##_##kind                                 \
                    : extrema_max_##lane##_##kind)(run, p, n, index, infinity, ahead); \
        break;
        EXTREMA_CASES(CASE)
#undef CASE
        case CR_NO_INPUT:
            break;
    }
}

static size_t extrema_find(cr_dtype dtype, const uint8_t *p, size_t n, int64_t key) {
    switch (dtype) {
#define CASE(dtype, lane, kind, infinity) \
    case dtype:                           \
        return extrema_find_##lane(p, n, key, kind);
        EXTREMA_CASES(CASE)
#undef CASE
        case CR_NO_INPUT:
            break;
    }
    return 0;
}

/* One side's end: sign says which way better goes. The search is worth its while only where the index is asked for, and this
 * fold's best is the partial's best too. */
static void extremum_end(const struct extremum_block *own, cr_extremum *best, cr_dtype dtype, bool greater,
                         bool place) {
    uint64_t top = (uint64_t)1 << (8 * (unsigned)cr_dtype_size(dtype) - 1), all = top | (top - 1);
    uint64_t key = ((uint64_t)own->key & all) ^ top;
    if (own->block == NULL) return;
    bool better = best->index == UINT64_MAX || (greater ? key > best->key : key < best->key);
    if (!better && (key != best->key || own->index >= best->index)) return;
    uint64_t index = own->index + (place ? extrema_find(dtype, own->block, own->n, own->key) : 0);
    if (better || index < best->index) *best = (cr_extremum){key, index};
}

static void array_extrema(cr_dtype dtype, uint32_t wants, const uint8_t *p, uint64_t n, cr_array_extrema *to) {
    struct extremum_run run = {.first_nan = UINT64_MAX};
    extrema_tile(&run, dtype, wants, p, n, 0, row_ahead(p));
    /* A side that nobody asked for takes the other's: what counts is that there was an element. */
    const struct extremum_block *min = run.min.block ? &run.min : &run.max, *max = run.max.block ? &run.max : &run.min;
    *to = (cr_array_extrema){min->block != NULL, min->key, max->key, 0, 0, run.first_nan};
    if (!to->some) return;
    if (wants & CR_WANTS_ARGMIN) to->min_index = min->index + extrema_find(dtype, min->block, min->n, min->key);
    if (wants & CR_WANTS_ARGMAX) to->max_index = max->index + extrema_find(dtype, max->block, max->n, max->key);
}

static void extrema_end(const struct extremum_run *run, cr_partial *part) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    part->first_nan = run->first_nan;
    extremum_end(&run->min, &part->min, dtype, false, part->wants & CR_WANTS_ARGMIN);
    extremum_end(&run->max, &part->max, dtype, true, part->wants & CR_WANTS_ARGMAX);
}

#endif
