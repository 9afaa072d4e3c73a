/* mask: which elements of an array count: see view.h. For C and C++, because kernels of a GPU read masks, too.
 *
 * Thread: any; a mask is a plain value. Owner: the caller owns its memory. */
#ifndef CURED_KERNELS_CORE_MASK_H
#define CURED_KERNELS_CORE_MASK_H

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
