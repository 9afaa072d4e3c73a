/* tune_folds: how fast shapes of a fold are, cold, beside CUB's sum of the same type: what kernels/cuda/plan.c was chosen from.
 * Not a test: run by hand. Each figure is the median of several replays of a graph of launches over rotating buffers.
 *
 * usage: tune_folds [max GiB]
 * Thread: one. Owner: this file. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <cuda_fp16.h>

#include <cub/device/device_reduce.cuh>

#include "kernels/cuda/walk/burst_float.cuh"

#define CHECK(call)                                                                                       \
    do {                                                                                                  \
        cudaError_t failure_ = (cudaError_t)(call);                                                       \
        if (failure_ != cudaSuccess) printf("%s: %s\n", #call, cudaGetErrorString(failure_)), std::exit(1); \
    } while (0)

using Launch = std::function<void(const void *, uint64_t, cudaStream_t)>; /* of so many bytes */

static uint8_t *memory;
static uint64_t memory_bytes;
static void *flush;
static cr_gpu_state *state;
static cr_fold_slot *slot;
static uint32_t sms;
enum { FLUSH = 256 << 20 };

__device__ uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* kind 0: normal float32; 1: normal float64; 2: any bits; 3: normal bfloat16; 4: normal float16 */
__global__ void fill(uint64_t *to, uint64_t words, int kind) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words; i += (uint64_t)gridDim.x * blockDim.x) {
        uint64_t r = mix((i + 1) * 0x9e3779b97f4a7c15u);
        float a = ((uint32_t)r + 1.0f) * 0x1p-32f, b = (uint32_t)(r >> 32) * 0x1p-32f;
        float x = sqrtf(-2 * logf(a)) * cospif(2 * b), y = sqrtf(-2 * logf(a)) * sinpif(2 * b);
        double wide = (double)x + (double)(r & 0xffffff) * 0x1p-50;
        if (kind >= 3) {
            uint32_t a16, b16;
            if (kind == 3) a16 = __float_as_uint(x) >> 16, b16 = __float_as_uint(y) >> 16;
            else a16 = __half_as_ushort(__float2half_rn(x)), b16 = __half_as_ushort(__float2half_rn(y));
            to[i] = (a16 | (uint64_t)b16 << 16) * 0x100000001ull;
            continue;
        }
        to[i] = kind == 2 ? r : kind == 1 ? (uint64_t)__double_as_longlong(wide)
                                          : __float_as_uint(x) | (uint64_t)__float_as_uint(y) << 32;
    }
}

static double seconds(const Launch &launch, uint64_t bytes) {
    uint64_t places = std::min<uint64_t>(memory_bytes / bytes, 200), count = std::max<uint64_t>(places, 2);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t from, to;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (uint64_t i = 0; i < count; i++) launch(memory + i % places * bytes, bytes, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<double> times;
    for (int i = 0; i < 6; i++) {
        CHECK(cudaMemsetAsync(flush, i, FLUSH, stream));
        CHECK(cudaEventRecord(from, stream));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaEventRecord(to, stream));
        CHECK(cudaStreamSynchronize(stream));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, from, to));
        if (i > 0) times.push_back(ms * 1e-3 / count);
    }
    std::sort(times.begin(), times.end());
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
    return times[times.size() / 2];
}

/* per: vectors of a block; 0: as the plan has it, and chunks are chunks; below 100: so many waves of runs. */
template <class A> static Launch fold(uint64_t per) {
    return [per](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_fold_args args;
        cr_dtype dtype = A::SIZE == 8 ? CR_F64 : A::SIZE == 4 ? CR_F32 : CR_BF16;
        cr_fold_prepare(&args, dtype, data, bytes / A::SIZE, 0, sms, state, slot);
        uint64_t vectors = args.plan.vectors;
        if (per != 0) {
            uint64_t now = per;
            if (per < 100) now = (vectors / (per * sms * A::BLOCKS) + 256) / 256 * 256;
            args.plan.per_block = now;
            args.plan.blocks = (uint32_t)((vectors + now - 1) / now);
        }
        if (args.plan.blocks <= CR_GPU_MAX_BLOCKS * 2) CHECK(cr_walk_launch<A>(&args, stream));
    };
}

__global__ void nothing(const float *, float *to) {
    if (threadIdx.x == 0) *to = 0;
}

/* The least that a sum can do: the walk's floor. */
template <int U, int RESIDENT> struct plain_sum {
    static constexpr int SIZE = 4, UNROLL = U, BLOCKS = RESIDENT;
    static constexpr bool SELF = true;
    struct Shared {
        float warp[8];
    };
    struct Sample {};
    float s;
    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }
    CR_DEVICE void begin(const cr_fold_args &, Shared &, Sample) { s = 0; }
    template <int N> CR_DEVICE void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &) {
#pragma unroll
        for (int j = 0; j < N; j++) s += (__uint_as_float(v[j].x) + __uint_as_float(v[j].y)) + (__uint_as_float(v[j].z) + __uint_as_float(v[j].w));
    }
    CR_DEVICE void one(uint64_t bits, uint64_t, Shared &) { s += __uint_as_float((uint32_t)bits); }
    CR_DEVICE void publish(const cr_fold_args &args, Shared &shared) {
        for (int i = 16; i > 0; i /= 2) s += __shfl_xor_sync(~0u, s, i);
        if (threadIdx.x % 32 == 0) shared.warp[threadIdx.x / 32] = s;
        __syncthreads();
        if (threadIdx.x != 0) return;
        for (int i = 1; i < 8; i++) s += shared.warp[i];
        if (args.plan.blocks == 1) *(float *)args.slot = s;
        else atomicAdd((float *)args.slot, s);
    }
};

template <class T> static Launch cub_sum() {
    static void *scratch;
    static size_t room = 0;
    if (scratch == nullptr) {
        CHECK(cub::DeviceReduce::Sum(nullptr, room, (const T *)nullptr, (T *)nullptr, (uint64_t)1 << 30));
        room += 1 << 20;
        CHECK(cudaMalloc(&scratch, room));
    }
    return [](const void *data, uint64_t bytes, cudaStream_t stream) {
        CHECK(cub::DeviceReduce::Sum(scratch, room, (const T *)data, (T *)slot, bytes / sizeof(T), stream));
    };
}

static std::vector<uint64_t> sizes;

static void row(const char *name, const Launch &launch) {
    printf("%-28s", name);
    for (uint64_t bytes : sizes) {
        double t = seconds(launch, bytes);
        printf(bytes < 32 << 20 ? " %6.2fu" : " %7.0f", bytes < 32 << 20 ? t * 1e6 : bytes / t * 1e-9);
    }
    printf("\n");
    fflush(stdout);
}

/* A short sum with V vectors a thread at once; LONG: twice as many, in turn. Sizes whose blocks its words do not count are left out. */
template <class E, int V, bool LONG = false> static void brief(const char *name) {
    const uint64_t per = CR_GPU_THREADS * V * (LONG ? 2 : 1);
    std::vector<uint64_t> all = sizes;
    while (!sizes.empty() && sizes.back() > per * CR_GPU_VECTOR * CR_BURST_FLOAT_BLOCKS) sizes.pop_back();
    row(name, [per](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_fold_args args;
        cr_fold_prepare(&args, E::SIZE == 8 ? CR_F64 : E::SIZE == 4 ? CR_F32 : CR_BF16, data, bytes / E::SIZE, 0, sms, state, slot);
        args.plan.per_block = per;
        args.plan.blocks = (uint32_t)((args.plan.vectors + per - 1) / per);
        CHECK((cr_burst_float_start<E, V, LONG>(args, stream)));
    });
    sizes = all;
}

static void head(const char *what) {
    printf("\n%-28s", what);
    for (uint64_t bytes : sizes) printf(bytes < 1 << 20 ? " %6lluK" : " %6lluM", bytes < 1 << 20 ? (unsigned long long)bytes >> 10 : (unsigned long long)bytes >> 20);
    printf("\n");
}

static void data(int kind) {
    fill<<<sms * 8, 256>>>((uint64_t *)memory, memory_bytes / 8, kind);
    CHECK(cudaDeviceSynchronize());
}

template <class A> static void shapes(const char *name) {
    char text[64];
    static const struct {
        const char *name;
        uint64_t per;
    } ways[] = {{"plan", 0}, {"1", 256}, {"2", 512}, {"4", 1024}, {"tile", A::UNROLL * 256}, {"2 tiles", A::UNROLL * 512}, {"4 tiles", A::UNROLL * 1024}, {"1 wave", 1}, {"2 waves", 2}, {"4 waves", 4}};
    for (auto &way : ways) {
        snprintf(text, sizeof text, "%s %d×%d %s", name, A::UNROLL, A::BLOCKS, way.name);
        row(text, fold<A>(way.per));
    }
}

int main(int argc, char **argv) {
    memory_bytes = (argc > 1 ? strtoull(argv[1], nullptr, 0) : 8) << 30;
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    sms = (uint32_t)properties.multiProcessorCount;
    CHECK(cudaMalloc(&memory, memory_bytes));
    CHECK(cudaMalloc(&flush, FLUSH));
    CHECK(cudaMalloc(&state, sizeof *state));
    CHECK(cudaMemset(state, 0, sizeof *state));
    CHECK(cudaMalloc(&slot, sizeof *slot));
    for (uint64_t bytes = 4096; bytes <= memory_bytes / 2; bytes *= 4) sizes.push_back(bytes);
    data(0);
    head("f32, GB/s");
    row("nothing", [](const void *data, uint64_t, cudaStream_t stream) { nothing<<<1, 256, 0, stream>>>((const float *)data, (float *)slot); });
    row("cub f32", cub_sum<float>());
    shapes<plain_sum<8, 4>>("plain");
    brief<cr_f32, 1>("f32 short, 1");
    brief<cr_f32, 2>("f32 short, 2");
    brief<cr_f32, 4>("f32 short, 4");
    brief<cr_f32, 4, true>("f32 short, 4 twice");
    row("f32 4x4", fold<cr_float_sum<cr_f32, CR_SUM_PLAIN>>(0));
    row("f32 8x3", fold<cr_float_sum<cr_f32, CR_SUM_PLAIN, 8, 3>>(0));
    row("f32 sumsq", fold<cr_float_sum<cr_f32, CR_SUM_SQUARE>>(0));
    row("f32 sumsq 8x3", fold<cr_float_sum<cr_f32, CR_SUM_SQUARE, 8, 3>>(0));
    data(3);
    row("bf16", fold<cr_float_sum<cr_bf16, CR_SUM_PLAIN>>(0));
    data(4);
    row("f16", fold<cr_float_sum<cr_f16, CR_SUM_PLAIN>>(0));
    data(1);
    row("cub f64", cub_sum<double>());
    brief<cr_f64, 1>("f64 short, 1");
    brief<cr_f64, 2>("f64 short, 2");
    brief<cr_f64, 4>("f64 short, 4");
    brief<cr_f64, 4, true>("f64 short, 4 twice");
    row("f64 4x4", fold<cr_float_sum<cr_f64, CR_SUM_PLAIN>>(0));
    row("f64 8x3", fold<cr_float_sum<cr_f64, CR_SUM_PLAIN, 8, 3>>(0));
    row("f64 sumsq", fold<cr_float_sum<cr_f64, CR_SUM_SQUARE>>(0));
    data(2);
    sizes = {1 << 20, 16 << 20, 256 << 20, 1u << 30};
    head("any bits");
    row("f32 sum", fold<cr_float_sum<cr_f32, CR_SUM_PLAIN>>(0));
    row("f64 sum", fold<cr_float_sum<cr_f64, CR_SUM_PLAIN>>(0));
    row("bf16 sum", fold<cr_float_sum<cr_bf16, CR_SUM_PLAIN>>(0));
    row("f32 sumsq", fold<cr_float_sum<cr_f32, CR_SUM_SQUARE>>(0));
    row("f64 sumsq", fold<cr_float_sum<cr_f64, CR_SUM_SQUARE>>(0));
    CHECK(cudaDeviceSynchronize());
    return 0;
}
