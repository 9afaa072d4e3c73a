/* man: a program's page for man(1).
 *
 * Thread: one. */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "manual/manual.h"

enum { COLUMNS = 78 };

/* Text of length n as roff takes it: no line begins with a control character, and - and \ are themselves. wrap: new lines may
 * stand for spaces, as they may not in a macro's argument. */
static void put_text(FILE *out, const char *text, size_t n, bool wrap) {
    for (size_t i = 0, column = 0; i < n; i++, column++) {
        const char c = text[i];
        if (wrap && c == ' ' && column + strcspn(text + i + 1, " ") >= COLUMNS) {
            fputc('\n', out);
            column = SIZE_MAX;
            continue;
        }
        if (column == 0 && (c == '.' || c == '\'')) fputs("\\&", out);
        if (c == '-' || c == '\\')
            fprintf(out, "\\%c", c == '\\' ? 'e' : c);
        else
            fputc(c, out);
    }
}

static void put(FILE *out, const char *text, size_t n) { put_text(out, text, n, true); }
static void put_word(FILE *out, const char *text) { put_text(out, text, strlen(text), false); }

/* The help texts are one line each, without a stop; "auto:" takes none. */
static void sentence(FILE *out, const char *text) {
    put(out, text, strlen(text));
    fputs(text[strlen(text) - 1] == ':' ? "\n" : ".\n", out);
}

static void paragraphs(FILE *out, const char *text) {
    for (;;) {
        const char *end = strstr(text, "\n\n");
        put(out, text, end != NULL ? (size_t)(end - text) : strlen(text));
        fputc('\n', out);
        if (end == NULL) return;
        fputs(".PP\n", out);
        text = end + 2;
    }
}

/* Pairs of lines as a list. */
static void pairs(FILE *out, const char *title, const char *lines) {
    if (lines == NULL) return;
    fprintf(out, ".SH %s\n", title);
    while (*lines != '\0') {
        const size_t left = strcspn(lines, "\n"), right = strcspn(lines + left + 1, "\n");
        fputs(".TP\n.B ", out);
        put_text(out, lines, left, false);
        fputc('\n', out);
        put(out, lines + left + 1, right);
        fputs(".\n", out);
        lines += left + 1 + right + 1;
    }
}

static void commands(FILE *out, const manual_program *p) {
    if (p->command_count == 0) return;
    fputs(".SH COMMANDS\n", out);
    if (p->op != NULL) {
        fprintf(out, ".TP\n.BI OP \" %s\"\n", p->op->arguments);
        sentence(out, p->op->help);
        fputs("OPERATIONS below has the ops.\n", out);
    }
    for (size_t i = 0; i < p->command_count; i++) {
        const manual_command *c = &p->commands[i];
        fprintf(out, ".TP\n.B %s", c->name);
        fputs(*c->arguments != '\0' ? " " : "", out);
        put_word(out, c->arguments);
        fputc('\n', out);
        sentence(out, c->help);
    }
}

static void options(FILE *out, const manual_program *p) {
    fputs(".SH OPTIONS\n", out);
    for (size_t i = 0; i < p->option_count; i++) {
        const manual_option *o = &p->options[i];
        fputs(".TP\n.B \\-\\-", out);
        put_word(out, o->name);
        if (o->argument != NULL) fprintf(out, " \\fI%s\\fR", o->argument);
        fputc('\n', out);
        sentence(out, o->help);
    }
}

static void examples_of(FILE *out, const char *line) {
    while (line != NULL && *line != '\0') {
        const size_t what = strcspn(line, "\n"), call = strcspn(line + what + 1, "\n");
        fputs(".TP\n", out);
        put_text(out, line, what, false);
        fputs("\n.B ", out);
        const char *word = strstr(line + what + 1, " OP "); /* stands for any op: sum here */
        const size_t before = word != NULL && word < line + what + 1 + call ? (size_t)(word - line) - what : call;
        put_text(out, line + what + 1, before, false);
        if (before < call) {
            fputs("sum", out);
            put_text(out, line + what + 1 + before + 2, call - before - 2, false);
        }
        fputc('\n', out);
        line += what + 1 + call + 1;
    }
}

static void examples(FILE *out, const manual_program *p) {
    bool any = p->op != NULL;
    for (size_t i = 0; i < p->command_count; i++) any = any || p->commands[i].examples != NULL;
    if (!any) return;
    fputs(".SH EXAMPLES\n", out);
    if (p->op != NULL) examples_of(out, p->op->examples);
    for (size_t i = 0; i < p->command_count; i++) examples_of(out, p->commands[i].examples);
}

void manual_man(const manual_program *p, const char *version, FILE *out) {
    char title[64];
    snprintf(title, sizeof title, "%s", p->name);
    for (char *c = title; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
    fprintf(out, ".\\\" Written by the build from the tables of the program's parser.\n");
    fprintf(out, ".TH %s %d \"\" \"cured %s\"\n.SH NAME\n", title, p->section, version);
    put_word(out, p->name);
    fprintf(out, " \\- %s\n.SH SYNOPSIS\n.B ", p->what);
    put_word(out, p->name);
    fputc('\n', out);
    put_word(out, p->synopsis);
    fputs("\n.SH DESCRIPTION\n", out);
    paragraphs(out, p->text);
    commands(out, p);
    if (p->op != NULL) pairs(out, "OPERATIONS", manual_ops);
    options(out, p);
    examples(out, p);
    pairs(out, "FILES", p->files);
    pairs(out, "EXIT STATUS", p->status);
    fputs(".SH SEE ALSO\n", out);
    put_word(out, p->see);
    fputs("\n.PP\nThe other pages lie in /usr/share/doc/cured, or beside the source.\nBegin at README.md.\n", out);
}
