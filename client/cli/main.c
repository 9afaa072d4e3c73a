/* cured-client: reductions from the command line. main finds the subcommand; each has its own file.
 *
 * Thread: one. */
#include <signal.h>
#include <stdio.h>

#include "base/standard.h"
#include "client/cli/cli.h"

static const cli_command commands[] = {
#define CLI_COMMAND(name, function, arguments, takes, help, examples) \
    {#name, arguments, help, examples, takes, function},
#include "client/cli/commands.def"
#undef CLI_COMMAND
};
static const cli_command op_command[] = {
#define CLI_COMMAND(name, function, arguments, takes, help, examples)
#define CLI_OP(arguments, takes, help, examples) {"OP", arguments, help, examples, takes, cmd_reduce},
#include "client/cli/commands.def"
#undef CLI_COMMAND
};

/* A paragraph a line. */
static const char notes[] =
    "\n"
    "Files are raw elements, NumPy's .npy, or an array of a .npz: a.npz:x. Parquet, HDF5, text and others are refused "
    "by "
    "their first bytes; with --dtype only if the name says so too, or if they are numbers written out and the name "
    "does "
    "not end in .bin; with --offset or --raw never. --text reads a column of numbers that are written out.\n"
    "The answer alone goes to standard output; with --axis a row of the last dimension per line. Arrays in Fortran "
    "order "
    "stay so. bf16 is written as NumPy writes ml_dtypes.bfloat16 ('<V2'); i128 has no .npy form and is text only.\n"
    "auto: asks the daemon at $XDG_RUNTIME_DIR/cured.sock or /run/cured/cured.sock, for root the other way round. "
    "Where "
    "nobody listens this process answers by itself, as with embedded:, on all cores.\n"
    "Exit codes: 0; 1 weights differ; 64 usage; 65 bad data, or an op without a value; 66 no input; 69 cannot connect, "
    "or "
    "no GPU for --kernel; 74 input or output failed; 75 try again later; 76 protocol; 77 denied.";

const cli_program cli_program_here = {
    .name = "cured-client",
    .commands = commands,
    .command_count = sizeof commands / sizeof commands[0],
    .op = op_command,
    .notes = notes,
};

int main(int argc, char **argv) {
    cli_options o;
    bool help, version;
    cr_standard_hold();
    signal(SIGXFSZ, SIG_IGN); /* a file that may grow no longer is an error with a sentence */
    int code = cli_parse(argc, argv, &o, &help, &version);
    if (code != EXIT_OK) return code;
    if (version) {
        printf("cured-client %s\n", cured_version());
        return cli_flush();
    }
    if (help) return cli_help(o.command);
    return cli_find_command(o.command)->run(&o);
}
