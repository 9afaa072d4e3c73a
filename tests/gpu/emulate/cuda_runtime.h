/* cuda_runtime (emulated): as much of CUDA's device language as the folds use, for the host: with this folder first in the search
 * path, the .cu files of kernels/cuda compile as C++ and their blocks run one after the other, a fibre a thread. So what the
 * kernels compute is tested where there is no GPU; races between blocks and speed are not.
 *
 * Thread: one. Owner: emulate.cc. */
#ifndef CURED_TESTS_GPU_EMULATE_CUDA_RUNTIME_H
#define CURED_TESTS_GPU_EMULATE_CUDA_RUNTIME_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

using std::max;
using std::min;

struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(16) double2 {
    double x, y;
};
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __restrict__

#include "cuda_runtime_api.h"
#include "launch.hh"

/* Of the fibre that runs. */
struct cr_emulated_place {
    uint3 thread, block;
};
extern cr_emulated_place *cr_emulated_here;
extern uint3 cr_emulated_grid, cr_emulated_block;
#define threadIdx (cr_emulated_here->thread)
#define blockIdx (cr_emulated_here->block)
#define gridDim cr_emulated_grid
#define blockDim cr_emulated_block
static constexpr int warpSize = 32;

/* The arguments are copied, because the kernel may run after its caller has changed them. */
template <class Call, class... Args>
static inline int cr_emulated_start(unsigned blocks, unsigned threads, void *stream, Call call, const Args &...args) {
    return cr_emulated_take(
        stream, blocks, threads,
        [call, copies = std::tuple<std::decay_t<const Args &>...>(args...)] { std::apply(call, copies); });
}
/* The kernel may be a template whose types its arguments tell, or a variable. */
#define CR_LAUNCH(kernel, blocks, threads, stream, ...) \
    cr_emulated_start((blocks), (threads), (stream), [=](const auto &...cr_given) { kernel(cr_given...); }, __VA_ARGS__)

void __syncthreads();
/* Hands value to the warp; gives those of its 32 lanes, valid until the lane's next vote. */
const uint64_t *cr_emulated_vote(uint64_t value);

static inline void __syncwarp(unsigned = ~0u) { cr_emulated_vote(0); }
static inline void __threadfence() {}
static inline void __threadfence_system() {}

template <class T>
static inline T cr_emulated_reduce(T value, T (*both)(T, T)) {
    const uint64_t *lanes = cr_emulated_vote((uint64_t)value);
    T result = (T)lanes[0];
    for (int i = 1; i < 32; i++) result = both(result, (T)lanes[i]);
    return result;
}
static inline unsigned __reduce_add_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a + b; });
}
static inline unsigned __reduce_min_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a < b ? a : b; });
}
static inline unsigned __reduce_max_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a > b ? a : b; });
}
static inline unsigned __reduce_and_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a & b; });
}
static inline unsigned __reduce_or_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a | b; });
}
static inline unsigned __reduce_xor_sync(unsigned, unsigned x) {
    return cr_emulated_reduce<unsigned>(x, [](unsigned a, unsigned b) { return a ^ b; });
}
template <class T>
static inline T cr_emulated_shuffle(T value, unsigned lane) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    const uint64_t *lanes = cr_emulated_vote(bits);
    memcpy(&value, &lanes[lane % 32], sizeof value);
    return value;
}
template <class T>
static inline T __shfl_sync(unsigned, T x, unsigned lane) {
    return cr_emulated_shuffle(x, lane);
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T x, unsigned mask) {
    return cr_emulated_shuffle(x, (threadIdx.x % 32) ^ mask);
}
template <class T>
static inline T __shfl_up_sync(unsigned, T x, unsigned by) {
    unsigned lane = threadIdx.x % 32;
    return cr_emulated_shuffle(x, lane >= by ? lane - by : lane);
}
template <class T>
static inline T __shfl_down_sync(unsigned, T x, unsigned by) {
    unsigned lane = threadIdx.x % 32;
    return cr_emulated_shuffle(x, lane + by < 32 ? lane + by : lane);
}
static inline unsigned __ballot_sync(unsigned, bool x) {
    const uint64_t *lanes = cr_emulated_vote(x);
    unsigned bits = 0;
    for (int i = 0; i < 32; i++) bits |= (unsigned)lanes[i] << i;
    return bits;
}
static inline int __any_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) != 0; }
static inline int __all_sync(unsigned mask, bool x) { return __ballot_sync(mask, x) == ~0u; }

template <class T, class U>
static inline T atomicAdd(T *p, U x) {
    T old = *p;
    *p = (T)(old + (T)x);
    return old;
}
template <class T>
static inline T atomicExch(T *p, T x) {
    T old = *p;
    *p = x;
    return old;
}
template <class T>
static inline T atomicMin(T *p, T x) {
    T old = *p;
    if (x < old) *p = x;
    return old;
}
template <class T>
static inline T atomicMax(T *p, T x) {
    T old = *p;
    if (x > old) *p = x;
    return old;
}
template <class T>
static inline T atomicOr(T *p, T x) {
    T old = *p;
    *p |= x;
    return old;
}
template <class T>
static inline T atomicXor(T *p, T x) {
    T old = *p;
    *p ^= x;
    return old;
}
template <class T>
static inline T atomicCAS(T *p, T expected, T x) {
    T old = *p;
    if (old == expected) *p = x;
    return old;
}
template <class T>
static inline T __ldcg(const T *p) {
    return *p;
}
template <class T>
static inline T __ldcs(const T *p) {
    return *p;
}

/* Lanes of a word. */
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}
static inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) c += (int8_t)((unsigned)a >> i) * (int8_t)((unsigned)b >> i);
    return c;
}
static inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
    return c + (a & 0xffff) * (b & 255) + (a >> 16) * (b >> 8 & 255);
}
static inline int __dp2a_lo(int a, int b, int c) { return c + (int16_t)a * (int8_t)b + (a >> 16) * (int8_t)(b >> 8); }
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned byte = (unsigned)(bytes >> (8 * (selector >> (4 * i) & 7))) & 255;
        result |= byte << (8 * i);
    }
    return result;
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned bits) {
    return (unsigned)(((uint64_t)high << 32 | low) >> (bits & 31));
}
template <class T>
static inline unsigned cr_emulated_halves(unsigned a, unsigned b, bool larger) {
    unsigned result = 0;
    for (int i = 0; i < 32; i += 16) {
        T x = (T)(a >> i), y = (T)(b >> i);
        result |= (unsigned)(uint16_t)((x > y) == larger ? x : y) << i;
    }
    return result;
}
static inline unsigned __vmins2(unsigned a, unsigned b) { return cr_emulated_halves<int16_t>(a, b, false); }
static inline unsigned __vmaxs2(unsigned a, unsigned b) { return cr_emulated_halves<int16_t>(a, b, true); }
static inline unsigned __vminu2(unsigned a, unsigned b) { return cr_emulated_halves<uint16_t>(a, b, false); }
static inline unsigned __vmaxu2(unsigned a, unsigned b) { return cr_emulated_halves<uint16_t>(a, b, true); }
static inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(uint64_t x) { return x ? __builtin_clzll(x) : 64; }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __ffsll(uint64_t x) { return __builtin_ffsll((long long)x); }

static inline int __reduce_add_sync(unsigned mask, int x) { return (int)__reduce_add_sync(mask, (unsigned)x); }
static inline int __syncthreads_or(int x) {
    static int any;
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= x != 0;
    __syncthreads();
    int result = any;
    __syncthreads();
    return result;
}
static inline double __hiloint2double(int high, int low) {
    uint64_t bits = (uint64_t)(unsigned)high << 32 | (unsigned)low;
    double result;
    memcpy(&result, &bits, sizeof result);
    return result;
}
static inline long long __float2ll_rz(float x) { /* saturates */
    if (x != x) return (long long)(1ull << 63);
    return x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : (long long)x;
}
static inline long long __double2ll_rn(double x) { return llrint(x); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dadd_rd(double a,
                               double b) { /* rounds down: by what rounding to nearest left (Knuth's two-sum) */
    const double sum = a + b, of_b = sum - a, rest = (a - (sum - of_b)) + (b - of_b);
    return rest < 0 ? std::nextafter(sum, -HUGE_VAL) : sum;
}
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ll2double_rn(long long x) { return (double)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double x) { return std::sqrt(x); }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
static inline double __longlong_as_double(long long x) {
    double result;
    memcpy(&result, &x, sizeof result);
    return result;
}
static inline long long __double_as_longlong(double x) {
    long long result;
    memcpy(&result, &x, sizeof result);
    return result;
}
static inline float __uint_as_float(unsigned x) {
    float result;
    memcpy(&result, &x, sizeof result);
    return result;
}
static inline unsigned __float_as_uint(float x) {
    unsigned result;
    memcpy(&result, &x, sizeof result);
    return result;
}

#endif
