/* ranks: what the files of cured-mpi share. Every rank runs the same program with the same arguments; what it decides from them, and
 * from what all were told, it need not send.
 *
 * Thread: one a rank (the folds' helpers call no MPI). Owner: main owns the job; a plan's files belong to whoever made it. */
#ifndef CURED_CLIENT_MPI_RANKS_H
#define CURED_CLIENT_MPI_RANKS_H

#include <mpi.h>

#include "base/clock.h"
#include "client/cli/cli.h"

typedef struct ranks_job {
    MPI_Comm all;            /* every rank; those of a node are neighbours, so that their slices are, too */
    MPI_Comm group, leaders; /* who gathers first, and the first rank of each group; MPI_COMM_NULL for the others */
    int rank, ranks;         /* in all */
    int local, locals;       /* among the ranks of this node */
    int nodes, groups;
    char where[64];      /* before this rank's sentences; "" where there is one rank */
    cli_failure failure; /* this rank's, if any */
    uint64_t started_ns, look_ns;
} ranks_job;

/* A file as a part of the whole. */
typedef struct ranks_file {
    int32_t code, dtype;
    uint64_t count;   /* elements */
    uint64_t units;   /* what it can be cut into: elements, or with an axis rows or columns */
    uint64_t answers; /* with an axis: of one of them */
    uint64_t first;   /* of its first element, in the whole */
    uint64_t form;    /* as in cli_look */
    uint32_t regular; /* others go to one rank, whole */
    int32_t by;       /* who looked at it, in the world */
} ranks_file;

typedef struct ranks_plan {
    ranks_file *files;
    size_t count, whole; /* files; how many of them are not regular */
    uint64_t total;      /* elements */
    bool axis, blocks;   /* blocks: each file is one of a larger array */
    cli_layout layout;   /* with an axis; on rank 0 alone */
} ranks_plan;

/* What a rank has come to: sent with room for `room` bytes behind it. */
typedef struct ranks_record {
    int32_t code, status; /* EXIT_OK, or bytes are a sentence */
    uint32_t length, zero;
    uint64_t fold_ns, least_ns; /* the longest fold and the shortest */
    uint8_t bytes[];
} ranks_record;

/* main.c: says what this rank is, and who its neighbours are. */
void ranks_begin(ranks_job *job, const cli_options *o);
void ranks_end(ranks_job *job);
/* A connection for this rank: "{local_rank}" in the address is its number on its node; the cores are shared out. */
int ranks_connect(const ranks_job *job, const cli_options *o, cured_conn **conn);
/* Prints the failure of one rank at rank 0, and gives its code to all. */
int ranks_fail(ranks_job *job, int rank);

/* plan.c: every rank looks at its share of the files; the code is the same on all. */
int ranks_plan_make(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, ranks_plan *plan);
/* What a rank takes of a file; false: nothing. */
bool ranks_plan_slice(const ranks_plan *plan, int rank, int ranks, size_t file, cli_slice *slice);

/* Whether this rank sees the file that was planned with, before it reads of it: on another node another may have its name. */
int ranks_plan_check(const cli_options *o, const cured_op *ops, size_t op_count, const ranks_file *planned);

/* gather.c: bytes that any partial of these ops needs, merged from `pieces` ranges. */
size_t ranks_room(const cured_op *ops, size_t op_count, size_t pieces);
ranks_record *ranks_record_new(size_t room);
/* Puts what cli_report_into kept into the record. */
void ranks_record_fail(const ranks_job *job, const cli_failure *failure, ranks_record *record, size_t room);
/* Gathers the records and merges them, once: by groups, then those of the groups. The sum is in rank 0's record. */
void ranks_gather(const ranks_job *job, ranks_record *record, size_t room);

/* The commands: fold.c, axis.c, search.c, bench.c. */
int ranks_fold(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named);
int ranks_axis(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named,
               ranks_plan *plan);
int ranks_search(ranks_job *job, const cli_options *o, const cured_op *ops, size_t op_count, bool named,
                 const ranks_plan *plan);
int ranks_bench(ranks_job *job, const cli_options *o);

#endif
