/* plain: sums of float32 columns, added up as float64s one line after the other. Where the processor tells that no addition was
 * rounded, these are the exact sums: most arrays of not too many lines have no element so small that its last bit is lost. It says so
 * of all columns together, so what is not sure is asked again of the digits (sum.h).
 *
 * Thread: any. Owner: the caller owns data and answers. */
#ifndef CURED_KERNELS_CPU_COLUMNS_PLAIN_H
#define CURED_KERNELS_CPU_COLUMNS_PLAIN_H

#include "kernels/cpu/vec.h"

#if defined(VEC_TELLS_INEXACT)
enum { PLAIN_VECTORS = 8, PLAIN_COLUMNS = PLAIN_VECTORS * VB / 8 };

/* PLAIN_COLUMNS columns at p. Returns whether a sum is not finite, in lanes. */
ALWAYS vu64 plain_few(const uint8_t *p, size_t stride, uint64_t lines, size_t ahead, uint8_t *to) {
    vf64 sum[PLAIN_VECTORS] = {{0}};
    vu64 strange = {0};
    for (uint64_t t = 0; t < lines; t++, p += stride) {
#pragma GCC unroll 4
        for (int i = 0; i < PLAIN_COLUMNS * 4; i += 64) __builtin_prefetch(p + ahead + i, 0, 3);
#pragma GCC unroll 8
        for (int v = 0; v < PLAIN_VECTORS; v++) sum[v] += widen_at(p + v * (VB / 2));
    }
#pragma GCC unroll 8
    for (int v = 0; v < PLAIN_VECTORS; v++) {
        strange |= not_finite(sum[v]);
        memcpy(to + v * VB, &sum[v], VB);
    }
    return strange;
}

NEVER bool plain_columns(const uint8_t *p, size_t stride, uint64_t lines, uint64_t columns, size_t ahead, uint8_t *to) {
    vu64 strange = {0};
    for (uint64_t c = 0; c < columns; c += PLAIN_COLUMNS) {
        if (columns - c < PLAIN_COLUMNS) c = columns - PLAIN_COLUMNS; /* some once more */
        strange |= plain_few(p + c * 4, stride, lines, ahead, to + c * 8);
    }
    return !any_bit(strange);
}

static bool plain_sums(const uint8_t *p, size_t stride, uint64_t lines, uint64_t columns, size_t ahead, void *to) {
    if (columns < PLAIN_COLUMNS) return false;
    inexact_clear();
    bool finite = plain_columns(p, stride, lines, columns, ahead, to);
    return !inexact_seen() && finite;
}
#else
#define plain_sums NULL
#endif

#endif
