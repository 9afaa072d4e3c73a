/* sums: see sums.h. Thread: any. Owner: the caller owns every buffer. */
#include "kernels/cpu/pairs/sums.h"

#include "kernels/core/fast.h"

cr_dtype cr_pair_terms_dtype(cr_dtype dtype, cr_sum_at at) {
    const size_t size = cr_dtype_size(dtype);
    const bool is_signed = cr_dtype_kind(dtype) == CR_KIND_SINT;
    if (cr_dtype_kind(dtype) == CR_KIND_FLOAT) return size > 1 ? CR_F64 : CR_DTYPE_NONE;
    if (size > 4) return CR_DTYPE_NONE;
    if (at == CR_AT_WEIGHTS) return dtype;
    if (at == CR_AT_SQDIST) return size == 4 ? CR_U64 : CR_U32;
    return size == 4 ? (is_signed ? CR_I64 : CR_U64) : is_signed ? CR_I32 : CR_U32;
}

/* (x − y)² of floats has three, and each product of float64s a rest. */
static unsigned runs_of(cr_dtype dtype, cr_sum_at at) {
    if (cr_dtype_kind(dtype) != CR_KIND_FLOAT || at == CR_AT_WEIGHTS) return 1;
    return (at == CR_AT_SQDIST ? 3 : 1) * (dtype == CR_F64 ? 2 : 1);
}

static void add(cr_pair_sums *sums, cr_sum_at at) {
    const cr_axis_spec *spec = sums->plan->spec;
    const cr_op sum_op = cr_op_of_term(CR_TERM_VALUE);
    const cr_dtype dtype = cr_pair_terms_dtype(spec->dtype, at);
    cr_pair_sum *sum = &sums->sum[sums->count++];
    *sum = (cr_pair_sum){.at = at, .runs = runs_of(spec->dtype, at), .size = cr_dtype_size(dtype)};
    sum->spec = (cr_axis_spec){.dtype = dtype,
                               .shape = spec->shape,
                               .families = CR_FAM_SUM,
                               .op_count = 1,
                               .ops = {sum_op},
                               .finish = spec->finish,
                               .statuses = spec->statuses};
    sum->spec.finish.result_dtype = cr_axis_dtype(sum_op, spec->dtype, &spec->finish);
}

bool cr_pair_sums_make(cr_pair_sums *sums, const cr_axis_plan *plan) {
    static const cr_sum_at all[CR_PAIR_SUMS] = {CR_AT_DOT, CR_AT_SQDIST, CR_AT_WEIGHTS};
    const uint32_t known = CR_FAM_DOT | CR_FAM_SQDIST | CR_FAM_WEIGHTS;
    const cr_axis_spec *spec = plan->spec;
    if (plan->generic == 0 || (plan->generic & ~known) != 0 || plan->strip_ops || plan->order_ops) return false;
    if (cr_pair_terms_dtype(plan->dtype, CR_AT_DOT) == CR_DTYPE_NONE || spec->shape.n == 0 || spec->shape.inner == 0 ||
        spec->second_line == 0)
        return false;
    if (!cr_fast_on(CR_FAST_PAIR_TERMS) || !cr_fast_on(CR_FAST_PAIRS) || !cr_fast_on(CR_FAST_STRIPS)) return false;
    for (uint32_t k = 0; k < spec->op_count; k++) /* sums do not know how many elements count */
        if (cr_op_divisor(spec->ops[k]) != CR_DIVISOR_ONE) return false;
    *sums = (cr_pair_sums){.plan = plan, .exact = plan->dtype != CR_F64};
    for (unsigned i = 0; i < CR_PAIR_SUMS; i++)
        if (plan->generic & cr_sum_rows[all[i]].family) add(sums, all[i]);
    return true;
}

bool cr_pair_is_average(cr_op op) { return cr_op_term(op) == CR_TERM_WEIGHTED && !cr_op_is_root(op); }

const cr_pair_sum *cr_pair_sum_of(const cr_pair_sums *sums, cr_op op) {
    const uint32_t needs = cr_op_needs(op, sums->plan->dtype);
    for (unsigned i = 0; i < sums->count && !cr_op_is_root(op); i++)
        if (cr_sum_rows[sums->sum[i].at].family == needs) return &sums->sum[i];
    return NULL;
}

void cr_pair_sum_put(const cr_pair_sum *sum, const cr_partial *terms, cr_partial *pairs) {
    enum { LIMB = 32 /* bits */ };
    const cr_dtype dtype = (cr_dtype)pairs->dtype, of_terms = (cr_dtype)terms->dtype;
    const int apart = cr_sum_grid(CR_AT_SUM, of_terms) - cr_sum_grid(sum->at, dtype);
    const cr_sum *from = &terms->sums[CR_AT_SUM];
    for (unsigned i = 0; i < cr_sum_limbs(CR_AT_SUM, of_terms); i++) {
        __int128 limb = from->limbs[i];
        int bit = (int)(LIMB * i) + apart;
        if (limb == 0 || bit <= -LIMB) continue;
        if (bit < 0) { /* terms are multiples of the unit of pairs */
            limb >>= -bit;
            bit = 0;
        }
        cr_partial_put(pairs, sum->at, limb, (unsigned)bit);
    }
    pairs->sums[sum->at].special = from->special;
}
