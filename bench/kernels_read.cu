// kernels_read: the floor: loops that read every byte once, in 16-byte loads, and do next to nothing with it; and the filling of
// the buffers.
//
// Which shape reads best depends on the length: short arrays want a block for every few kilobytes, long ones a contiguous run a block.
// All are run, and the best of them at each size is what shares are taken of.
//
// Thread: main. Owner: the caller owns all memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "bench/kernels_peer.h"

namespace {

constexpr unsigned THREADS = 256;

// A block's run of vectors, LOADS in flight in each thread.
template <unsigned LOADS>
__device__ unsigned read_run(const uint4 *in, uint64_t first, uint64_t last) {
    unsigned seen = 0;
    uint64_t i = first + threadIdx.x;
    for (; i + (LOADS - 1) * THREADS < last; i += LOADS * THREADS) {
        uint4 x[LOADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) x[k] = in[i + k * THREADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) seen ^= x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
    }
    for (; i < last; i += THREADS) {
        const uint4 x = in[i];
        seen ^= x.x ^ x.y ^ x.z ^ x.w;
    }
    return seen;
}

// The store is for the compiler's eyes: this value does not come up.
template <unsigned LOADS>
__global__ void __launch_bounds__(THREADS) read_kernel(const uint4 *in, uint64_t vectors, uint64_t per_block, unsigned *out) {
    const uint64_t first = blockIdx.x * per_block, last = first + per_block < vectors ? first + per_block : vectors;
    if (read_run<LOADS>(in, first, last) == 0x5bd1e995u) *out = 1;
}

struct variant {
    const char *name;
    unsigned loads, blocks_per_sm; // 0: a block for every loads·256 vectors
} const variants[] = {{"tiles, 4 loads", 4, 0},  {"tiles, 8 loads", 8, 0}, {"runs, 8 loads, 4 blocks", 8, 4},
                      {"runs, 8 loads, 2 blocks", 8, 2}, {"runs, 4 loads, 8 blocks", 4, 8}};
constexpr unsigned VARIANTS = sizeof variants / sizeof variants[0];

__device__ uint64_t mixed(uint64_t z) { // splitmix64's output function
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

__device__ double normal(uint64_t r) {
    const double a = ((r >> 32) + 1) * 0x1p-32, b = (r & 0xffffffffu) * 0x1p-32;
    return sqrt(-2.0 * log(a)) * cospi(2 * b);
}

__device__ void put(double *p, uint64_t r) { *p = normal(r); }
__device__ void put(float *p, uint64_t r) { *p = (float)normal(r); }
__device__ void put(__nv_fp8_e4m3 *p, uint64_t r) { *p = __nv_fp8_e4m3((float)normal(r)); }
__device__ void put(__nv_fp8_e5m2 *p, uint64_t r) { *p = __nv_fp8_e5m2((float)normal(r)); }
__device__ void put(__half *p, uint64_t r) { *p = __float2half_rn((float)normal(r)); }
__device__ void put(__nv_bfloat16 *p, uint64_t r) { *p = __float2bfloat16_rn((float)normal(r)); }
template <class T>
__device__ void put(T *p, uint64_t r) {
    *p = (T)(r >> 17);
}

template <class T>
__global__ void fill_kernel(T *out, uint64_t n, uint64_t seed) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) put(out + i, mixed(seed + i));
}

template <class T>
int fill(void *out, uint64_t n, uint64_t seed, cudaStream_t stream) {
    fill_kernel<<<1024, THREADS, 0, stream>>>((T *)out, n, seed);
    return (int)cudaGetLastError();
}

} // namespace

extern "C" unsigned bench_read_variants(void) { return VARIANTS; }
extern "C" const char *bench_read_name(unsigned variant) { return variants[variant].name; }

extern "C" int bench_read(unsigned number, const void *in, uint64_t bytes, void *out, unsigned multiprocessors,
                          void *stream) {
    const variant v = variants[number];
    const uint64_t vectors = bytes / 16, tile = v.loads * THREADS;
    uint64_t blocks = (vectors + tile - 1) / tile, most = (uint64_t)multiprocessors * v.blocks_per_sm;
    if (v.blocks_per_sm != 0 && blocks > most) blocks = most;
    if (blocks == 0) blocks = 1;
    const uint64_t per_block = ((vectors + blocks - 1) / blocks + THREADS - 1) / THREADS * THREADS;
    auto kernel = v.loads == 8 ? read_kernel<8> : read_kernel<4>;
    kernel<<<(unsigned)blocks, THREADS, 0, (cudaStream_t)stream>>>((const uint4 *)in, vectors, per_block, (unsigned *)out);
    return (int)cudaGetLastError();
}

extern "C" int bench_fill(cr_dtype dtype, void *out, uint64_t n, uint64_t seed, void *stream) {
    cudaStream_t s = (cudaStream_t)stream;
    switch (cr_dtype_format(dtype)) {
        case CR_FORMAT_F16:
            return fill<__half>(out, n, seed, s);
        case CR_FORMAT_BF16:
            return fill<__nv_bfloat16>(out, n, seed, s);
        case CR_FORMAT_F32:
            return fill<float>(out, n, seed, s);
        case CR_FORMAT_F64:
            return fill<double>(out, n, seed, s);
        case CR_FORMAT_F8_E4M3:
            return fill<__nv_fp8_e4m3>(out, n, seed, s);
        case CR_FORMAT_F8_E5M2:
            return fill<__nv_fp8_e5m2>(out, n, seed, s);
        case CR_FORMAT_INT:
            break;
    }
    return fill<uint64_t>(out, n * cr_dtype_size(dtype) / 8, seed, s); // any bits
}
