/* config_reload: reads the options again and takes those over that can change while the daemon runs. Thread: the loop's. Owner: the caller. */
#include <stdlib.h>
#include <string.h>

#include "server/base/config_layer.h"
#include "server/base/log.h"

bool cr_config_reloads(const char *key) {
#define CR_RELOADS(name) \
    if (strcmp(key, #name) == 0) return true;
#include "server/base/reload.def"
#undef CR_RELOADS
    return false;
}

cr_status cr_config_reload(int argc, char **argv, char *const *env, cr_config *config, cr_error *error) {
    cr_config_action action;
    cr_config *fresh = malloc(sizeof *fresh);
    if (!fresh) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory to read the configuration");
    cr_status status = cr_config_load(argc, argv, env, fresh, &action, error);
    for (size_t i = 0; i < cr_option_count && status == CR_OK; i++) {
        const cr_option *option = &cr_options[i];
        char *now = (char *)config + option->offset;
        const char *then = (const char *)fresh + option->offset;
        if (memcmp(now, then, option->size) == 0) continue;
        if (!cr_config_reloads(option->key)) {
            cr_warn("%s: it was changed, which takes a restart", option->key);
            continue;
        }
        memcpy(now, then, option->size);
        config->origin[i] = fresh->origin[i];
        cr_info("%s: reloaded", option->key);
    }
    free(fresh);
    return status;
}
