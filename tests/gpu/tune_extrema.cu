/* tune_extrema: how fast the kernels of minimum and maximum are, cold, beside CUB's, the sum of integers and read loops: what they
 * were chosen from. Not a test: run by hand. Candidates take turns; figures are medians in microseconds.
 *
 * usage: tune_extrema [--once]   (once: one launch of each at 1 and 16 MiB, for a profiler)
 * Thread: one. Owner: this file. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cub/device/device_reduce.cuh>

#include "kernels/cuda/acc_extrema.cuh"
#include "kernels/cuda/acc_sums.cuh"

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
static cr_gpu_state *state, *other_state;
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

/* Without the merge of the blocks: what it costs. */
template <cr_dtype D, unsigned WANTED> struct unmerged : cr_fold_extrema<D, WANTED> {
    CR_IN void leave(const cr_fold_args &args, uint64_t *to) {
        typename cr_fold_extrema<D, WANTED>::winner best[1] = {{this->seen[0].rank, 0}};
        uint64_t nan = this->nan_at == CR_PLACE_NONE ? CR_NOWHERE : 0;
        this->meet(best, nan, to);
        if (threadIdx.x == 0) this->send(best, nan);
        if (threadIdx.x == 0 && this->last()) args.slot->partial.max.key = best[0].rank;
    }
};

template <class A> static Launch fold(cr_dtype dtype, bool other = false) {
    return [=](const void *data, uint64_t bytes, cudaStream_t stream) {
        cr_fold_args args;
        cr_fold_prepare(&args, dtype, data, bytes / A::SIZE, 0, sms, other ? other_state : state, slot);
        CHECK(cr_walk_launch<A>(&args, stream));
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

static void run(const char *what, int kind, std::vector<candidate> all, bool once) {
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    fill<<<4096, 256, 0, stream>>>((uint64_t *)memory, LARGEST / 8, kind);
    CHECK(cudaStreamSynchronize(stream));
    if (once) {
        for (uint64_t bytes : {(uint64_t)1 << 20, (uint64_t)16 << 20})
            for (candidate &c : all)
                if (bytes >= c.least && bytes <= c.most) c.launch(memory, bytes, stream);
        CHECK(cudaStreamSynchronize(stream));
        return;
    }
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

template <cr_dtype D, unsigned W> using kernel = cr_self<cr_fold_extrema<D, W>>;
enum { MIN = CR_WANTS_MIN, MAX = CR_WANTS_MAX, AT = CR_WANTS_ARGMAX, ALL = CR_WANTS_ALL };

template <cr_dtype D> static void add(std::vector<candidate> &all) {
    const uint64_t any = ~0ull;
    all.push_back({"all", fold<kernel<D, ALL>>(D), 0, any, {}, {}});
    all.push_back({"max", fold<kernel<D, MAX>>(D), 0, any, {}, {}});
    all.push_back({"argmax", fold<kernel<D, MAX | AT>>(D), 0, any, {}, {}});
}

int main(int argc, char **argv) {
    const bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
    const uint64_t any = ~0ull;
    int device;
    CHECK(cudaGetDevice(&device));
    cudaDeviceProp found;
    CHECK(cudaGetDeviceProperties(&found, device));
    sms = (uint32_t)found.multiProcessorCount;
    CHECK(cudaMalloc(&memory, LARGEST));
    CHECK(cudaMalloc(&flush, FLUSH));
    CHECK(cudaMalloc(&state, sizeof *state));
    CHECK(cudaMalloc(&other_state, sizeof *state));
    CHECK(cudaMemset(state, 0, sizeof *state));
    CHECK(cudaMemset(other_state, 0, sizeof *state));
    CHECK(cudaMallocHost(&slot, sizeof *slot));
    size_t need = 0;
    CHECK(cub::DeviceReduce::ArgMax(nullptr, need, (const double *)memory, (double *)nullptr, (int64_t *)nullptr, (int64_t)(LARGEST / 4)));
    room = (need + (1 << 16)) / 256 * 256;
    CHECK(cudaMalloc(&scratch, room + 256));
    std::vector<candidate> f32 = {{"read, tiles", read_loop(false), 0, any, {}, {}},
                                  {"read, runs", read_loop(true), 0, any, {}, {}},
                                  {"cub max", cub_max<float>(), 0, any, {}, {}},
                                  {"cub argmax", cub_argmax<float>(), 0, any, {}, {}},
                                  {"i32 sum", fold<cr_self<cr_fold_sum<cr_sum_int<CR_I32, false>>>>(CR_I32), 0, any, {}, {}}};
    add<CR_F32>(f32);
    f32.push_back({"max, not merged", fold<cr_self<unmerged<CR_F32, MAX>>>(CR_F32, true), 0, any, {}, {}});
    run("f32", 0, f32, once);
    if (once) return 0;
    std::vector<candidate> f64 = {{"cub max", cub_max<double>(), 0, any, {}, {}}, {"cub argmax", cub_argmax<double>(), 0, any, {}, {}}};
    add<CR_F64>(f64);
    run("f64", 1, f64, false);
    std::vector<candidate> i32 = {{"cub max", cub_max<int>(), 0, any, {}, {}}};
    add<CR_I32>(i32);
    run("i32", 2, i32, false);
    std::vector<candidate> i64 = {{"cub max", cub_max<long long>(), 0, any, {}, {}}};
    add<CR_I64>(i64);
    run("i64", 2, i64, false);
    std::vector<candidate> u8 = {{"cub max", cub_max<uint8_t>(), 0, any, {}, {}}};
    add<CR_U8>(u8);
    run("u8", 2, u8, false);
    std::vector<candidate> f16;
    add<CR_F16>(f16);
    run("f16, any bits", 2, f16, false);
    std::vector<candidate> bits;
    add<CR_F32>(bits);
    run("f32, any bits", 2, bits, false);
    return 0;
}
