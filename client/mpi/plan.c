/* plan: which rank takes what. Each rank looks at every N-th file and tells the others; then all cut the whole alike.
 *
 * The files are one array, in their order. It is cut into as many equal slices as there are ranks, at multiples of 4,096 elements,
 * because products of floats merge there alone. A file that cannot be read by position goes to the rank in whose slice it begins.
 * Blocks of a larger array (--within) go as they are to one rank after the other.
 *
 * Thread: one a rank. Owner: the files belong to whoever asked for the plan. */
#include <stdlib.h>
#include <string.h>

#include "client/mpi/ranks.h"
#include "kernels/core/op.h"

enum { BLOCK = 4096 };

static void look_at(const cli_options *o, const cured_op *ops, size_t op_count, cli_layout *layout, const char *name,
                    ranks_file *file) {
    cli_options one = *o;
    cli_look look;
    one.file = name;
    file->code = strcmp(name, "-") != 0 ? cli_look_at(&one, ops, op_count, &look, layout)
                                        : cli_fail(EXIT_USAGE, "standard input belongs to one rank: give files");
    if (file->code == EXIT_OK && look.count == CURED_TO_END)
        file->code = cli_fail(
            EXIT_USAGE, "%s: how many elements it holds is not known before it is read to its end; give --count", name);
    if (file->code != EXIT_OK) return;
    const cured_axis *axis = &layout->axis;
    file->dtype = (int32_t)look.dtype;
    file->count = look.count;
    file->units = look.count;
    file->answers = 1;
    if (o->axis_given) { /* else nobody has filled the layout */
        file->units = axis->outer != 1 ? axis->outer : axis->inner;
        file->answers = axis->outer != 1 ? axis->inner : 1;
    }
    file->regular = look.regular;
    file->form = look.form;
    MPI_Comm_rank(MPI_COMM_WORLD, &file->by);
}

int ranks_plan_check(const cli_options *o, const cured_op *ops, size_t op_count, const ranks_file *planned) {
    ranks_file seen = {0};
    cli_layout layout;
    look_at(o, ops, op_count, &layout, o->file, &seen);
    if (seen.code != EXIT_OK) return seen.code;
    if (seen.dtype != planned->dtype || seen.count != planned->count)
        return cli_fail(
            EXIT_DATA,
            "%s holds %llu elements of %s for this rank, and %llu of %s for rank %d: every rank must see the same "
            "file by that name",
            o->file, (unsigned long long)seen.count, cured_dtype_name((cured_dtype)seen.dtype),
            (unsigned long long)planned->count, cured_dtype_name((cured_dtype)planned->dtype), planned->by);
    if (seen.form != planned->form || seen.units != planned->units || seen.answers != planned->answers ||
        seen.regular != planned->regular)
        return cli_fail(
            EXIT_DATA,
            "%s has another shape or order for this rank than for rank %d: every rank must see the same file by "
            "that name",
            o->file, planned->by);
    return EXIT_OK;
}

/* All files, looked at by all ranks in turn. */
static int look_at_all(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, ranks_plan *plan) {
    const size_t ranks = (size_t)job->ranks, rounds = (o->file_count + ranks - 1) / ranks;
    ranks_file *mine = calloc(rounds, sizeof *mine), *all = calloc(rounds * ranks, sizeof *all);
    plan->files = calloc(o->file_count, sizeof *plan->files);
    plan->count = o->file_count;
    if (mine == NULL || all == NULL || plan->files == NULL || rounds > INT32_MAX / sizeof *mine)
        MPI_Abort(job->all, cli_fail(EXIT_IO, "out of memory for %zu files", o->file_count));
    cli_report_into(&job->failure);
    for (size_t i = 0; i < rounds; i++) {
        const size_t file = i * ranks + (size_t)job->rank;
        if (file < o->file_count) look_at(o, ops, op_count, &plan->layout, o->files[file], &mine[i]);
    }
    cli_report_into(NULL);
    const int bytes = (int)(rounds * sizeof *mine);
    MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, job->all);
    for (size_t i = 0; i < o->file_count; i++) plan->files[i] = all[(i % ranks) * rounds + i / ranks];
    free(mine);
    free(all);
    for (size_t i = 0; i < o->file_count; i++)
        if (plan->files[i].code != EXIT_OK) return ranks_fail(job, (int)(i % ranks));
    return EXIT_OK;
}

static bool float_product(const cured_op *ops, size_t op_count, int32_t dtype) {
    bool found = false;
    for (size_t i = 0; i < op_count; i++) found = found || cr_op_closing((cr_op)ops[i]) == CR_CLOSING_PRODUCT;
    return found && cr_dtype_kind((cr_dtype)dtype) == CR_KIND_FLOAT;
}

/* Whether the files can be one array. Every rank finds the same; rank 0 says it. */
static int join(const cli_options *o, const cured_op *ops, size_t op_count, ranks_plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        ranks_file *file = &plan->files[i];
        file->first = plan->total;
        if (file->dtype != plan->files[0].dtype)
            return cli_fail(EXIT_DATA, "%s holds %s and %s holds %s: they are not one array", o->files[0],
                            cured_dtype_name((cured_dtype)plan->files[0].dtype), o->files[i],
                            cured_dtype_name((cured_dtype)file->dtype));
        if (file->count > (uint64_t)INT64_MAX - plan->total)
            return cli_fail(EXIT_DATA, "the files hold 2^63 elements or more");
        if (file->count != 0 && plan->total % BLOCK != 0 && float_product(ops, op_count, file->dtype))
            return cli_fail(EXIT_DATA,
                            "prod of floats over several files wants a multiple of %d elements in all but the last: "
                            "before %s there are %llu",
                            BLOCK, o->files[i], (unsigned long long)plan->total);
        plan->total += file->count;
        plan->whole += file->regular == 0;
    }
    return EXIT_OK;
}

int ranks_plan_make(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, ranks_plan *plan) {
    cli_failure unheard = {0};
    memset(plan, 0, sizeof *plan);
    plan->axis = o->axis_given;
    plan->blocks = o->within_given;
    int code = look_at_all(job, o, ops, op_count, plan);
    if (code == EXIT_OK && job->rank != 0) cli_report_into(&unheard);
    if (code == EXIT_OK) code = join(o, ops, op_count, plan);
    cli_report_into(NULL);
    job->look_ns = cr_now_ns() - job->started_ns;
    return code;
}

/* Where the slice of a rank begins. */
static uint64_t cut(uint64_t total, int rank, int ranks, uint64_t block) {
    if (rank >= ranks) return total;
    const uint64_t r = (uint64_t)rank, n = (uint64_t)ranks;
    const uint64_t at = total / n * r + total % n * r / n;
    return at - at % block;
}

bool ranks_plan_slice(const ranks_plan *plan, int rank, int ranks, size_t index, cli_slice *slice) {
    const ranks_file *file = &plan->files[index];
    const uint64_t total = plan->axis ? file->units : plan->total, first = plan->axis ? 0 : file->first;
    const uint64_t begin = cut(total, rank, ranks, plan->axis ? 1 : BLOCK);
    const uint64_t end = cut(total, rank + 1, ranks, plan->axis ? 1 : BLOCK);
    *slice = (cli_slice){0, file->units};
    if (total == 0) return index == 0 && rank == 0; /* somebody must say what nothing comes to */
    if (plan->blocks) return index % (size_t)ranks == (size_t)rank;
    if (file->regular == 0) return first >= begin && first < end && file->units != 0;
    const uint64_t from = first > begin ? first : begin;
    const uint64_t to = first + file->units < end ? first + file->units : end;
    if (from >= to) return false;
    *slice = (cli_slice){from - first, to - from};
    return true;
}
