// ops: the "other ops" of the source documents: a reduction is a type, an operator and the operator's identity. Every kernel of the
// ladder is written once, for any of these; what differs between sum, min and any lies here alone.
//
// An Op says how an element becomes an accumulator (lift), how two accumulators become one (combine: associative and commutative),
// which one changes nothing (identity), how a whole GPU shares one (atomic), and what the host makes of it (settle). A kernel
// sees at most 2^31 elements at a time (run.cu), so:
//   - sums of i32 fit 64 bits; sums of i64 are kept as high and low halves, each a sum that fits 64 bits, without carries;
//   - products of integers keep a magnitude that stays at its top once it is beyond 64 bits, until a zero makes it 0;
//   - min and max are one fold of unsigned keys (min: the keys' complements), where -0 lies below +0 and every NaN is the top;
//   - any, all and count_nonzero are one fold: how many elements are not zero.
// Sums and products of floats are added in f32 (f16 too: its own precision is no use) or f64, in the order of the kernel.
#ifndef CURED_KERNELS_LADDER_OPS_CUH
#define CURED_KERNELS_LADDER_OPS_CUH

#include <cuda_fp16.h>
#include <stdint.h>

extern "C" {
#include "kernels/ladder/total.h"
}

namespace cr_ladder {

struct Half {
    uint16_t bits;
};

__device__ inline float real_of(Half x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline float real_of(float x) { return x; }
__device__ inline double real_of(double x) { return x; }

__device__ inline unsigned bits_of(Half x) { return x.bits; }
__device__ inline unsigned bits_of(int32_t x) { return (unsigned)x; }
__device__ inline unsigned bits_of(float x) { return __float_as_uint(x); }
__device__ inline unsigned long long bits_of(int64_t x) { return (unsigned long long)x; }
__device__ inline unsigned long long bits_of(double x) { return (unsigned long long)__double_as_longlong(x); }

// ---- Accumulators across a warp, and in global memory ----

template <class Acc>
__device__ inline Acc shuffle_down(Acc a, unsigned by) {
    return __shfl_down_sync(0xffffffffu, a, by);
}

// a = combine(a, v) for whoever comes at the same time, for accumulators without an instruction of their own.
template <class Op, class Word>
__device__ inline void swap_until_done(Word *at, typename Op::Acc v) {
    static_assert(sizeof(Word) == sizeof(typename Op::Acc), "one word");
    Word old = *(volatile Word *)at, seen;
    do {
        seen = old;
        typename Op::Acc now;
        memcpy(&now, &seen, sizeof now);
        now = Op::combine(now, v);
        Word next;
        memcpy(&next, &now, sizeof next);
        old = atomicCAS(at, seen, next);
    } while (old != seen);
}

// ---- Sums ----

struct SumI32 {
    using Acc = long long;
    __device__ static Acc identity() { return 0; }
    __device__ static Acc lift(int32_t x, uint64_t) { return x; }
    __device__ static Acc combine(Acc a, Acc b) { return a + b; }
    __device__ static void atomic(Acc *at, Acc v) { atomicAdd((unsigned long long *)at, (unsigned long long)v); }
    static void settle(cr_ladder_total *t, Acc v) { t->sum += v; }
};

struct Split { // high·2^32 + low
    long long high;
    unsigned long long low;
};

template <>
__device__ inline Split shuffle_down(Split a, unsigned by) {
    return {__shfl_down_sync(0xffffffffu, a.high, by), __shfl_down_sync(0xffffffffu, a.low, by)};
}

struct SumI64 {
    using Acc = Split;
    __device__ static Acc identity() { return {0, 0}; }
    __device__ static Acc lift(int64_t x, uint64_t) { return {x >> 32, (unsigned)x}; }
    __device__ static Acc combine(Acc a, Acc b) { return {a.high + b.high, a.low + b.low}; }
    __device__ static void atomic(Acc *at, Acc v) {
        atomicAdd((unsigned long long *)&at->high, (unsigned long long)v.high);
        atomicAdd(&at->low, v.low);
    }
    static void settle(cr_ladder_total *t, Acc v) { t->sum += (__int128)v.high * 4294967296 + v.low; }
};

template <class Real>
struct SumReal {
    using Acc = Real;
    __device__ static Acc identity() { return 0; }
    template <class T>
    __device__ static Acc lift(T x, uint64_t) {
        return real_of(x);
    }
    __device__ static Acc combine(Acc a, Acc b) { return a + b; }
    __device__ static void atomic(Acc *at, Acc v) { atomicAdd(at, v); }
    static void settle(cr_ladder_total *t, Acc v) { t->real += v; }
};

// ---- Products ----

struct Product {
    unsigned long long magnitude, negative; // ~0: 2^64 - 1 or beyond
};

template <>
__device__ inline Product shuffle_down(Product a, unsigned by) {
    return {__shfl_down_sync(0xffffffffu, a.magnitude, by), __shfl_down_sync(0xffffffffu, a.negative, by)};
}

struct ProdInt {
    using Acc = Product;
    __device__ static Acc identity() { return {1, 0}; }
    __device__ static Acc lift(int64_t x, uint64_t) {
        return {x < 0 ? 0 - (unsigned long long)x : (unsigned long long)x, x < 0};
    }
    __device__ static unsigned long long times(unsigned long long a, unsigned long long b) {
        return __umul64hi(a, b) ? ~0ull : a * b;
    }
    __device__ static Acc combine(Acc a, Acc b) { return {times(a.magnitude, b.magnitude), a.negative ^ b.negative}; }
    // The magnitude and the sign do not depend on each other.
    __device__ static void atomic(Acc *at, Acc v) {
        unsigned long long old = *(volatile unsigned long long *)&at->magnitude, seen;
        do {
            seen = old;
            old = atomicCAS(&at->magnitude, seen, times(seen, v.magnitude));
        } while (old != seen);
        atomicXor(&at->negative, v.negative);
    }
    static void settle(cr_ladder_total *t, Acc v) {
        unsigned __int128 whole = (unsigned __int128)t->magnitude * v.magnitude;
        t->magnitude = whole >> 64 ? UINT64_MAX : (uint64_t)whole;
        t->negative ^= v.negative != 0;
    }
};

template <class Real, class Word>
struct ProdReal {
    using Acc = Real;
    __device__ static Acc identity() { return 1; }
    template <class T>
    __device__ static Acc lift(T x, uint64_t) {
        return real_of(x);
    }
    __device__ static Acc combine(Acc a, Acc b) { return a * b; }
    __device__ static void atomic(Acc *at, Acc v) { swap_until_done<ProdReal>((Word *)at, v); }
    static void settle(cr_ladder_total *t, Acc v) { t->real *= v; }
};

// ---- Extrema: flip is 0 for max, all ones for min ----

struct Max32 {
    using Acc = unsigned;
    __device__ static Acc identity() { return 0; }
    __device__ static Acc lift(int32_t x, uint64_t flip) { return (bits_of(x) ^ 0x80000000u) ^ (unsigned)flip; }
    __device__ static Acc of_float(unsigned b, unsigned infinity, uint64_t flip) {
        if ((b & 0x7fffffffu) > infinity) return ~0u;
        return (b >> 31 ? ~b : b | 0x80000000u) ^ (unsigned)flip;
    }
    __device__ static Acc lift(float x, uint64_t flip) { return of_float(bits_of(x), 0x7f800000u, flip); }
    __device__ static Acc lift(Half x, uint64_t flip) { return of_float(bits_of(x) << 16, 0x7c000000u, flip); }
    __device__ static Acc combine(Acc a, Acc b) { return a > b ? a : b; }
    __device__ static void atomic(Acc *at, Acc v) { atomicMax(at, v); }
    static void settle(cr_ladder_total *t, Acc v) {
        uint64_t wide = v == UINT32_MAX ? UINT64_MAX : v;
        if (wide > t->key) t->key = wide;
    }
};

struct Max64 {
    using Acc = unsigned long long;
    __device__ static Acc identity() { return 0; }
    __device__ static Acc lift(int64_t x, uint64_t flip) { return (bits_of(x) ^ 1ull << 63) ^ flip; }
    __device__ static Acc lift(double x, uint64_t flip) {
        unsigned long long b = bits_of(x);
        if ((b & ~(1ull << 63)) > 0x7ff0000000000000ull) return ~0ull;
        return (b >> 63 ? ~b : b | 1ull << 63) ^ flip;
    }
    __device__ static Acc combine(Acc a, Acc b) { return a > b ? a : b; }
    __device__ static void atomic(Acc *at, Acc v) { atomicMax(at, v); }
    static void settle(cr_ladder_total *t, Acc v) {
        if (v > t->key) t->key = v;
    }
};

// ---- Logic: mask leaves out the sign of a float, for -0 is zero ----

struct Truths {
    using Acc = unsigned;
    __device__ static Acc identity() { return 0; }
    template <class T>
    __device__ static Acc lift(T x, uint64_t mask) {
        return (bits_of(x) & mask) != 0;
    }
    __device__ static Acc combine(Acc a, Acc b) { return a + b; }
    __device__ static void atomic(Acc *at, Acc v) { atomicAdd(at, v); }
    static void settle(cr_ladder_total *t, Acc v) { t->truths += v; }
};

// ---- What a kernel gets: elements of In, and the way they are folded ----

template <class T, class Op_>
struct Fold {
    using In = T;
    using Op = Op_;
    using Acc = typename Op::Acc;
    uint64_t parameter;
    __device__ Acc lift(In x) const { return Op::lift(x, parameter); }
};

// For later passes, whose elements are accumulators already.
template <class Op_>
struct Again {
    using In = typename Op_::Acc;
    using Op = Op_;
    using Acc = In;
    __device__ Acc lift(In x) const { return x; }
};

} // namespace cr_ladder

#endif
