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
        const char *beside = manual_behind(o->words, "@file"), *listed = manual_behind(o->words, "@list");
        fprintf(out, "    --%s) ", o->name);
        if (strstr(o->words, "unix:") != NULL)
            fprintf(out,
                    "if [[ $word == unix:* ]]; then compopt -o filenames 2>/dev/null; "
                    "mapfile -t COMPREPLY < <(compgen -P unix: -f -- \"${word#unix:}\")\n"
                    "        else compopt -o nospace 2>/dev/null; "
                    "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\"); fi",
                    o->words);
        else if (beside != NULL)
            fprintf(out,
                    "compopt -o filenames 2>/dev/null; "
                    "mapfile -t COMPREPLY < <(compgen -f -W '%s' -- \"$word\")",
                    beside);
        else if (listed != NULL)
            fprintf(out,
                    "compopt -o nospace 2>/dev/null; [[ $word == *,* ]] && done=${word%%,*},\n"
                    "        mapfile -t COMPREPLY < <(compgen -P \"$done\" -W '%s' -- \"${word##*,}\")",
                    listed);
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
        if (manual_is_choice(c)) {
            fputs("' words='", out);
            for (const char *a = c->arguments; *a != '\0'; a++) fputc(*a == '|' ? ' ' : *a, out);
            fputs("' ;;\n", out);
            continue;
        }
        fprintf(out, "'%s ;;\n", c->files ? " files=yes" : c->commands ? " words=$commands" : "");
    }
    fputs("    *) options='", out);
    option_names(p, NULL, out);
    fprintf(out, "' files=yes ;;\n    esac\n");
}

/* The function that bash calls. bash cuts words at = and :, and replaces what is behind the last of them alone; where its user has
 * taken these from COMP_WORDBREAKS it does not. So the words are put together, what is behind an option's = is completed as a word,
 * and of the answers what bash keeps is taken off. */
static void joined(const manual_program *p, FILE *out) {
    function(p, out);
    fputs(
        "() {\n    local -a typed=()\n    local i piece gap rest=$COMP_LINE whole word before kept\n"
        "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
        "        piece=${COMP_WORDS[i]} gap=${rest%%[![:space:]]*}\n"
        "        if [[ $i -gt 0 && -z $gap && -n $piece ]]; then\n"
        "            typed[${#typed[@]} - 1]+=$piece\n"
        "        else\n            typed+=(\"$piece\")\n        fi\n"
        "        rest=${rest#\"$gap\"} && rest=${rest#\"$piece\"}\n    done\n"
        "    whole=${typed[${#typed[@]} - 1]} word=$whole before=${typed[${#typed[@]} - 2]}\n"
        "    [[ $whole == --*=* ]] && before=${whole%%=*} word=${whole#*=}\n"
        "    piece=${COMP_WORDS[COMP_CWORD]}\n    [[ $piece == [:=] ]] && piece=''\n"
        "    kept=${whole%\"$piece\"}\n    COMPREPLY=()\n    ",
        out);
    function(p, out);
    fputs(
        "_offer\n"
        "    COMPREPLY=(\"${COMPREPLY[@]/#/${whole%\"$word\"}}\")\n    COMPREPLY=(\"${COMPREPLY[@]#\"$kept\"}\")\n}\n",
        out);
}

void manual_bash(const manual_program *p, FILE *out) {
    fprintf(out, "# Completion of %s for bash. Written by the build from the tables of the program's parser.\n",
            p->name);
    joined(p, out);
    fputs("# Fills COMPREPLY for $word, behind $before and the words ${typed[@]}.\n", out);
    function(p, out);
    fputs("_offer() {\n    local command='' words='' options='' files='' done='' i commands='", out);
    for (size_t i = 0; i < p->command_count; i++) fprintf(out, "%s%s", i != 0 ? " " : "", p->commands[i].name);
    fprintf(out, "%s%s'\n", p->op != NULL ? " " : "", p->op != NULL ? manual_words("@op") : "");
    values(p, out);
    if (p->command_count != 0) {
        fputs("    for ((i = 1; i < ${#typed[@]} - 1; i++)); do\n        case ${typed[i]} in\n        ", out);
        for (size_t i = 0, n = 0; i < p->option_count; i++)
            if (p->options[i].argument != NULL) fprintf(out, "%s--%s", n++ != 0 ? " | " : "", p->options[i].name);
        fputs(p->op != NULL ? ") ((i++)) ;;\n        -*) ;;\n" : "-*) ;;\n", out);
        fputs("        *) command=${typed[i]} && break ;;\n        esac\n    done\n", out);
        arguments(p, out);
    } else {
        fputs("    options='", out);
        option_names(p, NULL, out);
        fputs("'\n", out);
    }
    fputs(
        "    if [[ $whole == -* || -z $words$files ]]; then\n"
        "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
        "    elif [ -n \"$files\" ]; then\n"
        "        compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
        "    else\n        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n    fi\n}\ncomplete -F ",
        out);
    function(p, out);
    fprintf(out, " %s\n", p->name);
}
