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
    MASKED_PAD = 64,         /* a vector is stored whole */
    MASKED_AHEAD = 16384,    /* bytes of the array, and */
    MASK_AHEAD = 8192 /* of its mask, that are fetched before they are read: the fold of a tile fetches nothing */
};

struct masked_tile {
    uint64_t words[MASKED_ELEMENTS / 64]; /* which elements count */
    size_t n, kept;
    uint8_t squeezed[MASKED_BYTES + MASKED_PAD] __attribute__((aligned(64)));
};

/* Which of 64 bytes are not 0. */
ALWAYS uint64_t masked_bytes(const uint8_t *p) {
#if defined(VEC_AVX512)
    const __m512i x = _mm512_loadu_si512(p);
    return _mm512_test_epi8_mask(x, x);
#else
    uint64_t zeros = 0;
    for (unsigned i = 0; i < 64; i += VB) zeros |= byte_bits((vu8)(LOAD(vu8, p + i) == 0)) << i;
    return ~zeros;
#endif
}

/* What counts of elements [at, at + n). */
NEVER void masked_look(struct masked_tile *tile, const cr_mask *mask, uint64_t at, size_t n) {
    const bool bytes = mask->kind == CR_MASK_BYTES;
    const uint8_t *p = mask->data + mask->first + at; /* of bytes */
    const uint64_t turned = mask->leaves_out ? UINT64_MAX : 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i += 64) {
        const uint64_t word = bytes && n - i >= 64 ? masked_bytes(p + i) ^ turned
                                                   : cr_mask_word(mask, at + i, n - i < 64 ? (unsigned)(n - i) : 64);
        if (bytes) __builtin_prefetch(p + i + MASK_AHEAD, 0, 2);
        tile->words[i / 64] = word;
        kept += (size_t)__builtin_popcountll(word);
    }
    tile->n = n;
    tile->kept = kept;
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

#if defined(VEC_AVX512) || defined(VEC_AVX2) || defined(VEC_NEON)
/* For each byte m: the numbers of its bits that are set, a byte each, the lowest first. */
#define PLACE(m, k) ((uint64_t)((m) >> (k)&1) * (k) << 8 * __builtin_popcount((m) & ((1 << (k)) - 1)) % 64)
#define PLACES(m) PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) | PLACE(m, 6) | PLACE(m, 7)
#define PLACES_4(m) PLACES(m), PLACES((m) + 1), PLACES((m) + 2), PLACES((m) + 3)
#define PLACES_16(m) PLACES_4(m), PLACES_4((m) + 4), PLACES_4((m) + 8), PLACES_4((m) + 12)
#define PLACES_64(m) PLACES_16(m), PLACES_16((m) + 16), PLACES_16((m) + 32), PLACES_16((m) + 48)
static const uint64_t places[256] = {PLACES_64(0), PLACES_64(64), PLACES_64(128), PLACES_64(192)};
/* Each bit of four twice: an element of 8 bytes is two lanes of 4. */
static const uint8_t twice[16] = {0x00, 0x03, 0x0c, 0x0f, 0x30, 0x33, 0x3c, 0x3f,
                                  0xc0, 0xc3, 0xcc, 0xcf, 0xf0, 0xf3, 0xfc, 0xff};

/* Those of 8 elements (4 of 8 bytes) at p that `now` names. A register of AVX-512 compresses no faster, and nothing shorter than
 * 4 bytes. */
ALWAYS void squeeze_step(uint8_t *to, const uint8_t *p, unsigned now, size_t size) {
#if defined(VEC_NEON)
    const uint8x8_t place = (uint8x8_t)vdup_n_u64(places[size == 8 ? twice[now] : now]);
    const uint8x16_t all = vcombine_u8(place, place);
    if (size >= 4) { /* each lane's number four times, then its bytes' */
        const uint8x16_t wide = vshlq_n_u8(vzip1q_u8(all, all), 2), own = (uint8x16_t)ALL(vu32, 0x03020100);
        const uint8x16x2_t x = {{vld1q_u8(p), vld1q_u8(p + 16)}};
        vst1q_u8(to, vqtbl2q_u8(x, vorrq_u8(vzip1q_u8(wide, wide), own)));
        vst1q_u8(to + 16, vqtbl2q_u8(x, vorrq_u8(vzip2q_u8(wide, wide), own)));
    } else if (size == 2) {
        const uint8x16_t byte = vorrq_u8(vshlq_n_u8(vzip1q_u8(all, all), 1), (uint8x16_t)ALL(vu16, 0x0100));
        vst1q_u8(to, vqtbl1q_u8(vld1q_u8(p), byte));
    } else {
        vst1_u8(to, vtbl1_u8(vld1_u8(p), place));
    }
#else
    const __m128i place = _mm_loadl_epi64((const __m128i *)&places[size == 8 ? twice[now] : now]);
    if (size >= 4) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)p);
        _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(place)));
    } else if (size == 2) {
        const __m128i pair = _mm_unpacklo_epi8(place, place), x = _mm_loadu_si128((const __m128i *)p);
        const __m128i byte = _mm_add_epi8(_mm_add_epi8(pair, pair), _mm_set1_epi16(0x0100));
        _mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(x, byte));
    } else {
        _mm_storel_epi64((__m128i *)to, _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)p), place));
    }
#endif
}
#endif

ALWAYS size_t squeeze_64(uint8_t *to, const uint8_t *p, uint64_t word, size_t size) {
#if defined(VEC_AVX512) || defined(VEC_AVX2) || defined(VEC_NEON)
    const unsigned step = size == 8 ? 4 : 8;
    uint8_t *begin = to;
#pragma GCC unroll 16
    for (unsigned i = 0; i < 64; i += step) {
        const unsigned now = (unsigned)(word >> i) & ((1u << step) - 1);
        squeeze_step(to, p + i * size, now, size);
        to += size * (size_t)__builtin_popcount(now);
    }
    return (size_t)(to - begin);
#else
    return squeeze_some(to, p, word, 64, size);
#endif
}

/* The tile's elements that count, of those at p. */
ALWAYS void squeeze_tile(struct masked_tile *tile, const uint8_t *p, size_t size) {
    uint8_t *to = tile->squeezed;
    for (size_t i = 0; i < tile->n; i += 64) {
        const uint64_t word = tile->words[i / 64];
#pragma GCC unroll 8
        for (size_t line = 0; line < 64 * size; line += 64)
            __builtin_prefetch(p + i * size + line + MASKED_AHEAD, 0, 2);
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
