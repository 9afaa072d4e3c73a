/* quantile: medians and quantiles of arrays in device memory. A read's counts are added up there, and come to host memory, where the next
 * read is chosen (kernels/core/quantile.h). Few elements come to host memory themselves: all of a short array, or those that are still
 * sought, as soon as they are few.
 *
 *   short ──▶ copied ──┐
 *   read ─▶ read ─▶ … ─┴─▶ found
 *             └─▶ few are left ─▶ gathered ─▶ found
 *
 * Thread: any. Owner: the room. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/caller/internal.h"
#include "kernels/cuda/quantile/quantile.h"

enum { SHORT = 2048, SHORT_ARRAYS = 8 }; /* elements, which the host finds in some µs */

typedef struct source {
    const cr_caller_array *arrays;
    size_t count;
} source;

/* Behind what was put in the stream: waits for it. `bytes` of device memory come to `to`, small ones through pinned memory. */
static cr_status bring(cr_room *room, const cr_visit *visit, void *to, size_t bytes, cr_error *error) {
    const bool small = bytes <= CR_ROOM_SMALL;
    cudaError_t failure =
        cudaMemcpyAsync(small ? room->small : to, room->answers, bytes, cudaMemcpyDeviceToHost, visit->stream);
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    cr_status status = cr_caller_error((int)failure, "quantile", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    if (status == CR_OK && small) memcpy(to, room->small, bytes);
    return status;
}

/* What the state's read counts of all arrays. */
static cr_status read_once(cr_room *room, const cr_visit *visit, const cr_quantile *s, source from, uint64_t *counts,
                           cr_error *error) {
    const size_t bytes = cr_quantile_words(s) * sizeof counts[0];
    cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    if (status != CR_OK) return status;
    cudaError_t failure = cudaMemsetAsync(room->answers, 0, bytes, visit->stream);
    for (size_t i = 0; i < from.count && failure == cudaSuccess; i++)
        failure = (cudaError_t)cr_quantile_count(s, from.arrays[i].data, from.arrays[i].n, (void *)room->answers,
                                                 visit->multiprocessors, visit->stream);
    status = cr_caller_error((int)failure, "quantile", error);
    return status == CR_OK ? bring(room, visit, counts, bytes, error) : status;
}

static uint64_t elements_of(source from) {
    uint64_t n = 0;
    for (size_t i = 0; i < from.count; i++) n += from.arrays[i].n;
    return n;
}

/* ---- Searches ---- */

/* All reads that are left, of n elements of host memory. */
static cr_status search_here(cr_quantile *s, const void *data, uint64_t n, cr_error *error) {
    bool more = true;
    while (more) {
        uint64_t *counts = calloc(cr_quantile_words(s), sizeof counts[0]);
        if (counts == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
        cr_quantile_count_few(s, counts, data, n);
        more = cr_quantile_next(s, counts);
        free(counts);
    }
    return CR_OK;
}

static bool is_short(source from) { return from.count <= SHORT_ARRAYS && elements_of(from) <= SHORT; }

static cr_status search_short(cr_room *room, const cr_visit *visit, cr_quantile *s, source from, cr_error *error) {
    const size_t size = cr_dtype_size(s->dtype);
    cudaError_t failure = cudaSuccess;
    size_t at = 0;
    for (size_t i = 0; i < from.count && failure == cudaSuccess; i++) {
        if (from.arrays[i].n == 0) continue;
        failure = cudaMemcpyAsync(room->small + at, from.arrays[i].data, from.arrays[i].n * size, cudaMemcpyDefault,
                                  visit->stream);
        at += from.arrays[i].n * size;
    }
    if (failure == cudaSuccess) failure = cudaEventRecord(room->last, visit->stream);
    cr_status status = cr_caller_error((int)failure, "quantile", error);
    if (status == CR_OK) status = cr_room_wait(room, room->last, error);
    return status == CR_OK ? search_here(s, room->small, at / size, error) : status;
}

/* The elements that are sought, which are `few`, and the reads that are left. */
static cr_status search_gathered(cr_room *room, const cr_visit *visit, cr_quantile *s, source from, uint64_t few,
                                 cr_error *error) {
    const size_t size = cr_dtype_size(s->dtype), bytes = sizeof(unsigned long long) + few * size;
    cr_status status = cr_room_grow(&room->answers, &room->answer_bytes, bytes, visit->stream, error);
    uint64_t *found = status == CR_OK ? malloc(bytes) : NULL;
    if (found == NULL)
        return status != CR_OK ? status : cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for elements");
    cudaError_t failure = cudaMemsetAsync(room->answers, 0, sizeof(unsigned long long), visit->stream);
    for (size_t i = 0; i < from.count && failure == cudaSuccess; i++)
        failure = (cudaError_t)cr_quantile_gather(s, from.arrays[i].data, from.arrays[i].n, (void *)room->answers, few,
                                                  visit->multiprocessors, visit->stream);
    status = cr_caller_error((int)failure, "quantile", error);
    if (status == CR_OK) status = bring(room, visit, found, bytes, error);
    if (status == CR_OK) status = search_here(s, found + 1, found[0] < few ? found[0] : few, error);
    free(found);
    return status;
}

static cr_status search(cr_room *room, const cr_visit *visit, cr_quantile *s, source from, cr_error *error) {
    cr_status status = CR_OK;
    bool more = true;
    if (is_short(from)) return search_short(room, visit, s, from, error);
    while (more && status == CR_OK) {
        uint64_t *counts = malloc(cr_quantile_words(s) * sizeof counts[0]), left = UINT64_MAX;
        if (counts == NULL) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for counts");
        status = read_once(room, visit, s, from, counts, error);
        if (status == CR_OK && s->read == 0) counts[CR_QUANTILE_SEEN] = elements_of(from);
        if (status == CR_OK) more = cr_quantile_next_of(s, counts, &left);
        free(counts);
        if (status == CR_OK && more && cr_quantile_gathers(s, left))
            return search_gathered(room, visit, s, from, left, error);
    }
    return status;
}

/* ---- What libcured calls ---- */

typedef struct asked {
    cr_quantile *search; /* NULL: one read */
    const cr_quantile *read;
    uint64_t *counts;
} asked;

static cr_status run(asked ask, source from, void *stream, cr_error *error) {
    cr_visit visit;
    cr_room *room = NULL;
    cr_status status = cr_caller_enter(&visit, cr_caller_data(from.arrays, from.count), stream, error);
    if (status != CR_OK) return status;
    status = cr_caller_check_wait(&visit, error);
    for (size_t i = 1; i < from.count && status == CR_OK; i++)
        if (from.arrays[i].n != 0) status = cr_caller_check_beside(from.arrays[i].data, "array", &visit, error);
    if (status == CR_OK) status = cr_room_take(&visit, &room, error);
    if (room != NULL) {
        pthread_mutex_lock(&room->mutex);
        status = ask.search != NULL ? search(room, &visit, ask.search, from, error)
                                    : read_once(room, &visit, ask.read, from, ask.counts, error);
        if (status != CR_OK) cr_room_settle(room, visit.stream);
        pthread_mutex_unlock(&room->mutex);
        cr_room_give(room);
    }
    cr_caller_leave(&visit);
    return status;
}

cr_status cr_caller_search(cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream, cr_error *error) {
    const source from = {arrays, count};
    if (elements_of(from) == 0) return search_here(s, NULL, 0, error);
    return run((asked){.search = s}, from, stream, error);
}

cr_status cr_caller_quantile(const cr_quantile *s, const cr_caller_array *arrays, size_t count, void *stream,
                             uint64_t *counts, cr_error *error) {
    const source from = {arrays, count};
    const uint64_t seen = elements_of(from);
    memset(counts, 0, cr_quantile_words(s) * sizeof counts[0]);
    const cr_status status = seen != 0 ? run((asked){.read = s, .counts = counts}, from, stream, error) : CR_OK;
    if (s->read == 0) counts[CR_QUANTILE_SEEN] = seen;
    return status;
}
