/* finish_bits: bit_and, bit_or, bit_xor.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/close.h"
#include "kernels/core/finish.h"

void cr_finish_bits(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    (void)opts;
    cr_dtype dtype = (cr_dtype)p->dtype;
    uint64_t bits = cr_close_bits(cr_op_term(op), p->bit_and, p->bit_or, p->bit_xor);
    cr_value_bits(v, dtype, dtype == CR_BOOL ? bits & 1 : bits);
}
