/* shape: from an array's shape and --axis, one or several, to (outer, n, inner) and the shape of the answers.
 *
 * Thread: one. */
#include "client/cli/cli.h"
#include "kernels/core/op.h"

typedef unsigned long long ull;

/* *product times each of shape[from … to); false when it does not fit. */
static bool multiply(uint64_t *product, const uint64_t *shape, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        if (shape[i] != 0 && *product > (uint64_t)INT64_MAX / shape[i]) return false;
        *product *= shape[i];
    }
    return true;
}

int cli_shape_count(const cli_options *o, size_t size, uint64_t *count) {
    *count = 1;
    for (uint32_t i = 0; i < o->dims; i++)
        if (o->shape[i] == 0) *count = 0;
    if (*count == 0 || (multiply(count, o->shape, 0, o->dims) && *count <= (uint64_t)INT64_MAX / size)) return EXIT_OK;
    return cli_fail(EXIT_USAGE, "--shape has more than %llu elements", (ull)((uint64_t)INT64_MAX / size));
}

/* The dimensions that --axis names. */
static int take_axes(const cli_options *o, const char *name, uint32_t dims, uint64_t *axes) {
    *axes = 0;
    for (size_t i = 0; i < o->axis_count; i++) {
        const int64_t k = o->axes[i] < 0 ? o->axes[i] + dims : o->axes[i];
        if (k < 0 || k >= dims)
            return cli_fail(EXIT_DATA, "--axis is %lld, %s has %u dimension%s", (long long)o->axes[i], name, dims,
                            dims == 1 ? "" : "s");
        if ((*axes >> k & 1) != 0)
            return cli_fail(EXIT_USAGE, "--axis names dimension %u of %s twice", (unsigned)k, name);
        *axes |= (uint64_t)1 << k;
    }
    return EXIT_OK;
}

/* Between which dimensions the reduced ones lie, [*first … *last]; those of one element do not count, unless there are no others. True
 * when between them lies one that is kept. */
static bool find_run(uint64_t axes, uint32_t dims, const uint64_t *shape, uint32_t *first, uint32_t *last) {
    bool found = false, apart = false, kept = false;
    *first = *last = (uint32_t)__builtin_ctzll(axes);
    for (uint32_t i = 0; i < dims; i++) {
        const bool reduced = (axes >> i & 1) != 0;
        if (shape[i] == 1) continue;
        if (!reduced) kept = kept || found;
        if (!reduced) continue;
        if (!found) *first = i;
        *last = i;
        apart = apart || kept;
        found = true;
    }
    return apart;
}

int cli_layout_make(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                    bool ordered, cli_layout *layout) {
    uint64_t before = 1, n = 1, after = 1;
    uint32_t first, last;
    bool empty = false, fits = true;
    layout->dims = 0;
    layout->first = NULL;
    const int code = take_axes(o, name, dims, &layout->axes);
    if (code != EXIT_OK) return code;
    layout->apart = find_run(layout->axes, dims, shape, &first, &last) || (fortran && ordered && first != last);
    for (uint32_t i = 0; i < dims; i++) {
        const bool reduced = (layout->axes >> i & 1) != 0;
        empty = empty || shape[i] == 0;
        fits = fits && multiply(reduced ? &n : i < first ? &before : &after, shape, i, i + 1);
        if (!reduced || o->keepdims) layout->shape[layout->dims++] = reduced ? 1 : shape[i];
    }
    if (!fits) return cli_fail(EXIT_DATA, "the answers along --axis of %s are too many", name);
    if (empty) layout->apart = false; /* all answers are alike, in whichever order */
    /* In Fortran order the bytes are those of the reversed shape in C order. */
    layout->axis = fortran ? (cured_axis){after, n, before} : (cured_axis){before, n, after};
    layout->fortran = fortran && !layout->apart;
    return EXIT_OK;
}

bool cli_ordered(cured_dtype dtype, const cured_op *ops, size_t op_count) {
    for (size_t i = 0; i < op_count; i++)
        if (cr_op_is_ordered((cr_op)ops[i], (cr_dtype)dtype)) return true;
    return false;
}

/* Whether a partial of the ops has indices of extrema, for which it may be finished whatever it was made for. */
static bool keeps_places(cured_dtype dtype, const cured_op *ops, size_t op_count) {
    for (size_t i = 0; i < op_count; i++)
        if ((cr_op_needs((cr_op)ops[i], (cr_dtype)dtype) & CR_FAM_EXTREMA) != 0) return true;
    return false;
}

bool cli_counts_order(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count, uint32_t dims,
                      const uint64_t *shape) {
    const bool ordered = o->keys != NULL || o->within_given || cli_ordered(dtype, ops, op_count) || /* places count */
                         (o->call.partial && !o->total && keeps_places(dtype, ops, op_count));
    uint32_t wide = 0; /* dimensions: with one alone both orders are the same */
    for (uint32_t d = 0; d < dims; d++) {
        if (shape[d] == 0) return false;
        wide += shape[d] > 1;
    }
    return ordered && wide >= 2 && !o->axis_given && !o->offset_given && !o->count_given;
}

/* FNV-1a, of words. */
uint64_t cli_shape_form(uint32_t dims, const uint64_t *shape, bool fortran, bool swap) {
    uint64_t form = 14695981039346656037u;
    for (uint32_t i = 0; i <= dims; i++) {
        const uint64_t word = i < dims ? shape[i] : (uint64_t)fortran << 1 | swap;
        form = (form ^ word) * 1099511628211u;
    }
    return form;
}
