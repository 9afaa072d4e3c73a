/* bash: completion for bash, with nothing but bash itself.
 *
 * Thread: one. */
#include <string.h>

#include "manual/manual.h"

/* The function's name: cured-client gives _cured_client. */
static void function(const manual_program *p, FILE *out) {
    fputc('_', out);
    for (const char *c = p->name; *c != '\0'; c++) fputc(*c == '-' ? '_' : *c, out);
}

static void option_names(const manual_program *p, const manual_command *command, FILE *out) {
    for (size_t i = 0, n = 0; i < p->option_count; i++)
        if (command == NULL || manual_belongs(&p->options[i], command))
            fprintf(out, "%s--%s", n++ != 0 ? " " : "", p->options[i].name);
}

/* What follows an option with a value. */
static void values(const manual_program *p, FILE *out) {
    fputs("    case $before in\n", out);
    for (size_t i = 0; i < p->option_count; i++) {
        const manual_option *o = &p->options[i];
        if (o->argument == NULL) continue;
        fprintf(out, "    --%s) ", o->name);
        if (strcmp(o->words, "@file") == 0)
            fputs("compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")", out);
        else if (strcmp(o->words, "@ops") == 0)
            fprintf(out,
                    "compopt -o nospace 2>/dev/null; [[ $word == *,* ]] && done=${word%%,*},\n"
                    "        mapfile -t COMPREPLY < <(compgen -P \"$done\" -W '%s' -- \"${word##*,}\")",
                    manual_words(o->words));
        else if (*o->words != '\0')
            fprintf(out, "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")", manual_words(o->words));
        fprintf(out, "%s ;;\n", *o->words != '\0' ? "; return" : "return");
    }
    fputs("    esac\n", out);
}

static void arguments(const manual_program *p, FILE *out) {
    fputs("    case $command in\n    '') words=$commands options='", out);
    option_names(p, NULL, out);
    fputs("' ;;\n", out);
    for (size_t i = 0; i < p->command_count; i++) {
        const manual_command *c = &p->commands[i];
        fprintf(out, "    %s) options='", c->name);
        option_names(p, c, out);
        fprintf(out, "'%s ;;\n", c->files ? " files=yes" : c->commands ? " words=$commands" : "");
    }
    fputs("    *) options='", out);
    option_names(p, NULL, out);
    fprintf(out, "' files=yes ;;\n    esac\n");
}

void manual_bash(const manual_program *p, FILE *out) {
    fprintf(out, "# Completion of %s for bash. Written by the build from the tables of the program's parser.\n",
            p->name);
    function(p, out);
    fputs(
        "() {\n    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' "
        "options='' files=''\n"
        "    local done='' i commands='",
        out);
    for (size_t i = 0; i < p->command_count; i++) fprintf(out, "%s%s", i != 0 ? " " : "", p->commands[i].name);
    fprintf(out, "%s%s'\n    COMPREPLY=()\n", p->op != NULL ? " " : "", p->op != NULL ? manual_words("@op") : "");
    values(p, out);
    if (p->command_count != 0) {
        fputs("    for ((i = 1; i < COMP_CWORD; i++)); do\n        case ${COMP_WORDS[i]} in\n        ", out);
        for (size_t i = 0, n = 0; i < p->option_count; i++)
            if (p->options[i].argument != NULL) fprintf(out, "%s--%s", n++ != 0 ? " | " : "", p->options[i].name);
        fputs(p->op != NULL ? ") ((i++)) ;;\n        -*) ;;\n" : "-*) ;;\n", out);
        fputs("        *) command=${COMP_WORDS[i]} && break ;;\n        esac\n    done\n", out);
        arguments(p, out);
    } else {
        fputs("    options='", out);
        option_names(p, NULL, out);
        fputs("'\n", out);
    }
    fputs(
        "    if [[ $word == -* || -z $words$files ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
        "    elif [ -n \"$files\" ]; then\n"
        "        compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
        "    else\n        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n    fi\n}\ncomplete -F ",
        out);
    function(p, out);
    fprintf(out, " %s\n", p->name);
}
