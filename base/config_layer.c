/* config_layer: the option table and the setting of one option, with every check of form and range.
 *
 * Thread: main's, at start. Owner: cr_config_load owns the layers. */
#include "base/config_layer.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/address.h"
#include "base/log.h"
#include "base/nearest.h"

#define MEMBER(key) #key, .offset = offsetof(cr_config, key), .size = sizeof(((cr_config *)0)->key)
#define CR_OPTION_LIST(name, most, def_text, text) \
    {.key = MEMBER(name), .kind = CR_OPT_LIST, .max = (most), .def_item = (def_text), .help = (text)},
#define CR_OPTION_CHOICE(name, def_index, choice, text) \
    {.key = MEMBER(name), .kind = CR_OPT_CHOICE, .def = (def_index), .words = (choice), .help = (text)},
#define CR_OPTION_BOOL(name, def_value, text) \
    {.key = MEMBER(name), .kind = CR_OPT_BOOL, .def = (def_value), .help = (text)},
#define CR_OPTION_UINT(name, def_value, low, high, text) \
    {.key = MEMBER(name), .kind = CR_OPT_UINT, .def = (def_value), .min = (low), .max = (high), .help = (text)},
#define UNIT_OPTION(name, units, def_value, low, high, text) \
    {.key = MEMBER(name),                                    \
     .kind = CR_OPT_UINT,                                    \
     .unit = (units),                                        \
     .def = (def_value),                                     \
     .min = (low),                                           \
     .max = (high),                                          \
     .help = (text)},
#define CR_OPTION_BYTES(name, def_value, low, high, text) UNIT_OPTION(name, CR_UNIT_BYTES, def_value, low, high, text)
#define CR_OPTION_MS(name, def_value, low, high, text) UNIT_OPTION(name, CR_UNIT_MS, def_value, low, high, text)
#define CR_OPTION_US(name, def_value, low, high, text) UNIT_OPTION(name, CR_UNIT_US, def_value, low, high, text)
#define CR_OPTION_OCTAL(name, def_value, low, high, text) \
    {.key = MEMBER(name), .kind = CR_OPT_OCTAL, .def = (def_value), .min = (low), .max = (high), .help = (text)},
const cr_option cr_options[] = {
#include "base/options.def"
};
const size_t cr_option_count = sizeof cr_options / sizeof *cr_options;

_Static_assert(sizeof cr_options / sizeof *cr_options <= CR_OPTION_ROOM, "cr_config.origin has room for every option");

size_t cr_option_find(const char *key) {
    size_t i = 0;
    while (i < cr_option_count && strcmp(cr_options[i].key, key) != 0) i++;
    return i;
}

const char *cr_option_flag(size_t index, char out[CR_OPTION_ROOM]) {
    size_t n = 0;
    for (const char *p = cr_options[index].key; *p && n < CR_OPTION_ROOM - 1; p++) out[n++] = *p == '_' ? '-' : *p;
    out[n] = '\0';
    return out;
}

/* The one option whose last words are meant, as workers of cpu_workers; NULL where several are, or none. */
static const char *meant_by_end(const char *name, bool flags) {
    char flag[CR_OPTION_ROOM];
    const char *found = NULL;
    const size_t length = strlen(name);
    size_t nearest = length < 4 ? 0 : length / 5 + 1; /* one letter in five may be wrong */
    bool shared = false;
    for (size_t i = 0; i < cr_option_count; i++) {
        const char *text = flags ? cr_option_flag(i, flag) : cr_options[i].key;
        for (text = strpbrk(text, "_-"); text != NULL; text = strpbrk(text, "_-")) {
            const size_t distance = cr_guess_distance(name, ++text);
            if (distance > nearest || (distance == nearest && found == NULL)) continue;
            shared = distance == nearest;
            found = cr_options[i].key;
            nearest = distance;
        }
    }
    return shared ? NULL : found;
}

const char *cr_option_meant(const char *name, char out[CR_OPTION_ROOM]) {
    char flag[CR_OPTION_ROOM];
    cr_guess guess = cr_guess_begin(name);
    for (size_t i = 0; i < cr_option_count; i++) {
        const char *key = cr_options[i].key;
        cr_guess_consider(&guess, name, out != NULL ? cr_option_flag(i, flag) : key, key);
    }
    if (guess.name == NULL) guess.name = meant_by_end(name, out != NULL);
    return guess.name == NULL || out == NULL ? guess.name : cr_option_flag(cr_option_find(guess.name), out);
}

const char *cr_option_variable(size_t index, char out[CR_OPTION_ROOM]) {
    size_t n = 0;
    for (const char *p = cr_options[index].key; *p && n < CR_OPTION_ROOM - 1; p++)
        out[n++] = (char)toupper((unsigned char)*p);
    out[n] = '\0';
    return out;
}

const char *cr_option_number(const cr_option *option, uint64_t value, char out[CR_UNITS_TEXT]) {
    if (option->kind != CR_OPT_OCTAL) return cr_units_text(option->unit, value, out);
    snprintf(out, CR_UNITS_TEXT, "%04" PRIo64, value);
    return out;
}

static void *member(cr_layer *layer, size_t index) { return (char *)&layer->values + cr_options[index].offset; }

void cr_layer_set_bool(cr_layer *layer, size_t index, bool value) {
    *(bool *)member(layer, index) = value;
    layer->set[index] = true;
}

cr_status cr_layer_set_number(cr_layer *layer, size_t index, uint64_t value, const char *where, cr_error *error) {
    const cr_option *o = &cr_options[index];
    if (value < o->min || value > o->max) {
        char got[CR_UNITS_TEXT], low[CR_UNITS_TEXT], high[CR_UNITS_TEXT];
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %s is outside %s to %s", where, cr_option_number(o, value, got),
                       cr_option_number(o, o->min, low), cr_option_number(o, o->max, high));
    }
    if (o->kind == CR_OPT_OCTAL)
        *(uint32_t *)member(layer, index) = (uint32_t)value;
    else
        *(uint64_t *)member(layer, index) = value;
    layer->set[index] = true;
    return CR_OK;
}

static cr_status set_choice(cr_layer *layer, size_t index, const char *text, const char *where, cr_error *error) {
    const char *word = cr_options[index].words;
    size_t length = strlen(text);
    for (uint32_t i = 0;; i++) {
        size_t span = strcspn(word, "|");
        if (span == length && length > 0 && memcmp(word, text, span) == 0) {
            *(uint32_t *)member(layer, index) = i;
            layer->set[index] = true;
            return CR_OK;
        }
        if (!word[span]) break;
        word += span + 1;
    }
    char shown[80];
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: \"%s\" is not one of %s", where,
                   cr_log_quote(shown, sizeof shown, text), cr_options[index].words);
}

static cr_status append_item(cr_layer *layer, size_t index, const char *text, const char *where, cr_error *error) {
    cr_config_list *list = member(layer, index);
    char shown[80];
    cr_log_quote(shown, sizeof shown, text);
    if (list->count >= cr_options[index].max || list->count >= CR_CONFIG_LIST_MAX)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: \"%s\" is one too many, the limit is %" PRIu64, where, shown,
                       cr_options[index].max);
    if (strlen(text) >= CR_CONFIG_TEXT)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: a value has %zu bytes, the limit is %d", where, strlen(text),
                       CR_CONFIG_TEXT - 1);
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: \"%s\" is given twice", where, shown);
    if (&layer->values.listen == list || &layer->values.admin == list) {
        cr_address address;
        cr_error why = {CR_OK, ""};
        if (cr_address_parse(text, &address, &why))
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: \"%s\": %s", where, shown, why.text);
    }
    memcpy(list->items[list->count++], text, strlen(text) + 1);
    layer->set[index] = true;
    return CR_OK;
}

cr_status cr_layer_set_text(cr_layer *layer, size_t index, const char *text, const char *where, cr_error *error) {
    const cr_option *o = &cr_options[index];
    char shown[80];
    uint64_t value;
    const char *wanted = "true or false";
    switch (o->kind) {
        case CR_OPT_LIST:
            return append_item(layer, index, text, where, error);
        case CR_OPT_CHOICE:
            return set_choice(layer, index, text, where, error);
        case CR_OPT_BOOL:
            if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) break;
            cr_layer_set_bool(layer, index, *text == 't');
            return CR_OK;
        case CR_OPT_UINT:
            wanted = cr_units_parse(o->unit, text, &value);
            if (wanted) break;
            return cr_layer_set_number(layer, index, value, where, error);
        case CR_OPT_OCTAL:
            wanted = "octal digits such as 0660";
            if (!cr_digits(text, strlen(text), 8, &value)) break;
            return cr_layer_set_number(layer, index, value, where, error);
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: \"%s\" is not %s", where, cr_log_quote(shown, sizeof shown, text),
                   wanted);
}
