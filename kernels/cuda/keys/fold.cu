/* fold: the kernels that fold.cuh and ordered.cuh make, by type. Thread: the stream's. Owner: none. */
#include "kernels/cuda/keys/ordered.cuh"

/* Offsets that rise, and end within the elements. */
__global__ void __launch_bounds__(CR_GPU_THREADS) cr_keys_check_kernel(const __grid_constant__ cr_keys_args args, const uint64_t elements) {
    for (uint64_t i = blockIdx.x * CR_GPU_THREADS + threadIdx.x; i <= args.keys_below; i += (uint64_t)gridDim.x * CR_GPU_THREADS) {
        const uint64_t own = cr_keys_load(args, i), before = i != 0 ? cr_keys_load(args, i - 1) : 0;
        if (own > elements || own < before) atomicMax(&args.head->inside, ~(unsigned long long)i);
    }
}

extern "C" int cr_keys_launch_check(const cr_keys_args *args, uint64_t elements, void *stream) {
    const uint32_t wanted = args->keys_below / CR_GPU_THREADS + 1;
    return CR_LAUNCH(cr_keys_check_kernel, min(wanted, (uint32_t)CR_GPU_THREADS), CR_GPU_THREADS, stream, *args, elements);
}

template <class T> static int cr_keys_go(const cr_keys_args *args, void *stream) {
    const uint32_t words = (2 * T::DIGITS + (uint32_t)args->at.counts) * args->copies + 2 * T::LIMBS * args->limb_copies;
    const uint32_t bytes = words * args->groups * (uint32_t)sizeof(uint32_t);
    if (cr_keys_rise(args)) return CR_LAUNCH((cr_keys_ordered_kernel<T>), args->blocks, CR_KEYS_THREADS, stream, *args);
    if (args->copies == 0) return CR_LAUNCH((cr_keys_fold_kernel<T, false>), args->blocks, CR_KEYS_THREADS, stream, *args);
    return CR_LAUNCH_SHARED((cr_keys_fold_kernel<T, true>), args->blocks, CR_KEYS_THREADS, bytes, stream, *args);
}

#define FLOAT(dtype, E)                                                                        \
    case dtype:                                                                                \
        return args->kind == CR_KEYS_SUM      ? cr_keys_go<cr_keys_sum<E>>(args, stream)       \
               : args->kind == CR_KEYS_EXTREME ? cr_keys_go<cr_keys_extreme_floats<E>>(args, stream) \
               : args->kind == CR_KEYS_SQUARE ? cr_keys_go<cr_keys_square<E>>(args, stream)    \
                                              : cr_keys_go<cr_keys_count<E>>(args, stream);
#define BITS(dtype)                                                                                        \
    case dtype:                                                                                            \
        return args->kind == CR_KEYS_EXTREME ? cr_keys_go<cr_keys_extreme_integers<(int)cr_width(dtype)>>(args, stream) \
               : args->kind == CR_KEYS_SUM ? cr_keys_go<cr_keys_whole<(int)cr_width(dtype)>>(args, stream) \
                                         : cr_keys_go<cr_keys_count_bits<(int)cr_width(dtype)>>(args, stream);

extern "C" int cr_keys_launch_fold(const cr_keys_args *args, void *stream) {
    switch ((cr_dtype)args->dtype) {
        FLOAT(CR_F16, cr_f16)
        FLOAT(CR_BF16, cr_bf16)
        FLOAT(CR_F32, cr_f32)
        FLOAT(CR_F64, cr_f64)
        CR_INTEGER_TYPES(BITS)
        case CR_DTYPE_NONE:
        case CR_F8_E4M3:
        case CR_F8_E5M2:
        case CR_I128:
        case CR_BIGINT:
        case CR_DIGEST:
            break;
    }
    return 1; /* cudaErrorInvalidValue: cr_keys_gpu_takes has refused it */
}
