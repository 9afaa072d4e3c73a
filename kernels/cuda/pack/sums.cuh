/* sums: exact sums of one warp's elements.
 *
 * Floats: the warp knows its largest magnitude before it adds anything, so the first anchor lies as low as it may, and one level
 * (f64, squares: two) takes 24 binades and more below it; one level more takes 50 further. What fits no window, and whatever has
 * a NaN or an infinity, is added in integers: 16-bit digits in shared memory, no data slower than other data there. Sums of
 * magnitudes have digits of their own only: the windows' code clears signs, so there is less of it.
 * Thread: GPU; the warp is together. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_PACK_SUMS_CUH
#define CURED_KERNELS_CUDA_PACK_SUMS_CUH

#include "kernels/cuda/fold/int_sums.cuh"
#include "kernels/cuda/pack/warp.cuh"
#include "kernels/cuda/thread/float.cuh"

/* Σ by digits. COPIES of each digit lie side by side, as room allows, so that equal exponents collide less. */
template <class E, bool SQUARE>
struct cr_pack_digits {
    static constexpr uint32_t LIMBS = SQUARE ? E::SQUARE_LIMBS : E::SUM_LIMBS;
    static constexpr uint32_t DIGITS = 2 * LIMBS, COPIES = DIGITS <= 34 ? 8 : DIGITS <= 68 ? 4 : DIGITS <= 136 ? 2 : 1;
    static constexpr int PARTS = ((SQUARE ? 2 : 1) * (E::MANTISSA + 1) + 15 + 15) / 16;
    static constexpr uint32_t RAISE = E::MANTISSA == 7 ? 16 : 0; /* bfloat16 is summed on float32's grid */
    static_assert(DIGITS * COPIES <= CR_PACK_DIGITS, "the digits need more room");

    /* signs: negative elements are subtracted. */
    CR_DEVICE static void element(uint32_t *digits, uint64_t bits, bool signs, uint32_t (&special)[3]) {
        const uint64_t fraction = bits & ((1ull << E::MANTISSA) - 1);
        const uint32_t field = (uint32_t)(bits >> E::MANTISSA) & E::TOP;
        const bool negative = bits >> (8 * E::SIZE - 1) & 1;
        const uint64_t magnitude = bits & ~(1ull << (8 * E::SIZE - 1));
        if (magnitude >= E::INFINITE) {
            const bool nan = fraction != 0;
            special[0] += nan;
            special[1] += !nan && !negative;
            special[2] += !nan && negative;
            return;
        }
        uint64_t low = fraction | (uint64_t)(field != 0) << E::MANTISSA, high = 0;
        uint32_t place = (field == 0 ? 0 : field - 1) + RAISE;
        if (SQUARE) {
            high = E::SIZE == 8 ? __umul64hi(low, low) : 0;
            low *= low;
            place *= 2;
        }
        const uint32_t shift = place % 16;
        if (PARTS > 4) high = high << shift | (low >> 1) >> (63 - shift);
        low <<= shift;
        uint32_t *to = digits + place / 16 * COPIES + cr_lane() % COPIES;
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            const uint32_t part = (uint32_t)(i < 4 ? low >> 16 * i : high >> 16 * (i - 4)) & 0xffffu;
            if (part != 0) atomicAdd(to + i * COPIES, signs && negative ? 0u - part : part);
        }
    }
    /* Of short elements the code stands once for a word: the next is shifted down, an index would put it into memory. */
    CR_DEVICE static void elements(uint32_t *digits, uint4 v, bool signs, uint32_t (&special)[3]) {
        constexpr unsigned PART = E::SIZE < 4 ? 4 : CR_GPU_VECTOR;
#pragma unroll 1
        for (unsigned at = 0; at < CR_GPU_VECTOR; at += PART) {
#pragma unroll
            for (unsigned e = 0; e < PART / E::SIZE; e++) element(digits, cr_element<E::SIZE>(v, e), signs, special);
            v = make_uint4(v.y, v.z, v.w, 0);
        }
    }
    CR_DEVICE static uint4 vector(const uint8_t *data, uint32_t bytes, uint32_t number) {
        const uint32_t at = number * CR_GPU_VECTOR;
        if (at >= bytes) return make_uint4(0, 0, 0, 0);
        if ((uintptr_t)data % CR_GPU_VECTOR == 0 && at + CR_GPU_VECTOR <= bytes) return *(const uint4 *)(data + at);
        return cr_pack_edge<E::SIZE>(data, bytes, at, 0);
    }
    CR_DEVICE static void fold() {
        const uint8_t *const data = cr_pack_mine().data;
        const uint32_t bytes = cr_pack_mine().n * E::SIZE;
        const bool signs = !SQUARE && cr_pack_mine().wants == 0;
        uint32_t *digits = cr_pack_room[threadIdx.x / CR_WARP], special[3] = {0, 0, 0};
        for (uint32_t i = cr_lane(); i < DIGITS * COPIES; i += CR_WARP) digits[i] = 0;
        __syncwarp();
        uint4 next = make_uint4(0, 0, 0, 0);
#pragma unroll 1
        for (uint32_t j = 0; j <= CR_PACK_VECTORS; j++) { /* one vector is on its way while the one before is added */
            const uint4 v = next;
            if (j < CR_PACK_VECTORS) next = vector(data, bytes, j * CR_WARP + cr_lane());
            if (j == 0) continue;
            elements(digits, v, signs, special);
        }
        __syncwarp();
        uint64_t *const more = cr_pack_mine().more;
        for (uint32_t i = cr_lane(); i < LIMBS; i += CR_WARP) {
            int64_t low = 0, high = 0;
#pragma unroll
            for (uint32_t c = 0; c < COPIES; c++) {
                low += (int32_t)digits[2 * i * COPIES + c];
                high += (int32_t)digits[(2 * i + 1) * COPIES + c];
            }
            more[CR_PACK_SPECIALS + i] = (uint64_t)(low + high * 65536);
        }
#pragma unroll
        for (int i = 0; i < 3; i++) {
            const uint32_t count = __reduce_add_sync(CR_EVERYONE, special[i]);
            if (cr_lane() == 0) more[i] = count;
        }
        cr_pack_more();
        cr_pack_leave(0, 0, 0, CR_PACK_MORE);
    }
};

template <class E, bool SQUARE>
CR_CALLED void cr_call_digits() {
    cr_pack_digits<E, SQUARE>::fold();
}

template <class E, bool SQUARE>
struct cr_pack_sum {
    using Window = cr_window<E, SQUARE ? CR_SUM_SQUARE : CR_SUM_PLAIN>;
    static constexpr int LEVELS = Window::LEVELS, GROUP = Window::GROUP, LANES = CR_GPU_VECTOR / E::SIZE;
    static constexpr bool PAIR = SQUARE && E::SIZE == 8;
    static constexpr uint32_t ADDS = CR_PACK_VECTORS * LANES / GROUP;
    static_assert(Window::STEP == (E::SIZE != 8 ? 50 : PAIR ? 52 : 51), "the host takes steps of another size");

    CR_DEVICE static double anchor(int a, int level) { return cr_anchor(a + Window::SCALE - Window::STEP * level); }
    CR_DEVICE static uint64_t bits(double x) { return (uint64_t)__double_as_longlong(x); }

    template <int TO> CR_DEVICE static void group(uint64_t (&acc)[TO], const uint4 &v, int e, int a) {
        double s[TO];
#pragma unroll
        for (int level = 0; level < TO; level++) s[level] = anchor(a, level);
        if constexpr (PAIR) {
            double t[TO];
            cr_chain_square<TO>(s, t, E::lane(v, e));
#pragma unroll
            for (int level = 0; level < TO; level++)
                acc[level] += level == 0 ? bits(s[level]) : bits(t[level]) + (level < TO - 1 ? bits(s[level]) : 0);
        } else {
#pragma unroll
            for (int i = 0; i < GROUP; i++) {
                const double x = SQUARE ? E::lane(v, e + i) : E::scaled(v, e + i);
                cr_chain<0, TO>(s, SQUARE ? __dmul_rn(x, x) : x);
            }
#pragma unroll
            for (int level = 0; level < TO; level++) acc[level] += bits(s[level]);
        }
    }
    template <int TO> CR_DEVICE static void fits(uint4 (&v)[CR_PACK_VECTORS], int a) {
        uint64_t acc[TO], level_sum[3] = {0, 0, 0};
        cr_pack_forget(v);
#pragma unroll
        for (int level = 0; level < TO; level++) acc[level] = 0;
#pragma unroll
        for (int j = 0; j < CR_PACK_VECTORS; j++) {
#pragma unroll
            for (int e = 0; e < LANES; e += GROUP) group<TO>(acc, v[j], e, a);
            if (E::SIZE <= 2) __syncwarp(); /* or all vectors' elements are unpacked first, into too many registers */
        }
#pragma unroll
        for (int level = 0; level < TO; level++) {
            const uint32_t passes = PAIR && level > 0 && level < TO - 1 ? 2 * ADDS : ADDS;
            cr_wide<1> sum;
            sum.word[0] = acc[level] - bits(anchor(a, level)) * passes;
            sum.warp_sum();
            level_sum[level] = sum.word[0];
        }
        cr_pack_leave(level_sum[0], level_sum[1], level_sum[2], (uint64_t)(a + CR_PACK_BIAS));
    }
    CR_DEVICE static uint32_t top_of(uint32_t most) { /* the largest exponent field */
        return (E::PACKED ? max(most >> 16, most & 0xffffu) : most) >> E::FIELD;
    }
    CR_DEVICE static void clear_signs(uint4 (&v)[CR_PACK_VECTORS]) {
        constexpr uint32_t even = E::SIZE == 8 ? ~0u : E::SIZE == 1 ? 0x7f7f7f7fu : E::PACKED ? 0x7fff7fffu : 0x7fffffffu, odd = even & 0x7fffffffu;
#pragma unroll
        for (int j = 0; j < CR_PACK_VECTORS; j++) v[j] = make_uint4(v[j].x & even, v[j].y & odd, v[j].z & even, v[j].w & odd);
    }
    CR_DEVICE static void fold() {
        uint4 v[CR_PACK_VECTORS];
        cr_pack_load<E::SIZE>(v, 0, false);
        const bool magnitudes = !SQUARE && cr_pack_mine().wants != 0;
        if (magnitudes) clear_signs(v);
        cr_span seen = {0, ~0u};
#pragma unroll
        for (int j = 0; j < CR_PACK_VECTORS; j++) E::look(seen, v[j]);
        const uint32_t top = __reduce_max_sync(CR_EVERYONE, top_of(seen.most));
        const int a = Window::place(max((int)top - Window::SLACK, 0)); /* it adds that slack: here the top is known */
        if (__all_sync(CR_EVERYONE, Window::inside(seen, Window::bounds(a, 0)))) {
            fits<LEVELS>(v, a);
        } else if (LEVELS < 3 && !E::ONE_WINDOW && __all_sync(CR_EVERYONE, Window::inside(seen, Window::bounds(a, 1)))) {
            fits<LEVELS < 3 ? LEVELS + 1 : LEVELS>(v, a);
        } else {
            cr_call_digits<E, SQUARE>();
        }
    }
};

/* Integers: see fold/int_sums.cuh. R: cr_sum_int or cr_sumsq_int. */
template <class R, bool SIGN>
CR_DEVICE void cr_pack_int_sum(const uint4 (&v)[CR_PACK_VECTORS]) {
    R run;
    run.begin();
#pragma unroll
    for (int j = 0; j < CR_PACK_VECTORS; j++) run.vec(v[j]);
    run.flush();
    typename R::sum_type sum = run.sum();
    sum.warp_sum();
    constexpr unsigned WORDS = sizeof sum / sizeof sum.word[0];
    const uint64_t beyond = SIGN ? (uint64_t)((int64_t)sum.word[WORDS - 1] >> 63) : 0;
    cr_pack_leave(sum.word[0], WORDS > 1 ? sum.word[WORDS > 1 ? 1 : 0] : beyond,
                   WORDS > 2 ? sum.word[WORDS > 2 ? 2 : 0] : beyond, 0);
}

#endif
