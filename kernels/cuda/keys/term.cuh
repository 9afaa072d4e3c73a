/* term: what an element adds to a sum by key: a number on the grid of the sum, as digits of the window where it lies in it whole, and
 * otherwise as digits of limbs. And elements that are compared, whose digits are keys of which the greatest stays; and those of which only
 * counts are wanted.
 *
 * Thread: GPU. Owner: none; pure functions. */
#ifndef CURED_KERNELS_CUDA_KEYS_TERM_CUH
#define CURED_KERNELS_CUDA_KEYS_TERM_CUH

#include "kernels/cuda/axis/words.cuh"
#include "kernels/cuda/fold/bins.cuh"
#include "kernels/cuda/keys/keys.h"

enum { CR_KEYS_DIGIT = 32 }; /* bits of a digit */

/* The smallest integer that holds an element as it lies. */
template <int SIZE> struct cr_keys_bits { typedef uint32_t type; };
template <> struct cr_keys_bits<8> { typedef uint64_t type; };

template <class E> struct cr_keys_floats {
    static constexpr bool GREATEST = false, JOINED = false, PLACED = false; /* digits add up */
    typedef typename cr_keys_bits<E::SIZE>::type Bits;
    static constexpr int SIZE = E::SIZE, U = SIZE == 8 ? 4 : 8; /* elements of a thread at a time */
    static constexpr Bits SIGN = (Bits)1 << (8 * SIZE - 1);
    CR_DEVICE static bool is_special(Bits bits) { return (bits & ~SIGN) >= (Bits)E::INFINITE; }
    CR_DEVICE static int special(Bits bits) { return (bits & ~SIGN) != (Bits)E::INFINITE ? 0 : bits & SIGN ? 2 : 1; }
    CR_DEVICE static bool is_nonzero(Bits bits) { return (bits & ~SIGN) != 0; }
};

template <class E> struct cr_keys_floats_alone : cr_keys_floats<E> {
    static constexpr int LIMBS = 0, GRID = 0;
};

/* A number on the grid of a sum, magnitude·2^place, whose magnitude has BITS bits. */
template <int BITS> struct cr_keys_number {
    static constexpr int TERM = BITS, DIGITS = BITS > 2 * CR_KEYS_DIGIT ? 4 : BITS > CR_KEYS_DIGIT ? 2 : 1; /* of the window */
    static constexpr int PARTS = (BITS + 2 * CR_KEYS_DIGIT - 2) / CR_KEYS_DIGIT; /* limbs that it touches */
    typedef std::conditional_t<BITS <= 64, uint64_t, cr_u128> Magnitude;
    typedef std::conditional_t<DIGITS == 1, uint64_t, cr_u128> Number;
    static constexpr int WIDTH = 8 * (int)sizeof(Magnitude);

    Magnitude magnitude;
    int place;
    bool negative;

    CR_DEVICE long long with_sign(uint64_t digit) const { return negative ? -(long long)digit : (long long)digit; }
    /* Whether the window that begins at the bit, with so many of its highest digit, holds all of it: then its digits, with their sign. */
    CR_DEVICE bool fits(int window, int top, long long (&digit)[DIGITS]) const {
        const int up = place - window, room = top + CR_KEYS_DIGIT * (DIGITS - 1) - TERM;
        Number number;
        if (up >= 0) {
            if (up > room) return magnitude == 0;
            number = (Number)magnitude << up;
        } else {
            if (up <= -WIDTH) return magnitude == 0;
            number = magnitude >> -up;
            if ((Magnitude)number << -up != magnitude) return false;
        }
#pragma unroll
        for (int i = 0; i < DIGITS; i++)
            digit[i] = with_sign(i + 1 < DIGITS ? (uint32_t)(number >> CR_KEYS_DIGIT * i) : (uint64_t)(number >> CR_KEYS_DIGIT * i));
        return true;
    }
    /* Its digits for the limbs from `place / 32` on. */
    CR_DEVICE long long part(int i) const {
        const int up = place % CR_KEYS_DIGIT, down = CR_KEYS_DIGIT * i - up;
        return with_sign(down <= 0 ? (uint32_t)(magnitude << up) : down < WIDTH ? (uint32_t)(magnitude >> down) : 0);
    }
};

/* Sums of the elements of E, or of their squares. */
template <class E, int OF> struct cr_keys_power : cr_keys_floats<E>, cr_keys_number<OF *(E::MANTISSA + 1)> {
    typedef typename cr_keys_floats<E>::Bits Bits;
    typedef cr_keys_number<OF *(E::MANTISSA + 1)> Number;
    static constexpr int POWER = OF, LIMBS = OF == 2 ? E::SQUARE_LIMBS : E::SUM_LIMBS, GRID = OF == 2 ? E::SQUARE_GRID : E::GRID;
    static constexpr int UP = 1 - E::BIAS - E::MANTISSA - E::GRID; /* a bfloat16's places on float32's grid */

    /* Of the element itself. */
    CR_DEVICE static int place_of(Bits bits) { return max((int)(bits >> E::MANTISSA) & E::TOP, 1) - 1 + UP; }
    CR_DEVICE cr_keys_power(Bits bits, const cr_keys_args &) {
        const int field = (int)(bits >> E::MANTISSA) & E::TOP;
        const uint64_t own = (bits & (((Bits)1 << E::MANTISSA) - 1)) | (Bits)(field != 0) << E::MANTISSA;
        this->magnitude = POWER == 2 ? (typename Number::Magnitude)own * own : own;
        this->place = POWER * place_of(bits);
        this->negative = POWER == 1 && (bits & cr_keys_floats<E>::SIGN) != 0;
    }
};
template <class E> using cr_keys_sum = cr_keys_power<E, 1>;
template <class E> using cr_keys_square = cr_keys_power<E, 2>;

/* Elements that are no floats. */
template <int BYTES> struct cr_keys_integers {
    typedef typename cr_keys_bits<BYTES>::type Bits;
    static constexpr bool GREATEST = false, JOINED = false, PLACED = false;
    static constexpr int SIZE = BYTES, U = SIZE == 8 ? 4 : 8, LIMBS = 0, GRID = 0;
    CR_DEVICE static bool is_special(Bits) { return false; }
    CR_DEVICE static int special(Bits) { return 0; }
    CR_DEVICE static bool is_nonzero(Bits bits) { return bits != 0; }
};

/* Sums of integers, all of which lie in a window at 0. */
template <int BYTES> struct cr_keys_whole : cr_keys_integers<BYTES>, cr_keys_number<8 * BYTES> {
    typedef typename cr_keys_integers<BYTES>::Bits Bits;
    CR_DEVICE cr_keys_whole(Bits bits, const cr_keys_args &args) {
        constexpr int UNUSED = 64 - 8 * BYTES;
        const int64_t own = (int64_t)((uint64_t)bits << UNUSED) >> UNUSED;
        const bool below = args.is_signed && own < 0;
        this->magnitude = args.dtype == CR_BOOL ? (uint64_t)(bits != 0) : below ? 0 - (uint64_t)own : (uint64_t)bits;
        this->place = 0;
        this->negative = below && !args.absolute;
    }
};

/* The greatest element and the least: as keys in the order of kernels/core/key.h, the greatest and the greatest complement. FLOAT: of BASE's
 * elements, NaNs are no extrema. */
template <class BASE, bool FLOAT> struct cr_keys_extreme : BASE {
    typedef typename BASE::Bits Bits;
    static constexpr int DIGITS = 2, TERM = 0;
    static constexpr bool GREATEST = true;
    static constexpr Bits TOP = (Bits)1 << (8 * BASE::SIZE - 1), ALL = TOP | (TOP - 1);
    Bits key;

    CR_DEVICE cr_keys_extreme(Bits bits, const cr_keys_args &args) {
        if (FLOAT) key = bits & TOP ? ~bits & ALL : bits | TOP;
        else key = args.is_signed ? bits ^ TOP : args.dtype == CR_BOOL ? (Bits)(bits != 0) : bits;
    }
    CR_DEVICE bool fits(int, int, long long (&digit)[DIGITS]) const {
        digit[0] = (long long)key;
        digit[1] = (long long)(~key & ALL);
        return true;
    }
};
template <class E> using cr_keys_extreme_floats = cr_keys_extreme<cr_keys_floats_alone<E>, true>;
template <int BYTES> using cr_keys_extreme_integers = cr_keys_extreme<cr_keys_integers<BYTES>, false>;

/* Elements that are counted only. */
template <class E> struct cr_keys_count : cr_keys_floats<E> {
    static constexpr int DIGITS = 0, LIMBS = 0, GRID = 0;
};
template <int BYTES> struct cr_keys_count_bits : cr_keys_integers<BYTES> {
    static constexpr int DIGITS = 0;
};

#endif
