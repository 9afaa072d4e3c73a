/* gpu_caller_ranks: medians and quantiles of device memory beside the CPU's answers: of arrays at any address, of several arrays as one,
 * beside other ops, of every type, with many shares and methods.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/gpu_caller.h"

enum { SHARES = 12, PARTS = 3 };

/* Some ops, one by rank at least, and their shares. */
static size_t draw_ranks(cured_op *ops, double *shares) {
    const size_t count = 1 + caller_draw(caller_draw(8) ? 4 : SHARES);
    bool median = false;
    for (size_t k = 0; k < count; k++) {
        static const double some[] = {0, 1, 0.25, 0.5, 1.0 / 3, 0.999};
        const bool middle = !median && caller_draw(3) == 0;
        ops[k] = middle ? CURED_OP_MEDIAN : CURED_OP_QUANTILE;
        median |= middle;
        shares[k] = caller_draw(2) ? some[caller_draw(6)] : (double)caller_draw(1 << 20) / (1 << 20);
    }
    return count;
}

/* Few values, in runs or in order: what bins of one element in a row and of many see. */
static void flatten(uint8_t *host, uint64_t n, cured_dtype dtype) {
    const size_t size = cured_dtype_size(dtype);
    const uint64_t run = 1 + caller_draw(1 + caller_draw(2) * 100);
    for (uint64_t i = 0; i < n; i++) memcpy(host + i * size, host + i / run % 3 * size, size);
}

/* The array in several parts, of which some have no elements. */
static size_t cut(cured_cuda_array parts[PARTS], const cured_cuda_array *whole) {
    const size_t size = cured_dtype_size(whole->dtype);
    const uint64_t first = caller_draw(whole->count + 1), second = caller_draw(whole->count - first + 1);
    const uint8_t *data = whole->data;
    parts[0] = (cured_cuda_array){data, first, whole->dtype};
    parts[1] = (cured_cuda_array){data + first * size, second, whole->dtype};
    parts[2] = (cured_cuda_array){data + (first + second) * size, whole->count - first - second, whole->dtype};
    return PARTS;
}

/* The same by a search, whose counts are the GPU's however short the array is. */
static void check_search(const cured_cuda_array *whole, const cured_op *ops, size_t count, const cured_options *options,
                         uint64_t offset) {
    static const cured_op median = CURED_OP_MEDIAN;
    cured_options asks = CURED_OPTIONS_INIT;
    cured_search *search;
    cured_values *values;
    cured_error error;
    size_t words;
    caller_good(cured_search_begin(whole->dtype, ops, count, options, &search, &error), &error, "search");
    for (;;) {
        const cured_bytes asked = cured_search_asked(search, &words);
        if (words == 0) break;
        asks.asked = &asked;
        const cured_cuda_ask ask = caller_ask(whole, 1, &median, 1, &asks);
        uint64_t *counts = malloc(words * sizeof counts[0]);
        caller_good(cured_cuda_count(&ask, counts, words, &error), &error, "count");
        caller_good(cured_search_next(search, counts, words, &error), &error, "next");
        free(counts);
    }
    caller_good(cured_search_values(search, &values, &error), &error, "values");
    caller_compare("search", whole->dtype, ops, count, caller_run.host + offset, whole->count, options, values, offset);
    cured_values_free(values);
    cured_search_free(search);
}

void caller_check_ranks(void) {
    cured_dtype dtype;
    uint64_t offset;
    cured_op ops[SHARES + 2];
    double shares[SHARES + 2] = {0};
    cured_cuda_array parts[PARTS];
    cured_values *values;
    cured_error error;
    const uint64_t n = caller_make_array(&dtype, &offset, caller_run.bytes);
    const cured_cuda_array whole = {caller_run.device + offset, n, dtype};
    cured_options options = CURED_OPTIONS_INIT;
    size_t count = draw_ranks(ops, shares);
    const size_t ranked = count;
    if (n >= 3 && caller_draw(3) == 0) {
        flatten(caller_run.host + offset, n, dtype);
        caller_cuda(cudaMemcpy(caller_run.device + offset, caller_run.host + offset, n * cured_dtype_size(dtype),
                               cudaMemcpyHostToDevice),
                    "copy");
        caller_cuda(cudaDeviceSynchronize(),
                    "synchronize"); /* streams that do not wait for the legacy one read it, too */
    }
    if (caller_draw(3) == 0) ops[count++] = CURED_OP_COUNT_NONZERO;
    if (caller_draw(4) == 0 && n != 0) ops[count++] = CURED_OP_MAX;
    options.nan = caller_draw(2) ? CURED_NAN_SKIP : CURED_NAN_PROPAGATE;
    options.result_dtype = caller_draw(4) ? CURED_DTYPE_DEFAULT : CURED_F32;
    for (size_t k = 0; k < count; k++)
        if (ops[k] == CURED_OP_MAX || ops[k] == CURED_OP_COUNT_NONZERO) options.result_dtype = CURED_DTYPE_DEFAULT;
    for (size_t k = 0; k < count; k++) {
        if (ops[k] != CURED_OP_QUANTILE) continue;
        options.parameters = shares;
        options.method = (cured_method)caller_draw(5);
    }
    const bool several = caller_draw(4) == 0;
    const size_t arrays = several ? cut(parts, &whole) : 1;
    const cured_cuda_ask ask = caller_ask(several ? parts : &whole, arrays, ops, count, &options);
    caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "ranks");
    caller_compare("ranks", dtype, ops, count, caller_run.host + offset, n, &options, values, offset);
    cured_values_free(values);
    if (caller_draw(2)) check_search(&whole, ops, ranked, &options, offset);
}
