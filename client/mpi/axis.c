/* axis: answers along an axis. No two ranks have a share in one answer, so nothing is merged: each rank takes rows of the outermost
 * dimension, or columns where that is the one which is reduced, and rank 0 puts the answers one behind the other.
 *
 * Thread: one a rank. Owner: everything lives inside ranks_axis. */
#include <stdlib.h>

#include "client/mpi/ranks.h"

/* Whether the file is still what the plan was made for: rank 0 takes as many answers of every rank, of that type. */
static int check_same(const cli_options *o, const ranks_file *file, const cli_slice *slice, cured_dtype dtype,
                      const cured_call *call) {
    uint64_t count = 0;
    cured_call_array(call, 0, NULL, &count);
    if (dtype == (cured_dtype)file->dtype && count == slice->count * file->answers) return EXIT_OK;
    return cli_fail(EXIT_IO, "%s changed while it was read", o->file);
}

/* Of the first file, all there is. */
static int reduce_slice(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count,
                        const ranks_plan *plan, cured_call **call) {
    cli_options one = *o;
    cli_slice slice;
    cli_layout layout;
    cured_dtype dtype;
    cured_conn *conn = NULL;
    *call = NULL;
    if (!ranks_plan_slice(plan, job->rank, job->ranks, 0, &slice)) return EXIT_OK;
    one.slice = &slice;
    one.output = NULL; /* rank 0 writes it */
    int code = ranks_connect(job, o, &conn);
    if (code == EXIT_OK) code = ranks_plan_check(&one, ops, op_count, &plan->files[0]);
    if (code == EXIT_OK) code = cli_reduce(&one, conn, ops, op_count, call, &dtype, &layout);
    if (code == EXIT_OK) code = check_same(&one, &plan->files[0], &slice, dtype, *call);
    cured_close(conn);
    return code;
}

/* The first rank that failed tells, on all ranks. */
static int agree(ranks_job *job, int code) {
    int first = code != EXIT_OK ? job->rank : job->ranks;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, job->all);
    return first < job->ranks ? ranks_fail(job, first) : EXIT_OK;
}

/* How many answers of an op each rank has, and where they go; rank 0 alone. */
static void place(const ranks_job *job, const ranks_plan *plan, int *counts, int *places) {
    int at = 0;
    for (int r = 0; r < job->ranks; r++) {
        cli_slice slice = {0, 0};
        if (!ranks_plan_slice(plan, r, job->ranks, 0, &slice)) slice.count = 0;
        counts[r] = (int)(slice.count * plan->files[0].answers);
        places[r] = at;
        at += counts[r];
    }
}

/* Gathers the answers of one op into *array, whose values are rank 0's to free. */
static void gather_op(const ranks_job *job, const cured_call *call, size_t index, cured_dtype dtype, const int *counts,
                      const int *places, cli_array *array) {
    uint64_t count = 0;
    MPI_Datatype element;
    const void *mine = call != NULL ? cured_call_array(call, index, NULL, &count) : NULL;
    void *all = NULL;
    *array = (cli_array){.dtype = dtype};
    if (job->rank == 0) {
        array->count = (uint64_t)places[job->ranks - 1] + (uint64_t)counts[job->ranks - 1];
        all = malloc(array->count * cured_dtype_size(dtype) + 1);
        if (all == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory for the answers"));
        array->values = all;
    }
    MPI_Type_contiguous((int)cured_dtype_size(dtype), MPI_BYTE, &element);
    MPI_Type_commit(&element);
    MPI_Gatherv(mine, (int)count, element, all, counts, places, element, 0, job->all);
    MPI_Type_free(&element);
}

static int put(const ranks_job *job, const cli_options *o, const cli_array *arrays, const cured_op *ops,
               size_t op_count, const ranks_plan *plan, bool named, uint64_t fold_ns) {
    const cli_figure figures[] = {
        {"ranks", (uint64_t)job->ranks},
        {"nodes", (uint64_t)job->nodes},
        {"timing.look_ns", job->look_ns},
        {"timing.fold_ns", fold_ns},
        {"timing.total_ns", cr_now_ns() - job->started_ns},
        {NULL, 0},
    };
    const cli_answer answer = {
        .dtype = (cured_dtype)plan->files[0].dtype, .count = plan->files[0].count, .figures = figures};
    return cli_arrays_put(o, &answer, arrays, ops, op_count, &plan->layout, named);
}

int ranks_axis(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named,
               ranks_plan *plan) {
    cured_call *call;
    cli_array arrays[CURED_MAX_OPS] = {0};
    const size_t ranks = (size_t)job->ranks;
    const uint64_t start = cr_now_ns(), answers = plan->layout.axis.outer * plan->layout.axis.inner;
    int *counts = calloc(ranks, sizeof *counts), *places = calloc(ranks, sizeof *places);
    if (counts == NULL || places == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory"));
    cli_report_into(&job->failure);
    int code = reduce_slice(job, o, ops, op_count, plan, &call);
    if (code == EXIT_OK && job->rank == 0 && answers > INT32_MAX)
        code = cli_fail(EXIT_DATA, "%s has %llu answers for each op, the limit of cured-mpi is 2^31 - 1", o->file,
                        (unsigned long long)answers);
    cli_report_into(NULL);
    code = agree(job, code);
    if (code == EXIT_OK) {
        const uint64_t fold_ns = cr_now_ns() - start;
        if (job->rank == 0) place(job, plan, counts, places);
        for (size_t i = 0; i < op_count; i++) {
            const cured_dtype dtype = (cured_dtype)plan->files[0].dtype;
            gather_op(job, call, i, cured_axis_dtype(ops[i], dtype, o->call.result_dtype), counts, places, &arrays[i]);
        }
        if (job->rank == 0) code = put(job, o, arrays, ops, op_count, plan, named, fold_ns);
    }
    for (size_t i = 0; i < op_count; i++) free((void *)(uintptr_t)arrays[i].values);
    cured_call_free(call);
    free(counts);
    free(places);
    return code;
}
