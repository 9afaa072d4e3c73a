/* axis: the CPU's folds along one axis: whole rows straight to their answers, columns by mergeable states.
 *
 * Every output obeys the exact rules of partial.h, whatever the shape of the array, the cut into calls, and the instruction
 * set: same elements, same bits.
 *
 * Thread: any; the caller owns every buffer. Data: read only, any byte alignment, may be changed by another process
 * meanwhile (then the answer is some answer; no access leaves the given ranges, no index leaves [0, n)). */
#ifndef CURED_KERNELS_CPU_AXIS_H
#define CURED_KERNELS_CPU_AXIS_H

#include "kernels/core/axis.h"
#include "kernels/core/offsets.h"
#include "kernels/core/quantile.h"
#include "kernels/core/view.h"

enum { CR_AXIS_MAX_OPS = 32 };

/* What is asked of every output. families is the union of the ops' needs. */
typedef struct cr_axis_spec {
    cr_dtype dtype;
    cr_shape shape;
    uint32_t families, op_count;
    cr_op ops[CR_AXIS_MAX_OPS];
    const cr_quantile_item *items; /* of each op that goes by rank, what it asks; NULL: none does */
    cr_finish_opts finish;
    uint64_t mask_line;   /* of a masked view: elements of the mask from a line to the next. 0: no mask */
    uint64_t second_line; /* of a view with a second array: the same of that. 0: there is none */
    bool
        statuses; /* an answer without a value fails no call: out[op_count + k] is where the status of ops[k]'s go, a byte each */
    cr_offsets
        offsets; /* of segments (offsets.h): shape.outer is how many, n the most elements of one, inner 1. Else there are none */
} cr_axis_spec;

/* Whether blocks of one column are rows: the mask and the second array then lie as the array does. Otherwise it is a column of a strip. */
static inline bool cr_axis_has_rows(const cr_axis_spec *spec) {
    return spec->shape.inner == 1 && spec->mask_line <= 1 && spec->second_line <= 1;
}
static inline bool cr_axis_by_offsets(const cr_axis_spec *spec) { return spec->offsets.dtype != CR_DTYPE_NONE; }

/* Where answers go: values, and with statuses their bytes, which are zero when they are handed over. */
enum { CR_AXIS_PLACES = 2 * CR_AXIS_MAX_OPS };

/* blocks whole outer blocks (n·inner elements each) of the view, whose mask and second array begin with them, whose first answer is number output of all. Answers go to
 * out[k][0 … blocks·inner) for ops[k], each in cr_axis_dtype. Fast for inner = 1 (rows) and for inner > 1, short or long.
 * scratch: cr_axis_scratch(spec) bytes, 64-byte aligned. */
size_t cr_axis_scratch(const cr_axis_spec *spec);
cr_status cr_cpu_axis_blocks_view(const cr_axis_spec *spec, const cr_view *view, uint64_t output, uint64_t blocks,
                                  void *scratch, void *const out[], cr_error *error);

/* Whether blocks are answered as wholes only: what goes by rank has no state. */
bool cr_axis_is_uncut(const cr_axis_spec *spec);

/* For a block too large for one claim: a state of its inner columns. It is plain bytes (may be moved with memcpy). */
size_t cr_columns_bytes(const cr_axis_spec *spec);
void cr_columns_init(const cr_axis_spec *spec, void *state);
/* Folds count consecutive elements, the first of which is element at of its block (line at / inner, column at % inner). The view's mask
 * and second array begin where the block does. */
void cr_cpu_columns_fold_view(const cr_axis_spec *spec, void *state, const cr_view *view, uint64_t count, uint64_t at);
/* Whether a block goes in order into one state, which is merged with none: products of floats. */
bool cr_axis_in_order(const cr_axis_spec *spec);
void cr_columns_merge(const cr_axis_spec *spec, void *into, const void *from);
/* Answers of columns [first, first + count) to out[k][0 … count); output is the number of the first, for the sentence of an error. */
cr_status cr_columns_finish(const cr_axis_spec *spec, const void *state, uint64_t output, uint64_t first,
                            uint64_t count, void *const out[], cr_error *error);

/* The same of a plain array. */
static inline cr_status cr_cpu_axis_blocks(const cr_axis_spec *spec, const void *data, uint64_t output, uint64_t blocks,
                                           void *scratch, void *const out[], cr_error *error) {
    const cr_view view = cr_view_plain(data);
    return cr_cpu_axis_blocks_view(spec, &view, output, blocks, scratch, out, error);
}

#endif
