/* library: libcured-cuda's only symbol. Thread: any. Owner: this file; all of it is constant but the runtime's version, written once. */
#include <stdio.h>

#include "kernels/cuda/caller/internal.h"

__attribute__((visibility("default"))) const cr_caller_api *cured_cuda_library(void) {
    static char runtime[16];
    static const cr_caller_api api = {
        .version = CURED_VERSION,
        .runtime = runtime,
        .partial_bytes = sizeof(cr_partial),
        .gpu_bytes = sizeof(cr_gpu_api),
        .api_bytes = sizeof(cr_caller_api),
        .gpu = &cr_cuda,
        .ladder = cr_caller_ladder,
        .start = cr_caller_start,
        .done = cr_caller_done,
        .finish = cr_caller_finish,
        .each = cr_caller_each,
        .axis = cr_caller_axis,
        .enqueue = cr_caller_enqueue,
        .segments = cr_caller_segments,
        .keys = cr_caller_keys,
        .keys_partial = cr_caller_keys_partial,
        .block = cr_caller_block,
        .linear = cr_caller_linear,
        .from_linear = cr_caller_from_linear,
        .search = cr_caller_search,
        .quantile = cr_caller_quantile,
        .order = cr_caller_order,
        .wait = cr_caller_wait,
        .bits = cr_caller_bits,
        .bits_free = cr_caller_bits_free,
        .word = cr_caller_word,
        .take_word = cr_caller_take_word,
        .lacks = cr_caller_lacks,
        .trim = cr_caller_trim,
    };
    snprintf(runtime, sizeof runtime, "%d.%d", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    return &api;
}
