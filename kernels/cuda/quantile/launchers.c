/* launchers: see quantile.h. Thread, owner: see there. */
#include "kernels/cuda/quantile/quantile.h"

int cr_quantile_count(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *counts,
                      uint32_t multiprocessors, void *stream) {
    const uint32_t size = (uint32_t)cr_dtype_size(s->dtype);
    const uint32_t together = CR_QUANTILE_SHARED >> s->bits; /* groups of one launch */
    int failure = 0;
    for (uint32_t at = 0; n != 0 && at < s->groups && failure == 0; at += together) {
        cr_quantile_args args = {
            .data = data,
            .plan = cr_fold_plan_make((uintptr_t)data, n, size, multiprocessors),
            .counts = counts + ((uint64_t)at << s->bits),
            .turns = cr_turns_of(s->dtype),
            .bits = s->bits,
            .below = s->below,
            .groups = s->groups - at < together ? s->groups - at : together,
            .copies = 32,
            .first = s->read == 0,
            .is_bool = s->dtype == CR_BOOL,
        };
        while (args.copies > 1 && (args.groups << s->bits) * args.copies > CR_QUANTILE_SHARED) args.copies /= 2;
        for (uint32_t i = 0; i < args.groups; i++) args.upper[i] = s->upper[at + i];
        failure = cr_quantile_launch(&args, size, stream);
    }
    return failure;
}
