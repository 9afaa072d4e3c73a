/* zsh: completion for zsh, by its _arguments.
 *
 * Thread: one. */
#include <string.h>

#include "manual/manual.h"

/* Inside '…[…]': a quote, a bracket and a colon mean something. */
static void quoted(const char *text, FILE *out) {
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

static void option(const manual_option *o, FILE *out) {
    fprintf(out, "    '--%s%s[", o->name, o->argument != NULL ? "=" : ""); /* =: --name=VALUE is taken, too */
    quoted(o->help, out);
    fputc(']', out);
    if (o->argument != NULL) {
        fputc(':', out);
        quoted(o->argument, out);
        const char *beside = manual_behind(o->words, "@file"), *listed = manual_behind(o->words, "@list");
        if (beside != NULL && *beside != '\0')
            fprintf(out, ":{_files; compadd - %s}", beside);
        else if (beside != NULL)
            fputs(":_files", out);
        else if (listed != NULL)
            fprintf(out, ":_sequence compadd - %s", listed);
        else if (*o->words != '\0') {
            fputs(":(", out);
            quoted(manual_words(o->words), out);
            fputc(')', out);
        } else {
            fputs(": ", out);
        }
    }
    fputs("'\n", out);
}

static void command_names(const manual_program *p, FILE *out) {
    fputs("  commands=(\n", out);
    for (size_t i = 0; i < p->command_count; i++) {
        fprintf(out, "    '%s:", p->commands[i].name);
        quoted(p->commands[i].help, out);
        fputs("'\n", out);
    }
    fputs("  )\n", out);
    if (p->op != NULL) fprintf(out, "  ops=(%s)\n", manual_words("@op"));
}

static void cases(const manual_program *p, FILE *out) {
    fputs("  case $words[1] in\n", out);
    for (size_t i = 0; i < p->command_count; i++) {
        const manual_command *c = &p->commands[i];
        fprintf(out, "  %s) own=(", c->name);
        for (size_t k = 0; k < p->option_count; k++)
            if (!manual_belongs(&p->options[k], c)) fprintf(out, " '--%s'", p->options[k].name);
        fprintf(out, ") rest=%s", manual_is_choice(c) ? "'" : c->files ? "_files" : c->commands ? "commands" : "none");
        for (const char *a = c->arguments; manual_is_choice(c) && *a != '\0'; a++) fputc(*a == '|' ? ' ' : *a, out);
        fputs(manual_is_choice(c) ? "' ;;\n" : " ;;\n", out);
    }
    fputs("  esac\n", out);
}

void manual_zsh(const manual_program *p, FILE *out) {
    fprintf(out,
            "#compdef %s\n# Completion of %s for zsh. Written by the build from the tables of the program's parser.\n",
            p->name, p->name);
    fputs("local curcontext=$curcontext state line\nlocal -a commands ops options own\nlocal rest=_files name\n", out);
    fputs("options=(\n", out);
    for (size_t i = 0; i < p->option_count; i++) option(&p->options[i], out);
    fputs(")\n", out);
    if (p->command_count == 0) {
        fputs("_arguments $options\n", out);
        return;
    }
    fputs("() {\n", out);
    command_names(p, out);
    fputs(
        "}\n_arguments -C $options '1:command:->command' '*::argument:->argument'\ncase $state in\ncommand)\n"
        "  _describe command commands\n",
        out);
    if (p->op != NULL) fputs("  _describe op ops\n", out);
    fputs("  ;;\nargument)\n", out);
    cases(p, out);
    /* Options that are not the command's own are left out. */
    fputs(
        "  for name in $own; do options=(${options:#${name}(|=)\\[*}); done\n"
        "  case $rest in\n  commands) _arguments $options '*:command:{_describe command commands; _describe op ops}' "
        ";;\n"
        "  none) _arguments $options ;;\n  _files) _arguments $options '*:file:_files' ;;\n"
        "  *) _arguments $options \"*:word:($rest)\" ;;\n  esac\n  ;;\nesac\n",
        out);
}
