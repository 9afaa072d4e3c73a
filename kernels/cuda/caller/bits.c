/* bits: the bytes of bools that lie a bit each, in memory that the stream makes and frees: folds read whole bytes.
 *
 * Thread: any. Owner: the caller, of the bytes until it frees them. */
#include "kernels/cuda/bits/bits.h"

#include "kernels/cuda/caller/internal.h"

enum { MOST = 40 }; /* as a power of two: a terabyte of bytes, beyond any GPU's memory */

static cr_status make(const cr_visit *visit, const void *bits, uint64_t first, uint64_t count, void **bytes,
                      cr_error *error) {
    const uint64_t wanted = (count + CR_BITS_AT_ONCE - 1) / CR_BITS_AT_ONCE * CR_BITS_AT_ONCE;
    cudaError_t failure = cudaMallocAsync(bytes, wanted, visit->stream);
    if (failure != cudaSuccess) {
        *bytes = NULL;
        const cr_status status = cr_caller_error((int)failure, "bits", error);
        if (status != CR_RESOURCE_EXHAUSTED) return status;
        return cr_fail(error, status,
                       "bits: no device memory for a byte of each of %llu bools: pass a part of them, or a copy on the "
                       "host",
                       (unsigned long long)count);
    }
    failure = (cudaError_t)cr_bits_launch(bits, first, count, *bytes, visit->stream);
    if (failure == cudaSuccess) return CR_OK;
    cudaFreeAsync(*bytes, visit->stream);
    *bytes = NULL;
    return cr_caller_error((int)failure, "bits", error);
}

cr_status cr_caller_bits(const void *bits, uint64_t first, uint64_t count, void *stream, void **bytes,
                         cr_error *error) {
    cr_visit visit;
    *bytes = NULL;
    if (count == 0) return CR_OK;
    if (bits == NULL) return cr_fail(error, CR_INVALID_ARGUMENT, "bits: must not be NULL, of more than 0 bools");
    if (count >> MOST != 0 || first >> (MOST + 1) != 0)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "bits: %llu bools from number %llu on, must be below 2^40, from below 2^41 on",
                       (unsigned long long)count, (unsigned long long)first);
    cr_status status = cr_caller_enter(&visit, bits, stream, error);
    if (status != CR_OK) return status;
    if (visit.captured)
        status = cr_fail(error, CR_FAILED_PRECONDITION, "bits: the stream is captured, and their bytes are no graph's");
    if (status == CR_OK) status = make(&visit, bits, first, count, bytes, error);
    cr_caller_leave(&visit);
    return status;
}

void cr_caller_bits_free(void *bytes, void *stream) {
    cr_visit visit;
    cr_error error;
    if (bytes == NULL || cr_caller_enter(&visit, bytes, stream, &error) != CR_OK) return;
    if (cudaFreeAsync(bytes, visit.stream) != cudaSuccess) (void)cudaGetLastError();
    cr_caller_leave(&visit);
}
