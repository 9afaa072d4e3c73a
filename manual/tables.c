/* tables: the programs as man pages and completions see them, from the tables of their parsers.
 *
 * Thread: one. */
#include <string.h>

#include "base/config_layer.h"
#include "client/cli/cli.h"
#include "manual/manual.h"

/* ---- cured-client ---- */

static const manual_option client_options[] = {
#define CLI_OPTION(name, setter, argument, of, words, help) {name, argument, words, help, of},
#include "client/cli/options.def"
#undef CLI_OPTION
    {"help", NULL, "", "print how to use the program, or the command before it", CLI_OF_ALL},
    {"version", NULL, "", "print the version", CLI_OF_ALL},
};

#define ROW(name, arguments, takes, help, examples)                                                \
    {                                                                                              \
        name, arguments, help, examples, takes, ((takes) & (CLI_OF_FILES | CLI_OF_PARTIALS)) != 0, \
            ((takes)&CLI_MANY) != 0, ((takes)&CLI_PERHAPS) != 0                                    \
    }
#define CLI_COMMAND(name, function, arguments, takes, help, examples) ROW(#name, arguments, takes, help, examples),
static const manual_command client_commands[] = {
#include "client/cli/commands.def"
};
static const manual_command mpi_commands[] = {
#include "client/mpi/commands.def"
};
#undef CLI_COMMAND

#define CLI_COMMAND(name, function, arguments, takes, help, examples)
#define CLI_OP(arguments, takes, help, examples) ROW("OP", arguments, takes, help, examples),
static const manual_command client_op[] = {
#include "client/cli/commands.def"
};
#define CLI_OP(arguments, takes, help, examples) ROW("OP", arguments, takes, help, examples),
static const manual_command mpi_op[] = {
#include "client/mpi/commands.def"
};
#undef CLI_COMMAND

static const char client_status[] =
    "0\nall went well\n1\ncheckpoints differ (weights)\n64\nthe command line is wrong\n65\nbad data, or no value for "
    "the op asked\n"
    "66\nthere is no such input\n69\nno daemon answers, or the GPU that was asked for is lacking\n"
    "74\ninput or output failed\n75\ntry again later\n76\nthe daemon broke the protocol\n77\ndenied\n";

static const manual_program client = {
    .name = "cured-client",
    .synopsis = "COMMAND [ARGUMENTS] [OPTIONS]",
    .what = "reduce arrays exactly, by a daemon or alone",
    .section = 1,
    .text =
        "Sums, averages and searches arrays. Every answer is the true value, rounded once: the same bits on every "
        "machine, "
        "by a CPU or a GPU, and however the array was split.\n\n"
        "Files are raw elements, NumPy's .npy, or an array of a .npz: a.npz:x. A folder stands for the .npy and .npz "
        "files in it, a "
        "pattern for the paths that match, a.npz:* for all arrays of it. A file named - is standard input. Files "
        "of other formats are refused by their first bytes; --raw takes them anyway. The answer alone goes to standard "
        "output, with digits that read back to the same value.\n\n"
        "Without --connect and CURED_CONNECT, cured-client asks the daemon at $XDG_RUNTIME_DIR/cured.sock or "
        "/run/cured/cured.sock. Where nobody listens it answers by itself, on all cores, with the same bits.",
    .options = client_options,
    .option_count = sizeof client_options / sizeof client_options[0],
    .commands = client_commands,
    .command_count = sizeof client_commands / sizeof client_commands[0],
    .op = client_op,
    .files =
        "/run/cured/cured.sock\nthe socket of the machine's daemon\n"
        "$XDG_RUNTIME_DIR/cured.sock\nthe socket of a user's own daemon\n",
    .status = client_status,
    .see = "cured(8), cured-bench(1), cured-mpi(1)",
};

/* ---- cured-mpi ---- */

static const manual_option mpi_own[] = {
#define CLI_OPTION(name, setter, argument, of, words, help) {name, argument, words, help, of},
#define CLI_WITHOUT(name)
#include "client/mpi/options.def"
#undef CLI_OPTION
#undef CLI_WITHOUT
};
static const char *const mpi_without[] = {
#define CLI_OPTION(name, setter, argument, of, words, help)
#define CLI_WITHOUT(name) name,
#include "client/mpi/options.def"
#undef CLI_OPTION
#undef CLI_WITHOUT
};

enum {
    CLIENT_OPTIONS = sizeof client_options / sizeof client_options[0],
    MPI_OWN = sizeof mpi_own / sizeof mpi_own[0],
    MPI_WITHOUT = sizeof mpi_without / sizeof mpi_without[0],
};
static manual_option mpi_options[CLIENT_OPTIONS + MPI_OWN];

static manual_program mpi = {
    .name = "cured-mpi",
    .synopsis = "COMMAND [ARGUMENTS] [OPTIONS]",
    .what = "reduce arrays exactly, by the ranks of an MPI job",
    .section = 1,
    .text =
        "Most jobs start it as mpirun -n N cured-mpi OP FILE... Several files are one array, in their order. Each "
        "of the N ranks reads its slice of that array, so every rank must see the files by the same names. The answer "
        "is printed once, with the bits that cured-client gives for the whole.\n\n"
        "A rank asks the daemon of its node. Where nobody listens it folds by itself, on its share of the node's "
        "cores. In --connect the word {local_rank} becomes the rank's number on its node, for one daemon a GPU.\n\n"
        "With --axis there is one file. The ranks take rows of its outermost dimension or, if that one is reduced, "
        "columns. A rank's error ends all ranks, with its sentence.",
    .options = mpi_options,
    .commands = mpi_commands,
    .command_count = sizeof mpi_commands / sizeof mpi_commands[0],
    .op = mpi_op,
    .status = client_status,
    .see = "cured-client(1), cured(8), mpirun(1)",
};

static void fill_mpi(void) {
    for (size_t i = 0; i < CLIENT_OPTIONS; i++) {
        size_t k = 0;
        while (k < MPI_WITHOUT && strcmp(mpi_without[k], client_options[i].name) != 0) k++;
        if (k == MPI_WITHOUT) mpi_options[mpi.option_count++] = client_options[i];
    }
    for (size_t i = 0; i < MPI_OWN; i++) mpi_options[mpi.option_count++] = mpi_own[i];
}

/* ---- cured ---- */

enum { TEXT_BYTES = 512 };

static manual_option daemon_options[CR_OPTION_ROOM + 8];
static char daemon_flags[CR_OPTION_ROOM][CR_OPTION_ROOM], daemon_words[CR_OPTION_ROOM][TEXT_BYTES];
static char daemon_help[CR_OPTION_ROOM][TEXT_BYTES];

static manual_program server = {
    .name = "cured",
    .synopsis = "[OPTIONS]",
    .what = "the daemon that reduces arrays exactly for all programs of a machine",
    .section = 8,
    .text =
        "Listens on Unix sockets and TCP addresses, and answers reductions of arrays that clients send, pass as "
        "descriptors or share: on the CPU, and where there is a CUDA device on both at once. Every answer is the true "
        "value, rounded once.\n\n"
        "Options come from, in rising order of weight: defaults, a JSON file, the environment and the command line. A "
        "key "
        "of the file is an option's name with _ for -. A variable is CURED_ and the name in capitals with _ for -; "
        "lists "
        "are comma-separated there. Sizes take B, KiB, MiB, GiB, TiB, PiB or EiB (64MiB), times us, ms, s, min or h "
        "(30s).\n\n"
        "SIGTERM makes the daemon end: it takes no more calls, and those that run have drain_timeout_ms to finish. "
        "SIGHUP makes it read its options again; those that can change at once do.",
    .options = daemon_options,
    .files =
        "/etc/cured/cured.json\nthe configuration, read if it exists and no other is named\n"
        "/run/cured/cured.sock\nwhere root's daemon and the system's service listen\n"
        "$XDG_RUNTIME_DIR/cured.sock\nwhere another user's daemon listens\n",
    .status =
        "0\nthe daemon ended as it was asked to\n64\nan option, or the configuration, is wrong\n"
        "69\nan address or a GPU cannot be had\n70\na GPU was lost, and on_gpu_fault is exit\n",
    .see = "cured-client(1), cured-bench(1), cured-mpi(1)",
};

static void add_daemon(const char *name, const char *argument, const char *words, const char *help) {
    daemon_options[server.option_count++] = (manual_option){name, argument, words, help, CLI_OF_ALL};
}

static const char *value_of(const cr_option *option) {
    static const char *const names[] = {
        [CR_OPT_LIST] = "VALUE", [CR_OPT_CHOICE] = "WORD", [CR_OPT_UINT] = "N", [CR_OPT_OCTAL] = "MODE"};
    return option->kind == CR_OPT_BOOL || option->kind >= sizeof names / sizeof names[0] ? NULL : names[option->kind];
}

static void fill_daemon(void) {
    for (size_t i = 0; i < cr_option_count; i++) {
        const cr_option *option = &cr_options[i];
        snprintf(daemon_words[i], TEXT_BYTES, "%s", option->kind == CR_OPT_CHOICE ? option->words : "");
        for (char *c = daemon_words[i]; *c != '\0'; c++)
            if (*c == '|') *c = ' ';
        cr_option_describe(i, daemon_help[i], TEXT_BYTES);
        const bool file = strstr(option->help, "file of ") != NULL && option->kind == CR_OPT_LIST;
        add_daemon(cr_option_flag(i, daemon_flags[i]), value_of(option), file ? "@file" : daemon_words[i],
                   daemon_help[i]);
    }
    add_daemon("config", "FILE", "@file",
               "the JSON file; default CURED_CONFIG, else /etc/cured/cured.json if it exists");
    add_daemon("check-config", NULL, "", "say whether the configuration is good, and end");
    add_daemon("print-config", NULL, "", "print every option with its value and where that came from, and end");
    add_daemon("print-schema", NULL, "", "print the JSON schema of the file, and end");
    add_daemon("version", NULL, "", "print the version, and end");
    add_daemon("help", NULL, "", "print the options, and end");
}

/* ---- cured-bench ---- */

static const manual_command bench_commands[] = {
#define BENCH_COMMAND(name, function, what) {name, "", what, NULL, 0, false, false, false},
#include "bench/commands.def"
#undef BENCH_COMMAND
};
static const manual_option bench_options[] = {
    {"help", NULL, "", "list the commands, or after a command its options", CLI_OF_ALL}};

static const manual_program bench = {
    .name = "cured-bench",
    .synopsis = "COMMAND [OPTIONS]",
    .what = "measure how fast cured reduces arrays here",
    .section = 1,
    .text =
        "Each command is one measurement. It prints its machine, its command line and its spread. \"cured-bench "
        "COMMAND "
        "--help\" lists the options of a command.",
    .options = bench_options,
    .option_count = 1,
    .commands = bench_commands,
    .command_count = sizeof bench_commands / sizeof bench_commands[0],
    .status =
        "0\nevery answer that was measured was right\n64\nthe command line is wrong\n69\nthere is no GPU, or it "
        "failed\n",
    .see = "cured(8), cured-client(1)",
};

const manual_program *const *manual_programs(void) {
    static const manual_program *const programs[] = {&client, &mpi, &server, &bench, NULL};
    if (server.option_count == 0) fill_daemon();
    if (mpi.option_count == 0) fill_mpi();
    return programs;
}

const char manual_ops[] =
#define CR_OP(symbol, id, name, term, divisor, root, result, empty, help, elements, dtype, bytes, answer) \
    name "\n" help ". Of " elements " it is " answer "\n"
#include "kernels/core/op.def"
#undef CR_OP
    ;

const char *manual_words(const char *words) {
    static const char ops[] =
#define CR_OP(symbol, id, name, ...) " " name
#include "kernels/core/op.def"
#undef CR_OP
        ;
    static const char dtypes[] =
#define CR_DTYPE(symbol, id, name, ...) " " name
#include "kernels/core/dtype.def"
#undef CR_DTYPE
        ;
    static const char kernels[] =
#define CR_LADDER(name, idea) " " #name
#include "kernels/ladder/ladder.def"
#undef CR_LADDER
        ;
    if (strcmp(words, "@op") == 0) return ops + 1;
    if (strcmp(words, "@dtype") == 0) return dtypes + 1;
    if (strcmp(words, "@kernel") == 0) return kernels + 1;
    return words;
}

const char *manual_behind(const char *words, const char *first) {
    const size_t bytes = strlen(first);
    if (strncmp(words, first, bytes) != 0 || (words[bytes] != ' ' && words[bytes] != '\0')) return NULL;
    return manual_words(words + bytes + (words[bytes] == ' '));
}

bool manual_belongs(const manual_option *option, const manual_command *command) {
    return option->of == CLI_OF_ALL || (option->of & command->takes) != 0;
}

bool manual_is_choice(const manual_command *command) {
    return strchr(command->arguments, '|') != NULL && strpbrk(command->arguments, ". ") == NULL;
}
