/* launchers: see quantile.h. Thread, owner: see there. */
#include "kernels/cuda/quantile/quantile.h"

/* A group's keys begin with these bits: so all have one sign, and their elements begin alike, too. */
static void place(cr_quantile_args *args, uint32_t g, uint64_t upper) {
    const uint32_t lower = args->bits + args->below; /* below 64: the first read has no groups to place */
    const cr_turns *t = &args->turns;
    const uint64_t keys = upper << lower, mask = ((uint64_t)1 << lower) - 1;
    const uint64_t turn = (keys ^ t->with_sign) & t->top ? t->with_sign : t->without;
    args->base[g] = (keys ^ turn) & ~mask;
    args->flip[g] = (uint32_t)((turn & mask) >> args->below);
}

int cr_quantile_count(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *counts,
                      uint32_t multiprocessors, void *stream) {
    const uint32_t size = (uint32_t)cr_dtype_size(s->dtype);
    const uint32_t most = size == 2 ? (uint32_t)CR_QUANTILE_GROUPS : size == 4 ? (uint32_t)CR_QUANTILE_FEW : 1;
    const uint32_t room = CR_QUANTILE_SHARED >> s->bits,
                   together = room < most ? room : most; /* groups of one launch */
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
            .is_float = cr_dtype_kind(s->dtype) == CR_KIND_FLOAT,
            .is_bool = s->dtype == CR_BOOL,
        };
        const uint32_t groups = args.groups;
        while (args.copies > 1 && (groups << s->bits) * args.copies > CR_QUANTILE_SHARED) args.copies /= 2;
        for (uint32_t i = 0; s->read != 0 && i < groups; i++) place(&args, i, s->upper[at + i]);
        for (uint32_t i = groups; i < CR_QUANTILE_FEW; i++) args.base[i] = args.base[0];
        const uint32_t mode = s->read == 0  ? CR_QUANTILE_ALL
                              : groups == 1 ? CR_QUANTILE_ONE
                              : size == 4   ? CR_QUANTILE_SOME
                                            : CR_QUANTILE_MANY;
        failure = cr_quantile_launch(&args, size, mode, stream);
    }
    return failure;
}
