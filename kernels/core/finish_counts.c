/* finish_counts: count, count_nonzero, count_nan, count_inf, any, all.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/close.h"
#include "kernels/core/finish.h"

_Static_assert(CR_COUNT_TERMS == (1 << CR_TERM_ELEMENTS | 1 << CR_TERM_NONZERO | 1 << CR_TERM_NANS |
                                  1 << CR_TERM_INFINITIES | 1 << CR_TERM_SOME | 1 << CR_TERM_EVERY),
               "term.def: cr_close_count knows all terms of COUNTS");

void cr_finish_counts(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    /* A NaN counts as an element and as non-zero, unless it is skipped; integers have none. */
    bool folded = (p->families & CR_FAM_COUNTS) != 0;
    uint64_t nans = folded ? p->nans : 0, nonzero = folded ? p->nonzero : 0;
    uint64_t left_out = opts->nan == CR_NAN_SKIP ? nans : 0;
    uint64_t n = p->n - left_out;
    nonzero -= left_out;
    const cr_specials *special = &p->sums[CR_AT_SUM].special;
    const bool summed = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_FLOAT && (p->families & CR_FAM_SUM) != 0;
    const uint64_t infinities = summed ? special->pinfs + special->ninfs : 0;
    const uint64_t count = cr_close_count(cr_op_term(op), n, nonzero, nans, infinities);
    cr_value_bits(v, cr_op_result(op) == CR_RESULT_TRUTH ? CR_BOOL : CR_U64, count);
}
