/* launchers: how digests are laid over a GPU.
 *
 * Thread: any; nothing here holds state. */
#include <cuda_runtime_api.h>
#include <string.h>

#include "kernels/cuda/digests/digests.h"

enum { WARP = 32, WARPS = CR_DIGESTS_THREADS / WARP, GRAIN = 4 }; /* GRAIN: elements of any type that are whole words */

/* Warps, or threads, that a GPU is given at most. */
static uint64_t most_warps(uint32_t multiprocessors) {
    const uint64_t warps = (uint64_t)CR_DIGESTS_BLOCKS * CR_DIGESTS_THREADS / WARP * CR_DIGESTS_WAVES;
    return (multiprocessors != 0 ? multiprocessors : 1) * warps;
}

/* Pieces have whole rows, where those are shorter. */
static void cut(cr_digests_args *args, uint32_t multiprocessors) {
    const uint64_t most = most_warps(multiprocessors);
    args->per = args->bytes / most + (args->bytes % most != 0);
    if (args->per < CR_DIGESTS_PIECE) args->per = CR_DIGESTS_PIECE;
    if (args->source != CR_DIGESTS_OFFSETS && args->row != 0 && args->row <= args->per)
        args->per -= args->per % args->row;
    args->pieces = args->bytes / args->per + (args->bytes % args->per != 0);
}

static int zero(const cr_digests_args *args, uint64_t words, void *stream) {
    return (int)cudaMemsetAsync(args->to, 0, words * sizeof args->to[0], (cudaStream_t)stream);
}

static int go(cr_digests_args *args, uint64_t words, uint32_t multiprocessors, void *stream) {
    int failure = words != 0 ? zero(args, words, stream) : 0;
    if (failure != 0 || args->outputs == 0 || args->bytes == 0) return failure;
    cut(args, multiprocessors);
    return cr_digests_launch_rows(args, stream);
}

static int go_columns(cr_digests_args *args, uint32_t multiprocessors, void *stream) {
    const uint64_t threads = most_warps(multiprocessors) * WARP, most = args->n / CR_DIGESTS_COLUMN + 1,
                   wanted = threads / args->outputs + 1, pieces = wanted < most ? wanted : most;
    args->per = (args->n / pieces + (args->n % pieces != 0) + GRAIN - 1) / GRAIN * GRAIN;
    args->pieces = args->n / args->per + (args->n % args->per != 0);
    const int failure = args->pieces > 1 ? zero(args, CR_DIGESTS_WORDS * args->outputs, stream) : 0;
    return failure != 0 ? failure : cr_digests_launch_columns(args, stream);
}

int cr_digests_axis(const void *data, const cr_shape *shape, cr_dtype dtype, void *to, uint32_t multiprocessors,
                    void *stream) {
    const uint32_t size = (uint32_t)cr_dtype_size(dtype);
    cr_digests_args args;
    memset(&args, 0, sizeof args);
    args.data = data;
    args.to = to;
    args.outputs = cr_shape_answers(shape);
    args.bytes = cr_shape_elements(shape) * size;
    args.row = shape->n * size;
    args.n = shape->n;
    args.inner = shape->inner;
    args.source = CR_DIGESTS_ROWS;
    args.size = size;
    args.odd = (uintptr_t)data % size != 0;
    const bool columns = shape->inner > 1 || args.row <= CR_DIGESTS_SHORT;
    if (args.outputs == 0 || shape->n == 0 || !columns)
        return go(&args, CR_DIGESTS_WORDS * args.outputs, multiprocessors, stream);
    return go_columns(&args, multiprocessors, stream);
}

int cr_digests_offsets(const void *data, uint64_t n, cr_dtype dtype, const cr_offsets *offsets,
                       const unsigned long long *wrong, void *to, uint32_t multiprocessors, void *stream) {
    cr_digests_args args;
    memset(&args, 0, sizeof args);
    args.data = data;
    args.to = to;
    args.outputs = offsets->count;
    args.size = (uint32_t)cr_dtype_size(dtype);
    args.bytes = n * args.size;
    args.source = CR_DIGESTS_OFFSETS;
    args.offsets = offsets->data;
    args.narrow = cr_dtype_size(offsets->dtype) < sizeof(uint64_t);
    args.is_signed = cr_dtype_kind(offsets->dtype) == CR_KIND_SINT;
    args.wrong = wrong;
    return go(&args, CR_DIGESTS_WORDS * args.outputs, multiprocessors, stream);
}

int cr_digests_block(const void *data, cr_dtype dtype, const cr_layout *block, void *to, uint32_t multiprocessors,
                     void *stream) {
    cr_digests_args args;
    memset(&args, 0, sizeof args);
    args.data = data;
    args.to = to;
    args.outputs = block->count / block->run;
    args.size = (uint32_t)cr_dtype_size(dtype);
    args.bytes = block->count * args.size;
    args.row = block->run * args.size;
    args.source = CR_DIGESTS_RUNS;
    args.block = *block;
    if (args.row <= CR_DIGESTS_SHORT && args.outputs != 0) {
        const uint64_t blocks = args.outputs / CR_DIGESTS_THREADS + 1, most = most_warps(multiprocessors) / WARPS;
        const int failure = zero(&args, CR_DIGEST_PARTS, stream);
        return failure != 0 ? failure
                            : cr_digests_launch_runs(&args, (uint32_t)(blocks < most ? blocks : most), stream);
    }
    return go(&args, CR_DIGEST_PARTS, multiprocessors, stream);
}
