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

/* Whether op of elements of the type is answered by its sum alone, as a number. */
bool cr_number_takes(cr_op op, cr_dtype dtype);
/* The answer of such an op, whose sum over n elements is x; opts are its share, and checked. */
void cr_number_finish(const cr_number *x, uint64_t n, cr_op op, const cr_finish_opts *opts, cr_value *value);

#endif
