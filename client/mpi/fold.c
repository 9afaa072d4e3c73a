/* fold: a rank's slice of every file to one partial, all partials to one answer.
 *
 * Thread: one a rank; a connection in this process has helpers of its own. Owner: everything lives inside ranks_fold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/ranks.h"

static int merge_into(const char *name, const cured_call *call, uint8_t *sum, size_t *bytes) {
    cured_error error;
    cured_bytes both[2] = {{NULL, 0}, {sum, *bytes}};
    both[0].data = cured_call_partial(call, &both[0].bytes);
    const size_t count = *bytes != 0 ? 2 : 1;
    *bytes = CURED_PARTIAL_BYTES;
    if (cured_partial_merge(both, count, sum, bytes, &error) == CURED_OK) return EXIT_OK;
    return cli_fail(error.code == CURED_RESOURCE_EXHAUSTED ? EXIT_AGAIN : EXIT_DATA, "%s: %s (%s)", name, error.text,
                    cured_status_name(error.code));
}

/* The partial of what this rank takes; *bytes is 0 when that is nothing. */
static int fold_slices(const ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count,
                       const ranks_plan *plan, uint8_t *sum, size_t *bytes) {
    cured_conn *conn = NULL;
    int code = EXIT_OK;
    *bytes = 0;
    for (size_t i = 0; code == EXIT_OK && i < plan->count; i++) {
        cli_slice slice;
        cli_options one = *o;
        cured_call *call;
        cured_dtype dtype;
        cli_layout layout;
        if (!ranks_plan_slice(plan, job->rank, job->ranks, i, &slice)) continue;
        if (conn == NULL) code = ranks_connect(job, o, &conn);
        if (code != EXIT_OK) break;
        one.file = o->files[i];
        one.slice = &slice;
        one.call.partial = true;
        one.block = i;
        if (!plan->blocks) one.call.first += plan->files[i].first + slice.first;
        code = ranks_plan_check(&one, ops, op_count, &plan->files[i]);
        if (code != EXIT_OK) break;
        code = cli_reduce(&one, conn, ops, op_count, &call, &dtype, &layout);
        if (code == EXIT_OK && dtype != (cured_dtype)plan->files[i].dtype)
            code = cli_fail(EXIT_IO, "%s changed while it was read", one.file);
        if (code == EXIT_OK) code = merge_into(one.file, call, sum, bytes);
        cured_call_free(call);
    }
    cured_close(conn);
    return code;
}

/* Fills the record of this rank. */
static void fold(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, const ranks_plan *plan,
                 ranks_record *record, size_t room) {
    uint8_t sum[CURED_PARTIAL_BYTES];
    size_t bytes;
    const uint64_t start = cr_now_ns();
    cli_report_into(&job->failure);
    int code = fold_slices(job, o, ops, op_count, plan, sum, &bytes);
    if (code == EXIT_OK && bytes > room)
        code = cli_fail(EXIT_AGAIN, "the partial of this rank has %zu bytes, the limit is %zu", bytes, room);
    cli_report_into(NULL);
    record->fold_ns = record->least_ns = cr_now_ns() - start;
    if (code != EXIT_OK) {
        ranks_record_fail(job, &job->failure, record, room);
    } else {
        memcpy(record->bytes, sum, bytes);
        record->length = (uint32_t)bytes;
    }
}

static void print_timing(const ranks_job *job, const cli_options *o, const ranks_record *sum, uint64_t gather_ns) {
    if (!o->timing) return;
    fflush(stdout);
    fprintf(stderr,
            "look %.3f ms, fold %.3f ms (the fastest rank %.3f), gather and merge %.3f ms; ranks %d, nodes %d\n",
            (double)job->look_ns / 1e6, (double)sum->fold_ns / 1e6, (double)sum->least_ns / 1e6,
            (double)gather_ns / 1e6, job->ranks, job->nodes);
}

/* Blocks that are one array have as many elements as that; a digest tells more. */
static int check_blocks(const cli_options *o, uint64_t count) {
    uint64_t whole = 1;
    for (uint32_t i = 0; i < o->within_dims; i++) whole *= o->within[i]; /* at most 2^60, or the calls had failed */
    if (!o->within_given || count == whole) return EXIT_OK;
    return cli_fail(EXIT_DATA, "the files have %llu elements together, and the array of --within has %llu",
                    (unsigned long long)count, (unsigned long long)whole);
}

/* Rank 0: the answers of the sum of all. */
static int finish(const ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named,
                  const ranks_record *sum, uint64_t gather_ns) {
    cured_error error;
    cured_values *values;
    cli_answer answer = {0};
    const cli_piece piece = {sum->bytes, sum->length};
    if (sum->code != EXIT_OK) {
        cli_failure failure = {.code = sum->code, .status = (cured_status)sum->status};
        snprintf(failure.text, sizeof failure.text, "%.*s", (int)sum->length, (const char *)sum->bytes);
        return cli_report_failure(&failure, "");
    }
    const cli_figure figures[] = {
        {"ranks", (uint64_t)job->ranks},
        {"nodes", (uint64_t)job->nodes},
        {"timing.look_ns", job->look_ns},
        {"timing.fold_ns", sum->fold_ns},
        {"timing.least_ns", sum->least_ns},
        {"timing.gather_ns", gather_ns},
        {"timing.total_ns", cr_now_ns() - job->started_ns},
        {NULL, 0},
    };
    answer.figures = figures;
    print_timing(job, o, sum, gather_ns);
    if (o->call.partial) return cli_write(o->output, &piece, 1);
    const bool read = cured_partial_check(sum->bytes, sum->length, &answer.dtype, &answer.count, &error) == CURED_OK;
    const int blocks = read ? check_blocks(o, answer.count) : EXIT_OK;
    if (blocks != EXIT_OK) return blocks;
    if (!read || cured_partial_finish(sum->bytes, sum->length, ops, op_count, &o->call, &values, &error) != CURED_OK)
        return cli_fail(EXIT_DATA, "%s (%s)", error.text, cured_status_name(error.code));
    answer.values = values;
    const int code = cli_print(o, &answer, named);
    cured_values_free(values);
    return code;
}

int ranks_fold(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named) {
    ranks_plan plan;
    int code = ranks_plan_make(job, o, ops, op_count, &plan);
    if (code == EXIT_OK && o->axis_given) {
        code = ranks_axis(job, o, ops, op_count, named, &plan);
    } else if (code == EXIT_OK && cli_goes_by_rank(o)) {
        code = ranks_search(job, o, ops, op_count, named, &plan);
    } else if (code == EXIT_OK) {
        const size_t room = ranks_room(ops, op_count, 1 + 2 * plan.whole);
        ranks_record *record = ranks_record_new(room);
        if (record == NULL) MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory"));
        fold(job, o, ops, op_count, &plan, record, room);
        if (o->timing || o->json) MPI_Barrier(job->all); /* what follows is the gathering alone */
        const uint64_t start = cr_now_ns();
        ranks_gather(job, record, room);
        if (job->rank == 0) code = finish(job, o, ops, op_count, named, record, cr_now_ns() - start);
        free(record);
    }
    free(plan.files);
    return code;
}
