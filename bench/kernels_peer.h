/* kernels_peer: CUB and Thrust behind plain C, for cured-bench kernels. Each returns a cudaError_t as int.
 *
 * Thread: main. Owner: the caller owns all memory; stream is a cudaStream_t. */
#ifndef CURED_BENCH_KERNELS_PEER_H
#define CURED_BENCH_KERNELS_PEER_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/core/op.h"

/* NULL, or a sentence: this build has neither CUB nor Thrust (kernels_no_cub.c). */
const char *bench_cub_lacks(void);
bool bench_cub_has(cr_op op, cr_dtype dtype);
/* temp NULL: only *bytes, of temp, is set. out has 16 bytes: the value in the array's type; for argmax an index (8 bytes) and then
 * the value. */
int bench_cub(cr_op op, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out, uint64_t n, void *stream);

/* What CUB promises of a sum's bits. */
typedef enum bench_promise {
    BENCH_RUN_TO_RUN,    /* the same in every run on a GPU: bench_cub, which is asked for nothing */
    BENCH_GPU_TO_GPU,    /* the same on every GPU */
    BENCH_NOT_GUARANTEED /* none */
} bench_promise;

/* CCCL_VERSION of its headers: 3002001 is 3.2.1. 0: there is no CUB. */
int bench_cub_version(void);
/* NULL, or a sentence: these headers have no sums with a requirement. */
const char *bench_require_lacks(void);
/* The same as bench_cub, of the sum of f32 or f64 with a promise other than BENCH_RUN_TO_RUN. */
int bench_require(bench_promise promise, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out,
                  uint64_t n, void *stream);

/* Sums of f32, segment i from offsets[i] to offsets[i + 1]; all in device memory. */
int bench_cub_segments(void *temp, size_t *bytes, const void *in, void *out, uint32_t segments, const int *offsets,
                       void *stream);

bool bench_thrust_has(cr_op op, cr_dtype dtype);
/* out: host memory. Waits. */
int bench_thrust(cr_op op, cr_dtype dtype, const void *in, void *out, uint64_t n, void *stream);

/* Read loops: what any kernel could reach. Variants 0 … bench_read_variants() - 1. */
unsigned bench_read_variants(void);
const char *bench_read_name(unsigned variant);
int bench_read(unsigned variant, const void *in, uint64_t bytes, void *out, unsigned multiprocessors, void *stream);
/* Fills n elements from seed: normal floats, integers of any bits. */
int bench_fill(cr_dtype dtype, void *out, uint64_t n, uint64_t seed, void *stream);

#ifdef __cplusplus
}
#endif
#endif
