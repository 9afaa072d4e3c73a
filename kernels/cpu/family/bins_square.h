/* bins_square: exact sums of the squares of floats with any spread, in a bin per exponent: integers again.
 *
 * f32, bf16: squared significands are below 2^48; four tables of 64-bit bins, drained before 2^16 additions. f64: below 2^106;
 * 128-bit bins, flushed before 2^22 additions.
 * Thread: any. Owner: the caller owns run and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_BINS_SQUARE_H
#define CURED_KERNELS_CPU_FAMILY_BINS_SQUARE_H

#include "kernels/core/limbs.h"
#include "kernels/cpu/family/bins.h"

enum { SQUARE_WIDE_ADDS = 1 << 22 };

/* The significand, and the exponent field in *field. The last field, of NaNs and infinities, is nobody's: its bin is never
 * read. */
ALWAYS uint64_t square_significand(const uint8_t *p, unsigned size, unsigned mantissa, unsigned *field) {
    uint64_t bits = 0;
    memcpy(&bits, p, size);
    unsigned top = mantissa == CR_F64_MANTISSA ? CR_F64_TOP : CR_F32_TOP;
    *field = (unsigned)(bits >> mantissa) & top;
    uint64_t significand = (bits & (((uint64_t)1 << mantissa) - 1)) | (uint64_t)(*field != 0) << mantissa;
    return significand;
}

NEVER void square_few(struct anchor_run *run, const uint8_t *p, size_t n, unsigned size, unsigned mantissa,
                      unsigned lowest) {
    for (size_t i = 0; i < n; i++) {
        unsigned field;
        uint64_t significand = square_significand(p + i * size, size, mantissa, &field);
        if (significand == 0 || field == (mantissa == CR_F64_MANTISSA ? CR_F64_TOP : CR_F32_TOP)) continue;
        cr_limbs_put(run->limb, run->limbs, run->pending, (unsigned __int128)significand * significand, false,
                     2 * bins_bit(field, lowest));
    }
}

static void square_drain(struct spill *spill) {
    for (unsigned bin = 0; bin < 256; bin++) {
        for (int table = 0; table < 4; table++) spill->square_totals[bin] += spill->square_tables[table][bin];
    }
    memset(spill->square_tables, 0, sizeof spill->square_tables);
    spill->square_quads = 0;
}

/* Makes the tables ready for n squares. */
ALWAYS void square_ready(struct anchor_run *run, size_t n) {
    struct spill *spill = run->spill;
    if (!run->spilled) {
        memset(spill->square_tables, 0, sizeof spill->square_tables);
        memset(spill->square_totals, 0, sizeof spill->square_totals);
        spill->square_quads = 0;
        run->spilled = true;
    }
    if (spill->square_quads + n / 4 + 1 > BINS_QUADS) square_drain(spill);
    spill->square_quads += (uint32_t)(n / 4) + 1;
}

ALWAYS void square_narrow(struct anchor_run *run, const uint8_t *p, size_t n, unsigned size, unsigned mantissa) {
    struct spill *spill = run->spill;
    square_ready(run, n);
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
#pragma GCC unroll 4
        for (size_t lane = 0; lane < 4; lane++) {
            unsigned field;
            uint64_t significand = square_significand(p + (i + lane) * size, size, mantissa, &field);
            spill->square_tables[lane][field] += significand * significand;
        }
    }
    for (; i < n; i++) {
        unsigned field;
        uint64_t significand = square_significand(p + i * size, size, mantissa, &field);
        spill->square_tables[0][field] += significand * significand;
    }
}

NEVER void bins_f32_square(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    (void)absolute;
    if (n <= BINS_FEW) {
        square_few(run, p, n, 4, 23, 0);
    } else {
        square_narrow(run, p, n, 4, 23);
    }
}

#ifndef CURED_SUM_ALONE
NEVER void bins_bf16_square(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    (void)absolute;
    if (n <= BINS_FEW) {
        square_few(run, p, n, 2, 7, 16);
    } else {
        square_narrow(run, p, n, 2, 7);
    }
}
#endif

static void square_put_bins(struct anchor_run *run, const unsigned __int128 *bins, unsigned fields, unsigned lowest) {
    for (unsigned field = 0; field < fields - 1; field++) {
        if (bins[field] != 0)
            cr_limbs_put(run->limb, run->limbs, run->pending, bins[field], false, 2 * bins_bit(field, lowest));
    }
}

NEVER void bins_square_flush(struct anchor_run *run, cr_dtype dtype) {
    if (!run->spilled) return;
    if (dtype == CR_F64) {
        square_put_bins(run, run->spill->squares_wide, 2048, 0);
    } else {
        square_drain(run->spill);
        square_put_bins(run, run->spill->square_totals, 256, dtype == CR_BF16 ? 16 : 0);
    }
    run->spilled = false;
}

/* Squares to their bins, whatever the elements are; NaNs and infinities are counted if wanted. */
NEVER void square_any_f64(struct anchor_run *run, const uint8_t *p, size_t n, bool count) {
    for (size_t i = 0; i < n; i++) {
        unsigned field;
        uint64_t significand = square_significand(p + i * 8, 8, 52, &field), bits;
        run->spill->squares_wide[field] += (unsigned __int128)significand * significand;
        if (!count || field != CR_F64_TOP) continue;
        memcpy(&bits, p + i * 8, sizeof bits);
        cr_specials *special = &run->special;
        *(bits << 12 != 0 ? &special->nans : bits >> 63 ? &special->ninfs : &special->pinfs) += 1;
    }
}

NEVER void square_wide(struct anchor_run *run, const uint8_t *p, size_t n, bool count, struct ahead ahead) {
    enum { PLACE = CR_F64_MANTISSA - 4 }; /* a bin has 2^4 bytes */
    const unsigned place = DISTANCE(PLACE);
    const uint64_t implicit = (uint64_t)1 << CR_F64_MANTISSA;
    struct spill *spill = run->spill;
    if (run->spilled && spill->wide_adds + n > SQUARE_WIDE_ADDS) bins_square_flush(run, CR_F64);
    if (!run->spilled) {
        memset(spill->squares_wide, 0, sizeof spill->squares_wide);
        spill->wide_adds = 0;
        run->spilled = true;
    }
    spill->wide_adds += (uint32_t)n;
    size_t i = 0;
    for (; i + BINS_GROUP <= n; i += BINS_GROUP) {
        fetch(ahead, i * 8, BINS_GROUP * 8);
        if (__builtin_expect(!bins_all_normal_f64(p + i * 8), 0)) {
            square_any_f64(run, p + i * 8, BINS_GROUP, count);
            continue;
        }
#pragma GCC unroll 8
        for (size_t at = i; at < i + BINS_GROUP; at++) {
            uint64_t bits;
            memcpy(&bits, p + at * 8, sizeof bits);
            uint64_t significand = (bits & (implicit - 1)) | implicit, field = bits >> place & CR_F64_TOP << 4;
            *(unsigned __int128 *)((char *)spill->squares_wide + field) += (unsigned __int128)significand * significand;
        }
    }
    square_any_f64(run, p + i * 8, n - i, count);
}

NEVER void bins_f64_square(struct anchor_run *run, const uint8_t *p, size_t n, bool absolute) {
    (void)absolute;
    if (n <= BINS_FEW) {
        square_few(run, p, n, 8, 52, 0);
    } else {
        square_wide(run, p, n, false, (struct ahead){(uintptr_t)p, 63, (uintptr_t)p, 0});
    }
}

#endif
