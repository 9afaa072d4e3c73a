/* manual: what the writers of man pages and completions share: a program's commands and options, taken from the tables that its
 * parser uses. Built and run by the build; nothing of it is installed but what it writes.
 *
 * Thread: one. Owner: tables.c owns everything here. */
#ifndef CURED_MANUAL_MANUAL_H
#define CURED_MANUAL_MANUAL_H

#include <stdbool.h>
#include <stdio.h>

typedef struct manual_option {
    const char *name;     /* without -- */
    const char *argument; /* NULL: none */
    const char *words;    /* what completions offer: words, @op @dtype @kernel, behind @file or @list; "": nothing */
    const char *help;
    int of; /* the commands that it belongs to */
} manual_option;

typedef struct manual_command {
    const char *name, *arguments, *help;
    const char *examples;       /* NULL, or pairs of lines: what is done, and the command; for an op, OP is its name */
    int takes;                  /* options with one of these bits belong to it */
    bool files, many, commands; /* its arguments: files, or names of commands */
} manual_command;

typedef struct manual_program {
    const char *name, *synopsis, *what; /* what: one line */
    int section;
    const char *text; /* paragraphs with an empty line between them */
    const manual_option *options;
    const manual_command *commands;
    size_t option_count, command_count;
    const manual_command *op; /* what every op is, as a command; NULL: ops are no commands */
    const char *files;        /* NULL, or pairs of lines: a path, and what it is */
    const char *status;       /* NULL, or pairs of lines: an exit status, and what it means */
    const char *see;          /* other pages: "cured(8), ..." */
} manual_program;

/* tables.c: the programs; their end is a NULL. */
const manual_program *const *manual_programs(void);
/* The words that @op, @dtype or @kernel stands for; any other text is its own. */
const char *manual_words(const char *words);
/* The words behind this first one, as manual_words() has them, "" where there are none; NULL: the first word is another. */
const char *manual_behind(const char *words, const char *first);
/* Every op, as pairs of lines: its name, and what it is. */
extern const char manual_ops[];
/* Whether option belongs to command. */
bool manual_belongs(const manual_option *option, const manual_command *command);

/* Whether its argument is one of the words that it is written as: "reload|show". */
bool manual_is_choice(const manual_command *command);

/* man.c */
void manual_man(const manual_program *program, const char *version, FILE *out);
/* bash.c, zsh.c, fish.c */
void manual_bash(const manual_program *program, FILE *out);
void manual_zsh(const manual_program *program, FILE *out);
void manual_fish(const manual_program *program, FILE *out);

#endif
