/* cured_sum.h: exact sums for programs whose processes meet in an Allreduce. This header and cured_sum.c are all there is to it.
 *
 *     cured_sum s;
 *     int64_t pack[CURED_SUM_MOST_NUMBERS];
 *     double energy;
 *     cured_sum_begin(&s, CURED_SUM_VALUES, CURED_SUM_F64);
 *     cured_sum_add_f64(&s, n, x, 1);
 *     cured_sum_pack(&s, pack);
 *     MPI_Allreduce(MPI_IN_PLACE, pack, CURED_SUM_F64_NUMBERS, MPI_INT64_T, MPI_SUM, comm);
 *     cured_sum_finish(CURED_SUM_VALUES, CURED_SUM_F64, pack, &energy);
 *
 * The answer is the true sum, rounded once (to nearest, ties to even). So its bits are the same for every number of processes and
 * threads, every cut of the array over them, every order, every instruction set, and with every float state of the processor: rounding
 * mode, denormals taken for zero, trapped exceptions. A sum has NaN and infinities as IEEE 754 has them: one NaN, or infinities of
 * both signs, give NaN; infinities of one sign give that infinity. A sum that is exactly zero is +0, and the NaN is 0x7ff8000000000000.
 *
 * A pack is the sum as int64 numbers, which add up element by element, in any order: n, the limbs, and how many NaNs, +inf and -inf.
 * That is the linear form of docs/PARTIALS.md: cured.from_linear() in Python and cured_linear_partial() in C read it, too. Packs of
 * several fields lie one behind the other, in one Allreduce. Up to 2^31 - 1 packs add up; cured_sum_renormalise() makes one pack of a
 * sum of packs, so that sums which are kept over steps never overflow.
 *
 * Functions return CURED_SUM_OK (0) or a status, of which cured_sum_text() has a sentence. A function that fails changes nothing.
 * Nothing allocates, and there is no global state: a cured_sum is a plain value, which may be copied, and is used by one thread at a
 * time. Threads add to sums of their own, and one of them merges. The largest frame on a stack has about 100 KiB.
 *
 * C99 and C++11 or later, by gcc 9 or clang 10 or later, on 64-bit machines. Licence: Apache-2.0. */
#ifndef CURED_SUM_H
#define CURED_SUM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is added up of the elements. */
typedef enum cured_sum_op {
    CURED_SUM_VALUES = 1,  /* x */
    CURED_SUM_SQUARES = 2, /* x*x, exactly: nothing overflows or is rounded on the way */
    CURED_SUM_PRODUCTS = 3 /* x*y of two arrays, exactly: a dot product */
} cured_sum_op;

/* The elements' type. The answer is a double for both. */
typedef enum cured_sum_type { CURED_SUM_F32 = 12, CURED_SUM_F64 = 13 } cured_sum_type;

/* int64 numbers of a pack: n, the limbs, three counts. */
enum {
    CURED_SUM_F64_NUMBERS = 72,          /* of values of F64 */
    CURED_SUM_F64_PRODUCT_NUMBERS = 138, /* of squares and products of F64 */
    CURED_SUM_F32_NUMBERS = 15,
    CURED_SUM_F32_PRODUCT_NUMBERS = 24,
    CURED_SUM_MOST_NUMBERS = CURED_SUM_F64_PRODUCT_NUMBERS,
    CURED_SUM_MOST_LIMBS = CURED_SUM_MOST_NUMBERS - 4
};

typedef enum cured_sum_status {
    CURED_SUM_OK = 0,
    CURED_SUM_BAD_OP,    /* op is none of cured_sum_op, or not that of the function */
    CURED_SUM_BAD_TYPE,  /* type is none of cured_sum_type, or not that of the function */
    CURED_SUM_BAD_PLACE, /* a pointer is NULL */
    CURED_SUM_TOO_MANY,  /* the sum would have more than 2^62 elements */
    CURED_SUM_BAD_PACK   /* no elements give such a pack */
} cured_sum_status;

/* A sum that is being taken. Its fields are for cured_sum.c, and stand here so that it can lie anywhere. */
typedef struct cured_sum {
    int32_t op, type;
    uint64_t n, nans, pinfs, ninfs;
    uint32_t pending, spare;
    int64_t limbs[CURED_SUM_MOST_LIMBS];
} cured_sum;

/* Makes *s the sum of nothing. */
int cured_sum_begin(cured_sum *s, int op, int type);

/* Adds n elements: x[0], x[stride], x[2*stride] and so on. A stride may be negative, or 0 (one element n times). The sum is one of
 * values or squares, of the function's type. n = 0 adds nothing, and x may then be NULL. */
int cured_sum_add_f64(cured_sum *s, uint64_t n, const double *x, int64_t stride);
int cured_sum_add_f32(cured_sum *s, uint64_t n, const float *x, int64_t stride);
/* Adds n products x[i*x_stride]*y[i*y_stride] to a sum of products. */
int cured_sum_add_products_f64(cured_sum *s, uint64_t n, const double *x, int64_t x_stride, const double *y,
                               int64_t y_stride);
int cured_sum_add_products_f32(cured_sum *s, uint64_t n, const float *x, int64_t x_stride, const float *y,
                               int64_t y_stride);

/* Adds the elements of *from to *into, a sum of the same op and type. */
int cured_sum_merge(cured_sum *into, const cured_sum *from);

/* How many int64 a pack has; 0 where op or type is none. */
size_t cured_sum_numbers(int op, int type);
/* Writes cured_sum_numbers(s->op, s->type) numbers. Each limb lies in [0, 2^32), but for the last, which has the sign. */
int cured_sum_pack(const cured_sum *s, int64_t *pack);
/* Makes one pack of the sum of up to 2^31 - 1 packs: up to 2^31 - 1 more may be added to it then. */
int cured_sum_renormalise(int op, int type, int64_t *pack);
/* The answer of a pack, or of a sum of packs. CURED_SUM_BAD_PACK: what was added were no packs, or too many. */
int cured_sum_finish(int op, int type, const int64_t *pack, double *value);
/* The answer of *s alone. */
int cured_sum_value(const cured_sum *s, double *value);

/* A sentence about a status, for a person. */
const char *cured_sum_text(int status);
/* "portable", "avx2" or "avx512": what this machine adds by. */
const char *cured_sum_isa(void);

#ifdef __cplusplus
}
#endif

#endif
