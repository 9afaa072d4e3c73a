/* tree: what the kernels of short rows share: the walk along a row, and turning the partial results of as many
 * rows as a vector has lanes into one vector with a lane for each.
 *
 * Thread: any. Owner: the caller owns the data. */
#ifndef CURED_KERNELS_CPU_ROWS_TREE_H
#define CURED_KERNELS_CPU_ROWS_TREE_H

#include "kernels/cpu/vec.h"

enum { WORDS = VB / 8, SURE_MISSES = 16 /* from then on a way that fails is tried as seldom */ };

enum row_sum { ROW_PLAIN, ROW_ABSOLUTE, ROW_SQUARE };

/* How rows of n elements are read, and where the data end. */
struct walk {
    const uint8_t *end;
    size_t stride, whole, tail; /* bytes; whole: of whole vectors */
};

ALWAYS struct walk walk_rows(const uint8_t *p, uint64_t n, uint64_t rows, size_t size, size_t vector) {
    size_t stride = n * size;
    return (struct walk){p + rows * stride, stride, stride / vector * vector, stride % vector};
}

/* The vector at p of which `tail` bytes count: what follows them is not defined. pad has VB bytes. */
ALWAYS const uint8_t *walk_tail(const struct walk *w, const uint8_t *p, size_t vector, uint8_t *pad) {
    if (__builtin_expect((size_t)(w->end - p) >= vector, 1)) return p;
    memset(pad, 0, VB);
    return memcpy(pad, p, w->tail);
}

/* All ones in the first `bytes` bytes. */
ALWAYS vu8 first_bytes(size_t bytes) {
    uint8_t mask[VB];
    memset(mask, 0, sizeof mask);
    memset(mask, 0xff, bytes);
    return LOAD(vu8, mask);
}

/* Of vectors a and b, each holding rows × parts of words: the words of the even parts, those of a's rows before b's; and
 * those of the odd parts. Step 0: one row in each vector. */
ALWAYS vu64 tree_even(int step, vu64 a, vu64 b) {
#if VB == 64
    if (step == 0) return WORDS(a, b, 0, 8, 2, 10, 4, 12, 6, 14);
    if (step == 1) return WORDS(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
    return WORDS(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
#elif VB == 32
    if (step == 0) return WORDS(a, b, 0, 4, 2, 6);
    return WORDS(a, b, 0, 1, 4, 5);
#else
    (void)step;
    return WORDS(a, b, 0, 2);
#endif
}
ALWAYS vu64 tree_odd(int step, vu64 a, vu64 b) {
#if VB == 64
    if (step == 0) return WORDS(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    if (step == 1) return WORDS(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    return WORDS(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#elif VB == 32
    if (step == 0) return WORDS(a, b, 1, 5, 3, 7);
    return WORDS(a, b, 2, 3, 6, 7);
#else
    (void)step;
    return WORDS(a, b, 1, 3);
#endif
}

/* Calls step(s) for every step of a tree. */
#define TREE(step)              \
    do {                        \
        step(0);                \
        if (WORDS > 2) step(1); \
        if (WORDS > 4) step(2); \
    } while (0)

/* Sums of the words of WORDS vectors, a lane for each. */
ALWAYS vu64 tree_words(vu64 *r) {
#define STEP(s)                                \
    for (int i = 0; i < WORDS >> (s + 1); i++) \
    r[i] = tree_even(s, r[2 * i], r[2 * i + 1]) + tree_odd(s, r[2 * i], r[2 * i + 1])
    TREE(STEP);
#undef STEP
    return r[0];
}
ALWAYS vf64 tree_plain(vf64 *r) {
#define STEP(s)                                                    \
    for (int i = 0; i < WORDS >> (s + 1); i++) {                   \
        vu64 a = (vu64)r[2 * i], b = (vu64)r[2 * i + 1];           \
        r[i] = (vf64)tree_even(s, a, b) + (vf64)tree_odd(s, a, b); \
    }
    TREE(STEP);
#undef STEP
    return r[0];
}

/* s + e + the lanes that are still to come, exact where e's sum is; a: the sum of the errors' magnitudes. */
struct exact {
    vf64 s, e, a;
};

ALWAYS vf64 magnitude_of(vf64 x) { return (vf64)((vu64)x & INT64_MAX); }

ALWAYS vf64 two_sum(vf64 a, vf64 b, vf64 *error) {
    vf64 s = a + b, bb = s - a;
    *error = (a - (s - bb)) + (b - bb);
    return s;
}

/* bounded: a is wanted. */
ALWAYS void exact_add(struct exact *x, vf64 y, bool bounded) {
    vf64 e;
    x->s = two_sum(x->s, y, &e);
    x->e += e;
    if (bounded) x->a += magnitude_of(e);
}

ALWAYS void exact_add_square(struct exact *x, vf64 y) {
    vf64 square = y * y, e = product_error(y, y, square);
    exact_add(x, square, true);
    x->e += e;
    x->a += magnitude_of(e);
}

/* The sum of two. */
ALWAYS struct exact exact_join(vf64 s, vf64 t, vf64 e, vf64 f, vf64 a, vf64 b) {
    vf64 rest;
    s = two_sum(s, t, &rest);
    return (struct exact){s, e + f + rest, a + b + magnitude_of(rest)};
}

ALWAYS struct exact tree_exact(struct exact *r) {
#define PART(s, part, half) (vf64) tree_##half(s, (vu64)r[2 * i].part, (vu64)r[2 * i + 1].part)
#define STEP(s_)                                                                                                       \
    for (int i = 0; i < WORDS >> (s_ + 1); i++) {                                                                      \
        r[i] = exact_join(PART(s_, s, even), PART(s_, s, odd), PART(s_, e, even), PART(s_, e, odd), PART(s_, a, even), \
                          PART(s_, a, odd));                                                                           \
    }
    TREE(STEP);
#undef STEP
#undef PART
    return r[0];
}

#endif
