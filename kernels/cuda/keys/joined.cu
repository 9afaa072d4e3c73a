/* joined: the folds of joined.cuh, and what closes them: bits, products of integers; and extrema, their indices and the range between them.
 *
 * Thread: GPU; of what closes a thread is a group's. Owner: the kernel. */
#include "kernels/cuda/axis/extreme.cuh"
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

/* ---- Extrema ---- */

/* Where in its group's input element i lies. */
CR_DEVICE uint64_t cr_keys_index(const cr_keys_args &args, uint32_t group, uint32_t i) {
    if (args.source == CR_KEYS_AXIS) return i % args.span / args.inner;
    if (args.source == CR_KEYS_OFFSETS) return i - cr_keys_load(args, group);
    return i / args.columns;
}

__global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_extreme_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    if (!counted.answer(args.axis, group)) return;
    const cr_keys_planes &at = args.fold.at;
    cr_axis_failure nobody = {0};
    const bool right = args.fold.head->inside == 0;
    const cr_closed of = {{counted.count}, args.axis.ddof, args.axis.skip != 0, 0, right ? args.axis.failure : &nobody};
    cr_extremes e = {args.fold.dtype, args.fold.size, args.fold.is_float != 0, args.fold.is_signed != 0, args.axis.skip != 0, counted.count, counted.special[0], 0, 0, 0, 0};
    e.most = e.bits_of(cr_keys_word(args, at.window, group));
    e.least = e.bits_of(~cr_keys_word(args, at.window + 1, group) & e.all());
    for (uint32_t k = 0; k < args.axis.out_count; k++) {
        const cr_axis_out &out = args.axis.out[k];
        if (cr_keys_is_count(out)) continue;
        if (out.term == CR_TERM_GREATEST_INDEX) e.most_at = cr_keys_index(args.fold, group, ~(uint32_t)cr_keys_word(args, at.limbs, group));
        if (out.term == CR_TERM_LEAST_INDEX) e.least_at = cr_keys_index(args.fold, group, ~(uint32_t)cr_keys_word(args, at.limbs + 1, group));
        if (!cr_extreme_answer(of, out, group, e) && right) cr_report_no_value(args.wrong, out, group);
    }
}

static uint32_t cr_keys_closing_blocks(const cr_keys_close_args *args) {
    return max(1u, (args->fold.groups + CR_KEYS_CLOSERS - 1) / CR_KEYS_CLOSERS);
}

extern "C" int cr_keys_launch_close_extrema(const cr_keys_close_args *args, void *stream) {
    return CR_LAUNCH(cr_keys_extreme_kernel, cr_keys_closing_blocks(args), CR_KEYS_CLOSERS, stream, *args);
}

extern "C" int cr_keys_launch_close_joined(const cr_keys_close_args *args, void *stream) {
    return CR_LAUNCH(cr_keys_joined_kernel, cr_keys_closing_blocks(args), CR_KEYS_CLOSERS, stream, *args);
}
