/* joined: what an element adds to a group whose digits neither add up nor are compared one by one: bits, products of integers; and which
 * elements are their group's extrema, once those are known. As with a sum all digits are 0 of no elements.
 *
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_KEYS_JOINED_CUH
#define CURED_KERNELS_CUDA_KEYS_JOINED_CUH

#include "kernels/cuda/keys/term.cuh"

CR_DEVICE unsigned long long *cr_keys_plane(const cr_keys_args &args, int number, uint32_t group) {
    return args.planes + (uint64_t)number * args.groups + group;
}

/* Where extrema lie: digits are complements of the lowest number of an element that is the greatest of its group, and of one that is the
 * least. Of a group with NaNs that count: of a NaN, both. */
template <int BYTES> struct cr_keys_place : cr_keys_integers<BYTES> {
    typedef typename cr_keys_integers<BYTES>::Bits Bits;
    static constexpr bool GREATEST = true, PLACED = true;
    static constexpr int DIGITS = 2, TERM = 0;
    static constexpr Bits TOP = (Bits)1 << (8 * BYTES - 1), ALL = TOP | (TOP - 1);

    CR_DEVICE static uint64_t sought(const cr_keys_args &args, int back, uint32_t group) {
        return *cr_keys_plane(args, args.at.window - back, group);
    }
    CR_DEVICE static void places(const cr_keys_args &args, uint32_t group, Bits bits, uint64_t i, long long (&digit)[DIGITS]) {
        const bool nan = args.is_float && (bits & (TOP - 1)) > (Bits)args.infinite;
        const bool nans = args.at.special >= 0 && *cr_keys_plane(args, args.at.special, group) != 0;
        Bits key = args.dtype == CR_BOOL ? (Bits)(bits != 0) : bits;
        if (args.is_float) key = bits & TOP ? ~bits & ALL : bits | TOP;
        else if (args.is_signed) key = bits ^ TOP;
        const bool is_most = (args.wants & 1) != 0 && (nans ? nan : !nan && sought(args, 2, group) == key);
        const bool is_least = (args.wants & 2) != 0 && (nans ? nan : !nan && sought(args, 1, group) == (Bits)(~key & ALL));
        digit[0] = is_most ? (uint32_t)~(uint32_t)i : 0;
        digit[1] = is_least ? (uint32_t)~(uint32_t)i : 0;
    }
};

/* The bits that some element has; those that some has not; those that an odd number has. */
template <int BYTES> struct cr_keys_bitwise : cr_keys_integers<BYTES> {
    typedef typename cr_keys_integers<BYTES>::Bits Bits;
    static constexpr bool JOINED = true;
    static constexpr int DIGITS = 3, TERM = 0;
    static constexpr uint64_t ALL = ~0ull >> (64 - 8 * BYTES);
    uint64_t own, not_own;

    CR_DEVICE cr_keys_bitwise(Bits bits, const cr_keys_args &args) {
        own = args.dtype == CR_BOOL ? (uint64_t)(bits != 0) : (uint64_t)bits;
        not_own = ~own & ALL;
    }
    CR_DEVICE bool fits(int, int, long long (&digit)[DIGITS]) const {
        digit[0] = digit[2] = (long long)own;
        digit[1] = (long long)not_own;
        return true;
    }
    CR_DEVICE static void join(long long (&own)[DIGITS], const long long (&other)[DIGITS]) {
        own[0] |= other[0];
        own[1] |= other[1];
        own[2] ^= other[2];
    }
    CR_DEVICE static void put(const cr_keys_args &args, uint32_t group, const long long (&digit)[DIGITS]) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            unsigned long long *word = cr_keys_plane(args, args.at.window + i, group);
            const unsigned long long bits = (unsigned long long)digit[i];
            if ((args.wants >> i & 1) != 0 && (bits & ~__ldcg(word)) != 0) atomicOr(word, bits);
        }
        if ((args.wants & 4) != 0 && digit[2] != 0)
            atomicXor(cr_keys_plane(args, args.at.window + 2, group), (unsigned long long)digit[2]);
    }
    /* The same in a block's shared memory: the lower half of digit i lies 2·i strides on, its upper half another. */
    static constexpr int HALVES = BYTES == 8 ? 2 : 1;
    CR_DEVICE static void put_shared(const cr_keys_args &args, uint32_t *first, uint32_t stride, const long long (&digit)[DIGITS]) {
#pragma unroll
        for (int i = 0; i < DIGITS; i++) {
#pragma unroll
            for (int half = 0; half < HALVES && (args.wants >> i & 1) != 0; half++) {
                uint32_t *word = first + (2 * i + half) * stride;
                const uint32_t bits = (uint32_t)((unsigned long long)digit[i] >> 32 * half);
                if (bits != 0) i == 2 ? atomicXor(word, bits) : atomicOr(word, bits);
            }
        }
    }
    CR_DEVICE static void join_shared(long long (&own)[DIGITS], const uint32_t *first, uint32_t stride) {
        long long digit[DIGITS];
#pragma unroll
        for (int i = 0; i < DIGITS; i++) {
            digit[i] = first[2 * i * stride];
            if (HALVES == 2) digit[i] |= (long long)((unsigned long long)first[(2 * i + 1) * stride] << 32);
        }
        join(own, digit);
    }
};

/* The product of the magnitudes other than 0, modulo 2^64, with its lowest bit turned, so that a product of nothing is 0; and what more is
 * known. A product of whole numbers is beyond 2^64 if and only if some step of its making is, whatever the steps are. */
enum { CR_KEYS_ZERO = 1, CR_KEYS_OVER = 2, CR_KEYS_NEGATIVE = 4 };
template <int BYTES> struct cr_keys_product : cr_keys_integers<BYTES> {
    typedef typename cr_keys_integers<BYTES>::Bits Bits;
    static constexpr bool JOINED = true;
    static constexpr int DIGITS = 2, TERM = 0;
    cr_keys_whole<BYTES> element;

    CR_DEVICE cr_keys_product(Bits bits, const cr_keys_args &args) : element(bits, args) {}
    CR_DEVICE bool fits(int, int, long long (&digit)[DIGITS]) const {
        digit[0] = element.magnitude == 0 ? 0 : (long long)((uint64_t)element.magnitude ^ 1);
        digit[1] = element.magnitude == 0 ? CR_KEYS_ZERO : element.negative ? CR_KEYS_NEGATIVE : 0;
        return true;
    }
    CR_DEVICE static void join(long long (&own)[DIGITS], const long long (&other)[DIGITS]) {
        const uint64_t a = (uint64_t)own[0] ^ 1, b = (uint64_t)other[0] ^ 1;
        const long long over = __umul64hi(a, b) != 0 ? CR_KEYS_OVER : 0;
        own[0] = (long long)(a * b ^ 1);
        own[1] = ((own[1] | other[1]) & (CR_KEYS_ZERO | CR_KEYS_OVER)) | ((own[1] ^ other[1]) & CR_KEYS_NEGATIVE) | over;
    }
    /* Where a zero has decided all, or what does not fit its type, nothing is multiplied any more. */
    CR_DEVICE static void put(const cr_keys_args &args, uint32_t group, const long long (&digit)[DIGITS]) {
        unsigned long long *word = cr_keys_plane(args, args.at.window, group), *flags = cr_keys_plane(args, args.at.window + 1, group);
        const unsigned long long factor = (unsigned long long)digit[0] ^ 1, own = (unsigned long long)digit[1];
        if (own == 0 && factor == 1) return;
        const unsigned long long known = __ldcg(flags), more = own & (CR_KEYS_ZERO | CR_KEYS_OVER) & ~known;
        if ((known & CR_KEYS_ZERO) != 0) return;
        if (more != 0) atomicOr(flags, more);
        if ((own & CR_KEYS_ZERO) != 0 || ((known & CR_KEYS_OVER) != 0 && !args.wraps)) return;
        if ((own & CR_KEYS_NEGATIVE) != 0) atomicXor(flags, (unsigned long long)CR_KEYS_NEGATIVE);
        if (factor == 1) return;
        unsigned long long old = __ldcg(word), before;
        bool over = false;
        do {
            before = old;
            if ((before ^ 1) == 0) return; /* a multiple of 2^64 */
            over = __umul64hi(before ^ 1, factor) != 0;
            old = atomicCAS(word, before, ((before ^ 1) * factor) ^ 1);
        } while (old != before);
        if (over && (known & CR_KEYS_OVER) == 0) atomicOr(flags, (unsigned long long)CR_KEYS_OVER);
    }
};

#endif
