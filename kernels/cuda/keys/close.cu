/* close: before a fold by key, where its window lies; and behind it, an answer for each group from the planes.
 *
 * Thread: GPU; of close a thread is a group's. Owner: the kernel. */
#include "kernels/cuda/axis/answer.cuh"
#include "kernels/cuda/keys/term.cuh"
#include "kernels/cuda/thread/simt.cuh"

enum { CR_KEYS_CLOSERS = 128 }; /* threads of a block */

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
    const uint32_t span = args.top + CR_KEYS_DIGIT * (T::DIGITS - 1) - T::TERM;
    for (uint32_t low = threadIdx.x; low < CR_KEYS_PLACES; low += CR_GPU_THREADS) {
        uint32_t within = 0;
        for (uint32_t i = low; i < min(low + span, (uint32_t)CR_KEYS_PLACES); i++) within += places[i];
        if (within != 0) atomicMax(&best, within << RANK | (CR_KEYS_PLACES - 1 - low));
    }
    __syncthreads();
    if (threadIdx.x == 0) args.head->window = best == 0 ? 0 : (int)(CR_KEYS_PLACES - 1 - (best & ((1u << RANK) - 1)));
}

extern "C" int cr_keys_launch_begin(const cr_keys_args *args, void *stream) {
    if (args->dtype == CR_F16) return CR_LAUNCH(cr_keys_begin_kernel<cr_keys_sum<cr_f16>>, 1, CR_GPU_THREADS, stream, *args);
    if (args->dtype == CR_BF16) return CR_LAUNCH(cr_keys_begin_kernel<cr_keys_sum<cr_bf16>>, 1, CR_GPU_THREADS, stream, *args);
    if (args->dtype == CR_F32) return CR_LAUNCH(cr_keys_begin_kernel<cr_keys_sum<cr_f32>>, 1, CR_GPU_THREADS, stream, *args);
    return CR_LAUNCH(cr_keys_begin_kernel<cr_keys_sum<cr_f64>>, 1, CR_GPU_THREADS, stream, *args);
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

CR_DEVICE unsigned long long cr_keys_word(const cr_keys_close_args &args, int number, uint32_t group) {
    return number < 0 ? 0 : args.fold.planes[(uint64_t)number * args.fold.groups + group];
}

/* The sum of a group, which is exact: as the highest bits of its magnitude, in units of 2^exponent. */
template <class T> struct cr_keys_total {
    cr_answer_digits<T::LIMBS> number;
    cr_u128 magnitude;
    int exponent;
    bool sticky;

    CR_DEVICE cr_keys_total(const cr_keys_close_args &args, uint32_t group) {
        const int window = args.fold.head->window;
        exponent = T::GRID;
        sticky = false;
        number.first = 0;
        number.count = T::LIMBS + 3;
#pragma unroll 1
        for (int i = 0; i < number.count; i++)
            number.digit[i] = i < T::LIMBS ? (int64_t)cr_keys_word(args, args.fold.at.limbs + i, group) : 0;
#pragma unroll
        for (int i = 0; i < T::DIGITS; i++)
            number.put((int64_t)cr_keys_word(args, args.fold.at.window + i, group), window + CR_KEYS_DIGIT * i);
        number.settle();
        magnitude = number.leading(exponent, sticky);
    }
};

CR_DEVICE bool cr_keys_is_count(const cr_axis_out &out) {
    return out.term == CR_TERM_ELEMENTS || out.term == CR_TERM_NONZERO || out.term == CR_TERM_NANS || out.term == CR_TERM_INFINITIES ||
           out.term == CR_TERM_SOME || out.term == CR_TERM_EVERY;
}

template <class T> __global__ void __launch_bounds__(CR_KEYS_CLOSERS) cr_keys_close_kernel(const __grid_constant__ cr_keys_close_args args) {
    const uint32_t group = blockIdx.x * CR_KEYS_CLOSERS + threadIdx.x;
    if (group == 0) *args.wrong = 0 - args.fold.head->inside;
    if (group >= args.fold.groups) return;
    const cr_keys_planes &at = args.fold.at;
    const uint64_t count = cr_keys_word(args, at.count, group), nonzero = cr_keys_word(args, at.nonzero, group);
    uint64_t special[CR_KEYS_SPECIAL_PLANES];
#pragma unroll
    for (int i = 0; i < CR_KEYS_SPECIAL_PLANES; i++) special[i] = at.special < 0 ? 0 : cr_keys_word(args, at.special + i, group);
    const uint64_t left_out = args.skip ? special[0] : 0;
    bool sums = false;
    for (uint32_t k = 0; k < args.out_count; k++) {
        const cr_axis_out &out = args.out[k];
        sums |= !cr_keys_is_count(out);
        if (cr_keys_is_count(out))
            cr_put_bits(out.to, group, out.result,
                        cr_close_count((cr_term)out.term, count - left_out, nonzero - left_out, special[0], special[1] + special[2]));
    }
    if constexpr (T::DIGITS > 0) {
        if (!sums) return;
        const cr_keys_of of = {{count}, args.ddof, args.skip != 0};
        const cr_keys_total<T> total(args, group);
        const uint64_t marks = (special[0] & CR_MARK_NANS) | (special[1] != 0 ? (uint64_t)CR_MARK_PLUS : 0) | (special[2] != 0 ? (uint64_t)CR_MARK_MINUS : 0);
        for (uint32_t k = 0; k < args.out_count; k++) {
            if (!cr_keys_is_count(args.out[k]))
                cr_float_answer(of, args.out[k], group, total.number.negative, total.magnitude, total.exponent, total.sticky, marks);
        }
    }
}

extern "C" int cr_keys_launch_close(const cr_keys_close_args *args, void *stream) {
    const uint32_t blocks = max(1u, (args->fold.groups + CR_KEYS_CLOSERS - 1) / CR_KEYS_CLOSERS);
    if (args->fold.kind == CR_KEYS_COUNTS) return CR_LAUNCH(cr_keys_close_kernel<cr_keys_count_bits<4>>, blocks, CR_KEYS_CLOSERS, stream, *args);
    if (args->fold.dtype == CR_F16) return CR_LAUNCH(cr_keys_close_kernel<cr_keys_sum<cr_f16>>, blocks, CR_KEYS_CLOSERS, stream, *args);
    if (args->fold.dtype == CR_F64) return CR_LAUNCH(cr_keys_close_kernel<cr_keys_sum<cr_f64>>, blocks, CR_KEYS_CLOSERS, stream, *args);
    return CR_LAUNCH(cr_keys_close_kernel<cr_keys_sum<cr_f32>>, blocks, CR_KEYS_CLOSERS, stream, *args);
}
