/* tune_extrema: how fast shapes of the kernels of minimum, maximum and integer sums are, cold, beside CUB's and read loops: what they
 * were chosen from. Not a test: run by hand. Candidates take turns; figures are medians in microseconds. "burst T×L": blocks of T
 * threads with L loads each, all in flight; "walk B, …": the walk with B blocks on a multiprocessor.
 *
 * usage: tune_extrema
 * Thread: one. Owner: this file. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cub/device/device_reduce.cuh>

#include "kernels/cuda/walk/burst.cuh"

#define CHECK(call)                                                                                         \
    do {                                                                                                    \
        cudaError_t failure_ = (cudaError_t)(call);                                                         \
        if (failure_ != cudaSuccess) printf("%s: %s\n", #call, cudaGetErrorString(failure_)), std::exit(1); \
    } while (0)

using Launch = std::function<void(const void *, uint64_t, cudaStream_t)>; /* of so many bytes */
struct candidate {
    std::string name;
    Launch launch;
    uint64_t least, most; /* bytes */
    std::vector<double> times;
    cudaGraphExec_t graph;
};

static uint8_t *memory;
static void *flush, *scratch;
static size_t room;
static cr_gpu_state *state;
static cr_fold_slot *slot;
static uint32_t sms;
enum { FLUSH = 256 << 20, ROUNDS = 9 };
static const uint64_t LARGEST = 2ull << 30;

/* kind 0: numbers around zero as f32; 1: as f64; 2: any bits */
__global__ void fill(uint64_t *to, uint64_t words, int kind) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < words; i += (uint64_t)gridDim.x * blockDim.x) {
        uint64_t r = (i + 1) * 0x9e3779b97f4a7c15u;
        r = (r ^ (r >> 30)) * 0xbf58476d1ce4e5b9u;
        r = (r ^ (r >> 27)) * 0x94d049bb133111ebu;
        r ^= r >> 31;
        float a = ((uint32_t)r + 1.0f) * 0x1p-32f, b = (uint32_t)(r >> 32) * 0x1p-32f;
        float x = sqrtf(-2 * logf(a)) * cospif(2 * b), y = sqrtf(-2 * logf(a)) * sinpif(2 * b);
        double wide = (double)x + (double)(r & 0xffffff) * 0x1p-50;
        to[i] = kind == 2   ? r
                : kind == 1 ? (uint64_t)__double_as_longlong(wide)
                            : __float_as_uint(x) | (uint64_t)__float_as_uint(y) << 32;
    }
}

template <unsigned LOADS> __global__ void __launch_bounds__(256) read_kernel(const uint4 *in, uint64_t vectors, uint64_t per, unsigned *out) {
    const uint64_t last = min(vectors, (blockIdx.x + 1) * per);
    unsigned seen = 0;
    for (uint64_t i = blockIdx.x * per + threadIdx.x; i < last; i += LOADS * 256) {
        uint4 x[LOADS];
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) x[k] = i + k * 256 < last ? in[i + k * 256] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (unsigned k = 0; k < LOADS; k++) seen ^= x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
    }
    if (seen == 0x5bd1e995u) *out = 1;
}

static Launch read_loop(bool runs) {
    return [runs](const void *data, uint64_t bytes, cudaStream_t stream) {
        uint64_t vectors = bytes / 16, blocks = (vectors + 1023) / 1024;
        if (runs && blocks > sms * 4) blocks = sms * 4;
        uint64_t per = ((vectors + blocks - 1) / blocks + 255) / 256 * 256;
        if (runs) read_kernel<8><<<(unsigned)blocks, 256, 0, stream>>>((const uint4 *)data, vectors, per, (unsigned *)scratch);
        else read_kernel<4><<<(unsigned)blocks, 256, 0, stream>>>((const uint4 *)data, vectors, per, (unsigned *)scratch);
    };
}

static cr_fold_slot *slot_here; /* in device memory */

/* As it is launched. */
static Launch fold(cr_dtype dtype, cr_fold_launcher launcher, bool here = false) {
    return [=](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_fold_args args;
        cr_fold_prepare(&args, dtype, data, bytes / cr_dtype_size(dtype), 0, sms, state, here ? slot_here : slot);
        CHECK(launcher(&args, stream));
    };
}

/* What the daemon takes. */
static cr_fold_launcher as_it_is(cr_dtype dtype, uint32_t family, uint32_t wants) {
    cr_fold_launcher launchers[CR_FOLD_LAUNCHES];
    uint32_t count = 0;
    if (cr_fold_launchers(dtype, family, wants, launchers, &count, nullptr) != CR_OK) exit(1);
    return launchers[0];
}

template <class A> static Launch burst(cr_dtype dtype, uint32_t loads) {
    return [=](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_burst_args args;
        cr_fold_prepare(&args.fold, dtype, data, bytes / A::SIZE, 0, sms, state, slot);
        cr_fold_plan &plan = args.fold.plan;
        plan.per_block = loads * A::THREADS;
        plan.blocks = (uint32_t)((plan.vectors + plan.per_block - 1) / plan.per_block);
        args = {(const uint4 *)data, (uint32_t)plan.vectors, (uint32_t)plan.per_block, 0, args.fold};
        cr_burst<A><<<plan.blocks, A::THREADS, 0, stream>>>(args);
    };
}

/* The walk with other numbers of blocks on a multiprocessor; per: vectors of a block, 0: chunks. */
template <class A, int RESIDENT, bool CHUNKS> struct shaped : A {
    static constexpr int BLOCKS = RESIDENT;
    static constexpr bool CHUNKED = CHUNKS;
};
template <class A> static Launch walk(cr_dtype dtype, uint64_t per) {
    return [=](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_fold_args args;
        cr_fold_prepare(&args, dtype, data, bytes / A::SIZE, 0, sms, state, slot);
        if (per == 0) cr_fold_plan_chunks(&args.plan, sms, A::BLOCKS);
        else args.plan.per_block = per, args.plan.blocks = (uint32_t)((args.plan.vectors + per - 1) / per);
        if (args.plan.blocks <= 0xffff) cr_walk<A><<<args.plan.blocks, CR_GPU_THREADS, 0, stream>>>(args);
    };
}

template <class T> static Launch cub_sum() {
    return [](const void *data, uint64_t bytes, cudaStream_t stream) {
        CHECK(cub::DeviceReduce::Sum(scratch, room, (const T *)data, (T *)((char *)scratch + room), (int64_t)(bytes / sizeof(T)), stream));
    };
}
template <class T> static Launch cub_max() {
    return [](const void *data, uint64_t bytes, cudaStream_t stream) {
        CHECK(cub::DeviceReduce::Max(scratch, room, (const T *)data, (T *)((char *)scratch + room), (int64_t)(bytes / sizeof(T)), stream));
    };
}
template <class T> static Launch cub_argmax() {
    return [](const void *data, uint64_t bytes, cudaStream_t stream) {
        char *to = (char *)scratch + room;
        CHECK(cub::DeviceReduce::ArgMax(scratch, room, (const T *)data, (T *)(to + 8), (int64_t *)to, (int64_t)(bytes / sizeof(T)), stream));
    };
}

static void capture(candidate &c, uint64_t bytes, cudaStream_t stream) {
    uint64_t count = std::clamp<uint64_t>((64u << 20) / bytes, 2, 128);
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (uint64_t i = 0; i < count; i++) c.launch(memory + i * bytes, bytes, stream);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&c.graph, graph, 0));
    CHECK(cudaGraphDestroy(graph));
}

static void measure(std::vector<candidate> &all, uint64_t bytes, cudaStream_t stream) {
    cudaEvent_t from, to;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    uint64_t count = std::clamp<uint64_t>((64u << 20) / bytes, 2, 128);
    for (candidate &c : all) c.times.clear();
    for (candidate &c : all)
        if (bytes >= c.least && bytes <= c.most) capture(c, bytes, stream);
    for (int round = 0; round <= ROUNDS; round++) {
        for (candidate &c : all) {
            if (bytes < c.least || bytes > c.most) continue;
            read_loop(true)(flush, FLUSH, stream);
            CHECK(cudaEventRecord(from, stream));
            CHECK(cudaGraphLaunch(c.graph, stream));
            CHECK(cudaEventRecord(to, stream));
            CHECK(cudaStreamSynchronize(stream));
            float ms = 0;
            CHECK(cudaEventElapsedTime(&ms, from, to));
            if (round > 0) c.times.push_back(ms * 1e3 / (double)count);
        }
    }
    for (candidate &c : all) {
        if (c.times.empty()) continue;
        CHECK(cudaGraphExecDestroy(c.graph));
        std::sort(c.times.begin(), c.times.end());
    }
}

static const uint64_t sizes[] = {4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30};

static void run(const char *what, int kind, std::vector<candidate> all) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    fill<<<4096, 256, 0, stream>>>((uint64_t *)memory, LARGEST / 8, kind);
    CHECK(cudaStreamSynchronize(stream));
    std::vector<std::vector<double>> table(all.size());
    for (uint64_t bytes : sizes) {
        measure(all, bytes, stream);
        for (size_t i = 0; i < all.size(); i++) table[i].push_back(all[i].times.empty() ? 0 : all[i].times[all[i].times.size() / 2]);
    }
    printf("%-26s", what);
    for (uint64_t bytes : sizes) printf("%9lluK", (unsigned long long)(bytes >> 10));
    printf("\n");
    for (size_t i = 0; i < all.size(); i++) {
        printf("%-26s", all[i].name.c_str());
        for (double t : table[i]) t > 0 ? printf("%10.2f", t) : printf("%10s", "");
        printf("\n");
    }
    fflush(stdout);
}

enum { MAX = CR_WANTS_MAX, AT = CR_WANTS_ARGMAX };
static const uint64_t ANY = ~0ull;

template <class A> static void add_bursts(std::vector<candidate> &all, cr_dtype dtype) {
    constexpr int T = A::THREADS;
    for (uint32_t loads = 1; loads <= 8; loads *= 2) {
        const uint64_t block = (uint64_t)loads * T * 16, least = loads == 1 ? 0 : block;
        char text[64];
        snprintf(text, sizeof text, "burst %dx%u", T, loads);
        all.push_back({text, burst<A>(dtype, loads), least, std::min<uint64_t>(block * sms * (1024 / T), 17 << 20), {}, {}});
    }
}
template <class A> static void add_walks(std::vector<candidate> &all, cr_dtype dtype) {
    const uint64_t from = 16 << 20;
    all.push_back({"walk 4, chunks", walk<shaped<A, 4, true>>(dtype, 0), from, ANY, {}, {}});
    all.push_back({"walk 4, 2048", walk<shaped<A, 4, false>>(dtype, 2048), from, ANY, {}, {}});
    all.push_back({"walk 4, 4096", walk<shaped<A, 4, false>>(dtype, 4096), from, ANY, {}, {}});
    all.push_back({"walk 4, 8192", walk<shaped<A, 4, false>>(dtype, 8192), from, ANY, {}, {}});
    all.push_back({"walk 5, 4096", walk<shaped<A, 5, false>>(dtype, 4096), from, ANY, {}, {}});
    all.push_back({"walk 5, 8192", walk<shaped<A, 5, false>>(dtype, 8192), from, ANY, {}, {}});
}

template <cr_dtype D, unsigned WANTED> static void extrema(const char *name, int kind, const Launch &peer) {
    std::vector<candidate> c = {{"cub", peer, 0, ANY, {}, {}}, {"as it is", fold(D, as_it_is(D, CR_FAM_EXTREMA, WANTED)), 0, ANY, {}, {}}};
    add_bursts<cr_burst_extrema<D, WANTED, 128>>(c, D);
    add_bursts<cr_burst_extrema<D, WANTED, 256>>(c, D);
    add_bursts<cr_burst_extrema<D, WANTED, 1024>>(c, D);
    run(name, kind, c);
}

int main() {
    int device;
    CHECK(cudaGetDevice(&device));
    cudaDeviceProp found;
    CHECK(cudaGetDeviceProperties(&found, device));
    sms = (uint32_t)found.multiProcessorCount;
    CHECK(cudaMalloc(&memory, LARGEST));
    CHECK(cudaMalloc(&flush, FLUSH));
    CHECK(cudaMalloc(&state, sizeof *state));
    CHECK(cudaMemset(state, 0, sizeof *state));
    CHECK(cudaMallocHost(&slot, sizeof *slot));
    CHECK(cudaMalloc(&slot_here, sizeof *slot_here));
    size_t need = 0;
    CHECK(cub::DeviceReduce::ArgMax(nullptr, need, (const double *)memory, (double *)nullptr, (int64_t *)nullptr, (int64_t)(LARGEST / 4)));
    room = (need + (1 << 16)) / 256 * 256;
    CHECK(cudaMalloc(&scratch, room + 256));
    std::vector<candidate> c = {{"read, tiles", read_loop(false), 0, ANY, {}, {}},
                                {"read, runs", read_loop(true), 0, ANY, {}, {}},
                                {"cub", cub_sum<int>(), 0, ANY, {}, {}},
                                {"as it is", fold(CR_I32, as_it_is(CR_I32, CR_FAM_SUM, 0)), 0, ANY, {}, {}},
                                {"to device memory", fold(CR_I32, as_it_is(CR_I32, CR_FAM_SUM, 0), true), 0, ANY, {}, {}}};
    add_bursts<cr_burst_sum<CR_I32, 128>>(c, CR_I32);
    add_bursts<cr_burst_sum<CR_I32, 256>>(c, CR_I32);
    add_walks<cr_self<cr_fold_sum<cr_sum_int<CR_I32, false>>>>(c, CR_I32);
    run("sum i32", 2, c);
    c = {{"cub", cub_sum<uint8_t>(), 0, ANY, {}, {}}, {"as it is", fold(CR_U8, as_it_is(CR_U8, CR_FAM_SUM, 0)), 0, ANY, {}, {}}};
    add_bursts<cr_burst_sum<CR_U8, 128>>(c, CR_U8);
    add_bursts<cr_burst_sum<CR_U8, 256>>(c, CR_U8);
    run("sum u8", 2, c);
    c = {{"cub", cub_sum<long long>(), 0, ANY, {}, {}}, {"as it is", fold(CR_I64, as_it_is(CR_I64, CR_FAM_SUM, 0)), 0, ANY, {}, {}}};
    add_bursts<cr_burst_sum<CR_I64, 128>>(c, CR_I64);
    add_bursts<cr_burst_sum<CR_I64, 256>>(c, CR_I64);
    run("sum i64", 2, c);
    extrema<CR_F32, MAX>("max f32", 0, cub_max<float>());
    extrema<CR_F32, MAX | AT>("argmax f32", 0, cub_argmax<float>());
    extrema<CR_F64, MAX>("max f64", 1, cub_max<double>());
    extrema<CR_F64, MAX | AT>("argmax f64", 1, cub_argmax<double>());
    return 0;
}
