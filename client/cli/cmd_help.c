/* PROGRAM help [COMMAND], and --help: written from the tables of commands and options.
 *
 * Thread: one. */
#include <stdio.h>
#include <string.h>

#include "base/wrap.h"
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

/* What an op is, and some elements with their answer. */
static const struct op {
    const char *name, *help, *elements, *dtype, *bytes, *answer;
} ops[] = {
#define CR_OP(symbol, id, name, term, divisor, root, result, empty, help, elements, dtype, bytes, answer) \
    {name, help, elements, dtype, bytes, answer},
#include "kernels/core/op.def"
#undef CR_OP
};

/* NULL when name is no op. */
static const struct op *find_op(const char *name) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(ops[i].name, name) == 0) return &ops[i];
    return NULL;
}

enum { INDENT = 26 };

/* What something is called on the left, and what it is on the right. */
static void put_row(const char *name, const char *argument, const char *help) {
    const int column = printf("  %s%s%s", name, *argument != '\0' ? " " : "", argument);
    if (column >= INDENT)
        printf("\n%*s", INDENT, "");
    else
        printf("%*s", INDENT - column, "");
    cr_wrap(stdout, help, INDENT, INDENT);
}

static void show_option(const char *name, const char *argument, const char *help) {
    char left[64];
    snprintf(left, sizeof left, "--%s", name);
    put_row(left, argument != NULL ? argument : "", help);
}

static void show_options(int takes) {
    puts("\nOptions:");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if ((options[i].of == CLI_OF_ALL || (options[i].of & takes) != 0) && cli_has_option(options[i].name))
            show_option(options[i].name, options[i].argument, options[i].help);
    for (const cli_option *own = cli_program_here.own; own != NULL && own->name != NULL; own++)
        show_option(own->name, own->argument, own->help);
}

static void show_program(void) {
    char text[1024];
    size_t n = 0;
    printf("Usage: %s COMMAND [ARGUMENTS] [OPTIONS]\n\nCommands:\n", cli_program_here.name);
    snprintf(text, sizeof text, "%s:", cli_program_here.op->help);
    put_row("OP FILE...", "", text);
    for (size_t i = 0; cured_op_list(i) != NULL && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i != 0 ? " " : "", cured_op_list(i));
    printf("%*s", INDENT, "");
    cr_wrap(stdout, text, INDENT, INDENT);
    for (size_t i = 0; cli_command_list(i) != NULL; i++)
        put_row(cli_command_list(i)->name, cli_command_list(i)->arguments, cli_command_list(i)->help);
    show_options(CLI_OF_ALL);
    put_row("--help", "", "this text, or after a command its own");
    put_row("--version", "", "the version");
    for (const char *line = cli_program_here.notes; *line != '\0'; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        snprintf(text, sizeof text, "%.*s", (int)n, line);
        cr_wrap(stdout, text, 0, 0);
    }
}

/* Examples are pairs of lines. The word OP in their commands stands for the op's name. */
static void show_examples(const char *line, const char *op) {
    for (; *line != '\0'; line = strchr(line, '\n') + 1) {
        const int what = (int)strcspn(line, "\n");
        const char *call = line + what + 1;
        const int length = (int)strcspn(call, "\n");
        const char *word = op != NULL ? strstr(call, " OP ") : NULL;
        const int before = word != NULL && word < call + length ? (int)(word - call) + 1 : length;
        printf("  %.*s\n    %.*s", what, line, before, call);
        if (before < length) printf("%s%.*s", op, length - before - 2, call + before + 2);
        putchar('\n');
        line = call;
    }
}

/* Examples of an op of two arrays. */
static void show_pair(const struct op *op) {
    const char *program = cli_program_here.name, *space = strchr(op->bytes, ' ');
    printf(
        "  Those elements, from two files.\n"
        "    printf '%.*s' >a.bin; printf '%s' >b.bin; \\\n"
        "    %s %s a.bin --second b.bin --dtype %s\n",
        (int)(space - op->bytes), op->bytes, space + 1, program, op->name, op->dtype);
    printf("  One for every row.\n    %s %s a.npy --second b.npy --axis 1\n", program, op->name);
}

static void show_command(const char *name, const cli_command *command) {
    const struct op *op = find_op(name);
    char text[512];
    printf("Usage: %s %s %s%s[OPTIONS]\n\n", cli_program_here.name, name, command->arguments,
           *command->arguments != '\0' ? " " : "");
    snprintf(text, sizeof text, "%s: %s.", name, op != NULL ? op->help : command->help);
    cr_wrap(stdout, text, 0, 0);
    if (op != NULL) printf("Of %s it is %s.\n", op->elements, op->answer);
    puts("\nExamples:");
    if (op != NULL && strchr(op->bytes, ' ') != NULL && cli_has_option("second")) {
        show_pair(op);
        show_options(command->takes);
        return;
    }
    if (op != NULL && !cli_program_here.whole)
        printf("  Those elements, from standard input.\n    printf '%s' | %s %s - --dtype %s\n", op->bytes,
               cli_program_here.name, name, op->dtype);
    show_examples(command->examples, name);
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
