/* The ops that every way of asking is tried with, of one array and with an answer each. Included by one test program each. */
#ifndef CURED_TESTS_UNIT_CLIENT_ALL_OPS_H
#define CURED_TESTS_UNIT_CLIENT_ALL_OPS_H

#include "cured/cured.h"

static const cured_op all_ops[] = {
    CURED_OP_SUM,       CURED_OP_MEAN,  CURED_OP_MIN,     CURED_OP_MAX,   CURED_OP_ARGMIN, CURED_OP_ARGMAX,
    CURED_OP_COUNT,     CURED_OP_ANY,   CURED_OP_ALL,     CURED_OP_SUMSQ, CURED_OP_NORM1,  CURED_OP_COUNT_NONZERO,
    CURED_OP_COUNT_NAN, CURED_OP_NORM2, CURED_OP_NORMINF, CURED_OP_VAR,   CURED_OP_STD,    CURED_OP_PROD,
};
enum { ALL_OPS = sizeof all_ops / sizeof all_ops[0] };

#endif
