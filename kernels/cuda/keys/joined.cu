/* joined: the folds of joined.cuh, and what closes them: bits, products of integers, indices of extrema, and the range between those.
 *
 * Thread: GPU; of what closes a thread is a group's. Owner: the kernel. */
#include "kernels/cuda/axis/round.cuh"
#include "kernels/cuda/keys/closing.cuh"
#include "kernels/cuda/keys/joined.cuh"
#include "kernels/cuda/keys/ordered.cuh"

/* ---- Folds ---- */

template <class T> static int cr_keys_join(const cr_keys_args *args, void *stream) {
    if (cr_keys_rise(args)) return CR_LAUNCH((cr_keys_ordered_kernel<T>), args->blocks, CR_KEYS_THREADS, stream, *args);
    return CR_LAUNCH((cr_keys_fold_kernel<T, false>), args->blocks, CR_KEYS_THREADS, stream, *args);
}

template <int BYTES> static int cr_keys_join_bits(const cr_keys_args *args, void *stream) {
    typedef cr_keys_bitwise<BYTES> T;
    const uint32_t bytes = (2 * T::DIGITS + (uint32_t)args->at.counts) * args->copies * args->groups * (uint32_t)sizeof(uint32_t);
    if (args->copies == 0 || cr_keys_rise(args)) return cr_keys_join<T>(args, stream);
    return CR_LAUNCH_SHARED((cr_keys_fold_kernel<T, true>), args->blocks, CR_KEYS_THREADS, bytes, stream, *args);
}

template <int BYTES> static int cr_keys_join_kind(const cr_keys_args *args, void *stream) {
    return args->kind == CR_KEYS_FIRSTS ? cr_keys_join<cr_keys_place<BYTES>>(args, stream)
           : args->kind == CR_KEYS_BITS ? cr_keys_join_bits<BYTES>(args, stream)
                                        : cr_keys_join<cr_keys_product<BYTES>>(args, stream);
}

extern "C" int cr_keys_launch_joined(const cr_keys_args *args, void *stream) {
    return args->size == 8   ? cr_keys_join_kind<8>(args, stream)
           : args->size == 4 ? cr_keys_join_kind<4>(args, stream)
           : args->size == 2 ? cr_keys_join_kind<2>(args, stream)
                             : cr_keys_join_kind<1>(args, stream);
}

/* ---- Bits and products ---- */

/* What does not fit is told, and 0. */
CR_DEVICE void cr_keys_put_product(const cr_axis_args &axis, const cr_axis_out &out, uint32_t group, uint64_t magnitude, uint64_t flags) {
    const bool zero = (flags & CR_KEYS_ZERO) != 0, negative = (flags & CR_KEYS_NEGATIVE) != 0;
    const uint64_t top = 1ull << 63, value = zero ? 0 : negative ? 0 - magnitude : magnitude;
    const bool fits = out.result == CR_I64 ? magnitude < top || (negative && magnitude == top) : !negative;
    const bool told = !axis.wrap && !zero && ((flags & CR_KEYS_OVER) != 0 || !fits);
    if (told) cr_axis_fail(axis, out, group);
    reinterpret_cast<uint64_t *>(out.to)[group] = told ? 0 : value;
}

__global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_joined_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    if (!counted.answer(args.axis, group)) return;
    const int window = args.fold.at.window;
    const bool bits = args.fold.kind == CR_KEYS_BITS;
    const uint64_t first = cr_keys_word(args, window, group), second = cr_keys_word(args, window + 1, group),
                   odd = bits ? cr_keys_word(args, window + 2, group) : 0;
    const uint64_t every = args.fold.dtype == CR_BOOL ? 1 : ~0ull >> (64 - 8 * args.fold.size);
    cr_axis_args own = args.axis;
    cr_axis_failure nobody = {0};
    if (args.fold.head->inside != 0) own.failure = &nobody;
    for (uint32_t k = 0; k < own.out_count; k++) {
        const cr_axis_out &out = own.out[k];
        if (cr_keys_is_count(out)) continue;
        if (bits) cr_put_bits(out.to, group, out.result, cr_close_bits((cr_term)out.term, ~second & every, first, odd));
        else cr_keys_put_product(own, out, group, first ^ 1, second);
    }
}

/* ---- Indices and ranges ---- */

/* A number that is not 0, as the highest bits of its magnitude, in units of 2^exponent. */
struct cr_keys_scaled {
    uint64_t magnitude;
    int exponent;
    bool negative, infinite;

    CR_DEVICE cr_keys_scaled(int dtype, uint64_t bits) {
        const cr_fields f = cr_fields_of(dtype);
        const int field = (int)(bits >> f.mantissa & ((1ull << f.width) - 1));
        const uint64_t own = (bits & ((1ull << f.mantissa) - 1)) | (uint64_t)(field != 0) << f.mantissa;
        const int up = __clzll((long long)own); /* 64 of a zero, which lies below all */
        magnitude = own == 0 ? 0 : own << up;
        exponent = own == 0 ? -(1 << 20) : max(field, 1) - f.bias - f.mantissa - up;
        negative = (bits >> (f.mantissa + f.width) & 1) != 0;
        infinite = field == (1 << f.width) - 1;
    }
};

/* The greatest less the least, rounded once. */
CR_CALLED uint64_t cr_keys_float_range(int dtype, int result, uint64_t most, uint64_t least) {
    const cr_keys_scaled high(dtype, most), low(dtype, least);
    if (most == least) return high.infinite ? cr_nan_bits(result) : 0;
    if (high.infinite || low.infinite) return cr_infinite_bits(result, false);
    const bool first = high.exponent > low.exponent || (high.exponent == low.exponent && high.magnitude >= low.magnitude);
    const cr_keys_scaled &large = first ? high : low, &small = first ? low : high;
    const int down = min(large.exponent - small.exponent, 127);
    const cr_u128 part = (cr_u128)small.magnitude << 63, kept = part >> down;
    const bool sticky = kept << down != part;
    cr_u128 sum = (cr_u128)large.magnitude << 63;
    if (high.negative != low.negative) sum += kept;
    else sum -= kept + sticky; /* what is then too much lies above the sum again */
    return cr_rounded(result, false, sum, large.exponent - 63, sticky);
}

/* The element as a whole number. */
CR_DEVICE cr_i128 cr_keys_value_of(const cr_keys_args &args, uint64_t bits) {
    const uint32_t unused = 64 - 8 * args.size;
    return args.is_signed ? (cr_i128)((int64_t)(bits << unused) >> unused) : (cr_i128)bits;
}

/* Where in its group's input element i lies. */
CR_DEVICE uint64_t cr_keys_index(const cr_keys_args &args, uint32_t group, uint32_t i) {
    if (args.source == CR_KEYS_AXIS) return i % args.span / args.inner;
    if (args.source == CR_KEYS_OFFSETS) return i - cr_keys_load(args, group);
    return i / args.columns;
}

__global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_places_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    const cr_keys_planes &at = args.fold.at;
    const uint64_t top = 1ull << (8 * args.fold.size - 1), all = top | (top - 1), nans = counted.special[0];
    const bool only_nans = nans == counted.count, nan = nans != 0 && (!args.axis.skip || only_nans);
    const uint64_t most = cr_keys_bits_of(args.fold, cr_keys_word(args, at.window, group), top),
                   least = cr_keys_bits_of(args.fold, ~cr_keys_word(args, at.window + 1, group) & all, top);
    cr_axis_args own = args.axis;
    cr_axis_failure nobody = {0};
    own.at.n = counted.count;
    if (args.fold.head->inside != 0) own.failure = &nobody;
    for (uint32_t k = 0; k < own.out_count; k++) {
        const cr_axis_out &out = own.out[k];
        if (counted.count == 0) {
            cr_put_bits(out.to, group, out.result, 0);
            if (args.fold.head->inside == 0)
                atomicMax(args.wrong, (unsigned long long)(UINT32_MAX - group) << 32 | CR_KEYS_NO_VALUE | (uint32_t)out.op << 8 | (uint32_t)out.result);
        } else if (out.term != CR_TERM_RANGE) {
            const uint64_t word = cr_keys_word(args, at.limbs + (out.term == CR_TERM_LEAST_INDEX), group);
            const bool none = only_nans && args.axis.skip;
            cr_put_bits(out.to, group, out.result, none ? UINT64_MAX : cr_keys_index(args.fold, group, ~(uint32_t)word));
        } else if (args.fold.is_float) {
            cr_put_bits(out.to, group, out.result, nan ? cr_nan_bits(out.result) : cr_keys_float_range((int)args.fold.dtype, out.result, most, least));
        } else {
            cr_words<2> value;
            value.set(cr_keys_value_of(args.fold, most) - cr_keys_value_of(args.fold, least));
            cr_int_answer(own, out, group, value);
        }
    }
}

static uint32_t cr_keys_closing_blocks(const cr_keys_close_args *args) {
    return max(1u, (args->fold.groups + CR_KEYS_CLOSERS - 1) / CR_KEYS_CLOSERS);
}

extern "C" int cr_keys_launch_places(const cr_keys_close_args *args, void *stream) {
    return CR_LAUNCH(cr_keys_places_kernel, cr_keys_closing_blocks(args), CR_KEYS_CLOSERS, stream, *args);
}

extern "C" int cr_keys_launch_close_joined(const cr_keys_close_args *args, void *stream) {
    return CR_LAUNCH(cr_keys_joined_kernel, cr_keys_closing_blocks(args), CR_KEYS_CLOSERS, stream, *args);
}
