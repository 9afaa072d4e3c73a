/* terms: what pairs add to a sum, each as one or several elements of a type whose sums are known: a sum of pairs is then one of elements,
 * along any axis. A part of axis.inc.
 *
 * Of integers of up to 32 bits a product and a squared difference fit an integer. A product of up to 24 bits each fits a float64, and one
 * of float64s is h + l, of which l is the rest (product_error). (x − y)² is x² + y² − 2·x·y, each of them as a product is, so a pair has
 * several terms, of which only the first is not zero where x or y is not finite. Term r of all pairs is run r; rests are the last runs.
 * Thread: any; pure functions. */
#ifndef CURED_KERNELS_CPU_PAIRS_TERMS_H
#define CURED_KERNELS_CPU_PAIRS_TERMS_H

#include "kernels/cpu/columns/sum.h"
#include "kernels/cpu/pairs/sums.h"
#include "kernels/cpu/view/hide.h"

enum { TERM_RUNS = 6, TERM_HALVES = 256 /* elements of 16 bits that are widened at once */ };

/* kept: a byte a pair, 0 where it does not count; NULL: all do. */
#define TERMS_INT(name, type, term, ...)                                                        \
    NEVER void name(uint8_t *restrict to, const uint8_t *restrict x, const uint8_t *restrict y, \
                    const uint8_t *restrict kept, size_t n) {                                   \
        for (size_t i = 0; i < n; i++) {                                                        \
            type a, b;                                                                          \
            memcpy(&a, x + i * sizeof a, sizeof a);                                             \
            memcpy(&b, y + i * sizeof b, sizeof b);                                             \
            const term t = (term)(__VA_ARGS__);                                                 \
            memcpy(to + i * sizeof t, &t, sizeof t);                                            \
        }                                                                                       \
        for (size_t i = 0; kept != NULL && i < n; i++) {                                        \
            term t;                                                                             \
            memcpy(&t, to + i * sizeof t, sizeof t);                                            \
            t &= (term)(0 - (term)(kept[i] != 0));                                              \
            memcpy(to + i * sizeof t, &t, sizeof t);                                            \
        }                                                                                       \
    }
#define TERMS_INTS(name, type, wide, unsigned_wide)     \
    TERMS_INT(name##_dot, type, wide, (wide)a *(wide)b) \
    TERMS_INT(name##_sqdist, type, unsigned_wide,       \
              ((unsigned_wide)a - (unsigned_wide)b) * ((unsigned_wide)a - (unsigned_wide)b))
TERMS_INT(terms_bool_dot, uint8_t, uint32_t, (a != 0) & (b != 0))
TERMS_INT(terms_bool_sqdist, uint8_t, uint32_t, (a != 0) != (b != 0))
TERMS_INTS(terms_u8, uint8_t, uint32_t, uint32_t)
TERMS_INTS(terms_i8, int8_t, int32_t, uint32_t)
TERMS_INTS(terms_u16, uint16_t, uint32_t, uint32_t)
TERMS_INTS(terms_i16, int16_t, int32_t, uint32_t)
TERMS_INTS(terms_u32, uint32_t, uint64_t, uint64_t)
TERMS_INTS(terms_i32, int32_t, int64_t, uint64_t)
#undef TERMS_INTS
#undef TERMS_INT

typedef void terms_of_ints(uint8_t *, const uint8_t *, const uint8_t *, const uint8_t *, size_t);

/* a·b, and of float64s its rest. odd: lanes where they are not all of it. */
ALWAYS void terms_product(vf64 a, vf64 b, bool narrow, vf64 *to, vf64 *rest, vu64 *odd) {
    const vf64 h = a * b;
    *to = h;
    if (narrow) return;
    const vu64 wild = not_finite(h), number = ~(not_finite(a) | not_finite(b));
    const vf64 l = product_error(a, b, h);
    const vu64 small = (vu64)((vf64)((vu64)h & INT64_MAX) < 0x1p-960), some = (vu64)(a != 0) & (vu64)(b != 0);
    *odd |= (wild & number) | (~wild & some & (not_finite(l) | small)); /* Dekker's split overflows before h does */
    *rest = (vf64)((vu64)l & ~wild & some);
}

ALWAYS void terms_pair(vf64 a, vf64 b, bool narrow, cr_sum_at at, vf64 t[TERM_RUNS], vu64 *odd) {
    if (at == CR_AT_WEIGHTS) { /* that of a product that is a NaN is none */
        const vf64 h = a * b;
        t[0] = (vf64)((vu64)b & (vu64)(h == h));
    } else if (at == CR_AT_DOT) {
        terms_product(a, b, narrow, t, t + 1, odd);
    } else {
        const vu64 wild = not_finite(a) | not_finite(b);
        const vf64 d = a - b, x = (vf64)((vu64)a & ~wild), y = (vf64)((vu64)b & ~wild);
        terms_product(x, x, narrow, t, t + 3, odd);
        terms_product(y, y, narrow, t + 1, t + 4, odd);
        terms_product(x * -2, y, narrow, t + 2, t + 5, odd);
        t[0] = (vf64)(((vu64)t[0] & ~wild) | ((vu64)(d * d) & wild));
    }
}

/* One vector of pairs. */
ALWAYS void terms_vector(const uint8_t *x, const uint8_t *y, const uint8_t *kept, bool narrow, cr_sum_at at,
                         vf64 t[TERM_RUNS], vu64 *odd) {
    vf64 a = narrow ? widen_at(x) : LOAD(vf64, x), b = narrow ? widen_at(y) : LOAD(vf64, y);
    if (kept) {
        const vu64 counts = (vu64)(widen_u8_64(kept) != 0);
        a = (vf64)((vu64)a & counts);
        b = (vf64)((vu64)b & counts);
    }
    terms_pair(a, b, narrow, at, t, odd);
}

ALWAYS bool terms_floats(uint8_t *to, size_t apart, const uint8_t *x, const uint8_t *y, const uint8_t *kept, size_t n,
                         bool narrow, cr_sum_at at) {
    const size_t size = narrow ? sizeof(float) : sizeof(double);
    const int runs = (at == CR_AT_SQDIST ? 3 : 1) << (!narrow && at != CR_AT_WEIGHTS);
    vf64 t[TERM_RUNS];
    vu64 odd = {0};
    size_t i = 0;
    for (; i + WORDS <= n; i += WORDS) {
        terms_vector(x + i * size, y + i * size, kept ? kept + i : NULL, narrow, at, t, &odd);
#pragma GCC unroll 6
        for (int r = 0; r < runs; r++) memcpy(to + (size_t)r * apart + i * sizeof(double), &t[r], VB);
    }
    if (i < n) {
        uint8_t pad[3][VB] = {{0}};
        memcpy(pad[0], x + i * size, (n - i) * size);
        memcpy(pad[1], y + i * size, (n - i) * size);
        if (kept) memcpy(pad[2], kept + i, n - i);
        terms_vector(pad[0], pad[1], kept ? pad[2] : NULL, narrow, at, t, &odd);
        for (int r = 0; r < runs; r++)
            memcpy(to + (size_t)r * apart + i * sizeof(double), &t[r], (n - i) * sizeof(double));
    }
    return !any_bit(odd);
}

#define TERMS_FLOATS(name, narrow, at)                                                                              \
    NEVER bool name(uint8_t *to, size_t apart, const uint8_t *x, const uint8_t *y, const uint8_t *kept, size_t n) { \
        return kept ? terms_floats(to, apart, x, y, kept, n, narrow, at)                                            \
                    : terms_floats(to, apart, x, y, NULL, n, narrow, at);                                           \
    }
TERMS_FLOATS(terms_f32_dot, true, CR_AT_DOT)
TERMS_FLOATS(terms_f32_sqdist, true, CR_AT_SQDIST)
TERMS_FLOATS(terms_f32_weights, true, CR_AT_WEIGHTS)
TERMS_FLOATS(terms_f64_dot, false, CR_AT_DOT)
TERMS_FLOATS(terms_f64_sqdist, false, CR_AT_SQDIST)
TERMS_FLOATS(terms_f64_weights, false, CR_AT_WEIGHTS)
#undef TERMS_FLOATS

/* n float16s or bfloat16s, at most TERM_HALVES, as float32s. */
static void terms_widen(cr_dtype dtype, float *to, const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i += VB / 4) {
        uint8_t pad[VB / 2] = {0};
        const uint8_t *from = p + 2 * i;
        if (n - i < VB / 4) from = memcpy(pad, from, (n - i) * 2);
        typedef uint16_t halves __attribute__((vector_size(VB / 2)));
        const vf32 x =
            dtype == CR_F16 ? load_halves(from) : (vf32)(__builtin_convertvector(LOAD(halves, from), vu32) << 16);
        memcpy(to + i, &x, VB);
    }
}

typedef bool terms_of_floats(uint8_t *, size_t, const uint8_t *, const uint8_t *, const uint8_t *, size_t);

static void terms_halves(cr_dtype dtype, terms_of_floats *of, uint8_t *to, size_t apart, const uint8_t *x,
                         const uint8_t *y, const uint8_t *kept, size_t n) {
    float a[TERM_HALVES], b[TERM_HALVES];
    for (size_t i = 0, now; i < n; i += now) {
        now = n - i < TERM_HALVES ? n - i : TERM_HALVES;
        terms_widen(dtype, a, x + 2 * i, now);
        terms_widen(dtype, b, y + 2 * i, now);
        of(to + i * sizeof(double), apart, (const uint8_t *)a, (const uint8_t *)b, kept ? kept + i : NULL, now);
    }
}

/* See cr_axis_isa. */
static bool terms(uint8_t *to, size_t apart, const uint8_t *x, const uint8_t *y, const uint8_t *kept, size_t n,
                  cr_dtype dtype, cr_sum_at at) {
    static terms_of_ints *const ints[][2] = {
        [CR_BOOL] = {terms_bool_dot, terms_bool_sqdist}, [CR_U8] = {terms_u8_dot, terms_u8_sqdist},
        [CR_I8] = {terms_i8_dot, terms_i8_sqdist},       [CR_U16] = {terms_u16_dot, terms_u16_sqdist},
        [CR_I16] = {terms_i16_dot, terms_i16_sqdist},    [CR_U32] = {terms_u32_dot, terms_u32_sqdist},
        [CR_I32] = {terms_i32_dot, terms_i32_sqdist}};
    static terms_of_floats *const floats[][2] = {
        {terms_f32_dot, terms_f64_dot}, {terms_f32_sqdist, terms_f64_sqdist}, {terms_f32_weights, terms_f64_weights}};
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) {
        terms_of_floats *of = floats[at - CR_AT_DOT][dtype == CR_F64];
        if (cr_dtype_size(dtype) != 2) return of(to, apart, x, y, kept, n);
        terms_halves(dtype, of, to, apart, x, y, kept, n);
        return true;
    }
    if (at != CR_AT_WEIGHTS) {
        ints[dtype][at == CR_AT_SQDIST](to, x, y, kept, n);
    } else if (kept) {
        hide(to, y, kept, n, cr_dtype_size(dtype), 0, 0);
    } else {
        memcpy(to, y, n * cr_dtype_size(dtype));
    }
    return true;
}

#endif
