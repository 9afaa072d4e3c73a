/* finish_bits: bit_and, bit_or, bit_xor.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/close.h"
#include "kernels/core/finish.h"

_Static_assert(CR_BITS_TERMS == (1 << CR_TERM_BITS_AND | 1 << CR_TERM_BITS_OR | 1 << CR_TERM_BITS_XOR),
               "term.def: cr_close_bits knows all terms of BITS");

void cr_finish_bits(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    (void)opts;
    cr_dtype dtype = (cr_dtype)p->dtype;
    uint64_t bits = cr_close_bits(cr_op_term(op), p->bit_and, p->bit_or, p->bit_xor);
    cr_value_bits(v, dtype, dtype == CR_BOOL ? bits & 1 : bits);
}
