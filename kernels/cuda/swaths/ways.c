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

enum { MASKED, SWATHS, CELLS, WAYS };

typedef struct ways {
    way way[WAYS];
} ways;

static bool cells_take(const cr_gpu_keys *k, cr_op op) {
    cr_gpu_keys one = *k;
    cr_error ignored;
    one.axis.ops = &op;
    one.axis.op_count = 1;
    return cr_keys_gpu_takes(&one, &ignored) == CR_OK;
}

static way *way_of(const cr_gpu_keys *k, cr_op op, ways *w) {
    if (cr_masked_takes(k, op)) return &w->way[MASKED];
    return &w->way[cr_swaths_takes(k, op) && (cr_swaths_pays(k, op) || !cells_take(k, op)) ? SWATHS : CELLS];
}

static void part(const cr_gpu_keys *k, ways *w) {
    for (uint32_t i = 0; i < WAYS; i++) {
        w->way[i].keys = *k;
        w->way[i].keys.axis.op_count = 0;
        w->way[i].keys.axis.ops = w->way[i].ops;
    }
    for (uint32_t i = 0; i < k->axis.op_count; i++) {
        way *to = way_of(k, k->axis.ops[i], w);
        to->at[to->keys.axis.op_count] = i;
        to->ops[to->keys.axis.op_count++] = k->axis.ops[i];
    }
}

static bool has_ops(const way *w) { return w->keys.axis.op_count != 0; }

cr_status cr_ways_check(const cr_gpu_keys *keys, cr_error *error) {
    ways w;
    part(keys, &w);
    return has_ops(&w.way[CELLS]) ? cr_keys_gpu_takes(&w.way[CELLS].keys, error) : CR_OK;
}

uint64_t cr_ways_state(const cr_gpu_keys *keys, uint32_t multiprocessors) {
    const uint64_t word = sizeof(unsigned long long);
    uint64_t bytes[WAYS] = {0}, most = 0;
    ways w;
    part(keys, &w);
    if (has_ops(&w.way[MASKED])) bytes[MASKED] = cr_masked_state(&w.way[MASKED].keys, multiprocessors);
    if (has_ops(&w.way[SWATHS])) bytes[SWATHS] = cr_swaths_state(&w.way[SWATHS].keys, multiprocessors);
    if (has_ops(&w.way[CELLS])) bytes[CELLS] = cr_keys_gpu_state(&w.way[CELLS].keys);
    for (uint32_t i = 0; i < WAYS; i++) most = bytes[i] > most ? bytes[i] : most;
    return (most + word - 1) / word * word;
}

/* The ops of one way, whose answers go where out says. */
static int put(const way *w, uint32_t number, uint32_t multiprocessors, void *const *out, uint8_t *state,
               unsigned long long *wrong, void *stream) {
    void *to[CR_GPU_AXIS_OPS];
    for (uint32_t i = 0; i < w->keys.axis.op_count; i++) to[i] = out[w->at[i]];
    if (number == CELLS) return cr_keys_gpu_enqueue(&w->keys, multiprocessors, to, state, wrong, stream);
    return number == MASKED ? cr_masked_enqueue(&w->keys, multiprocessors, to, state, wrong, stream)
                            : cr_swaths_enqueue(&w->keys, multiprocessors, to, state, wrong, stream);
}

int cr_ways_enqueue(const cr_gpu_keys *keys, uint32_t multiprocessors, void *const *out, uint8_t *state,
                    unsigned long long *wrong, void *stream) {
    ways w;
    int failure = 0;
    part(keys, &w);
    if (!has_ops(&w.way[CELLS])) failure = (int)cudaMemsetAsync(wrong, 0, sizeof *wrong, stream);
    for (uint32_t i = WAYS; i-- > 0 && failure == 0;) /* cells first, which begin with what is wrong */
        if (has_ops(&w.way[i])) failure = put(&w.way[i], i, multiprocessors, out, state, wrong, stream);
    return failure;
}
