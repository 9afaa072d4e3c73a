/* strip_sum: what a lane makes of its part of a piece of a row (strips.cuh), or of a segment (offsets/pieces.cuh): by float64, or by float32.
 *
 * Thread: GPU. Owner: the lane. */
#ifndef CURED_KERNELS_CUDA_AXIS_STRIP_SUM_CUH
#define CURED_KERNELS_CUDA_AXIS_STRIP_SUM_CUH

#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/thread/narrow.cuh"
#include "kernels/cuda/thread/simt.cuh"

enum { CR_STRIP_EACH = CR_AXIS_STRIP / CR_WARP }; /* vectors that a lane has of a piece */

/* What a lane makes of its part of a row: part[0]·2^unit, and where it went by anchors part[1]·2^(unit - STEP). Fields: of exponents.
 * ANCHORED: it always goes by anchors, which must be placed first. */
template <class E, class NUMBER = typename E::number> struct cr_strip_sum {
    static constexpr bool WIDE = E::SIZE == 8, HALF = E::ONE_WINDOW, ANCHORED = WIDE;
    static constexpr int LOG = WIDE ? 4 : E::SIZE == 4 ? 5 : E::SIZE == 2 ? 6 : 7; /* log2 of a lane's elements in a piece */
    static constexpr int STEP = 51 - LOG;                       /* between two anchors: what the first rounds off fits the second */
    static_assert(CR_STRIP_EACH * CR_GPU_VECTOR / E::SIZE == 1 << LOG, "");
    int unit, most; /* most: of fields that it takes */
    double s[2];
    /* Squares go over anchors STEP apart, the first of square_unit(), which is so coarse that a row's sum has 62 bits. Two anchors take
     * whatever float64 adds without rounding; SQUARES take what is not further than BELOW binades below the largest. */
    static constexpr int SQUARES = 3, BELOW = ((SQUARES - 1) * STEP + 50 - LOG) / 2 - E::MANTISSA - 1;
    CR_DEVICE int square_unit() const { return 2 * (most + 1 - E::BIAS) + LOG - 50; }
    CR_DEVICE bool fits_squares(int low) const { return low >= most - BELOW; }
    CR_DEVICE int level_unit(int level) const { return unit - STEP * level; }

    /* For a row's largest field. The unit is so coarse that a row's sum has 62 bits. What lies on its grid is so close together that
     * float64 adds it without rounding. */
    CR_DEVICE void place(uint32_t field, int slack) {
        most = HALF ? E::TOP - 1 : min((int)field + slack, E::TOP - 1);
        if (WIDE) most = max(most, STEP); /* no anchor is denormal */
        unit = HALF ? 1 - E::BIAS - E::MANTISSA : most + LOG - 49 - E::BIAS;
    }
    CR_DEVICE bool fits(int high, int low, bool anchors) const {
        int least = HALF ? 0 : unit + E::BIAS + E::MANTISSA - (anchors ? STEP : 0);
        if (WIDE && most > E::TOP - STEP) least = E::TOP; /* nor too large */
        return high <= most && low >= least;
    }
    CR_DEVICE void clear() { s[0] = s[1] = 0; }
    CR_DEVICE void begin(bool anchors) {
        s[0] = anchors ? cr_anchor(unit) : 0;
        s[1] = anchors ? cr_anchor(unit - STEP) : 0;
    }
    CR_DEVICE void add(const uint4 &v) {
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e++) s[e % 2] = __dadd_rn(s[e % 2], E::scaled(v, e));
    }
    CR_DEVICE void add_to_anchors(const uint4 &v) {
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e++) cr_chain<0, 2>(s, E::lane(v, e));
    }
    CR_DEVICE void end(int64_t (&part)[2], bool anchors) const {
        if (anchors) {
            part[0] += __double_as_longlong(s[0]) - __double_as_longlong(cr_anchor(unit));
            part[1] += __double_as_longlong(s[1]) - __double_as_longlong(cr_anchor(unit - STEP));
        } else {
            double sum = __dadd_rn(s[0], s[1]);
            if (E::SCALE != 0) sum = __dmul_rn(sum, cr_power(-E::SCALE));
            part[0] += __double2ll_rn(__dmul_rn(sum, cr_power(-unit)));
        }
    }
};

/* The same by float32 (thread/narrow.cuh): part[0]·2^unit, of groups of four elements over two anchors, the second of which has that unit. */
template <class E> struct cr_strip_sum<E, float> {
    typedef cr_window<E, CR_SUM_PLAIN> Window;
    typedef cr_anchors<float> Anchors;
    static constexpr bool WIDE = false, HALF = E::ONE_WINDOW, ANCHORED = !HALF;
    static constexpr int LOG = 6, STEP = Window::STEP, GROUP = Window::GROUP;
    static constexpr int ROOM = Window::MOST_BIT - Window::BITS + 1, REACH = STEP + ROOM; /* an anchor takes what is below 2^ROOM of its last bits; the first, 2^REACH of units */
    int unit, most;
    uint32_t s[2];
    /* Squares go over four anchors; of most pieces over FEW of them from FROM on: the first three, or of float16, where the last has the least
     * square's last bit, the last three. */
    static constexpr int SQUARES = 4, FEW = 3, FROM = HALF ? 1 : 0;
    static constexpr int LEAST = (E::SQUARE_GRID > Anchors::LEAST ? E::SQUARE_GRID : Anchors::LEAST) + STEP * (SQUARES - 1);
    CR_DEVICE int square_unit() const { return HALF ? LEAST : min(max(2 * (most + 1 - E::BIAS) - ROOM, LEAST), (int)E::SQUARE_MOST); }
    CR_DEVICE bool squares_between(int high, int low, int from, int to) const {
        const int first = square_unit();
        return 2 * (high + 1 - E::BIAS) <= first - STEP * from + ROOM && 2 * (max(low, 1) - E::BIAS - E::MANTISSA) >= first - STEP * (to - 1);
    }
    CR_DEVICE bool fits_squares(int low) const { return squares_between(most, low, 0, SQUARES); }
    CR_DEVICE bool fits_few(int high, int low) const { return squares_between(high, low, FROM, FROM + FEW); }
    CR_DEVICE int level_unit(int level) const { return unit + STEP * (1 - level); }

    CR_DEVICE void place(uint32_t field, int slack) {
        most = HALF ? E::TOP - 1 : min((int)field + slack, E::TOP - 1);
        unit = HALF ? 1 - E::BIAS - E::MANTISSA : min(max(most + 1 - E::BIAS - REACH, (int)Anchors::LEAST), E::MOST - STEP);
        most = min(most, unit + REACH + E::BIAS - 1);
    }
    CR_DEVICE bool fits(int high, int low, bool) const {
        const int least = HALF ? 0 : unit + E::BIAS + E::MANTISSA;
        return high <= most && low >= (least <= 1 ? 0 : least); /* the least field has the last bit of the one above it */
    }
    CR_DEVICE void clear() { s[0] = s[1] = 0; }
    CR_DEVICE void begin(bool) { clear(); }
    CR_DEVICE void add(const uint4 &v) {
        const float first = Anchors::make(unit + STEP), second = Anchors::make(unit);
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e += GROUP) {
            float x[2] = {first, second};
#pragma unroll
            for (int i = 0; i < GROUP; i++) cr_chain<0, 2>(x, E::lane(v, e + i));
            s[0] += Anchors::bits(x[0]) - Anchors::bits(first);
            s[1] += Anchors::bits(x[1]) - Anchors::bits(second);
        }
    }
    CR_DEVICE void add_to_anchors(const uint4 &v) { add(v); }
    CR_DEVICE void end(int64_t (&part)[2], bool) const { part[0] += (int64_t)(int32_t)s[0] * (1 << STEP) + (int32_t)s[1]; }
};

#endif
