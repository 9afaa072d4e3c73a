/* finish_extrema: min, max, argmin, argmax, and the range between them.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/element.h"
#include "kernels/core/finish.h"
#include "kernels/core/key.h"
#include "kernels/core/round.h"

/* The largest absolute value: of the smallest or of the largest element. */
static void finish_norminf(const cr_partial *p, bool has_nan, cr_value *v) {
    cr_dtype dtype = (cr_dtype)p->dtype, result = cr_dtype_magnitude(dtype);
    bool empty = p->min.index == UINT64_MAX || p->max.index == UINT64_MAX;
    uint64_t low = empty ? 0 : cr_bits_of_key(dtype, p->min.key), high = empty ? 0 : cr_bits_of_key(dtype, p->max.key);
    cr_value_bits(v, result, has_nan ? cr_float_nan(dtype) : cr_greatest_magnitude(dtype, low, high));
}

/* The greatest element less the least: of integers exact, of floats rounded once. */
static void finish_range(const cr_partial *p, bool has_nan, const cr_finish_opts *opts, cr_value *v) {
    const cr_dtype dtype = (cr_dtype)p->dtype;
    const bool is_float = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    const bool rounded = is_float || cr_dtype_kind(opts->result_dtype) == CR_KIND_FLOAT;
    const cr_dtype result = opts->result_dtype == CR_DTYPE_NONE ? CR_F64 : opts->result_dtype;
    if (has_nan) {
        cr_value_bits(v, result, cr_float_nan(result));
        return;
    }
    cr_element high = cr_element_of(dtype, cr_bits_of_key(dtype, p->max.key));
    cr_element low = cr_element_of(dtype, cr_bits_of_key(dtype, p->min.key));
    cr_big one;
    low.negative = !low.negative;
    cr_big_set(&one, 1);
    if (rounded) {
        cr_value_bits(v, result, cr_element_sum(result, &high, &one, &low, &one, 0));
        return;
    }
    const __int128 most = high.negative ? -(__int128)high.mantissa : (__int128)high.mantissa;
    const __int128 less = low.negative ? -(__int128)low.mantissa : (__int128)low.mantissa;
    cr_big_set(&one, (unsigned __int128)(most + less));
    cr_value_integer(v, opts->result_dtype, cr_dtype_kind(dtype) == CR_KIND_SINT, false, &one);
}

void cr_finish_extrema(const cr_partial *p, cr_op op, const cr_finish_opts *opts, cr_value *v) {
    cr_dtype dtype = (cr_dtype)p->dtype;
    const cr_term term = cr_op_term(op);
    const cr_extremum *best = term == CR_TERM_LEAST || term == CR_TERM_LEAST_INDEX ? &p->min : &p->max;
    bool has_nan = p->first_nan != UINT64_MAX && opts->nan == CR_NAN_PROPAGATE;
    if (term == CR_TERM_GREATEST_MAGNITUDE) {
        finish_norminf(p, has_nan, v);
        return;
    }
    if (!has_nan && best->index == UINT64_MAX) {
        cr_fail(&v->error, CR_INVALID_ARGUMENT,
                p->n == 0 ? "%s of no elements has no value" : "%s of only NaNs has no value", cr_op_name(op));
        return;
    }
    if (term == CR_TERM_RANGE) {
        finish_range(p, has_nan, opts, v);
        return;
    }
    uint64_t bits = has_nan ? cr_float_nan(dtype) : cr_bits_of_key(dtype, best->key);
    if (!cr_op_is_index(op)) {
        cr_value_bits(v, dtype, bits);
        return;
    }
    cr_value_bits(v, CR_U64, has_nan ? p->first_nan : best->index);
    v->at_len = (uint8_t)cr_dtype_size(dtype);
    for (unsigned i = 0; i < v->at_len && i < sizeof v->at; i++) v->at[i] = (uint8_t)(bits >> (8 * i));
}
