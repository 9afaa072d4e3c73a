/* window: how a thread of a short sum (walk/burst_float.cuh) adds its elements: as integers of a unit that a sample of the array gives,
 * the same for every block. What lies outside the window around the sample is noticed, and not added right.
 *
 * Of each type: ABOVE and SPAN, binades of the window above the sample's largest element, and in all; place(), by the sample; look(), at
 * a vector; fits(), whether all that was looked at lies in the window, zeros taken for too small; welcome(), whether a vector
 * does, zeros welcome; put(), adds a vector. The thread's sum is `total`·2^unit; or, after digits(), `total` times 2^(BITS·WIDE), and
 * WIDE digits of BITS bits.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_WINDOW_CUH
#define CURED_KERNELS_CUDA_FOLD_WINDOW_CUH

#include "kernels/cuda/thread/float.cuh"

/* The field of the largest magnitude, within what the window can be placed by; as its bits lie in a word. */
template <int FIELD> CR_DEVICE uint32_t cr_burst_float_field(uint32_t most, int least, int greatest) {
    return min(max(most >> FIELD << FIELD, (uint32_t)least << FIELD), (uint32_t)greatest << FIELD);
}

template <class E> struct cr_burst_float;

/* y = x·2^-a is an integer below 2^55; 128 of them are below 2^62. */
template <> struct cr_burst_float<cr_f32> {
    static constexpr int ABOVE = 5, SPAN = 32, WIDE = 0;
    static constexpr uint32_t REACH = ((uint32_t)SPAN << 24) - 1;
    uint32_t low, worst;
    float scale;
    int unit;
    long long total;

    CR_DEVICE void place(const uint4 &sample) {
        uint32_t most = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) most = max(most, cr_word(sample, i) & 0x7fffffffu);
        const uint32_t field = cr_burst_float_field<23>(most, 54 - ABOVE, 254 - ABOVE);
        scale = __uint_as_float(((308u - ABOVE) << 23) - field);
        low = 2 * field - ((uint32_t)(SPAN - 1 - ABOVE) << 24);
        unit = (int)(field >> 23) + ABOVE - 181;
        worst = 0;
        total = 0;
    }
    CR_DEVICE void look(const uint4 &v) {
#pragma unroll
        for (int i = 0; i < 4; i++) worst = max(worst, cr_word(v, i) + cr_word(v, i) - low);
    }
    CR_DEVICE bool fits() const { return worst <= REACH; }
    CR_DEVICE static bool welcome(const uint4 &v, uint32_t low) {
        bool all = true;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint32_t twice = cr_word(v, i) + cr_word(v, i);
            all = all && (twice == 0 || twice - low <= REACH);
        }
        return all;
    }
    CR_DEVICE void put(const uint4 &v, bool valid) {
        long long sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) sum += __float2ll_rz(__fmul_rn(__uint_as_float(cr_word(v, i)), scale));
        if (valid) total += sum;
    }
    template <int BITS> CR_DEVICE void digits(uint32_t *) {}
};

/* Two anchors 51 binades apart, two elements at a time: what the first takes of one is below 2^47 of its units, of 64 below 2^53. */
template <> struct cr_burst_float<cr_f64> {
    static constexpr int ABOVE = 14, SPAN = 46, WIDE = 2;
    static constexpr uint32_t REACH = ((uint32_t)SPAN << 21) - 1;
    uint32_t low, worst, field;
    int unit;
    long long total, rest;

    CR_DEVICE void place(const uint4 &sample) {
        field = cr_burst_float_field<20>(max(sample.y & 0x7fffffffu, sample.w & 0x7fffffffu), SPAN - ABOVE, 2040 - ABOVE);
        low = 2 * field - ((uint32_t)(SPAN - 1 - ABOVE) << 21);
        unit = (int)(field >> 20) + ABOVE - 1120;
        worst = 0;
        total = rest = 0;
    }
    CR_DEVICE int upper(int more) const { return (int)(field + ((uint32_t)(ABOVE + more) << 20 | 1u << 19)); }
    CR_DEVICE void look(const uint4 &v) {
        worst = max(worst, v.y + v.y - low);
        worst = max(worst, v.w + v.w - low);
    }
    CR_DEVICE bool fits() const { return worst <= REACH; }
    CR_DEVICE static bool welcome(const uint4 &v, uint32_t low) {
        return ((v.x | (v.y & 0x7fffffffu)) == 0 || v.y + v.y - low <= REACH) &&
               ((v.z | (v.w & 0x7fffffffu)) == 0 || v.w + v.w - low <= REACH);
    }
    CR_DEVICE void put(const uint4 &v, bool valid) {
        const double first = __hiloint2double(upper(6), 0), second = __hiloint2double(upper(1 - SPAN), 0);
        const double x = cr_f64::lane(v, 0), y = cr_f64::lane(v, 1);
        const double one = __dadd_rn(first, x), two = __dadd_rn(one, y);
        const double end = __dadd_rn(__dadd_rn(second, __dsub_rn(x, __dsub_rn(one, first))), __dsub_rn(y, __dsub_rn(two, one)));
        if (valid) {
            total += __double_as_longlong(two) - __double_as_longlong(first);
            rest += __double_as_longlong(end) - __double_as_longlong(second);
        }
    }
    template <int BITS> CR_DEVICE void digits(uint32_t *digit) {
        digit[0] = (uint32_t)rest & ((1u << BITS) - 1);
        digit[1] = (uint32_t)(rest >> BITS) & ((1u << BITS) - 1);
        total = total * (1ll << (51 - 2 * BITS)) + (rest >> 2 * BITS);
    }
};

/* One anchor, four elements at a time; the elements' bits taken for float64's, see E::scaled. */
template <class E> struct cr_burst_float {
    static constexpr bool HALF = E::ONE_WINDOW;
    static constexpr int ABOVE = 12, SPAN = 42, WIDE = 0;
    static constexpr uint32_t REACH = HALF ? 0x7bff : ((uint32_t)SPAN << E::FIELD) - 1;
    uint32_t low, worst;
    int unit;
    double anchor;
    long long total;

    CR_DEVICE void place(const uint4 &sample) {
        worst = 0;
        total = 0;
        if constexpr (HALF) {
            low = 0;
            unit = E::GRID;
            anchor = cr_anchor(unit + E::SCALE);
        } else {
            uint32_t most = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) most = __vmaxu2(most, cr_word(sample, i) & 0x7fff7fffu);
            const uint32_t field = cr_burst_float_field<E::FIELD>(max(most >> 16, most & 0xffffu), SPAN - ABOVE, 254 - ABOVE);
            low = (field - ((uint32_t)(SPAN - 1 - ABOVE) << E::FIELD)) * 0x10001u;
            unit = (int)(field >> E::FIELD) + ABOVE - 175;
            anchor = __hiloint2double((int)((field << (20 - E::FIELD)) + ((ABOVE + 4) << 20 | 1 << 19)), 0);
        }
    }
    CR_DEVICE void look(const uint4 &v) { E::glance(worst, v, low); }
    CR_DEVICE static bool within(uint32_t w) { return E::SIZE == 1 ? w == 0 : (w & 0xffffu) <= REACH && w >> 16 <= REACH; }
    CR_DEVICE bool fits() const { return within(worst); }
    CR_DEVICE static bool welcome(const uint4 &v, uint32_t low) {
        if constexpr (E::SIZE == 1) {
            uint32_t special = 0;
            E::glance(special, v, 0);
            return special == 0;
        } else {
            bool all = true;
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int shift = 0; shift < 32; shift += 16) {
                    const uint32_t half = cr_word(v, i) >> shift & 0x7fffu;
                    all = all && (half == 0 || half - (low & 0xffffu) <= REACH);
                }
            }
            return all;
        }
    }
    CR_DEVICE void put(const uint4 &v, bool valid) {
        long long sum = 0;
#pragma unroll
        for (int e = 0; e < CR_GPU_VECTOR / E::SIZE; e += 4) {
            double s = anchor;
#pragma unroll
            for (int i = 0; i < 4; i++) s = __dadd_rn(s, E::scaled(v, e + i));
            sum += __double_as_longlong(s) - __double_as_longlong(anchor);
        }
        if (valid) total += sum;
    }
    template <int BITS> CR_DEVICE void digits(uint32_t *) {}
};

#endif
