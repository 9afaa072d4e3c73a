/* close: before a fold by key, where its window lies; and behind it, an answer for each group from the planes.
 *
 * Thread: GPU; of close a thread is a group's. Owner: the kernel. */
#include "kernels/cuda/axis/answer.cuh"
#include "kernels/cuda/keys/closing.cuh"
#include "kernels/cuda/keys/term.cuh"
#include "kernels/cuda/thread/simt.cuh"

/* ---- The window ---- */

/* Of a sample: the window that takes the most of it, and one place more above. */
template <class T> __global__ void __launch_bounds__(CR_GPU_THREADS) cr_keys_begin_kernel(const __grid_constant__ cr_keys_args args) {
    constexpr uint32_t RANK = 12; /* bits of a place */
    __shared__ uint32_t places[CR_KEYS_PLACES], best;
    const uint32_t count = (uint32_t)min(args.n, (uint64_t)CR_KEYS_SAMPLE);
    const uint64_t step = count != 0 ? args.n / count : 0;
    for (uint32_t i = threadIdx.x; i < CR_KEYS_PLACES; i += CR_GPU_THREADS) places[i] = 0;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += CR_GPU_THREADS) {
        const uint64_t at = i * step + i * 2654435761u % step; /* no stride of the data's */
        const typename T::Bits bits = (typename T::Bits)cr_load_one<T::SIZE>(args.data + at * T::SIZE);
        if (!T::is_special(bits) && T::is_nonzero(bits)) atomicAdd(&places[T::place_of(bits)], 1u);
    }
    __syncthreads();
    const uint32_t span = (args.top + CR_KEYS_DIGIT * (T::DIGITS - 1) - T::TERM) / T::POWER;
    for (uint32_t low = threadIdx.x; low < CR_KEYS_PLACES; low += CR_GPU_THREADS) {
        uint32_t within = 0;
        for (uint32_t i = low; i < min(low + span, (uint32_t)CR_KEYS_PLACES); i++) within += places[i];
        if (within != 0) atomicMax(&best, within << RANK | (CR_KEYS_PLACES - 1 - low));
    }
    __syncthreads();
    if (threadIdx.x == 0) args.head->window = best == 0 ? 0 : T::POWER * (int)(CR_KEYS_PLACES - 1 - (best & ((1u << RANK) - 1)));
}

#define BEGIN(type, E)                                                                                                     \
    if (args->dtype == type)                                                                                               \
        return args->kind == CR_KEYS_SUM ? CR_LAUNCH(cr_keys_begin_kernel<cr_keys_sum<E>>, 1, CR_GPU_THREADS, stream, *args) \
                                         : CR_LAUNCH(cr_keys_begin_kernel<cr_keys_square<E>>, 1, CR_GPU_THREADS, stream, *args);

extern "C" int cr_keys_launch_begin(const cr_keys_args *args, void *stream) {
    BEGIN(CR_F16, cr_f16)
    BEGIN(CR_BF16, cr_bf16)
    BEGIN(CR_F32, cr_f32)
    BEGIN(CR_F64, cr_f64)
    return 0; /* integers need no window */
}

/* ---- The answers ---- */

/* Of a group: what round.cuh asks for. */
struct cr_keys_of {
    struct {
        uint64_t n;
    } at;
    uint64_t ddof;
    bool skip;
};

/* The sum of a group, which is exact: as the highest bits of its magnitude, in units of 2^exponent. */
template <class T> struct cr_keys_total {
    cr_answer_digits<T::LIMBS> number;
    cr_u128 magnitude;
    int exponent;
    bool sticky;

    CR_DEVICE cr_keys_total(const cr_keys_close_args &args, const cr_keys_head *head, const cr_keys_planes &at, uint32_t group) {
        const int window = head->window;
        exponent = T::GRID;
        sticky = false;
        number.first = 0;
        number.count = T::LIMBS + 3;
#pragma unroll 1
        for (int i = 0; i < number.count; i++)
            number.digit[i] = i < T::LIMBS ? (int64_t)cr_keys_word(args, at.limbs + i, group) : 0;
#pragma unroll
        for (int i = 0; i < T::DIGITS; i++)
            number.put((int64_t)cr_keys_word(args, at.window + i, group), window + CR_KEYS_DIGIT * i);
        number.settle();
        magnitude = number.leading(exponent, sticky);
    }
};

/* Of floats, or of counts alone. */
template <class T> __global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_close_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    const bool sums = counted.answer(args.axis, group);
    if constexpr (T::DIGITS > 0) {
        if (!sums) return;
        const cr_keys_of of = {{counted.count}, args.axis.ddof, args.axis.skip != 0};
        const cr_keys_total<T> total(args, args.fold.head, args.fold.at, group);
        for (uint32_t k = 0; k < args.axis.out_count; k++) {
            if (!cr_keys_is_count(args.axis.out[k]))
                cr_float_answer(of, args.axis.out[k], group, total.number.negative, total.magnitude, total.exponent, total.sticky, counted.marks());
        }
    }
}

/* The digits of a number without its sign, as words. */
template <int W, int LIMBS> CR_DEVICE void cr_keys_words(cr_words<W> &to, const cr_answer_digits<LIMBS> &number) {
#pragma unroll 1
    for (int i = 0; i < W; i++)
        to.word[i] = (uint32_t)number.digit[2 * i] | (2 * i + 1 < number.count ? (uint64_t)(uint32_t)number.digit[2 * i + 1] << CR_KEYS_DIGIT : 0);
}

/* Of floats: sums, sums of squares, and what both make. */
template <class E> __global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_moments_kernel(const __grid_constant__ cr_keys_close_args args) {
    typedef cr_keys_sum<E> S;
    typedef cr_keys_square<E> Q;
    constexpr int A = (S::LIMBS + 4) / 2, B = (Q::LIMBS + 4) / 2;
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    if (!counted.answer(args.axis, group)) return;
    const cr_keys_total<S> sum(args, args.fold.head, args.fold.at, group);
    const cr_keys_total<Q> squares(args, args.fold.head + 1, args.squares, group);
    const cr_keys_of of = {{counted.count}, args.axis.ddof, args.axis.skip != 0};
    const uint64_t marks = counted.marks(), nans = counted.special[0], n = counted.count - (of.skip ? nans : 0);
    const bool nan = (marks & ~CR_MARK_NANS) != 0 || (nans != 0 && !of.skip) || n <= of.ddof;
    for (uint32_t k = 0; k < args.axis.out_count; k++) {
        const cr_axis_out &out = args.axis.out[k];
        if (cr_keys_is_count(out)) continue;
        if (out.term == CR_TERM_VALUE) cr_float_answer(of, out, group, sum.number.negative, sum.magnitude, sum.exponent, sum.sticky, marks);
        else if (out.term == CR_TERM_SQUARE) cr_float_answer(of, out, group, false, squares.magnitude, squares.exponent, squares.sticky, marks);
        if (!cr_is_variance(out)) continue;
        cr_u128 magnitude = 0;
        int exponent = 0;
        bool sticky = false;
        cr_words<A> total;
        cr_words<B> of_squares;
        cr_keys_words(total, sum.number);
        cr_keys_words(of_squares, squares.number);
        if (!nan) cr_variance<B + 3>(total, S::GRID, of_squares, Q::GRID, n, of.ddof, out.root, magnitude, exponent, sticky);
        cr_put_bits(out.to, group, out.result, nan ? cr_nan_bits(out.result) : cr_rounded(out.result, false, magnitude, exponent, sticky));
    }
}

/* Of integers: a sum that does not fit its type is told, where no key is outside. */
__global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_whole_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = cr_keys_begin_close(args);
    if (group >= args.fold.groups) return;
    const cr_keys_counted counted(args, group);
    if (!counted.answer(args.axis, group)) return;
    const int digits = args.fold.at.limbs - args.fold.at.window;
    cr_i128 sum = 0;
    for (int i = 0; i < digits; i++) sum += (cr_i128)(long long)cr_keys_word(args, args.fold.at.window + i, group) * ((cr_i128)1 << CR_KEYS_DIGIT * i);
    cr_axis_args own = args.axis;
    cr_axis_failure nobody = {0};
    cr_words<2> value;
    own.at.n = counted.count;
    if (args.fold.head->inside != 0) own.failure = &nobody;
    value.set(sum);
    for (uint32_t k = 0; k < own.out_count; k++) {
        if (!cr_keys_is_count(own.out[k])) cr_int_answer(own, own.out[k], group, value);
    }
}

#define CLOSE(type, E)                                                                                                               \
    if (args->fold.dtype == type && args->squares.window >= 0)                                                                       \
        return CR_LAUNCH(cr_keys_moments_kernel<E>, blocks, CR_KEYS_CLOSERS, stream, *args);                                         \
    if (args->fold.dtype == type && args->fold.kind == CR_KEYS_SUM)                                                                  \
        return CR_LAUNCH(cr_keys_close_kernel<cr_keys_sum<E>>, blocks, CR_KEYS_CLOSERS, stream, *args);                              \
    if (args->fold.dtype == type) return CR_LAUNCH(cr_keys_close_kernel<cr_keys_square<E>>, blocks, CR_KEYS_CLOSERS, stream, *args);

extern "C" int cr_keys_launch_close(const cr_keys_close_args *args, void *stream) {
    const uint32_t blocks = max(1u, (args->fold.groups + CR_KEYS_CLOSERS - 1) / CR_KEYS_CLOSERS);
    if (args->fold.kind == CR_KEYS_COUNTS) return CR_LAUNCH(cr_keys_close_kernel<cr_keys_count_bits<4>>, blocks, CR_KEYS_CLOSERS, stream, *args);
    CLOSE(CR_F16, cr_f16)
    CLOSE(CR_F32, cr_f32)
    CLOSE(CR_BF16, cr_f32) /* on the same grid */
    CLOSE(CR_F64, cr_f64)
    return CR_LAUNCH(cr_keys_whole_kernel, blocks, CR_KEYS_CLOSERS, stream, *args);
}
