/* tune_pairs: the kernels of pairs (walk/paired.cuh) with several shapes, beside a bare read of both arrays. By hand; not a test.
 *
 * usage: tune_pairs [BYTES]      of each array; 1 GiB unless it is given
 * Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/walk/paired.cuh"

enum { ROUNDS = 9 };
static uint64_t bytes = 1ull << 30;
static uint8_t *first, *second;
static cudaStream_t stream;
static cr_gpu_state *state;
static cr_fold_slot *slot;
static uint32_t multiprocessors;
static double read_us;

static void check(int failure) {
    if (failure == cudaSuccess) return;
    printf("%s\n", cudaGetErrorString((cudaError_t)failure));
    exit(failure == cudaErrorNoDevice || failure == cudaErrorInsufficientDriver ? 77 : 1);
}

CR_DEVICE uint32_t drawn(uint64_t x) {
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32);
}

/* Normal values. */
template <cr_dtype D> __global__ void fill(void *to, uint64_t n, uint64_t seed) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x) {
        const float u = ((float)(drawn(3 * i + seed) >> 8) + 0.5f) * 0x1p-24f, v = (float)drawn(3 * i + 1 + seed) * 0x1p-31f;
        const double x = (double)(sqrtf(-2 * logf(u)) * cospif(v)) * (1 + drawn(3 * i + 2 + seed) * 0x1p-52);
        if (D == CR_F64) ((double *)to)[i] = x;
        if (D == CR_F32) ((float *)to)[i] = (float)x;
        if (D == CR_F16) ((__half *)to)[i] = __float2half((float)x);
        if (D == CR_BF16) ((uint16_t *)to)[i] = (uint16_t)(__float_as_uint((float)x) >> 16);
    }
}

__global__ void bare_read(const uint4 *a, const uint4 *b, uint64_t n, uint32_t *out) {
    uint32_t all = 0;
    for (uint64_t i = (uint64_t)blockIdx.x * 1024 + threadIdx.x; i < n; i += (uint64_t)gridDim.x * 1024) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const uint4 v = a[i + j * 256], w = b[i + j * 256];
            all ^= v.x ^ v.y ^ v.z ^ v.w ^ w.x ^ w.y ^ w.z ^ w.w;
        }
    }
    if (all == 0x12345678) *out = all;
}

/* Microseconds, the median of some. */
template <class Run> static double timed(Run run) {
    cudaEvent_t begin, end;
    float took[ROUNDS];
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    for (int round = 0; round < ROUNDS; round++) {
        check(cudaEventRecord(begin, stream));
        run();
        check(cudaEventRecord(end, stream));
        check(cudaStreamSynchronize(stream));
        check(cudaEventElapsedTime(&took[round], begin, end));
    }
    std::sort(took, took + ROUNDS);
    return took[ROUNDS / 2] * 1e3;
}

/* skew: how many bytes the second array lies behind a multiple of 16. */
template <class A> static void tell(const char *name, cr_dtype dtype, size_t skew) {
    const double us = timed([&] {
        cr_fold_args args;
        cr_fold_prepare(&args, dtype, first, bytes / cr_dtype_size(dtype) - 64, 0, multiprocessors, state, slot);
        args.second = second + skew;
        check(cr_paired_launch<A>(&args, stream));
    });
    printf("%-24s %8.1f us, %.3f of the read\n", name, us, read_us / us);
}

template <class T, cr_dtype D> static void tell_type(const char *name) {
    const uint64_t n = bytes / cr_dtype_size(D);
    fill<D><<<2048, 256, 0, stream>>>(first, n, 1);
    fill<D><<<2048, 256, 0, stream>>>(second, n, 1ull << 50);
    check(cudaStreamSynchronize(stream));
    printf("%s: vectors in flight, blocks\n", name);
    tell<cr_paired<T, CR_PAIR_DOT, 2, 4>>("dot 2, 4", D, 0);
    tell<cr_paired<T, CR_PAIR_DOT, 2, 3>>("dot 2, 3", D, 0);
    tell<cr_paired<T, CR_PAIR_DOT, 2, 3>>("dot 2, 3, skew", D, cr_dtype_size(D));
    tell<cr_paired<T, CR_PAIR_DOT, 4, 2>>("dot 4, 2", D, 0);
    tell<cr_paired<T, CR_PAIR_DOT, 4, 2>>("dot 4, 2, skew", D, cr_dtype_size(D));
    tell<cr_paired<T, CR_PAIR_SQDIST, 2, 3>>("sqdist 2, 3", D, 0);
    tell<cr_paired<T, CR_PAIR_SQDIST, 2, 2>>("sqdist 2, 2", D, 0);
    tell<cr_paired<T, CR_PAIR_SQDIST, 4, 2>>("sqdist 4, 2", D, 0);
    tell<cr_averaged<T, 2, 2>>("average 2, 2", D, 0);
    tell<cr_averaged<T, 2, 3>>("average 2, 3", D, 0);
    tell<cr_averaged<T, 4, 2>>("average 4, 2", D, 0);
}

int main(int argc, char **argv) {
    cudaDeviceProp device;
    uint32_t *out;
    if (argc > 1) bytes = strtoull(argv[1], nullptr, 0) / 65536 * 65536;
    check(cudaGetDeviceProperties(&device, 0));
    multiprocessors = (uint32_t)device.multiProcessorCount;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaMalloc(&first, bytes));
    check(cudaMalloc(&second, bytes + 64));
    check(cudaMalloc(&state, sizeof *state));
    check(cudaMemset(state, 0, sizeof *state));
    check(cudaMalloc(&slot, sizeof *slot));
    check(cudaMalloc(&out, sizeof *out));
    for (uint32_t blocks = 2; blocks <= 16; blocks *= 2) {
        const double us = timed([&] {
            bare_read<<<multiprocessors * blocks, 256, 0, stream>>>((const uint4 *)first, (const uint4 *)second, bytes / 16, out);
        });
        read_us = read_us == 0 ? us : std::min(read_us, us);
    }
    printf("%s, 2 arrays of %llu bytes: a read takes %.1f us\n", device.name, (unsigned long long)bytes, read_us);
    tell_type<cr_f32, CR_F32>("f32");
    tell_type<cr_f64, CR_F64>("f64");
    tell_type<cr_f16, CR_F16>("f16");
    tell_type<cr_bf16, CR_BF16>("bf16");
    return 0;
}
