/* sum_ways: the functions of cured_sum.h as a table, so that a test drives cured_sum.c for several instruction sets.
 *
 * Thread: any; constants. */
#ifndef CURED_TESTS_PROPERTY_SUM_WAYS_H
#define CURED_TESTS_PROPERTY_SUM_WAYS_H

#include "client/sum/cured_sum.h"

typedef struct sum_ways {
    int (*begin)(cured_sum *s, int op, int type);
    int (*add_f64)(cured_sum *s, uint64_t n, const double *x, int64_t stride);
    int (*add_f32)(cured_sum *s, uint64_t n, const float *x, int64_t stride);
    int (*add_products_f64)(cured_sum *s, uint64_t n, const double *x, int64_t xs, const double *y, int64_t ys);
    int (*add_products_f32)(cured_sum *s, uint64_t n, const float *x, int64_t xs, const float *y, int64_t ys);
    int (*merge)(cured_sum *into, const cured_sum *from);
    int (*pack)(const cured_sum *s, int64_t *pack);
    int (*renormalise)(int op, int type, int64_t *pack);
    int (*finish)(int op, int type, const int64_t *pack, double *value);
    int (*value)(const cured_sum *s, double *value);
    const char *(*isa)(void);
} sum_ways;

#define SUM_WAYS                                                                                                       \
    {                                                                                                                  \
        cured_sum_begin, cured_sum_add_f64, cured_sum_add_f32, cured_sum_add_products_f64, cured_sum_add_products_f32, \
            cured_sum_merge, cured_sum_pack, cured_sum_renormalise, cured_sum_finish, cured_sum_value, cured_sum_isa   \
    }

extern const sum_ways sum_ways_0, sum_ways_1, sum_ways_2;

#endif
