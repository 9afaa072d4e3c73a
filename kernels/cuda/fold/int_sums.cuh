/* int_sums: Σx, Σ|x| and Σx² of integers and bools, exactly.
 *
 * Elements of 8 and 16 bits meet in 32-bit registers by dot products (dp4a, dp2a), which a tile cannot fill; 32-bit ones add up in
 * 64 bits, 64-bit ones carry into a second word. Squares are products of magnitudes, in words enough for 2^40 elements.
 *
 * Thread: device code. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_INT_SUMS_CUH
#define CURED_KERNELS_CUDA_FOLD_INT_SUMS_CUH

#include "kernels/cuda/thread/simt.cuh"

/* |x| of lanes of 32 and 64 bits. */
template <cr_dtype D>
CR_DEVICE uint32_t cr_magnitude(uint32_t x) {
    return cr_is_signed(D) && (int32_t)x < 0 ? 0u - x : x;
}
template <cr_dtype D>
CR_DEVICE uint64_t cr_magnitude(uint64_t x) {
    return cr_is_signed(D) && (int64_t)x < 0 ? 0u - x : x;
}

/* Sum of a word's lanes (its magnitudes if ABSOLUTE) plus so_far, for 8 and 16 bits. A bool counts 128. */
template <cr_dtype D, bool ABSOLUTE>
CR_DEVICE uint32_t cr_lanes_sum(uint32_t w, uint32_t so_far) {
    const uint32_t ones = 0x01010101u;
    if (D == CR_BOOL) return __dp4a(cr_nonzero_bytes(w), ones, so_far);
    if (D == CR_U8) return __dp4a(w, ones, so_far);
    if (D == CR_U16) return __dp2a_lo(w, ones, so_far);
    if (!ABSOLUTE) {
        return D == CR_I8 ? (uint32_t)__dp4a((int)w, (int)ones, (int)so_far)
                          : (uint32_t)__dp2a_lo((int)w, (int)ones, (int)so_far);
    }
    /* −x is ~x + 1 */
    if (D == CR_I8) {
        uint32_t negative = cr_sign_bytes(w);
        return __dp4a(w ^ negative, ones, __dp4a(negative & ones, ones, so_far));
    }
    uint32_t negative = cr_sign_halves(w);
    return __dp2a_lo(w ^ negative, ones, __dp2a_lo(negative & 0x00010001u, ones, so_far));
}

/* Σx (or Σ|x|). */
template <cr_dtype D, bool ABSOLUTE>
struct cr_sum_int {
    static constexpr unsigned WIDTH = cr_width(D);
    cr_wide<2> total; /* of finished tiles; beyond 32 bits of everything */
    uint32_t lanes;   /* 8 and 16 bits */
    uint64_t words;   /* 32 bits: 2^31 of them and more */

    CR_DEVICE void begin() {
        total.clear();
        lanes = 0;
        words = 0;
    }
    CR_DEVICE void vec(const uint4 &v) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            uint32_t w = cr_word(v, i);
            if (WIDTH <= 2) lanes = cr_lanes_sum<D, ABSOLUTE>(w, lanes);
            if (WIDTH == 4) {
                words += ABSOLUTE ? cr_magnitude<D>(w) : cr_is_signed(D) ? (uint64_t)(int64_t)(int32_t)w : (uint64_t)w;
            }
        }
        if constexpr (WIDTH == 8) {
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                uint64_t x = cr_word64(v, i);
                if (ABSOLUTE || !cr_is_signed(D)) {
                    total.add_u64(ABSOLUTE ? cr_magnitude<D>(x) : x);
                } else {
                    total.add_i64((int64_t)x);
                }
            }
        }
    }
    /* Before lanes are full: 256 vectors at most. */
    CR_DEVICE void flush() {
        if (WIDTH > 2) return;
        if (D == CR_BOOL) lanes >>= 7;
        words += cr_is_signed(D) && !ABSOLUTE ? (uint64_t)(int64_t)(int32_t)lanes : (uint64_t)lanes;
        lanes = 0;
    }
    /* A block's total in digits of 32 bits; how many hold it, with a sign. */
    static constexpr unsigned DIGITS = WIDTH == 8 ? 3 : 2;
    typedef cr_wide<(DIGITS + 1) / 2> sum_type;
    CR_DEVICE sum_type sum() {
        sum_type found;
#pragma unroll
        for (unsigned i = 0; i < (DIGITS + 1) / 2; i++) found.word[i] = WIDTH <= 4 ? words : total.word[i];
        return found;
    }
    /* Of what has no sign, one is the other: then both are written, whichever was asked for. */
    static CR_DEVICE void leave(const sum_type &x, const cr_fold_args &args) {
        leave_digits(x, args);
        announce(args);
    }
    static CR_DEVICE int64_t *first(cr_partial *out) { return ABSOLUTE ? nullptr : out->sums[CR_AT_SUM].limbs; }
    static CR_DEVICE int64_t *second(cr_partial *out) { return ABSOLUTE || !cr_is_signed(D) ? out->sums[CR_AT_SUMABS].limbs : nullptr; }
    static CR_DEVICE void leave_digits(const sum_type &x, const cr_fold_args &args) {
        cr_partial *out = &args.slot->partial;
        cr_leave_digits<DIGITS>(x, args, args.state->sums[ABSOLUTE ? CR_AT_SUMABS : CR_AT_SUM].words, first(out), second(out));
    }
    /* The same of the only block. */
    static CR_DEVICE void leave_alone(const sum_type &x, const cr_fold_args &args) {
        if (threadIdx.x >= DIGITS) return;
        cr_partial *out = &args.slot->partial;
        const uint64_t last = x.word[(DIGITS - 1) / 2] >> (DIGITS - 1) % 2 * 32;
        int64_t limb = (int64_t)(uint32_t)(threadIdx.x == 0 ? x.word[0] : x.word[0] >> 32);
        if (threadIdx.x == DIGITS - 1) limb = (int32_t)last;
        if (first(out)) first(out)[threadIdx.x] = limb;
        if (second(out)) second(out)[threadIdx.x] = limb;
    }
    static CR_DEVICE void announce(const cr_fold_args &args) {
        if (blockIdx.x != 0 || threadIdx.x != 0) return;
        cr_partial *out = &args.slot->partial;
        if (!ABSOLUTE) out->sums[CR_AT_SUM].pending = args.plan.blocks;
        if (ABSOLUTE || !cr_is_signed(D)) out->sums[CR_AT_SUMABS].pending = args.plan.blocks;
    }
};

/* Sums of products of 32 bits, 96 bits long. */
struct cr_products {
    uint32_t low, middle, high;

    CR_DEVICE void clear() { low = middle = high = 0; }
    CR_DEVICE void add(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
        asm("mad.lo.cc.u32 %0, %3, %4, %0;\n\tmadc.hi.cc.u32 %1, %3, %4, %1;\n\taddc.u32 %2, %2, 0;"
            : "+r"(low), "+r"(middle), "+r"(high)
            : "r"(a), "r"(b));
#else
        const uint64_t before = cr_pair(low, middle), after = before + (uint64_t)a * b;
        low = (uint32_t)after, middle = (uint32_t)(after >> 32), high += after < before;
#endif
    }
    /* Times 2^bit, bit a constant of at most 64. */
    CR_DEVICE cr_wide<3> times(unsigned bit) const {
        cr_wide<3> found;
        found.clear();
        found.add_shifted(low, bit);
        found.add_shifted(middle, bit + 32);
        found.add_shifted(high, bit + 64);
        return found;
    }
};

/* Σx². */
template <cr_dtype D>
struct cr_sumsq_int {
    static constexpr unsigned WIDTH = cr_width(D), WORDS = WIDTH == 8 ? 3 : WIDTH == 4 ? 2 : 1;
    cr_wide<WORDS> total;
    uint32_t lanes;
    uint64_t words;
    cr_products halves[3]; /* 64 bits: of the lower halves, of lower and upper ones, of the upper ones */

    CR_DEVICE void begin() {
        total.clear();
        lanes = 0;
        words = 0;
#pragma unroll
        for (int i = 0; i < 3; i++) halves[i].clear();
    }
    CR_DEVICE void word(uint32_t w) {
        if (D == CR_BOOL) lanes = cr_lanes_sum<D, false>(w, lanes);
        if (D == CR_U8) lanes = __dp4a(w, w, lanes);
        if (D == CR_I8) lanes = (uint32_t)__dp4a((int)w, (int)w, (int)lanes);
        if (D == CR_U16) {
            uint32_t a = w & 0xffffu, b = w >> 16;
            words += (uint64_t)(a * a) + b * b;
        }
        if (D == CR_I16) {
            int32_t a = (int16_t)w, b = (int32_t)w >> 16;
            words += (uint32_t)(a * a) + (uint32_t)(b * b); /* at most 2^31 */
        }
        if (WIDTH == 4) {
            uint32_t x = cr_magnitude<D>(w);
            total.add_u64((uint64_t)x * x);
        }
    }
    CR_DEVICE void vec(const uint4 &v) {
        if constexpr (WIDTH == 8) {
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                const uint64_t x = cr_magnitude<D>(cr_word64(v, i));
                const uint32_t low = (uint32_t)x, high = (uint32_t)(x >> 32);
                halves[0].add(low, low);
                halves[1].add(low, high);
                halves[2].add(high, high);
            }
        } else {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) word(cr_word(v, i));
        }
    }
    CR_DEVICE void flush() {
        if (WIDTH != 1) return;
        words += D == CR_BOOL ? lanes >> 7 : lanes;
        lanes = 0;
    }
    static constexpr unsigned DIGITS = WIDTH == 8 ? 5 : WIDTH == 4 ? 3 : 2;
    typedef cr_wide<WORDS> sum_type;
    CR_DEVICE sum_type sum() {
        if constexpr (WIDTH == 8) {
            sum_type all = halves[0].times(0);
            all.add(halves[1].times(33));
            all.add(halves[2].times(64));
            return all;
        }
        if (WIDTH == 4) return total;
        sum_type found;
        found.clear();
        found.word[0] = words;
        return found;
    }
    static CR_DEVICE void leave(const sum_type &x, const cr_fold_args &args) {
        cr_partial *out = &args.slot->partial;
        cr_leave_digits<DIGITS>(x, args, args.state->sums[CR_AT_SUMSQ].words, out->sums[CR_AT_SUMSQ].limbs, nullptr);
        if (blockIdx.x == 0 && threadIdx.x == 0) out->sums[CR_AT_SUMSQ].pending = args.plan.blocks;
    }
};

/* One sum on the walk (see cr_family). R: cr_sum_int or cr_sumsq_int. */
template <class R>
struct cr_fold_sum {
    static constexpr unsigned WIDTH = R::WIDTH, ROOM = sizeof(typename R::sum_type) / 8 * CR_WARPS;
    static constexpr int BLOCKS = CR_GPU_BLOCKS_PER_SM, UNROLL = CR_GPU_FEWER;
    static constexpr bool CHUNKED = true;
    R run;

    CR_DEVICE void begin(const cr_fold_args &) { run.begin(); }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t, uint32_t) {
#pragma unroll
        for (int j = 0; j < U; j++) run.vec(v[j]); /* what is not there is zero */
        run.flush();
    }
    CR_DEVICE void one(uint64_t bits) {
        run.vec(cr_alone(bits));
        run.flush();
    }
    CR_DEVICE void leave(const cr_fold_args &args, uint64_t *room) {
        typename R::sum_type sum[1] = {run.sum()};
        cr_block_sum(sum, room);
        R::leave(sum[0], args);
    }
};

#endif
