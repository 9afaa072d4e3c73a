/* config_schema: the JSON schema of the configuration file, from the table of options. scripts/config-pages makes
 * config/cured.schema.json and docs/CONFIG.md of it.
 *
 * Thread: any. Owner: the caller owns the stream. */
#include <inttypes.h>
#include <string.h>

#include "base/config_layer.h"

static void print_text(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

/* "a|b|c" as "a", "b", "c". */
static void print_words(FILE *out, const char *words) {
    fputc('"', out);
    for (; *words; words++) {
        if (*words == '|')
            fputs("\", \"", out);
        else
            fputc(*words, out);
    }
    fputc('"', out);
}

/* A number, or a string of digits and a unit. JSON readers hold numbers as doubles, so larger ones go as strings. */
static void print_number(const cr_option *o, FILE *out) {
    const uint64_t most = (1ull << 53) - 1;
    static const char *const names[] = {"count", "bytes", "ms", "us"};
    fprintf(out, "\"anyOf\": [{\"type\": \"integer\", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64 "}, ", o->min,
            o->max < most ? o->max : most);
    fputs("{\"type\": \"string\", \"pattern\": \"^[0-9]+", out);
    for (size_t i = 0; cr_units_name(o->unit, i); i++) fprintf(out, "%s%s", i ? "|" : "(", cr_units_name(o->unit, i));
    fprintf(out, "%s$\"}], ", cr_units_name(o->unit, 0) ? ")?" : "");
    char low[CR_UNITS_TEXT], high[CR_UNITS_TEXT], plain[CR_UNITS_TEXT];
    fprintf(out, "\"default\": \"%s\", \"x-unit\": \"%s\", \"x-limits\": \"%s to %s\"",
            cr_units_text(o->unit, o->def, plain), names[o->unit], cr_units_text(o->unit, o->min, low),
            cr_units_text(o->unit, o->max, high));
}

static void print_choice(const cr_option *o, FILE *out) {
    const char *word = o->words;
    for (uint64_t i = 0; i < o->def; i++) word += strcspn(word, "|") + 1;
    fputs("\"enum\": [", out);
    print_words(out, o->words);
    fprintf(out, "], \"default\": \"%.*s\"", (int)strcspn(word, "|"), word);
}

static void print_kind(const cr_option *o, FILE *out) {
    switch (o->kind) {
        case CR_OPT_LIST:
            fprintf(
                out,
                "\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": %d}, \"uniqueItems\": true, ",
                CR_CONFIG_TEXT - 1);
            fprintf(out, "\"minItems\": %d, \"maxItems\": %" PRIu64, (int)cr_option_needs_entries(o), o->max);
            return;
        case CR_OPT_CHOICE:
            print_choice(o, out);
            return;
        case CR_OPT_BOOL:
            fprintf(out, "\"type\": \"boolean\", \"default\": %s", o->def ? "true" : "false");
            return;
        case CR_OPT_UINT:
            print_number(o, out);
            return;
        case CR_OPT_OCTAL:
            fprintf(out, "\"type\": \"string\", \"pattern\": \"^[0-7]+$\", \"default\": \"%04" PRIo64 "\"", o->def);
            return;
    }
}

void cr_config_schema(FILE *out) {
    fputs(
        "{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
        "  \"title\": \"Configuration of cured\",\n  \"type\": \"object\",\n  \"additionalProperties\": false,\n"
        "  \"properties\": {\n    \"$schema\": {\"type\": \"string\", \"description\": \"for editors; the daemon does "
        "not read it\"}",
        out);
    for (size_t i = 0; i < cr_option_count; i++) {
        const cr_option *o = &cr_options[i];
        fprintf(out, ",\n    \"%s\": {", o->key);
        print_kind(o, out);
        fprintf(out, ", \"x-reloads\": %s, \"description\": ", cr_config_reloads(o->key) ? "true" : "false");
        print_text(out, o->help);
        fputc('}', out);
    }
    fputs("\n  }\n}\n", out);
}
