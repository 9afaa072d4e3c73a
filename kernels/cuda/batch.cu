/* batch: the kernel that folds many small arrays in one launch: a warp each.
 *
 * Every type and family has a function of its own, which is called and not inlined: the kernel stays small, and no function
 * pays for the registers of another. 64 registers let all warps of 4,096 units be on the GPU at once, each with all of its
 * loads under way.
 * Thread: GPU; the launcher is called by the stream's thread. */
#include "kernels/cuda/batch_prod.cuh"
#include "kernels/cuda/batch_small.cuh"
#include "kernels/cuda/batch_sums.cuh"

#define CR_BATCH_CALLED static __device__ __noinline__ void

template <class E, int KIND> CR_BATCH_CALLED cr_call_float_sum(const cr_batch_job job) { cr_batch_sum<E, KIND>::fold(job); }
template <cr_dtype D, bool ABSOLUTE> CR_BATCH_CALLED cr_call_int_sum(const cr_batch_job job) {
    cr_batch_int_sum<cr_sum_int<D, ABSOLUTE>, !ABSOLUTE && cr_is_signed(D)>(job);
}
template <cr_dtype D> CR_BATCH_CALLED cr_call_int_squares(const cr_batch_job job) {
    cr_batch_int_sum<cr_sumsq_int<D>, false>(job);
}
template <cr_dtype D> CR_BATCH_CALLED cr_call_extrema(const cr_batch_job job) {
    cr_batch_extrema<D == CR_BOOL ? CR_U8 : D, D == CR_BOOL>(job);
}
template <cr_dtype D> CR_BATCH_CALLED cr_call_counts(const cr_batch_job job) { cr_batch_counts<D>(job); }
template <cr_dtype D> CR_BATCH_CALLED cr_call_bits(const cr_batch_job job) { cr_batch_bits<D>(job); }
template <cr_dtype D> CR_BATCH_CALLED cr_call_int_prod(const cr_batch_job job) { cr_batch_int_prod<D>(job); }
template <cr_dtype D> CR_BATCH_CALLED cr_call_float_prod(const cr_batch_job job) { cr_batch_float_prod<D>(job); }

template <int KIND> CR_DEVICE void cr_batch_sum_of(const cr_batch_job &job, uint32_t dtype) {
    switch (dtype) {
        case CR_F16:
            return cr_call_float_sum<cr_f16, KIND>(job);
        case CR_BF16:
            return cr_call_float_sum<cr_bf16, KIND>(job);
        case CR_F32:
            return cr_call_float_sum<cr_f32, KIND>(job);
        case CR_F64:
            return cr_call_float_sum<cr_f64, KIND>(job);
#define CASE(d) \
    case d:     \
        return KIND == CR_SUM_SQUARE ? cr_call_int_squares<d>(job) \
                                     : cr_call_int_sum<d, KIND == CR_SUM_ABSOLUTE && cr_is_signed(d)>(job);
            CR_INTEGER_TYPES(CASE)
#undef CASE
    }
}

CR_DEVICE void cr_batch_counts_of(const cr_batch_job &job, uint32_t dtype) {
    switch (dtype) {
        case CR_BOOL:
        case CR_U8:
        case CR_I8:
            return cr_call_counts<CR_U8>(job);
        case CR_U16:
        case CR_I16:
            return cr_call_counts<CR_U16>(job);
        case CR_U32:
        case CR_I32:
            return cr_call_counts<CR_U32>(job);
        case CR_U64:
        case CR_I64:
            return cr_call_counts<CR_U64>(job);
#define CASE(d) \
    case d:     \
        return cr_call_counts<d>(job);
            CR_FLOAT_TYPES(CASE)
#undef CASE
    }
}

CR_DEVICE void cr_batch_bits_of(const cr_batch_job &job, uint32_t dtype) {
    switch (dtype) {
        case CR_BOOL:
            return cr_call_bits<CR_BOOL>(job);
        case CR_U8:
        case CR_I8:
            return cr_call_bits<CR_U8>(job);
        case CR_U16:
        case CR_I16:
            return cr_call_bits<CR_U16>(job);
        case CR_U32:
        case CR_I32:
            return cr_call_bits<CR_U32>(job);
        default:
            return cr_call_bits<CR_U64>(job);
    }
}

CR_DEVICE void cr_batch_extrema_of(const cr_batch_job &job, uint32_t dtype) {
    switch (dtype) {
#define CASE(d) \
    case d:     \
        return cr_call_extrema<d>(job);
        CR_INTEGER_TYPES(CASE)
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
}

CR_DEVICE void cr_batch_prod_of(const cr_batch_job &job, uint32_t dtype) {
    switch (dtype) {
#define CASE(d) \
    case d:     \
        return cr_call_int_prod<d>(job);
        CR_INTEGER_TYPES(CASE)
#undef CASE
#define CASE(d) \
    case d:     \
        return cr_call_float_prod<d>(job);
        CR_FLOAT_TYPES(CASE)
#undef CASE
    }
}

#if !defined(CR_BATCH_RESIDENT)
#define CR_BATCH_RESIDENT 8 /* blocks on a multiprocessor */
#endif

__global__ void __launch_bounds__(CR_BATCH_WARPS *CR_WARP, CR_BATCH_RESIDENT)
    cr_batch_kernel(const __grid_constant__ cr_batch_args args) {
    const uint32_t at = blockIdx.x * (blockDim.x / CR_WARP) + threadIdx.x / CR_WARP;
    if (at >= args.count) return;
    const uint4 unit = ((const uint4 *)(args.units ? args.units : args.few))[at]; /* a cr_batch_unit */
    const cr_batch_job job = {(const uint8_t *)cr_pair(unit.x, unit.y), args.found + (uint64_t)at * CR_BATCH_WORDS,
                              args.more + unit.w, unit.z & 0xffffu};
    const uint32_t dtype = unit.z >> 16 & 0xffu, family = unit.z >> 24;
    switch (1u << family) {
        case CR_FAM_SUM:
            return cr_batch_sum_of<CR_SUM_PLAIN>(job, dtype);
        case CR_FAM_SUMABS:
            return cr_batch_sum_of<CR_SUM_ABSOLUTE>(job, dtype);
        case CR_FAM_SUMSQ:
            return cr_batch_sum_of<CR_SUM_SQUARE>(job, dtype);
        case CR_FAM_EXTREMA:
            return cr_batch_extrema_of(job, dtype);
        case CR_FAM_COUNTS:
            return cr_batch_counts_of(job, dtype);
        case CR_FAM_BITS:
            return cr_batch_bits_of(job, dtype);
        default:
            return cr_batch_prod_of(job, dtype);
    }
}

/* A few units have a multiprocessor each. */
extern "C" int cr_batch_launch(const cr_batch_args *args, void *stream) {
    const uint32_t warps = args->count <= CR_BATCH_FEW ? 1 : CR_BATCH_WARPS;
    return CR_LAUNCH(cr_batch_kernel, (args->count + warps - 1) / warps, warps * CR_WARP, stream, *args);
}
