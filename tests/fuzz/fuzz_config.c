/* Any bytes as a configuration: refused with a sentence, or options within their limits that can be printed. The first byte: bit 0,
 * the rest is a command line whose words end with NUL; bit 1, the environment, likewise; neither, a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/address.h"
#include "base/config.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 * 1024, WORDS = 32 };

static void need(bool good) {
    if (!good) abort();
}

/* The words of text, which is changed into them, from words[count] on. A file that a word names is not read. */
static int split(char *text, size_t size, char **words, int count) {
    for (char *at = text; at < text + size && count < WORDS; at += strlen(at) + 1)
        if (strstr(at, "config") == NULL && strstr(at, "CONFIG") == NULL) words[count++] = at;
    words[count] = NULL;
    return count;
}

static void check_limits(const cr_config *config) {
#define CR_OPTION_LIST(key, max, def, help) need(config->key.count <= max);
#define CR_OPTION_CHOICE(key, def, words, help) need(cr_config_word(config, #key)[0] != '\0');
#define CR_OPTION_BOOL(key, def, help)
#define CR_OPTION_UINT(key, def, min, max, help) need(config->key + 1 > (min) && config->key <= (max));
#define CR_OPTION_OCTAL(key, def, min, max, help) need(config->key <= (max));
#include "base/options.def"
    cr_address address;
    cr_error error;
    for (uint32_t i = 0; i < config->listen.count; i++)
        need(cr_address_parse(config->listen.items[i], &address, &error) == CR_OK);
}

static void print(const cr_config *config) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    cr_config_print(config, out);
    fclose(out);
    need(bytes > 100);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static cr_config config;
    char path[32], program[] = "cured", flag[] = "--config", *arguments[WORDS + 4] = {program},
                   *environment[WORDS + 1] = {NULL};
    int count = 1, file = -1;
    cr_config_action action;
    cr_reloaded reloaded;
    cr_error error = {CR_OK, ""};
    if (size == 0 || size > MOST) return 0;
    cr_log_set_level(CR_LOG_ERROR);
    char *text = malloc(size); /* the first byte's place is the last NUL's */
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] & 1) {
        count = split(text, size - 1, arguments, count);
    } else if (data[0] & 2) {
        split(text, size - 1, environment, 0);
    } else {
        file = memfd_create("config", MFD_CLOEXEC);
        need(file >= 0 && write(file, text, size - 1) == (ssize_t)size - 1);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        arguments[count++] = flag;
        arguments[count++] = path;
        arguments[count] = NULL;
    }
    cr_status status = cr_config_load(count, arguments, environment, &config, &action, &error);
    if (status != CR_OK) {
        need(error.code == status && error.text[0] != '\0');
    } else if (action != CR_CONFIG_HELP && action != CR_CONFIG_VERSION) {
        check_limits(&config);
        print(&config);
        cr_config_take(&config, &config, &reloaded);
        need(reloaded.changed_count + reloaded.restart_count == 0);
    }
    if (file >= 0) close(file);
    free(text);
    return 0;
}
