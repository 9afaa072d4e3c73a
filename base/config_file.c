/* config_file: reads a JSON configuration file into a layer.
 *
 * One object whose keys are those of options.def, each at most once. What the file says wrongly is refused with file,
 * key and reason; nothing is guessed. Thread: main's, at start. Owner: the caller owns the layer; the parsed text is
 * freed before the call returns. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/config_layer.h"
#include "base/log.h"
#include "base/text_file.h"

enum { FILE_MAX_BYTES = 64 * 1024, WHERE_BYTES = 192 };

/* At most FILE_MAX_BYTES and a NUL into *text, which the caller frees. */
static cr_status read_text(const char *path, const char *shown, char **text, size_t *length, cr_error *error) {
    const cr_status status = cr_text_file_read(path, shown, FILE_MAX_BYTES, NULL, text, length, error);
    if (status || !memchr(*text, '\0', *length)) return status;
    free(*text);
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: holds a NUL byte", shown);
}

static cr_status set_from_number(cr_layer *layer, size_t index, double value, const char *where, cr_error *error) {
    if (cr_options[index].kind == CR_OPT_OCTAL)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: permissions are given as a string, such as \"0660\"", where);
    /* A JSON reader holds numbers as doubles: beyond 2^53 it may have read another one than was written. */
    if (!(value >= 0) || value >= 9007199254740992.0)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %.17g is outside 0 to 2^53 - 1; larger ones go as a string",
                       where, value);
    if (value != (double)(uint64_t)value)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: %.17g is not a whole number", where, value);
    return cr_layer_set_number(layer, index, (uint64_t)value, where, error);
}

static cr_status set_from_array(cr_layer *layer, size_t index, const cJSON *array, const char *where, cr_error *error) {
    const cJSON *item;
    cJSON_ArrayForEach(item, array) {
        if (!cJSON_IsString(item))
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: every entry of the list must be a string", where);
        cr_status status = cr_layer_set_text(layer, index, item->valuestring, where, error);
        if (status) return status;
    }
    if (!layer->set[index] && cr_option_needs_entries(&cr_options[index]))
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: the list is empty; leave the key out for the default", where);
    layer->set[index] = true; /* of one at most: none */
    return CR_OK;
}

static cr_status set_from_item(cr_layer *layer, size_t index, const cJSON *item, const char *where, cr_error *error) {
    cr_option_kind kind = cr_options[index].kind;
    bool numeric = kind == CR_OPT_UINT || kind == CR_OPT_OCTAL;
    if (kind == CR_OPT_LIST && cJSON_IsArray(item)) return set_from_array(layer, index, item, where, error);
    if (kind == CR_OPT_BOOL && cJSON_IsBool(item)) {
        cr_layer_set_bool(layer, index, cJSON_IsTrue(item));
        return CR_OK;
    }
    if (numeric && cJSON_IsNumber(item)) return set_from_number(layer, index, item->valuedouble, where, error);
    if ((numeric || kind == CR_OPT_CHOICE) && cJSON_IsString(item))
        return cr_layer_set_text(layer, index, item->valuestring, where, error);
    static const char *const wanted[] = {"a list of strings", "a string", "true or false", "a number",
                                         "a string of octal digits such as \"0660\""};
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: must be %s", where, wanted[kind]);
}

/* True where text holds the escape of a NUL, which would end a string early. Valid JSON has backslashes in strings only. */
static bool escapes_nul(const char *text) {
    for (const char *p = strchr(text, '\\'); p && p[1]; p = strchr(p + 2, '\\'))
        if (strncmp(p + 1, "u0000", 5) == 0) return true;
    return false;
}

/* cJSON says where it stopped; people count lines. */
static cr_status fail_syntax(const char *shown, const char *text, const char *stop, cr_error *error) {
    size_t line = 1, column = 1;
    for (const char *p = text; stop && p < stop; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    return cr_fail(error, CR_INVALID_ARGUMENT, "%s: not valid JSON at line %zu, column %zu", shown, line, column);
}

static cr_status apply_item(cr_layer *layer, const cJSON *item, const char *shown, bool *seen, cr_error *error) {
    char key[64], where[WHERE_BYTES];
    const char *name = item->string ? item->string : "";
    if (strcmp(name, "$schema") == 0 && cJSON_IsString(item)) return CR_OK; /* for editors */
    snprintf(where, sizeof where, "%s: key \"%s\"", shown, cr_log_quote(key, sizeof key, name));
    size_t index = cr_option_find(name);
    if (index == cr_option_count) {
        const char *meant = cr_option_meant(name, NULL);
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: no such option%s%s%s", where,
                       meant != NULL ? " (did you mean " : "", meant != NULL ? meant : "", meant != NULL ? "?)" : "");
    }
    if (seen[index]) return cr_fail(error, CR_INVALID_ARGUMENT, "%s: given twice", where);
    seen[index] = true;
    return set_from_item(layer, index, item, where, error);
}

static cr_status apply_object(cr_layer *layer, const cJSON *root, const char *shown, cr_faults *faults,
                              cr_error *error) {
    bool seen[CR_OPTION_ROOM] = {false};
    const cJSON *item;
    if (!cJSON_IsObject(root)) return cr_fail(error, CR_INVALID_ARGUMENT, "%s: must hold one JSON object", shown);
    cJSON_ArrayForEach(item, root) {
        cr_status status = apply_item(layer, item, shown, seen, error);
        if (status && !cr_fault_noted(faults, error)) return status;
    }
    return CR_OK;
}

cr_status cr_layer_read_file(cr_layer *layer, const char *path, cr_faults *faults, cr_error *error) {
    char shown[100], *text = NULL;
    const char *stop = NULL;
    size_t length = 0;
    cr_log_quote(shown, sizeof shown, path);
    cr_status status = read_text(path, shown, &text, &length, error);
    if (status) return status;
    cJSON *root = cJSON_ParseWithOpts(text, &stop, true);
    if (!root)
        status = fail_syntax(shown, text, stop, error);
    else if (escapes_nul(text))
        status = cr_fail(error, CR_INVALID_ARGUMENT, "%s: a string holds \\u0000, which no option can", shown);
    else
        status = apply_object(layer, root, shown, faults, error);
    cJSON_Delete(root);
    free(text);
    return status;
}
