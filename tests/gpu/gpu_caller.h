/* gpu_caller: what the files of test_gpu_caller share: its memory and streams, and how an answer is compared.
 *
 * Thread: one, but caller_cuda() and caller_good(), which any may call. Owner: test_gpu_caller.c owns caller_run. */
#ifndef CURED_TESTS_GPU_CALLER_H
#define CURED_TESTS_GPU_CALLER_H

#include <cuda_runtime_api.h>

#include "cured/cuda.h"
#include "tests/gpu/gpu_cases.h"

enum { CALLER_ROOM = 4 << 20, CALLER_SPARE = 64 };

typedef struct caller_state {
    uint64_t seed, cases, bytes, checks, wrong; /* bytes: of an array, at most */
    uint8_t *host, *device, *beside;            /* the same array twice, and memory for other things on the device */
    cudaStream_t streams[4];
} caller_state;
extern caller_state caller_run;

/* End the program with 1 where a call has failed. */
void caller_cuda(cudaError_t failure, const char *what);
void caller_good(cured_status status, const cured_error *error, const char *what);
/* Counts a wrong answer, and prints the first ones. */
void caller_wrong(const char *what, cured_dtype dtype, const char *op, uint64_t n, uint64_t offset);
uint64_t caller_draw(uint64_t below);
bool caller_same(const cured_value *a, const cured_value *b);
/* An array of a drawn type at caller_run.host and caller_run.device, from offset on; how many elements, of at most `most` bytes. */
uint64_t caller_make_array(cured_dtype *dtype, uint64_t *offset, uint64_t most);
/* Some ops that go with the type, 8 at most; how many. */
size_t caller_draw_ops(cured_dtype dtype, cured_op *ops, bool unordered);
/* On a stream that is drawn. */
cured_cuda_ask caller_ask(const cured_cuda_array *arrays, size_t count, const cured_op *ops, size_t op_count,
                          const cured_options *options);
/* With what the CPU says of the array in host memory. */
void caller_compare(const char *what, cured_dtype dtype, const cured_op *ops, size_t op_count, const void *host,
                    uint64_t n, const cured_options *options, const cured_values *values, uint64_t offset);

/* gpu_caller_types.c: lists of several types. */
void caller_check_types(void);
/* At most 8 ops by key or by offsets; plain: by offsets without a mask, which have squares of integers, too. */
size_t caller_draw_key_ops(cured_dtype dtype, bool plain, cured_op *ops);
/* gpu_caller_masks.c: one array under a mask; and some ops, at most 8, along an axis under one, among them those that swaths alone have. */
size_t caller_draw_swath_ops(cured_dtype dtype, cured_op *ops);
void caller_check_masked(void);
/* gpu_caller_pairs.c: ops of two arrays. */
void caller_check_pairs(void);
void caller_check_extreme_pairs(void);
void caller_check_edge_pairs(void);
void caller_check_close_pairs(void);
void caller_check_pair_refusals(void);
/* gpu_caller_ranks.c: medians and quantiles. */
void caller_check_ranks(void);
/* gpu_caller_keys.c: reductions by key, and partials; indices of extrema where one key has many elements. */
void caller_check_keys(void);
void caller_check_hot(void);
/* gpu_caller_blocks.c: partials of blocks of a larger array. */
void caller_check_block(void);
/* gpu_caller_linear.c: linear forms in device memory. */
void caller_check_linear(void);
void caller_check_linear_refusals(void);

/* ---- gpu_caller_stream.c ---- */

/* Work of the program before the call and behind it, which the call must not overtake or hold back. */
void caller_check_order(cudaStream_t stream, bool list);
void caller_check_capture(void);
void caller_check_threads(void);
void caller_check_refusals(void);
/* A child of a process that has used CUDA. */
void caller_check_fork(void);

#endif
