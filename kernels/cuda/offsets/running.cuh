/* running: what a lane knows of its elements of a piece while it adds them (pieces.cuh): running anchors, from a Window's (axis/strip_sum.cuh) on;
 * by float32 (thread/narrow.cuh) the integers that groups of four elements leave. Σx, then Σx², of the levels of each.
 *
 * A running sum has: s, of which `kept` are stored, and told from later; begin; add, a vector; add_some, of a vector whose first element is
 * number `first` those below number `within`; found, of a level, in units of 2^unit. FEW: only those levels that `has` says are gone over,
 * which is exact for elements within few_bounds. GROUP: vectors after which a lane keeps what it has.
 * Thread: GPU. Owner: the lane. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_RUNNING_CUH
#define CURED_KERNELS_CUDA_OFFSETS_RUNNING_CUH

#include "kernels/cuda/axis/strip_sum.cuh"
#include "kernels/cuda/offsets/offsets.h"

/* FEW: a lane's elements are not far apart, so that float64 holds their sum exactly; their squares, parted by an anchor, two. Vectors are
 * then summed by themselves first, so that additions need not wait for one another. */
template <class E, int KIND, class NUMBER = typename E::number> struct cr_running {
    typedef cr_strip_sum<E> Window;
    typedef double kept;
    static constexpr int VEC = CR_GPU_VECTOR / E::SIZE, STEP = Window::STEP;
    static constexpr int SUMS = KIND == CR_SEGMENTS_SQUARE ? 0 : 2, SQUARES = KIND == CR_SEGMENTS_SUM ? 0 : Window::SQUARES, LEVELS = SUMS + SQUARES;
    static constexpr bool HAS_FEW = E::SIZE < 8, AT_ONCE = HAS_FEW; /* AT_ONCE: FEW is tried before all has been looked at */
    static constexpr int FEW_SQUARES = 2, FEW_BELOW = ((FEW_SQUARES - 1) * STEP + 50 - Window::LOG) / 2 - E::MANTISSA - 1; /* as Window::BELOW */
    static CR_DEVICE constexpr bool has(bool few, int k) { return !few || (k < SUMS ? k == 0 : k - SUMS < FEW_SQUARES); }
    static CR_DEVICE constexpr int group(bool few) { return SQUARES == 0 ? few ? 1 : 2 : SUMS == 0 ? few ? 2 : 4 : few ? 4 : 8; }
    kept s[LEVELS];

    static CR_DEVICE int unit(const Window &window, int level) { return level < SUMS ? window.level_unit(level) : window.square_unit() - STEP * (level - SUMS); }
    /* Elements times 2^SCALE do where nobody squares them. */
    template <bool FEW> static CR_DEVICE double anchor(const Window &window, int k) { return cr_anchor(unit(window, k) + (FEW && SQUARES == 0 ? E::SCALE : 0)); }
    static CR_DEVICE cr_span few_bounds(const Window &window) {
        const int last = SUMS == 0 || Window::HALF ? 0 : window.unit + E::BIAS + E::MANTISSA, least = SQUARES == 0 ? last : max(last, window.most - FEW_BELOW);
        cr_span found;
        found.most = ((uint32_t)(window.most + 1) << E::FIELD) - 1;
        found.least = least <= 1 ? 0 : ((uint32_t)least << E::FIELD) - 1;
        return found;
    }
    /* FEW: a sum has its anchor when it is found, since an addition more costs less than additions that wait for one another. */
    static CR_DEVICE constexpr bool lies_bare(bool few, int k) { return few && k != SUMS; }
    template <bool FEW> CR_DEVICE void begin(const Window &window) {
#pragma unroll
        for (int k = 0; k < LEVELS; k++) s[k] = lies_bare(FEW, k) ? 0 : anchor<FEW>(window, k);
    }
    template <bool FEW> CR_DEVICE void add_square(double x) { /* what the first anchor leaves is exact */
        const double next = __fma_rn(x, x, s[SUMS]), rest = __fma_rn(x, x, -__dsub_rn(next, s[SUMS]));
        s[SUMS] = next;
        cr_chain<SUMS + 1, FEW ? SUMS + FEW_SQUARES : LEVELS>(s, rest);
    }
    CR_DEVICE void add_one(const uint4 &v, int e) {
        const double x = E::lane(v, e);
        if constexpr (SUMS != 0) cr_chain<0, SUMS>(s, x);
        if constexpr (SQUARES != 0) add_square<false>(x);
    }
    /* The first `count` elements of a vector. */
    CR_DEVICE void add_few(const uint4 &v, int count) {
        double x[VEC];
#pragma unroll
        for (int e = 0; e < VEC; e++) x[e] = e >= count ? 0 : SQUARES == 0 ? E::scaled(v, e) : E::lane(v, e);
        if constexpr (SQUARES != 0) {
#pragma unroll
            for (int e = 0; e < VEC; e++) add_square<true>(x[e]);
        }
        if constexpr (SUMS != 0) s[0] = __dadd_rn(s[0], all(x));
    }
    static CR_DEVICE double all(double (&x)[VEC]) {
#pragma unroll
        for (int step = 1; step < VEC; step *= 2) {
#pragma unroll
            for (int e = 0; e < VEC; e += 2 * step) x[e] = __dadd_rn(x[e], x[e + step]);
        }
        return x[0];
    }
    template <bool FEW> CR_DEVICE void add(const Window &, const uint4 &v) {
        if constexpr (FEW) {
            add_few(v, VEC);
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++) add_one(v, e);
        }
    }
    template <bool FEW> CR_DEVICE void add_some(const Window &, const uint4 &v, uint32_t first, uint32_t within) {
        if constexpr (FEW) {
            add_few(v, (int)min(within - first, (uint32_t)VEC));
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                if (first + (uint32_t)e < within) add_one(v, e);
            }
        }
    }
    template <bool FEW> CR_DEVICE long long found(const Window &window, int k) const {
        const double from = anchor<FEW>(window, k);
        return __double_as_longlong(lies_bare(FEW, k) ? __dadd_rn(from, s[k]) : s[k]) - __double_as_longlong(from);
    }
};

template <class E, int KIND> struct cr_running<E, KIND, float> {
    typedef cr_strip_sum<E> Window;
    typedef cr_anchors<float> Anchors;
    typedef int32_t kept;
    static constexpr int VEC = CR_GPU_VECTOR / E::SIZE, STEP = Window::STEP, GROUP = Window::GROUP;
    static constexpr int SUMS = KIND == CR_SEGMENTS_SQUARE ? 0 : 2, SQUARES = KIND == CR_SEGMENTS_SUM ? 0 : Window::SQUARES, LEVELS = SUMS + SQUARES;
    static constexpr bool HAS_FEW = SQUARES != 0, AT_ONCE = false;
    static CR_DEVICE constexpr bool has(bool few, int k) { return !few || k < SUMS || (k >= SUMS + Window::FROM && k < SUMS + Window::FROM + Window::FEW); }
    static CR_DEVICE constexpr int group(bool) { return SUMS == 0 ? 2 : 1; }
    kept s[LEVELS];

    static CR_DEVICE int unit(const Window &window, int level) { return level < SUMS ? window.level_unit(level) : window.square_unit() - STEP * (level - SUMS); }
    template <bool> CR_DEVICE void begin(const Window &) {
#pragma unroll
        for (int k = 0; k < LEVELS; k++) s[k] = 0;
    }
    /* Four elements over the levels from FROM on. */
    template <int FROM, int TO> CR_DEVICE void add_group(const Window &window, const float (&x)[GROUP]) {
        float t[LEVELS];
#pragma unroll
        for (int k = 0; k < LEVELS; k++) t[k] = Anchors::make(unit(window, k));
#pragma unroll
        for (int i = 0; i < GROUP; i++) {
            if constexpr (SUMS != 0) cr_chain<0, SUMS>(t, x[i]);
            if constexpr (SQUARES != 0) { /* the square is exact, and so is what the first level leaves of it */
                const float next = Anchors::fused(x[i], x[i], t[FROM]), rest = Anchors::fused(x[i], x[i], Anchors::minus(t[FROM], next));
                t[FROM] = next;
                cr_chain<FROM + 1, TO>(t, rest);
            }
        }
#pragma unroll
        for (int k = 0; k < LEVELS; k++) {
            if (k < SUMS || (k >= FROM && k < TO)) s[k] += (int32_t)(Anchors::bits(t[k]) - Anchors::bits(Anchors::make(unit(window, k))));
        }
    }
    template <bool FEW> CR_DEVICE void add_those(const Window &window, const float (&x)[GROUP]) {
        if constexpr (FEW) add_group<SUMS + Window::FROM, SUMS + Window::FROM + Window::FEW>(window, x);
        else add_group<SUMS, LEVELS>(window, x);
    }
    template <bool FEW> CR_DEVICE void add(const Window &window, const uint4 &v) {
#pragma unroll
        for (int e = 0; e < VEC; e += GROUP) {
            float x[GROUP];
#pragma unroll
            for (int i = 0; i < GROUP; i++) x[i] = E::lane(v, e + i);
            add_those<FEW>(window, x);
        }
    }
    template <bool FEW> CR_DEVICE void add_some(const Window &window, const uint4 &v, uint32_t first, uint32_t within) {
#pragma unroll
        for (int e = 0; e < VEC; e += GROUP) {
            float x[GROUP];
#pragma unroll
            for (int i = 0; i < GROUP; i++) x[i] = first + (uint32_t)(e + i) < within ? E::lane(v, e + i) : 0.f;
            add_those<FEW>(window, x);
        }
    }
    template <bool> CR_DEVICE long long found(const Window &, int k) const { return s[k]; }
};

#endif
