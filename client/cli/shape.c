/* shape: from an array's shape and --axis to (outer, n, inner) and the shape of the answers.
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

int cli_layout_make(const cli_options *o, const char *name, uint32_t dims, const uint64_t *shape, bool fortran,
                    cli_layout *layout) {
    int64_t k = o->axis < 0 ? o->axis + dims : o->axis;
    if (k < 0 || k >= dims)
        return cli_fail(EXIT_DATA, "--axis is %lld, %s has %u dimension%s", (long long)o->axis, name, dims,
                        dims == 1 ? "" : "s");
    uint32_t axis = (uint32_t)k;
    uint64_t before = 1, after = 1;
    if (!multiply(&before, shape, 0, axis) || !multiply(&after, shape, axis + 1, dims))
        return cli_fail(EXIT_DATA, "the answers along dimension %u of %s are too many", axis, name);
    /* In Fortran order the bytes are those of the reversed shape in C order. */
    layout->axis = fortran ? (cured_axis){after, shape[axis], before} : (cured_axis){before, shape[axis], after};
    layout->fortran = fortran;
    layout->dims = 0;
    for (uint32_t i = 0; i < dims; i++)
        if (i != axis || o->keepdims) layout->shape[layout->dims++] = i == axis ? 1 : shape[i];
    return EXIT_OK;
}

bool cli_counts_order(const cli_options *o, cured_dtype dtype, const cured_op *ops, size_t op_count, uint32_t dims,
                      const uint64_t *shape) {
    bool ordered = o->keys != NULL; /* rows have their places */
    uint32_t wide = 0;              /* dimensions: with one alone both orders are the same */
    for (size_t i = 0; i < op_count; i++) ordered = ordered || cr_op_is_ordered((cr_op)ops[i], (cr_dtype)dtype);
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
