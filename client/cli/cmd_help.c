/* cured-client help [COMMAND], and --help: written from the tables of commands and options.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "client/cli/cli.h"

struct shown {
    const char *name, *argument, *help;
    int of;
};

static const struct shown options[] = {
#define CLI_OPTION(name, setter, argument, of, words, help) {name, argument, help, of},
#include "client/cli/options.def"
#undef CLI_OPTION
};

static void show_options(int takes) {
    puts("\nOptions:");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char left[64];
        if (options[i].of != CLI_OF_ALL && (options[i].of & takes) == 0) continue;
        snprintf(left, sizeof left, "--%s%s%s", options[i].name, options[i].argument != NULL ? " " : "",
                 options[i].argument != NULL ? options[i].argument : "");
        printf("  %-32s %s\n", left, options[i].help);
    }
}

/* The names of all ops, in lines of at most 100 columns. */
static void show_ops(void) {
    printf("  %-32s", "");
    size_t column = 35;
    for (size_t i = 0; cured_op_list(i) != NULL; i++) {
        const char *name = cured_op_list(i);
        if (column + strlen(name) + 1 > 100) {
            printf("\n  %-32s", "");
            column = 35;
        }
        printf(" %s", name);
        column += strlen(name) + 1;
    }
    putchar('\n');
}

static void show_program(void) {
    puts("Usage: cured-client COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:");
    printf("  %-32s %s\n", "OP FILE...", "one op over a file (- is standard input), or a line for each of several:");
    show_ops();
    for (size_t i = 0; cli_command_list(i) != NULL; i++) {
        char left[64];
        const cli_command *c = cli_command_list(i);
        snprintf(left, sizeof left, "%s %s", c->name, c->arguments);
        printf("  %-32s %s\n", left, c->help);
    }
    show_options(CLI_OF_ALL);
    printf("  %-32s %s\n  %-32s %s\n", "--help", "this text, or after a command its own", "--version", "the version");
    puts(
        "\nFiles are raw elements, NumPy's .npy, or an array of a .npz: a.npz:x. Parquet, HDF5, text and others are "
        "refused\n"
        "by their first bytes; with --dtype only if the name says so too, with --offset or --raw never. The answer\n"
        "alone goes to standard output; with --axis a row of the last dimension per line.\n"
        "Arrays in Fortran order stay so. bf16 is written as NumPy writes ml_dtypes.bfloat16 ('<V2'); i128 has no\n"
        ".npy form and is text only.\n"
        "auto: asks the daemon at $XDG_RUNTIME_DIR/cured.sock or /run/cured/cured.sock, for root the other way\n"
        "round. Where nobody listens this process answers by itself, as with embedded:, on all cores.\n"
        "Exit codes: 0; 64 usage; 65 bad data, or an op without a value; 66 no input; 69 cannot connect, or no GPU\n"
        "for --kernel; 74 input or output failed; 75 try again later; 76 protocol; 77 denied.");
}

static void show_command(const char *name, const cli_command *command) {
    printf("Usage: cured-client %s %s%s[OPTIONS]\n\n%s: %s.\n", name, command->arguments,
           *command->arguments != '\0' ? " " : "", name, command->help);
    puts("\nExamples:");
    for (const char *line = command->examples; *line != '\0'; line = strchr(line, '\n') + 1) {
        const int what = (int)strcspn(line, "\n");
        const char *call = line + what + 1;
        printf("  %.*s\n    %.*s\n", what, line, (int)strcspn(call, "\n"), call);
        line = call;
    }
    show_options(command->takes);
}

int cli_help(const char *name) {
    const cli_command *command = name != NULL ? cli_find_command(name) : NULL;
    if (name != NULL && command == NULL) return cli_unknown("unknown command", name, true);
    if (command != NULL)
        show_command(name, command);
    else
        show_program();
    return cli_flush();
}

int cmd_help(const cli_options *o) { return cli_help(o->file); }
