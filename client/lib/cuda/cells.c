/* cells: what goes by the kernels by key beside reductions by key: ops under a mask that no fold takes, outputs along an axis under one, and
 * ranges along an axis.
 *
 * Thread: any. Owner: whoever asks. */
#include "client/lib/cuda/folds.h"
#include "kernels/core/key.h"
#include "kernels/core/round.h"

cr_gpu_axis cr_cl_cuda_axis(const cr_cl_cuda_ask *ask, void *const *to) {
    return (cr_gpu_axis){.dtype = ask->dtype,
                         .shape = ask->shape,
                         .data = ask->of->arrays[0].data,
                         .second = ask->second,
                         .ops = ask->ops,
                         .op_count = (uint32_t)ask->of->op_count,
                         .finish = ask->finish,
                         .to = to};
}

cr_gpu_keys cr_cl_cuda_keys(const cr_cl_cuda_ask *ask, void *const *to) {
    cr_gpu_keys keys = {.axis = cr_cl_cuda_axis(ask, to), .keys = ask->keys, .by = ask->shape, .mask = ask->mask};
    keys.axis.shape = (cr_shape){1, ask->of->arrays[0].count, 1};
    if (!cr_cl_cuda_by_key(ask)) keys.keys = cr_keys_of_axis(&ask->shape);
    return keys;
}

bool cr_cl_cuda_needs_cells(const cr_cl_cuda_ask *ask) {
    bool needs = ask->mask.kind != CR_MASK_NONE;
    for (size_t k = 0; k < ask->of->op_count; k++)
        needs |= cr_op_term(ask->ops[k]) == CR_TERM_RANGE && ask->of->array_count == 1;
    return needs;
}

/* Whether the mask leaves no element. */
static bool is_empty(const cr_cl_cuda_ask *ask) {
    cr_cl_cuda_ask own = *ask;
    cr_cl_cuda_folds folds;
    cr_partial partial;
    cr_error ignored;
    own.needs = (cr_needs){CR_FAM_COUNTS, 0};
    return cr_cl_cuda_folds_start(&folds, &own, &ignored) == CR_OK &&
           cr_cl_cuda_folds_finish(&folds, &partial, &ignored) == CR_OK && partial.n == 0;
}

/* The answers of which the partial is made, and the families that they are of. */
enum { LEAST, GREATEST, LEAST_AT, GREATEST_AT, EVERY_BIT, SOME_BIT, ODD_BIT, PRODUCT, ROWS };
static const struct {
    cr_term term;
    uint32_t family;
} rows[ROWS] = {
    [LEAST] = {CR_TERM_LEAST, CR_FAM_EXTREMA},          [GREATEST] = {CR_TERM_GREATEST, CR_FAM_EXTREMA},
    [LEAST_AT] = {CR_TERM_LEAST_INDEX, CR_FAM_EXTREMA}, [GREATEST_AT] = {CR_TERM_GREATEST_INDEX, CR_FAM_EXTREMA},
    [EVERY_BIT] = {CR_TERM_BITS_AND, CR_FAM_BITS},      [SOME_BIT] = {CR_TERM_BITS_OR, CR_FAM_BITS},
    [ODD_BIT] = {CR_TERM_BITS_XOR, CR_FAM_BITS},        [PRODUCT] = {CR_TERM_PRODUCT, CR_FAM_PROD},
};

/* What ops by cells need: families, and whether one says where an element lies. */
static uint32_t needs_of(const cr_cl_cuda_ask *ask, bool *indices) {
    uint32_t families = 0;
    *indices = false;
    for (size_t k = 0; k < ask->of->op_count; k++) {
        if (!cr_cl_cuda_by_cells(ask, k)) continue;
        families |= cr_op_needs(ask->ops[k], ask->dtype);
        *indices |= cr_op_is_index(ask->ops[k]);
    }
    return families;
}

/* Of some elements, as far as the answers tell them. */
static void fill_extrema(cr_partial *p, const uint64_t *bits, bool indices, bool skip) {
    const cr_dtype dtype = (cr_dtype)p->dtype;
    const bool nan = cr_dtype_kind(dtype) == CR_KIND_FLOAT && bits[LEAST] == cr_float_nan(dtype);
    if (nan && !skip) p->first_nan = indices ? bits[LEAST_AT] : 0;
    if (nan) return; /* no other is there where NaNs are skipped */
    p->min = (cr_extremum){cr_key_of_bits(dtype, bits[LEAST]), indices ? bits[LEAST_AT] : 0};
    p->max = (cr_extremum){cr_key_of_bits(dtype, bits[GREATEST]), indices ? bits[GREATEST_AT] : 0};
}

static void fill_product(cr_partial *p, uint64_t value) {
    p->prod.zeros = value == 0;
    p->prod.wrap = value;
    p->prod.negative = cr_dtype_kind((cr_dtype)p->dtype) == CR_KIND_SINT && value >> 63 != 0;
    if (value != 0) p->prod.magnitude[0] = p->prod.negative ? 0 - value : value;
}

static void fill(cr_partial *p, const uint64_t *bits, bool indices, bool skip) {
    p->n = 1; /* at least */
    if (p->families & CR_FAM_EXTREMA) fill_extrema(p, bits, indices, skip);
    if (p->families & CR_FAM_PROD) fill_product(p, bits[PRODUCT]);
    if (!(p->families & CR_FAM_BITS)) return;
    p->bit_and = bits[EVERY_BIT];
    p->bit_or = bits[SOME_BIT];
    p->bit_xor = bits[ODD_BIT];
}

/* Of these families; a product comes as a word, which then is rounded to what is asked. */
static cr_status ask_for(const cr_cl_cuda_ask *ask, uint32_t families, bool indices, uint64_t *bits, cr_error *error) {
    cr_gpu_keys keys = cr_cl_cuda_keys(ask, NULL);
    cr_op ops[ROWS];
    void *results[ROWS];
    keys.axis.ops = ops;
    keys.axis.op_count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const cr_op op = cr_op_of_term(rows[i].term);
        if ((families & rows[i].family) == 0 || (cr_op_is_index(op) && !indices)) continue;
        ops[keys.axis.op_count] = op;
        results[keys.axis.op_count++] = &bits[i];
    }
    cr_dtype *to = &keys.axis.finish.result_dtype;
    if (cr_dtype_is_input(*to) && cr_dtype_kind(*to) != CR_KIND_FLOAT && cr_dtype_size(*to) < sizeof bits[0])
        *to = CR_DTYPE_NONE;
    return keys.axis.op_count == 0 ? CR_OK : ask->api->keys(&keys, ask->of->stream, results, NULL, error);
}

/* All of them in one call, unless a product does not fit. */
cr_status cr_cl_cuda_cells(const cr_cl_cuda_ask *ask, cr_cl_cuda_beside *found, cr_error *error) {
    uint64_t bits[ROWS] = {0};
    bool indices;
    cr_error why;
    uint32_t families = needs_of(ask, &indices);
    cr_partial_init(&found->cells, ask->dtype, families);
    cr_status status = ask_for(ask, families, indices, bits, &why);
    if (status == CR_OUT_OF_RANGE) {
        cr_fail(&found->unfit, status, "prod does not fit %s",
                cr_dtype_name(cr_dtype_kind(ask->dtype) == CR_KIND_SINT ? CR_I64 : CR_U64));
        families &= ~(uint32_t)CR_FAM_PROD;
        status = ask_for(ask, families, indices, bits, &why);
    }
    if (status == CR_INVALID_ARGUMENT && is_empty(ask)) return CR_OK;
    if (status != CR_OK)
        *error = why;
    else
        fill(&found->cells, bits, indices, ask->finish.nan == CR_NAN_SKIP);
    return status;
}
