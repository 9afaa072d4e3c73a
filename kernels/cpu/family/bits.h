/* bits: bitwise and, or and exclusive or of integers.
 *
 * Thread: any. Owner: the caller owns partial and data. */
#ifndef CURED_KERNELS_CPU_FAMILY_BITS_H
#define CURED_KERNELS_CPU_FAMILY_BITS_H

#include "kernels/core/partial.h"
#include "kernels/cpu/vec.h"

ALWAYS void bits_lanes(cr_partial *part, vu64 all, vu64 any, vu64 odd, unsigned width) {
    /* Copies: a vector whose lanes are indexed by a variable would live in memory, in the loop as well. */
    uint64_t words[3][VB / 8];
    memcpy(words[0], &all, VB);
    memcpy(words[1], &any, VB);
    memcpy(words[2], &odd, VB);
    uint64_t a = words[0][0], o = words[1][0], x = words[2][0];
    for (size_t i = 1; i < VB / 8; i++) {
        a &= words[0][i];
        o |= words[1][i];
        x ^= words[2][i];
    }
    /* The elements within a word meet too; what lies above an element's width is zero, in `and` ones. */
    for (unsigned half = 32; half >= width; half /= 2) {
        a &= a >> half;
        o |= o >> half;
        x ^= x >> half;
    }
    uint64_t mask = width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
    part->bit_and &= a | ~mask;
    part->bit_or |= o & mask;
    part->bit_xor ^= x & mask;
}

ALWAYS void bits_pass(cr_partial *part, const uint8_t *p, size_t bytes, unsigned width, bool booleans,
                      struct ahead ahead) {
    enum { STEP = 4 * VB };
    vu64 all = ~(vu64){0}, any = {0}, odd = {0}, all2 = all, any2 = any, odd2 = odd;
    size_t at = 0;
    for (; !booleans && at + STEP <= bytes; at += STEP) {
        vu64 a = LOAD(vu64, p + at), b = LOAD(vu64, p + at + VB);
        vu64 c = LOAD(vu64, p + at + 2 * VB), d = LOAD(vu64, p + at + 3 * VB);
        fetch(ahead, at, STEP);
        all = and_three(all, a, b);
        any = or_three(any, a, b);
        odd = xor_three(odd, a, b);
        all2 = and_three(all2, c, d);
        any2 = or_three(any2, c, d);
        odd2 = xor_three(odd2, c, d);
    }
    all &= all2;
    any |= any2;
    odd ^= odd2;
    for (; at + VB <= bytes; at += VB) {
        vu8 v = LOAD(vu8, p + at);
        fetch(ahead, at, VB);
        if (booleans) v = min_vu8(v, ALL(vu8, 1));
        all &= (vu64)v;
        any |= (vu64)v;
        odd ^= (vu64)v;
    }
    if (at < bytes) {
        vu8 zeros = {0}, ones = ~zeros;
        memcpy(&zeros, p + at, bytes - at);
        if (booleans) zeros = min_vu8(zeros, ALL(vu8, 1));
        memcpy(&ones, &zeros, bytes - at);
        all &= (vu64)ones;
        any |= (vu64)zeros;
        odd ^= (vu64)zeros;
    }
    bits_lanes(part, all, any, odd, width);
}

NEVER void bits_tile(cr_partial *part, const uint8_t *p, size_t n, struct ahead ahead) {
    size_t size = cr_dtype_size((cr_dtype)part->dtype);
    if (part->dtype == CR_BOOL) {
        bits_pass(part, p, n, 8, true, ahead);
    } else {
        bits_pass(part, p, n * size, 8 * (unsigned)size, false, ahead);
    }
}

#endif
