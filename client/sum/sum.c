/* sum: the functions of cured_sum.h, over the tree's own folds and limbs. Nobody compiles this file: scripts/sum-file writes
 * cured_sum.c from it, in which every file that it includes stands in place, and of those the parts that the two types need
 * (CURED_SUM_ALONE). cured_sum.c includes itself once for each instruction set, with other names each time.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns all that is passed. */
#if !defined(__GNUC__) || !defined(__SIZEOF_INT128__)
#error "cured_sum.c takes gcc or clang, for a 64-bit machine: it adds in vectors, and in integers of 128 bits"
#endif
#if defined(__FAST_MATH__) || (defined(__ASSOCIATIVE_MATH__) && __ASSOCIATIVE_MATH__)
#error "exact sums need IEEE arithmetic: compile cured_sum.c without -ffast-math and -fassociative-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "exact sums need each operation rounded to its own type: compile cured_sum.c without -mfpmath=387"
#endif

/* Vectors, statement expressions and 128 bits are extensions that gcc and clang share. Of what is common to the folds and to other
 * programs of the tree, some has no caller here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "client/sum/cured_sum.h"
/* What the machine adds by: 0 portable vectors, 1 and AVX2, 2 and AVX-512. A program may define it lower. */
#ifndef CURED_SUM_MOST_ISA
#define CURED_SUM_MOST_ISA 2
#endif

#include "client/sum/alone.h"
#include "kernels/core/anchor.h"
#include "kernels/core/big.c"
#include "kernels/core/big.h"
#include "kernels/core/close.h"
#include "kernels/core/fast.h"
#include "kernels/core/float_state.h"
#include "kernels/core/limbs.h"
#include "kernels/core/round.c"
#include "kernels/core/round.h"

typedef char sum_limbs_of_f64[CR_F64_LIMBS + 4 == CURED_SUM_F64_NUMBERS ? 1 : -1];
typedef char sum_limbs_of_f64_squares[CR_F64_SQUARE_LIMBS + 4 == CURED_SUM_F64_PRODUCT_NUMBERS ? 1 : -1];
typedef char sum_limbs_of_f32[CR_F32_LIMBS + 4 == CURED_SUM_F32_NUMBERS ? 1 : -1];
typedef char sum_limbs_of_f32_squares[CR_F32_SQUARE_LIMBS + 4 == CURED_SUM_F32_PRODUCT_NUMBERS ? 1 : -1];

enum { SUM_SPECIALS = 3 };
#define SUM_MOST_ELEMENTS ((uint64_t)1 << 62)

/* Of a sum: limbs in use, and the power of two that limb 0's lowest bit stands for. */
static unsigned sum_limbs(int op, int type) {
    if (type == CURED_SUM_F64) return op == CURED_SUM_VALUES ? (unsigned)CR_F64_LIMBS : (unsigned)CR_F64_SQUARE_LIMBS;
    return op == CURED_SUM_VALUES ? (unsigned)CR_F32_LIMBS : (unsigned)CR_F32_SQUARE_LIMBS;
}

static int sum_grid(int op, int type) {
    if (type == CURED_SUM_F64) return op == CURED_SUM_VALUES ? (int)CR_F64_GRID : (int)CR_F64_SQUARE_GRID;
    return op == CURED_SUM_VALUES ? (int)CR_F32_GRID : (int)CR_F32_SQUARE_GRID;
}

static size_t sum_size(const cured_sum *s) { return cr_dtype_size((cr_dtype)s->type); }

static void sum_count(cured_sum *s, uint64_t n, const cr_specials *special) {
    s->n += n;
    s->nans += special->nans;
    s->pinfs += special->pinfs;
    s->ninfs += special->ninfs;
}

/* The folds of one instruction set; steps are bytes from one element to the next. */
struct sum_isa {
    const char *name;
    void (*values)(cured_sum *s, uint64_t n, const uint8_t *x, int64_t step);
    void (*products)(cured_sum *s, uint64_t n, const uint8_t *x, int64_t x_step, const uint8_t *y, int64_t y_step);
};

#include "client/sum/fold.inc"
#if defined(__x86_64__) && CURED_SUM_MOST_ISA >= 1
#define VEC_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi2")
#endif
#include "client/sum/fold.inc"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef VEC_AVX2
#endif
#if defined(__x86_64__) && CURED_SUM_MOST_ISA >= 2
#define VEC_AVX512 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,bmi2")
#endif
#include "client/sum/fold.inc"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#undef VEC_AVX512
#endif

/* The compiler's own record of the processor says what it has, so this file keeps none. */
static const struct sum_isa *sum_isa_here(void) {
#if defined(__x86_64__)
    __builtin_cpu_init(); /* does nothing the second time */
#if CURED_SUM_MOST_ISA >= 2
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return &sum_isa_avx512;
#endif
#if CURED_SUM_MOST_ISA >= 1
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return &sum_isa_avx2;
#endif
#endif
    return &sum_isa_portable;
}

static int sum_check(int op, int type) {
    if (op != CURED_SUM_VALUES && op != CURED_SUM_SQUARES && op != CURED_SUM_PRODUCTS) return CURED_SUM_BAD_OP;
    return type == CURED_SUM_F32 || type == CURED_SUM_F64 ? CURED_SUM_OK : CURED_SUM_BAD_TYPE;
}

/* Whether a function for this type may add n elements. */
static int sum_may_add(const cured_sum *s, uint64_t n, int type, bool pairs) {
    if (s == NULL) return CURED_SUM_BAD_PLACE;
    const int status = sum_check(s->op, s->type);
    if (status != CURED_SUM_OK) return status;
    if (s->type != type) return CURED_SUM_BAD_TYPE;
    if ((s->op == CURED_SUM_PRODUCTS) != pairs) return CURED_SUM_BAD_OP;
    return n > SUM_MOST_ELEMENTS || s->n > SUM_MOST_ELEMENTS - n ? CURED_SUM_TOO_MANY : CURED_SUM_OK;
}

int cured_sum_begin(cured_sum *s, int op, int type) {
    const int status = s == NULL ? (int)CURED_SUM_BAD_PLACE : sum_check(op, type);
    if (status != CURED_SUM_OK) return status;
    memset(s, 0, sizeof *s);
    s->op = op;
    s->type = type;
    return CURED_SUM_OK;
}

/* The state that folds want. What it was goes to sum_leave: on aarch64 the exception flags lie above it. */
static uint64_t sum_enter(void) {
    uint64_t state = cr_float_enter();
#if defined(__aarch64__)
    state |= cr_flags() << 32;
#endif
    return state;
}

/* The caller's state again, and its exception flags: what was met on the way is no event of the caller's. */
static void sum_leave(uint64_t state) {
    cr_float_leave(state & UINT32_MAX);
#if defined(__x86_64__)
    if (_mm_getcsr() != (uint32_t)state) _mm_setcsr((uint32_t)state);
#elif defined(__aarch64__)
    cr_flags_set(state >> 32);
#endif
}

static int sum_add(cured_sum *s, uint64_t n, const void *x, int64_t stride, int type) {
    const int status = sum_may_add(s, n, type, false);
    if (status != CURED_SUM_OK || n == 0) return status;
    if (x == NULL) return CURED_SUM_BAD_PLACE;
    const uint64_t state = sum_enter();
    sum_isa_here()->values(s, n, (const uint8_t *)x, stride * (int64_t)sum_size(s));
    sum_leave(state);
    return CURED_SUM_OK;
}

int cured_sum_add_f64(cured_sum *s, uint64_t n, const double *x, int64_t stride) {
    return sum_add(s, n, x, stride, CURED_SUM_F64);
}

int cured_sum_add_f32(cured_sum *s, uint64_t n, const float *x, int64_t stride) {
    return sum_add(s, n, x, stride, CURED_SUM_F32);
}

static int sum_add_products(cured_sum *s, uint64_t n, const void *x, int64_t x_stride, const void *y, int64_t y_stride,
                            int type) {
    const int status = sum_may_add(s, n, type, true);
    if (status != CURED_SUM_OK || n == 0) return status;
    if (x == NULL || y == NULL) return CURED_SUM_BAD_PLACE;
    const int64_t size = (int64_t)sum_size(s);
    const uint64_t state = sum_enter();
    sum_isa_here()->products(s, n, (const uint8_t *)x, x_stride * size, (const uint8_t *)y, y_stride * size);
    sum_leave(state);
    return CURED_SUM_OK;
}

int cured_sum_add_products_f64(cured_sum *s, uint64_t n, const double *x, int64_t x_stride, const double *y,
                               int64_t y_stride) {
    return sum_add_products(s, n, x, x_stride, y, y_stride, CURED_SUM_F64);
}

int cured_sum_add_products_f32(cured_sum *s, uint64_t n, const float *x, int64_t x_stride, const float *y,
                               int64_t y_stride) {
    return sum_add_products(s, n, x, x_stride, y, y_stride, CURED_SUM_F32);
}

int cured_sum_merge(cured_sum *into, const cured_sum *from) {
    if (into == NULL || from == NULL) return CURED_SUM_BAD_PLACE;
    const int status = sum_check(into->op, into->type);
    if (status != CURED_SUM_OK) return status;
    if (into->op != from->op) return CURED_SUM_BAD_OP;
    if (into->type != from->type) return CURED_SUM_BAD_TYPE;
    if (into->n > SUM_MOST_ELEMENTS || from->n > SUM_MOST_ELEMENTS - into->n) return CURED_SUM_TOO_MANY;
    const unsigned limbs = sum_limbs(into->op, into->type);
    const cr_specials special = {from->nans, from->pinfs, from->ninfs};
    cr_limbs_carry(into->limbs, limbs, &into->pending);
    for (unsigned i = 0; i < limbs; i++) into->limbs[i] += from->limbs[i];
    cr_limbs_carry(into->limbs, limbs, &into->pending);
    sum_count(into, from->n, &special);
    return CURED_SUM_OK;
}

size_t cured_sum_numbers(int op, int type) {
    return sum_check(op, type) == CURED_SUM_OK ? 1 + sum_limbs(op, type) + SUM_SPECIALS : 0;
}

int cured_sum_pack(const cured_sum *s, int64_t *pack) {
    if (s == NULL || pack == NULL) return CURED_SUM_BAD_PLACE;
    const int status = sum_check(s->op, s->type);
    if (status != CURED_SUM_OK) return status;
    const unsigned limbs = sum_limbs(s->op, s->type);
    uint32_t pending;
    *pack++ = (int64_t)s->n;
    memcpy(pack, s->limbs, limbs * sizeof *pack);
    cr_limbs_carry(pack, limbs, &pending);
    pack += limbs;
    pack[0] = (int64_t)s->nans;
    pack[1] = (int64_t)s->pinfs;
    pack[2] = (int64_t)s->ninfs;
    return CURED_SUM_OK;
}

/* Carries the limbs of a sum of packs into place. */
static int sum_take(int op, int type, const int64_t *pack, int64_t *limbs) {
    const int status = pack == NULL ? (int)CURED_SUM_BAD_PLACE : sum_check(op, type);
    if (status != CURED_SUM_OK) return status;
    const unsigned count = sum_limbs(op, type);
    if (pack[0] < 0 || !cr_counts_take(pack + 1 + count, SUM_SPECIALS, (uint64_t)pack[0])) return CURED_SUM_BAD_PACK;
    return cr_limbs_take(pack + 1, count, limbs) ? CURED_SUM_OK : CURED_SUM_BAD_PACK;
}

int cured_sum_renormalise(int op, int type, int64_t *pack) {
    int64_t limbs[CURED_SUM_MOST_LIMBS];
    const int status = sum_take(op, type, pack, limbs);
    if (status == CURED_SUM_OK) memcpy(pack + 1, limbs, sum_limbs(op, type) * sizeof *limbs);
    return status;
}

/* What NaNs and infinities decide; else the limbs, rounded once. */
static double sum_close(int op, int type, const int64_t *limbs, bool nan, bool plus, bool minus) {
    const bool is_signed = op != CURED_SUM_SQUARES;
    const cr_decided decided = nan             ? CR_DECIDED_NAN
                               : plus || minus ? cr_close_infinities(is_signed, plus, minus)
                                               : CR_DECIDED_FINITE;
    uint64_t bits = cr_float_nan(CR_F64);
    double value;
    if (decided == CR_DECIDED_FINITE) {
        cr_big magnitude;
        const bool negative = cr_big_from_limbs(&magnitude, limbs, sum_limbs(op, type));
        bits = cr_round(CR_F64, negative, &magnitude, sum_grid(op, type), false);
    } else if (decided != CR_DECIDED_NAN) {
        bits = cr_float_infinity(CR_F64, decided == CR_DECIDED_MINUS);
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

int cured_sum_finish(int op, int type, const int64_t *pack, double *value) {
    int64_t limbs[CURED_SUM_MOST_LIMBS];
    if (value == NULL) return CURED_SUM_BAD_PLACE;
    const int status = sum_take(op, type, pack, limbs);
    if (status != CURED_SUM_OK) return status;
    const int64_t *counts = pack + 1 + sum_limbs(op, type);
    *value = sum_close(op, type, limbs, counts[0] != 0, counts[1] != 0, counts[2] != 0);
    return CURED_SUM_OK;
}

int cured_sum_value(const cured_sum *s, double *value) {
    if (s == NULL || value == NULL) return CURED_SUM_BAD_PLACE;
    const int status = sum_check(s->op, s->type);
    if (status != CURED_SUM_OK) return status;
    *value = sum_close(s->op, s->type, s->limbs, s->nans != 0, s->pinfs != 0, s->ninfs != 0);
    return CURED_SUM_OK;
}

const char *cured_sum_text(int status) {
    switch (status) {
        case CURED_SUM_OK:
            return "no error";
        case CURED_SUM_BAD_OP:
            return "op: it is CURED_SUM_VALUES, CURED_SUM_SQUARES or CURED_SUM_PRODUCTS, and that of the sum; products "
                   "are added "
                   "by cured_sum_add_products_...";
        case CURED_SUM_BAD_TYPE:
            return "type: it is CURED_SUM_F32 or CURED_SUM_F64, and that of the sum: add the elements by the function "
                   "of that type";
        case CURED_SUM_BAD_PLACE:
            return "a pointer is NULL: give the sum, its elements, the pack and the value a place";
        case CURED_SUM_TOO_MANY:
            return "n: a sum has at most 2^62 elements";
        case CURED_SUM_BAD_PACK:
            return "pack: no elements give it: add up whole packs of one op and type, at most 2^31 - 1 of them, as "
                   "int64";
    }
    return "status: it is none of cured_sum_status";
}

const char *cured_sum_isa(void) { return sum_isa_here()->name; }

#pragma GCC diagnostic pop
