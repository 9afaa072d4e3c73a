/* number: sums of few finite floats, each of which 128 bits hold exactly, and answers from them: without the limbs of a partial, which a
 * small array's answer waits for longer than for all else. The answers are those that a partial's finishing gives, bit for bit.
 *
 * Thread: any; nothing here holds state. */
#ifndef CURED_KERNELS_CORE_NUMBER_H
#define CURED_KERNELS_CORE_NUMBER_H

#include "kernels/core/partial.h"

/* ±magnitude·2^exponent. */
typedef struct cr_number {
    unsigned __int128 magnitude;
    int exponent;
    bool negative;
} cr_number;

/* How an op answers from such a sum. */
typedef struct cr_number_rule {
    cr_dtype result;
    cr_divisor_kind divisor;
    bool root;
    cr_sum_at at; /* of the sum */
    uint64_t ddof;
} cr_number_rule;

/* The rule of op of elements of the type; opts are checked. False: it is not answered by one such sum. */
bool cr_number_rule_make(cr_number_rule *rule, cr_op op, cr_dtype dtype, const cr_finish_opts *opts);
/* The bits of the answer, of the rule's type: x is the sum over n elements. */
uint64_t cr_number_answer(const cr_number_rule *rule, const cr_number *x, uint64_t n);

#endif
