/* config: the daemon's options, from defaults, file, environment and flags, in rising order of weight.
 *
 * Thread: filled at start by main; afterwards the loop's, which may reload it. Owner: main. One list (options.def). */
#ifndef CURED_BASE_CONFIG_H
#define CURED_BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/address.h"
#include "proto/status.h"

enum { CR_CONFIG_LIST_MAX = 8, CR_CONFIG_TEXT = 512, CR_CONFIG_OPTIONS_MAX = 96 };

typedef struct cr_config_list {
    uint32_t count;
    char items[CR_CONFIG_LIST_MAX][CR_CONFIG_TEXT];
} cr_config_list;

typedef enum cr_origin { CR_FROM_DEFAULT, CR_FROM_FILE, CR_FROM_ENV, CR_FROM_FLAG } cr_origin;

#define CR_OPTION_LIST(key, max, def, help) cr_config_list key;
#define CR_OPTION_CHOICE(key, def, words, help) uint32_t key;
#define CR_OPTION_BOOL(key, def, help) bool key;
#define CR_OPTION_UINT(key, def, min, max, help) uint64_t key;
#define CR_OPTION_OCTAL(key, def, min, max, help) uint32_t key;
typedef struct cr_config {
#include "base/options.def"
    cr_origin origin[CR_CONFIG_OPTIONS_MAX]; /* by position in options.def */
    bool pending[CR_CONFIG_OPTIONS_MAX];     /* the latest reload found another value, which takes a restart */
} cr_config;
#undef CR_OPTION_LIST
#undef CR_OPTION_CHOICE
#undef CR_OPTION_BOOL
#undef CR_OPTION_UINT
#undef CR_OPTION_OCTAL

enum { CR_BACKEND_AUTO = 0, CR_BACKEND_CPU = 1, CR_BACKEND_CUDA = 2 };               /* config.backend */
enum { CR_DEVICE_HANDLES_OWN = 0, CR_DEVICE_HANDLES_ANY = 1 };                       /* config.device_handles */
enum { CR_LOG_FORMAT_TEXT = 0, CR_LOG_FORMAT_JSON = 1 };                             /* config.log_format */
enum { CR_LOG_CALLS_OFF, CR_LOG_CALLS_FAILED, CR_LOG_CALLS_SLOW, CR_LOG_CALLS_ALL }; /* config.log_calls */
enum { CR_ON_GPU_FAULT_CPU = 0, CR_ON_GPU_FAULT_EXIT = 1 };                          /* config.on_gpu_fault */

/* What the command line asks for. */
typedef enum cr_config_action {
    CR_CONFIG_RUN,
    CR_CONFIG_CHECK,  /* --check-config */
    CR_CONFIG_PRINT,  /* --print-config */
    CR_CONFIG_SCHEMA, /* --print-schema */
    CR_CONFIG_HELP,
    CR_CONFIG_VERSION,
} cr_config_action;

/* Fills *config from defaults, --config FILE, the environment and argv. On failure the sentence names the origin (file and
 * key, variable or flag), the value and the limit. An address is checked for form here, and tcp beyond loopback is
 * refused without insecure. With --check-config each fault is a line on standard error, and the sentence counts them. */
cr_status cr_config_load(int argc, char **argv, char *const *env, cr_config *config, cr_config_action *action,
                         cr_error *error);
/* What a reload found: options by name. */
typedef struct cr_reloaded {
    uint32_t changed_count, restart_count;
    const char *changed[CR_CONFIG_OPTIONS_MAX]; /* taken over */
    const char *restart[CR_CONFIG_OPTIONS_MAX]; /* other than before as well, but not in reload.def */
} cr_reloaded;
/* Takes over from fresh what changed of the options in reload.def, and logs each; of others it logs that they take a restart. */
void cr_config_take(cr_config *config, const cr_config *fresh, cr_reloaded *reloaded);
/* PERMISSION_DENIED: the address, an entry of the option key and text to people, can be reached from other machines, and the options do
 * not say that it may. what: what is then open to all. */
cr_status cr_config_check_address(const cr_config *config, const cr_address *address, const char *key, const char *text,
                                  const char *what, cr_error *error);
/* Whether somebody set the option of that name: file, environment or command line. */
bool cr_config_given(const cr_config *config, const char *key);
/* An option by its position; the value is cut to fit. False: there is none. */
typedef struct cr_setting {
    const char *key, *origin;
    bool reloads, pending;
    char value[CR_CONFIG_TEXT];
} cr_setting;
bool cr_config_setting(const cr_config *config, size_t position, cr_setting *setting);
/* One line an option: key, value, origin. */
void cr_config_print(const cr_config *config, FILE *out);
void cr_config_help(FILE *out);
/* The JSON schema of the configuration file, with each option's unit, and whether SIGHUP reloads it. */
void cr_config_schema(FILE *out);
/* Whether SIGHUP reloads the option of that name (reload.def). */
bool cr_config_reloads(const char *key);
/* "auto", "debug", … for a CHOICE member. key is the option's name. */
const char *cr_config_word(const cr_config *config, const char *key);

#endif
