/* quantile: elements by their rank, found by the bits of their keys (key.h), and what lies between two of them.
 *
 * Each read of the input counts how many elements have which next bits, among those whose upper bits are sought: 8 bits in one read,
 * 16 in two, 32 in three, 64 in five. Nothing is sorted, copied or compared, so no input is slow. The counts of parts of an input add
 * up, in any order and from anywhere, to those of the whole, so whoever has many parts (threads, files, ranks) does for each read:
 *
 *     cr_quantile_begin(&s, dtype, items, count, skips);
 *     do {
 *         counts = cr_quantile_words(&s) zeros;
 *         cr_cpu_quantile_fold(&s, counts, …);     for each part, by itself or into one's own counts,
 *         cr_quantile_merge(&s, counts, theirs);   which are added up
 *     } while (cr_quantile_next(&s, counts));
 *     cr_quantile_finish(&s, i, result, &value);   of each item
 *
 * Every part must be read each time, and be the same: of memory that changes meanwhile the answer is some answer.
 *
 * Thread: a cr_quantile is a plain value; reads share it as a constant. Owner: the caller. Nothing allocates. */
#ifndef CURED_KERNELS_CORE_QUANTILE_H
#define CURED_KERNELS_CORE_QUANTILE_H

#include "kernels/core/op.h"
#include "kernels/core/partial.h"

typedef enum cr_quantile_method {
#define CR_QUANTILE_METHOD(symbol, id, name) CR_QUANTILE_##symbol = (id),
#include "kernels/core/quantile.def"
#undef CR_QUANTILE_METHOD
} cr_quantile_method;

/* "linear"; NULL for a number outside the list. And the other way round; INVALID_ARGUMENT names them all. */
const char *cr_quantile_method_name(uint32_t method);
cr_status cr_quantile_method_parse(const char *name, cr_quantile_method *method, cr_error *error);

enum {
    CR_QUANTILE_ITEMS = 32, /* at once: as many ops as a call has */
    CR_QUANTILE_RANKS = 2 * CR_QUANTILE_ITEMS,
    CR_QUANTILE_SEEN = 0,  /* words of a read's counts: elements that count, NaNs too; */
    CR_QUANTILE_BELOW = 1, /* NaNs whose keys are below all numbers', */
    CR_QUANTILE_ABOVE = 2, /* and above; these three are of the first read, */
    CR_QUANTILE_BINS = 3,  /* and from here on those of bins, group by group, by rising keys */
    CR_QUANTILE_MOST_BITS = 13,
    CR_QUANTILE_ASKED_BYTES = 8 + 8 * CR_QUANTILE_RANKS /* of what a read counts, packed */
};

/* What one answer asks. */
typedef struct cr_quantile_item {
    double share; /* 0 … 1 */
    cr_quantile_method method;
} cr_quantile_item;

/* The places of a share among n elements in order: between ranks low and high (from 0 on), high by weight/2^scale. Where the place is a
 * rank the two are equal, and weight is 0. The place, share·(n − 1), is exact. */
typedef struct cr_quantile_place {
    uint64_t low, high;
    unsigned __int128 weight;
    unsigned scale;
} cr_quantile_place;

typedef struct cr_quantile {
    cr_dtype dtype;
    bool skips; /* NaNs; otherwise one makes every answer a NaN */
    uint32_t count;
    cr_quantile_item items[CR_QUANTILE_ITEMS];
    uint32_t read;                     /* which it is, from 0 on */
    uint32_t bits, below;              /* of keys: what this read counts, and those below them */
    uint32_t groups;                   /* of elements that are sought: */
    uint64_t upper[CR_QUANTILE_RANKS]; /* the bits of their keys above those, rising */
    uint64_t seen, nans;               /* after the first read */
    cr_quantile_place places[CR_QUANTILE_ITEMS];
    uint32_t group
        [CR_QUANTILE_RANKS]; /* of item i's low and high at 2·i and 2·i + 1; in the end that of the key itself, in upper */
    uint64_t rank[CR_QUANTILE_RANKS]; /* within the group */
} cr_quantile;

/* 1 … CR_QUANTILE_ITEMS items, whose shares are 0 … 1. */
void cr_quantile_begin(cr_quantile *s, cr_dtype dtype, const cr_quantile_item *items, uint32_t count, bool skips);
/* Words of the counts of this read. */
size_t cr_quantile_words(const cr_quantile *s);
/* What this read counts, as bytes for whoever has a part: docs/PARTIALS.md has the form. CR_QUANTILE_ASKED_BYTES at most. */
size_t cr_quantile_pack(const cr_quantile *s, uint8_t *out);
/* As much of a state as a read needs. INVALID_ARGUMENT for what no state has packed. */
cr_status cr_quantile_unpack(cr_quantile *s, const uint8_t *data, size_t bytes, cr_error *error);
/* Adds from to into, to which other threads may add at the same time. */
void cr_quantile_merge(const cr_quantile *s, uint64_t *into, const uint64_t *from);
/* Adds what this read counts of n elements, at any alignment, one by one: for few of them. */
void cr_quantile_count_few(const cr_quantile *s, uint64_t *counts, const void *data, uint64_t n);
/* The read is over, and these are its counts. False: it was the last. */
bool cr_quantile_next(cr_quantile *s, const uint64_t *counts);
/* The same; *left: how many elements the next read is about. */
bool cr_quantile_next_of(cr_quantile *s, const uint64_t *counts, uint64_t *left);
/* The bits of item i's answer in float type result. */
uint64_t cr_quantile_finish(const cr_quantile *s, uint32_t i, cr_dtype result);
/* How many reads a type takes. */
uint32_t cr_quantile_reads(cr_dtype dtype);

/* For whoever has the elements in order. n is at least 1. */
cr_quantile_place cr_quantile_place_of(const cr_quantile_item *item, uint64_t n);
/* What lies at a place between the elements with these keys. */
uint64_t cr_quantile_between(cr_dtype dtype, cr_dtype result, uint64_t low_key, uint64_t high_key,
                             const cr_quantile_place *place);

/* A value of op: an answer's bits in float type result. */
void cr_quantile_value(cr_op op, cr_dtype result, uint64_t bits, cr_value *value);
/* Whether a share is one: 0 … 1. INVALID_ARGUMENT, naming number i. */
cr_status cr_quantile_check(double share, size_t i, cr_error *error);

#endif
