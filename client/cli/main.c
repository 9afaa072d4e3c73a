/* cured-client: reductions from the command line. main finds the subcommand; each has its own file.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"

static const cli_command commands[] = {
#define CLI_COMMAND(name, function, arguments, takes, help, examples) \
    {#name, arguments, help, examples, takes, function},
#include "client/cli/commands.def"
#undef CLI_COMMAND
};
static const cli_command op_command = {
    "OP",
    "FILE...",
    "one op over each file",
    "The exact sum of an array of float32 values, in a file or from standard input.\n"
    "cured-client sum file.bin\n"
    "The largest element of every row.\n"
    "cured-client max a.npy --axis 1\n",
    CLI_FILES | CLI_MANY | CLI_OF_FILES | CLI_OF_ARRAYS | CLI_OF_PARTIALS,
    cmd_reduce};

const cli_command *cli_command_list(size_t index) {
    return index < sizeof commands / sizeof commands[0] ? &commands[index] : NULL;
}

const cli_command *cli_find_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    for (size_t i = 0; cured_op_list(i) != NULL; i++)
        if (strcmp(cured_op_list(i), name) == 0) return &op_command;
    return NULL;
}

int main(int argc, char **argv) {
    cli_options o;
    bool help, version;
    int code = cli_parse(argc, argv, &o, &help, &version);
    if (code != EXIT_OK) return code;
    if (version) {
        printf("cured-client %s\n", cured_version());
        return cli_flush();
    }
    if (help) return cli_help(o.command);
    return cli_find_command(o.command)->run(&o);
}
