/* fish: completion for fish.
 *
 * Thread: one. */
#include <string.h>

#include "manual/manual.h"

static void quoted(const char *text, FILE *out) {
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* The commands that an option belongs to, as a condition; nothing where it belongs to all. */
static void condition(const manual_program *p, const manual_option *o, FILE *out) {
    bool others = false;
    for (size_t i = 0; i < p->command_count; i++) others = others || !manual_belongs(o, &p->commands[i]);
    if (!others) return;
    fputs(" -n 'not __fish_seen_subcommand_from", out);
    for (size_t i = 0; i < p->command_count; i++)
        if (!manual_belongs(o, &p->commands[i])) fprintf(out, " %s", p->commands[i].name);
    fputc('\'', out);
}

static void option(const manual_program *p, const manual_option *o, FILE *out) {
    fprintf(out, "complete -c %s", p->name);
    condition(p, o, out);
    fprintf(out, " -l %s", o->name);
    if (o->argument != NULL) {
        const char *beside = manual_behind(o->words, "@file"), *listed = manual_behind(o->words, "@list");
        if (beside != NULL && *beside != '\0')
            fprintf(out, " -r -F -a '%s'", beside);
        else if (beside != NULL)
            fputs(" -r -F", out);
        else if (listed != NULL)
            fprintf(out, " -x -a '(__fish_append , %s)'", listed);
        else if (*o->words != '\0')
            fprintf(out, " -x -a '%s'", manual_words(o->words));
        else
            fputs(" -x", out);
    }
    fputs(" -d ", out);
    quoted(o->help, out);
    fputc('\n', out);
}

void manual_fish(const manual_program *p, FILE *out) {
    fprintf(out, "# Completion of %s for fish. Written by the build from the tables of the program's parser.\n",
            p->name);
    if (p->command_count == 0) fprintf(out, "complete -c %s -f\n", p->name);
    for (size_t i = 0; i < p->command_count; i++) {
        fprintf(out, "complete -c %s -f -n __fish_use_subcommand -a %s -d ", p->name, p->commands[i].name);
        quoted(p->commands[i].help, out);
        fputc('\n', out);
        if (manual_is_choice(&p->commands[i])) {
            fprintf(out, "complete -c %s -f -n '__fish_seen_subcommand_from %s' -a '", p->name, p->commands[i].name);
            for (const char *a = p->commands[i].arguments; *a != '\0'; a++) fputc(*a == '|' ? ' ' : *a, out);
            fputs("'\n", out);
        }
        if (p->commands[i].commands)
            fprintf(out, "complete -c %s -f -n '__fish_seen_subcommand_from %s' -a '%s'\n", p->name,
                    p->commands[i].name, p->op != NULL ? manual_words("@op") : "");
    }
    if (p->op != NULL)
        fprintf(out, "complete -c %s -f -n __fish_use_subcommand -a '%s' -d op\n", p->name, manual_words("@op"));
    for (size_t i = 0; i < p->option_count; i++) option(p, &p->options[i], out);
}
