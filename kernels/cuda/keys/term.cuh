/* term: what an element adds to a sum by key: a number on the grid of the sum, as digits of the window where it lies in it whole, and
 * otherwise as digits of limbs. And elements of which only counts are wanted.
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
    typedef typename cr_keys_bits<E::SIZE>::type Bits;
    static constexpr int SIZE = E::SIZE, U = SIZE == 8 ? 4 : 8; /* elements of a thread at a time */
    static constexpr Bits SIGN = (Bits)1 << (8 * SIZE - 1);
    CR_DEVICE static bool is_special(Bits bits) { return (bits & ~SIGN) >= (Bits)E::INFINITE; }
    CR_DEVICE static int special(Bits bits) { return (bits & ~SIGN) != (Bits)E::INFINITE ? 0 : bits & SIGN ? 2 : 1; }
    CR_DEVICE static bool is_nonzero(Bits bits) { return (bits & ~SIGN) != 0; }
};

/* Sums of E. */
template <class E> struct cr_keys_sum : cr_keys_floats<E> {
    typedef typename cr_keys_floats<E>::Bits Bits;
    static constexpr int TERM = E::MANTISSA + 1, DIGITS = TERM > CR_KEYS_TOP ? 2 : 1, LIMBS = E::SUM_LIMBS, GRID = E::GRID;
    static constexpr int UP = 1 - E::BIAS - E::MANTISSA - GRID; /* a bfloat16's places on float32's grid */
    static constexpr int PARTS = (TERM + CR_KEYS_DIGIT - 1 + CR_KEYS_DIGIT - 1) / CR_KEYS_DIGIT; /* limbs that a term touches */
    typedef std::conditional_t<DIGITS == 1, uint64_t, cr_u128> Number;

    uint64_t magnitude;
    int place;
    bool negative;

    CR_DEVICE static int place_of(Bits bits) { return max((int)(bits >> E::MANTISSA) & E::TOP, 1) - 1 + UP; }
    CR_DEVICE explicit cr_keys_sum(Bits bits) {
        const int field = (int)(bits >> E::MANTISSA) & E::TOP;
        magnitude = (bits & (((Bits)1 << E::MANTISSA) - 1)) | (Bits)(field != 0) << E::MANTISSA;
        place = max(field, 1) - 1 + UP;
        negative = (bits & cr_keys_floats<E>::SIGN) != 0;
    }
    /* Whether the window that begins at the bit, with so many of its highest digit, holds all of it: then its digits, with their sign. */
    CR_DEVICE bool fits(int window, int top, long long (&digit)[DIGITS]) const {
        const int up = place - window, room = top + CR_KEYS_DIGIT * (DIGITS - 1) - TERM;
        Number number;
        if (up >= 0) {
            if (up > room) return magnitude == 0;
            number = (Number)magnitude << up;
        } else {
            if (up <= -64) return magnitude == 0;
            number = magnitude >> -up;
            if ((uint64_t)number << -up != magnitude) return false;
        }
#pragma unroll
        for (int i = 0; i < DIGITS; i++) {
            const long long own = i + 1 < DIGITS ? (long long)(uint32_t)(number >> CR_KEYS_DIGIT * i) : (long long)(number >> CR_KEYS_DIGIT * i);
            digit[i] = negative ? -own : own;
        }
        return true;
    }
    /* Its digits for the limbs from `place / 32` on. */
    CR_DEVICE long long part(int i) const {
        const cr_u128 number = (cr_u128)magnitude << place % CR_KEYS_DIGIT;
        const long long own = (long long)(uint32_t)(number >> CR_KEYS_DIGIT * i);
        return negative ? -own : own;
    }
};

/* Elements that are counted only. */
template <class E> struct cr_keys_count : cr_keys_floats<E> {
    static constexpr int DIGITS = 0, LIMBS = 0, GRID = 0;
};
template <int BYTES> struct cr_keys_count_bits {
    typedef typename cr_keys_bits<BYTES>::type Bits;
    static constexpr int SIZE = BYTES, U = SIZE == 8 ? 4 : 8, DIGITS = 0, LIMBS = 0, GRID = 0;
    CR_DEVICE static bool is_special(Bits) { return false; }
    CR_DEVICE static int special(Bits) { return 0; }
    CR_DEVICE static bool is_nonzero(Bits bits) { return bits != 0; }
};

#endif
