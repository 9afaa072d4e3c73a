/* fold_extrema: minimum, maximum, their lowest indices, and the first NaN. Included once per instruction set; itself
 * includes fold_extrema_lane.h once per lane type.
 *
 * Elements become signed keys of their own width, ordered as the values are (−0 below +0). The loop only notes which
 * block holds the best key; the index is looked up in that block afterwards, and stays inside it whatever another
 * process has written there meanwhile.
 *
 * A NaN's key lies beyond an infinity's, so a block whose keys stay within the infinities has none, at no extra cost.
 * float32 and float64 are compared as they are first, which is cheaper but takes −0 for +0; where that could matter, keys
 * decide.
 * Thread: any. Owner: the caller owns the data. */

enum { EXTREMA_BLOCK = 16384, EXTREMA_PATIENCE = 16 };

typedef float float_32;
typedef double float_64;

struct extremum_run {
    const uint8_t *min_block, *max_block; /* NULL: none yet */
    uint64_t min_index, max_index;        /* of the first element of the block */
    size_t min_n, max_n;
    int64_t min_key, max_key; /* signed keys */
    uint64_t first_nan;
    bool nans;      /* the last block had NaNs: expect more */
    unsigned zeros; /* blocks to compare by keys, because one's minimum or maximum was a zero */
};

#define LANE 8
#include "kernels/cpu/fold_extrema_lane.h"
#undef LANE
#define LANE 16
#include "kernels/cpu/fold_extrema_lane.h"
#undef LANE
#define LANE 32
#include "kernels/cpu/fold_extrema_lane.h"
#undef LANE
#define LANE 64
#include "kernels/cpu/fold_extrema_lane.h"
#undef LANE

static void extrema_begin(struct extremum_run *run, const cr_partial *part) {
    *run = (struct extremum_run){.first_nan = part->first_nan};
}

/* How keys are formed, as compile-time constants of each instance. */
#define EXTREMA_CASES(CASE)                 \
    CASE(CR_BOOL, 8, KEY_BOOL, 0)           \
    CASE(CR_U8, 8, KEY_UNSIGNED, 0)         \
    CASE(CR_I8, 8, KEY_SIGNED, 0)           \
    CASE(CR_U16, 16, KEY_UNSIGNED, 0)       \
    CASE(CR_I16, 16, KEY_SIGNED, 0)         \
    CASE(CR_U32, 32, KEY_UNSIGNED, 0)       \
    CASE(CR_I32, 32, KEY_SIGNED, 0)         \
    CASE(CR_U64, 64, KEY_UNSIGNED, 0)       \
    CASE(CR_I64, 64, KEY_SIGNED, 0)         \
    CASE(CR_F16, 16, KEY_FLOAT, 0x7c00)     \
    CASE(CR_BF16, 16, KEY_FLOAT, 0x7f80)    \
    CASE(CR_F32, 32, KEY_FLOAT, 0x7f800000) \
    CASE(CR_F64, 64, KEY_FLOAT, 0x7ff0000000000000)

#define CASE(dtype, lane, kind, infinity)                                                                 \
    NEVER void extrema_tile_##dtype(struct extremum_run *run, const uint8_t *p, size_t n, uint64_t index, \
                                    struct ahead ahead) {                                                 \
        extrema_tile_##lane(run, p, n, index, kind, infinity, ahead);                                     \
    }
EXTREMA_CASES(CASE)
#undef CASE

static void extrema_tile(struct extremum_run *run, cr_dtype dtype, const uint8_t *p, size_t n, uint64_t index,
                         struct ahead ahead) {
    switch ((int)dtype) {
#define CASE(dtype, lane, kind, infinity)              \
    case dtype:                                        \
        extrema_tile_##dtype(run, p, n, index, ahead); \
        break;
        EXTREMA_CASES(CASE)
#undef CASE
    }
}

static size_t extrema_find(cr_dtype dtype, const uint8_t *p, size_t n, int64_t key) {
    switch ((int)dtype) {
#define CASE(dtype, lane, kind, infinity) \
    case dtype:                           \
        return extrema_find_##lane(p, n, key, kind);
        EXTREMA_CASES(CASE)
#undef CASE
    }
    return 0;
}

static void extrema_end(struct extremum_run *run, cr_partial *part) {
    cr_dtype dtype = (cr_dtype)part->dtype;
    unsigned width = 8 * (unsigned)cr_dtype_size(dtype);
    uint64_t top = (uint64_t)1 << (width - 1), all = top | (top - 1);
    part->first_nan = run->first_nan;
    if (run->min_block == NULL) return;
    /* The search is worth its while only when this fold's best is the partial's best too. */
    uint64_t key = ((uint64_t)run->min_key & all) ^ top;
    if (part->min.index == UINT64_MAX || key < part->min.key ||
        (key == part->min.key && run->min_index < part->min.index)) {
        uint64_t index = run->min_index + extrema_find(dtype, run->min_block, run->min_n, run->min_key);
        if (key != part->min.key || index < part->min.index) part->min = (cr_extremum){key, index};
    }
    key = ((uint64_t)run->max_key & all) ^ top;
    if (part->max.index == UINT64_MAX || key > part->max.key ||
        (key == part->max.key && run->max_index < part->max.index)) {
        uint64_t index = run->max_index + extrema_find(dtype, run->max_block, run->max_n, run->max_key);
        if (key != part->max.key || index < part->max.index) part->max = (cr_extremum){key, index};
    }
}
