/* ints: several of Σx or Σ|x|, Σx², extrema and counts of integers in one reading of the data. Includes
 * ints_lane.inc once per lane type.
 *
 * A tile has at most EXTREMA_BLOCK bytes, so that narrow lanes have room for it and extrema can name it as their block; what it
 * adds up to goes to the run once a tile. A pass may compute more than was asked for: four passes do for all sets, since memory
 * is slower than any of them.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_WHOLE_INTS_H
#define CURED_KERNELS_CPU_WHOLE_INTS_H

#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/family/extrema.h"
#include "kernels/cpu/family/int.h"
#include "kernels/cpu/family/square.h"

/* What a pass computes. Lanes of 16 bits are always summed, since squares of those without signs need it. */
enum { INTS_SUM = 1, INTS_SQUARE = 2, INTS_REST = 4 /* extrema and counts */ };

struct ints_run {
    __int128 sum;
    unsigned __int128 square[3]; /* parts, by 2^0, 2^32 and 2^64 */
    uint32_t families;           /* that this file folds; 0: none */
    unsigned pass;
    bool absolute;
};

/* What a tile has. */
struct ints_seen {
    __int128 sum;
    unsigned __int128 square[3];
    uint64_t zeros;
    uint8_t low[VB], high[VB]; /* keys */
};

static void ints_begin(struct ints_run *run, const cr_partial *part) {
    const uint32_t all = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS;
    uint32_t families = part->families & all;
    run->families = 0;
    if (!cr_fast_on(CR_FAST_INTS)) return;
    if (cr_dtype_kind((cr_dtype)part->dtype) == CR_KIND_FLOAT) return;
    if (part->families & CR_FAM_PROD) return;                        /* its tiles may be larger than a block */
    if (families & CR_FAM_SUM) families &= ~(uint32_t)CR_FAM_SUMABS; /* one of the two goes alone */
    if ((families & (families - 1)) == 0) return;
    run->families = families;
    run->absolute = (families & CR_FAM_SUMABS) != 0;
    run->pass = (families & (CR_FAM_SUM | CR_FAM_SUMABS) ? INTS_SUM : 0) | (families & CR_FAM_SUMSQ ? INTS_SQUARE : 0) |
                (families & (CR_FAM_EXTREMA | CR_FAM_COUNTS) ? INTS_REST : 0);
    run->sum = 0;
    for (int i = 0; i < 3; i++) run->square[i] = 0;
}

#define TEMPLATE "kernels/cpu/whole/ints_lane.inc"
#define LANE 8
#include "kernels/cpu/instance.inc"
#define LANE 16
#include "kernels/cpu/instance.inc"
#define LANE 32
#include "kernels/cpu/instance.inc"
#define LANE 64
#include "kernels/cpu/instance.inc"
#undef TEMPLATE

/* Types, their lanes, how keys are formed (family/extrema.h), and whether elements have signs, as constants of each instance. */
#define INTS_CASES(CASE)              \
    CASE(CR_BOOL, 8, KEY_BOOL, 0)     \
    CASE(CR_U8, 8, KEY_UNSIGNED, 0)   \
    CASE(CR_I8, 8, KEY_SIGNED, 1)     \
    CASE(CR_U16, 16, KEY_UNSIGNED, 0) \
    CASE(CR_I16, 16, KEY_SIGNED, 1)   \
    CASE(CR_U32, 32, KEY_UNSIGNED, 0) \
    CASE(CR_I32, 32, KEY_SIGNED, 1)   \
    CASE(CR_U64, 64, KEY_UNSIGNED, 0) \
    CASE(CR_I64, 64, KEY_SIGNED, 1)

#define INSTANCE(name, dtype, lane, kind, is_signed, pass)                                              \
    NEVER void ints_##name##_##dtype(struct ints_seen *seen, bool absolute, const uint8_t *p, size_t n, \
                                     struct ahead ahead) {                                              \
        if (is_signed && absolute) {                                                                    \
            ints_tile_##lane(seen, kind, is_signed, true, pass, p, n, ahead);                           \
        } else {                                                                                        \
            ints_tile_##lane(seen, kind, is_signed, false, pass, p, n, ahead);                          \
        }                                                                                               \
    }
#define CASE(dtype, lane, kind, is_signed)                                   \
    INSTANCE(sums, dtype, lane, kind, is_signed, INTS_SUM | INTS_SQUARE)     \
    INSTANCE(rest, dtype, lane, kind, is_signed, INTS_SUM | INTS_REST)       \
    INSTANCE(squares, dtype, lane, kind, is_signed, INTS_SQUARE | INTS_REST) \
    INSTANCE(all, dtype, lane, kind, is_signed, INTS_SUM | INTS_SQUARE | INTS_REST)
INTS_CASES(CASE)
#undef CASE
#undef INSTANCE

/* Folds a tile of at most EXTREMA_BLOCK bytes. */
static void ints_tile(struct ints_run *run, struct extremum_run *extrema, cr_partial *part, const uint8_t *p, size_t n,
                      uint64_t index, struct ahead ahead) {
    struct ints_seen seen;
    fetch_pages(ahead, p, n * cr_dtype_size((cr_dtype)part->dtype));
    unsigned pass = run->pass;
    bool note = run->families & CR_FAM_EXTREMA;
    switch ((cr_dtype)part->dtype) {
#define CASE(dtype, lane, kind, is_signed)                                                                         \
    case dtype:                                                                                                    \
        (!(pass & INTS_REST)     ? ints_sums_##dtype                                                               \
         : !(pass & INTS_SQUARE) ? ints_rest_##dtype                                                               \
         : pass & INTS_SUM       ? ints_all_##dtype                                                                \
                                 : ints_squares_##dtype)(&seen, run->absolute, p, n, ahead);                             \
        if (note && part->wants != 0) extrema_take_##lane(extrema, part->wants, seen.low, seen.high, p, n, index); \
        break;
        INTS_CASES(CASE)
#undef CASE
        case CR_NO_INT:
            break;
    }
    run->sum += seen.sum;
    for (int i = 0; i < 3; i++) run->square[i] += seen.square[i];
    if (run->families & CR_FAM_COUNTS) part->nonzero += n - seen.zeros;
}

static void ints_flush(struct ints_run *run, cr_partial *part) {
    if (run->families & CR_FAM_SUM) cr_partial_put(part, CR_AT_SUM, run->sum, 0);
    if (run->families & CR_FAM_SUMABS) cr_partial_put(part, CR_AT_SUMABS, run->sum, 0);
    for (unsigned i = 0; i < 3 && run->families & CR_FAM_SUMSQ; i++) square_put(part, run->square[i], 32 * i);
}

#endif
