/* view: how a fold's elements come. A plain view is an array; a masked one is an array of which a mask says what counts.
 *
 * What a mask leaves out is for no op there: it is not counted, not compared, and has no value. Indices stay those of the whole
 * array, and so do the places of a product of floats, in which an element that is left out is a one (docs/NUMERICS.md). So a masked
 * array may be cut and merged as any other, and the folds know nothing of masks: kernels/cpu/view hands them what is left.
 *
 * Thread: any; a view is a plain value. Owner: the caller owns array and mask, which may change meanwhile (then the answer is some
 * answer). */
#ifndef CURED_KERNELS_CORE_VIEW_H
#define CURED_KERNELS_CORE_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum cr_mask_kind {
    CR_MASK_NONE,  /* every element counts */
    CR_MASK_BYTES, /* a byte an element, true unless it is 0, as NumPy's bool */
    CR_MASK_BITS,  /* a bit an element, bit i of byte j being number 8·j + i, as Arrow's validity */
} cr_mask_kind;

typedef struct cr_mask {
    const uint8_t *data;
    uint64_t first; /* number of the first element's byte or bit in data */
    cr_mask_kind kind;
    bool leaves_out; /* elements where it is true, as numpy.ma's; otherwise those where it is false */
} cr_mask;

typedef struct cr_view {
    const uint8_t *data;
    cr_mask mask;
} cr_view;

static inline cr_view cr_view_plain(const void *data) { return (cr_view){.data = data}; }

/* The same mask from a later element on. */
static inline cr_mask cr_mask_from(cr_mask mask, uint64_t elements) {
    mask.first += elements;
    return mask;
}

/* Bit i: whether byte i of a word is not 0. */
static inline uint64_t cr_mask_gather(uint64_t bytes) {
    const uint64_t low = 0x7f7f7f7f7f7f7f7f, ones = 0x0101010101010101, to_top = 0x0102040810204080;
    return ((((bytes & low) + low) | bytes) >> 7 & ones) * to_top >> 56;
}

/* Which of elements [at, at + n) count, bit i for element at + i; n at most 64. Reads no byte beyond theirs. */
static inline uint64_t cr_mask_word(const cr_mask *mask, uint64_t at, unsigned n) {
    const uint64_t first = mask->first + at, all = n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX;
    uint64_t word = 0;
    if (mask->kind == CR_MASK_NONE) return all;
    if (mask->kind == CR_MASK_BYTES) {
        for (unsigned i = 0; i < n; i += 8) {
            uint64_t bytes = 0;
            memcpy(&bytes, mask->data + first + i, n - i < 8 ? n - i : 8);
            word |= cr_mask_gather(bytes) << i;
        }
    } else {
        const unsigned shift = first % 8, bytes = (shift + n + 7) / 8;
        memcpy(&word, mask->data + first / 8, bytes < 8 ? bytes : 8);
        word >>= shift;
        if (bytes > 8) word |= (uint64_t)mask->data[first / 8 + 8] << (64 - shift);
    }
    return (mask->leaves_out ? ~word : word) & all;
}

#endif
