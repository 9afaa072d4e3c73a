/* config_layer: what config*.c share. A layer holds the values that one source (file, environment, flags) gives and
 * which ones those are; cr_config_load lays them over each other.
 *
 * Thread: main's, at start. Owner: cr_config_load. */
#ifndef CURED_BASE_CONFIG_LAYER_H
#define CURED_BASE_CONFIG_LAYER_H

#include <stddef.h>

#include "base/config.h"
#include "base/units.h"

typedef enum cr_option_kind { CR_OPT_LIST, CR_OPT_CHOICE, CR_OPT_BOOL, CR_OPT_UINT, CR_OPT_OCTAL } cr_option_kind;

typedef struct cr_option {
    const char *key;
    cr_option_kind kind;
    cr_unit unit;           /* UINT */
    size_t offset, size;    /* of the member of cr_config */
    uint64_t def, min, max; /* LIST: max is the number of entries */
    const char *def_item;   /* LIST */
    const char *words;      /* CHOICE: "a|b|c" */
    const char *help;
} cr_option;

/* Whether a list in the file must have entries: a daemon without an address to listen at is of no use. */
static inline bool cr_option_needs_entries(const cr_option *option) {
    return option->offset == offsetof(cr_config, listen);
}

enum { CR_OPTION_ROOM = CR_CONFIG_OPTIONS_MAX };

extern const cr_option cr_options[];
extern const size_t cr_option_count;

/* Read when neither --config nor CURED_CONFIG names a file, if it exists. Tests point it elsewhere. */
extern const char *cr_config_default_file;

typedef struct cr_layer {
    cr_config values;
    bool set[CR_OPTION_ROOM];
} cr_layer;

/* The index in cr_options of a key spelt exactly so; cr_option_count when there is none. */
size_t cr_option_find(const char *key);
/* The key as a flag ("log-level") or as a variable ("LOG_LEVEL"); out has room for any key. */
const char *cr_option_flag(size_t index, char out[CR_OPTION_ROOM]);
/* The option that is most like a name that none has; NULL: none is. out: it is written as a flag there; NULL: as a key. */
const char *cr_option_meant(const char *name, char out[CR_OPTION_ROOM]);
const char *cr_option_variable(size_t index, char out[CR_OPTION_ROOM]);
/* A UINT with its unit, an OCTAL in octal digits. */
const char *cr_option_number(const cr_option *option, uint64_t value, char out[CR_UNITS_TEXT]);
/* config_print.c: what the option is for, with its limits and its default. */
void cr_option_describe(size_t index, char *text, size_t cap);
/* Sets an option from its text form, or appends to a LIST. where ("--slabs", "CURED_SLABS", "cured.json: key
 * \"slabs\"") begins the sentence on failure. */
cr_status cr_layer_set_text(cr_layer *layer, size_t index, const char *text, const char *where, cr_error *error);
cr_status cr_layer_set_number(cr_layer *layer, size_t index, uint64_t value, const char *where, cr_error *error);
void cr_layer_set_bool(cr_layer *layer, size_t index, bool value);
/* What is wrong with a configuration, where all of it is to be said. All zero: the first fault ends the reading. */
typedef struct cr_faults {
    FILE *out; /* a line each; NULL: see above */
    unsigned count;
} cr_faults;
/* Whether the fault is said, so that the reading goes on; *error is empty then. */
bool cr_fault_noted(cr_faults *faults, cr_error *error);
/* The whole of a JSON file; CR_NOT_FOUND when there is no such file. */
cr_status cr_layer_read_file(cr_layer *layer, const char *path, cr_faults *faults, cr_error *error);

#endif
