/* gpu_caller_pairs: ops of two arrays of device memory beside the CPU's answers, wherever each array lies: to host memory, to device
 * memory, in a graph, and as a partial.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <string.h>

#include "tests/gpu/gpu_caller.h"

static const cured_op all[] = {CURED_OP_DOT, CURED_OP_SQDIST, CURED_OP_AVERAGE};
enum { OPS = sizeof all / sizeof all[0], BESIDE_AT = CALLER_ROOM }; /* answers lie before the second array */

/* One array's elements at host, and at device. */
static void fill(uint8_t *host, uint8_t *device, uint64_t n, cured_dtype dtype) {
    const bool tame = caller_draw(2) != 0;
    case_fill(host, n, (cr_dtype)dtype,
              tame ? (caller_draw(3) ? DATA_NORMAL : DATA_SPARSE) : (enum cr_data_kind)caller_draw(DATA_KINDS),
              caller_run.seed);
    caller_cuda(cudaMemcpy(device, host, n * cured_dtype_size(dtype), cudaMemcpyHostToDevice), "copy");
}

static size_t draw_ops(cured_op *ops) {
    const size_t first = caller_draw(OPS), count = 1 + caller_draw(OPS);
    for (size_t k = 0; k < count; k++) ops[k] = all[(first + k) % OPS];
    return count;
}

/* The answers to device memory, beside what the CPU says. */
static void check_to(cured_cuda_ask *ask, const void *host, const cured_second *there, uint64_t offset) {
    const cured_cuda_array *array = ask->arrays;
    const bool captured = caller_draw(4) == 0;
    cured_options options = *ask->options;
    void *to[OPS];
    double found[OPS];
    cured_values *here;
    cured_error error;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    for (size_t k = 0; k < ask->op_count; k++) to[k] = caller_run.beside + 8 * k;
    caller_cuda(cudaMemset(caller_run.beside, 0x5a, sizeof found), "memset");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    if (captured) {
        ask->stream = caller_run.streams[1];
        caller_cuda(cudaStreamBeginCapture(ask->stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    caller_good(cured_cuda_enqueue(ask, to, NULL, &error), &error, "enqueue pairs");
    if (captured) {
        caller_cuda(cudaStreamEndCapture(ask->stream, &graph), "end");
        caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        caller_cuda(cudaGraphDestroy(graph), "destroy");
        for (int i = 0; i < 2; i++) caller_cuda(cudaGraphLaunch(replay, ask->stream), "launch");
    }
    caller_cuda(cudaStreamSynchronize(ask->stream), "synchronize");
    if (captured) caller_cuda(cudaGraphExecDestroy(replay), "destroy");
    caller_cuda(cudaMemcpy(found, caller_run.beside, sizeof found, cudaMemcpyDeviceToHost), "copy");
    options.second = there;
    caller_good(cured_reduce_here(array->dtype, ask->ops, ask->op_count, host, array->count, &options, &here, &error),
                &error, "here");
    for (size_t k = 0; k < ask->op_count; k++) {
        size_t size;
        const void *value = cured_value_bytes(cured_values_get(here, k), &size);
        caller_run.checks++;
        if (size > 8 || memcmp(value, &found[k], size) != 0)
            caller_wrong(captured ? "pairs in a graph" : "pairs to", array->dtype, cured_op_name(ask->ops[k]),
                         array->count, offset);
    }
    cured_values_free(here);
}

static void check_partial(const cured_cuda_ask *ask, const void *host, const cured_options *plain, uint64_t offset) {
    static uint8_t bytes[CURED_PARTIAL_BYTES];
    size_t size = sizeof bytes;
    cured_values *values;
    cured_error error;
    caller_good(cured_cuda_partial(ask, bytes, &size, &error), &error, "partial of pairs");
    caller_good(cured_partial_finish(bytes, size, ask->ops, ask->op_count, NULL, &values, &error), &error, "finish");
    caller_compare("partial of pairs", ask->arrays->dtype, ask->ops, ask->op_count, host, ask->arrays->count, plain,
                   values, offset);
    cured_values_free(values);
}

static uint8_t other[CALLER_ROOM]; /* the second array in host memory */

/* Every way, of arrays that both memories have: the first at byte `at` of its memory, the second at byte `beside`. */
static void check_ways(cured_dtype dtype, uint64_t n, uint64_t at, uint64_t beside, cured_options options, bool packs) {
    cured_op ops[OPS];
    cured_values *values;
    cured_error error;
    const size_t count = draw_ops(ops);
    uint8_t *host = caller_run.host + at, *second = caller_run.beside + BESIDE_AT + beside;
    const cured_second here = {other, n, dtype}, there = {n ? second : NULL, n, dtype};
    cured_options plain = options;
    plain.second = &here;
    options.second = &there;
    const cured_cuda_array array = {caller_run.device + at, n, dtype};
    cured_cuda_ask ask = caller_ask(&array, 1, ops, count, &options);
    caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "reduce pairs");
    caller_compare("pairs", dtype, ops, count, host, n, &plain, values, at);
    cured_values_free(values);
    if (n != 0) check_to(&ask, host, &here, at);
    options.result_dtype = plain.result_dtype = CURED_DTYPE_DEFAULT;
    options.nan = plain.nan = CURED_NAN_PROPAGATE;
    if (packs) check_partial(&ask, host, &plain, at);
}

void caller_check_pairs(void) {
    static const cured_dtype types[] = {CURED_F16, CURED_BF16, CURED_F32, CURED_F64};
    static const uint64_t lengths[] = {0, 1, 2, 3, 7, 15, 16, 17, 33, 100, 1000, 1024, 4099};
    cured_options options = CURED_OPTIONS_INIT;
    const cured_dtype dtype = types[caller_draw(4)];
    const uint64_t most = caller_run.bytes / cured_dtype_size(dtype) / 2, at = caller_draw(2) ? caller_draw(16) : 0,
                   beside = caller_draw(2) ? caller_draw(16) : at;
    uint64_t n = caller_draw(3) ? lengths[caller_draw(sizeof lengths / sizeof lengths[0])] : caller_draw(most + 1);
    if (n > most) n = most;
    fill(caller_run.host + at, caller_run.device + at, n, dtype);
    fill(other, caller_run.beside + BESIDE_AT + beside, n, dtype);
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    if (caller_draw(4) == 0) options.result_dtype = CURED_F32;
    if (caller_draw(4) == 0) options.nan = CURED_NAN_SKIP;
    check_ways(dtype, n, at, beside, options, caller_draw(4) == 0);
}

/* ---- Products near the largest there are ---- */

enum extreme { CANCEL, ALL_LARGEST, NEGATIVE, NEGATIVE_TILES, RANDOM_NEAR, EXTREMES };

/* A float64 of that sign and exponent field. */
static uint64_t float_of(bool negative, uint64_t exponent, uint64_t mantissa) {
    return (uint64_t)negative << 63 | exponent << 52 | (mantissa & (((uint64_t)1 << 52) - 1));
}

static void fill_extremes(enum extreme kind, uint64_t n, uint64_t *a, uint64_t *b) {
    enum { TILE = 2048, TOP = 0x7fe, ONE = 0x3ff };
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t largest = float_of(false, TOP, UINT64_MAX), below = TOP - (k / TILE % 2 == 0 ? 6 : 66);
        a[k] = b[k] = largest;
        if (kind == CANCEL) a[k] = float_of(k % 2 != 0, TOP, UINT64_MAX);
        if (kind == NEGATIVE) a[k] = float_of(true, TOP, UINT64_MAX);
        if (kind == NEGATIVE_TILES) a[k] = float_of(true, below, k), b[k] = float_of(false, below, 3 * k);
        if (kind == RANDOM_NEAR) {
            a[k] = float_of(caller_draw(2), TOP - caller_draw(3), caller_draw(UINT64_MAX));
            b[k] = float_of(caller_draw(2), TOP - caller_draw(70), caller_draw(UINT64_MAX));
        }
    }
    if (kind == NEGATIVE_TILES) a[n / 2] = b[n / 2] = float_of(false, TOP, 0);
    if (kind == CANCEL) { /* of all that is left but a few bits */
        a[n - 1] = float_of(false, ONE, 5);
        b[n - 1] = float_of(false, ONE - 500, 0);
    }
}

/* Sums of products whose digits lie as high as they may; that cancel; and whose sign is carried up, while the element in the middle, by
 * which digits are placed, is near the largest. */
void caller_check_extreme_pairs(void) {
    static const uint64_t lengths[] = {3, 1001, 20001};
    const cured_options options = CURED_OPTIONS_INIT;
    for (enum extreme kind = CANCEL; kind < EXTREMES; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const uint64_t n = lengths[i];
            cured_values *values;
            cured_error error;
            size_t size;
            fill_extremes(kind, n, (uint64_t *)(void *)caller_run.host, (uint64_t *)(void *)other);
            caller_cuda(cudaMemcpy(caller_run.device, caller_run.host, 8 * n, cudaMemcpyHostToDevice), "copy");
            caller_cuda(cudaMemcpy(caller_run.beside + BESIDE_AT, other, 8 * n, cudaMemcpyHostToDevice), "copy");
            caller_cuda(cudaDeviceSynchronize(), "synchronize");
            check_ways(CURED_F64, n, 0, 0, options, true);
            check_ways(CURED_F64, n, 0, 0, options, true); /* other ops are drawn */
            if (kind != CANCEL) continue;
            cured_options plain = options;
            const cured_second there = {caller_run.beside + BESIDE_AT, n, CURED_F64};
            const cured_cuda_array array = {caller_run.device, n, CURED_F64};
            plain.second = &there;
            const cured_cuda_ask ask = caller_ask(&array, 1, all, 1, &plain);
            caller_good(cured_cuda_reduce(&ask, &values, &error), &error, "dot");
            double found;
            memcpy(&found, cured_value_bytes(cured_values_get(values, 0), &size), sizeof found);
            caller_run.checks++;
            if (found != 0x1.0000000000005p-500) caller_wrong("what is left", CURED_F64, "dot", n, 0);
            cured_values_free(values);
        }
    }
}

/* ---- Magnitudes at the edges of what is exact the quick way (kernels/cuda/fold/pair_quick.cuh) ---- */

/* One stretch of both arrays: exponent fields from `least` to `most`; every so many elements are zeros, or no numbers; 0: none. */
typedef struct stretch {
    uint64_t most, least, zeros, specials;
    bool alike; /* many differences are zero, or a last bit */
} stretch;

static uint64_t edge_bits(const stretch *of, uint64_t mantissa_bits, uint64_t top) {
    const uint64_t negative = caller_draw(2) << mantissa_bits, ones = ((uint64_t)1 << mantissa_bits) - 1;
    const uint64_t sign = negative * (top + 1), field = of->least + caller_draw(of->most - of->least + 1);
    const uint64_t mantissas[] = {0, 1, ones, ones - 1, caller_draw(ones + 1), caller_draw(ones + 1)};
    if (of->zeros && caller_draw(of->zeros) == 0) return sign;
    if (of->specials && caller_draw(of->specials) == 0)
        return sign | top << mantissa_bits | (caller_draw(2) ? 0 : ones);
    return sign | field << mantissa_bits | mantissas[caller_draw(6)];
}

static void put_bits(void *to, uint64_t at, size_t size, uint64_t bits) {
    if (size == 2) ((uint16_t *)to)[at] = (uint16_t)bits;
    if (size == 4) ((uint32_t *)to)[at] = (uint32_t)bits;
    if (size == 8) ((uint64_t *)to)[at] = bits;
}

/* Wide stretches spread over what anchors take, and a little more or less. */
static stretch draw_stretch(uint64_t top) {
    const uint64_t most = caller_draw(4) ? top / 2 + caller_draw(16) - 8 : caller_draw(top),
                   spread = caller_draw(caller_draw(3) ? 4 : 48);
    const uint64_t few = caller_draw(2) ? 3 : 900;
    return (stretch){most, spread < most ? most - spread : 0, caller_draw(3) ? 0 : few, caller_draw(8) ? 0 : 1 + few,
                     caller_draw(4) == 0};
}

enum { FORMATS = 4 };
static const struct edge_format {
    cured_dtype dtype;
    uint64_t mantissa, top; /* bits; the field of infinities */
} formats[FORMATS] = {{CURED_F16, 10, 31}, {CURED_BF16, 7, 255}, {CURED_F32, 23, 255}, {CURED_F64, 52, 2047}};

static void check_edges(const struct edge_format *format, uint64_t n) {
    const uint64_t size = cured_dtype_size(format->dtype);
    const cured_options options = CURED_OPTIONS_INIT;
    caller_cuda(cudaMemcpy(caller_run.device, caller_run.host, size * n, cudaMemcpyHostToDevice), "copy");
    caller_cuda(cudaMemcpy(caller_run.beside + BESIDE_AT, other, size * n, cudaMemcpyHostToDevice), "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    check_ways(format->dtype, n, 0, 0, options, caller_draw(4) == 0);
    check_ways(format->dtype, n, 0, 0, options, false); /* other ops are drawn */
}

static void put_pair(const struct edge_format *format, uint64_t at, uint64_t x, uint64_t y) {
    put_bits(caller_run.host, at, cured_dtype_size(format->dtype), x);
    put_bits(other, at, cured_dtype_size(format->dtype), y);
}

void caller_check_edge_pairs(void) {
    const struct edge_format *format = &formats[caller_draw(FORMATS)];
    const uint64_t most = caller_run.bytes / cured_dtype_size(format->dtype) / 4;
    const uint64_t n = caller_draw(2) ? caller_draw(most + 1) : caller_draw(20000 < most ? 20000 : most);
    stretch now = draw_stretch(format->top);
    for (uint64_t i = 0, until = 0; i < n; i++) {
        if (i == until) {
            until += 1 + caller_draw(9000);
            now = draw_stretch(format->top);
        }
        const uint64_t x = edge_bits(&now, format->mantissa, format->top);
        put_pair(format, i, x,
                 now.alike && caller_draw(2) ? x ^ caller_draw(2) : edge_bits(&now, format->mantissa, format->top));
    }
    check_edges(format, n);
}

/* A sum of squares that one least square keeps from being a tie: 2^2t + 2·2^(2t - 54), and where the elements of that are `down` binades
 * below, (2^(t + 1 - down) times an epsilon)². All else are differences of zero. */
static void check_near_tie(const struct edge_format *format) {
    const uint64_t bits = format->mantissa, t = format->top / 2, n = 64 + caller_draw(6000);
    const uint64_t steps = bits < 23 ? bits : 23, down = (bits == 7 ? 24 : 8) + caller_draw(28);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t both = (t - caller_draw(3)) << bits | (caller_draw(UINT64_MAX) & (((uint64_t)1 << bits) - 1));
        put_pair(format, i, both, both);
    }
    const uint64_t first = caller_draw(n / 4), step = 1 + caller_draw(n / 4);
    const uint64_t near = (t - 27 + steps) << bits, least = (t + 1 - down) << bits;
    put_pair(format, first, (t + 1) << bits, t << bits);
    for (uint64_t i = 1; i < 3; i++) put_pair(format, first + i * step, near, near | (uint64_t)1 << (bits - steps));
    if (caller_draw(4)) put_pair(format, first + 3 * step, least | 1, least);
    check_edges(format, n);
}

/* Products that cancel: each once, and twice the half of what it takes away. */
static void check_cancelling(const struct edge_format *format) {
    const uint64_t bits = format->mantissa, third = 1 + caller_draw(5000), zeros = caller_draw(3) ? 0 : 5;
    const uint64_t middles[] = {format->top / 2, format->top / 4 + caller_draw(12), 4 + caller_draw(12)};
    const uint64_t most = middles[caller_draw(3)] + 4, spread = caller_draw(bits == 10 ? 4 : 30);
    const stretch of = {most, spread + 2 < most ? most - spread : 2, zeros, 0, false};
    for (uint64_t i = 0; i < third; i++) {
        const uint64_t x = edge_bits(&of, bits, format->top), y = edge_bits(&of, bits, format->top);
        const uint64_t sign = (format->top + 1) << bits, half = (y & (sign - 1)) == 0 ? y : y - ((uint64_t)1 << bits);
        put_pair(format, i, x, y);
        for (uint64_t k = 1; k < 3; k++) put_pair(format, k * third + i, x, half ^ sign);
    }
    check_edges(format, 3 * third);
}

/* Sums whose rounded answers tell of a bit that was lost. */
void caller_check_close_pairs(void) {
    check_near_tie(&formats[1 + caller_draw(FORMATS - 1)]);
    check_cancelling(&formats[caller_draw(FORMATS)]);
}

/* ---- What is refused ---- */

static void refused(const char *what, cured_dtype dtype, const cured_options *options, const cured_op *op, size_t count,
                    cured_status wanted) {
    cured_cuda_array arrays[2] = {{caller_run.device, 40, dtype}, {caller_run.device, 40, dtype}};
    cured_values *values;
    cured_error error;
    const cured_cuda_ask ask = caller_ask(arrays, count, op, 1, options);
    caller_run.checks++;
    if (cured_cuda_reduce(&ask, &values, &error) != wanted || error.text[0] == 0)
        caller_wrong(what, dtype, cured_op_name(*op), 40, 0);
    void *to = caller_run.beside;
    if (cured_cuda_enqueue(&ask, &to, NULL, &error) != wanted) caller_wrong(what, dtype, "to", 40, 0);
}

void caller_check_pair_refusals(void) {
    static const cured_op dot = CURED_OP_DOT, sum = CURED_OP_SUM;
    static uint8_t own[40 * 8];
    cured_options options = CURED_OPTIONS_INIT;
    cured_second second = {caller_run.beside + 64, 40, CURED_F32};
    const cured_axis axis = {4, 10, 1};
    const cured_mask mask = {caller_run.beside, 40, 0, CURED_MASK_BYTES, false};
    options.second = &second;
    refused("two arrays and a second", CURED_F32, &options, &dot, 2, CURED_INVALID_ARGUMENT);
    refused("a second for one array", CURED_F32, &options, &sum, 1, CURED_INVALID_ARGUMENT);
    refused("another type", CURED_F64, &options, &dot, 1, CURED_INVALID_ARGUMENT);
    second.count = 39;
    refused("another length", CURED_F32, &options, &dot, 1, CURED_INVALID_ARGUMENT);
    second = (cured_second){own, 40, CURED_F32};
    refused("host memory", CURED_F32, &options, &dot, 1, CURED_INVALID_ARGUMENT);
    second = (cured_second){caller_run.beside + 64, 40, CURED_I32};
    refused("integers", CURED_I32, &options, &dot, 1, CURED_UNIMPLEMENTED);
    second.dtype = CURED_F8_E4M3;
    refused("floats of a byte", CURED_F8_E4M3, &options, &dot, 1, CURED_UNIMPLEMENTED);
    second.dtype = CURED_F32;
    options.second = NULL;
    refused("no second", CURED_F32, &options, &dot, 1, CURED_INVALID_ARGUMENT);
    options.second = &second;
    options.axis = &axis;
    cured_cuda_array array = {caller_run.device, 40, CURED_F32};
    cured_error error;
    void *to = caller_run.beside;
    const cured_cuda_ask along = caller_ask(&array, 1, &dot, 1, &options);
    if (cured_cuda_enqueue(&along, &to, NULL, &error) != CURED_UNIMPLEMENTED)
        caller_wrong("an axis", CURED_F32, "dot", 40, 0);
    to = own;
    if (cured_cuda_reduce_axis(&along, &to, &error) != CURED_UNIMPLEMENTED)
        caller_wrong("an axis", CURED_F32, "dot", 40, 1);
    options.axis = NULL;
    options.mask = &mask;
    const cured_cuda_ask masked = caller_ask(&array, 1, &dot, 1, &options);
    cured_values *values;
    if (cured_cuda_reduce(&masked, &values, &error) != CURED_UNIMPLEMENTED)
        caller_wrong("a mask", CURED_F32, "dot", 40, 0);
    options.mask = NULL;
    if (cured_cuda_reduce_each(&along, &values, &error) != CURED_INVALID_ARGUMENT)
        caller_wrong("each", CURED_F32, "dot", 40, 0);
}
