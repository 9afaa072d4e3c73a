/* plan: which families go by strips, the layout of a strip, the choice of instruction set.
 *
 * Thread: any; a plan is a plain value. */
#include "kernels/cpu/axis/plan.h"

#include <string.h>

#include "kernels/core/fast.h"
#include "kernels/core/limbs.h"
#include "kernels/cpu/axis/hidden.h"
#include "kernels/cpu/fold.h"

const cr_axis_isa *cr_axis_current(void) {
#if defined(__x86_64__)
    const char *name = cr_cpu_isa();
    if (strcmp(name, cr_axis_avx512.name) == 0) return &cr_axis_avx512;
#if !defined(CR_NO_AVX2)
    if (strcmp(name, cr_axis_avx2.name) == 0) return &cr_axis_avx2;
#endif
#endif
    return &cr_axis_portable;
}

/* Digits of a sum: from up to 51 bits below the grid to beyond 2^62 of the largest values. */
static unsigned digits_of(cr_dtype dtype) {
    enum { BELOW = 51, ABOVE = 62 };
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F64:
            return (BELOW + CR_F64_SPAN + ABOVE + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS;
        case CR_FORMAT_F32:
        case CR_FORMAT_BF16:
            return (BELOW + CR_F32_SPAN + ABOVE + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS;
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2:
        case CR_FORMAT_F16: /* digit 0 begins at the grid */
            return (CR_F16_SPAN + ABOVE + CR_DIGIT_BITS - 1) / CR_DIGIT_BITS;
        case CR_FORMAT_INT:
            break;
    }
    return 3; /* 64 + 62, and a sign */
}

/* Of a sum of squares. */
static unsigned square_digits_of(cr_dtype dtype) {
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F32:
        case CR_FORMAT_BF16:
            return 13; /* 51 + 298 + 256 + 62 bits */
        case CR_FORMAT_F8_E4M3:
        case CR_FORMAT_F8_E5M2:
        case CR_FORMAT_F16:
            return 4; /* 51 + 48 + 32 + 62 */
        case CR_FORMAT_F64:
            return 83; /* 51 + 2098 + 2098 + 62 */
        case CR_FORMAT_INT:
            break;
    }
    return 4; /* 128 + 62, and a sign */
}

void cr_axis_plan_strips(cr_axis_plan *plan, uint32_t columns) {
    enum { ALIGN = 64 };
    size_t at = sizeof(cr_strip), words = columns * sizeof(uint64_t);
    plan->columns = columns;
    for (int which = 0; which < CR_KNOWN_SUMS; which++) {
        if (!(plan->fast & cr_sum_rows[which].family)) continue;
        plan->sum[which] = at;
        at += plan->digits[which] * words;
        plan->special[which] = at;
        at += 3 * words;
    }
    if (plan->fast & CR_FAM_EXTREMA) {
        plan->min_key = at;
        plan->max_key = at += columns * plan->size;
        plan->min_index = at += columns * plan->size;
        plan->max_index = at += words;
        plan->first_nan = at += words;
        at += words;
    }
    if (plan->fast & CR_FAM_COUNTS) {
        plan->zeros = at;
        plan->nans = at += words;
        at += words;
    }
    if (plan->hidden) {
        plan->left = at;
        plan->spare = at += words;
        at += words;
    }
    if (plan->hidden && plan->indices) {
        plan->kept = at;
        plan->spare_index = at += words;
        plan->spare_key[0] = at += words;
        plan->spare_key[1] = at += words;
        at += words;
    }
    plan->strip_bytes = (at + ALIGN - 1) / ALIGN * ALIGN;
}

/* Columns side by side in strips: of a narrow array several lines' worth, so that vectors are full. */
static uint64_t width_for(uint64_t inner, size_t size) {
    uint64_t lanes = 64 / size;
    if (inner > CR_STRIP / 2) return inner;
    for (uint64_t lines = CR_STRIP / inner; lines * inner >= CR_STRIP / 2; lines--) {
        if (lines * inner % lanes == 0) return lines * inner;
    }
    return CR_STRIP / inner * inner;
}

bool cr_axis_has_short_rows(const cr_axis_spec *spec) {
    return spec->shape.inner == 1 && spec->mask_line <= 1 &&
           spec->shape.n <= CR_ROW_BYTES / cr_dtype_size(spec->dtype) && cr_fast_on(CR_FAST_SHORT_ROWS);
}

void cr_axis_plan_make(cr_axis_plan *plan, const cr_axis_spec *spec) {
    uint32_t in_strips = CR_FAM_SUM | CR_FAM_SUMABS | CR_FAM_EXTREMA | CR_FAM_COUNTS;
    *plan = (cr_axis_plan){.spec = spec, .dtype = spec->dtype, .size = cr_dtype_size(spec->dtype)};
    /* Squares are known of columns, and of short rows but of integers of 64 bits. */
    const bool floats = cr_dtype_kind(spec->dtype) == CR_KIND_FLOAT, narrow = floats && spec->dtype != CR_F64;
    const bool by_column = narrow || cr_fast_on(CR_FAST_SQUARE_COLUMNS);
    const bool by_row = floats || (plan->size < sizeof(uint64_t) && cr_fast_on(CR_FAST_SQUARE_ROWS));
    if (spec->shape.inner > 1 ? by_column : by_row && cr_axis_has_short_rows(spec)) in_strips |= CR_FAM_SUMSQ;
    const bool bytes_of_floats = floats && plan->size == 1;
    if (bytes_of_floats) in_strips &= ~(uint32_t)CR_FAM_SUMS;
    const bool masked = spec->mask_line != 0;
    bool fast = spec->shape.n != 0 && cr_fast_on(CR_FAST_STRIPS);
    if (masked) fast &= cr_fast_on(CR_FAST_HIDDEN) && (spec->shape.inner > 1 || cr_axis_has_short_rows(spec));
    for (uint32_t k = 0; k < spec->op_count; k++) {
        cr_op op = spec->ops[k];
        uint32_t needs = cr_op_needs(op, spec->dtype);
        if (cr_op_closing(op) == CR_CLOSING_ORDER && spec->shape.n != 0) {
            plan->order_ops |= cr_ops_of(op);
        } else if (fast && (needs & ~in_strips) == 0 && (!masked || cr_hidden_takes(op, spec->dtype))) {
            plan->fast |= needs;
            plan->counted |= masked && cr_hidden_counts(op);
            plan->strip_ops |= cr_ops_of(op);
            plan->wants |= cr_op_wants(op);
        } else {
            plan->generic |= needs;
            plan->generic_ops |= cr_ops_of(op);
        }
    }
    plan->hidden = masked && plan->strip_ops != 0;
    plan->indices = (plan->wants & (CR_WANTS_ARGMIN | CR_WANTS_ARGMAX)) != 0;
    plan->digits[CR_AT_SUM] = plan->digits[CR_AT_SUMABS] = digits_of(spec->dtype);
    plan->digits[CR_AT_SUMSQ] = square_digits_of(spec->dtype);
    for (unsigned at = 0; at < CR_KNOWN_SUMS; at++) plan->grid[at] = cr_sum_grid((cr_sum_at)at, spec->dtype);
    const double cached_bytes = 8 << 20,
                 near_bytes = 2 << 20; /* about what one core has of its caches, and nearer ones */
    double bytes = (double)spec->shape.outer * (double)spec->shape.n * (double)spec->shape.inner * (double)plan->size;
    plan->cached = bytes < cached_bytes;
    plan->unseen = bytes <= near_bytes && cr_fast_on(CR_FAST_UNSEEN) && cr_fast_tells_inexact();
    uint64_t inner = spec->shape.inner ? spec->shape.inner : 1;
    plan->plain =
        fast && !masked && spec->dtype == CR_F32 && cr_fast_on(CR_FAST_PLAIN_COLUMNS) && cr_fast_tells_inexact();
    for (uint32_t k = 0; k < spec->op_count; k++) {
        bool adds = cr_op_term(spec->ops[k]) == CR_TERM_VALUE && !cr_op_is_root(spec->ops[k]);
        plan->plain &= adds && cr_axis_dtype(spec->ops[k], spec->dtype, &spec->finish) == CR_F64;
    }
    plan->width = !masked || spec->mask_line == inner ? width_for(inner, plan->size) : inner;
    plan->strips = (plan->width + CR_STRIP - 1) / CR_STRIP;
    uint64_t columns = plan->width < CR_STRIP ? plan->width : CR_STRIP;
    /* And some, so that the digits of a column do not share a few places of the nearest cache. */
    cr_axis_plan_strips(plan, (uint32_t)((columns + CR_STRIP_PAD - 1) / CR_STRIP_PAD * CR_STRIP_PAD + CR_STRIP_APART));
}
