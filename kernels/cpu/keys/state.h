/* state: what a fold by key knows of its cells. Private to kernels/cpu/keys.
 *
 * Thread: a state is used by one thread at a time. Owner: keys.h. */
#ifndef CURED_KERNELS_CPU_KEYS_STATE_H
#define CURED_KERNELS_CPU_KEYS_STATE_H

#include <string.h>

#include "kernels/cpu/keys/keys.h"

enum {
    CR_KEYS_BLOCK = 512, /* elements that are folded at once */
    CR_KEYS_MORE = 32,
    CR_KEYS_AHEAD = CR_KEYS_BLOCK, /* elements that are fetched ahead */
    CR_KEYS_LANES = 8,             /* of the widest vector of float64s */
    CR_KEYS_SPARE = 8,  /* cells behind the last for what counts in none; several, so that none is waited for */
    CR_KEYS_LEVELS = 4, /* digits of a cell at most */
    CR_KEYS_STEP =
        36, /* bits from a float's digit to the next; a digit is below 2^36 in one element, 2^37 of squares */
    CR_KEYS_INT_STEP = 32,
    CR_KEYS_ONE_STEP = 40,      /* bits that one digit alone takes, */
    CR_KEYS_ONE_ADDS_LOG2 = 22, /* so many times before it is looked at */
    CR_KEYS_ADDS_LOG2 = 25,     /* so many elements before digits are looked at: 2^25 · 2^37 is 2^62 */
};

/* One sum of all cells. The value of a cell is Σ digit[i]·2^(top − i·step), and what the limbs hold. */
typedef struct cr_key_sum {
    cr_sum_at at;
    unsigned limbs;
    int grid;
    int64_t *digits;  /* [cell][levels], the highest first */
    unsigned levels;  /* 1, 2 or 4; 0: by powers */
    int step, top;    /* top: the power of two of digit 0's unit */
    bool by_powers;   /* no digits: elements, or pairs, go to the limbs (kernels/cpu/family/power.h, pair.h) */
    bool placed;      /* top is chosen; of integers always */
    uint64_t adds;    /* elements since the digits were looked at */
    uint64_t since;   /* elements since the place was chosen, */
    uint64_t misfits; /* and those of them that did not fit */
    int64_t *limb[CR_SUM_LIMBS]; /* [cell]; NULL: zeros */
    bool limbed;                 /* some are live */
    uint32_t pending;            /* raw additions to limbs since their last carry pass */
    uint64_t *special[3];        /* [cell]: NaNs, +inf, −inf; NULL: none */
} cr_key_sum;

typedef struct cr_key_end {
    uint64_t key, index; /* as cr_extremum */
} cr_key_end;

typedef struct cr_key_counts {
    uint64_t nans, nonzero;
} cr_key_counts;

typedef struct cr_key_bits {
    uint64_t all, any, odd;
} cr_key_bits;

struct cr_by_key {
    cr_axis_spec spec;
    cr_keys keys;
    uint32_t wants;
    uint64_t cells;
    uint64_t bytes; /* held, */
    uint64_t most;  /* and no more than this */
    bool measures;  /* nothing is made: bytes says what would be */
    bool lacking;   /* more was needed: what was folded since is lost */
    bool beyond;    /* that was beyond the limit, not beyond the machine */
    uint64_t *n;    /* [cell] elements; NULL: no answer needs it */
    cr_key_sum sums[CR_SUMS];
    cr_key_end *min, *max;
    uint64_t *first_nan;
    cr_key_counts *counts;
    cr_key_bits *bits;
    cr_int_prod *prods;
    uint64_t *begins,
        *ends; /* of ops by rank: [cell] where its elements begin in the copy, and end so far; NULL: there are none */
    uint8_t *copy;
    void *ranking; /* scratch */
};

/* Some elements, and the cell of each. */
typedef struct cr_key_block {
    const uint8_t *p, *second; /* second: of pairs, the elements of the other array; else NULL */
    unsigned n;
    uint64_t at;               /* number of the first in the input */
    uintptr_t soon, soon_keys; /* what is fetched meanwhile, so many bytes an element */
    size_t size, key_size;
    uint32_t cell[CR_KEYS_BLOCK + CR_KEYS_MORE]; /* those behind the last are of no matter */
} cr_key_block;

/* What each instruction set offers (block.inc). */
typedef struct cr_keys_isa {
    const char *name;
    /* The cells of so many elements, from element `at` of the input; false: some keys are outside. */
    bool (*cells)(const cr_by_key *state, uint64_t at, unsigned n, uint32_t *cell);
    /* Adds a block to a sum. */
    void (*sum)(cr_by_key *state, cr_key_sum *sum, const cr_key_block *block);
    void (*count)(uint64_t *n, const cr_key_block *block);
} cr_keys_isa;

/* Elements are below 2^this of digit 0's units. */
static inline int cr_key_reach(const cr_key_sum *sum) { return sum->levels == 1 ? CR_KEYS_ONE_STEP : CR_KEYS_STEP; }

extern const cr_keys_isa cr_keys_portable;
#if defined(__x86_64__)
extern const cr_keys_isa cr_keys_avx2, cr_keys_avx512;
#endif

/* Memory for a thing of so many bytes for each cell, zeroed; NULL, and lacking: there is none, or it would be beyond the limit. */
void *cr_key_array(cr_by_key *state, size_t bytes);

/* Sets the block's cells of its n elements, the first of which is number `done` of the view's and block->at of the input. False: some keys
 * are outside. */
bool cr_key_cells(const cr_by_key *state, const cr_view *view, uint64_t done, cr_key_block *block);
/* Whether the spec has ops by rank, and what these need beside the arrays of cells (ranks.c). */
bool cr_key_ranks(const cr_axis_spec *spec);
uint64_t cr_key_ranks_bytes(const cr_axis_spec *spec, const cr_keys *keys);
/* Adds ±magnitude·2^bit, in units of the grid, to a cell's limbs; counts one of its specials: 0 NaN, 1 +inf, 2 −inf (sum.c). */
void cr_key_put_bits(cr_by_key *state, cr_key_sum *sum, uint64_t cell, unsigned __int128 magnitude, bool negative,
                     unsigned bit);
void cr_key_put_special(cr_by_key *state, cr_key_sum *sum, uint64_t cell, int kind);
/* Adds one element to a sum's limbs, or to its NaNs and infinities. */
void cr_key_put(cr_by_key *state, cr_key_sum *sum, uint32_t cell, double x);
void cr_key_put_int(cr_by_key *state, cr_key_sum *sum, uint32_t cell, uint64_t magnitude, bool negative);
/* Adds pair i of a block to a sum's limbs, or to its NaNs and infinities (others.c). */
void cr_key_put_pair(cr_by_key *state, cr_key_sum *sum, const cr_key_block *block, unsigned i);
/* Whether the digits have no place, or one that too many elements did not fit. */
bool cr_key_unplaced(const cr_by_key *state, const cr_key_sum *sum);
/* Chooses the place of the digits by n elements at p, float32 if narrow, else float64; not where all are zeros, infinities or NaNs. */
void cr_key_place(cr_by_key *state, cr_key_sum *sum, const uint8_t *p, bool narrow, unsigned n);
/* Before n more elements: no digit will overflow. */
void cr_key_room(cr_by_key *state, cr_key_sum *sum, unsigned n);
void cr_key_sum_begin(cr_by_key *state, cr_key_sum *sum, cr_sum_at at);
void cr_key_sum_merge(cr_by_key *into, cr_key_sum *to, cr_by_key *from, cr_key_sum *of);
void cr_key_sum_free(cr_key_sum *sum);
/* A cell's sum into a partial that has none of it yet. */
void cr_key_sum_partial(const cr_key_sum *sum, uint64_t cell, cr_partial *p);

/* A cell's four digits as upper·2^(2·step) + lower, where lower is not negative. */
static inline __int128 cr_key_four(const int64_t *digit, int step, unsigned __int128 *lower) {
    const int64_t below = ((int64_t)1 << step) - 1;
    const int64_t third = digit[2] + (digit[3] >> step), second = digit[1] + (third >> step);
    *lower = (unsigned __int128)(third & below) << step | (uint64_t)(digit[3] & below);
    return (__int128)digit[0] * (below + 1) + second;
}
/* 2^exponent, a normal float64. */
static inline double cr_key_power(int exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Whether op, a norm or a variance, is rounded by vectors; and that, of count (256 at most) cells to `to`, where hard[i] says which
 * are left (squares.c). */
bool cr_key_squares_take(const cr_by_key *state, cr_op op, const cr_finish_opts *share);
void cr_key_squares(const cr_by_key *state, cr_op op, uint64_t first, unsigned count, uint8_t *to, uint8_t *hard);

/* Sums by powers and of pairs, extrema, counts, bits and products of a block (others.c). */
void cr_key_others(cr_by_key *state, const cr_key_block *block);

#endif
