/* words: integers of a few words for the last step of reductions along an axis: what a sum may hold, quotients, roots, and the
 * one that needs them all, a variance: n·Σx² − (Σx)² over n·(n − ddof), as kernels/core/finish_sums.c does it.
 *
 * Loops of few words unroll, so that they lie in registers; longer ones are rare and take memory.
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_AXIS_WORDS_CUH
#define CURED_KERNELS_CUDA_AXIS_WORDS_CUH

#include "kernels/cuda/thread/simt.cuh"

typedef unsigned __int128 cr_u128;
typedef __int128 cr_i128;

enum { CR_FEW_WORDS = 6 };

/* Of 64·W bits, two's complement where there is a sign. */
template <int W> struct cr_words {
    uint64_t word[W];
    static constexpr int UNROLL = W <= CR_FEW_WORDS ? W : 1;

    CR_DEVICE void clear() {
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) word[i] = 0;
    }
    CR_DEVICE bool negative() const { return word[W - 1] >> 63; }
    CR_DEVICE bool fits_64() const { /* with its sign */
        uint64_t above = 0;
#pragma unroll UNROLL
        for (int i = 1; i < W; i++) above |= word[i] ^ (uint64_t)((int64_t)word[0] >> 63);
        return above == 0;
    }
    template <int V> CR_DEVICE void widen(const cr_words<V> &x) { /* with its sign */
        const uint64_t sign = 0 - (uint64_t)x.negative();
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) word[i] = i < V ? x.word[i < V ? i : 0] : sign;
    }
    CR_DEVICE void set(cr_i128 x) {
        clear();
        word[0] = (uint64_t)x;
        word[1] = (uint64_t)((cr_u128)x >> 64);
        for (int i = 2; i < W; i++) word[i] = (uint64_t)((int64_t)word[1] >> 63);
    }
    CR_DEVICE void add(const cr_words &x) {
        uint64_t carry = 0;
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) {
            const cr_u128 sum = (cr_u128)word[i] + x.word[i] + carry;
            word[i] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
    }
    CR_DEVICE void negate() {
        uint64_t carry = 1;
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) {
            word[i] = ~word[i] + carry;
            carry &= word[i] == 0;
        }
    }
    /* Makes it its magnitude; whether it was negative. */
    CR_DEVICE bool strip_sign() {
        const bool was = negative();
        if (was) negate();
        return was;
    }
    CR_DEVICE bool zero() const {
        uint64_t any = 0;
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) any |= word[i];
        return any == 0;
    }
    CR_DEVICE void up_word() {
#pragma unroll UNROLL
        for (int i = W - 1; i > 0; i--) word[i] = word[i - 1];
        word[0] = 0;
    }
    CR_DEVICE void up(unsigned bits) {
#pragma unroll 1
        for (; bits >= 64; bits -= 64) up_word();
        if (bits == 0) return;
#pragma unroll UNROLL
        for (int i = W - 1; i > 0; i--) word[i] = word[i] << bits | word[i - 1] >> (64 - bits);
        word[0] <<= bits;
    }
    /* Of a number without a sign: up to its highest one. */
    CR_DEVICE int bits() const {
        int found = 0;
#pragma unroll UNROLL
        for (int i = 0; i < W; i++) found = word[i] != 0 ? 64 * (i + 1) - __clzll((long long)word[i]) : found;
        return found;
    }
    /* Of a number without a sign that is not zero: puts its highest one into the highest bit; gives by how much. */
    CR_DEVICE int align() {
        int by = 0;
#pragma unroll 1
        while (word[W - 1] == 0) {
            up_word();
            by += 64;
        }
        const int rest = __clzll((long long)word[W - 1]);
        up((unsigned)rest);
        return by + rest;
    }
    /* x·y modulo 2^(64·W), without signs. */
    template <int A, int B> CR_DEVICE void product(const cr_words<A> &x, const cr_words<B> &y) {
        clear();
#pragma unroll(W <= CR_FEW_WORDS ? A : 1)
        for (int i = 0; i < A; i++) {
            uint64_t carry = 0;
#pragma unroll(W <= CR_FEW_WORDS ? B : 1)
            for (int j = 0; j < B; j++) {
                if (i + j >= W) continue;
                const cr_u128 sum = (cr_u128)x.word[i] * y.word[j] + word[i + j] + carry;
                word[i + j] = (uint64_t)sum;
                carry = (uint64_t)(sum >> 64);
            }
            if (i + B < W) word[i + B] += carry;
        }
    }
};

/* A divisor, shifted so that its highest bit is a one, and what multiplying by replaces dividing by it (Möller and Granlund
 * 2011): floor((2^128 − 1)/divisor) − 2^64. */
struct cr_divisor {
    uint64_t divisor, inverse;
    int shift;

    CR_DEVICE explicit cr_divisor(uint64_t d) {
        shift = __clzll((long long)d);
        divisor = d << shift;
        /* Two digits of 32 bits, each at most two too large at first (Knuth, TAOCP 2, 4.3.1). */
        const uint64_t high = divisor >> 32, low = (uint32_t)divisor;
        uint64_t rest = ~divisor, result = 0;
#pragma unroll 1
        for (int i = 0; i < 2; i++) {
            uint64_t digit = rest / high, left = rest - digit * high;
            while (digit >> 32 != 0 || digit * low > (left << 32 | 0xffffffff)) {
                digit--;
                left += high;
                if (left >> 32 != 0) break;
            }
            rest = (rest << 32 | 0xffffffff) - digit * divisor;
            result = result << 32 | digit;
        }
        inverse = result;
    }
    /* (rest, word) by the divisor, rest < divisor; rest becomes what is left. */
    CR_DEVICE uint64_t digit(uint64_t &rest, uint64_t word) const {
        const cr_u128 guess = (cr_u128)inverse * rest + ((cr_u128)rest << 64 | word);
        uint64_t quotient = (uint64_t)(guess >> 64) + 1;
        rest = word - quotient * divisor;
        if (rest > (uint64_t)guess) {
            quotient--;
            rest += divisor;
        }
        if (rest >= divisor) {
            quotient++;
            rest -= divisor;
        }
        return quotient;
    }
    /* Whether anything is left. */
    template <int W> CR_DEVICE bool divide(cr_words<W> &x) const {
        uint64_t rest = shift != 0 ? x.word[W - 1] >> (64 - shift) : 0;
#pragma unroll 1
        for (int i = 0; i < W; i++) { /* the highest word first; they go around, so that each passes the same place */
            const uint64_t next = x.word[W - 1] << shift | (shift != 0 ? x.word[W - 2] >> (64 - shift) : 0);
            const bool lowest = i == W - 1;
            const uint64_t quotient = digit(rest, lowest ? x.word[W - 1] << shift : next);
            x.up_word();
            x.word[0] = quotient;
        }
        return rest != 0;
    }
};

/* The root of x, whose highest or next bit is a one: 64 bits. */
CR_DEVICE uint64_t cr_root_of(cr_u128 x, bool &sticky) {
    const double high = (double)(uint64_t)(x >> 64), near = __dmul_rn(__dsqrt_rn(high), 0x1p32);
    uint64_t root = near >= 0x1.fffffffffffffp63 ? ~0ull : (uint64_t)near;
    const cr_i128 rest = (cr_i128)(x - (cr_u128)root * root); /* below 2^78 */
    const int64_t more = (int64_t)__dmul_rn((double)(int64_t)(rest >> 16), 0x1p15 / (double)root);
    root = more > 0 && root + (uint64_t)more < root ? ~0ull : root + (uint64_t)more;
    while ((cr_u128)root * root > x) root--;
    while (x - (cr_u128)root * root > (cr_u128)root * 2) root++;
    sticky |= x != (cr_u128)root * root;
    return root;
}

/* The highest 128 bits of x, a number without a sign, the first of them a one, times 2^exponent. */
template <int W> CR_DEVICE cr_u128 cr_leading(cr_words<W> x, int &exponent, bool &sticky) {
    if (x.zero()) return 0;
    exponent += 64 * (W - 2) - x.align();
    if (W > 2) {
        uint64_t below = 0;
        for (int i = 0; i < W - 2; i++) below |= x.word[i];
        sticky |= below != 0;
    }
    return (cr_u128)x.word[W - 1] << 64 | x.word[W - 2];
}

/* The root of magnitude·2^exponent, of at most 128 bits. */
CR_DEVICE void cr_root(cr_u128 &magnitude, int &exponent, bool &sticky) {
    if (magnitude == 0) return;
    const uint64_t high = (uint64_t)(magnitude >> 64);
    int room = high ? __clzll((long long)high) : 64 + __clzll((long long)(uint64_t)magnitude);
    room -= (exponent - room) & 1; /* an even exponent */
    if (room < 0) {
        sticky |= magnitude & 1;
        magnitude >>= 1;
        exponent++;
    } else {
        magnitude <<= room;
        exponent -= room;
    }
    magnitude = cr_root_of(magnitude, sticky);
    exponent /= 2;
}

/* Of n elements whose sum is `sum`·2^unit, and that of their squares `squares`·2^unit_squares (neither with a sign): their variance, or
 * its root, as magnitude·2^exponent. False: N words do not hold it. */
template <int N, int A, int B>
CR_DEVICE bool cr_variance(const cr_words<A> &sum, int unit, const cr_words<B> &squares, int unit_squares, uint64_t n, uint64_t ddof,
                           bool root, cr_u128 &magnitude, int &exponent, bool &sticky) {
    magnitude = 0;
    exponent = 0;
    if (squares.zero()) return true;
    cr_words<1> count;
    count.word[0] = n;
    cr_words<N> all, less;
    all.product(squares, count);
    exponent = sum.zero() ? unit_squares : min(unit_squares, 2 * unit);
    const int up = unit_squares - exponent;
    if (squares.bits() + (64 - __clzll((long long)n)) + up >= 64 * N) return false;
    all.up((unsigned)up);
    if (!sum.zero()) { /* (Σx)² ≤ n·Σx² (Cauchy and Schwarz), so it fits too */
        if (2 * sum.bits() + 2 * unit - exponent >= 64 * N) return false;
        less.product(sum, sum);
        less.up((unsigned)(2 * unit - exponent));
        less.negate();
        all.add(less);
        if (all.negative()) return true; /* the memory changed between the two sums */
    }
    if (all.zero()) return true;
    /* The leading 256 bits, less two divisors, are enough for a root. */
    exponent += 64 * (N - 4) - all.align();
    cr_words<4> top;
#pragma unroll
    for (int i = 0; i < 4; i++) top.word[i] = all.word[N - 4 + i];
    uint64_t below = 0;
#pragma unroll(N <= CR_FEW_WORDS ? N : 1)
    for (int i = 0; i < N - 4; i++) below |= all.word[i];
    sticky |= below != 0;
    const uint64_t other = n - ddof;
    if (n >> 32 == 0) {
        sticky |= cr_divisor(n * other).divide(top);
    } else {
        sticky |= cr_divisor(n).divide(top);
        sticky |= cr_divisor(other).divide(top);
    }
    magnitude = cr_leading(top, exponent, sticky);
    if (root) cr_root(magnitude, exponent, sticky);
    return true;
}

#endif
