/* kernels_run: buffers on the device, candidates inside graphs, and the clock.
 *
 * Cold means: a graph runs the candidate once over each of many buffers, all different, and before the graph begins another region,
 * several times the L2, is read. So nothing of a buffer is in the L2 when its turn comes. Where the host takes part in a
 * candidate there can be no graph: each call is timed by the clock, after such a read of its own.
 *
 * Thread: main. Owner: the bench_gpu. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/kernels.h"
#include "bench/kernels_peer.h"

enum { EXACT_PIECE = 32 << 20, FLUSH_VARIANT = 2, CALLS = 4, RUNS = 8 };

static int told(int failure, const char *what) {
    if (failure != cudaSuccess)
        fprintf(stderr, "cured-bench: %s: %s\n", what, cudaGetErrorString((cudaError_t)failure));
    (void)cudaGetLastError();
    return failure;
}

static cudaStream_t stream_of(const bench_gpu *gpu) { return (cudaStream_t)gpu->stream; }

int bench_gpu_open(bench_gpu *gpu, uint64_t largest) {
    struct cudaDeviceProp found;
    size_t available = 0, total = 0;
    memset(gpu, 0, sizeof *gpu);
    int f = told((int)cudaGetDeviceProperties(&found, 0), "device");
    if (f) return f;
    snprintf(gpu->name, sizeof gpu->name, "%s", found.name);
    gpu->multiprocessors = (unsigned)found.multiProcessorCount;
    gpu->cccl = bench_cub_version();
    gpu->l2_bytes = (uint64_t)found.l2CacheSize;
    gpu->flush_bytes = 4 * gpu->l2_bytes > (256u << 20) ? 4 * gpu->l2_bytes : 256u << 20;
    if (!f) f = told((int)cudaMemGetInfo(&available, &total), "memory");
    gpu->arena_bytes = 2 * largest > (512u << 20) ? 2 * largest : 512u << 20;
    if (!f && gpu->arena_bytes + gpu->flush_bytes + (1u << 30) > available) {
        fprintf(stderr, "cured-bench: %llu bytes of device memory are free, the largest size needs %llu\n",
                (unsigned long long)available, (unsigned long long)(gpu->arena_bytes + gpu->flush_bytes));
        return 1;
    }
    cudaStream_t stream = NULL;
    cudaEvent_t begin = NULL, end = NULL;
    if (!f) f = told((int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    if (!f) f = told((int)cudaEventCreate(&begin), "event");
    if (!f) f = told((int)cudaEventCreate(&end), "event");
    gpu->stream = stream, gpu->begin = begin, gpu->end = end;
    if (!f) f = told((int)cudaMalloc((void **)&gpu->arena, gpu->arena_bytes), "buffers");
    if (!f) f = told((int)cudaMalloc((void **)&gpu->flush, gpu->flush_bytes), "buffers");
    if (!f) f = told((int)cudaMemset(gpu->flush, 0, gpu->flush_bytes), "buffers");
    if (!f) f = told((int)cudaMalloc((void **)&gpu->state, sizeof *gpu->state), "state");
    if (!f) f = told((int)cudaMemset(gpu->state, 0, sizeof *gpu->state), "state");
    if (!f) f = told((int)cudaMallocHost((void **)&gpu->slot, sizeof *gpu->slot), "slot");
    if (!f) f = told((int)cudaMalloc(&gpu->out, 256), "result");
    for (int i = 0; i < 2 && !f; i++)
        f = told((int)cudaMallocHost((void **)&gpu->piece[i], EXACT_PIECE), "pinned memory");
    cr_error error = {CR_OK, ""};
    if (!f && cr_ladder_open(&gpu->ladder, &error) != CR_OK) {
        fprintf(stderr, "cured-bench: %s\n", error.text);
        return 1;
    }
    return f;
}

void bench_gpu_close(bench_gpu *gpu) {
    cr_ladder_close(gpu->ladder);
    cudaFree(gpu->arena);
    cudaFree(gpu->flush);
    cudaFree(gpu->state);
    cudaFree(gpu->temp);
    cudaFree(gpu->out);
    cudaFreeHost(gpu->slot);
    for (int i = 0; i < 2; i++) cudaFreeHost(gpu->piece[i]);
    if (gpu->begin) cudaEventDestroy((cudaEvent_t)gpu->begin);
    if (gpu->end) cudaEventDestroy((cudaEvent_t)gpu->end);
    if (gpu->stream) cudaStreamDestroy(stream_of(gpu));
}

int bench_gpu_fill(bench_gpu *gpu, cr_dtype dtype, bool bits) {
    uint64_t n = gpu->arena_bytes / (bits ? 8 : cr_dtype_size(dtype));
    int f = bench_fill(bits ? CR_U64 : dtype, gpu->arena, n, 1, gpu->stream);
    if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
    return told(f, "fill");
}

static cr_op op_of(const bench_array *array) { return array->ops->ops[0]; }
static bool single(const bench_array *array) { return array->ops->ops[1] == CR_OP_NONE; }

/* The production fold: one launch a family. */
static int enqueue_fold(bench_gpu *gpu, const bench_array *array, const void *data) {
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    uint32_t count = 0;
    cr_fold_args args;
    if (cr_fold_launchers(array->dtype, bench_families(array->ops, array->dtype), bench_wants(array->ops), launchers,
                          &count, NULL) != CR_OK)
        return cudaErrorNotSupported;
    cr_fold_prepare(&args, array->dtype, data, array->n, 0, gpu->multiprocessors, gpu->state, gpu->slot);
    int f = 0;
    args.follows = gpu->follow && data != gpu->arena; /* the first one follows what is no fold */
    for (uint32_t i = 0; i < count && f == 0; i++) f = launchers[i](&args, gpu->stream);
    return f;
}

static int call_cub(bench_gpu *gpu, const bench_array *array, const bench_candidate *c, const void *data, void *temp,
                    size_t *bytes) {
    if (c->variant == BENCH_RUN_TO_RUN)
        return bench_cub(op_of(array), array->dtype, temp, bytes, data, gpu->out, array->n, gpu->stream);
    return bench_require((bench_promise)c->variant, array->dtype, temp, bytes, data, gpu->out, array->n, gpu->stream);
}

static int enqueue(bench_gpu *gpu, const bench_array *array, const bench_candidate *c, const void *data) {
    if (c->group == GROUP_READ)
        return bench_read(c->variant, data, array->bytes, gpu->out, gpu->multiprocessors, gpu->stream);
    if (c->group == GROUP_FOLD) return enqueue_fold(gpu, array, data);
    if (c->group == GROUP_CUB) return call_cub(gpu, array, c, data, gpu->temp, &gpu->temp_bytes);
    const cr_ladder_job job = {c->name, op_of(array), array->dtype, data, array->n};
    return cr_ladder_enqueue(gpu->ladder, &job, gpu->stream, NULL) == CR_OK ? 0 : cudaErrorUnknown;
}

/* Room for CUB's temporary storage. */
static int reserve_cub(bench_gpu *gpu, const bench_array *array, const bench_candidate *c) {
    size_t bytes = 0;
    int f = call_cub(gpu, array, c, gpu->arena, NULL, &bytes);
    if (f || bytes <= gpu->temp_bytes) return f;
    cudaFree(gpu->temp);
    gpu->temp = NULL;
    gpu->temp_bytes = bytes;
    return (int)cudaMalloc(&gpu->temp, bytes);
}

/* Sums with a requirement: of the types that CUB adds in an order that matters. */
static bool may_require(const bench_array *array, const bench_candidate *c) {
    return single(array) && c->variant != BENCH_RUN_TO_RUN && op_of(array) == CR_OP_SUM &&
           (array->dtype == CR_F32 || array->dtype == CR_F64);
}

static bool has_cub(const bench_array *array, const bench_candidate *c) {
    if (c->variant == BENCH_RUN_TO_RUN) return single(array) && bench_cub_has(op_of(array), array->dtype);
    return may_require(array, c) && bench_require_lacks() == NULL;
}

/* Whether there is such a kernel for this array at all. */
static bool exists(const bench_array *array, const bench_candidate *c) {
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    uint32_t count = 0;
    cr_op op = op_of(array);
    switch (c->group) {
        case GROUP_READ:
            return true;
        case GROUP_FOLD:
            return cr_fold_launchers(array->dtype, bench_families(array->ops, array->dtype), bench_wants(array->ops),
                                     launchers, &count, NULL) == CR_OK;
        case GROUP_CUB:
            return has_cub(array, c);
        case GROUP_THRUST:
            return single(array) && bench_thrust_has(op, array->dtype);
        case GROUP_LADDER:
            return single(array) && cr_ladder_check(c->name, op, array->dtype, NULL) == CR_OK;
        case GROUP_COUNT:
            break;
    }
    return false;
}

bool bench_exists(const bench_array *array, bench_candidate *c) {
    c->answer = ANSWER_NONE;
    c->error = 0;
    c->graph = NULL;
    c->none = c->group == GROUP_CUB && may_require(array, c) ? bench_require_lacks() : NULL;
    const bool plain = c->group == GROUP_THRUST || (c->group == GROUP_CUB && c->variant == BENCH_RUN_TO_RUN);
    if (plain && single(array) && op_of(array) == CR_OP_SUM) c->none = bench_cub_lacks();
    return exists(array, c);
}

int bench_prepare(bench_gpu *gpu, const bench_array *array, bench_candidate *c) {
    c->by_clock = c->group == GROUP_THRUST || (c->group == GROUP_LADDER && cr_ladder_on_host(c->name));
    if (c->by_clock) return 0;
    const cr_ladder_job job = {c->name, op_of(array), array->dtype, gpu->arena, array->n};
    cr_error error = {CR_OK, ""};
    if (c->group == GROUP_LADDER && cr_ladder_prepare(gpu->ladder, &job, &error) != CR_OK) {
        fprintf(stderr, "cured-bench: %s\n", error.text);
        return 1;
    }
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    int f = (int)cudaStreamBeginCapture(stream_of(gpu), cudaStreamCaptureModeThreadLocal);
    for (uint32_t b = 0; b < array->buffers && f == 0; b++) f = enqueue(gpu, array, c, gpu->arena + b * array->bytes);
    int g = (int)cudaStreamEndCapture(stream_of(gpu), &graph);
    if (f == 0) f = g;
    if (f == 0) f = (int)cudaGraphInstantiate(&made, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    c->graph = made;
    return told(f, c->name) != 0;
}

void bench_release(bench_candidate *c) {
    if (c->graph) cudaGraphExecDestroy((cudaGraphExec_t)c->graph);
    c->graph = NULL;
}

static int flush(bench_gpu *gpu) {
    return bench_read(FLUSH_VARIANT, gpu->flush, gpu->flush_bytes, gpu->out, gpu->multiprocessors, gpu->stream);
}

static int call_once(bench_gpu *gpu, const bench_array *array, const bench_candidate *c, const void *data,
                     void *out16) {
    if (c->group == GROUP_THRUST) return bench_thrust(op_of(array), array->dtype, data, out16, array->n, gpu->stream);
    const cr_ladder_job job = {c->name, op_of(array), array->dtype, data, array->n};
    cr_value value;
    bool exact;
    return cr_ladder_run(gpu->ladder, &job, gpu->stream, &value, &exact, NULL) == CR_OK ? 0 : cudaErrorUnknown;
}

static double time_calls(bench_gpu *gpu, const bench_array *array, bench_candidate *c) {
    uint8_t out[16];
    double took = 0;
    uint32_t calls = array->buffers < CALLS ? array->buffers : CALLS;
    for (uint32_t b = 0; b < calls; b++) {
        int f = flush(gpu);
        if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
        double start = bench_now();
        if (f == 0) f = call_once(gpu, array, c, gpu->arena + b * array->bytes, out);
        took += bench_now() - start;
        if (told(f, c->name)) return -1;
    }
    return took / calls;
}

double bench_time(bench_gpu *gpu, const bench_array *array, bench_candidate *c) {
    if (c->by_clock) return time_calls(gpu, array, c);
    float milliseconds = 0;
    int f = flush(gpu);
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu->begin, stream_of(gpu));
    if (f == 0) f = (int)cudaGraphLaunch((cudaGraphExec_t)c->graph, stream_of(gpu));
    if (f == 0) f = (int)cudaEventRecord((cudaEvent_t)gpu->end, stream_of(gpu));
    if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
    if (f == 0) f = (int)cudaEventElapsedTime(&milliseconds, (cudaEvent_t)gpu->begin, (cudaEvent_t)gpu->end);
    return told(f, c->name) ? -1 : (double)milliseconds / 1e3 / array->buffers;
}

static int judge_fold(bench_gpu *gpu, const bench_array *array, bench_candidate *c, const cr_partial *exact) {
    static const cr_finish_opts defaults;
    uint32_t families = bench_families(array->ops, array->dtype);
    cr_fold_args args;
    cr_fold_prepare(&args, array->dtype, gpu->arena, array->n, 0, gpu->multiprocessors, gpu->state, gpu->slot);
    cr_partial_init(&gpu->slot->partial, array->dtype, families);
    int f = enqueue_fold(gpu, array, gpu->arena);
    if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
    if (f) return f;
    cr_fold_result(gpu->slot, array->dtype, families, array->n);
    for (int i = 0; i < BENCH_MAX_OPS && array->ops->ops[i] != CR_OP_NONE && c->answer != ANSWER_WRONG; i++) {
        cr_value got;
        cr_partial_finish(&gpu->slot->partial, array->ops->ops[i], &defaults, &got);
        bench_compare_value(exact, &got, c);
    }
    return 0;
}

/* Several runs over the same elements: each is judged, and all give the same bits, unless CUB promises none. */
static int judge_cub(bench_gpu *gpu, const bench_array *array, bench_candidate *c, const cr_partial *exact) {
    uint64_t out[2] = {0, 0}, first[2] = {0, 0};
    bool same = true;
    int f = reserve_cub(gpu, array, c);
    for (int run = 0; run < RUNS && f == 0 && c->answer != ANSWER_WRONG; run++) {
        f = (int)cudaMemsetAsync(gpu->out, 0, sizeof out, stream_of(gpu));
        if (f == 0) f = enqueue(gpu, array, c, gpu->arena);
        if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
        if (f == 0) f = (int)cudaMemcpy(out, gpu->out, sizeof out, cudaMemcpyDeviceToHost);
        if (f == 0) bench_compare(exact, op_of(array), out, array->dtype, c);
        if (run == 0) memcpy(first, out, sizeof out);
        same = same && memcmp(first, out, sizeof out) == 0;
    }
    if (!same && c->answer != ANSWER_WRONG)
        c->answer = c->variant == BENCH_NOT_GUARANTEED ? ANSWER_VARIES : ANSWER_WRONG;
    return f;
}

int bench_judge(bench_gpu *gpu, const bench_array *array, bench_candidate *c, const cr_partial *exact) {
    uint64_t out[2] = {0, 0};
    if (c->group == GROUP_READ) return 0;
    if (c->group == GROUP_CUB) return told(judge_cub(gpu, array, c, exact), c->name);
    if (c->group == GROUP_FOLD) return told(judge_fold(gpu, array, c, exact), c->name);
    if (c->group == GROUP_LADDER) {
        const cr_ladder_job job = {c->name, op_of(array), array->dtype, gpu->arena, array->n};
        cr_value value;
        bool is_exact;
        cr_error error = {CR_OK, ""};
        if (cr_ladder_run(gpu->ladder, &job, gpu->stream, &value, &is_exact, &error) != CR_OK) {
            fprintf(stderr, "cured-bench: %s\n", error.text);
            return 1;
        }
        if (is_exact)
            bench_compare_value(exact, &value, c);
        else
            bench_compare(exact, op_of(array), value.bytes, value.dtype, c);
        return 0;
    }
    int f = call_once(gpu, array, c, gpu->arena, out);
    if (f == 0) f = (int)cudaStreamSynchronize(stream_of(gpu));
    if (f == 0) bench_compare(exact, op_of(array), out, array->dtype, c);
    return told(f, c->name);
}
