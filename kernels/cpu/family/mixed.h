/* mixed: sums of float32 and bfloat16 with any spread, half of the elements by running anchors (anchor.h) and the other
 * half by bins (bins.h): vectors and scalars keep different parts of a core busy, so both together take little more time than
 * either alone. Squares all go to bins, but vectors multiply. For AVX-512, which has the registers.
 *
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_MIXED_H
#define CURED_KERNELS_CPU_FAMILY_MIXED_H

#include "kernels/cpu/family/bins.h"
#include "kernels/cpu/family/bins_square.h"

#if defined(VEC_AVX512)
enum { MIXED_STEPS_F32 = 1 << DEEP_LOG_ADDS, MIXED_STEPS_BF16 = MIXED_STEPS_F32 / 2 };

/* Which lanes are NaNs or infinities. They are counted together, which is right while no infinity is noted. */
ALWAYS __mmask16 mixed_special(vu32 x, vu32 *nans, __mmask16 *infinities) {
    __mmask16 special = _mm512_fpclass_ps_mask((__m512)x, 0x99), infinity = _mm512_fpclass_ps_mask((__m512)x, 0x18);
    *nans = (vu32)_mm512_mask_sub_epi32((__m512i)*nans, special, (__m512i)*nans, _mm512_set1_epi32(-1));
    *infinities = _kor_mask16(*infinities, infinity);
    return special;
}

ALWAYS void mixed_bin(struct spill *spill, int table, const uint8_t *p, unsigned size, unsigned mantissa) {
    uint64_t bits = 0;
    memcpy(&bits, p, size);
    spill->tables[table][bits >> mantissa] += bits + ((uint64_t)1 << 48);
}

/* One vector: anchors take the lower half of its elements, or of each pair, and bins take the others. */
ALWAYS void mixed_step(struct spill *spill, struct anchor_sums *s, const uint8_t *p, vu64 kept, unsigned size,
                       unsigned mantissa, vu32 *nans, __mmask16 *infinities) {
    vu32 x = LOAD(vu32, p);
    if (size == 4) {
        __mmask16 special = mixed_special(x, nans, infinities);
        vf64 finite = (vf64)_mm512_maskz_cvtps_pd((__mmask8)~special, _mm256_loadu_ps((const float *)p));
        deep_add(s, (vf64)((vu64)finite & kept));
    } else {
        mixed_special(x & 0xffff0000u, nans, infinities);
        __mmask16 special = mixed_special(x << 16, nans, infinities);
        vf32 finite = (vf32)_mm512_maskz_slli_epi32((__mmask16)~special, (__m512i)x, 16);
        deep_add(s, (vf64)((vu64)widen_low(finite) & kept));
        deep_add(s, (vf64)((vu64)widen_high(finite) & kept));
    }
    const int binned = size == 4 ? 8 : 16;
#pragma GCC unroll 16
    for (int i = 0; i < binned; i++) mixed_bin(spill, i % 4, p + (size == 4 ? 32 + 4 * i : 4 * i + 2), size, mantissa);
}

/* Folds whole rounds. Returns whether it saw infinities; if not, *nans says how many NaNs. */
ALWAYS bool mixed_rounds(struct anchor_run *run, const uint8_t *p, size_t rounds, unsigned size, struct ahead ahead,
                         uint64_t *nans) {
    const size_t steps = size == 4 ? MIXED_STEPS_F32 : MIXED_STEPS_BF16;
    struct deep_run *deep = &run->deep;
    struct anchor_sums s;
    vf64 m[DEEP_LEVELS];
    vu64 acc[DEEP_LEVELS];
    vu32 seen = {0};
    __mmask16 infinities = 0;
    bins_ready(run, steps * rounds * (size == 4 ? 8 : 16), size == 4 ? 23 : 7);
    if (deep->rounds + rounds + 1 > DEEP_ROUNDS) deep_flush(run);
    deep->a = DEEP_F32_A;
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS; level++) {
        acc[level] = deep->rounds != 0 ? deep->acc[level] : (vu64){0};
        s.running[level] = m[level] = ALL(vf64, anchor_of(DEEP_F32_A - DEEP_STEP * level));
        if (level + 1 < DEEP_LEVELS) s.left[level] = (vf64){0};
    }
    struct spill *spill = run->spill;
    const vu64 kept = ALL(vu64, run->absolute ? INT64_MAX : UINT64_MAX); /* of an element's bits */
    const unsigned mantissa = DISTANCE(size == 4 ? CR_F32_MANTISSA : CR_BF16_MANTISSA);
    for (size_t round = 0; round < rounds; round++) {
#pragma GCC unroll 2 /* else the anchors are moved from register to register */
        for (size_t step = 0; step < steps; step++, p += VB) {
            fetch(ahead, (round * steps + step) * VB, VB);
            mixed_step(spill, &s, p, kept, size, mantissa, &seen, &infinities);
        }
        deep_gather(&s, m, acc);
    }
    for (int level = 1; level < DEEP_LEVELS; level++) deep_add(&s, (vf64){0});
    deep_gather(&s, m, acc);
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS; level++) deep->acc[level] = acc[level];
    deep->rounds += (uint32_t)rounds + 1;
    *nans = 0;
    for (size_t i = 0; i < VB / 4; i++) *nans += seen[i];
    return infinities != 0;
}

#define INSTANCE(name, rounds_of, size)                                                                            \
    NEVER bool name(struct anchor_run *run, const uint8_t *p, size_t rounds, struct ahead ahead, uint64_t *nans) { \
        return rounds_of(run, p, rounds, size, ahead, nans);                                                       \
    }
INSTANCE(mixed_f32, mixed_rounds, 4)
#ifndef CURED_SUM_ALONE
INSTANCE(mixed_bf16, mixed_rounds, 2)
#endif

/* Squares by vectors, which scalars take to their bins a batch later: what was stored just now in another width would have to be
 * waited for. A float32's square has 64 bits, a bfloat16's 16. */
enum { MIXED_BATCH = 8 }; /* vectors; a round has whole batches */
struct mixed_batch {
    uint8_t fields[MIXED_BATCH * VB], squares[2 * MIXED_BATCH * VB];
};

ALWAYS void mixed_square(struct mixed_batch *to, int v, const uint8_t *p, unsigned size, vu32 *nans,
                         __mmask16 *infinities) {
    vu32 x = LOAD(vu32, p);
    __m512i twice = size == 4 ? (__m512i)(x << 1) : (__m512i)((vu16)x << 1); /* the field lies in the upper byte */
    memcpy(to->fields + v * VB, &twice, VB);
    if (size == 4) { /* those of odd places come last */
        mixed_special(x, nans, infinities);
        __mmask16 normal = _mm512_test_epi32_mask((__m512i)x, _mm512_set1_epi32(0x7f800000));
        __m512i m = (__m512i)(x & 0x7fffff);
        m = _mm512_mask_or_epi32(m, normal, m, _mm512_set1_epi32(0x800000));
        __m512i odd = _mm512_srli_epi64(m, 32), squares[2] = {_mm512_mul_epu32(m, m), _mm512_mul_epu32(odd, odd)};
        memcpy(to->squares + v * 2 * VB, squares, sizeof squares);
    } else {
        mixed_special(x & 0xffff0000u, nans, infinities);
        mixed_special(x << 16, nans, infinities);
        __mmask32 normal = _mm512_test_epi16_mask((__m512i)x, _mm512_set1_epi16(0x7f80));
        __m512i m = (__m512i)((vu16)x & 0x7f);
        m = _mm512_mask_mov_epi16(m, normal, _mm512_or_si512(m, _mm512_set1_epi16(0x80)));
        m = _mm512_mullo_epi16(m, m);
        memcpy(to->squares + v * VB, &m, VB);
    }
}

ALWAYS void mixed_square_bins(struct spill *spill, const struct mixed_batch *from, unsigned size) {
    const uint8_t *fields = from->fields + size - 1, *squares = from->squares;
    const int count = size == 4 ? VB / 4 : VB / 2;
    for (int v = 0; v < MIXED_BATCH; v++, fields += VB, squares += size == 4 ? 2 * VB : VB) {
#pragma GCC unroll 32
        for (int i = 0; i < count; i++) {
            uint64_t square = 0;
            memcpy(&square, squares + (size == 4 ? 8 : 2) * i, size == 4 ? 8 : 2);
            spill->square_tables[i % 4][fields[size == 4 ? 4 * (i % 8 * 2 + i / 8) : 2 * i]] += square;
        }
    }
}

/* As mixed_rounds. */
ALWAYS bool mixed_square_rounds(struct anchor_run *run, const uint8_t *p, size_t rounds, unsigned size,
                                struct ahead ahead, uint64_t *nans) {
    const size_t bytes = rounds * VB * (size == 4 ? MIXED_STEPS_F32 : MIXED_STEPS_BF16);
    vu32 seen = {0};
    __mmask16 infinities = 0;
    square_ready(run, bytes / size);
    struct mixed_batch batches[2];
    for (size_t at = 0, batch = 0; at < bytes; at += MIXED_BATCH * VB, batch++) {
#pragma GCC unroll 2
        for (int v = 0; v < MIXED_BATCH; v++) {
            fetch(ahead, at + v * VB, VB);
            mixed_square(&batches[batch % 2], v, p + at + v * VB, size, &seen, &infinities);
        }
        if (batch != 0) mixed_square_bins(run->spill, &batches[(batch - 1) % 2], size);
    }
    if (bytes != 0) mixed_square_bins(run->spill, &batches[(bytes / (MIXED_BATCH * VB) - 1) % 2], size);
    *nans = 0;
    for (size_t i = 0; i < VB / 4; i++) *nans += seen[i];
    return infinities != 0;
}

INSTANCE(mixed_f32_square, mixed_square_rounds, 4)
#ifndef CURED_SUM_ALONE
INSTANCE(mixed_bf16_square, mixed_square_rounds, 2)
#endif
#undef INSTANCE
#endif

#endif
