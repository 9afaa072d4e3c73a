/* cured-client: reductions from the command line. main finds the subcommand; each has its own file.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"

static const cli_command commands[] = {
    {"reduce", "FILE... --ops OP,OP,...", "several ops in one pass over each file", true, true, true, cmd_reduce},
    {"describe", "FILE...", "count, count_nan, min, max, argmin, argmax, sum, mean, std", true, false, true,
     cmd_describe},
    {"merge", "FILE... --ops OP,OP,...", "the answers of partials that reduce --partial wrote", true, true, true,
     cmd_merge},
    {"ping", "", "ask whether the daemon answers", false, false, false, cmd_ping},
    {"doctor", "", "check what sharing memory with the daemon needs, and name the fix", false, false, false,
     cmd_doctor},
    {"info", "", "what the daemon says about itself", false, false, false, cmd_info},
    {"token", "NAME", "make a token for a client, and the daemon's line for it", true, false, false, cmd_token},
};
static const cli_command op_command = {"OP", "FILE...", "one op", true, false, true, cmd_reduce};

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
    if (help) {
        cli_help();
        return cli_flush();
    }
    return cli_find_command(o.command)->run(&o);
}
