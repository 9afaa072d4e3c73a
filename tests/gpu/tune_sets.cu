/* tune_sets: families that have no kernel together: one after the other over the whole array, or over chunks small enough that the
 * second finds in the L2 cache what the first has read. By hand; not a test.
 *
 * usage: tune_sets
 * Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/plan/fold.h"

enum { ROUNDS = 7 };
static const uint64_t BYTES = 1ull << 30;

static void check(int failure) {
    if (failure == cudaSuccess) return;
    printf("%s\n", cudaGetErrorString((cudaError_t)failure));
    exit(failure == cudaErrorNoDevice || failure == cudaErrorInsufficientDriver ? 77 : 1);
}

/* Microseconds of one pass over all of it, the best of some. */
static double timed(cudaStream_t stream, cr_dtype dtype, const uint32_t *families, uint64_t chunk, const uint8_t *data,
                    cr_gpu_state *state, cr_fold_slot *slot, uint32_t multiprocessors) {
    const uint64_t size = cr_dtype_size(dtype);
    cudaGraph_t graph;
    cudaGraphExec_t made;
    cudaEvent_t begin, end;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    bool follows = false;
    for (uint64_t at = 0; at < BYTES; at += chunk) {
        const uint64_t bytes = BYTES - at < chunk ? BYTES - at : chunk;
        for (const uint32_t *family = families; *family; family++) {
            cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
            uint32_t count = 0;
            if (cr_fold_launchers(dtype, *family, 0, launchers, &count, nullptr) != CR_OK) exit(1);
            cr_fold_args args;
            cr_fold_prepare(&args, dtype, data + at, bytes / size, at / size, multiprocessors, state, slot);
            args.follows = follows;
            follows = true;
            check(launchers[0](&args, stream));
        }
    }
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&made, graph, 0));
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    float best = 1e30f;
    for (int round = 0; round < ROUNDS; round++) {
        float took;
        check(cudaEventRecord(begin, stream));
        check(cudaGraphLaunch(made, stream));
        check(cudaEventRecord(end, stream));
        check(cudaStreamSynchronize(stream));
        check(cudaEventElapsedTime(&took, begin, end));
        best = took < best ? took : best;
    }
    check(cudaGraphExecDestroy(made));
    check(cudaGraphDestroy(graph));
    return best * 1e3;
}

int main() {
    static const struct {
        const char *name;
        cr_dtype dtype;
        uint32_t families[5];
    } sets[] = {
        {"f32 sum, absolutes", CR_F32, {CR_FAM_SUM, CR_FAM_SUMABS}},
        {"f32 sum, squares, extrema, counts", CR_F32, {CR_FAM_SUM, CR_FAM_SUMSQ, CR_FAM_EXTREMA, CR_FAM_COUNTS}},
        {"f16 sum, squares, extrema, counts", CR_F16, {CR_FAM_SUM, CR_FAM_SUMSQ, CR_FAM_EXTREMA, CR_FAM_COUNTS}},
        {"i32 sum, counts, bits", CR_I32, {CR_FAM_SUM, CR_FAM_COUNTS, CR_FAM_BITS}},
        {"i32 sum, absolutes", CR_I32, {CR_FAM_SUM, CR_FAM_SUMABS}},
    };
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0));
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    void *data, *state, *slot;
    check(cudaMalloc(&data, BYTES));
    check(cudaMemset(data, 0x3c, BYTES));
    check(cudaMalloc(&state, sizeof(cr_gpu_state)));
    check(cudaMemset(state, 0, sizeof(cr_gpu_state)));
    check(cudaMallocHost(&slot, sizeof(cr_fold_slot)));
    check(cudaDeviceSynchronize());
    printf("%s, L2 %d MiB; 1 GiB, us: whole array, then chunks of 8, 16, 24, 32, 48, 64, 128 MiB\n", device.name,
           device.l2CacheSize >> 20);
    static const uint64_t mib[] = {1024, 8, 16, 24, 32, 48, 64, 128};
    for (const auto &set : sets) {
        printf("%-36s", set.name);
        for (uint64_t chunk : mib) {
            printf(" %8.1f", timed(stream, set.dtype, set.families, chunk << 20, (const uint8_t *)data, (cr_gpu_state *)state,
                                   (cr_fold_slot *)slot, (uint32_t)device.multiProcessorCount));
        }
        printf("\n");
    }
    return 0;
}
