/* launchers: see quantile.h. Thread, owner: see there. */
#include "kernels/cuda/quantile/quantile.h"

/* A group's keys begin with these bits, with `lower` behind them: so all have one sign, and their elements begin alike, too. *turn: what
 * their bits are turned by. */
static uint64_t base_of(const cr_turns *t, uint64_t upper, uint32_t lower, uint64_t *turn) {
    const uint64_t keys = upper << lower; /* lower is below 64: the first read has no groups */
    *turn = (keys ^ t->with_sign) & t->top ? t->with_sign : t->without;
    return (keys ^ *turn) >> lower << lower;
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
        for (uint32_t i = 0; s->read != 0 && i < groups; i++) {
            uint64_t turn;
            args.base[i] = base_of(&args.turns, s->upper[at + i], s->bits + s->below, &turn);
            args.flip[i] = (uint32_t)(turn >> s->below) & (((uint32_t)1 << s->bits) - 1);
        }
        for (uint32_t i = groups; i < CR_QUANTILE_FEW; i++) args.base[i] = args.base[0];
        const uint32_t mode = s->read == 0  ? CR_QUANTILE_ALL
                              : groups == 1 ? CR_QUANTILE_ONE
                              : size == 4   ? CR_QUANTILE_SOME
                                            : CR_QUANTILE_MANY;
        failure = cr_quantile_launch(&args, size, mode, stream);
    }
    return failure;
}

enum { GATHER_MOST = 4096 };

/* A read of types of 16 bits is the last but one at most, and takes no longer. */
bool cr_quantile_gathers(const cr_quantile *s, uint64_t left) {
    return left <= GATHER_MOST && cr_dtype_size(s->dtype) >= 4;
}

int cr_quantile_gather(const cr_quantile *s, const void *data, uint64_t n, unsigned long long *to, uint64_t room,
                       uint32_t multiprocessors, void *stream) {
    const uint32_t size = (uint32_t)cr_dtype_size(s->dtype), lower = s->bits + s->below;
    const cr_turns turns = cr_turns_of(s->dtype);
    cr_quantile_gather_args args = {.data = data,
                                    .plan = cr_fold_plan_make((uintptr_t)data, n, size, multiprocessors),
                                    .to = to,
                                    .room = room,
                                    .span = (uint64_t)1 << lower,
                                    .groups = s->groups};
    for (uint32_t i = 0; i < s->groups; i++) {
        uint64_t turn;
        args.base[i] = base_of(&turns, s->upper[i], lower, &turn);
    }
    return n != 0 ? cr_quantile_gather_launch(&args, size, stream) : 0;
}
