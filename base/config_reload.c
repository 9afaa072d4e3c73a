/* config_reload: takes over those of freshly read options that can change while the daemon runs. Thread: the loop's. Owner: the
 * caller. */
#include <string.h>

#include "base/config_layer.h"
#include "base/log.h"

bool cr_config_reloads(const char *key) {
#define CR_RELOADS(name) \
    if (strcmp(key, #name) == 0) return true;
#include "base/reload.def"
#undef CR_RELOADS
    return false;
}

void cr_config_take(cr_config *config, const cr_config *fresh, cr_reloaded *reloaded) {
    reloaded->changed_count = reloaded->restart_count = 0;
    for (size_t i = 0; i < cr_option_count; i++) {
        const cr_option *option = &cr_options[i];
        char *now = (char *)config + option->offset;
        const char *then = (const char *)fresh + option->offset;
        config->pending[i] = false;
        if (memcmp(now, then, option->size) == 0) continue;
        if (!cr_config_reloads(option->key)) {
            config->pending[i] = true;
            reloaded->restart[reloaded->restart_count++] = option->key;
            cr_warn("%s: it was changed, which takes a restart", option->key);
            continue;
        }
        memcpy(now, then, option->size);
        config->origin[i] = fresh->origin[i];
        reloaded->changed[reloaded->changed_count++] = option->key;
        cr_info("%s: reloaded", option->key);
    }
}
