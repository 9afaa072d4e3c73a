/* quantile: one read for quantiles: how many elements have which bits (kernels/core/quantile.h).
 *
 * The first read counts all elements, in several tables in turn, so that equal neighbours do not wait for each other. A later read
 * compares upper bits in vectors, squeezes together what is sought, which is little or all of it, and counts that: four equal ones
 * at once. Tables are of the elements' own bits; those of keys are the same in another order, in which they are added up at the end.
 * Thread: any. Owner: the caller owns counts and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_QUANTILE_H
#define CURED_KERNELS_CPU_FAMILY_QUANTILE_H

#include "kernels/core/key.h"
#include "kernels/core/quantile.h"
#include "kernels/core/round.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/view/masked.h"

enum {
    QUANTILE_TABLE = 2048,  /* bins of one of four tables; two tables of four times as many count elements of 8 bytes */
    QUANTILE_WORDS = 16384, /* of all tables */
    QUANTILE_TILE = 16384,  /* bytes: read twice where NaNs may be among them, and once for each group */
    QUANTILE_AHEAD = 8192,
    QUANTILE_FLUSH = 1 << 30 /* elements that tables of 32 bits take */
};

/* What a read counts until it is flushed. */
struct quantile_run {
    uint32_t tables[QUANTILE_WORDS];
    uint64_t nans, below; /* of all NaNs those with a sign */
    unsigned shift;
};

ALWAYS void quantile_prefetch(const uint8_t *p, size_t at, size_t step) {
    for (size_t i = 0; i < step; i += 64) __builtin_prefetch(p + at + i + QUANTILE_AHEAD, 0, 3);
}

/* Counts n elements, `size` bytes each, by their upper bits. */
ALWAYS void quantile_count(struct quantile_run *run, const uint8_t *p, size_t n, size_t size) {
    enum { STEP = 64 };
    uint32_t *t = run->tables;
    const size_t bytes = n * size;
    size_t at = 0;
    for (; at + STEP <= bytes; at += STEP) {
        quantile_prefetch(p, at, STEP);
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k += 8) {
            uint64_t x;
            memcpy(&x, p + at + k, sizeof x);
            if (size == 8) {
                t[(k / 8 % 2) * 4 * QUANTILE_TABLE + (x >> 51)]++;
            } else if (size == 4) {
                t[(k / 8 % 2) * 2 * QUANTILE_TABLE + (x >> 21 & (QUANTILE_TABLE - 1))]++;
                t[(k / 8 % 2) * 2 * QUANTILE_TABLE + QUANTILE_TABLE + (x >> 53)]++;
            } else if (size == 2) {
#pragma GCC unroll 4
                for (unsigned lane = 0; lane < 4; lane++) t[lane * 256 + (x >> (16 * lane + 8) & 255)]++;
            } else {
#pragma GCC unroll 8
                for (unsigned lane = 0; lane < 8; lane++) t[lane % 4 * 256 + (x >> 8 * lane & 255)]++;
            }
        }
    }
    for (; at < bytes; at += size) {
        uint64_t x = 0;
        memcpy(&x, p + at, size);
        t[x >> run->shift]++;
    }
}

/* Bins of one table, and tables. */
ALWAYS size_t quantile_bins(size_t size) { return size == 8 ? 4 * QUANTILE_TABLE : size == 4 ? QUANTILE_TABLE : 256; }
ALWAYS size_t quantile_tables(size_t size) { return size == 8 ? 2 : 4; }

/* Elements in the bins that NaNs fall into, with and without a sign: those of the highest exponents. */
ALWAYS uint64_t quantile_suspects(const struct quantile_run *run, uint64_t infinity, size_t size) {
    const size_t bins = quantile_bins(size), half = bins / 2;
    uint64_t found = 0;
    for (size_t table = 0; table < quantile_tables(size); table++) {
        for (size_t bin = infinity >> run->shift; bin < half; bin++)
            found += run->tables[table * bins + bin] + (uint64_t)run->tables[table * bins + half + bin];
    }
    return found;
}

#define QUANTILE_NANS(name, vu, vs, word)                                                   \
    ALWAYS void name(struct quantile_run *run, const uint8_t *p, size_t n, word infinity) { \
        const word magnitude = (word) ~(word)0 >> 1;                                        \
        vu all = {0}, below = {0};                                                          \
        size_t i = 0;                                                                       \
        for (; i + VB / sizeof(word) <= n; i += VB / sizeof(word)) {                        \
            const vu x = LOAD(vu, p + i * sizeof(word));                                    \
            const vu nan = (vu)((vs)(x & magnitude) > (vs)ALL(vu, infinity));               \
            all -= nan;                                                                     \
            below -= nan & (vu)((vs)x < 0);                                                 \
        }                                                                                   \
        for (size_t lane = 0; lane < VB / sizeof(word); lane++) {                           \
            run->nans += all[lane];                                                         \
            run->below += below[lane];                                                      \
        }                                                                                   \
        for (; i < n; i++) {                                                                \
            word x;                                                                         \
            memcpy(&x, p + i * sizeof x, sizeof x);                                         \
            const bool nan = (x & magnitude) > infinity;                                    \
            run->nans += nan;                                                               \
            run->below += nan && x > magnitude;                                             \
        }                                                                                   \
    }
QUANTILE_NANS(quantile_nans_16, vu16, vs16, uint16_t)
QUANTILE_NANS(quantile_nans_32, vu32, vs32, uint32_t)
QUANTILE_NANS(quantile_nans_64, vu64, vs64, uint64_t)
#undef QUANTILE_NANS

/* A part of the input, of at most QUANTILE_FLUSH elements together between two flushes. */
ALWAYS void quantile_first_part(struct quantile_run *run, const uint8_t *p, size_t n, size_t size, bool floats,
                                uint64_t infinity) {
    const size_t tile = QUANTILE_TILE / size;
    uint64_t before = floats ? quantile_suspects(run, infinity, size) : 0;
    for (size_t done = 0; done < n; done += tile, p += QUANTILE_TILE) {
        const size_t now = n - done < tile ? n - done : tile;
        quantile_count(run, p, now, size);
        if (!floats) continue;
        const uint64_t after = quantile_suspects(run, infinity, size);
        if (after == before) continue;
        before = after;
        if (size == 2)
            quantile_nans_16(run, p, now, (uint16_t)infinity);
        else if (size == 4)
            quantile_nans_32(run, p, now, (uint32_t)infinity);
        else
            quantile_nans_64(run, p, now, infinity);
    }
}

/* The tables to counts, in the order of keys; and zeros again. */
NEVER void quantile_flush(struct quantile_run *run, const cr_quantile *s, uint64_t *counts) {
    const size_t size = cr_dtype_size(s->dtype), bins = quantile_bins(size);
    const bool bytes_of_floats = size == 1 && cr_dtype_kind(s->dtype) == CR_KIND_FLOAT;
    for (size_t bin = 0; bin < bins; bin++) {
        uint64_t found = 0;
        for (size_t table = 0; table < quantile_tables(size); table++) found += run->tables[table * bins + bin];
        if (!found) continue;
        const uint64_t of = s->dtype == CR_BOOL ? bin != 0 : bin;
        counts[CR_QUANTILE_BINS + (cr_key_of_bits(s->dtype, of << s->below) >> s->below)] += found;
        if (!bytes_of_floats || !cr_float_is_nan(s->dtype, bin)) continue;
        run->nans += found;
        if (bin >= 128) run->below += found;
    }
    counts[CR_QUANTILE_BELOW] += run->below;
    counts[CR_QUANTILE_ABOVE] += run->nans - run->below;
    memset(run->tables, 0, quantile_tables(size) * bins * sizeof run->tables[0]);
    run->nans = run->below = 0;
}

static void quantile_first_tile(struct quantile_run *run, const cr_quantile *s, const uint8_t *p, size_t n) {
    const bool floats = cr_dtype_kind(s->dtype) == CR_KIND_FLOAT;
    switch (s->dtype) {
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
        case CR_F8_E4M3:
        case CR_F8_E5M2:
            quantile_first_part(run, p, n, 1, false, 0);
            break;
        case CR_U16:
        case CR_I16:
        case CR_F16:
        case CR_BF16:
            quantile_first_part(run, p, n, 2, floats, floats ? cr_float_infinity(s->dtype, false) : 0);
            break;
        case CR_U32:
        case CR_I32:
        case CR_F32:
            quantile_first_part(run, p, n, 4, floats, floats ? cr_float_infinity(s->dtype, false) : 0);
            break;
        case CR_U64:
        case CR_I64:
        case CR_F64:
            quantile_first_part(run, p, n, 8, floats, floats ? cr_float_infinity(s->dtype, false) : 0);
            break;
        case CR_NO_INPUT:
            break;
    }
}

/* One group of a later read. */
struct quantile_group {
    uint64_t sought, mask; /* an element belongs to it if these bits of it are those */
    uint64_t *bins;
    uint32_t *tables; /* counted first, */
    size_t lanes;     /* one after the other: 4, 2, or none, where there are many groups */
    uint64_t turn;    /* what turns its bins to the order of keys: all ones where keys fall while bits rise */
};

/* Which of 64 elements at p belong to the group. */
#if defined(VEC_AVX512)
ALWAYS uint64_t quantile_word(const uint8_t *p, const struct quantile_group *g, size_t size) {
    uint64_t word = 0;
    for (unsigned i = 0; i < size; i++) {
        const __m512i x = _mm512_loadu_si512(p + 64 * i);
        if (size == 2)
            word |= (uint64_t)_mm512_testn_epi16_mask(_mm512_xor_si512(x, _mm512_set1_epi16((short)g->sought)),
                                                      _mm512_set1_epi16((short)g->mask))
                    << 32 * i;
        else if (size == 4)
            word |= (uint64_t)_mm512_testn_epi32_mask(_mm512_xor_si512(x, _mm512_set1_epi32((int)g->sought)),
                                                      _mm512_set1_epi32((int)g->mask))
                    << 16 * i;
        else
            word |= (uint64_t)_mm512_testn_epi64_mask(_mm512_xor_si512(x, _mm512_set1_epi64((long long)g->sought)),
                                                      _mm512_set1_epi64((long long)g->mask))
                    << 8 * i;
    }
    return word;
}
#elif defined(VEC_AVX2)
ALWAYS uint64_t quantile_word(const uint8_t *p, const struct quantile_group *g, size_t size) {
    uint64_t word = 0;
    for (unsigned i = 0; i < 2 * size; i++) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32 * i));
        if (size == 2) {
            const __m256i same = _mm256_cmpeq_epi16(_mm256_and_si256(x, _mm256_set1_epi16((short)g->mask)),
                                                    _mm256_set1_epi16((short)g->sought));
            word |= _pext_u64((uint32_t)_mm256_movemask_epi8(same), 0x55555555) << 16 * i;
        } else if (size == 4) {
            const __m256i same = _mm256_cmpeq_epi32(_mm256_and_si256(x, _mm256_set1_epi32((int)g->mask)),
                                                    _mm256_set1_epi32((int)g->sought));
            word |= (uint64_t)(uint32_t)_mm256_movemask_ps((__m256)same) << 8 * i;
        } else {
            const __m256i same = _mm256_cmpeq_epi64(_mm256_and_si256(x, _mm256_set1_epi64x((long long)g->mask)),
                                                    _mm256_set1_epi64x((long long)g->sought));
            word |= (uint64_t)(uint32_t)_mm256_movemask_pd((__m256d)same) << 4 * i;
        }
    }
    return word;
}
#elif defined(VEC_NEON)
/* Masks of so many bytes a lane, a byte each: of every two lanes' bytes the lower. */
ALWAYS vu8 quantile_narrow(vu8 a, vu8 b, size_t size) {
    if (size == 8) return (vu8)vuzp1q_u32((uint32x4_t)a, (uint32x4_t)b);
    if (size == 4) return (vu8)vuzp1q_u16((uint16x8_t)a, (uint16x8_t)b);
    return (vu8)vuzp1q_u8((uint8x16_t)a, (uint8x16_t)b);
}
ALWAYS vu8 quantile_same(const uint8_t *p, const struct quantile_group *g, size_t size) {
    if (size == 2) return (vu8)((LOAD(vu16, p) & (uint16_t)g->mask) == (uint16_t)g->sought);
    if (size == 4) return (vu8)((LOAD(vu32, p) & (uint32_t)g->mask) == (uint32_t)g->sought);
    return (vu8)((LOAD(vu64, p) & g->mask) == g->sought);
}
ALWAYS uint64_t quantile_word(const uint8_t *p, const struct quantile_group *g, size_t size) {
    uint64_t word = 0;
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; i++, p += 16 * size) {
        vu8 same[8];
#pragma GCC unroll 8
        for (size_t k = 0; k < size; k++) same[k] = quantile_same(p + k * VB, g, size);
#pragma GCC unroll 3
        for (size_t left = size; left > 1; left /= 2)
            for (size_t k = 0; k < left / 2; k++) same[k] = quantile_narrow(same[2 * k], same[2 * k + 1], left);
        word |= byte_bits(same[0]) << 16 * i;
    }
    return word;
}
#else
ALWAYS uint64_t quantile_word(const uint8_t *p, const struct quantile_group *g, size_t size) {
    uint64_t word = 0;
    for (unsigned i = 0; i < 64; i++) {
        uint64_t x = 0;
        memcpy(&x, p + i * size, size);
        word |= (uint64_t)((x & g->mask) == g->sought) << i;
    }
    return word;
}
#endif

/* Counts n elements of the group by their next bits, in as many tables in turn as it has. */
ALWAYS void quantile_add_in(const struct quantile_group *g, const cr_quantile *s, const uint8_t *p, size_t n,
                            size_t size, size_t lanes) {
    const unsigned shift = s->below;
    const uint64_t all = ((uint64_t)1 << s->bits) - 1;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) {
            uint64_t x = 0;
            memcpy(&x, p + (i + k) * size, size);
            if (lanes == 0)
                g->bins[(x >> shift & all) ^ (g->turn & all)]++;
            else
                g->tables[(k % lanes << s->bits) + (x >> shift & all)]++;
        }
    }
    for (; i < n; i++) {
        uint64_t x = 0;
        memcpy(&x, p + i * size, size);
        if (lanes == 0)
            g->bins[(x >> shift & all) ^ (g->turn & all)]++;
        else
            g->tables[x >> shift & all]++;
    }
}

ALWAYS void quantile_add(const struct quantile_group *g, const cr_quantile *s, const uint8_t *p, size_t n,
                         size_t size) {
    if (g->lanes == 4)
        quantile_add_in(g, s, p, n, size, 4);
    else if (g->lanes == 2)
        quantile_add_in(g, s, p, n, size, 2);
    else
        quantile_add_in(g, s, p, n, size, 0);
}

/* 64 elements, all of the group: equal ones are one addition. */
ALWAYS void quantile_add_all(const struct quantile_group *g, const cr_quantile *s, const uint8_t *p, size_t size) {
    uint64_t x = 0;
    memcpy(&x, p, size);
    struct quantile_group same = *g;
    same.mask |= (((uint64_t)1 << s->bits) - 1) << s->below;
    same.sought = x & same.mask;
    if (quantile_word(p, &same, size) != UINT64_MAX) {
        quantile_add(g, s, p, 64, size);
        return;
    }
    const uint64_t all = ((uint64_t)1 << s->bits) - 1;
    g->bins[(x >> s->below & all) ^ (g->turn & all)] += 64;
}

/* A tile of n elements, of which those of the group go through `squeezed`. */
ALWAYS void quantile_later_part(const struct quantile_group *g, const cr_quantile *s, uint8_t *squeezed,
                                const uint8_t *p, size_t n, size_t size, bool ahead) {
    size_t i = 0, kept = 0;
    for (; i + 64 <= n; i += 64) {
        if (ahead) quantile_prefetch(p, i * size, 64 * size);
        const uint64_t word = quantile_word(p + i * size, g, size);
        if (word == 0) continue;
        if (word == UINT64_MAX) {
            quantile_add_all(g, s, p + i * size, size);
            continue;
        }
        kept += squeeze_64(squeezed + kept, p + i * size, word, size);
    }
    for (; i < n; i++) {
        uint64_t x = 0;
        memcpy(&x, p + i * size, size);
        memcpy(squeezed + kept, p + i * size, size);
        kept += (x & g->mask) == g->sought ? size : 0;
    }
    quantile_add(g, s, squeezed, kept / size, size);
}

static void quantile_later_tile(const struct quantile_group *groups, const cr_quantile *s, const uint8_t *p, size_t n) {
    uint8_t squeezed[QUANTILE_TILE + 2 * MASKED_PAD] __attribute__((aligned(64)));
    const size_t size = cr_dtype_size(s->dtype), tile = QUANTILE_TILE / size;
    for (size_t done = 0; done < n; done += tile, p += QUANTILE_TILE) {
        const size_t now = n - done < tile ? n - done : tile;
        for (uint32_t k = 0; k < s->groups; k++) {
            if (size == 2)
                quantile_later_part(&groups[k], s, squeezed, p, now, 2, k == 0);
            else if (size == 4)
                quantile_later_part(&groups[k], s, squeezed, p, now, 4, k == 0);
            else
                quantile_later_part(&groups[k], s, squeezed, p, now, 8, k == 0);
        }
    }
}

static void quantile_groups(struct quantile_run *run, const cr_quantile *s, uint64_t *counts,
                            struct quantile_group *groups) {
    const unsigned known = s->below + s->bits, width = 8 * (unsigned)cr_dtype_size(s->dtype);
    const uint64_t all = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    const uint64_t mask = all & ~(((uint64_t)1 << known) - 1);
    const size_t room = QUANTILE_WORDS / ((size_t)s->groups << s->bits), lanes = room < 2 ? 0 : room < 4 ? 2 : 4;
    memset(run->tables, 0, (lanes * s->groups << s->bits) * sizeof run->tables[0]);
    for (uint32_t k = 0; k < s->groups; k++) {
        const uint64_t sought = cr_bits_of_key(s->dtype, s->upper[k] << known) & mask;
        const bool falls = cr_dtype_kind(s->dtype) == CR_KIND_FLOAT && sought >> (width - 1) != 0;
        groups[k] = (struct quantile_group){.sought = sought,
                                            .mask = mask,
                                            .bins = counts + CR_QUANTILE_BINS + ((size_t)k << s->bits),
                                            .tables = run->tables + (lanes * k << s->bits),
                                            .lanes = lanes,
                                            .turn = falls ? UINT64_MAX : 0};
    }
}

/* The groups' tables to their bins; and zeros again. */
NEVER void quantile_flush_groups(const cr_quantile *s, const struct quantile_group *groups) {
    const size_t bins = (size_t)1 << s->bits;
    for (uint32_t k = 0; k < s->groups; k++) {
        const struct quantile_group *g = &groups[k];
        for (size_t lane = 0; lane < g->lanes; lane++)
            for (size_t bin = 0; bin < bins; bin++)
                g->bins[bin ^ (g->turn & (bins - 1))] += g->tables[lane * bins + bin];
        memset(g->tables, 0, g->lanes * bins * sizeof g->tables[0]);
    }
}

/* One read of n elements of a view: adds to counts. */
static void quantile_fold(const cr_quantile *s, uint64_t *counts, const cr_view *view, uint64_t n) {
    struct quantile_run run;
    struct quantile_group groups[CR_QUANTILE_RANKS];
    struct masked_tile tile;
    const size_t size = cr_dtype_size(s->dtype);
    const bool masked = view->mask.kind != CR_MASK_NONE;
    const size_t most =
        masked ? MASKED_ELEMENTS * size > MASKED_BYTES ? MASKED_BYTES / size : MASKED_ELEMENTS : QUANTILE_FLUSH;
    uint64_t unflushed = 0;
    if (s->read == 0) {
        memset(run.tables, 0, quantile_tables(size) * quantile_bins(size) * sizeof run.tables[0]);
        run.nans = run.below = 0;
        run.shift = s->below;
    } else {
        quantile_groups(&run, s, counts, groups);
    }
    for (uint64_t done = 0, now; done < n; done += now) {
        const uint8_t *p = view->data + done * size;
        now = n - done < most ? n - done : most;
        size_t kept = (size_t)now;
        if (masked) {
            masked_look(&tile, &view->mask, done, (size_t)now);
            kept = tile.kept;
            if (kept != now) {
                masked_squeeze(&tile, p, size);
                p = tile.squeezed;
            }
        }
        if (s->read == 0) {
            counts[CR_QUANTILE_SEEN] += kept;
            quantile_first_tile(&run, s, p, kept);
        } else {
            quantile_later_tile(groups, s, p, kept);
        }
        unflushed += kept;
        if (unflushed < QUANTILE_FLUSH && n - done > now) continue;
        if (s->read == 0)
            quantile_flush(&run, s, counts);
        else
            quantile_flush_groups(s, groups);
        unflushed = 0;
    }
}

#endif
