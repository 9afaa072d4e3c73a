/* fold_mixed: sums of float32 and bfloat16 with any spread, half of the elements by running anchors (fold_anchor.h) and the other
 * half by bins (fold_bins.h): vectors and scalars keep different parts of a core busy, so both together take little more time than
 * either alone. For AVX-512, which has the registers.
 *
 * Thread: any. Owner: the caller owns run and data. */

enum { MIXED_STEPS_F32 = 1 << DEEP_LOG_ADDS, MIXED_STEPS_BF16 = MIXED_STEPS_F32 / 2 };

/* NaNs and infinities become zeros. They are counted together, which is right while no infinity is noted. */
ALWAYS vf32 mixed_finite(vu32 x, vu32 *nans, __mmask16 *infinities) {
    __mmask16 special = _mm512_fpclass_ps_mask((__m512)x, 0x99), infinity = _mm512_fpclass_ps_mask((__m512)x, 0x18);
    *nans = (vu32)_mm512_mask_sub_epi32((__m512i)*nans, special, (__m512i)*nans, _mm512_set1_epi32(-1));
    *infinities = _kor_mask16(*infinities, infinity);
    return (vf32)_mm512_mask_xor_ps((__m512)x, special, (__m512)x, (__m512)x);
}

ALWAYS void mixed_bin(struct spill *spill, int table, const uint8_t *p, bool absolute, unsigned size) {
    uint64_t bits = 0;
    memcpy(&bits, p, size);
    if (absolute) bits &= ((uint64_t)1 << (8 * size - 1)) - 1;
    spill->tables[table][bits >> (size == 4 ? 23 : 7)] += bits + ((uint64_t)1 << 48);
}

ALWAYS void mixed_step(struct spill *spill, struct anchor_sums *s, const uint8_t *p, bool absolute, unsigned size,
                       vu32 *nans, __mmask16 *infinities) {
    vu32 x = LOAD(vu32, p), other = x & 0xffff0000u;
    if (size == 2) {
        mixed_finite(other, nans, infinities);
        x <<= 16;
    }
    vf32 finite = mixed_finite(x, nans, infinities);
    if (absolute) finite = (vf32)((vu32)finite & INT32_MAX);
    deep_add(s, widen_low(finite));
    if (size == 2) deep_add(s, widen_high(finite));
    const int binned = size == 4 ? 8 : 16;
#pragma GCC unroll 16
    for (int i = 0; i < binned; i++) mixed_bin(spill, i % 4, p + (size == 4 ? 32 + 4 * i : 4 * i + 2), absolute, size);
}

/* Folds whole rounds. Returns whether it saw infinities, which it has not counted. */
ALWAYS bool mixed_rounds(struct anchor_run *run, const uint8_t *p, size_t rounds, bool absolute, unsigned size,
                         struct ahead ahead) {
    const size_t steps = size == 4 ? MIXED_STEPS_F32 : MIXED_STEPS_BF16;
    struct deep_run *deep = &run->deep;
    struct anchor_sums s;
    vf64 m[DEEP_LEVELS];
    vu64 acc[DEEP_LEVELS];
    vu32 nans = {0};
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
    for (size_t round = 0; round < rounds; round++) {
        for (size_t step = 0; step < steps; step++, p += VB) {
            fetch(ahead, (round * steps + step) * VB, VB);
            mixed_step(spill, &s, p, absolute, size, &nans, &infinities);
        }
        deep_gather(&s, m, acc);
    }
    for (int level = 1; level < DEEP_LEVELS; level++) deep_add(&s, (vf64){0});
    deep_gather(&s, m, acc);
#pragma GCC unroll 6
    for (int level = 0; level < DEEP_LEVELS; level++) deep->acc[level] = acc[level];
    deep->rounds += (uint32_t)rounds + 1;
    if (infinities != 0) return true;
    for (size_t i = 0; i < VB / 4; i++) run->special.nans += nans[i];
    return false;
}

#define INSTANCE(name, absolute, size)                                                             \
    NEVER bool name(struct anchor_run *run, const uint8_t *p, size_t rounds, struct ahead ahead) { \
        return mixed_rounds(run, p, rounds, absolute, size, ahead);                                \
    }
INSTANCE(mixed_f32, false, 4)
INSTANCE(mixed_absolute_f32, true, 4)
INSTANCE(mixed_bf16, false, 2)
INSTANCE(mixed_absolute_bf16, true, 2)
#undef INSTANCE
