/* counts: non-zero elements and NaNs; and the bits of integers (and, or, exclusive or).
 *
 * Lanes of 8 and 16 bits are compared by additions that cannot leave them, and counted by dot products.
 * Thread: device code. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_COUNTS_CUH
#define CURED_KERNELS_CUDA_FOLD_COUNTS_CUH

#include "kernels/cuda/thread/simt.cuh"

/* D stands for all types of its width that count alike: u8, u16, u32, u64, and each float. */
template <cr_dtype D>
struct cr_fold_counts {
    static constexpr unsigned WIDTH = cr_width(D), ROOM = 2 * CR_WARPS;
    static constexpr int BLOCKS = CR_GPU_BLOCKS_PER_SM, UNROLL = CR_GPU_FEWER;
    static constexpr bool FLOAT = cr_is_float(D);
    static constexpr bool CHUNKED = true;
    uint32_t some_nonzero, some_nans; /* of this tile; 128 each for narrow lanes */
    uint64_t nonzero, nans;

    CR_DEVICE void begin(const cr_fold_args &) {
        some_nonzero = some_nans = 0;
        nonzero = nans = 0;
    }
    CR_DEVICE void word(uint32_t w) {
        if (WIDTH == 1) some_nonzero = __dp4a(cr_nonzero_bytes(FLOAT ? w & 0x7f7f7f7fu : w), 0x01010101u, some_nonzero);
        if (WIDTH == 1 && FLOAT) some_nans = __dp4a(cr_nan_bytes<D>(w), 0x01010101u, some_nans);
        if (WIDTH == 2) {
            uint32_t x = FLOAT ? w & 0x7fff7fffu : w;
            some_nonzero = __dp4a(cr_nonzero_halves(x), 0x01000100u, some_nonzero);
            const uint32_t lift = 0x7fffu - (uint32_t)cr_infinity(D);
            if (FLOAT) some_nans = __dp4a((x + (lift << 16 | lift)) & 0x80008000u, 0x01000100u, some_nans);
        }
        if (WIDTH == 4) {
            uint32_t x = FLOAT ? w & 0x7fffffffu : w;
            some_nonzero += x != 0;
            if (FLOAT) some_nans += x > 0x7f800000u;
        }
    }
    CR_DEVICE void vec(const uint4 &v) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) word(cr_word(v, i));
        if constexpr (WIDTH == 8) {
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                uint64_t w = cr_word64(v, i), x = FLOAT ? w & 0x7fffffffffffffffu : w;
                some_nonzero += x != 0;
                if (FLOAT) some_nans += x > 0x7ff0000000000000u;
            }
        }
    }
    CR_DEVICE void flush() {
        const unsigned shift = WIDTH <= 2 ? 7 : 0;
        nonzero += some_nonzero >> shift;
        nans += some_nans >> shift;
        some_nonzero = some_nans = 0;
    }
    /* What is not there is zero: counted as neither. */
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t, uint32_t) {
#pragma unroll
        for (int j = 0; j < U; j++) vec(v[j]);
        flush();
    }
    CR_DEVICE void one(uint64_t bits) {
        vec(cr_alone(bits));
        flush();
    }
    CR_DEVICE void leave(const cr_fold_args &args, uint64_t *room) {
        cr_wide<1> count[2];
        count[0].word[0] = nonzero;
        count[1].word[0] = nans;
        cr_block_sum(count, room);
        if (threadIdx.x > 1) return;
        uint64_t value = threadIdx.x == 0 ? count[0].word[0] : count[1].word[0];
        if (!cr_leave_word(&args.state->prod.special[threadIdx.x], value, args.plan.blocks)) return;
        *(threadIdx.x == 0 ? &args.slot->partial.nonzero : &args.slot->partial.nans) = value;
    }
};

/* Of whole words; the elements within a word meet at the end. D: bool, or u8 … u64 by width. */
template <cr_dtype D>
struct cr_fold_bits {
    static constexpr unsigned WIDTH = cr_width(D), ROOM = 3 * CR_WARPS;
    static constexpr int BLOCKS = 4;
    struct total {
        uint64_t all, any, odd;
    };
    uint32_t all[2], any[2], odd[2]; /* even words, odd words */

    CR_DEVICE void begin(const cr_fold_args &) {
        all[0] = all[1] = UINT32_MAX;
        any[0] = any[1] = odd[0] = odd[1] = 0;
    }
    static CR_DEVICE uint32_t word(const uint4 &v, unsigned i) {
        uint32_t w = cr_word(v, i);
        return D == CR_BOOL ? cr_nonzero_bytes(w) >> 7 : w;
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t, uint32_t count) {
#pragma unroll
        for (int j = 0; j < U; j++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
                uint32_t w = word(v[j], i);
                any[i % 2] |= w;
                odd[i % 2] ^= w;
            }
        }
        if (count == U) {
#pragma unroll
            for (int j = 0; j < U; j++) also(v[j]);
        } else {
#pragma unroll
            for (int j = 0; j < U; j++) {
                if (j < (int)count) also(v[j]);
            }
        }
    }
    CR_DEVICE void also(const uint4 &v) {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) all[i % 2] &= word(v, i);
    }
    CR_DEVICE void one(uint64_t bits) {
        uint4 v = cr_alone(bits);
        any[0] |= word(v, 0);
        any[1] |= word(v, 1);
        odd[0] ^= word(v, 0);
        odd[1] ^= word(v, 1);
        /* Elements of a word meet only at the end: what lies beyond this one is ones here. */
        const uint32_t beyond = WIDTH >= 4 ? 0 : 0xffffffffu << 8 * (WIDTH % 4);
        all[0] &= word(v, 0) | beyond;
        if (WIDTH == 8) all[1] &= word(v, 1);
    }
    CR_DEVICE void close(uint64_t *, total &t) {
        t.all = cr_pair(all[0], all[1]);
        t.any = cr_pair(any[0], any[1]);
        t.odd = cr_pair(odd[0], odd[1]);
    }
    static CR_DEVICE void empty(total &t) {
        t.all = UINT64_MAX;
        t.any = t.odd = 0;
    }
    static CR_DEVICE void merge(total &t, const total &other) {
        t.all &= other.all;
        t.any |= other.any;
        t.odd ^= other.odd;
    }
    static CR_DEVICE void reduce(total &t, uint64_t *room) {
        total mine = {cr_pair(__reduce_and_sync(CR_EVERYONE, (uint32_t)t.all),
                              __reduce_and_sync(CR_EVERYONE, (uint32_t)(t.all >> 32))),
                      cr_pair(__reduce_or_sync(CR_EVERYONE, (uint32_t)t.any),
                              __reduce_or_sync(CR_EVERYONE, (uint32_t)(t.any >> 32))),
                      cr_pair(__reduce_xor_sync(CR_EVERYONE, (uint32_t)t.odd),
                              __reduce_xor_sync(CR_EVERYONE, (uint32_t)(t.odd >> 32)))};
        total *all = (total *)room;
        if (threadIdx.x % CR_WARP == 0) all[threadIdx.x / CR_WARP] = mine;
        __syncthreads();
        empty(t);
        for (unsigned warp = 0; warp < CR_WARPS; warp++) merge(t, all[warp]);
        __syncthreads();
    }
    static CR_DEVICE void put(const total &t, const cr_fold_args &args) {
        cr_partial *out = &args.slot->partial;
        uint64_t a = t.all, o = t.any, x = t.odd, mask = WIDTH == 8 ? UINT64_MAX : (1ull << 8 * (WIDTH % 8)) - 1;
        for (unsigned half = 32; half >= 8 * WIDTH; half /= 2) {
            a &= a >> half;
            o |= o >> half;
            x ^= x >> half;
        }
        out->bit_and = a | ~mask;
        out->bit_or = o & mask;
        out->bit_xor = x & mask;
    }
};

#endif
