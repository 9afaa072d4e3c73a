/* running: what a lane knows of its elements of a piece while it adds them (pieces.cuh): running anchors, from a Window's (axis/strip_sum.cuh) on;
 * by float32 (thread/narrow.cuh) the integers that groups of four elements leave. Σx, then Σx², of the levels of each.
 *
 * A running sum has: s, of which `kept` are stored, and told from later; begin; add, a vector; add_some, of a vector whose first element is
 * number `first` those below number `within`; found, of a level, in units of 2^unit. FEW: only some levels of squares are gone over.
 * Thread: GPU. Owner: the lane. */
#ifndef CURED_KERNELS_CUDA_OFFSETS_RUNNING_CUH
#define CURED_KERNELS_CUDA_OFFSETS_RUNNING_CUH

#include "kernels/cuda/axis/strip_sum.cuh"
#include "kernels/cuda/offsets/offsets.h"

template <class E, int KIND, class NUMBER = typename E::number> struct cr_running {
    typedef cr_strip_sum<E> Window;
    typedef double kept;
    static constexpr int VEC = CR_GPU_VECTOR / E::SIZE, STEP = Window::STEP;
    static constexpr int SUMS = KIND == CR_SEGMENTS_SQUARE ? 0 : 2, SQUARES = KIND == CR_SEGMENTS_SUM ? 0 : Window::SQUARES, LEVELS = SUMS + SQUARES;
    static constexpr bool HAS_FEW = false;
    kept s[LEVELS];

    static CR_DEVICE int unit(const Window &window, int level) { return level < SUMS ? window.level_unit(level) : window.square_unit() - STEP * (level - SUMS); }
    CR_DEVICE void begin(const Window &window) {
#pragma unroll
        for (int k = 0; k < LEVELS; k++) s[k] = cr_anchor(unit(window, k));
    }
    CR_DEVICE void add_one(const uint4 &v, int e) {
        const double x = E::lane(v, e);
        if constexpr (SUMS != 0) cr_chain<0, SUMS>(s, x);
        if constexpr (SQUARES != 0) cr_chain<SUMS, LEVELS>(s, __dmul_rn(x, x));
    }
    template <bool FEW> CR_DEVICE void add(const Window &, const uint4 &v) {
#pragma unroll
        for (int e = 0; e < VEC; e++) add_one(v, e);
    }
    CR_DEVICE void add_some(const Window &, const uint4 &v, uint32_t first, uint32_t within) {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (first + (uint32_t)e < within) add_one(v, e);
        }
    }
    CR_DEVICE long long found(const Window &window, int k) const { return __double_as_longlong(s[k]) - __double_as_longlong(cr_anchor(unit(window, k))); }
};

template <class E, int KIND> struct cr_running<E, KIND, float> {
    typedef cr_strip_sum<E> Window;
    typedef cr_anchors<float> Anchors;
    typedef int32_t kept;
    static constexpr int VEC = CR_GPU_VECTOR / E::SIZE, STEP = Window::STEP, GROUP = Window::GROUP;
    static constexpr int SUMS = KIND == CR_SEGMENTS_SQUARE ? 0 : 2, SQUARES = KIND == CR_SEGMENTS_SUM ? 0 : Window::SQUARES, LEVELS = SUMS + SQUARES;
    static constexpr bool HAS_FEW = SQUARES != 0;
    kept s[LEVELS];

    static CR_DEVICE int unit(const Window &window, int level) { return level < SUMS ? window.level_unit(level) : window.square_unit() - STEP * (level - SUMS); }
    CR_DEVICE void begin(const Window &) {
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
    CR_DEVICE void add_some(const Window &window, const uint4 &v, uint32_t first, uint32_t within) {
#pragma unroll
        for (int e = 0; e < VEC; e += GROUP) {
            float x[GROUP];
#pragma unroll
            for (int i = 0; i < GROUP; i++) x[i] = first + (uint32_t)(e + i) < within ? E::lane(v, e + i) : 0.f;
            add_those<false>(window, x);
        }
    }
    CR_DEVICE long long found(const Window &, int k) const { return s[k]; }
};

#endif
