/* axis_round: the last step on a GPU: from an exact number to a value of the result's type, rounded once, as kernels/core/round.c
 * and finish_sums.c do it.
 *
 * Thread: GPU. Owner: none. */
#ifndef CURED_KERNELS_CUDA_AXIS_ROUND_CUH
#define CURED_KERNELS_CUDA_AXIS_ROUND_CUH

#include "kernels/cuda/axis.h"
#include "kernels/cuda/walk.cuh"

typedef unsigned __int128 cr_u128;
typedef __int128 cr_i128;

CR_DEVICE int cr_bits_in(cr_u128 x) { /* up to the highest one */
    const uint64_t high = (uint64_t)(x >> 64);
    return high ? 128 - __clzll((long long)high) : 64 - __clzll((long long)(uint64_t)x);
}

struct cr_format {
    int mantissa, bias, width; /* width: of the exponent's field */
};
CR_DEVICE cr_format cr_format_of(int dtype) {
    return dtype == CR_F16    ? cr_format{10, 15, 5}
           : dtype == CR_BF16 ? cr_format{7, 127, 8}
           : dtype == CR_F32  ? cr_format{23, 127, 8}
                              : cr_format{52, 1023, 11};
}
CR_DEVICE uint64_t cr_infinite_bits(int dtype, bool negative) {
    const cr_format f = cr_format_of(dtype);
    return (uint64_t)negative << (f.mantissa + f.width) | ((1ull << f.width) - 1) << f.mantissa;
}
CR_DEVICE uint64_t cr_nan_bits(int dtype) {
    return cr_infinite_bits(dtype, false) | 1ull << (cr_format_of(dtype).mantissa - 1);
}

/* The bits of ±(magnitude·2^exponent + something less than its last bit, if sticky), which then has 56 bits at least. */
CR_DEVICE uint64_t cr_rounded(int dtype, bool negative, cr_u128 magnitude, int exponent, bool sticky) {
    if (magnitude == 0) return 0;
    const cr_format f = cr_format_of(dtype);
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
    switch (dtype) {
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
            ((uint8_t *)to)[output] = (uint8_t)bits;
            break;
        default:
            ((uint16_t *)to)[output] = (uint16_t)bits;
            break;
    }
}

/* What NaNs and infinities were among an output's elements. */
enum : uint64_t {
    CR_MARK_FINE = 1ull << 60, /* within a thread: its total counts the level more's units */
    CR_MARK_PLUS = 1ull << 61,
    CR_MARK_MINUS = 1ull << 62,
    CR_MARK_HARD = 1ull << 63,
    CR_MARK_NANS = (1ull << 60) - 1, /* their number */
};

/* An answer of a sum of floats, (negative, magnitude)·2^exponent. */
CR_DEVICE void cr_float_answer(const cr_axis_args &args, const cr_axis_out &out, uint64_t output, bool negative,
                               cr_u128 magnitude, int exponent, bool sticky, uint64_t marks) {
    const uint64_t nans = marks & CR_MARK_NANS;
    const bool plus = (marks & CR_MARK_PLUS) != 0, minus = (marks & CR_MARK_MINUS) != 0;
    uint64_t n = args.at.n - (args.skip ? nans : 0), bits;
    if ((nans != 0 && !args.skip) || (plus && minus)) {
        bits = cr_nan_bits(out.result);
    } else if (plus || minus) {
        bits = cr_infinite_bits(out.result, minus);
    } else if (out.op == CR_OP_MEAN && n == 0) {
        bits = cr_nan_bits(out.result);
    } else {
        if (out.op == CR_OP_MEAN) cr_divide(magnitude, exponent, sticky, n);
        bits = cr_rounded(out.result, negative, magnitude, exponent, sticky);
    }
    cr_put_bits(out.to, output, out.result, bits);
}

/* Only outputs that fail come here. The lowest of them stays; nobody waits for anybody. */
CR_DEVICE void cr_axis_fail(const cr_axis_args &args, const cr_axis_out &out, uint64_t output) {
    const unsigned long long key = (unsigned long long)(UINT32_MAX - (uint32_t)output) << 32 | (uint32_t)out.op << 8 | (uint32_t)out.result;
    atomicMax(&args.failure->key, key);
}

/* An answer of a sum of integers. */
CR_DEVICE void cr_int_answer(const cr_axis_args &args, const cr_axis_out &out, uint64_t output, cr_i128 value) {
    const bool negative = value < 0;
    if (out.op != CR_OP_MEAN && out.result == CR_I64) {
        if (value != (int64_t)value) cr_axis_fail(args, out, output);
        ((int64_t *)out.to)[output] = (int64_t)value;
    } else if (out.op != CR_OP_MEAN && out.result == CR_U64) {
        if (value != (cr_i128)(uint64_t)value) cr_axis_fail(args, out, output);
        ((uint64_t *)out.to)[output] = (uint64_t)value;
    } else if (out.result == CR_I128) {
        ((uint64_t *)out.to)[2 * output] = (uint64_t)value;
        ((uint64_t *)out.to)[2 * output + 1] = (uint64_t)((cr_u128)value >> 64);
    } else {
        cr_u128 magnitude = negative ? -(cr_u128)value : (cr_u128)value;
        int exponent = 0;
        bool sticky = false;
        if (out.op == CR_OP_MEAN) cr_divide(magnitude, exponent, sticky, args.at.n);
        cr_put_bits(out.to, output, out.result, cr_rounded(out.result, negative, magnitude, exponent, sticky));
    }
}

#endif
