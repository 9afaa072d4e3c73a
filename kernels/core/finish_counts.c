/* finish_counts: count, count_nonzero, count_nan, any, all.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/finish.h"

void cr_finish_counts(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    /* A NaN counts as an element and as non-zero, unless it is skipped; integers have none. */
    bool folded = (p->families & CR_FAM_COUNTS) != 0;
    uint64_t nans = folded ? p->nans : 0, nonzero = folded ? p->nonzero : 0;
    uint64_t left_out = opts->nan == CR_NAN_SKIP ? nans : 0;
    uint64_t n = p->n - left_out;
    nonzero -= left_out;
    switch (op) {
        case CR_OP_COUNT:
            cr_value_bits(v, CR_U64, n);
            break;
        case CR_OP_COUNT_NAN:
            cr_value_bits(v, CR_U64, nans);
            break;
        case CR_OP_COUNT_NONZERO:
            cr_value_bits(v, CR_U64, nonzero);
            break;
        case CR_OP_ANY:
            cr_value_bits(v, CR_BOOL, nonzero != 0);
            break;
        default:
            cr_value_bits(v, CR_BOOL, nonzero == n);
            break;
    }
}
