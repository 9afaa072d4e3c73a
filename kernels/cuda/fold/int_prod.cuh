/* int_prod: products of integers: zeros, signs, the product modulo 2^64, and the magnitude of what is not zero as far as any
 * result could show it.
 *
 * Magnitudes above 1 at least double the product, so 1,024 factors are too many: a thread multiplies into 64 bits, and what no
 * longer fits goes to the block's list of factors, and from there to the grid's. Ordinary data fills a list within a tile, and
 * from then on nobody looks at magnitudes.
 * Thread: GPU. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_FOLD_INT_PROD_CUH
#define CURED_KERNELS_CUDA_FOLD_INT_PROD_CUH

#include "kernels/cuda/thread/simt.cuh"

template <cr_dtype D>
struct cr_fold_int_prod {
    static constexpr unsigned WIDTH = cr_width(D);
    static constexpr int SIZE = (int)WIDTH, UNROLL = CR_GPU_FEWER, BLOCKS = 3;
    static constexpr bool SELF = false;
    struct total {
        cr_wide<1> zeros[1];
        uint64_t wrap, negatives; /* negatives: how many of them, but for multiples of two */
    };
    struct Sample {};
    struct Shared {
        uint32_t factors; /* CR_PROD_FACTORS and more: too many */
        uint64_t list[CR_PROD_FACTORS];
        uint64_t room[3 * CR_WARPS];
        uint64_t magnitude[CR_INT_PROD_WORDS];
    };
    const cr_fold_args *args;
    uint64_t wrap, magnitude, zeros;
    uint32_t signs, nonzero; /* top bits of lanes; of a tile */

    CR_DEVICE Sample sample(const cr_fold_args &) { return Sample(); }
    CR_DEVICE void begin(const cr_fold_args &given, Shared &shared, Sample) {
        args = &given;
        wrap = magnitude = 1;
        zeros = 0;
        signs = nonzero = 0;
        if (threadIdx.x == 0) shared.factors = 0;
        __syncthreads();
    }
    static CR_DEVICE uint64_t extend(uint64_t bits) { /* an element's */
        const unsigned spare = 64 - 8 * WIDTH;
        return cr_is_signed(D) ? (uint64_t)((int64_t)(bits << spare) >> spare) : bits;
    }
    static CR_DEVICE void append(uint64_t factor, Shared &shared) {
        uint32_t at = atomicAdd(&shared.factors, 1u);
        if (at < CR_PROD_FACTORS) shared.list[at] = factor;
    }
    CR_DEVICE void times(uint64_t bits, Shared &shared) {
        uint64_t x = extend(bits), factor = cr_is_signed(D) && (int64_t)x < 0 ? 0 - x : x;
        if (factor <= 1) return;
        if (__umul64hi(magnitude, factor) != 0) {
            append(magnitude, shared);
            magnitude = factor;
        } else {
            magnitude *= factor;
        }
    }
    /* All but the magnitude of a word's lanes. */
    CR_DEVICE void word(uint32_t w) {
        if (WIDTH == 1) {
            nonzero += (uint32_t)__popc(cr_nonzero_bytes(w));
            signs ^= w;
            if (D == CR_U8) wrap *= (uint64_t)((w & 255) * (w >> 8 & 255) * ((w >> 16 & 255) * (w >> 24)));
            if (D == CR_I8) {
                int32_t a = (int8_t)w, b = (int8_t)(w >> 8), c = (int8_t)(w >> 16), d = (int8_t)(w >> 24);
                wrap *= (uint64_t)(int64_t)(a * b * (c * d));
            }
        }
        if (WIDTH == 2) {
            nonzero += (uint32_t)__popc(cr_nonzero_halves(w));
            signs ^= w;
            if (D == CR_U16) wrap *= (uint64_t)((w & 0xffff) * (w >> 16));
            if (D == CR_I16) wrap *= (uint64_t)(int64_t)((int32_t)(int16_t)w * ((int32_t)w >> 16));
        }
        if (WIDTH == 4) {
            nonzero += w != 0;
            signs ^= w;
            wrap *= extend(w);
        }
    }
    CR_DEVICE void vec(const uint4 &v) {
        if constexpr (WIDTH == 8) {
#pragma unroll
            for (unsigned i = 0; i < 2; i++) {
                uint64_t w = cr_word64(v, i);
                nonzero += w != 0;
                signs ^= (uint32_t)(w >> 32);
                wrap *= w;
            }
        } else {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) word(cr_word(v, i));
        }
    }
    template <int U>
    CR_DEVICE void tile(const uint4 (&v)[U], uint64_t vector, uint32_t count, Shared &shared) {
#pragma unroll
        for (int j = 0; j < U; j++) {
            if (j < (int)count) vec(v[j]);
        }
        zeros += count * (CR_GPU_VECTOR / WIDTH) - nonzero;
        nonzero = 0;
        if (D == CR_BOOL || *(volatile uint32_t *)&shared.factors >= CR_PROD_FACTORS) return;
        /* Loaded once more, so that the vectors need not be kept for this. */
        const uint4 *body = cr_body<SIZE>(*args);
        const uint64_t end = vector + (uint64_t)count * CR_GPU_THREADS;
#pragma unroll 1
        for (uint64_t at = vector; at < end; at += CR_GPU_THREADS) {
            uint4 again[1];
            cr_load<1>(again, body, args->plan.shift, at, end);
#pragma unroll
            for (unsigned e = 0; e < CR_GPU_VECTOR / WIDTH; e++) times(cr_element<WIDTH>(again[0], e), shared);
        }
    }
    CR_DEVICE void one(uint64_t bits, uint64_t, Shared &shared) {
        uint64_t x = extend(bits);
        zeros += bits == 0;
        signs ^= cr_is_signed(D) && (int64_t)x < 0 ? 0x80000000u : 0;
        if (D != CR_BOOL) {
            wrap *= x;
            times(bits, shared);
        }
    }
    /* The block's zeros, wrap and negatives, in every thread. */
    static CR_DEVICE void reduce(total &t, Shared &shared) {
        t.negatives = __reduce_xor_sync(CR_EVERYONE, (uint32_t)t.negatives);
#pragma unroll
        for (unsigned step = CR_WARP / 2; step > 0; step /= 2) t.wrap *= __shfl_xor_sync(CR_EVERYONE, t.wrap, step);
        if (threadIdx.x % CR_WARP == 0) {
            shared.room[CR_WARPS + threadIdx.x / CR_WARP] = t.wrap;
            shared.room[2 * CR_WARPS + threadIdx.x / CR_WARP] = t.negatives;
        }
        cr_block_sum(t.zeros, shared.room); /* its barriers are for those words too */
        t.wrap = 1;
        t.negatives = 0;
        for (unsigned warp = 0; warp < CR_WARPS; warp++) {
            t.wrap *= shared.room[CR_WARPS + warp];
            t.negatives ^= shared.room[2 * CR_WARPS + warp];
        }
        __syncthreads();
    }
    CR_DEVICE void publish(const cr_fold_args &, Shared &shared) {
        if (magnitude > 1) append(magnitude, shared);
        const uint32_t lanes = WIDTH == 1 ? 0x80808080u : WIDTH == 2 ? 0x80008000u : 0x80000000u;
        total t;
        t.zeros[0].word[0] = zeros;
        t.wrap = wrap;
        t.negatives = cr_is_signed(D) ? (uint32_t)__popc(signs & lanes) & 1 : 0;
        reduce(t, shared);
        if (threadIdx.x == 0) *cr_block_slot<total>(*args, blockIdx.x) = t;
        /* To the grid's list. */
        cr_prod_state *grid = &args->state->prod;
        const uint32_t mine = min(shared.factors, (uint32_t)CR_PROD_FACTORS);
        if (threadIdx.x == 0) shared.room[0] = mine ? atomicAdd(&grid->factors, mine) : 0;
        __syncthreads();
        const uint64_t at = shared.room[0];
        if (at + mine >= CR_PROD_FACTORS) return;
        for (uint32_t i = threadIdx.x; i < mine; i += CR_GPU_THREADS) grid->list[at + i] = shared.list[i];
    }
    CR_DEVICE void collect(const cr_fold_args &, Shared &shared) {
        total t;
        t.zeros[0].word[0] = t.negatives = 0;
        t.wrap = 1;
        for (uint32_t block = threadIdx.x; block < args->plan.blocks; block += CR_GPU_THREADS) {
            const unsigned long long *from = (const unsigned long long *)cr_block_slot<total>(*args, block);
            t.zeros[0].word[0] += __ldcg(from);
            t.wrap *= __ldcg(from + 1);
            t.negatives ^= __ldcg(from + 2);
        }
        reduce(t, shared);
        cr_prod_state *grid = &args->state->prod;
        const uint32_t factors = __ldcg(&grid->factors);
        for (uint32_t i = threadIdx.x; factors < CR_PROD_FACTORS && i < factors; i += CR_GPU_THREADS) {
            shared.list[i] = __ldcg(&grid->list[i]);
        }
        __syncthreads();
        if (threadIdx.x != 0) return;
        grid->factors = 0;
        cr_int_prod *out = &args->slot->partial.prod;
        out->zeros = t.zeros[0].word[0];
        out->wrap = D == CR_BOOL ? out->zeros == 0 : t.wrap;
        out->negative = t.negatives != 0;
        const uint32_t words = factors < CR_PROD_FACTORS ? multiply(shared, factors) : 0;
        out->over = words == 0;
        out->words = words;
        for (uint32_t i = 0; i < words; i++) out->magnitude[i] = shared.magnitude[i];
    }
    /* magnitude·factor; words: so far. 0: it does not fit. */
    static CR_DEVICE uint32_t multiply_one(uint64_t *by, uint32_t words, uint64_t factor) {
        uint64_t carry = 0;
        for (uint32_t i = 0; i < words; i++) {
            uint64_t low = by[i] * factor + carry;
            carry = __umul64hi(by[i], factor) + (low < carry);
            by[i] = low;
        }
        if (carry == 0) return words;
        if (words == CR_INT_PROD_WORDS) return 0;
        by[words] = carry;
        return words + 1;
    }
    /* The product of the listed factors, those that fit 64 bits together first. Gives its words. */
    static CR_DEVICE uint32_t multiply(Shared &shared, uint32_t factors) {
        uint32_t words = 1;
        uint64_t some = 1;
        shared.magnitude[0] = 1;
        for (uint32_t i = 0; words != 0 && i < factors; i++) {
            uint64_t factor = shared.list[i];
            if (__umul64hi(some, factor) == 0) {
                some *= factor;
            } else {
                words = multiply_one(shared.magnitude, words, some);
                some = factor;
            }
        }
        return words == 0 ? 0 : multiply_one(shared.magnitude, words, some);
    }
};

#endif
