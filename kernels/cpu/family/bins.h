/* bins: exact sums of floats with any spread, element by element, in a bin per sign and exponent.
 *
 * f64: a bin sums significands. It takes 2^11 of them before it may wrap, so each addition looks at its carry, and the
 * rare 2^64 goes to the limbs.
 * f32, bf16: a bin sums whole bit patterns, each with 2^48 on top, so that the count lies in the upper 16 bits and the
 * significands follow from it. Four tables in turn keep additions to one bin from waiting for each other. They are
 * drained before a count can wrap.
 * (Bins by exponent are Malcolm's, "On accurate floating-point summation", CACM 14, 1971, with integers for floats.)
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_BINS_H
#define CURED_KERNELS_CPU_FAMILY_BINS_H

#include "kernels/core/float.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/family/anchor_run.h"

enum {
    BINS_QUADS = 65535, /* additions to each of the four tables between drains */
    BINS_FEW = 256      /* up to so many elements of a block go to the limbs at once */
};

struct spill {
    union {
        uint64_t wide[4096];
        struct {
            uint64_t tables[4][512], totals[512]; /* of bit patterns; of significands, drained */
            uint32_t quads;
        };
        unsigned __int128 squares_wide[2048]; /* bins_square.h */
        struct {
            uint64_t square_tables[4][256];
            unsigned __int128 square_totals[256];
            uint32_t square_quads;
        };
    };
    uint32_t wide_adds;
};

/* The place of exponent field 0 and 1 above the grid of the sum: bf16 is summed on float32's grid. */
ALWAYS unsigned bins_bit(unsigned field, unsigned lowest) { return lowest + (field == 0 ? 0 : field - 1); }

/* Elements to the limbs, one by one: for blocks too short to be worth a table. Specials are passed over. */
NEVER void bins_few(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute, unsigned size, unsigned mantissa,
                    unsigned lowest) {
    unsigned top = mantissa == CR_F64_MANTISSA ? CR_F64_TOP : CR_F32_TOP;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, p + i * size, size);
        unsigned field = (unsigned)(bits >> mantissa) & top;
        if (field == top) continue;
        uint64_t significand = (bits & (((uint64_t)1 << mantissa) - 1)) | (uint64_t)(field != 0) << mantissa;
        bool negative = !absolute && (bits >> (8 * size - 1)) != 0;
        if (significand != 0)
            cr_limbs_put(run->limb, run->limbs, run->pending, significand, negative, bins_bit(field, lowest));
    }
}

NEVER void bins_drain(struct spill *spill, unsigned mantissa) {
    for (unsigned bin = 0; bin < 512; bin++) {
        uint64_t sum = 0, count = 0;
        for (int table = 0; table < 4; table++) {
            sum += spill->tables[table][bin] & (((uint64_t)1 << 48) - 1);
            count += spill->tables[table][bin] >> 48;
        }
        uint64_t implicit = (bin & 255) != 0;
        spill->totals[bin] += sum - count * ((uint64_t)bin << mantissa) + count * (implicit << mantissa);
    }
    memset(spill->tables, 0, sizeof spill->tables);
    spill->quads = 0;
}

/* Makes the tables ready for n bit patterns. */
ALWAYS void bins_ready(struct anchor_run *run, size_t n, unsigned mantissa) {
    struct spill *spill = run->spill;
    if (!run->spilled) {
        memset(spill->tables, 0, sizeof spill->tables);
        memset(spill->totals, 0, sizeof spill->totals);
        spill->quads = 0;
        run->spilled = true;
    }
    if (spill->quads + n / 4 + 1 > BINS_QUADS) bins_drain(spill, mantissa);
    spill->quads += (uint32_t)(n / 4) + 1;
}

/* Adds bit patterns of `size` bytes (4: f32, 2: bf16). */
ALWAYS void bins_narrow(struct anchor_run *run, const uint8_t *p, size_t n, unsigned size, unsigned mantissa) {
    struct spill *spill = run->spill;
    const uint64_t one = (uint64_t)1 << 48;
    bins_ready(run, n, mantissa);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
        for (size_t lane = 0; lane < 4; lane++) {
            uint64_t bits = 0;
            memcpy(&bits, p + (i + lane) * size, size);
            spill->tables[lane][bits >> mantissa] += bits + one;
        }
    }
    for (; i < n; i++) {
        uint64_t bits = 0;
        memcpy(&bits, p + i * size, size);
        spill->tables[0][bits >> mantissa] += bits + one;
    }
}

NEVER void bins_carry(struct anchor_run *run, unsigned bin) {
    if ((bin & 2047) == 2047) return;
    const bool negative = bin >> 11 && !run->absolute;
    cr_limbs_put(run->limb, run->limbs, run->pending, (unsigned __int128)1 << 64, negative, bins_bit(bin & 2047, 0));
}

/* Elements to their bins, whatever they are; NaNs and infinities are counted if wanted. */
NEVER void bins_any_f64(struct anchor_run *run, const uint8_t *p, size_t n, bool count) {
    uint64_t *sum = run->spill->wide;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, p + i * 8, sizeof bits);
        unsigned bin = (unsigned)(bits >> 52);
        uint64_t fraction = bits & (((uint64_t)1 << 52) - 1), implicit = (uint64_t)((bin & 2047) != 0) << 52;
        if ((bin & 2047) == 2047) {
            cr_specials *special = &run->special;
            if (count) *(fraction != 0 ? &special->nans : bits >> 63 ? &special->ninfs : &special->pinfs) += 1;
        } else if (__builtin_expect(__builtin_add_overflow(sum[bin], fraction | implicit, &sum[bin]), 0)) {
            bins_carry(run, bin);
        }
    }
}

/* Normal numbers, as most are: they save a third of the time. */
ALWAYS void bins_normal_f64(struct anchor_run *run, uint64_t *sum, const uint8_t *p, size_t n, unsigned mantissa) {
    const uint64_t implicit = (uint64_t)1 << 52;
#if VB == 64
#pragma GCC unroll 32
#else
#pragma GCC unroll 8
#endif
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, p + i * 8, sizeof bits);
        uint64_t bin = bits >> mantissa, significand = (bits & (implicit - 1)) | implicit;
        if (__builtin_expect(__builtin_add_overflow(sum[bin], significand, &sum[bin]), 0))
            bins_carry(run, (unsigned)bin);
    }
}

enum { BINS_GROUP = 32 }; /* elements that are asked together */

/* Whether all of a group are normal numbers: neither zeros and subnormals nor NaNs and infinities. */
ALWAYS bool bins_all_normal_f64(const uint8_t *p) {
#if defined(VEC_AVX512)
    __mmask8 odd = 0;
#pragma GCC unroll 4
    for (int v = 0; v < BINS_GROUP * 8 / VB; v++)
        odd = _kor_mask8(odd, _mm512_fpclass_pd_mask(_mm512_loadu_pd(p + v * VB), 0xbf));
    return odd == 0;
#else
    const uint64_t field = (uint64_t)1 << 53;
    vu64 odd = {0};
#pragma GCC unroll 16
    for (int v = 0; v < BINS_GROUP * 8 / VB; v++)
        odd |= (vu64)((LOAD(vu64, p + v * VB) << 1) - field >= ALL(vu64, 2046 * field));
    return !any_bit(odd);
#endif
}

NEVER void bins_wide(struct anchor_run *run, const uint8_t *p, size_t n, bool count, struct ahead ahead) {
    uint64_t *sum = run->spill->wide;
    if (!run->spilled) {
        memset(run->spill->wide, 0, sizeof run->spill->wide);
        run->spilled = true;
    }
    const unsigned mantissa = DISTANCE(CR_F64_MANTISSA);
    size_t i = 0;
    for (; i + BINS_GROUP <= n; i += BINS_GROUP) {
        const uint8_t *group = p + i * 8;
        fetch(ahead, i * 8, BINS_GROUP * 8);
        if (__builtin_expect(bins_all_normal_f64(group), 1)) {
            bins_normal_f64(run, sum, group, BINS_GROUP, mantissa);
        } else {
            bins_any_f64(run, group, BINS_GROUP, count);
        }
    }
    bins_any_f64(run, p + i * 8, n - i, count);
}

NEVER void bins_f64(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    if (n <= BINS_FEW) {
        bins_few(run, p, n, absolute, 8, 52, 0);
    } else {
        bins_wide(run, p, n, false, (struct ahead){(uintptr_t)p, 63, (uintptr_t)p, 0}); /* it was looked at just now */
    }
}

NEVER void bins_f32(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    if (n <= BINS_FEW) {
        bins_few(run, p, n, absolute, 4, 23, 0);
    } else {
        bins_narrow(run, p, n, 4, 23);
    }
}

#ifndef CURED_SUM_ALONE
NEVER void bins_bf16(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    if (n <= BINS_FEW) {
        bins_few(run, p, n, absolute, 2, 7, 16);
    } else {
        bins_narrow(run, p, n, 2, 7);
    }
}
#endif

/* Four neighbouring bins, as a number of at most 64 + 3 + 2 bits. */
ALWAYS unsigned __int128 bins_join(const uint64_t *bins) {
    unsigned __int128 sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum += (unsigned __int128)bins[i] << i;
    return sum;
}

/* Bins of 32 neighbouring exponents meet in one number of at most 64 + 31 + 5 bits before they go to the limbs. */
NEVER void bins_put(struct anchor_run *run, const uint64_t *bins, unsigned fields, unsigned lowest) {
    for (unsigned sign = 0; sign < 2; sign++, bins += fields) {
        for (unsigned from = 0; from < fields; from += 32) {
            unsigned __int128 sum = 0;
#pragma GCC unroll 1 /* it is much code */
            for (unsigned i = 0; i < 32; i += 4) sum += bins_join(bins + from + i) << i;
            if (from + 32 == fields) sum -= (unsigned __int128)bins[fields - 1] << 31; /* of NaNs and infinities */
            if (from == 0) sum = (sum + bins[0]) >> 1; /* the unit of exponent field 0 is that of field 1 */
            if (sum == 0) continue;
            cr_limbs_put(run->limb, run->limbs, run->pending, sum, sign && !run->absolute, bins_bit(from, lowest));
        }
    }
}

NEVER void bins_flush(struct anchor_run *run, cr_dtype dtype) {
    if (!run->spilled) return;
    if (dtype == CR_F64) {
        bins_put(run, run->spill->wide, 2048, 0);
    } else {
        bins_drain(run->spill, dtype == CR_BF16 ? 7 : 23);
        bins_put(run, run->spill->totals, 256, dtype == CR_BF16 ? 16 : 0);
    }
    run->spilled = false;
}

#endif
