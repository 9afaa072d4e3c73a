/* bench: what gathering and merging takes on these ranks, beside a barrier of the same ranks.
 *
 * Thread: one a rank. Owner: the record lives inside ranks_bench. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/ranks.h"

enum { ROUNDS = 1000, WARM = 50, ELEMENTS = 4096 };

/* The partial of describe of made-up elements, those of this rank's place in the whole. */
static int make(const ranks_job *job, ranks_record *record, size_t room) {
    double elements[ELEMENTS];
    const cured_op *ops;
    const size_t op_count = cli_describe_ops(&ops);
    cured_options options = CURED_OPTIONS_INIT;
    cured_conn *conn = NULL;
    cured_call *call = NULL;
    cured_error error;
    size_t bytes = 0;
    /* Far apart in size, so that the partial is as large as those of describe become. */
    for (int i = 0; i < ELEMENTS; i++) elements[i] = ldexp(i % 2 ? -1.3 : 1.7, i % 2000 - 1000);
    options.partial = true;
    options.first = (uint64_t)job->rank * ELEMENTS;
    cured_status status = cured_connect("embedded:", NULL, &conn, &error);
    if (status == CURED_OK)
        status = cured_reduce_buffer(conn, CURED_F64, ops, op_count, elements, ELEMENTS, &options, &call, &error);
    if (status == CURED_OK) status = cured_wait(call, &error);
    const void *partial = status == CURED_OK ? cured_call_partial(call, &bytes) : NULL;
    if (partial != NULL && bytes <= room) memcpy(record->bytes, partial, bytes);
    record->length = (uint32_t)bytes;
    cured_call_free(call);
    cured_close(conn);
    return status == CURED_OK ? EXIT_OK : cli_fail(EXIT_CONNECT, "%s", error.text);
}

static int rising(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const ranks_job *job, const cli_options *o, double *merge, double *barrier, uint32_t bytes) {
    qsort(merge, ROUNDS, sizeof *merge, rising);
    qsort(barrier, ROUNDS, sizeof *barrier, rising);
    const int p50 = ROUNDS / 2, p99 = ROUNDS * 99 / 100;
    if (o->json)
        printf(
            "{\"ranks\":%d,\"nodes\":%d,\"groups\":%d,\"partial_bytes\":%u,\"merge_p50_us\":%.2f,"
            "\"merge_p99_us\":%.2f,\"barrier_p50_us\":%.2f,\"barrier_p99_us\":%.2f}\n",
            job->ranks, job->nodes, job->groups, bytes, merge[p50], merge[p99], barrier[p50], barrier[p99]);
    else
        printf(
            "ranks %d, nodes %d, groups %d, a partial of %u bytes: gather and merge p50 %.2f us, p99 %.2f us; "
            "a barrier p50 %.2f us, p99 %.2f us\n",
            job->ranks, job->nodes, job->groups, bytes, merge[p50], merge[p99], barrier[p50], barrier[p99]);
}

int ranks_bench(ranks_job *job, const cli_options *o) {
    static double merge[ROUNDS], barrier[ROUNDS];
    const cured_op *ops;
    const size_t op_count = cli_describe_ops(&ops), room = ranks_room(ops, op_count, 1);
    ranks_record *mine = ranks_record_new(room), *record = ranks_record_new(room);
    if (mine == NULL || record == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory"));
    int code = make(job, mine, room);
    if (code != EXIT_OK) MPI_Abort(job->all, code);
    for (int i = -WARM; i < ROUNDS; i++) {
        memcpy(record, mine, sizeof *mine + room);
        MPI_Barrier(job->all);
        const uint64_t start = cr_now_ns();
        ranks_gather(job, record, room);
        const uint64_t merged = cr_now_ns();
        MPI_Barrier(job->all);
        const uint64_t again = cr_now_ns();
        MPI_Barrier(job->all);
        if (i < 0) continue;
        merge[i] = (double)(merged - start) / 1e3;
        barrier[i] = (double)(cr_now_ns() - again) / 1e3;
    }
    if (job->rank == 0 && record->code != EXIT_OK) code = cli_fail(EXIT_DATA, "%s", (const char *)record->bytes);
    if (job->rank == 0 && code == EXIT_OK) print(job, o, merge, barrier, record->length);
    free(mine);
    free(record);
    return code == EXIT_OK ? cli_flush() : code;
}
