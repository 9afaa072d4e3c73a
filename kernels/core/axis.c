/* axis: the checks and the last step of reductions along one axis.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/axis.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/core/round.h"

enum { RESULT_BYTES_MOST = 16, BYTES_LOG2 = 62 }; /* a digest has 24: so many fit 2^63 */

/* a·b ≤ most, without overflow. */
static bool product_fits(uint64_t a, uint64_t b, uint64_t most, uint64_t *product) {
    if (b != 0 && a > most / b) return false;
    *product = a * b;
    return true;
}

cr_status cr_shape_check(const cr_shape *shape, cr_dtype dtype, cr_error *error) {
    const uint64_t most = (uint64_t)1 << BYTES_LOG2;
    uint64_t size = cr_dtype_size(dtype), outputs, elements;
    if (!cr_dtype_is_input(dtype)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "dtype %s (%d) cannot be an input", cr_dtype_name(dtype),
                       (int)dtype);
    }
    if (!product_fits(shape->outer, shape->inner, most / RESULT_BYTES_MOST, &outputs) ||
        !product_fits(outputs, shape->n, most / size, &elements)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "shape (%" PRIu64 ", %" PRIu64 ", %" PRIu64 ") of %s is too large",
                       shape->outer, shape->n, shape->inner, cr_dtype_name(dtype));
    }
    return CR_OK;
}

/* An answer of no elements has no value, and so has one of only NaNs that are skipped. */
static bool may_be_none(cr_op op) { return cr_op_empty(op) == CR_EMPTY_NONE; }

cr_status cr_axis_check(cr_op op, cr_dtype dtype, const cr_shape *shape, const cr_finish_opts *opts, cr_error *error) {
    cr_status status = cr_finish_check(op, dtype, opts, error);
    if (status != CR_OK) return status;
    status = cr_shape_check(shape, dtype, error);
    if (status != CR_OK) return status;
    /* Without outputs nothing lacks a value. */
    if (shape->n == 0 && shape->outer != 0 && shape->inner != 0 && may_be_none(op)) {
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s along an axis of no elements has no value", cr_op_name(op));
    }
    return CR_OK;
}

cr_dtype cr_axis_dtype(cr_op op, cr_dtype dtype, const cr_finish_opts *opts) {
    switch (cr_op_result(op)) {
        case CR_RESULT_ELEMENT:
            return dtype;
        case CR_RESULT_MAGNITUDE:
            return cr_dtype_magnitude(dtype);
        case CR_RESULT_INDEX:
            return CR_U64;
        case CR_RESULT_TRUTH:
            return CR_BOOL;
        case CR_RESULT_RESIDUES:
            return CR_DIGEST;
        case CR_RESULT_FLOAT:
            return opts->result_dtype != CR_DTYPE_NONE ? opts->result_dtype : CR_F64;
        case CR_RESULT_EXACT:
            break;
    }
    if (opts->result_dtype != CR_DTYPE_NONE) return opts->result_dtype;
    const cr_kind kind = cr_dtype_kind(dtype);
    return kind == CR_KIND_FLOAT ? CR_F64 : kind == CR_KIND_SINT ? CR_I64 : CR_U64;
}

/* Whether it is an extremum of only NaNs, which are skipped. */
static bool of_only_nans(const cr_partial *p, cr_op op, const cr_finish_opts *opts) {
    return may_be_none(op) && (p->families & CR_FAM_EXTREMA) && opts->nan == CR_NAN_SKIP && p->n != 0 &&
           p->min.index == UINT64_MAX;
}

cr_status cr_axis_store(const cr_partial *p, cr_op op, const cr_finish_opts *opts, uint64_t output, void *out,
                        cr_error *error) {
    cr_dtype dtype = (cr_dtype)p->dtype, result = cr_axis_dtype(op, dtype, opts);
    size_t size = cr_dtype_size(result);
    if (of_only_nans(p, op, opts)) {
        uint64_t bits = cr_op_is_index(op) ? UINT64_MAX : cr_float_nan(result);
        memcpy(out, &bits, size);
        return CR_OK;
    }
    cr_finish_opts exact = *opts;
    if (cr_op_grows(op) && cr_dtype_kind(dtype) != CR_KIND_FLOAT) exact.result_dtype = result;
    cr_value value;
    cr_partial_finish(p, op, &exact, &value);
    if (value.error.code != CR_OK) {
        return cr_fail(error, value.error.code, "output %" PRIu64 ": %s", output, value.error.text);
    }
    if (value.len != size) {
        return cr_fail(error, CR_INTERNAL, "output %" PRIu64 ": %s holds %u bytes, not %zu", output, cr_op_name(op),
                       (unsigned)value.len, size);
    }
    memcpy(out, value.bytes, size);
    return CR_OK;
}

cr_status cr_axis_store_or(const cr_partial *p, cr_op op, const cr_finish_opts *opts, uint64_t output, void *out,
                           uint8_t *status, cr_error *error) {
    cr_error why;
    const cr_status stored = cr_axis_store(p, op, opts, output, out, status ? &why : error);
    if (status && stored == CR_INTERNAL) *error = why;
    if (status && stored == CR_OK && of_only_nans(p, op, opts)) *status = CR_INVALID_ARGUMENT;
    if (!status || (stored != CR_INVALID_ARGUMENT && stored != CR_OUT_OF_RANGE)) return stored;
    memset(out, 0, cr_dtype_size(cr_axis_dtype(op, (cr_dtype)p->dtype, opts)));
    *status = (uint8_t)stored;
    return CR_OK;
}

/* Under nan: skip no NaN is an extremum, and no element has index 2^64-1: such an answer stands for none. */
static bool is_none(cr_op op, cr_dtype result, const uint8_t *value) {
    uint64_t bits = 0;
    memcpy(&bits, value, cr_dtype_size(result));
    return bits == (cr_op_is_index(op) ? UINT64_MAX : cr_float_nan(result));
}

bool cr_axis_may_be_none(cr_op op, cr_dtype dtype, const cr_finish_opts *opts) {
    return may_be_none(op) && opts->nan == CR_NAN_SKIP && cr_dtype_kind(dtype) == CR_KIND_FLOAT;
}

void cr_axis_mark(cr_op op, cr_dtype dtype, const cr_finish_opts *opts, uint64_t first, uint64_t count,
                  const void *values, uint8_t *status, cr_axis_missing *missing) {
    /* A range of infinities is a NaN, too: its status was set where it was stored. */
    const bool skips = cr_op_term(op) != CR_TERM_RANGE && cr_axis_may_be_none(op, dtype, opts);
    const cr_dtype result = cr_axis_dtype(op, dtype, opts);
    const size_t size = cr_dtype_size(result);
    const bool alike = count != 0 && memcmp(status, status + 1, (size_t)count - 1) == 0;
    if (!skips && alike && status[0] == CR_OK) return;
    for (uint64_t i = 0; i < count; i++) {
        if (skips && is_none(op, result, (const uint8_t *)values + i * size)) status[i] = CR_INVALID_ARGUMENT;
        if (status[i] == CR_OK) continue;
        if (!missing->count++ || first + i < missing->first) {
            missing->first = first + i;
            missing->status = (cr_status)status[i];
        }
    }
}

cr_status cr_axis_say(const cr_axis_missing *missing, cr_op op, cr_dtype result, uint64_t n, bool masked,
                      uint64_t answers, cr_error *error) {
    error->code = CR_OK;
    error->text[0] = 0;
    if (!missing->count) return CR_OK;
    if (missing->status == CR_OUT_OF_RANGE)
        return cr_fail(error, missing->status,
                       "output %" PRIu64 ": the %s does not fit %s; %" PRIu64 " of %" PRIu64 " answers have no value",
                       missing->first, cr_op_name(op), cr_dtype_name(result), missing->count, answers);
    const char *of = n == 0 ? "no elements" : masked ? "no elements or only NaNs" : "only NaNs";
    return cr_fail(error, missing->status,
                   "output %" PRIu64 ": %s of %s has no value; %" PRIu64 " of %" PRIu64 " answers have none",
                   missing->first, cr_op_name(op), of, missing->count, answers);
}

bool cr_axis_may_lack(cr_op op, cr_dtype dtype, const cr_finish_opts *opts) {
    return cr_op_result(op) == CR_RESULT_EXACT && cr_dtype_kind(dtype) != CR_KIND_FLOAT &&
           cr_dtype_kind(cr_axis_dtype(op, dtype, opts)) != CR_KIND_FLOAT;
}
