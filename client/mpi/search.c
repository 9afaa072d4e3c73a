/* search: medians and quantiles over all ranks: each read counts in every rank's slices, and an Allreduce adds the counts up.
 *
 * Thread: one a rank. Owner: everything lives inside ranks_search. */
#include <stdio.h>

#include "client/mpi/ranks.h"

typedef struct search {
    ranks_job *job;
    const cli_options *o;
    const ranks_plan *plan;
    cured_conn *conn; /* NULL: this rank has read nothing yet */
    cured_op op;
    uint64_t reads;
} search;

/* The counts of what this rank takes. */
static int count_slices(search *s, const cured_bytes *asked, uint64_t *counts, size_t count) {
    int code = EXIT_OK;
    for (size_t i = 0; code == EXIT_OK && i < s->plan->count; i++) {
        cli_slice slice;
        cli_options one = *s->o;
        const ranks_file *file = &s->plan->files[i];
        cured_dtype dtype;
        uint64_t elements = 0;
        if (!ranks_plan_slice(s->plan, s->job->rank, s->job->ranks, i, &slice)) continue;
        if (s->conn == NULL) code = ranks_connect(s->job, s->o, &s->conn);
        if (code != EXIT_OK) break;
        one.file = s->o->files[i];
        one.slice = &slice;
        code = ranks_plan_check(&one, &s->op, 1, file);
        if (code == EXIT_OK) code = cli_search_count(&one, s->conn, s->op, asked, counts, count, &elements, &dtype);
    }
    return code;
}

/* Every rank has the sums of all, or the code of one that failed. */
static int count_all(void *user, const cured_bytes *asked, uint64_t *counts, size_t count) {
    search *s = user;
    cli_report_into(&s->job->failure);
    const int mine[2] = {count_slices(s, asked, counts, count), s->job->rank};
    int worst[2];
    cli_report_into(NULL);
    MPI_Allreduce(mine, worst, 1, MPI_2INT, MPI_MAXLOC, s->job->all);
    if (worst[0] != EXIT_OK) return ranks_fail(s->job, worst[1]);
    s->reads++;
    MPI_Allreduce(MPI_IN_PLACE, counts, (int)count, MPI_UINT64_T, MPI_SUM, s->job->all);
    return EXIT_OK;
}

int ranks_search(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named,
                 const ranks_plan *plan) {
    search s = {.job = job, .o = o, .plan = plan, .op = ops[0]};
    cured_values *values = NULL;
    cli_failure unheard = {0};
    const uint64_t start = cr_now_ns();
    if (job->rank != 0) cli_report_into(&unheard); /* all make the same mistakes: rank 0 tells */
    int code = o->call.partial ? cli_fail(EXIT_USAGE, "--partial: op %s has none", cured_op_name(ops[0]))
                               : cli_search_check(o, ops, op_count);
    cli_report_into(NULL);
    const cured_dtype dtype = (cured_dtype)plan->files[0].dtype;
    if (code == EXIT_OK) code = cli_search_run(o, dtype, ops, op_count, count_all, &s, &values);
    if (code == EXIT_OK && job->rank == 0) {
        const uint64_t now = cr_now_ns();
        const cli_figure figures[] = {
            {"ranks", (uint64_t)job->ranks},
            {"nodes", (uint64_t)job->nodes},
            {"reads", s.reads},
            {"timing.look_ns", job->look_ns},
            {"timing.fold_ns", now - start},
            {"timing.total_ns", now - job->started_ns},
            {NULL, 0},
        };
        const cli_answer answer = {.values = values, .dtype = dtype, .count = plan->total, .figures = figures};
        if (o->timing)
            fprintf(stderr, "look %.3f ms, %llu reads %.3f ms; ranks %d, nodes %d\n", (double)job->look_ns / 1e6,
                    (unsigned long long)s.reads, (double)(now - start) / 1e6, job->ranks, job->nodes);
        code = cli_print(o, &answer, named);
    }
    cured_values_free(values);
    cured_close(s.conn);
    return code;
}
