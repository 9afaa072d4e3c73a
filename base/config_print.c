/* config_print: how options look to a person: --print-config, --help and the words of a choice.
 *
 * Thread: any, once the configuration is loaded. Owner: the caller owns config and stream. */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/config_layer.h"
#include "base/wrap.h"

/* The words of every CHOICE, cut into strings of their own, so that a pointer into them can be handed out. */
#define CR_OPTION_LIST(key, max, def, help)
#define CR_OPTION_CHOICE(key, def, words, help) static char cut_##key[] = words;
#define CR_OPTION_BOOL(key, def, help)
#define CR_OPTION_UINT(key, def, min, max, help)
#define CR_OPTION_OCTAL(key, def, min, max, help)
#include "base/options.def"
#undef CR_OPTION_CHOICE

static void cut(char *words) {
    for (; *words; words++)
        if (*words == '|') *words = '\0';
}

static void cut_all(void) {
#define CR_OPTION_CHOICE(key, def, words, help) cut(cut_##key);
#include "base/options.def"
#undef CR_OPTION_CHOICE
}

const char *cr_config_word(const cr_config *config, const char *key) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const char *words = NULL, *end = NULL;
    uint32_t index = 0;
    pthread_once(&once, cut_all);
#define CR_OPTION_CHOICE(name, def, list, help) \
    if (strcmp(key, #name) == 0) words = cut_##name, end = cut_##name + sizeof cut_##name, index = config->name;
#include "base/options.def"
#undef CR_OPTION_CHOICE
    while (words && words < end && index-- > 0) words += strlen(words) + 1;
    return words && words < end ? words : "unknown";
}

static void print_value(const cr_config *config, size_t i, FILE *out) {
    const void *at = (const char *)config + cr_options[i].offset;
    const cr_config_list *list = at;
    switch (cr_options[i].kind) {
        case CR_OPT_LIST:
            for (uint32_t k = 0; k < list->count; k++) fprintf(out, "%s%s", k ? "," : "", list->items[k]);
            return;
        case CR_OPT_CHOICE:
            fputs(cr_config_word(config, cr_options[i].key), out);
            return;
        case CR_OPT_BOOL:
            fputs(*(const bool *)at ? "true" : "false", out);
            return;
        case CR_OPT_UINT:
            fprintf(out, "%" PRIu64, *(const uint64_t *)at);
            return;
        case CR_OPT_OCTAL:
            fprintf(out, "%04" PRIo32, *(const uint32_t *)at);
            return;
    }
}

static const char *const origins[] = {"default", "file", "environment", "flag"};

bool cr_config_setting(const cr_config *config, size_t i, cr_setting *s) {
    if (i >= cr_option_count) return false;
    *s = (cr_setting){.key = cr_options[i].key,
                      .origin = origins[config->origin[i]],
                      .reloads = cr_config_reloads(cr_options[i].key),
                      .pending = config->pending[i]};
    FILE *value = fmemopen(s->value, sizeof s->value, "w"); /* it cuts, and ends with NUL */
    if (!value) return true;
    print_value(config, i, value);
    fclose(value);
    s->value[sizeof s->value - 1] = 0;
    return true;
}

void cr_config_print(const cr_config *config, FILE *out) {
    for (size_t i = 0; i < cr_option_count; i++) {
        fprintf(out, "%-24s ", cr_options[i].key);
        print_value(config, i, out);
        fprintf(out, "  (%s)\n", origins[config->origin[i]]);
    }
}

void cr_option_describe(size_t index, char *text, size_t cap) {
    const cr_option *o = &cr_options[index];
    char low[CR_UNITS_TEXT], high[CR_UNITS_TEXT], plain[CR_UNITS_TEXT];
    switch (o->kind) {
        case CR_OPT_LIST:
            snprintf(text, cap, "%s", o->help);
            return;
        case CR_OPT_CHOICE: {
            const char *word = o->words;
            for (uint64_t i = 0; i < o->def; i++) word += strcspn(word, "|") + 1;
            snprintf(text, cap, "%s: %s; default %.*s", o->help, o->words, (int)strcspn(word, "|"), word);
            return;
        }
        case CR_OPT_BOOL:
            snprintf(text, cap, "%s; default %s", o->help, o->def ? "true" : "false");
            return;
        case CR_OPT_UINT:
            snprintf(text, cap, "%s; %s to %s, default %s", o->help, cr_option_number(o, o->min, low),
                     cr_option_number(o, o->max, high), cr_option_number(o, o->def, plain));
            return;
        case CR_OPT_OCTAL:
            snprintf(text, cap, "%s; default %s", o->help, cr_option_number(o, o->def, plain));
            return;
    }
}

void cr_config_help(FILE *out) {
    fputs(
        "usage: cured [--option VALUE | --option=VALUE]...\n"
        "\n"
        "Reduces arrays for the programs of this machine and of the network. Options come\n"
        "from, in rising order of weight: defaults, a JSON file (its keys are the\n"
        "options' names with _ for -), the environment (CURED_ and the name in capitals\n"
        "with _ for -; lists are comma-separated), and the command line.\n"
        "Sizes take B, KiB, MiB, GiB, TiB, PiB or EiB (64MiB), times us, ms, s, min or h\n"
        "(30s).\n"
        "\n"
        "  --config FILE            JSON file; default CURED_CONFIG, else\n"
        "                           /etc/cured/cured.json if it exists\n"
        "  --check-config           say whether the configuration is good, and end\n"
        "  --print-config           print every option with its value and where that came\n"
        "                           from, and end\n"
        "  --print-schema           print the JSON schema of the file, and end\n"
        "  --version                print the version, and end\n"
        "  --help                   print this, and end\n"
        "\n",
        out);
    for (size_t i = 0; i < cr_option_count; i++) {
        char flag[CR_OPTION_ROOM], label[CR_OPTION_ROOM + 16], text[512];
        snprintf(label, sizeof label, "--%s%s", cr_option_flag(i, flag), cr_options[i].kind == CR_OPT_BOOL ? "" : " V");
        cr_option_describe(i, text, sizeof text);
        fprintf(out, "  %-24s%s", label, strlen(label) < 24 ? " " : "\n                           ");
        cr_wrap(out, text, 27, 27);
    }
}
