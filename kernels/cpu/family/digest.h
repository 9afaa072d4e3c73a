/* digest: the residues of an array's bytes (kernels/core/digest.h), walking forward: a block of words is multiplied by powers from a
 * table, whose products are added without a reduction; the block's sum is then reduced, and moved to its place by one more power.
 *
 * A product of a word of 32 bits and a power of 61 has 93. AVX-512 IFMA multiplies by the power's low 52 bits and by its upper 9, AVX2
 * by pieces of 21, 20 and 20, whose products of 53 bits add up in 64. Elsewhere 128 bits hold the sum of a block.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_DIGEST_H
#define CURED_KERNELS_CPU_FAMILY_DIGEST_H

#include "kernels/core/digest.h"
#include "kernels/core/fast.h"
#include "kernels/core/partial.h"
#include "kernels/cpu/table.h"
#include "kernels/cpu/vec.h"

/* Where in the array's bytes a fold is. */
struct digest_run {
    const cr_digest_keys *keys;
    uint64_t power[CR_DIGEST_PARTS]; /* of the word that the next byte is in */
    unsigned byte;                   /* the next one's number in its word */
    bool begun;
};

static void digest_begin(struct digest_run *run, uint64_t at) {
    run->keys = cr_digest_table();
    run->byte = at % CR_DIGEST_WORD;
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) run->power[j] = cr_digest_power(j, at / CR_DIGEST_WORD);
    run->begun = true;
}

ALWAYS uint32_t digest_word(const uint8_t *p, size_t bytes) {
    uint32_t word = 0;
    memcpy(&word, p, bytes);
    return word;
}

/* Adds `words` words, at most CR_DIGEST_KEYS, and goes on behind them. */
static void digest_add(struct digest_run *run, cr_partial *part, const uint64_t sum[CR_DIGEST_PARTS], size_t words) {
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        part->digest[j] = cr_digest_add(part->digest[j], cr_digest_mul(sum[j], run->power[j]));
        run->power[j] = cr_digest_mul(run->power[j], run->keys->key[j][words]);
    }
}

/* Some bytes of one word. */
static void digest_bytes(struct digest_run *run, cr_partial *part, const uint8_t *p, size_t bytes) {
    const uint64_t word = (uint64_t)digest_word(p, bytes) << (8 * run->byte);
    const uint64_t sum[CR_DIGEST_PARTS] = {word, word};
    run->byte += (unsigned)bytes;
    digest_add(run, part, sum, run->byte / CR_DIGEST_WORD);
    run->byte %= CR_DIGEST_WORD;
}

/* Words one by one: the rest of a block, and what has no vectors for it. */
ALWAYS uint64_t digest_singly(const uint64_t *key, const uint8_t *p, size_t words) {
    unsigned __int128 even = 0, odd = 0; /* CR_DIGEST_KEYS products of 93 bits */
    size_t i = 0;
    for (; i + 2 <= words; i += 2) {
        even += (unsigned __int128)key[i] * digest_word(p + i * CR_DIGEST_WORD, CR_DIGEST_WORD);
        odd += (unsigned __int128)key[i + 1] * digest_word(p + (i + 1) * CR_DIGEST_WORD, CR_DIGEST_WORD);
    }
    if (i < words) even += (unsigned __int128)key[i] * digest_word(p + i * CR_DIGEST_WORD, CR_DIGEST_WORD);
    return cr_digest_wide(even + odd);
}

#if defined(VEC_AVX512)
/* Unlike the rest of what is compiled for AVX-512, this asks for IFMA as well: cr_digest_has_ifma. */
#define DIGEST_IFMA __attribute__((noinline, target("avx512ifma")))

/* The sums of a whole block. */
static DIGEST_IFMA void digest_block_ifma(const cr_digest_keys *keys, const uint8_t *p, struct ahead ahead, size_t at,
                                          uint64_t sum[CR_DIGEST_PARTS]) {
    __m512i low[2 * CR_DIGEST_PARTS], high[2 * CR_DIGEST_PARTS]; /* of weight 1 and 2^52 */
    for (unsigned i = 0; i < 2 * CR_DIGEST_PARTS; i++) low[i] = high[i] = _mm512_setzero_si512();
#pragma GCC unroll 2
    for (size_t k = 0; k < CR_DIGEST_KEYS; k += 16) {
        fetch(ahead, at + k * CR_DIGEST_WORD, 64);
#pragma GCC unroll 4
        for (unsigned i = 0; i < 2; i++) {
            const __m512i words =
                _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)(p + (k + 8 * i) * CR_DIGEST_WORD)));
#pragma GCC unroll 2
            for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
                const __m512i key = _mm512_loadu_si512(&keys->key[j][k + 8 * i]); /* its upper bits are not read */
                const unsigned to = 2 * j + i;
                low[to] = _mm512_madd52lo_epu64(low[to], words, key);
                high[to] = _mm512_madd52hi_epu64(high[to], words, key);
                high[to] = _mm512_madd52lo_epu64(high[to], words, _mm512_srli_epi64(key, 52));
            }
        }
    }
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        const uint64_t l = (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(low[2 * j], low[2 * j + 1]));
        const uint64_t h = (uint64_t)_mm512_reduce_add_epi64(_mm512_add_epi64(high[2 * j], high[2 * j + 1]));
        sum[j] = cr_digest_wide(l + ((unsigned __int128)h << 52));
    }
}
#endif

#if defined(VEC_AVX512)
#define DIGEST_MUL(a, b) (vu64) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
#define DIGEST_WIDE(p) (vu64) _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)(p)))
#elif defined(VEC_AVX2)
#define DIGEST_MUL(a, b) (vu64) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define DIGEST_WIDE(p) (vu64) _mm256_cvtepu32_epi64(_mm_loadu_si128((const void *)(p)))
#endif

#if defined(DIGEST_MUL)
NEVER void digest_block(const cr_digest_keys *keys, const uint8_t *p, struct ahead ahead, size_t at,
                        uint64_t sum[CR_DIGEST_PARTS]) {
    enum { LANES = VB / 8, FIRST = 21, PIECE = 20 };
    const vu64 first = ALL(vu64, (1u << FIRST) - 1);
    vu64 low[CR_DIGEST_PARTS] = {0}, mid[CR_DIGEST_PARTS] = {0}, high[CR_DIGEST_PARTS] = {0};
    for (size_t k = 0; k < CR_DIGEST_KEYS; k += 2 * LANES) {
        fetch(ahead, at + k * CR_DIGEST_WORD, 2 * LANES * CR_DIGEST_WORD);
#pragma GCC unroll 2
        for (unsigned i = 0; i < 2 * LANES; i += LANES) {
            const vu64 words = DIGEST_WIDE(p + (k + i) * CR_DIGEST_WORD);
#pragma GCC unroll 2
            for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
                const vu64 key = LOAD(vu64, &keys->key[j][k + i]);
                low[j] += DIGEST_MUL(words, key & first);
                mid[j] += DIGEST_MUL(words, (key >> FIRST) & (first >> 1));
                high[j] += DIGEST_MUL(words, key >> (FIRST + PIECE));
            }
        }
    }
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) {
        uint64_t lanes[3][LANES];
        unsigned __int128 total = 0;
        memcpy(lanes[0], &low[j], VB);
        memcpy(lanes[1], &mid[j], VB);
        memcpy(lanes[2], &high[j], VB);
        for (unsigned i = 0; i < LANES; i++)
            total += lanes[0][i] + ((unsigned __int128)lanes[1][i] << FIRST) +
                     ((unsigned __int128)lanes[2][i] << (FIRST + PIECE));
        sum[j] = cr_digest_wide(total);
    }
}
#undef DIGEST_MUL
#undef DIGEST_WIDE
#else
NEVER void digest_block(const cr_digest_keys *keys, const uint8_t *p, struct ahead ahead, size_t at,
                        uint64_t sum[CR_DIGEST_PARTS]) {
    fetch(ahead, at, CR_DIGEST_KEYS * CR_DIGEST_WORD);
    for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) sum[j] = digest_singly(keys->key[j], p, CR_DIGEST_KEYS);
}
#endif

/* n bytes at p, the first of them at byte `at` of the array; a run goes on where it is. */
NEVER void digest_tile(struct digest_run *run, cr_partial *part, const uint8_t *p, size_t n, uint64_t at,
                       struct ahead ahead) {
    const size_t block = (size_t)CR_DIGEST_KEYS * CR_DIGEST_WORD;
    uint64_t sum[CR_DIGEST_PARTS];
    size_t done = 0;
    const bool vectors = cr_fast_on(CR_FAST_DIGESTS);
    if (!run->begun) digest_begin(run, at);
    if (run->byte != 0) {
        done = CR_DIGEST_WORD - run->byte < n ? CR_DIGEST_WORD - run->byte : n;
        digest_bytes(run, part, p, done);
    }
#if defined(VEC_AVX512)
    const bool ifma = vectors && cr_fast_on(CR_FAST_DIGEST_IFMA) && cr_cpu_has_ifma();
    for (; ifma && done + block <= n; done += block) {
        digest_block_ifma(run->keys, p + done, ahead, done, sum);
        digest_add(run, part, sum, CR_DIGEST_KEYS);
    }
#endif
    for (; vectors && done + block <= n; done += block) {
        digest_block(run->keys, p + done, ahead, done, sum);
        digest_add(run, part, sum, CR_DIGEST_KEYS);
    }
    for (size_t words; (words = (n - done) / CR_DIGEST_WORD) != 0; done += words * CR_DIGEST_WORD) {
        if (words > CR_DIGEST_KEYS) words = CR_DIGEST_KEYS;
        for (unsigned j = 0; j < CR_DIGEST_PARTS; j++) sum[j] = digest_singly(run->keys->key[j], p + done, words);
        digest_add(run, part, sum, words);
    }
    if (done < n) digest_bytes(run, part, p + done, n - done);
}

#endif
