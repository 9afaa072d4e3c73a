/* config: gathers the layers (file, environment, flags) and lays them over the defaults.
 *
 * Thread: main's, at start. Owner: the caller owns the result; layers live as long as the call. */
#include "base/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/config_layer.h"
#include "base/log.h"
#include "base/words.h"

const char *cr_config_default_file = "/etc/cured/cured.json";

typedef struct layers {
    cr_layer file, env, flags;
    cr_faults faults;
    const char *path; /* of the file; NULL: none was named */
    bool path_from_flag;
} layers;

/* NULL with *error filled when the value is missing. */
static const char *flag_value(cr_words *words, const cr_word *word, cr_error *error) {
    const char *value = cr_words_value(words, word);
    if (!value) cr_fail(error, CR_INVALID_ARGUMENT, "--%.*s: needs a value", (int)word->length, word->name);
    return value;
}

static cr_status set_flag(layers *l, cr_words *words, const cr_word *word, cr_error *error) {
    char flag[CR_OPTION_ROOM], where[CR_OPTION_ROOM + 2];
    size_t i = 0;
    while (i < cr_option_count && !cr_word_is(word, cr_option_flag(i, flag))) i++;
    if (i == cr_option_count) {
        char name[CR_OPTION_ROOM], shown[80];
        snprintf(name, sizeof name, "%.*s", (int)word->length, word->name);
        const char *meant = cr_option_meant(name, flag);
        return cr_fail(error, CR_INVALID_ARGUMENT, "--%s: no such flag%s%s%s; --help lists them",
                       cr_log_quote(shown, sizeof shown, name), meant != NULL ? " (did you mean --" : "",
                       meant != NULL ? meant : "", meant != NULL ? "?)" : "");
    }
    snprintf(where, sizeof where, "--%s", flag);
    if (l->flags.set[i] && cr_options[i].kind != CR_OPT_LIST)
        return cr_fail(error, CR_INVALID_ARGUMENT, "%s: given twice", where);
    if (cr_options[i].kind == CR_OPT_BOOL && !word->value) {
        cr_layer_set_bool(&l->flags, i, true);
        return CR_OK;
    }
    const char *value = flag_value(words, word, error);
    return value ? cr_layer_set_text(&l->flags, i, value, where, error) : CR_INVALID_ARGUMENT;
}

/* --help and friends, alone or beside other flags. True when the word is one of them. */
static bool set_action(const cr_word *word, cr_config_action *action) {
    static const struct {
        const char *name;
        cr_config_action action;
    } all[] = {{"check-config", CR_CONFIG_CHECK},
               {"print-config", CR_CONFIG_PRINT},
               {"print-schema", CR_CONFIG_SCHEMA},
               {"help", CR_CONFIG_HELP},
               {"version", CR_CONFIG_VERSION}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (word->value || !cr_word_is(word, all[i].name)) continue;
        *action = all[i].action;
        return true;
    }
    return false;
}

static bool ends_reading(cr_config_action action) {
    return action == CR_CONFIG_HELP || action == CR_CONFIG_VERSION || action == CR_CONFIG_SCHEMA;
}

/* One word, and its value where that is the next one. */
static cr_status read_flag(layers *l, cr_words *words, const cr_word *word, cr_config_action *action, cr_error *error) {
    char shown[80];
    if (!word->name)
        return cr_fail(error, CR_INVALID_ARGUMENT, "\"%s\" is not a flag; --help lists them",
                       cr_log_quote(shown, sizeof shown, word->text));
    if (set_action(word, action)) return CR_OK;
    if (!cr_word_is(word, "config")) return set_flag(l, words, word, error);
    if (l->path_from_flag) return cr_fail(error, CR_INVALID_ARGUMENT, "--config: given twice");
    l->path = flag_value(words, word, error);
    if (!l->path) return CR_INVALID_ARGUMENT;
    l->path_from_flag = true;
    return CR_OK;
}

/* --help, --version and --print-schema end the reading: whatever else is wrong, they are answered. --check-config says every
 * fault, wherever it stands. */
static cr_status read_flags(layers *l, int argc, char **argv, cr_config_action *action, cr_error *error) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--check-config") == 0) l->faults.out = stderr;
    cr_words words = {argc, argv, 1};
    cr_word word;
    while (!ends_reading(*action) && cr_words_next(&words, &word)) {
        cr_status status = read_flag(l, &words, &word, action, error);
        if (status && !cr_fault_noted(&l->faults, error)) return status;
    }
    return CR_OK;
}

bool cr_fault_noted(cr_faults *faults, cr_error *error) {
    if (!faults->out) return false;
    fprintf(faults->out, "cured: %s\n", error->text);
    faults->count++;
    *error = (cr_error){CR_OK, ""};
    return true;
}

static cr_status set_variable(cr_layer *env, size_t index, const char *text, cr_error *error) {
    char variable[CR_OPTION_ROOM], where[CR_OPTION_ROOM + 8];
    snprintf(where, sizeof where, "CURED_%s", cr_option_variable(index, variable));
    if (env->set[index]) return cr_fail(error, CR_INVALID_ARGUMENT, "%s: given twice", where);
    if (cr_options[index].kind != CR_OPT_LIST) return cr_layer_set_text(env, index, text, where, error);
    for (;;) {
        char item[CR_CONFIG_TEXT];
        size_t span = strcspn(text, ",");
        if (span >= sizeof item)
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: a value has %zu bytes, the limit is %d", where, span,
                           CR_CONFIG_TEXT - 1);
        memcpy(item, text, span);
        item[span] = '\0';
        cr_status status = cr_layer_set_text(env, index, item, where, error);
        if (status || !text[span]) return status;
        text += span + 1;
    }
}

/* Unknown CURED_* variables are named in the log and otherwise ignored: a service called "cured" makes Kubernetes set
 * CURED_PORT and its like in every pod, so refusing them would keep the daemon from starting there. CURED_CONNECT,
 * CURED_TLS_CA and CURED_CLIENT_* are the client's; CURED_CUDA_LIBRARY is for who loads that; CURED_TEST_* are the tests'. */
static cr_status read_env(layers *l, char *const *env, cr_error *error) {
    for (; env && *env; env++) {
        const char *equals = strchr(*env, '=');
        if (strncmp(*env, "CURED_", 6) != 0 || !equals) continue;
        char name[CR_OPTION_ROOM], variable[CR_OPTION_ROOM], shown[80];
        snprintf(name, sizeof name, "%.*s", (int)(equals - *env - 6), *env + 6);
        if (strcmp(name, "CONFIG") == 0) {
            if (!l->path_from_flag) l->path = equals + 1;
            continue;
        }
        size_t i = 0;
        while (i < cr_option_count && strcmp(cr_option_variable(i, variable), name) != 0) i++;
        if (i < cr_option_count) {
            cr_status status = set_variable(&l->env, i, equals + 1, error);
            if (status && !cr_fault_noted(&l->faults, error)) return status;
        } else if (strcmp(name, "CONNECT") != 0 && strcmp(name, "TLS_CA") != 0 && strncmp(name, "CLIENT_", 7) != 0 &&
                   strcmp(name, "CUDA_LIBRARY") != 0 && strncmp(name, "TEST_", 5) != 0) {
            cr_warn("environment variable CURED_%s is no option of the daemon: ignored",
                    cr_log_quote(shown, sizeof shown, name));
        }
    }
    return CR_OK;
}

static cr_status read_file(layers *l, cr_error *error) {
    if (l->path) {
        cr_status status = cr_layer_read_file(&l->file, l->path, &l->faults, error);
        return status == CR_NOT_FOUND ? CR_INVALID_ARGUMENT : status;
    }
    cr_status status = cr_layer_read_file(&l->file, cr_config_default_file, &l->faults, error);
    if (status != CR_NOT_FOUND) return status;
    if (error) *error = (cr_error){CR_OK, ""};
    return CR_OK;
}

static void lay_over(cr_config *config, const cr_layer *layer, cr_origin origin) {
    for (size_t i = 0; i < cr_option_count; i++) {
        if (!layer->set[i]) continue;
        memcpy((char *)config + cr_options[i].offset, (const char *)&layer->values + cr_options[i].offset,
               cr_options[i].size);
        config->origin[i] = origin;
    }
}

static void set_defaults(cr_config *config) {
    memset(config, 0, sizeof *config);
#define CR_OPTION_LIST(key, max, def, help) \
    if (def) snprintf(config->key.items[config->key.count++], CR_CONFIG_TEXT, "%s", (const char *)def);
#define CR_OPTION_CHOICE(key, def, words, help) config->key = (def);
#define CR_OPTION_BOOL(key, def, help) config->key = (def);
#define CR_OPTION_UINT(key, def, min, max, help) config->key = (def);
#define CR_OPTION_OCTAL(key, def, min, max, help) config->key = (def);
#include "base/options.def"
}

static const char *env_value(char *const *env, const char *name) {
    size_t length = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return *env + length + 1;
    return NULL;
}

/* The address that stands where nobody gave one: it depends on who runs the daemon. */
static cr_status default_listen(cr_config *config, char *const *env, cr_error *error) {
    char text[CR_CONFIG_TEXT];
    const char *folder = env_value(env, "XDG_RUNTIME_DIR");
    cr_address address;
    cr_error why = {CR_OK, ""};
    if (config->listen.count > 0 || env_value(env, "LISTEN_FDS")) return CR_OK; /* see transport/passed.h */
    if (geteuid() == 0) {
        snprintf(text, sizeof text, "unix:/run/cured/cured.sock");
    } else if (folder && folder[0] == '/' && strlen(folder) < sizeof text - 32) {
        snprintf(text, sizeof text, "unix:%s/cured.sock", folder);
    } else {
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "listen: no address given, and XDG_RUNTIME_DIR names no folder for the default; use --listen, "
                       "such as --listen unix:$HOME/cured.sock");
    }
    if (cr_address_parse(text, &address, &why))
        return cr_fail(error, CR_INVALID_ARGUMENT, "listen: the default in XDG_RUNTIME_DIR: %s", why.text);
    snprintf(config->listen.items[0], CR_CONFIG_TEXT, "%s", text);
    config->listen.count = 1;
    return CR_OK;
}

cr_status cr_config_check_address(const cr_config *config, const cr_address *address, const char *key, const char *text,
                                  const char *what, cr_error *error) {
    const bool knows_clients =
        config->tls_client_ca.count || (config->tls_certificate.count && config->principals.count);
    if (config->insecure || knows_clients || cr_address_is_local(address)) return CR_OK;
    return cr_fail(error, CR_PERMISSION_DENIED,
                   "%s: \"%.100s\" may be reached from other machines, and whoever reaches it %s; it needs TLS "
                   "and --tls-client-ca or --principals, or --insecure",
                   key, text, what);
}

bool cr_config_given(const cr_config *config, const char *key) {
    return config->origin[cr_option_find(key)] != CR_FROM_DEFAULT;
}

static cr_status check_reach(const cr_config *config, const char *key, const cr_config_list *list, const char *what,
                             cr_error *error) {
    cr_status status = CR_OK;
    for (uint32_t i = 0; status == CR_OK && i < list->count; i++) {
        cr_address address;
        status = cr_address_parse(list->items[i], &address, error);
        if (status == CR_OK) status = cr_config_check_address(config, &address, key, list->items[i], what, error);
    }
    return status;
}

/* Checks what options say together. */
static cr_status check_together(const cr_config *config, cr_error *error) {
    if (config->tls_certificate.count != config->tls_key.count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_certificate and tls_key: give both or neither");
    if (config->tls_client_ca.count && !config->tls_certificate.count)
        return cr_fail(error, CR_INVALID_ARGUMENT, "tls_client_ca: it needs tls_certificate and tls_key");
    cr_status status = check_reach(config, "listen", &config->listen, "may use the daemon", error);
    if (status == CR_OK) status = check_reach(config, "admin", &config->admin, "may look into the daemon", error);
    return status;
}

cr_status cr_config_load(int argc, char **argv, char *const *env, cr_config *config, cr_config_action *action,
                         cr_error *error) {
    cr_status status;
    *action = CR_CONFIG_RUN;
    set_defaults(config);
    if (error) *error = (cr_error){CR_OK, ""};
    layers *l = calloc(1, sizeof *l);
    if (!l) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the configuration");
    status = read_flags(l, argc, argv, action, error);
    if (status || ends_reading(*action)) goto out;
    status = read_env(l, env, error);
    if (status) goto out;
    status = read_file(l, error);
    if (status && !cr_fault_noted(&l->faults, error)) goto out;
    lay_over(config, &l->file, CR_FROM_FILE);
    lay_over(config, &l->env, CR_FROM_ENV);
    lay_over(config, &l->flags, CR_FROM_FLAG);
    status = default_listen(config, env, error);
    if (!status) status = check_together(config, error);
    if (status && cr_fault_noted(&l->faults, error)) status = CR_OK;
    if (l->faults.count)
        status = cr_fail(error, CR_INVALID_ARGUMENT, "the configuration has %u fault%s", l->faults.count,
                         l->faults.count > 1 ? "s" : "");
out:
    free(l);
    return status;
}
