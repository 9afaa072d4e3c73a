/* ways: of what is asked by key, by offsets or under a mask, which ops swaths answer (swaths.h), and which go by cells (kernels/cuda/keys).
 *
 * Thread: any; nothing here holds state. */
#include <cuda_runtime_api.h>

#include "kernels/cuda/keys/keys.h"
#include "kernels/cuda/swaths/swaths.h"

/* The ops of one way. */
typedef struct way {
    cr_gpu_keys keys;
    cr_op ops[CR_GPU_AXIS_OPS];
    uint32_t at[CR_GPU_AXIS_OPS]; /* their numbers among all */
} way;

typedef struct ways {
    way swaths, cells;
} ways;

static bool cells_take(const cr_gpu_keys *k, cr_op op) {
    cr_gpu_keys one = *k;
    cr_error ignored;
    one.axis.ops = &op;
    one.axis.op_count = 1;
    return cr_keys_gpu_takes(&one, &ignored) == CR_OK;
}

static void part(const cr_gpu_keys *k, ways *w) {
    w->swaths.keys = w->cells.keys = *k;
    w->swaths.keys.axis.op_count = w->cells.keys.axis.op_count = 0;
    w->swaths.keys.axis.ops = w->swaths.ops;
    w->cells.keys.axis.ops = w->cells.ops;
    for (uint32_t i = 0; i < k->axis.op_count; i++) {
        const cr_op op = k->axis.ops[i];
        way *to = cr_swaths_takes(k, op) && (cr_swaths_pays(k, op) || !cells_take(k, op)) ? &w->swaths : &w->cells;
        to->at[to->keys.axis.op_count] = i;
        to->ops[to->keys.axis.op_count++] = op;
    }
}

static bool has_ops(const way *w) { return w->keys.axis.op_count != 0; }

cr_status cr_ways_check(const cr_gpu_keys *keys, cr_error *error) {
    ways w;
    part(keys, &w);
    return has_ops(&w.cells) ? cr_keys_gpu_takes(&w.cells.keys, error) : CR_OK;
}

uint64_t cr_ways_state(const cr_gpu_keys *keys, uint32_t multiprocessors) {
    const uint64_t word = sizeof(unsigned long long);
    uint64_t cells = 0, swaths = 0;
    ways w;
    part(keys, &w);
    if (has_ops(&w.cells)) cells = cr_keys_gpu_state(&w.cells.keys);
    if (has_ops(&w.swaths)) swaths = cr_swaths_state(&w.swaths.keys, multiprocessors);
    return ((cells > swaths ? cells : swaths) + word - 1) / word * word;
}

int cr_ways_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                    unsigned long long *wrong, void *stream) {
    void *to[CR_GPU_AXIS_OPS];
    ways w;
    int failure = 0;
    part(keys, &w);
    for (uint32_t i = 0; i < w.cells.keys.axis.op_count; i++) to[i] = out[w.cells.at[i]];
    if (has_ops(&w.cells))
        failure = cr_keys_gpu_enqueue(&w.cells.keys, multiprocessors, to, state, wrong, stream);
    else
        failure = (int)cudaMemsetAsync(wrong, 0, sizeof *wrong, stream);
    for (uint32_t i = 0; i < w.swaths.keys.axis.op_count; i++) to[i] = out[w.swaths.at[i]];
    if (failure == 0 && has_ops(&w.swaths))
        failure = cr_swaths_enqueue(&w.swaths.keys, multiprocessors, to, state, wrong, stream);
    return failure;
}
