/* gpu_caller_keys: reductions of device memory by key, beside what the CPU says of each group's elements gathered: keys of every type, in
 * every order, few and many groups, keys outside, answers to host memory, to device memory and in a graph.
 *
 * Thread: one. Owner: test_gpu_caller.c, of caller_run. */
#include <stdlib.h>
#include <string.h>

#include "kernels/core/keys.h"
#include "tests/gpu/gpu_caller.h"

enum { OPS = 8, KEYS_AT = 2 * CALLER_ROOM, ANSWERS_AT = 64, ANSWERS = CALLER_ROOM / 8 };

/* What is reduced, and by what. */
typedef struct by_key {
    cured_dtype dtype;
    const uint8_t *host; /* the elements */
    cr_keys keys;        /* in host memory */
    uint64_t n, offset;
    cured_op ops[OPS];
    size_t op_count;
} by_key;

static size_t draw_ops(cured_dtype dtype, cured_op *ops) {
    static const cured_op sums[] = {CURED_OP_SUM, CURED_OP_MEAN, CURED_OP_NORM1, CURED_OP_COUNT_NAN,
                                    CURED_OP_COUNT_INF},
                          counts[] = {CURED_OP_COUNT, CURED_OP_COUNT_NONZERO, CURED_OP_ANY, CURED_OP_ALL};
    const bool floats = cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
    size_t count = 0;
    for (size_t k = 0; k < 5 && floats; k++)
        if (caller_draw(3) == 0) ops[count++] = sums[k];
    for (size_t k = 0; k < 4 && count < OPS; k++)
        if (caller_draw(4) == 0) ops[count++] = counts[k];
    if (count == 0) ops[count++] = floats ? CURED_OP_SUM : CURED_OP_ANY;
    return count;
}

static void put_key(uint8_t *keys, size_t size, uint64_t i, uint64_t key) { memcpy(keys + i * size, &key, size); }

/* Keys in an order that is drawn; a few are outside. */
static void draw_keys(uint8_t *keys, const cr_keys *of, bool outside) {
    const uint64_t way = caller_draw(6), n = of->count, groups = of->groups, size = cr_dtype_size(of->dtype),
                   run = 1 + caller_draw(caller_draw(2) ? 9 : 700), hot = caller_draw(groups);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t any = caller_draw(groups);
        const uint64_t key = way == 0   ? (uint64_t)((unsigned __int128)i * groups / n) /* sorted */
                             : way == 1 ? i / run % groups
                             : way == 2 ? (caller_draw(10) ? hot : any)
                             : way == 3 ? hot
                                        : any;
        put_key(keys, size, i, key);
    }
    for (uint64_t i = 0; outside && i < n; i += 1 + caller_draw(n))
        put_key(keys, size, i, caller_draw(2) ? groups + caller_draw(3) : UINT64_MAX - caller_draw(9));
}

/* The first key outside; n: there is none. */
static uint64_t first_outside(const cr_keys *keys) {
    uint64_t i = 0;
    while (i < keys->count && cr_keys_at(keys, i) < keys->groups) i++;
    return i;
}

/* Where each group's elements begin, gathered in `all`. */
static void gather(const by_key *b, uint8_t *all, uint64_t *from) {
    const size_t size = cured_dtype_size(b->dtype);
    const uint64_t groups = b->keys.groups;
    memset(from, 0, (groups + 2) * sizeof from[0]);
    for (uint64_t i = 0; i < b->n; i++)
        if (cr_keys_at(&b->keys, i) < groups) from[cr_keys_at(&b->keys, i) + 2]++;
    for (uint64_t g = 2; g < groups + 2; g++) from[g] += from[g - 1];
    for (uint64_t i = 0; i < b->n; i++) {
        const uint64_t key = cr_keys_at(&b->keys, i);
        if (key < groups) memcpy(all + from[key + 1]++ * size, b->host + i * size, size);
    }
}

static void compare(const by_key *b, const cured_options *options, void *const *answers, const char *what) {
    const size_t size = cured_dtype_size(b->dtype);
    const uint64_t groups = b->keys.groups;
    uint8_t *all = malloc(b->n * size + 1);
    uint64_t *from = malloc((groups + 2) * sizeof from[0]);
    cured_options plain = *options;
    cured_error error;
    plain.keys = NULL;
    gather(b, all, from);
    for (uint64_t g = 0; g < groups; g++) {
        cured_values *values;
        caller_good(cured_reduce_here(b->dtype, b->ops, b->op_count, all + from[g] * size, from[g + 1] - from[g],
                                      &plain, &values, &error),
                    &error, "here");
        for (size_t k = 0; k < b->op_count; k++) {
            size_t bytes;
            const void *value = cured_value_bytes(cured_values_get(values, k), &bytes);
            const size_t each = cured_dtype_size(cured_axis_dtype(b->ops[k], b->dtype, plain.result_dtype));
            caller_run.checks++;
            if (bytes < each || memcmp(value, (const uint8_t *)answers[k] + g * each, each) != 0)
                caller_wrong(what, b->dtype, cured_op_name(b->ops[k]), b->n, b->offset);
        }
        cured_values_free(values);
    }
    free(all);
    free(from);
}

/* To host memory: answers, or the first key outside. */
static void check_host(const by_key *b, const cured_cuda_ask *ask) {
    void *answers[OPS];
    cured_error error;
    cr_error wanted = {CR_OK, ""};
    const uint64_t outside = b->keys.drop ? b->n : first_outside(&b->keys);
    for (size_t k = 0; k < b->op_count; k++) answers[k] = malloc(b->keys.groups * 8 + 1);
    const cured_status status = cured_cuda_reduce_axis(ask, answers, &error);
    if (outside < b->n) {
        cr_keys_outside(&b->keys, outside, cr_keys_at(&b->keys, outside), &wanted);
        caller_run.checks++;
        if (status != CURED_INVALID_ARGUMENT || strcmp(error.text, wanted.text) != 0)
            caller_wrong("key outside", b->dtype, error.text, b->n, b->offset);
    } else {
        caller_good(status, &error, "by key");
        compare(b, ask->options, answers, "by key");
    }
    for (size_t k = 0; k < b->op_count; k++) free(answers[k]);
}

/* To device memory, with a word of status. Of what is outside nobody else is told. */
static void check_device(const by_key *b, cured_cuda_ask *ask) {
    const bool captured = caller_draw(4) == 0;
    void *answers[OPS], *to[OPS];
    uint64_t state = 0;
    cured_error error;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    for (size_t k = 0; k < b->op_count; k++) to[k] = caller_run.beside + ANSWERS_AT + k * b->keys.groups * 8;
    caller_cuda(cudaMemset(caller_run.beside, 0x5a, ANSWERS_AT + b->op_count * b->keys.groups * 8), "memset");
    caller_cuda(cudaDeviceSynchronize(), "synchronize");
    if (captured) {
        ask->stream = caller_run.streams[1];
        caller_cuda(cudaStreamBeginCapture(ask->stream, cudaStreamCaptureModeThreadLocal), "capture");
    }
    caller_good(cured_cuda_enqueue(ask, to, caller_draw(8) ? caller_run.beside : NULL, &error), &error,
                "enqueue by key");
    if (captured) {
        caller_cuda(cudaStreamEndCapture(ask->stream, &graph), "end");
        caller_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
        caller_cuda(cudaGraphDestroy(graph), "destroy");
        for (int i = 0; i < 2; i++) caller_cuda(cudaGraphLaunch(replay, ask->stream), "launch");
    }
    caller_cuda(cudaStreamSynchronize(ask->stream), "synchronize");
    if (captured) caller_cuda(cudaGraphExecDestroy(replay), "destroy");
    caller_cuda(cudaMemcpy(&state, caller_run.beside, sizeof state, cudaMemcpyDeviceToHost), "copy");
    const bool wrong = !b->keys.drop && first_outside(&b->keys) < b->n;
    caller_run.checks++;
    if (state != 0x5a5a5a5a5a5a5a5a && (state != 0) != wrong)
        caller_wrong("status by key", b->dtype, "", b->n, b->offset);
    for (size_t k = 0; k < b->op_count; k++) {
        answers[k] = malloc(b->keys.groups * 8 + 1);
        caller_cuda(cudaMemcpy(answers[k], to[k], b->keys.groups * 8, cudaMemcpyDeviceToHost), "copy");
    }
    if (!wrong) compare(b, ask->options, answers, captured ? "by key in a graph" : "by key to");
    for (size_t k = 0; k < b->op_count; k++) free(answers[k]);
}

/* How many groups there are: few, more than elements, or so many that no shared memory holds them. */
static uint64_t draw_groups(uint64_t n) {
    static const uint64_t some[] = {1, 2, 3, 16, 17, 100, 1000, 1024, 5000, 20000};
    const uint64_t groups = some[caller_draw(caller_draw(4) ? 6 : sizeof some / sizeof some[0])];
    const uint64_t most = ANSWERS / OPS;
    return caller_draw(8) == 0 && n < most ? n + 1 : groups < most ? groups : most;
}

void caller_check_keys(void) {
    static const cured_dtype types[] = {CURED_F16, CURED_BF16, CURED_F32, CURED_F64},
                             key_types[] = {CURED_I32, CURED_U32, CURED_I64, CURED_U64};
    static const uint64_t lengths[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4096, 4099, 9000};
    static uint8_t keys[CALLER_ROOM];
    by_key b = {.dtype = caller_draw(6) ? types[caller_draw(4)]
                                        : (cured_dtype)(CURED_BOOL + caller_draw(CURED_I64 - CURED_BOOL + 1))};
    cured_options options = CURED_OPTIONS_INIT;
    const size_t size = cured_dtype_size(b.dtype);
    const uint64_t most = caller_run.bytes / 8;
    b.offset = caller_draw(2) ? caller_draw(16) : 0;
    b.n = caller_draw(10) ? lengths[caller_draw(sizeof lengths / sizeof lengths[0])] : caller_draw(most);
    if (b.n > most) b.n = most;
    b.host = caller_run.host + b.offset;
    case_fill(caller_run.host + b.offset, b.n, (cr_dtype)b.dtype,
              caller_draw(3) ? DATA_NORMAL : (enum cr_data_kind)caller_draw(DATA_KINDS), caller_run.seed);
    b.keys = (cr_keys){keys, b.n, draw_groups(b.n), 1, (cr_dtype)key_types[caller_draw(4)], caller_draw(3) == 0};
    draw_keys(keys, &b.keys, caller_draw(4) == 0);
    b.op_count = draw_ops(b.dtype, b.ops);
    if (caller_draw(3) == 0 && cr_dtype_kind((cr_dtype)b.dtype) == CR_KIND_FLOAT) options.nan = CURED_NAN_SKIP;
    if (caller_draw(4) == 0 && b.ops[0] == CURED_OP_SUM) {
        options.result_dtype = CURED_F32;
        b.op_count = 1;
    }
    caller_cuda(cudaMemcpy(caller_run.device + b.offset, b.host, b.n * size, cudaMemcpyHostToDevice), "copy");
    caller_cuda(
        cudaMemcpy(caller_run.beside + KEYS_AT, keys, b.n * cr_dtype_size(b.keys.dtype), cudaMemcpyHostToDevice),
        "copy");
    caller_cuda(cudaDeviceSynchronize(), "synchronize"); /* streams that do not wait for the legacy one read it, too */
    const cured_keys there = {
        caller_run.beside + KEYS_AT, b.n, (cured_dtype)b.keys.dtype, b.keys.groups, 1, b.keys.drop};
    options.keys = &there;
    const cured_cuda_array array = {caller_run.device + b.offset, b.n, b.dtype};
    cured_cuda_ask ask = caller_ask(&array, 1, b.ops, b.op_count, &options);
    if (caller_draw(2))
        check_host(&b, &ask);
    else
        check_device(&b, &ask);
}
