/* simt: what the accumulators stand on: element types as constants, lanes of a word, wide integers, sums and minima over a
 * block, and what turns an accumulator of totals into one for the walk.
 *
 * Nothing here is specific to a chip above compute capability 8.0. It also compiles for the host, where a test runs blocks as
 * fibres.
 * Thread: GPU; a block has CR_GPU_THREADS threads. Owner: the kernel. */
#ifndef CURED_KERNELS_CUDA_THREAD_SIMT_CUH
#define CURED_KERNELS_CUDA_THREAD_SIMT_CUH

#include "kernels/cuda/thread/array.cuh"

/* Vectors in flight in each thread. Measured on an H200: with eight of them and four blocks on a multiprocessor registers spill,
 * which costs 2 to 15 % at every size; six do not divide the shorter blocks. */
enum { CR_GPU_FEWER = 4 };

enum { CR_WARP = 32, CR_WARPS = CR_GPU_THREADS / CR_WARP };
#define CR_EVERYONE 0xffffffffu

static constexpr unsigned cr_width(cr_dtype d) { /* bytes */
    return d <= CR_I8 || d == CR_F8_E4M3 || d == CR_F8_E5M2 ? 1
           : d <= CR_I16 || d == CR_F16 || d == CR_BF16     ? 2
           : d == CR_U64 || d == CR_I64 || d == CR_F64      ? 8
                                                            : 4;
}
static constexpr bool cr_is_float(cr_dtype d) { return d >= CR_F16; }
static constexpr bool cr_is_signed(cr_dtype d) { return d == CR_I8 || d == CR_I16 || d == CR_I32 || d == CR_I64; }
/* CASE(type) for each: what a kernel is compiled for. */
#define CR_INTEGER_TYPES(CASE) \
    CASE(CR_BOOL) CASE(CR_U8) CASE(CR_I8) CASE(CR_U16) CASE(CR_I16) CASE(CR_U32) CASE(CR_I32) CASE(CR_U64) CASE(CR_I64)
#define CR_FLOAT_TYPES(CASE) CASE(CR_F8_E4M3) CASE(CR_F8_E5M2) CASE(CR_F16) CASE(CR_BF16) CASE(CR_F32) CASE(CR_F64)
/* The bits beyond which there are only NaNs: those of +inf, or where a type has none, of its largest number. */
static constexpr uint64_t cr_infinity(cr_dtype d) {
    return (uint64_t)(d == CR_F8_E4M3   ? CR_INFINITY_OF(F8_E4M3)
                      : d == CR_F8_E5M2 ? CR_INFINITY_OF(F8_E5M2)
                      : d == CR_F16     ? CR_INFINITY_OF(F16)
                      : d == CR_BF16    ? CR_INFINITY_OF(BF16)
                      : d == CR_F32     ? CR_INFINITY_OF(F32)
                                        : CR_INFINITY_OF(F64));
}
static constexpr bool cr_has_infinity(cr_dtype d) { return d != CR_F8_E4M3; }
/* Of floats of one byte: the top bit of each byte that is a NaN, and nothing else. */
template <cr_dtype D>
CR_DEVICE uint32_t cr_nan_bytes(uint32_t w) {
    return ((w & 0x7f7f7f7fu) + (0x7fu - (uint32_t)cr_infinity(D)) * 0x01010101u) & 0x80808080u;
}

/* By value: a conditional over array elements would choose an address, and the array would lie in memory. */
CR_DEVICE uint4 cr_choose(bool first, const uint4 &a, const uint4 &b) {
    return make_uint4(first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w);
}

/* A vector of one element, and zeros. */
CR_DEVICE uint4 cr_alone(uint64_t bits) { return make_uint4((uint32_t)bits, (uint32_t)(bits >> 32), 0, 0); }

/* 0x80 in every byte of w that is not zero, 0x8000 in every half, and nothing else. */
CR_DEVICE uint32_t cr_nonzero_bytes(uint32_t w) { return (((w & 0x7f7f7f7fu) + 0x7f7f7f7fu) | w) & 0x80808080u; }
CR_DEVICE uint32_t cr_nonzero_halves(uint32_t w) { return (((w & 0x7fff7fffu) + 0x7fff7fffu) | w) & 0x80008000u; }
/* Bytes of w, by a selector's digits: 0 to 3, from 8 on that byte's sign instead; 4 to 7: zero.
 * Not __byte_perm: it leaves out the bit of a selector that asks for signs. */
#if defined(__CUDA_ARCH__)
CR_DEVICE uint32_t cr_signs(uint32_t w, uint32_t selector) {
    uint32_t signs;
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(signs) : "r"(w), "r"(selector));
    return signs;
}
#else
CR_DEVICE uint32_t cr_signs(uint32_t w, uint32_t selector) {
    uint32_t signs = 0;
    for (unsigned i = 0; i < 4; i++) {
        const uint32_t digit = selector >> 4 * i & 15, byte = digit & 4 ? 0 : w >> 8 * (digit & 3) & 0xff;
        signs |= (digit & 8 ? (byte >> 7) * 0xff : byte) << 8 * i;
    }
    return signs;
}
#endif
/* All ones in the lanes whose top bit is set. */
CR_DEVICE uint32_t cr_sign_bytes(uint32_t w) { return cr_signs(w, 0xba98); }
CR_DEVICE uint32_t cr_sign_halves(uint32_t w) { return cr_signs(w, 0xbb99); }

CR_DEVICE void cr_prefetch(const void *p) {
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L1 [%0];" ::"l"(p));
#else
    (void)p;
#endif
}

/* An integer of 64·W bits, two's complement. */
template <unsigned W>
struct cr_wide {
    uint64_t word[W];

    CR_DEVICE void clear() {
#pragma unroll
        for (unsigned i = 0; i < W; i++) word[i] = 0;
    }
    CR_DEVICE void add(const cr_wide &x) {
#if defined(__CUDA_ARCH__) /* the carry stays in its flag */
        if constexpr (W == 2) {
            asm("add.cc.u64 %0, %0, %2;\n\taddc.u64 %1, %1, %3;"
                : "+l"(word[0]), "+l"(word[1])
                : "l"(x.word[0]), "l"(x.word[1]));
            return;
        }
        if constexpr (W == 3) {
            asm("add.cc.u64 %0, %0, %3;\n\taddc.cc.u64 %1, %1, %4;\n\taddc.u64 %2, %2, %5;"
                : "+l"(word[0]), "+l"(word[1]), "+l"(word[2])
                : "l"(x.word[0]), "l"(x.word[1]), "l"(x.word[2]));
            return;
        }
#endif
        uint64_t carry = 0;
#pragma unroll
        for (unsigned i = 0; i < W; i++) {
            uint64_t half = word[i] + carry;
            carry = half < carry;
            word[i] = half + x.word[i];
            carry += word[i] < half;
        }
    }
    CR_DEVICE void add_shifted(uint32_t piece, unsigned bit) { /* bit: a constant */
        cr_wide x;
        x.clear();
        x.word[bit / 64] = (uint64_t)piece << bit % 64;
        if (bit % 64 > 32 && bit / 64 + 1 < W) x.word[bit / 64 + 1] = (uint64_t)piece >> (64 - bit % 64);
        add(x);
    }
    /* Adds a magnitude, or a number with a sign. */
    CR_DEVICE void add_u64(uint64_t x) {
        cr_wide wide;
        wide.clear();
        wide.word[0] = x;
        add(wide);
    }
    CR_DEVICE void add_i64(int64_t x) {
        cr_wide wide;
        wide.word[0] = (uint64_t)x;
#pragma unroll
        for (unsigned i = 1; i < W; i++) wide.word[i] = (uint64_t)(x >> 63);
        add(wide);
    }
    /* Sums over the warp, for every lane. Pieces of 27 bits: 32 of them fit an addition of 32 bits. */
    CR_DEVICE void warp_sum() {
        cr_wide sum;
        sum.clear();
#pragma unroll
        for (unsigned bit = 0; bit < 64 * W; bit += 27) {
            uint64_t piece = word[bit / 64] >> bit % 64;
            if (bit % 64 > 37 && bit / 64 + 1 < W) piece |= word[bit / 64 + 1] << (64 - bit % 64);
            sum.add_shifted(__reduce_add_sync(CR_EVERYONE, (uint32_t)piece & 0x7ffffffu), bit);
        }
        *this = sum;
    }
};

/* Sums of N wide numbers over the block, in every thread. room: N·W·CR_WARPS words, not to be written again before a barrier. */
template <unsigned N, unsigned W>
CR_DEVICE void cr_block_sum(cr_wide<W> (&x)[N], uint64_t *room) {
    const unsigned warp = threadIdx.x / CR_WARP;
#pragma unroll
    for (unsigned k = 0; k < N; k++) {
        x[k].warp_sum();
        if (threadIdx.x % CR_WARP == 0) {
            for (unsigned i = 0; i < W; i++) room[(k * CR_WARPS + warp) * W + i] = x[k].word[i];
        }
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < N; k++) {
        cr_wide<W> part;
        x[k].clear();
        for (unsigned other = 0; other < CR_WARPS; other++) {
            for (unsigned i = 0; i < W; i++) part.word[i] = room[(k * CR_WARPS + other) * W + i];
            x[k].add(part);
        }
    }
}

CR_DEVICE uint64_t cr_warp_min(uint64_t x) {
    uint32_t high = (uint32_t)(x >> 32), least = __reduce_min_sync(CR_EVERYONE, high);
    uint32_t low = high == least ? (uint32_t)x : UINT32_MAX;
    return cr_pair(__reduce_min_sync(CR_EVERYONE, low), least);
}

/* A block's number x, digit by digit of 32 bits (the highest with a sign), to words that also count the blocks in their upper
 * bits: so it is one round trip to the L2 cache, and whoever is the last on a word knows its sum, writes that limb of `to` (and
 * `also`), and leaves zero behind. x is the same in all threads. */
enum { CR_WORD_COUNT_AT = 48 };
CR_DEVICE bool cr_leave_word(unsigned long long *word, uint64_t &value, uint32_t blocks) {
    if (blocks == 1) return true;
    const unsigned long long add = value + (1ull << CR_WORD_COUNT_AT), old = atomicAdd(word, add);
    if ((old >> CR_WORD_COUNT_AT) + 1 != blocks) return false;
    *word = 0;
    value = (old + value) & ((1ull << CR_WORD_COUNT_AT) - 1);
    return true;
}

template <unsigned DIGITS, unsigned W>
CR_DEVICE void cr_leave_digits(const cr_wide<W> &x, const cr_fold_args &args, unsigned long long *words, int64_t *to,
                               int64_t *also) {
    const uint32_t blocks = args.plan.blocks, digit = threadIdx.x;
    if (digit >= DIGITS) return;
    uint32_t bits = 0;
#pragma unroll
    for (unsigned i = 0; i < DIGITS; i++) bits = digit == i ? (uint32_t)(x.word[i / 2] >> i % 2 * 32) : bits;
    /* So that it is never negative. */
    const uint32_t bias = digit + 1 == DIGITS ? 0x80000000u : 0;
    uint64_t value = bits ^ bias;
    if (!cr_leave_word(&words[digit], value, blocks)) return;
    const int64_t limb = (int64_t)(value - (uint64_t)bias * blocks);
    if (to) to[digit] = limb;
    if (also) also[digit] = limb;
}

#endif
