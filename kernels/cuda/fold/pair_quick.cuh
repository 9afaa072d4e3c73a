/* pair_quick: pairs of which a look at the elements tells that no care is needed: their terms go to a float sum's own anchors, with no vector
 * of them made first. Squares of differences are one term then, not three; products of 16-bit types need no conversion.
 *
 * Of each: SOME, whether there is such a way; place(), by the sum's anchors, whenever they have moved; near(), whether all of the warp's
 * pairs may go it; put(), adds them. Pairs go two at a time, as the sum's vectors of terms do.
 * Thread: GPU; the warp together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_PAIR_QUICK_CUH
#define CURED_KERNELS_CUDA_FOLD_PAIR_QUICK_CUH

#include "kernels/cuda/fold/float_sums.cuh"
#include "kernels/cuda/thread/narrow.cuh"

template <class T, int AT, class = void> struct cr_quick {
    static constexpr bool SOME = false;
    CR_DEVICE void place(int) {}
};

/* Those that go by the elements themselves: below 2^(most + 1), and multiples of 2^(least - MANTISSA), by their exponents or because they
 * are zero; where the type's own grid is coarser, any are. */
template <class T> struct cr_quick_by_elements {
    static constexpr bool SOME = true;
    static constexpr int LANES = CR_GPU_VECTOR / T::SIZE;
    using Own = cr_window<T, CR_SUM_PLAIN>;
    using Terms = cr_window<cr_term_of<T, CR_PAIR_SQDIST>, CR_SUM_PLAIN>;
    cr_span limits;

    CR_DEVICE void limit(int most, int least) {
        most = min(most + T::BIAS, T::TOP - 1);
        least += T::BIAS;
        limits.most = ((uint32_t)(most + 1) << T::FIELD) - 1;
        limits.least = least <= 1 ? 0 : ((uint32_t)least << T::FIELD) - 1;
    }
    template <int N> CR_DEVICE bool near(const uint4 (&x)[N], const uint4 (&y)[N]) const {
        uint32_t worst = 0;
        const uint32_t low = Own::low(limits);
#pragma unroll
        for (int j = 0; j < N; j++) {
            T::glance(worst, x[j], low);
            T::glance(worst, y[j], low);
        }
        if (__all_sync(~0u, Own::near(worst, limits))) return true;
        cr_span seen = {0, ~0u}; /* zeros are welcome */
#pragma unroll
        for (int j = 0; j < N; j++) {
            T::look(seen, x[j]);
            T::look(seen, y[j]);
        }
        return __all_sync(~0u, Own::inside(seen, limits));
    }
};

/* d = x − y, and d² by two anchors whose units are 2^a and 2^(a - 51):
 *   d is below 2^(most + 2) and a multiple of 2^(least - MANTISSA): 51 bits at most, so exact;
 *   two d² are below 2^(2·most + 5) ≤ 2^(a + 51), which the first anchor takes;
 *   what it rounds off is at most 2^(a - 1) and a multiple of 2^(2·(least - MANTISSA)) ≥ 2^(a - 51): 51 bits, so the second fma and the second
 *   anchor are exact, though d² may not fit a float64. */
template <class T> struct cr_quick<T, CR_PAIR_SQDIST, std::enable_if_t<(T::SIZE < 8)>> : cr_quick_by_elements<T> {
    using Base = cr_quick_by_elements<T>;
    using typename Base::Terms;
    using Base::LANES;
    static_assert(Terms::LEVELS == 2 && Terms::STEP == 51 && Terms::GROUP == 2, "as above");
    static_assert(Terms::MOST_BIT - Terms::BITS <= 46, "what is too large for these anchors is too large for the terms', and moves them");

    CR_DEVICE void place(int a) { this->limit((a + 46) >> 1, T::MANTISSA + ((a - 50) >> 1)); }
    /* Conversions are slow: the 16-bit types' bits are taken for those of a float64, and what is left of them scaled. */
    CR_DEVICE static double difference(const uint4 &x, const uint4 &y, int e) {
        const double d = __dsub_rn(T::scaled(x, e), T::scaled(y, e));
        return T::SCALE == 0 ? d : __dmul_rn(d, cr_power(-T::SCALE));
    }
    template <class Sum, int N> CR_DEVICE void put(Sum &sum, const uint4 (&x)[N], const uint4 (&y)[N]) const {
        const double first = sum.anchor(0), second = sum.anchor(1);
#pragma unroll
        for (int i = 0; i < N * LANES; i += 2) {
            double s = first, t = second;
#pragma unroll
            for (int k = i; k < i + 2; k++) {
                const double d = difference(x[k / LANES], y[k / LANES], k % LANES), next = __fma_rn(d, d, s);
                t = __dadd_rn(t, __fma_rn(d, d, __dsub_rn(s, next)));
                s = next;
            }
            sum.acc[0] += Sum::bits(s);
            sum.acc[1] += Sum::bits(t);
        }
    }
};

/* x − y = h + e, e being what the float64 h leaves, and (h + e)² = h² + 2he + e², where h² = P + p and 2he = Q + q. Three anchors have
 * units of 2^a, 2^(a - 50) and 2^(a - 100), and all is a multiple of 2^(2·(least - 52)) ≥ 2^(a - 100).
 *   e is at most 2^(most - 52), and so of 23 bits: e² is exact;
 *   P is at most 2^(2·most + 4) ≤ 2^(a + 51), which the first anchor takes, and leaves 2^(a - 1) at most;
 *   p and Q are at most 2^(a - 3) and 2^(a - 2): with that, below 2^(a + 1), which the second anchor takes, and leaves three times
 *   2^(a - 51) at most; with q and e², below 2^(a - 54), that is below 2^(a - 49), which the third anchor takes. */
template <> struct cr_quick<cr_f64, CR_PAIR_SQDIST> : cr_quick_by_elements<cr_f64> {
    static_assert(Terms::LEVELS == 3 && Terms::STEP == 50 && Terms::GROUP == 1, "as above");
    static_assert(Terms::MOST_BIT - Terms::BITS <= 47, "what is too large for these anchors is too large for the terms', and moves them");

    CR_DEVICE void place(int a) { limit((a + 47) >> 1, 52 + ((a - 99) >> 1)); }
    template <class Sum, int N> CR_DEVICE void put(Sum &sum, const uint4 (&x)[N], const uint4 (&y)[N]) const {
#pragma unroll
        for (int i = 0; i < N * LANES; i++) {
            const double a = cr_f64::lane(x[i / LANES], i % LANES), b = cr_f64::lane(y[i / LANES], i % LANES);
            const double h = __dsub_rn(a, b), back = __dsub_rn(h, a);
            const double e = __dsub_rn(__dsub_rn(a, __dsub_rn(h, back)), __dadd_rn(b, back)), twice = __dadd_rn(e, e);
            const double square = __dmul_rn(h, h), mixed = __dmul_rn(h, twice);
            double s[3] = {sum.anchor(0), sum.anchor(1), sum.anchor(2)};
            cr_chain<0, 3>(s, square);
            cr_chain<1, 3>(s, __fma_rn(h, h, -square));
            cr_chain<1, 3>(s, mixed);
            cr_chain<2, 3>(s, __fma_rn(h, twice, -mixed));
            cr_chain<2, 3>(s, __dmul_rn(e, e));
#pragma unroll
            for (int level = 0; level < 3; level++) sum.acc[level] += Sum::bits(s[level]);
        }
        sum.acc[1] += sum.base(1) * (Sum::passes(1) - 1) * (N * LANES); /* terms pass there twice */
    }
};

/* The product of two float16 is exact as float32; that of two bfloat16 is where it has an exponent that float32 has. Its bits, further
 * right, are those of a float64 that is 2^SCALE times as large; so are the anchors meanwhile. */
template <class T> struct cr_quick<T, CR_PAIR_DOT, std::enable_if_t<T::SIZE == 2>> {
    static constexpr bool SOME = true;
    static constexpr int LANES = CR_GPU_VECTOR / T::SIZE, SCALE = 127 - 1023;
    static constexpr bool ANY = T::ONE_WINDOW; /* no product of two is too small or too large */
    using Own = cr_window<cr_f32, CR_SUM_PLAIN>;
    using E = cr_term_of<T, CR_PAIR_DOT>;
    using Terms = cr_window<E, CR_SUM_PLAIN>;
    static_assert(Terms::GROUP == 2, "two at a time");
    cr_span limits; /* of products; most is 0 where there are none */

    /* Two is the least field: what is rounded to it is not below the least normal number. */
    CR_DEVICE void place(int a) {
        const int last = a - Terms::BELOW, most = min(127 + a + Terms::MOST_BIT - Terms::BITS, 254);
        int least = max(127 + last + E::DEPTH, 2);
        if (ANY && last <= E::SUM_GRID) least = 0;
        limits.most = most < least ? 0 : ((uint32_t)(most + 1) << 23) - 1;
        limits.least = least == 0 ? 0 : ((uint32_t)least << 23) - 1;
    }
    CR_DEVICE static float number(const uint4 &v, int e) { return cr_number(T(), cr_word(v, (unsigned)e / 2), e); }
    CR_DEVICE static float product(const uint4 &x, const uint4 &y, int e) { return __fmul_rn(number(x, e), number(y, e)); }

    template <int N> CR_DEVICE bool near(const uint4 (&x)[N], const uint4 (&y)[N]) const {
        if (limits.most == 0) return false;
        uint32_t worst = 0;
        const uint32_t low = Own::low(limits);
#pragma unroll
        for (int i = 0; i < N * LANES; i++) {
            const uint32_t bits = __float_as_uint(product(x[i / LANES], y[i / LANES], i % LANES));
            worst = max(worst, bits + bits - low);
        }
        return __all_sync(~0u, Own::near(worst, limits)) || near_or_zero(x, y);
    }
    template <int N> CR_DEVICE bool near_or_zero(const uint4 (&x)[N], const uint4 (&y)[N]) const {
        cr_span seen = {0, ~0u};
        bool lost = false;
#pragma unroll
        for (int i = 0; i < N * LANES; i++) {
            const float a = number(x[i / LANES], i % LANES), b = number(y[i / LANES], i % LANES), p = __fmul_rn(a, b);
            const uint32_t magnitude = __float_as_uint(p) & 0x7fffffffu;
            seen.most = max(seen.most, magnitude);
            seen.least = min(seen.least, magnitude - 1);
            lost = lost || (!ANY && p == 0 && a != 0 && b != 0);
        }
        return __all_sync(~0u, !lost && Own::inside(seen, limits));
    }
    template <class Sum, int N> CR_DEVICE void put(Sum &sum, const uint4 (&x)[N], const uint4 (&y)[N]) const {
        typedef typename Sum::Anchors Anchors;
        constexpr int LEVELS = Terms::LEVELS;
        double from[LEVELS];
#pragma unroll
        for (int level = 0; level < LEVELS; level++) from[level] = Anchors::make(sum.a + SCALE - Terms::STEP * level);
#pragma unroll
        for (int i = 0; i < N * LANES; i += 2) {
            double s[LEVELS];
#pragma unroll
            for (int level = 0; level < LEVELS; level++) s[level] = from[level];
#pragma unroll
            for (int k = i; k < i + 2; k++) {
                const uint32_t bits = __float_as_uint(product(x[k / LANES], y[k / LANES], k % LANES));
                cr_chain<0, LEVELS>(s, __hiloint2double((int)bits >> 3 & (int)0x8fffffff, E::DEPTH < 20 ? 0 : (int)(bits << 29)));
            }
#pragma unroll
            for (int level = 0; level < LEVELS; level++) sum.acc[level] += Sum::bits(s[level]);
        }
#pragma unroll
        for (int level = 0; level < LEVELS; level++) sum.acc[level] -= (uint64_t)(N * LANES / 2) * ((uint64_t)SCALE << 52);
    }
};

/* The weights of an average alone: elements as they are, and a sum of the state's that is theirs. */
template <class T> struct cr_weight_of : T {};
template <class T> struct cr_sum_layout<cr_weight_of<T>, CR_SUM_PLAIN> : cr_sum_layout<T, CR_SUM_PLAIN> {
    static constexpr int AT = CR_PAIR_WEIGHTS, LIMBS = T::SUM_LIMBS;
};
template <class T, int KIND> struct cr_bins<cr_weight_of<T>, KIND> : cr_bins<T, KIND> {};

#endif
