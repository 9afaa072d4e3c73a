/* round: the last step on a GPU: from an exact number to a value of the result's type, rounded once, as kernels/core/round.c
 * and finish_sums.c do it.
 *
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_AXIS_ROUND_CUH
#define CURED_KERNELS_CUDA_AXIS_ROUND_CUH

#include "kernels/core/close.h"
#include "kernels/cuda/axis/axis.h"
#include "kernels/cuda/axis/words.cuh"
#include "kernels/cuda/thread/float.cuh"

CR_DEVICE int cr_bits_in(cr_u128 x) { /* up to the highest one */
    const uint64_t high = (uint64_t)(x >> 64);
    return high ? 128 - __clzll((long long)high) : 64 - __clzll((long long)(uint64_t)x);
}

struct cr_fields {
    int mantissa, bias, width; /* width: of the exponent's field */
};
CR_DEVICE cr_fields cr_fields_of(int dtype) { /* no number is rounded to f8_e4m3 or f8_e5m2 */
    return dtype == CR_F16    ? cr_fields{CR_F16_MANTISSA, CR_F16_BIAS, CR_F16_EXPONENT}
           : dtype == CR_BF16 ? cr_fields{CR_BF16_MANTISSA, CR_BF16_BIAS, CR_BF16_EXPONENT}
           : dtype == CR_F32  ? cr_fields{CR_F32_MANTISSA, CR_F32_BIAS, CR_F32_EXPONENT}
                              : cr_fields{CR_F64_MANTISSA, CR_F64_BIAS, CR_F64_EXPONENT};
}
CR_DEVICE uint64_t cr_infinite_bits(int dtype, bool negative) {
    const cr_fields f = cr_fields_of(dtype);
    return (uint64_t)negative << (f.mantissa + f.width) | ((1ull << f.width) - 1) << f.mantissa;
}
CR_DEVICE uint64_t cr_nan_bits(int dtype) {
    if (dtype == CR_F8_E4M3) return 0x7f;
    if (dtype == CR_F8_E5M2) return 0x7e;
    return cr_infinite_bits(dtype, false) | 1ull << (cr_fields_of(dtype).mantissa - 1);
}

/* The bits of ±(magnitude·2^exponent + something less than its last bit, if sticky), which then has 56 bits at least. */
CR_DEVICE uint64_t cr_rounded(int dtype, bool negative, cr_u128 magnitude, int exponent, bool sticky) {
    if (magnitude == 0) return 0;
    const cr_fields f = cr_fields_of(dtype);
    const int lead = exponent + cr_bits_in(magnitude) - 1, lowest = 1 - f.bias - f.mantissa;
    if (lead > f.bias) return cr_infinite_bits(dtype, negative);
    const int unit = max(lead - f.mantissa, lowest);
    uint64_t kept, half = 0;
    if (unit > exponent) {
        const int drop = unit - exponent; /* the number has at most 128 bits: beyond that nothing is kept */
        if (drop > 129) {
            kept = 0;
            sticky = true;
        } else {
            const cr_u128 least = drop == 1 ? 0 : drop > 128 ? magnitude : magnitude & (((cr_u128)1 << (drop - 1)) - 1);
            const cr_u128 rest = drop > 128 ? 0 : magnitude >> (drop - 1);
            sticky |= least != 0;
            half = (uint64_t)rest & 1;
            kept = (uint64_t)(rest >> 1);
        }
    } else {
        kept = (uint64_t)magnitude << (exponent - unit);
    }
    if (half && (sticky || (kept & 1))) kept++;
    return ((uint64_t)negative << (f.mantissa + f.width)) | (((uint64_t)(unit - lowest) << f.mantissa) + kept);
}

/* magnitude·2^exponent divided by n: a quotient of 64 bits and more. */
CR_DEVICE void cr_divide(cr_u128 &magnitude, int &exponent, bool &sticky, uint64_t n) {
    if (magnitude == 0) return;
    const int room = 128 - cr_bits_in(magnitude);
    magnitude <<= room;
    exponent -= room;
    if (n >> 32 == 0) {
        const uint32_t d = (uint32_t)n;
        uint64_t rest = 0;
        cr_u128 quotient = 0;
#pragma unroll 1
        for (int i = 96; i >= 0; i -= 32) {
            rest = rest << 32 | (uint32_t)(magnitude >> i);
            quotient |= (cr_u128)(rest / d) << i;
            rest %= d;
        }
        magnitude = quotient;
        sticky |= rest != 0;
        return;
    }
    const int down = 64 - __clzll((long long)n); /* bit by bit: rare */
    cr_u128 rest = magnitude >> (128 - down), quotient = 0;
#pragma unroll 1
    for (int i = 127 - down; i >= -1; i--) {
        quotient <<= 1;
        if (rest >= n) {
            rest -= n;
            quotient |= 1;
        }
        if (i >= 0) rest = rest << 1 | ((magnitude >> i) & 1);
    }
    magnitude = quotient;
    sticky |= rest != 0;
}

CR_DEVICE void cr_put_bits(void *to, uint64_t output, int dtype, uint64_t bits) {
    switch ((cr_dtype)dtype) {
        case CR_F64:
        case CR_U64:
        case CR_I64:
            ((uint64_t *)to)[output] = bits;
            break;
        case CR_F32:
        case CR_U32:
        case CR_I32:
            ((uint32_t *)to)[output] = (uint32_t)bits;
            break;
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
        case CR_F8_E4M3:
        case CR_F8_E5M2:
            ((uint8_t *)to)[output] = (uint8_t)bits;
            break;
        case CR_U16:
        case CR_I16:
        case CR_F16:
        case CR_BF16:
            ((uint16_t *)to)[output] = (uint16_t)bits;
            break;
        case CR_DTYPE_NONE: // no results along an axis
        case CR_I128:
        case CR_BIGINT:
        case CR_DIGEST:
            break;
    }
}

/* What NaNs and infinities were among an output's elements. */
enum : uint64_t {
    CR_MARK_PLUS = 1ull << 61,
    CR_MARK_MINUS = 1ull << 62,
    CR_MARK_HARD = 1ull << 63,
    CR_MARK_NANS = (1ull << 60) - 1, /* their number */
};

/* The elements of an output that count. */
template <class ARGS> CR_DEVICE uint64_t cr_count_of(const ARGS &args, uint64_t) { return args.at.n; }
CR_DEVICE uint64_t cr_count_of(const cr_axis_args &args, uint64_t output) { return args.counts != nullptr ? args.counts[output] : args.at.n; }
/* The same, where none is too many for a quick mean. */
template <class ARGS> CR_DEVICE uint64_t cr_some_of(const ARGS &args, uint64_t) { return args.at.n; }
CR_DEVICE uint64_t cr_some_of(const cr_axis_args &args, uint64_t output) {
    if (args.counts == nullptr) return args.at.n;
    return args.counts[output] != 0 ? args.counts[output] : ~0ull;
}

/* An answer of a sum of floats, (negative, magnitude)·2^exponent. args: of an output, its at.n, skip and ddof. */
template <class ARGS>
CR_CALLED void cr_float_answer(const ARGS &args, const cr_axis_out &out, uint64_t output, bool negative,
                               cr_u128 magnitude, int exponent, bool sticky, uint64_t marks) {
    const uint64_t nans = marks & CR_MARK_NANS;
    const bool plus = (marks & CR_MARK_PLUS) != 0, minus = (marks & CR_MARK_MINUS) != 0;
    uint64_t n = cr_count_of(args, output) - (args.skip ? nans : 0), bits;
    const cr_decided decided = cr_close_specials((cr_term)out.term, nans != 0 && !args.skip, plus, minus);
    const uint64_t divisor = cr_close_divisor((cr_divisor_kind)out.divisor, n, args.ddof);
    if (decided == CR_DECIDED_NAN || (decided == CR_DECIDED_FINITE && divisor == 0)) {
        bits = cr_nan_bits(out.result);
    } else if (decided != CR_DECIDED_FINITE) {
        bits = cr_infinite_bits(out.result, decided == CR_DECIDED_MINUS);
    } else {
        if (out.divisor != CR_DIVISOR_ONE) cr_divide(magnitude, exponent, sticky, divisor);
        if (out.root) cr_root(magnitude, exponent, sticky);
        bits = cr_rounded(out.result, negative, magnitude, exponent, sticky);
    }
    cr_put_bits(out.to, output, out.result, bits);
}

/* The same of value·2^unit where one operation rounds and what it gives is normal, so that the unit only moves its exponent. False: it is
 * not so. */
template <class ARGS>
CR_DEVICE bool cr_axis_quick_answer(const ARGS &args, const cr_axis_out &out, uint64_t output, int64_t value, int unit) {
    const bool mean = out.divisor == CR_DIVISOR_COUNT;
    if (out.root || out.divisor == CR_DIVISOR_COUNT_LESS_DDOF) return false;
    if (out.result == CR_F64 && unit >= -900 && unit <= 900) {
        if (mean && value != 0) {
            const int spare = __ffsll(value) - 1;
            value >>= spare;
            unit += spare;
        }
        double x = __ll2double_rn(value);
        if (mean) {
            const uint64_t n = cr_some_of(args, output);
            if ((uint64_t)value + (1ull << 53) > 1ull << 54 || n >> 53 != 0) return false; /* one of them is rounded */
            x = __ddiv_rn(x, __ll2double_rn((int64_t)n));
        }
        ((double *)out.to)[output] = __dmul_rn(x, cr_power(unit));
        return true;
    }
    if (out.result == CR_F32 && !mean && unit >= -126 && unit <= 63) {
        ((float *)out.to)[output] = __fmul_rn(__ll2float_rn(value), __uint_as_float((uint32_t)(unit + 127) << 23));
        return true;
    }
    return false;
}

/* Only outputs that fail come here. The lowest of them stays; nobody waits for anybody. */
template <class ARGS> CR_DEVICE void cr_axis_fail(const ARGS &args, const cr_axis_out &out, uint64_t output) {
    const unsigned long long key = (unsigned long long)(UINT32_MAX - (uint32_t)(args.first + output)) << 32 | (uint32_t)out.op << 8 | (uint32_t)out.result;
    atomicMax(&args.failure->key, key);
}

/* An answer of a sum of integers. args: of an output, its at.n and ddof; and where what does not fit is told. */
template <int W, class ARGS> CR_CALLED void cr_int_answer(const ARGS &args, const cr_axis_out &out, uint64_t output, cr_words<W> value) {
    const bool negative = value.negative();
    const uint64_t low = value.word[0], sign = 0 - (uint64_t)negative;
    const bool whole = out.divisor == CR_DIVISOR_ONE && !out.root;
    uint64_t above = 0, far = 0; /* what of the words above the first, the second, is not their sign */
#pragma unroll
    for (int i = 1; i < W; i++) above |= value.word[i] ^ sign;
#pragma unroll
    for (int i = 2; i < W; i++) far |= value.word[i] ^ sign;
    if (whole && (out.result == CR_I64 || out.result == CR_U64)) {
        if (above != 0 || (out.result == CR_I64 ? low >> 63 != (uint64_t)negative : negative)) cr_axis_fail(args, out, output);
        ((uint64_t *)out.to)[output] = low;
    } else if (whole && out.result == CR_I128) {
        if (far != 0 || value.word[1] >> 63 != (uint64_t)negative) cr_axis_fail(args, out, output);
        ((uint64_t *)out.to)[2 * output] = low;
        ((uint64_t *)out.to)[2 * output + 1] = value.word[1];
    } else {
        cr_words<W> positive = value;
        positive.strip_sign();
        int exponent = 0;
        bool sticky = false;
        cr_u128 magnitude = cr_leading(positive, exponent, sticky);
        const uint64_t divisor = cr_close_divisor((cr_divisor_kind)out.divisor, cr_count_of(args, output), args.ddof);
        if (out.divisor != CR_DIVISOR_ONE && divisor != 0) cr_divide(magnitude, exponent, sticky, divisor);
        if (out.root) cr_root(magnitude, exponent, sticky);
        cr_put_bits(out.to, output, out.result,
                    divisor == 0 ? cr_nan_bits(out.result) : cr_rounded(out.result, negative, magnitude, exponent, sticky));
    }
}

enum { CR_SLOT_WIDE = 1, CR_SLOT_HARD = 2 };

/* The sum of an output's elements, from the launch that sums to the one that squares. */
struct cr_axis_slot {
    uint64_t low, high; /* times 2^unit, two's complement; or the first two of six words */
    int64_t unit;
    uint64_t wide; /* CR_SLOT_HARD: not known */
    uint64_t more[4];

    CR_DEVICE void read(cr_words<2> &to) const {
        to.word[0] = low;
        to.word[1] = high;
    }
    CR_DEVICE void read(cr_words<6> &to) const {
        cr_words<2> own;
        read(own);
        to.widen(own);
        for (int i = 0; wide && i < 4; i++) to.word[2 + i] = more[i];
    }
};
static_assert(sizeof(cr_axis_slot) == CR_AXIS_SLOT, "a slot is larger than its place");

CR_DEVICE cr_axis_slot *cr_axis_slot_of(const cr_axis_args &args, uint64_t output) {
    return reinterpret_cast<cr_axis_slot *>(args.scratch + args.at.slots) + output;
}

/* The variance of n elements, or its root, from their sum and that of their squares. False: N words are too few. */
template <int N, int A, int B, class ARGS>
CR_CALLED bool cr_variance_put(const ARGS &args, const cr_axis_out &out, uint64_t output, uint64_t n, cr_words<A> sum,
                               int sum_unit, cr_words<B> squares, int unit) {
    uint64_t bits = cr_nan_bits(out.result);
    if (n > args.ddof) {
        sum.strip_sign();
        cr_u128 magnitude;
        int exponent;
        bool sticky = false;
        if (!cr_variance<N>(sum, sum_unit, squares, unit, n, args.ddof, out.root, magnitude, exponent, sticky))
            return false;
        bits = cr_rounded(out.result, false, magnitude, exponent, sticky);
    }
    cr_put_bits(out.to, output, out.result, bits);
    return true;
}
/* The same with the sum from the slot (as A words). */
template <int N, int A, int B>
CR_DEVICE bool cr_variance_answer(const cr_axis_args &args, const cr_axis_out &out, uint64_t output, uint64_t n,
                                  const cr_words<B> &squares, int unit) {
    const cr_axis_slot *slot = cr_axis_slot_of(args, output);
    if (A == 2 && slot->wide && n > args.ddof) return false;
    cr_words<A> sum;
    slot->read(sum);
    return cr_variance_put<N>(args, out, output, n, sum, (int)slot->unit, squares, unit);
}

CR_DEVICE bool cr_is_variance(const cr_axis_out &out) { return out.term == CR_TERM_SPREAD; }

#endif
