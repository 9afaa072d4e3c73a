/* paired: a view of two arrays' elements, pair by pair: makes the terms of the pairs, as float64s, for a sum that takes elements of that
 * kind (cr_term_of in thread/float.cuh). It walks the first array, and reads the second beside it, wherever that lies.
 *
 * A product of two elements is exact as a float64, or (float64) as the float64 next to it and what that leaves. Where a float64's is not,
 * because it is too large or too small, it goes to the sum's bins as integers. The square of a difference is three terms: x², y², −2xy.
 * Most tiles go a quicker way (fold/pair_quick.cuh).
 *
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_WALK_PAIRED_CUH
#define CURED_KERNELS_CUDA_WALK_PAIRED_CUH

#include <cuda_fp16.h>

#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/fold/pair_quick.cuh"
#include "kernels/cuda/thread/simt.cuh"
#include "kernels/cuda/walk/walk.cuh"

/* An element as a type in which products of two are exact, or (float64) rounded once; NaNs and infinities are such there, too. */
template <class T> struct cr_factor {
    typedef double type;
    CR_DEVICE static type of(const uint4 &v, int e) { return T::lane(v, e); }
    CR_DEVICE static type times(type a, type b) { return __dmul_rn(a, b); }
};
template <> struct cr_factor<cr_f16> {
    typedef float type;
    CR_DEVICE static type of(const uint4 &v, int e) {
        return __half2float(__ushort_as_half((unsigned short)(cr_word(v, (unsigned)e / 2) >> 16 * (e % 2))));
    }
    CR_DEVICE static type times(type a, type b) { return __fmul_rn(a, b); }
};

static_assert((int)CR_PAIR_DOT == (int)CR_AT_DOT % CR_KNOWN_SUMS && (int)CR_PAIR_SQDIST == (int)CR_AT_SQDIST % CR_KNOWN_SUMS &&
                  (int)CR_PAIR_WEIGHTS == (int)CR_AT_WEIGHTS % CR_KNOWN_SUMS,
              "each has a sum of the state's");

/* Two float64s as a vector. */
CR_DEVICE uint4 cr_two(double a, double b) {
    const uint64_t x = (uint64_t)__double_as_longlong(a), y = (uint64_t)__double_as_longlong(b);
    return make_uint4((uint32_t)x, (uint32_t)(x >> 32), (uint32_t)y, (uint32_t)(y >> 32));
}

/* U: vectors of each array that a thread has in flight. What is best for a type and a sum was measured on an H100: fold.def has it. */
template <class T, int AT, int U, int RESIDENT>
struct cr_paired {
    using E = cr_term_of<T, AT>;
    using A = cr_float_sum<E, CR_SUM_PLAIN, U, RESIDENT>;
    using Factor = cr_factor<T>;
    using F = typename Factor::type;
    static constexpr int SIZE = T::SIZE, UNROLL = U, BLOCKS = RESIDENT, LANES = CR_GPU_VECTOR / SIZE;
    static constexpr bool SELF = true, CHUNKED = true, APART = AT == CR_PAIR_SQDIST;
    static constexpr int TERMS = APART ? 3 : 1; /* of a pair */
    static constexpr int PER = LANES * E::SIZE / CR_GPU_VECTOR; /* vectors of terms that a vector makes */
    static constexpr int ONCE = PER >= 4 ? 1 : 2;               /* vectors whose terms are made at once */
    /* What products' upper halves tell of those that are exact: fields from 64 on, which no rest of a float64 falls below, to the last. */
    static constexpr uint32_t LOW = 2u * (64u << 20), REACH = 2u * (2047u << 20) - 1 - LOW;
    typedef typename A::Shared Shared;
    struct Sample {
        uint64_t x, y;
    };
    A inner;
    cr_quick<T, AT> quick;
    const uint8_t *second; /* its elements beside the body */

    CR_DEVICE Sample sample(const cr_fold_args &of) {
        Sample found = {0, 0};
        if (T::SIZE == 8 && of.plan.vectors != 0 && of.plan.shift == 0) {
            const uint64_t middle = of.plan.head + of.plan.vectors / 2 * LANES;
            found.x = cr_load_one<SIZE>(of.data + middle * SIZE);
            found.y = cr_load_one<SIZE>(of.second + middle * SIZE);
        }
        return found;
    }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        const double x = __longlong_as_double((long long)sample.x), y = __longlong_as_double((long long)sample.y);
        const double term = APART ? __fma_rn(x, x, __dmul_rn(y, y)) : __dmul_rn(x, y);
        second = of.second + (uint64_t)of.plan.head * SIZE;
        inner.begin(of, shared, {T::SIZE == 8 ? (uint64_t)__double_as_longlong(term) : 0});
        quick.place(inner.a);
    }

    /* Term t of a pair: to h, and what h leaves of it to l. */
    CR_DEVICE static void make(int t, F x, F y, double &h, double &l) {
        l = 0;
        const F a = APART && t == 1 ? y : x, b = APART && t == 0 ? x : y, scale = APART && t == 2 ? (F)-2 : (F)1;
        const F product = Factor::times(a, b);
        h = (double)(APART ? Factor::times(product, scale) : product);
        if (E::SPLIT) {
            l = __fma_rn((double)a, (double)b, -(double)product);
            if (APART) l = __dmul_rn(l, (double)scale);
        }
    }
    CR_DEVICE static bool is_special(double x) { return ((uint64_t)__double_as_longlong(x) >> 52 & 2047) == 2047; }
    CR_DEVICE static bool is_odd(double h) { return 2 * (uint32_t)((uint64_t)__double_as_longlong(h) >> 32) - LOW > REACH; }

    /* The same where an element may be none that make() knows. True: it is a product of numbers that two float64s do not hold, and h and l
     * are 0. */
    CR_DEVICE static bool make_odd(int t, F x, F y, double &h, double &l) {
        const bool special = is_special((double)x) || is_special((double)y);
        make(t, x, y, h, l);
        if (special) {
            const F apart = x - y;
            if (APART) h = t == 0 ? (double)Factor::times(apart, apart) : 0;
            l = 0;
            return false;
        }
        if (!E::SPLIT || !is_odd(h)) return false;
        h = l = 0;
        return (APART && t == 1 ? y : x) != 0 && (APART && t == 0 ? x : y) != 0;
    }
    struct Product {
        cr_parts<cr_f64> a, b;
        int more;
        bool negative;
        CR_DEVICE Product(int t, double x, double y) {
            a.split((uint64_t)__double_as_longlong(APART && t == 1 ? y : x));
            b.split((uint64_t)__double_as_longlong(APART && t == 0 ? x : y));
            more = APART && t == 2;
            negative = (a.negative != b.negative) != (more != 0);
        }
    };

    /* Term t of ONCE vectors. */
    CR_DEVICE void make_all(uint4 (&made)[ONCE * PER], const uint4 *x, const uint4 *y, int t) {
#pragma unroll
        for (int j = 0; j < ONCE; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e += E::SPLIT ? 1 : 2) {
                double h, l;
                make(t, Factor::of(x[j], e), Factor::of(y[j], e), h, l);
                if (!E::SPLIT) {
                    double rest;
                    make(t, Factor::of(x[j], e + 1), Factor::of(y[j], e + 1), l, rest);
                }
                made[j * PER + (E::SPLIT ? e : e / 2)] = cr_two(h, l);
            }
        }
    }
    /* The same, where some may be such as make_odd is for. */
    CR_DEVICE void make_all_odd(uint4 (&made)[ONCE * PER], const uint4 *x, const uint4 *y, int t, Shared &shared) {
        uint32_t all_lost = 0; /* a bit an element */
#pragma unroll
        for (int j = 0; j < ONCE; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e++) {
                const F a = Factor::of(x[j], e), b = Factor::of(y[j], e);
                double h, l;
                const bool lost = make_odd(t, a, b, h, l);
                if constexpr (E::SPLIT) {
                    made[j * PER + e] = cr_two(h, l);
                    all_lost |= (uint32_t)lost << (j * LANES + e);
                } else {
                    const uint4 before = made[j * PER + e / 2], own = cr_two(h, h);
                    made[j * PER + e / 2] = e % 2 ? make_uint4(before.x, before.y, own.z, own.w) : own;
                }
            }
        }
        if constexpr (E::SPLIT) {
            if (__any_sync(~0u, all_lost != 0)) put_lost(all_lost, x, y, t, shared);
        }
    }
    CR_DEVICE void put_lost(uint32_t lost, const uint4 *x, const uint4 *y, int t, Shared &shared) {
        inner.make_room(ONCE * LANES, shared);
#pragma unroll
        for (int i = 0; i < ONCE * LANES; i++) {
            if (!(lost >> i & 1)) continue;
            const Product p(t, (double)Factor::of(x[i / LANES], i % LANES), (double)Factor::of(y[i / LANES], i % LANES));
            A::Bins::put_product(shared.bins, p.a, p.b, p.more, p.negative);
        }
    }

    /* The second array's vectors beside those of a tile. */
    template <int N> CR_DEVICE void load(uint4 (&y)[N], uint64_t vector, uint32_t count) const {
        const uint8_t *at = second + vector * CR_GPU_VECTOR;
        const uint32_t off = (uint32_t)((uintptr_t)at % CR_GPU_VECTOR);
        const uint4 *from = reinterpret_cast<const uint4 *>(at - off);
#pragma unroll
        for (int j = 0; j < N; j++) {
            y[j] = make_uint4(0, 0, 0, 0);
            if (j < (int)count) y[j] = from[j * CR_GPU_THREADS];
        }
        if (off == 0) return;
#pragma unroll
        for (int j = 0; j < N; j++)
            if (j < (int)count) y[j] = cr_join(y[j], from[j * CR_GPU_THREADS + 1], off);
    }

    /* Whether an element of the warp's is no number. */
    template <int N> CR_DEVICE static bool has_special(const uint4 (&x)[N], const uint4 (&y)[N]) {
        cr_span seen = {0, ~0u};
#pragma unroll
        for (int j = 0; j < N; j++) {
            T::look(seen, x[j]);
            T::look(seen, y[j]);
        }
        return __any_sync(~0u, cr_window<T, CR_SUM_PLAIN>::special(seen.most)) != 0;
    }

    template <int N> CR_DEVICE void tile(const uint4 (&x)[N], uint64_t vector, uint32_t count, Shared &shared) {
        uint4 y[N];
        load(y, vector, count);
        pairs(x, y, shared);
    }
    /* Whether they went the quick way: then all of them are numbers. */
    template <int N> CR_DEVICE bool pairs(const uint4 (&x)[N], const uint4 (&y)[N], Shared &shared) {
        if constexpr (cr_quick<T, AT>::SOME) {
            if (quick.near(x, y)) {
                inner.template reserve<N * PER>(shared);
                quick.put(inner, x, y);
                return true;
            }
        }
        by_terms(x, y, shared);
        quick.place(inner.a);
        return false;
    }
    template <int N> CR_DEVICE void by_terms(const uint4 (&given)[N], const uint4 (&beside)[N], Shared &shared) {
        static_assert(N % ONCE == 0, "vectors go by so many");
        uint4 x[N], y[N], made[ONCE * PER];
#pragma unroll
        for (int j = 0; j < N; j++) x[j] = given[j], y[j] = beside[j];
        const bool special = APART && has_special(x, y);
#pragma unroll 1
        for (int j = 0; j < N; j += ONCE) {
#pragma unroll 1
            for (int t = 0; t < TERMS; t++) {
                make_all(made, x, y, t);
                bool odd = special;
                if constexpr (E::SPLIT) {
                    uint32_t worst = 0;
#pragma unroll
                    for (int i = 0; i < ONCE * PER; i++) worst = max(worst, 2 * made[i].y - LOW);
                    odd = __any_sync(~0u, special || worst > REACH) != 0;
                }
                if ((APART || E::SPLIT) && odd) make_all_odd(made, x, y, t, shared);
                inner.template tile<ONCE * PER>(made, 0, 0, shared);
            }
            A::template rotate<ONCE>(x);
            A::template rotate<ONCE>(y);
        }
    }

    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &) {
        const uint64_t other = cr_load_one<SIZE>(inner.args->second + (index - inner.args->index) * SIZE);
        const F x = Factor::of(cr_alone(bits), 0), y = Factor::of(cr_alone(other), 0);
#pragma unroll 1
        for (int t = 0; t < TERMS; t++) {
            double h, l;
            if (make_odd(t, x, y, h, l)) {
                const Product p(t, x, y);
                inner.loose_value((unsigned __int128)p.a.significand * p.b.significand, p.a.place + p.b.place + p.more, p.negative);
            } else {
                inner.one_term(cr_two(h, l));
            }
        }
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) { inner.publish(of, shared); }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

/* An average's two sums in one walk. A weight whose product is none does not count, as the average is none then. */
template <class T, int U, int RESIDENT>
struct cr_averaged {
    using Products = cr_paired<T, CR_PAIR_DOT, U, RESIDENT>;
    using Weights = cr_float_sum<cr_weight_of<T>, CR_SUM_PLAIN, U, RESIDENT>;
    static constexpr int SIZE = T::SIZE, UNROLL = U, BLOCKS = RESIDENT, LANES = Products::LANES;
    static constexpr bool SELF = true, CHUNKED = true;
    struct Shared {
        typename Products::Shared products;
        typename Weights::Shared weights;
    };
    typedef typename Products::Sample Sample;
    Products products;
    Weights weights;

    CR_DEVICE Sample sample(const cr_fold_args &of) { return products.sample(of); }
    CR_DEVICE void begin(const cr_fold_args &of, Shared &shared, const Sample &sample) {
        products.begin(of, shared.products, sample);
        weights.begin(of, shared.weights, {sample.y});
    }
    CR_DEVICE static bool counts(const uint4 &x, const uint4 &y, int e) {
        const auto product = Products::Factor::times(Products::Factor::of(x, e), Products::Factor::of(y, e));
        return product == product;
    }
    CR_DEVICE static uint4 counted(const uint4 &x, const uint4 &y) {
        uint32_t w[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
        for (int e = 0; e < LANES; e++) {
            if (counts(x, y, e)) continue;
            if (SIZE == 2) w[e / 2] &= 0xffff0000u >> 16 * (e % 2);
            if (SIZE == 4) w[e % 4] = 0;
            if (SIZE == 8) w[2 * e % 4] = w[(2 * e + 1) % 4] = 0;
        }
        return make_uint4(w[0], w[1], w[2], w[3]);
    }
    template <int N> CR_DEVICE void tile(const uint4 (&x)[N], uint64_t vector, uint32_t count, Shared &shared) {
        uint4 y[N];
        products.load(y, vector, count);
        if (!products.pairs(x, y, shared.products) && Products::has_special(x, y)) {
#pragma unroll
            for (int j = 0; j < N; j++) y[j] = counted(x[j], y[j]);
        }
        weights.template tile<N>(y, vector, count, shared.weights);
    }
    CR_DEVICE void one(uint64_t bits, uint64_t index, Shared &shared) {
        const uint64_t other = cr_load_one<SIZE>(products.inner.args->second + (index - products.inner.args->index) * SIZE);
        products.one(bits, index, shared.products);
        weights.one(counts(cr_alone(bits), cr_alone(other), 0) ? other : 0, index, shared.weights);
    }
    CR_DEVICE void publish(const cr_fold_args &of, Shared &shared) {
        products.publish(of, shared.products);
        weights.publish(of, shared.weights);
    }
    CR_DEVICE void collect(const cr_fold_args &, Shared &) {}
};

/* Where the second array's vectors are put together from two, the last one may not end beyond the array: its elements go one by one. */
template <class A> int cr_paired_launch(const cr_fold_args *args, void *stream) {
    cr_fold_args mine = *args;
    if (((uintptr_t)mine.second + (uint64_t)mine.plan.head * A::SIZE) % CR_GPU_VECTOR != 0 && mine.plan.vectors != 0) {
        mine.plan.vectors--;
        mine.plan.tail += A::LANES;
    }
    return cr_walk_launch<A>(&mine, stream);
}

#endif
