/* gather: the records of all ranks come together and are merged: by groups, then those of the groups. Every record has the same
 * size, so that one MPI_Gather does it; an error is a record, too, and a rank without data has one of length 0.
 *
 * A user-defined MPI_Op would read and write a partial at each step; here each partial is read once.
 *
 * Thread: one a rank. Owner: the record is the caller's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/ranks.h"
#include "kernels/core/op.h"

enum {
    ROOM = 2048,         /* header, one range and every family but products: 1,480 bytes at most; any sentence */
    PRODUCT_ROOM = 4096, /* 128 nodes of 24 bytes, or the digits of an integer */
    RANGE_BYTES = 16,
    MOST_RANGES = 1024,
};
_Static_assert((int)ROOM > CURED_ERROR_BYTES + 400, "a sentence fits");

size_t ranks_room(const cured_op *ops, size_t op_count, size_t pieces) {
    size_t room = ROOM + RANGE_BYTES * (pieces < MOST_RANGES ? pieces : MOST_RANGES);
    for (size_t i = 0; i < op_count; i++)
        if (cr_op_closing((cr_op)ops[i]) == CR_CLOSING_PRODUCT) room += PRODUCT_ROOM;
    return room;
}

ranks_record *ranks_record_new(size_t room) { return calloc(1, sizeof(ranks_record) + room); }

void ranks_record_fail(const ranks_job *job, const cli_failure *failure, ranks_record *record, size_t room) {
    record->code = failure->code;
    record->status = (int32_t)failure->status;
    const int n = snprintf((char *)record->bytes, room, "%s%s", job->where, failure->text);
    record->length = (uint32_t)((size_t)n < room ? n : (int)room - 1);
}

/* Merges records, of `stride` bytes each, into one; the first error wins. */
static void merge(const ranks_job *job, const uint8_t *records, size_t count, size_t stride, ranks_record *out) {
    cured_error error;
    uint8_t whole[CURED_PARTIAL_BYTES];
    size_t n = 0, bytes = sizeof whole;
    const size_t room = stride - sizeof *out;
    uint64_t most = 0, least = UINT64_MAX;
    cured_bytes *parts = calloc(count, sizeof *parts);
    if (parts == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory for %zu partials", count));
    const ranks_record *failed = NULL;
    for (size_t i = 0; i < count; i++) {
        const ranks_record *r = (const void *)(records + i * stride);
        if (r->code != EXIT_OK && failed == NULL) failed = r;
        if (r->length != 0) parts[n++] = (cured_bytes){r->bytes, r->length};
        if (r->fold_ns > most) most = r->fold_ns;
        if (r->least_ns < least) least = r->least_ns;
    }
    cli_failure failure = {0};
    if (failed != NULL) {
        memcpy(out, failed, stride);
    } else if (n != 0) {
        if (cured_partial_merge(parts, n, whole, &bytes, &error) != CURED_OK) {
            failure.code = error.code == CURED_RESOURCE_EXHAUSTED ? EXIT_AGAIN : EXIT_DATA;
            failure.status = error.code;
            snprintf(failure.text, sizeof failure.text, "%s", error.text);
        } else if (bytes > room) {
            failure = (cli_failure){EXIT_AGAIN, CURED_RESOURCE_EXHAUSTED, "the ranks' slices lie in too many places"};
        } else {
            memcpy(out->bytes, whole, bytes);
            out->length = (uint32_t)bytes;
        }
        if (failure.code != EXIT_OK) ranks_record_fail(job, &failure, out, room);
    }
    out->fold_ns = most;
    out->least_ns = least;
    free(parts);
}

/* The first rank of comm has the sum of all in its record afterwards. */
static void gather(const ranks_job *job, MPI_Comm comm, ranks_record *record, size_t stride) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (ranks == 1) return;
    uint8_t *all = rank == 0 ? calloc((size_t)ranks, stride) : NULL;
    if (rank == 0 && all == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory for %d records", ranks));
    MPI_Gather(record, (int)stride, MPI_BYTE, all, (int)stride, MPI_BYTE, 0, comm);
    if (rank == 0) merge(job, all, (size_t)ranks, stride, record);
    free(all);
}

void ranks_gather(const ranks_job *job, ranks_record *record, size_t room) {
    const size_t stride = sizeof *record + room; /* a multiple of 8, as the room is */
    gather(job, job->group, record, stride);
    if (job->leaders != MPI_COMM_NULL) gather(job, job->leaders, record, stride);
}
