/* masked: the elements of a masked view, a tile at a time: which of them count, and those squeezed together, so that every fold takes
 * them as it takes any array. A tile of which all counts is not touched at all.
 *
 * Thread: any. Owner: the caller owns view and tile. */
#ifndef CURED_KERNELS_CPU_VIEW_MASKED_H
#define CURED_KERNELS_CPU_VIEW_MASKED_H

#include "kernels/core/view.h"
#include "kernels/cpu/vec.h"

enum {
    MASKED_ELEMENTS = 16384, /* of a tile at most, */
    MASKED_BYTES = 32768,    /* and its bytes: a block of a product of f64; both stay in the nearest caches */
    MASKED_PAD = 64          /* a vector is stored whole */
};

struct masked_tile {
    uint64_t words[MASKED_ELEMENTS / 64]; /* which elements count */
    size_t n, kept;
    uint8_t squeezed[MASKED_BYTES + MASKED_PAD] __attribute__((aligned(64)));
};

/* What counts of elements [at, at + n). */
static void masked_look(struct masked_tile *tile, const cr_mask *mask, uint64_t at, size_t n) {
    tile->n = n;
    tile->kept = 0;
    for (size_t i = 0; i < n; i += 64) {
        const uint64_t word = cr_mask_word(mask, at + i, n - i < 64 ? (unsigned)(n - i) : 64);
        tile->words[i / 64] = word;
        tile->kept += (size_t)__builtin_popcountll(word);
    }
}

/* The place in the tile of the element that is number k of those that count. */
static size_t masked_place(const struct masked_tile *tile, size_t k) {
    size_t at = 0;
    for (size_t here; k >= (here = (size_t)__builtin_popcountll(tile->words[at])); at++) k -= here;
    uint64_t word = tile->words[at];
    while (k-- > 0) word &= word - 1;
    return 64 * at + (size_t)__builtin_ctzll(word);
}

/* Those of n elements at p (size bytes each) that word names, to `to`, one after the other; how many bytes. */
ALWAYS size_t squeeze_some(uint8_t *to, const uint8_t *p, uint64_t word, unsigned n, size_t size) {
    uint8_t *begin = to;
    for (unsigned i = 0; i < n;
         i++) { /* what does not count is written, too, and then overwritten: a branch would cost more */
        memcpy(to, p + i * size, size);
        to += size * (word >> i & 1);
    }
    return (size_t)(to - begin);
}

#if defined(VEC_AVX512)
ALWAYS size_t squeeze_64(uint8_t *to, const uint8_t *p, uint64_t word, size_t size) {
    uint8_t *begin = to;
    const unsigned step = size == 8 || size == 1 ? 8 : size == 4 ? 16 : 4;
    for (unsigned i = 0; i < 64; i += step, p += step * size) {
        const unsigned now = (unsigned)(word >> i) & ((1u << step) - 1);
        if (size == 8) {
            _mm512_storeu_si512(to, _mm512_maskz_compress_epi64((__mmask8)now, _mm512_loadu_si512(p)));
        } else if (size == 4) {
            _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)now, _mm512_loadu_si512(p)));
        } else {
            uint64_t eight;
            memcpy(&eight, p, sizeof eight);
            eight = _pext_u64(eight, size == 2 ? _pdep_u64(now, 0x0001000100010001) * 0xffff
                                               : _pdep_u64(now, 0x0101010101010101) * 0xff);
            memcpy(to, &eight, sizeof eight);
        }
        to += size * (size_t)__builtin_popcount(now);
    }
    return (size_t)(to - begin);
}
#else
ALWAYS size_t squeeze_64(uint8_t *to, const uint8_t *p, uint64_t word, size_t size) {
    return squeeze_some(to, p, word, 64, size);
}
#endif

/* The tile's elements that count, of those at p. */
ALWAYS void squeeze_tile(struct masked_tile *tile, const uint8_t *p, size_t size) {
    uint8_t *to = tile->squeezed;
    for (size_t i = 0; i < tile->n; i += 64) {
        const uint64_t word = tile->words[i / 64];
        if (tile->n - i < 64) {
            squeeze_some(to, p + i * size, word, (unsigned)(tile->n - i), size);
        } else if (word == UINT64_MAX) {
            memcpy(to, p + i * size, 64 * size);
            to += 64 * size;
        } else if (word != 0) {
            to += squeeze_64(to, p + i * size, word, size);
        }
    }
}

NEVER void masked_squeeze(struct masked_tile *tile, const uint8_t *p, size_t size) {
    if (size == 1) {
        squeeze_tile(tile, p, 1);
    } else if (size == 2) {
        squeeze_tile(tile, p, 2);
    } else if (size == 4) {
        squeeze_tile(tile, p, 4);
    } else {
        squeeze_tile(tile, p, 8);
    }
}

/* The tile's elements, each at its place, with `one` where an element does not count. */
static void masked_fill(struct masked_tile *tile, const uint8_t *p, size_t size, uint64_t one) {
    memcpy(tile->squeezed, p, tile->n * size);
    for (size_t i = 0; i < tile->n; i++) {
        if ((tile->words[i / 64] >> i % 64 & 1) == 0) memcpy(tile->squeezed + i * size, &one, size);
    }
}

#endif
