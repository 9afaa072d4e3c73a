/* bits: the bytes of bools that lie a bit each, in memory that the stream makes and frees: folds read whole bytes.
 *
 * A stream that is captured frees nothing but memory of graphs, and neither does the legacy one while a stream is captured that it would
 * wait for. What is given back then waits for the next call of this file that names the stream and may free. Streams are known by their
 * handles here, since a captured one's number cannot be asked for.
 *
 * Thread: any. Owner: the caller, of the bytes until it frees them; this file, of those that wait. */
#include "kernels/cuda/bits/bits.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/cuda/caller/internal.h"

enum { MOST = 40 }; /* as a power of two: a terabyte of bytes, beyond any GPU's memory */

typedef struct waiting {
    struct waiting *next;
    void *bytes;
    cudaStream_t stream;
    unsigned long long thread; /* whose stream cudaStreamPerThread is; 0: any other is everybody's */
    int device;
    unsigned long long context_id; /* once it is another, the bytes are gone */
} waiting;

static waiting *all_waiting;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Numbers of threads, because what the system calls one may be another's later. */
static unsigned long long thread_of(cudaStream_t stream) {
    static atomic_ullong given;
    static _Thread_local unsigned long long own;
    if (stream != cudaStreamPerThread) return 0;
    if (own == 0) own = ++given;
    return own;
}

static void let_wait(const cr_visit *visit, void *bytes) {
    waiting *w = malloc(sizeof *w);
    if (w == NULL) return; /* and the bytes stay until the context goes */
    *w = (waiting){
        NULL, bytes, visit->stream, thread_of(visit->stream), visit->device, cr_caller_context(visit->device)};
    pthread_mutex_lock(&mutex);
    w->next = all_waiting;
    all_waiting = w;
    pthread_mutex_unlock(&mutex);
}

/* Frees what waits for this stream, which is not captured. */
static void free_waiting(const cr_visit *visit) {
    cr_error ignored;
    const unsigned long long thread = thread_of(visit->stream);
    pthread_mutex_lock(&mutex);
    for (waiting **at = &all_waiting, *w; (w = *at) != NULL;) {
        const bool gone = cr_caller_alive(w->device, w->context_id, &ignored) != CR_OK;
        if (!gone && (w->stream != visit->stream || w->thread != thread || w->device != visit->device)) {
            at = &w->next;
            continue;
        }
        if (!gone && cudaFreeAsync(w->bytes, visit->stream) != cudaSuccess) (void)cudaGetLastError();
        *at = w->next;
        free(w);
    }
    pthread_mutex_unlock(&mutex);
}

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
    if (status == CR_OK) free_waiting(&visit);
    if (status == CR_OK) status = make(&visit, bits, first, count, bytes, error);
    cr_caller_leave(&visit);
    return status;
}

void cr_caller_bits_free(void *bytes, void *stream) {
    cr_visit visit;
    cr_error error;
    if (bytes == NULL) return;
    const cr_status status = cr_caller_enter(&visit, bytes, stream, &error);
    if (status == CR_OK && !visit.captured) {
        if (cudaFreeAsync(bytes, visit.stream) != cudaSuccess) (void)cudaGetLastError();
        free_waiting(&visit);
    } else if (visit.captured && !cr_caller_is_child()) {
        let_wait(&visit, bytes);
    }
    if (status == CR_OK) cr_caller_leave(&visit);
}
