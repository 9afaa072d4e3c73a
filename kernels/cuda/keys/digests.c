/* digests: those that are asked for by offsets, or beside ops that go by cells: they have kernels of their own (kernels/cuda/digests).
 *
 * Thread: any; nothing here holds state. */
#include <cuda_runtime_api.h>

#include "kernels/cuda/digests/digests.h"
#include "kernels/cuda/keys/keys.h"

/* Offsets that are wrong are told of before any is read by. */
static int check_offsets(const cr_gpu_keys *keys, uint8_t *state, unsigned long long *wrong, void *stream) {
    const cr_dtype dtype = keys->offsets.dtype;
    cr_keys_close_args args = {.wrong = wrong};
    args.fold.kind = CR_KEYS_COUNTS;
    args.fold.source = CR_KEYS_OFFSETS;
    args.fold.head = (cr_keys_head *)(void *)state;
    args.fold.keys = keys->offsets.data;
    args.fold.key_size = (uint32_t)cr_dtype_size(dtype);
    args.fold.key_sign = cr_dtype_kind(dtype) == CR_KIND_SINT;
    args.fold.keys_below = (uint32_t)keys->offsets.count;
    int failure = (int)cudaMemsetAsync(state, 0, sizeof *args.fold.head, stream);
    if (failure == 0) failure = cr_keys_launch_check(&args.fold, keys->axis.shape.n, stream);
    return failure == 0 ? cr_keys_launch_close(&args, stream) : failure; /* which tells it; there are no groups */
}

int cr_keys_digests(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                    unsigned long long *wrong, void *stream) {
    const cr_gpu_axis *axis = &keys->axis;
    const bool by_offsets = keys->offsets.dtype != CR_DTYPE_NONE;
    bool checked = !by_offsets;
    int failure = 0;
    for (uint32_t k = 0; k < axis->op_count && failure == 0; k++) {
        if (cr_op_closing(axis->ops[k]) != CR_CLOSING_DIGEST) continue;
        if (!checked) failure = check_offsets(keys, state, wrong, stream);
        checked = true;
        if (failure == 0 && by_offsets)
            failure = cr_digests_offsets(axis->data, axis->shape.n, axis->dtype, &keys->offsets, wrong, out[k],
                                         multiprocessors, stream);
        else if (failure == 0)
            failure = cr_digests_axis(axis->data, &keys->by, axis->dtype, out[k], multiprocessors, stream);
    }
    return failure;
}
