/* launch: which kernels a fold takes, and what becomes of what they leave.
 *
 * Thread: any; nothing here holds state. */
#include <string.h>

#include "kernels/cuda/fold.h"

/* What has no kernel yet. */
__attribute__((weak)) cr_fold_launcher cr_launch_float_sum(cr_dtype dtype, uint32_t family) {
    return dtype && family ? NULL : NULL;
}

static cr_fold_launcher launcher_of(cr_dtype dtype, uint32_t family) {
    bool floats = cr_dtype_kind(dtype) == CR_KIND_FLOAT;
    switch (family) {
        case CR_FAM_COUNTS:
            return cr_launch_counts(dtype);
        case CR_FAM_EXTREMA:
            return cr_launch_extrema(dtype);
        case CR_FAM_BITS:
            return cr_launch_bits(dtype);
        case CR_FAM_PROD:
            return cr_launch_prod(dtype);
        default:
            return floats ? cr_launch_float_sum(dtype, family) : cr_launch_int_sum(dtype, family);
    }
}

cr_status cr_fold_launchers(cr_dtype dtype, uint32_t families, cr_fold_launcher out[CR_FOLD_LAUNCHES], uint32_t *count,
                            cr_error *error) {
    *count = 0;
    for (uint32_t family = 1; family < CR_FAM_ALL; family <<= 1) {
        if (!(families & family)) continue;
        cr_fold_launcher launcher = launcher_of(dtype, family);
        if (launcher == NULL) {
            return cr_fail(error, CR_UNIMPLEMENTED, "the GPU has no kernel for family %u of dtype %s", family,
                           cr_dtype_name(dtype));
        }
        out[(*count)++] = launcher;
    }
    return CR_OK;
}

void cr_fold_prepare(cr_fold_args *args, cr_dtype dtype, const void *data, uint64_t n, uint64_t index,
                     uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot) {
    args->data = data;
    args->n = n;
    args->index = index;
    args->plan = cr_fold_plan_make((uintptr_t)data, n, (uint32_t)cr_dtype_size(dtype), multiprocessors);
    args->state = state;
    args->slot = slot;
}

void cr_fold_result(cr_fold_slot *slot, cr_dtype dtype, uint32_t families, uint64_t n, uint32_t blocks) {
    (void)blocks;
    slot->partial.dtype = (uint8_t)dtype;
    slot->partial.families = families;
    slot->partial.n = n;
}
