/* masked: answers along an axis under a mask, by kernels that read the mask beside the array (kernels/cuda/axis/masked.cuh). How many
 * elements of each output count is made of the mask by itself, where an answer depends on it.
 *
 * Thread: any; nothing here holds state. */
#include <cuda_runtime_api.h>

#include "kernels/core/fast.h"
#include "kernels/cuda/swaths/swaths.h"

/* Bytes of an array from which this is quicker than cells. Tests have smaller ones. */
#if !defined(CR_MASKED_LEAST)
#define CR_MASKED_LEAST (1 << 20)
#endif
enum {
    ALIGN = 256,
    STATE_LOG2 = 27, /* of bytes at most: many short rows go by swaths, or by cells */
};

bool cr_masked_needs_count(cr_op op) {
    return cr_op_divisor(op) != CR_DIVISOR_ONE || cr_op_closing(op) == CR_CLOSING_COUNTS;
}

bool cr_masked_any_needs_count(const cr_gpu_axis *axis) {
    bool any = false;
    for (uint32_t i = 0; i < axis->op_count; i++) any |= cr_masked_needs_count(axis->ops[i]);
    return any;
}

static cr_gpu_axis axis_of(const cr_gpu_keys *k) {
    cr_gpu_axis axis = k->axis;
    axis.shape = k->by;
    axis.to = NULL;
    return axis;
}

static uint64_t counts_of(const cr_gpu_keys *k) {
    return (cr_shape_answers(&k->by) * sizeof(uint64_t) + ALIGN - 1) / ALIGN * ALIGN;
}

uint64_t cr_masked_state(const cr_gpu_keys *k, uint32_t multiprocessors) {
    cr_axis_launch at, counts;
    const cr_gpu_axis axis = axis_of(k);
    cr_axis_launch_make(&at, (uintptr_t)axis.data, &axis.shape, axis.dtype, cr_axis_is_variance(&axis),
                        multiprocessors);
    cr_axis_launch_make(&counts, (uintptr_t)(k->mask.data + k->mask.first), &axis.shape, CR_U8, false, multiprocessors);
    return counts_of(k) + (at.scratch_bytes > counts.scratch_bytes ? at.scratch_bytes : counts.scratch_bytes);
}

bool cr_masked_takes(const cr_gpu_keys *k, cr_op op) {
    if (!cr_fast_on(CR_FAST_GPU_MASKED) || k->keys.dtype != CR_DTYPE_NONE || k->offsets.dtype != CR_DTYPE_NONE ||
        k->axis.shape.n < CR_MASKED_LEAST / cr_dtype_size(k->axis.dtype) || cr_shape_answers(&k->by) > UINT32_MAX / 2)
        return false;
    cr_gpu_axis axis = axis_of(k);
    axis.ops = &op;
    axis.op_count = 1;
    cr_gpu_keys one = *k;
    one.axis.ops = &op;
    one.axis.op_count = 1;
    return (!k->mask.leaves_out || !cr_masked_needs_count(op)) && cr_axis_takes_mask(&axis, op, &k->mask) &&
           cr_axis_takes(&axis) && cr_masked_state(&one, CR_MASKED_PROCESSORS) <= (uint64_t)1 << STATE_LOG2;
}

int cr_masked_enqueue(const cr_gpu_keys *k, uint32_t multiprocessors, void *const *out, uint8_t *state,
                      unsigned long long *wrong, void *stream) {
    cr_gpu_axis axis = axis_of(k);
    uint64_t *counts = (uint64_t *)(void *)state, done = 0;
    uint8_t *scratch = state + counts_of(k);
    const bool counted = cr_masked_any_needs_count(&axis);
    int failure = (int)cudaMemsetAsync(scratch, 0, sizeof(cr_axis_head), stream);
    if (failure == 0 && counted)
        failure =
            cr_axis_enqueue_kept(k->mask.data + k->mask.first, &axis.shape, multiprocessors, counts, scratch, stream);
    for (uint32_t i = 0; i < k->axis.op_count && failure == 0; i++) {
        cr_op ops[CR_GPU_AXIS_OPS];
        void *to[CR_GPU_AXIS_OPS];
        if (done >> i & 1) continue;
        const cr_axis_counted some = {counted ? counts : NULL, 0, k->mask, cr_fill_of(k, k->axis.ops[i])};
        done |= cr_fill_ask(k, i, done, out, &axis, ops, to);
        failure = cr_axis_enqueue_counted(&axis, &some, multiprocessors, to, scratch, (cr_axis_failure *)(void *)wrong,
                                          stream);
        if (failure == 0) failure = cr_fill_report_lacks(k, &axis, to, some.fill, multiprocessors, wrong, stream);
    }
    return failure;
}
