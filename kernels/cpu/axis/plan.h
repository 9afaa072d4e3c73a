/* plan: how a reduction along an axis is done: which families go by strips, the fast way, and which by one partial
 * per output; and how a strip lies in memory. Private to kernels/cpu.
 *
 * A strip is the state of up to CR_STRIP columns, one array per thing known about a column, so that a vector of columns
 * is a vector of memory. Exact sums are signed digits of 52 bits, digit d of a column at [d][column], digit 0's unit
 * `base` bits below the type's smallest; base is chosen by the first data, so that what follows falls into as few digits
 * as it can. Digits outside [low, high) are zero and are not even initialised, which keeps wide formats cheap.
 *
 * Thread: any; a plan is a constant once made, a strip belongs to one thread at a time. Owner: the caller. */
#ifndef CURED_KERNELS_CPU_AXIS_PLAN_H
#define CURED_KERNELS_CPU_AXIS_PLAN_H

#include "kernels/cpu/axis.h"

enum {
    CR_STRIP = 256,        /* columns of a strip at most */
    CR_STRIP_PAD = 64,     /* columns come in multiples of this: a whole vector of any type */
    CR_STRIP_APART = 8,    /* a line of the cache */
    CR_DIGIT_BITS = 52,    /* of a digit of a sum */
    CR_DIGIT_UNITS = 4000, /* a digit takes 4,095 additions of 2^51 */
    CR_LINES = 8,          /* lines that a kernel takes at once: more would share too few ways of the nearest cache */
    CR_LINES_HARD = 32, /* of sums whose digits are many: their cost is by the group, and each line is read but once */
    CR_AXIS_TILE = 32768, /* bytes of a gathered tile */
    CR_ROW_BYTES = 16384  /* of a short row at most (rows/rows.h) */
};

/* One kind of sum of a strip. */
typedef struct cr_strip_sum {
    uint32_t low, high; /* digits in use */
    uint32_t units;     /* the most that any digit holds, in 2^51 */
    int32_t slot;       /* the lowest digit that additions are tried at; −1: neither this nor base is chosen */
    int32_t base;       /* 0 … 51 */
    uint32_t misses;    /* vectors or stretches that did not fit */
    uint32_t special;   /* the counts of NaNs and infinities are live */
} cr_strip_sum;

typedef struct cr_strip {
    cr_strip_sum sums[CR_KNOWN_SUMS];
    uint32_t started;   /* extrema and counts are live */
    uint32_t nans;      /* extrema: some first_nan is set */
    uint64_t next_line; /* extrema: the line after the last one seen */
    uint32_t hard;      /* sums of floats: most of the last lines went through all digits */
    uint32_t careful; /* sums of floats: some of the last lines did not fit the slot, so the next are looked at first */
    uint32_t rounded; /* sums of floats: for so many groups of lines additions are not tried unseen */
    uint32_t reserved[3];
} cr_strip;

typedef struct cr_axis_plan {
    const cr_axis_spec *spec;
    cr_dtype dtype;
    size_t size;
    uint32_t fast, generic; /* families held in strips, and in partials */
    cr_ops generic_ops;     /* those that are finished from partials, */
    cr_ops strip_ops;       /* those from strips, */
    cr_ops order_ops;       /* and those by rank (kernels/cpu/order.h) */
    bool indices;           /* argmin or argmax is asked */
    bool cached;            /* so small an array is likely in a cache: fetching ahead costs up to a third there */
    bool
        unseen; /* sums are tried without a look: the processor tells if one was rounded, and the array is near enough */
    bool hidden;    /* strips are under a mask (hidden.h), and */
    bool counted;   /* answers depend on how many elements count */
    bool plain;     /* only sums or means of float32 columns are asked: they are tried as plain additions */
    uint32_t wants; /* which extrema: CR_WANTS_… */
    uint64_t width; /* columns in strips: a multiple of inner, so that narrow arrays fill vectors too */
    uint64_t strips;
    uint32_t columns;               /* of a strip */
    unsigned digits[CR_KNOWN_SUMS]; /* of a sum */
    int grid[CR_KNOWN_SUMS];        /* power of two of digit 0's unit, where base is 0 */
    /* Offsets within a strip, and its bytes. */
    size_t sum[CR_KNOWN_SUMS], special[CR_KNOWN_SUMS], min_key, max_key, min_index, max_index, first_nan, zeros, nans,
        left, spare, strip_bytes; /* left: elements that the mask leaves out; spare: what a pass does not want */
    size_t kept, spare_index;     /* of indices under a mask: the first line that counts; spare as above, */
    size_t spare_key[2];          /* of the pass that has the least, of the one that has the greatest */
} cr_axis_plan;

/* What each instruction set offers (axis.inc). */
struct cr_rows;
struct cr_row_sums;
struct cr_pair_rows;
struct cr_prod_line;
typedef struct cr_axis_isa {
    const char *name;
    /* Folds lines (1 … CR_LINES, of strips that are hard CR_LINES_HARD) × columns at p, stride bytes a line, into columns [first, first + columns) of strip;
     * line is the number of the first; what lies `ahead` bytes further on is wanted soon (0: it is near). */
    void (*lines)(const cr_axis_plan *plan, cr_strip *strip, const uint8_t *p, size_t stride, unsigned lines,
                  unsigned first, unsigned columns, uint64_t line, size_t ahead);
    /* Folds a whole row of n elements into one column. */
    void (*row)(const cr_axis_plan *plan, cr_strip *strip, unsigned column, const uint8_t *p, uint64_t n);
    /* Σ (divided by divisor, unless that is 0) of columns [first, first + count), count at most CR_STRIP_PAD, rounded once
     * to f64, or f32 if narrow, at to. Returns how many are left to another way: hard[i] says which. */
    unsigned (*round)(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                      uint64_t divisor, bool narrow, uint8_t *to, uint8_t *hard);
    /* The families of plan, of count rows of n elements at p: rows of at most CR_ROW_BYTES, count at most CR_ROWS. */
    void (*rows)(const cr_axis_plan *plan, struct cr_rows *rows, const uint8_t *p, unsigned count, uint64_t n);
    /* Σ of float rows [0, count), divided by divisor unless that is 0, or each by its own of counts unless that is NULL, rounded once to
     * f64, or f32 if narrow, at to. Returns how many are left to another way: hard[i] says which. */
    unsigned (*round_rows)(const struct cr_row_sums *sums, unsigned count, uint64_t divisor, const double *counts,
                           bool narrow, uint8_t *to, uint8_t *hard);
    /* Σ of columns [first, first + count), count at most CR_STRIP_PAD, as of rows. */
    void (*column_sums)(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned first, unsigned count,
                        struct cr_row_sums *sums);
    /* The root of Σx² of rows [0, count) (sum: NULL), or their variance over n − ddof, or the root of that, as f64. counts: each row's own
     * n, in vectors; NULL: all have n. */
    unsigned (*round_squares)(const struct cr_row_sums *sum, const struct cr_row_sums *square, unsigned count,
                              uint64_t n, const double *counts, uint64_t ddof, bool root, uint8_t *to, uint8_t *hard);
    /* Σ of the terms of count rows of pairs: at is that of a sum of pairs. And Σ of products over Σ of weights, as f64, as of rows. */
    void (*pairs)(const struct cr_pair_rows *rows, unsigned count, cr_sum_at at, struct cr_row_sums *sums);
    unsigned (*round_averages)(const struct cr_row_sums *products, const struct cr_row_sums *weights, unsigned count,
                               uint8_t *to, uint8_t *hard);
    /* The terms of n pairs at x and y, run r of them at to + r·apart (pairs/terms.h). kept: a byte each, 0 where the pair does not count;
     * NULL: all do. False: terms of float64s lost bits. */
    bool (*terms)(uint8_t *to, size_t apart, const uint8_t *x, const uint8_t *y, const uint8_t *kept, size_t n,
                  cr_dtype dtype, cr_sum_at at);
    /* Multiplies a line's columns by the elements at p. */
    void (*prod_line)(const struct cr_prod_line *to, cr_dtype dtype, const uint8_t *p);
    /* (h, l) times (g, k) in double-double, for each of count. */
    void (*prod_joins)(double *h, double *l, const double *g, const double *k, size_t count);
    /* The elements that a mask keeps, and copies without the others (view/hide.h). */
    void (*keep)(uint8_t *to, const cr_mask *mask, uint64_t at, size_t n);
    void (*hide)(uint8_t *to, const uint8_t *p, const uint8_t *kept, size_t n, size_t size, uint64_t fill,
                 size_t ahead);
    /* Σ of float32 columns at p, as f64; what lies `ahead` bytes further on is wanted soon. False: not all are sure, and all are
     * undefined. NULL: nothing tells. */
    bool (*plain_sums)(const uint8_t *p, size_t stride, uint64_t lines, uint64_t columns, size_t ahead, void *to);
} cr_axis_isa;

extern const cr_axis_isa cr_axis_portable;
#if defined(__x86_64__)
extern const cr_axis_isa cr_axis_avx2, cr_axis_avx512;
#endif

/* Fills plan for spec (which must live as long), for columns of whole blocks. */
void cr_axis_plan_make(cr_axis_plan *plan, const cr_axis_spec *spec);
/* The layout of strips of so many columns. */
void cr_axis_plan_strips(cr_axis_plan *plan, uint32_t columns);
/* The folds of the instruction set in use. */
const cr_axis_isa *cr_axis_current(void);
/* Whether rows are taken many at a time. */
bool cr_axis_has_short_rows(const cr_axis_spec *spec);

/* Strips (strip.c). */
void cr_strip_init(const cr_axis_plan *plan, cr_strip *strip);
void cr_strip_start(const cr_axis_plan *plan, cr_strip *strip);
/* Makes digits [low, high) of a sum live. */
void cr_strip_extend(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned low, unsigned high);
void cr_strip_carry(const cr_axis_plan *plan, cr_strip *strip, int which);
void cr_strip_carry_column(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column);
void cr_strip_merge(const cr_axis_plan *plan, cr_strip *into, const cr_strip *from);
/* Adds one column of from to one of into; from's lines are numbered anew: line·factor + offset. */
void cr_strip_add_column(const cr_axis_plan *into_plan, cr_strip *into, unsigned to, const cr_axis_plan *plan,
                         const cr_strip *from, unsigned column, uint64_t factor, uint64_t offset);
void cr_strip_add_special(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, bool nan,
                          bool negative);

void cr_strip_count_specials(const cr_axis_plan *plan, cr_strip *strip, int which, unsigned column, uint64_t nans,
                             uint64_t pinfs, uint64_t ninfs);

/* The bits, in float type result, of a column's sum, or mean, rounded once (number.c). */
uint64_t cr_strip_number(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned column, bool mean,
                         cr_dtype result);
/* A column as a partial of these families (finish.c). */
void cr_strip_partial(const cr_axis_plan *plan, const cr_strip *strip, unsigned column, uint32_t families,
                      cr_partial *p);
/* Answers of columns [first, first + count) of strip (finish.c), to out[k][at …]; output numbers the first. */
cr_status cr_strip_finish(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_strip *strip, unsigned first,
                          unsigned count, uint64_t output, void *const out[], uint64_t at, cr_error *error);

/* As cr_strip_finish, for one of the ops. */
cr_status cr_strip_finish_op(const cr_axis_plan *plan, const cr_axis_isa *isa, const cr_strip *strip, unsigned first,
                             unsigned count, uint64_t output, uint32_t k, void *const out[], uint64_t at,
                             cr_error *error);

/* bits.c: whether the generic ops are all bits, of a view without a mask, and not long rows; and their answers of whole blocks. */
bool cr_axis_bits_take(const cr_axis_plan *plan, const cr_view *view);
void cr_axis_bits_blocks(const cr_axis_plan *plan, const uint8_t *data, uint64_t blocks, void *const out[]);
/* One partial per output. blocks: as cr_cpu_axis_blocks, for the ops of plan->generic_ops. */
size_t cr_axis_generic_scratch(const cr_axis_plan *plan);
cr_status cr_axis_generic_blocks(const cr_axis_plan *plan, const cr_view *view, uint64_t output, uint64_t blocks,
                                 void *scratch, void *const out[], cr_error *error);
/* partials: one per column. view, count and at: as cr_cpu_columns_fold. */
void cr_axis_generic_fold(const cr_axis_plan *plan, cr_partial *partials, const cr_view *view, uint64_t count,
                          uint64_t at);
/* Stores those of the spec's ops that are in ops from one partial. */
cr_status cr_axis_store_ops(const cr_axis_plan *plan, cr_ops ops, const cr_partial *p, uint64_t output, uint64_t at,
                            void *const out[], cr_error *error);

/* Bytes up to the next line of the cache. */
static inline size_t cr_lined(size_t bytes) { return (bytes + 63) / 64 * 64; }
/* Where the status of answer at of ops[k] goes; NULL: nowhere. */
static inline uint8_t *cr_axis_status_at(const cr_axis_spec *spec, void *const out[], uint32_t k, uint64_t at) {
    return spec->statuses ? (uint8_t *)out[spec->op_count + k] + at : NULL;
}
static inline cr_strip *cr_strip_at(const cr_axis_plan *plan, void *state, uint64_t number) {
    return (cr_strip *)(void *)((uint8_t *)state + number * plan->strip_bytes);
}
static inline void *cr_strip_array(const cr_strip *strip, size_t offset) {
    return (uint8_t *)(uintptr_t)strip + offset;
}
static inline uint64_t *cr_strip_digit(const cr_axis_plan *plan, const cr_strip *strip, int which, unsigned digit) {
    return (uint64_t *)cr_strip_array(strip, plan->sum[which]) + (size_t)digit * plan->columns;
}
/* How many elements of a column count. */
static inline uint64_t cr_strip_n(const cr_axis_plan *plan, const cr_strip *strip, unsigned column) {
    const uint64_t n = plan->spec->shape.n;
    return plan->counted ? n - ((const uint64_t *)cr_strip_array(strip, plan->left))[column] : n;
}
/* kind: 0 NaNs, 1 +inf, 2 −inf. */
static inline uint64_t *cr_strip_special(const cr_axis_plan *plan, const cr_strip *strip, int which, int kind) {
    return (uint64_t *)cr_strip_array(strip, plan->special[which]) + (size_t)kind * plan->columns;
}
/* x·2^-52, rounded to nearest, for a signed digit. */
static inline uint64_t cr_digit_carry(uint64_t x) {
    const uint64_t half = (uint64_t)1 << 51, top = (uint64_t)1 << 63;
    return ((x + half + top) >> CR_DIGIT_BITS) - (top >> CR_DIGIT_BITS);
}

#endif
