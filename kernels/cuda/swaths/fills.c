/* fills: what an element becomes that a mask leaves out, so that it changes no answer; and which answers are then of no element.
 *
 * Thread: any; nothing here holds state. */
#include "kernels/core/close.h"
#include "kernels/core/round.h"
#include "kernels/cuda/swaths/swaths.h"

/* The bits of what is no element to a minimum, or to a maximum: a NaN where those are skipped, otherwise no element is beyond. */
static uint64_t of_extreme(const cr_gpu_keys *k, bool greatest) {
    const cr_dtype dtype = k->axis.dtype;
    const uint64_t top = (uint64_t)1 << (8 * cr_dtype_size(dtype) - 1);
    switch (cr_dtype_kind(dtype)) {
        case CR_KIND_FLOAT:
            return k->axis.finish.nan == CR_NAN_SKIP ? cr_float_nan(dtype)
                                                     : cr_float_greatest(dtype) | (greatest ? top : 0);
        case CR_KIND_SINT:
            return greatest ? top : top - 1;
        case CR_KIND_UINT:
            return greatest ? 0 : top | (top - 1);
        case CR_KIND_BOOL:
            return greatest ? 0 : 1;
        case CR_KIND_NONE: /* no input's */
            break;
    }
    return 0;
}

uint64_t cr_fill_of(const cr_gpu_keys *k, cr_op op) {
    const cr_term term = cr_op_term(op);
    switch (cr_op_closing(op)) {
        case CR_CLOSING_SUMS:
        case CR_CLOSING_COUNTS:
            break;
        case CR_CLOSING_BITS:
            return cr_close_bits(term, ~(uint64_t)0, 0, 0);
        case CR_CLOSING_PRODUCT:
            return 1;
        case CR_CLOSING_EXTREMA: /* 0 is the least magnitude; cells have the other terms */
            if (term == CR_TERM_LEAST || term == CR_TERM_GREATEST) return of_extreme(k, term == CR_TERM_GREATEST);
            break;
        case CR_CLOSING_DIGEST: /* swaths have neither */
        case CR_CLOSING_ORDER:
            break;
    }
    return 0;
}

uint64_t cr_fill_ask(const cr_gpu_keys *k, uint32_t i, uint64_t done, void *const *out, cr_gpu_axis *axis, cr_op *ops,
                     void **to) {
    const uint64_t fill = cr_fill_of(k, k->axis.ops[i]);
    uint64_t these = 0;
    axis->ops = ops;
    axis->op_count = 0;
    for (uint32_t j = i; j < k->axis.op_count; j++) {
        if ((done >> j & 1) != 0 || cr_fill_of(k, k->axis.ops[j]) != fill) continue;
        these |= (uint64_t)1 << j;
        to[axis->op_count] = out[j];
        ops[axis->op_count++] = k->axis.ops[j];
    }
    return these;
}

int cr_fill_report_lacks(const cr_gpu_keys *k, const cr_gpu_axis *asked, void *const *to, uint64_t fill,
                         uint32_t multiprocessors, unsigned long long *wrong, void *stream) {
    int failure = 0;
    for (uint32_t i = 0; i < asked->op_count && failure == 0; i++) {
        const cr_term term = cr_op_term(asked->ops[i]);
        if (term != CR_TERM_LEAST && term != CR_TERM_GREATEST) continue;
        const cr_lack_args args = {.answers = to[i],
                                   .mask = k->mask,
                                   .n = k->by.n,
                                   .inner = k->by.inner,
                                   .outputs = cr_shape_answers(&k->by),
                                   .bits = fill,
                                   .size = (uint32_t)cr_dtype_size(k->axis.dtype),
                                   .op = (uint32_t)asked->ops[i],
                                   .result = (uint32_t)k->axis.dtype,
                                   .wrong = wrong};
        failure = cr_lack_launch(&args, multiprocessors, stream);
    }
    return failure;
}
