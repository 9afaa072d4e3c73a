/* kernels_no_cub: what stands for CUB and Thrust in a build without them, because compiling them takes longer than any kernel of
 * cured's but one (CURED_BENCH_CUB of CMake). Their rows say so.
 *
 * Thread: any. Owner: none. */
#include "bench/kernels_peer.h"

enum { NOT_SUPPORTED = 801 }; /* cudaErrorNotSupported */

const char *bench_cub_lacks(void) { return "none: CCCL was not compiled (-DCURED_BENCH_CUB=ON)"; }
const char *bench_require_lacks(void) { return bench_cub_lacks(); }
int bench_cub_version(void) { return 0; }

bool bench_cub_has(cr_op op, cr_dtype dtype) { return (void)op, (void)dtype, false; }
bool bench_thrust_has(cr_op op, cr_dtype dtype) { return (void)op, (void)dtype, false; }

/* Nobody who asked the above calls these. */
int bench_cub(cr_op op, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out, uint64_t n,
              void *stream) {
    return (void)op, (void)dtype, (void)temp, (void)bytes, (void)in, (void)out, (void)n, (void)stream, NOT_SUPPORTED;
}

int bench_require(bench_promise promise, cr_dtype dtype, void *temp, size_t *bytes, const void *in, void *out,
                  uint64_t n, void *stream) {
    (void)promise;
    return bench_cub(CR_OP_SUM, dtype, temp, bytes, in, out, n, stream);
}

int bench_cub_segments(void *temp, size_t *bytes, const void *in, void *out, uint32_t segments, const int *offsets,
                       void *stream) {
    (void)offsets;
    return bench_cub(CR_OP_SUM, CR_F32, temp, bytes, in, out, segments, stream);
}

int bench_thrust(cr_op op, cr_dtype dtype, const void *in, void *out, uint64_t n, void *stream) {
    return bench_cub(op, dtype, NULL, NULL, in, out, n, stream);
}
