/* cured-mpi: one exact answer from many machines. Each rank takes its slice of the files, asks its node's daemon for a partial (or
 * folds in its own process), and the partials are merged once. The bits are those of the whole on one machine.
 *
 * Thread: one a rank. Owner: main owns the job. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sched.h>
#include <unistd.h>

#include "base/standard.h"
#include "client/mpi/ranks.h"

static ranks_job job;

static int run_reduce(const cli_options *o) {
    return ranks_fold(&job, o, o->ops, o->op_count, strcmp(o->command, "reduce") == 0);
}

static int run_describe(const cli_options *o) {
    const cured_op *ops;
    const size_t count = cli_describe_ops(&ops);
    return ranks_fold(&job, o, ops, count, true);
}

static int run_bench(const cli_options *o) { return ranks_bench(&job, o); }

static int run_help(const cli_options *o) { return job.rank == 0 ? cli_help(o->file) : EXIT_OK; }

static const cli_command commands[] = {
#define CLI_COMMAND(name, function, arguments, takes, help, examples) \
    {#name, arguments, help, examples, takes, run_##function},
#include "client/mpi/commands.def"
#undef CLI_COMMAND
};
static const cli_command op_command[] = {
#define CLI_COMMAND(name, function, arguments, takes, help, examples)
#define CLI_OP(arguments, takes, help, examples) {"OP", arguments, help, examples, takes, run_reduce},
#include "client/mpi/commands.def"
#undef CLI_COMMAND
};

static int set_group(cli_options *o, const char *value) {
    char *end;
    const long ranks = strtol(value, &end, 10);
    if (ranks < 1 || ranks > INT32_MAX || *end != '\0')
        return cli_fail(EXIT_USAGE, "--group is '%s', must be a number of ranks", value);
    o->group = (uint64_t)ranks;
    return EXIT_OK;
}

static const cli_option own[] = {
#define CLI_OPTION(name, setter, argument, of, words, help) {name, argument, help, set_##setter},
#define CLI_WITHOUT(name)
#include "client/mpi/options.def"
#undef CLI_OPTION
#undef CLI_WITHOUT
    {NULL, NULL, NULL, NULL},
};
static const char *const without[] = {
#define CLI_OPTION(name, setter, argument, of, words, help)
#define CLI_WITHOUT(name) name,
#include "client/mpi/options.def"
#undef CLI_OPTION
#undef CLI_WITHOUT
    NULL,
};

/* A paragraph a line. */
static const char notes[] =
    "\n"
    "Usually: mpirun -n N cured-mpi OP FILE... Each of the N ranks reads its slice of the files, which it must see by "
    "the "
    "same names. It asks its node's daemon, or where nobody listens it folds by itself on its share of the cores.\n"
    "\"{local_rank}\" in --connect becomes the rank's number on its node: one daemon a GPU, say. The answer is printed "
    "once, with the bits of the whole on one machine. A rank's error ends all, with its sentence.\n"
    "With --axis there is one file; ranks take rows of its outermost dimension or, if that is reduced, columns.\n"
    "Exit codes are those of cured-client.";

const cli_program cli_program_here = {
    .name = "cured-mpi",
    .commands = commands,
    .command_count = sizeof commands / sizeof commands[0],
    .op = op_command,
    .notes = notes,
    .without = without,
    .own = own,
    .whole = true,
};

void ranks_begin(ranks_job *j, const cli_options *o) {
    MPI_Comm node;
    int world, leader, first;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &j->local);
    MPI_Comm_size(node, &j->locals);
    leader = world;
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    MPI_Comm_split(MPI_COMM_WORLD, 0, leader, &j->all); /* equal keys: by the rank in the world */
    MPI_Comm_rank(j->all, &j->rank);
    MPI_Comm_size(j->all, &j->ranks);
    first = j->local == 0;
    MPI_Allreduce(&first, &j->nodes, 1, MPI_INT, MPI_SUM, j->all);
    MPI_Comm_split(j->all, o->group != 0 ? (int)((uint64_t)j->rank / o->group) : leader, j->rank, &j->group);
    MPI_Comm_rank(j->group, &first);
    MPI_Comm_split(j->all, first == 0 ? 0 : MPI_UNDEFINED, j->rank, &j->leaders);
    first = first == 0;
    MPI_Allreduce(&first, &j->groups, 1, MPI_INT, MPI_SUM, j->all);
    MPI_Get_processor_name(host, &first);
    if (j->ranks > 1) snprintf(j->where, sizeof j->where, "rank %d on %.32s: ", world, host);
    j->started_ns = cr_now_ns();
}

void ranks_end(ranks_job *j) {
    if (j->leaders != MPI_COMM_NULL) MPI_Comm_free(&j->leaders);
    MPI_Comm_free(&j->group);
    MPI_Comm_free(&j->all);
}

/* The cores that this rank may use, of those that the ranks of its node share. */
static uint32_t threads_of(const ranks_job *j) {
    cpu_set_t set;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const long share = online > j->locals ? online / j->locals : 1;
    const long mine = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : share;
    return (uint32_t)(mine < share ? mine : share);
}

int ranks_connect(const ranks_job *j, const cli_options *o, cured_conn **conn) {
    static const char mark[] = "{local_rank}";
    char address[CURED_ADDRESS_BYTES];
    cli_options mine = *o;
    if (mine.connect == NULL) mine.connect = getenv("CURED_CONNECT");
    if (mine.connect != NULL && *mine.connect == '\0') mine.connect = NULL;
    const char *at = mine.connect != NULL ? strstr(mine.connect, mark) : NULL;
    if (at != NULL) {
        const int n = snprintf(address, sizeof address, "%.*s%d%s", (int)(at - mine.connect), mine.connect, j->local,
                               at + strlen(mark));
        if ((size_t)n >= sizeof address)
            return cli_fail(EXIT_USAGE, "--connect is longer than %d bytes", CURED_ADDRESS_BYTES - 1);
        mine.connect = address;
    }
    mine.threads = threads_of(j);
    return cli_connect(&mine, false, conn);
}

int ranks_fail(ranks_job *j, int rank) {
    MPI_Bcast(j->where, sizeof j->where, MPI_CHAR, rank, j->all);
    MPI_Bcast(&j->failure, sizeof j->failure, MPI_BYTE, rank, j->all);
    cli_report_into(NULL);
    return j->rank == 0 ? cli_report_failure(&j->failure, j->where) : j->failure.code;
}

int main(int argc, char **argv) {
    cli_options o;
    cli_failure unheard = {0}; /* every rank makes the same mistakes with its arguments: rank 0 tells */
    bool help, version;
    int provided, world;
    cr_standard_hold();
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no longer is an error with a sentence */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    if (world != 0) cli_report_into(&unheard);
    int code = cli_parse(argc, argv, &o, &help, &version);
    if (world != 0) cli_report_as(false, true);
    cli_report_into(NULL);
    o.no_progress = true;
    if (code == EXIT_OK && (help || version)) {
        if (world == 0 && version) printf("cured-mpi %s\n", cured_version());
        if (world == 0 && help) code = cli_help(o.command);
        if (code == EXIT_OK) code = cli_flush();
    } else if (code == EXIT_OK) {
        ranks_begin(&job, &o);
        code = cli_find_command(o.command)->run(&o);
        MPI_Bcast(&code, 1, MPI_INT, 0, job.all); /* rank 0 alone prints, and may fail to */
        ranks_end(&job);
    }
    MPI_Finalize();
    return code;
}
