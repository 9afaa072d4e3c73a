/* tune_lists: the norm of a list of arrays of unlike lengths, and the statistics of one array after the other, of bf16: ways to walk and to
 * add, beside a read of the same bytes. By hand; not a test, but every norm and every statistic is compared with the first way's.
 *
 * usage: tune_lists [MEGABYTES of the list] [ROUNDS] [number of the only way]
 * Thread: one. Owner: this file. */
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/cuda/fold/whole.cuh"
#include "kernels/cuda/plan/list.h"
#include "kernels/cuda/walk/list.cuh"

static void check(int failure) {
    if (failure == cudaSuccess) return;
    printf("%s\n", cudaGetErrorString((cudaError_t)failure));
    exit(failure == cudaErrorNoDevice || failure == cudaErrorInsufficientDriver ? 77 : 1);
}

/* ---- Ways ---- */

/* A read: what the walk alone takes. */
template <int U, int RESIDENT> struct reading {
    static constexpr int SIZE = 2, UNROLL = U, BLOCKS = RESIDENT;
    static constexpr bool SELF = true, CHUNKED = true;
    struct Shared {};
    struct Sample {};
    uint32_t all;
    __device__ Sample sample(const cr_fold_args &) { return Sample(); }
    __device__ void begin(const cr_fold_args &, Shared &, Sample) { all = 0; }
    template <int N> __device__ void tile(const uint4 (&v)[N], uint64_t, uint32_t, Shared &) {
        for (int j = 0; j < N; j++) all ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    }
    __device__ void one(uint64_t, uint64_t, Shared &) {}
    __device__ void publish(const cr_fold_args &args, Shared &) {
        if (all == 0x12345678) args.state->ticket = all;
    }
    __device__ void collect(const cr_fold_args &, Shared &) {}
};

/* The next tile is asked for before this one is added. */
template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) walk_ahead(const __grid_constant__ cr_list_args args) {
    constexpr int U = A::UNROLL;
    __shared__ typename A::Shared shared;
    __shared__ cr_list_array arrays[CR_WARPS][CR_WARP];
    A acc;
    cr_let_the_next_begin();
    cr_after_the_last();
    acc.begin(args.fold, shared, acc.sample(args.fold));
    const uint32_t first = blockIdx.x * args.per_block, end = min(first + args.per_block, args.rows);
    uint32_t at = cr_list_find(args, first);
    cr_list_window window;
    window.mine = arrays[threadIdx.x / CR_WARP];
    cr_list_spot<A::SIZE> spot;
    window.load(args, at);
    spot.take(args, window, at);
    uint4 v[U], next[U];
    if (first >= spot.next) spot.take(args, window, ++at);
    cr_list_load<U>(v, args, first, end, at, window, spot);
    for (uint32_t row = first; row < end; row += U) {
        if (row + U < end) {
            if (row + U >= spot.next) spot.take(args, window, ++at);
            cr_list_load<U>(next, args, row + U, end, at, window, spot);
        }
        acc.template tile<U>(v, 0, U, shared);
#pragma unroll
        for (int j = 0; j < U; j++) v[j] = next[j];
    }
    if (args.edges) cr_list_edges(acc, args, first, end, window, shared);
    __syncwarp();
    acc.publish(args.fold, shared);
}

/* Blocks take chunks of the list in turn: `chunk` rows each, and stop when there are no more. */
template <class A>
__global__ void __launch_bounds__(CR_GPU_THREADS, A::BLOCKS) walk_chunks(const __grid_constant__ cr_list_args args) {
    constexpr int U = A::UNROLL;
    __shared__ typename A::Shared shared;
    __shared__ cr_list_array arrays[CR_WARPS][CR_WARP];
    __shared__ uint32_t told[2];
    A acc;
    cr_let_the_next_begin();
    cr_after_the_last();
    acc.begin(args.fold, shared, acc.sample(args.fold));
    const uint32_t chunks = (args.rows + args.per_block - 1) / args.per_block;
    cr_list_window window;
    window.mine = arrays[threadIdx.x / CR_WARP];
    cr_list_spot<A::SIZE> spot;
    uint32_t chunk = blockIdx.x, after = 0, turn = 0, at = cr_list_find(args, chunk * args.per_block);
    window.load(args, at);
    spot.take(args, window, at);
    for (;;) {
        if (threadIdx.x == 0) {
            after = atomicAdd(&args.fold.state->next_in_turn, 1u) + gridDim.x;
            if (after == chunks + gridDim.x - 1) args.fold.state->next_in_turn = 0;
        }
        const uint32_t first = chunk * args.per_block, end = min(first + args.per_block, args.rows);
        for (uint32_t row = first; row < end; row += U) {
            uint4 v[U];
            if (row >= spot.next) spot.take(args, window, ++at);
            cr_list_load<U>(v, args, row, end, at, window, spot);
            acc.template tile<U>(v, 0, U, shared);
        }
        if (args.edges) cr_list_edges(acc, args, first, end, window, shared);
        if (threadIdx.x == 0) told[turn] = after;
        __syncthreads();
        chunk = told[turn];
        turn ^= 1;
        if (chunk >= chunks) break;
        at = cr_list_find(args, chunk * args.per_block);
        window.load(args, at);
        spot.take(args, window, at);
    }
    __syncwarp();
    acc.publish(args.fold, shared);
}

template <class A, uint32_t ROWS> int launch_chunks(const cr_fold_args *given, void *stream) {
    cr_list_args args = *reinterpret_cast<const cr_list_args *>(given);
    args.per_block = ROWS;
    args.fold.plan.blocks = std::min((args.rows + ROWS - 1) / ROWS, args.fold.multiprocessors * A::BLOCKS);
    return cr_launch(walk_chunks<A>, args.fold.plan.blocks, CR_GPU_THREADS, stream, args.fold.follows, args);
}

template <class A> int launch_ahead(const cr_fold_args *given, void *stream) {
    cr_list_args args = *reinterpret_cast<const cr_list_args *>(given);
    const uint32_t wave = args.fold.multiprocessors * A::BLOCKS;
    args.per_block = ((args.rows + wave - 1) / wave + A::UNROLL - 1) / A::UNROLL * A::UNROLL;
    args.fold.plan.blocks = args.fold.plan.chunks = (args.rows + args.per_block - 1) / args.per_block;
    return cr_launch(walk_ahead<A>, args.fold.plan.blocks, CR_GPU_THREADS, stream, args.fold.follows, args);
}

typedef cr_float_sum<cr_bf16, CR_SUM_SQUARE> plain;
template <int BY_BITS, int U = 4, int RESIDENT = 4> using whole = cr_whole_squares<cr_bf16, cr_bf16, BY_BITS, U, RESIDENT>;

static const struct {
    const char *name;
    cr_fold_launcher launch;
    bool norm;
} ways[] = {
    {"anchors", cr_list_launch<plain>, true},
    {"read", cr_list_launch<reading<4, 4>>, false},
    {"read, 8", cr_list_launch<reading<8, 4>>, false},
    {"read, chunks of 16 rows", launch_chunks<reading<4, 4>, 16>, false},
    {"anchors, ahead, 3", launch_ahead<cr_float_sum<cr_bf16, CR_SUM_SQUARE, 4, 3>>, true},
    {"anchors, chunks of 16", launch_chunks<plain, 16>, true},
    {"whole", cr_list_launch<whole<0>>, true},
    {"whole, 1 of 4 by bits", cr_list_launch<whole<1>>, true},
    {"whole, 2 of 4 by bits", cr_list_launch<whole<2>>, true},
    {"whole, all by bits", cr_list_launch<whole<4>>, true},
    {"whole, 3 blocks", cr_list_launch<whole<0, 4, 3>>, true},
    {"whole, 2 of 4, 8 vectors, 3 blocks", cr_list_launch<whole<2, 8, 3>>, true},
    {"whole, 2 of 4, ahead, 3 blocks", launch_ahead<whole<2, 4, 3>>, true},
    {"whole, 2 of 4, ahead, 4 blocks", launch_ahead<whole<2, 4, 4>>, true},
    {"whole, chunks of 16", launch_chunks<whole<0>, 16>, true},
    {"whole, 2 of 4, chunks of 16", launch_chunks<whole<2>, 16>, true},
    {"whole, 2 of 4, chunks of 32", launch_chunks<whole<2>, 32>, true},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* ---- Statistics: folds that follow each other ---- */

enum { FOLDS = 16, FAMILIES = CR_FAM_SUM | CR_FAM_SUMSQ | CR_FAM_EXTREMA | CR_FAM_COUNTS };

/* A launch of so many blocks on a multiprocessor, which may be fewer than there is room for. */
template <class A, uint32_t EACH> int launch_fewer(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    cr_fold_plan_fit(&mine.plan, EACH);
    cr_fold_plan_chunks(&mine.plan, mine.multiprocessors, EACH);
    return cr_launch(cr_walk<A>, mine.plan.blocks, CR_GPU_THREADS, stream, mine.follows, mine);
}
template <int RESIDENT, int U = 4> using stats = cr_set<cr_bf16_once, CR_BF16, true, true, false, RESIDENT, U>;

static const struct {
    const char *name;
    cr_fold_launcher launch;
    bool told;
} sets[] = {
    {"stats, 3 of 3 blocks", launch_fewer<stats<3>, 3>, true},
    {"read, 4 of 4", launch_fewer<reading<4, 4>, 4>, false},
    {"read, 2 of 4", launch_fewer<reading<4, 4>, 2>, false},
    {"stats, 2 of 3", launch_fewer<stats<3>, 2>, true},
    {"stats, 1 of 3", launch_fewer<stats<3>, 1>, true},
    {"stats, 4 of 4", launch_fewer<stats<4>, 4>, true},
    {"stats, 3 of 4", launch_fewer<stats<4>, 3>, true},
    {"stats, 2 of 4", launch_fewer<stats<4>, 2>, true},
    {"stats, 2 of 2", launch_fewer<stats<2>, 2>, true},
};
enum { SETS = sizeof sets / sizeof sets[0] };

/* ---- Data ---- */

__global__ void fill_normal(uint32_t *words, uint64_t count) {
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        const float r = sqrtf(-2 * logf(((uint32_t)z + 0.5f) * 0x1p-32f)), angle = 6.2831853f * (float)(z >> 32) * 0x1p-32f;
        words[i] = (__float_as_uint(r * cosf(angle)) + 0x8000u) >> 16 | ((__float_as_uint(r * sinf(angle)) + 0x8000u) & 0xffff0000u);
    }
}

static cr_list_args describe(uint8_t *data, uint64_t bytes, uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slot) {
    enum { ARRAYS = 300 };
    std::vector<cr_list_array> list;
    std::vector<double> weights;
    double all = 0;
    uint64_t number = 1, row = 0, at = 0, most = 0;
    for (int i = 0; i < ARRAYS; i++) {
        number = number * 6364136223846793005u + 1442695040888963407u;
        const double x = (double)(number >> 11) * 0x1p-53;
        weights.push_back(x * x * x + 0.01);
        all += weights.back();
    }
    for (double weight : weights) {
        const uint64_t n = (uint64_t)(weight / all * (double)bytes / 4) * 2;
        if (n > most) most = n;
        list.push_back({data + at, n, (uint32_t)row});
        row += cr_list_rows(n, 2);
        at += (n * 2 + 511) / 512 * 512;
    }
    list.push_back({NULL, 0, (uint32_t)row});
    cr_list_args args = {};
    void *arrays;
    check(cudaMalloc(&arrays, list.size() * sizeof list[0]));
    check(cudaMemcpy(arrays, list.data(), list.size() * sizeof list[0], cudaMemcpyHostToDevice));
    cr_fold_prepare(&args.fold, CR_BF16, data, most, 0, multiprocessors, state, slot);
    args.arrays = (const cr_list_array *)arrays;
    args.rows = (uint32_t)row;
    args.count = ARRAYS;
    args.edges = true;
    return args;
}

/* ---- Measuring ---- */

static cudaStream_t stream;
static cudaEvent_t begun, ended;

static float timed(int way, const cr_list_args &args) {
    float took;
    check(cudaEventRecord(begun, stream));
    check(ways[way].launch(&args.fold, stream));
    check(cudaEventRecord(ended, stream));
    check(cudaStreamSynchronize(stream));
    check(cudaEventElapsedTime(&took, begun, ended));
    return took * 1e3f;
}

static double norm_of(cr_fold_slot *slot, uint64_t n) {
    cr_value value;
    double norm;
    memset(&value, 0, sizeof value);
    cr_partial_init(&slot->partial, CR_BF16, CR_FAM_SUMSQ);
    cr_fold_result(slot, CR_BF16, CR_FAM_SUMSQ, n);
    cr_finish_opts plainly = {};
    cr_partial_finish(&slot->partial, CR_OP_NORM2, &plainly, &value);
    memcpy(&norm, value.bytes, sizeof norm);
    return norm;
}

/* FOLDS folds of equal slices of the data, with an event behind every `marked` of them: 0: behind none. */
static float timed_set(int set, uint8_t *data, uint64_t bytes, uint32_t multiprocessors, cr_gpu_state *state, cr_fold_slot *slots, int marked) {
    static cudaEvent_t events[FOLDS];
    const uint64_t slice = bytes / FOLDS * 2 / 512 * 512; /* the data twice */
    float took;
    for (int i = 0; i < FOLDS && events[i] == NULL; i++) check(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    for (int i = 0; i < FOLDS; i++) {
        memset(&slots[i], 0, sizeof slots[i]);
        cr_partial_init(&slots[i].partial, CR_BF16, FAMILIES);
    }
    check(cudaEventRecord(begun, stream));
    for (int i = 0; i < FOLDS; i++) {
        cr_fold_args args = {};
        cr_fold_prepare(&args, CR_BF16, data + (uint64_t)(i % (FOLDS / 2)) * slice, slice / 2, 0, multiprocessors, state, &slots[i]);
        args.follows = args.apart = i != 0;
        args.next = &state->next[i];
        check(sets[set].launch(&args, stream));
        if (marked != 0 && (i + 1) % marked == 0) check(cudaEventRecord(events[i], stream));
    }
    check(cudaEventRecord(ended, stream));
    check(cudaStreamSynchronize(stream));
    check(cudaEventElapsedTime(&took, begun, ended));
    return took * 1e3f / FOLDS;
}

static std::vector<double> stats_of(cr_fold_slot *slots, uint64_t n) {
    static const cr_op ops[] = {CR_OP_SUM, CR_OP_NORM2, CR_OP_MIN, CR_OP_MAX, CR_OP_COUNT_NAN, CR_OP_COUNT_NONZERO};
    std::vector<double> found;
    for (int i = 0; i < FOLDS; i++) {
        cr_partial *p = &slots[i].partial;
        cr_fold_result(&slots[i], CR_BF16, FAMILIES, n);
        for (cr_op op : ops) {
            cr_value value;
            double number = 0;
            cr_finish_opts plainly = {};
            memset(&value, 0, sizeof value);
            cr_partial_finish(p, op, &plainly, &value);
            memcpy(&number, value.bytes, sizeof number);
            found.push_back(number);
        }
    }
    return found;
}

static int tune_stats(uint8_t *data, uint64_t bytes, uint32_t multiprocessors, cr_gpu_state *state, int rounds) {
    static const int marks[] = {0, 8};
    const uint64_t n = bytes / FOLDS * 2 / 512 * 512 / 2;
    cr_fold_slot *slots;
    int wrong = 0;
    check(cudaMallocHost((void **)&slots, FOLDS * sizeof *slots));
    std::vector<float> took[SETS][2];
    std::vector<double> found[SETS];
    for (int round = -2; round < rounds; round++)
        for (int set = 0; set < SETS; set++)
            for (int m = 0; m < 2; m++) {
                const float us = timed_set(set, data, bytes, multiprocessors, state, slots, marks[m]);
                if (round >= 0) took[set][m].push_back(us);
                if (sets[set].told) found[set] = stats_of(slots, n);
            }
    printf("%d folds of %.0f MB each, us of a fold; and with an event behind every 8\n", FOLDS, (double)n * 2 / 1e6);
    for (int set = 0; set < SETS; set++) {
        for (int m = 0; m < 2; m++) std::sort(took[set][m].begin(), took[set][m].end());
        const bool right = !sets[set].told || memcmp(found[set].data(), found[0].data(), found[0].size() * sizeof(double)) == 0;
        const float us = took[set][0][took[set][0].size() / 2], marked = took[set][1][took[set][1].size() / 2];
        wrong += !right;
        printf("   %-36s %8.1f  %5.0f GB/s  %8.1f%s\n", sets[set].name, us, (double)n * 2 / us / 1e3, marked, right ? "" : "  WRONG");
    }
    return wrong;
}

int main(int argc, char **argv) {
    const uint64_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 743) * 1000000;
    const int rounds = argc > 2 ? atoi(argv[2]) : 15, only = argc > 3 ? atoi(argv[3]) : -1;
    cudaDeviceProp device;
    void *data, *state, *slot;
    const uint64_t room = bytes + (1 << 20);
    check(cudaGetDeviceProperties(&device, 0));
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaEventCreate(&begun));
    check(cudaEventCreate(&ended));
    check(cudaMalloc(&data, room));
    check(cudaMalloc(&state, sizeof(cr_gpu_state)));
    check(cudaMemset(state, 0, sizeof(cr_gpu_state)));
    check(cudaMallocHost(&slot, sizeof(cr_fold_slot)));
    fill_normal<<<4096, 256>>>((uint32_t *)data, room / 4);
    check(cudaDeviceSynchronize());
    const cr_list_args args = describe((uint8_t *)data, bytes, (uint32_t)device.multiProcessorCount, (cr_gpu_state *)state, (cr_fold_slot *)slot);
    std::vector<std::vector<float>> took(WAYS);
    std::vector<double> norms(WAYS);
    for (int round = -2; round < rounds; round++)
        for (int way = 0; way < WAYS; way++) {
            if (only >= 0 && way != only) continue;
            memset(slot, 0, sizeof(cr_fold_slot));
            const float us = timed(way, args);
            if (round >= 0) took[way].push_back(us);
            if (ways[way].norm) norms[way] = norm_of((cr_fold_slot *)slot, bytes / 2);
        }
    printf("%s, %llu MB of bf16 in 300 arrays, us of a launch by events\n", device.name, (unsigned long long)(bytes / 1000000));
    int wrong = 0;
    for (int way = 0; way < WAYS; way++) {
        if (took[way].empty()) continue;
        std::sort(took[way].begin(), took[way].end());
        const bool right = !ways[way].norm || only >= 0 || norms[way] == norms[0];
        wrong += !right;
        printf("%2d %-36s %8.1f  (lowest %.1f)  %5.0f GB/s%s\n", way, ways[way].name, took[way][took[way].size() / 2], took[way][0],
               (double)bytes / took[way][took[way].size() / 2] / 1e3, right ? "" : "  WRONG");
    }
    printf("norm %.17g, %d wrong\n", norms[only < 0 ? 0 : only], wrong);
    if (only < 0) wrong += tune_stats((uint8_t *)data, bytes, (uint32_t)device.multiProcessorCount, (cr_gpu_state *)state, rounds);
    return wrong != 0;
}
