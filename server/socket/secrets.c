/* secrets: see secrets.h. Thread: any. Owner: see secrets.h. */
#include "server/socket/secrets.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/base/log.h"
#include "server/base/units.h"

enum { LOOKED_UP_BYTES = 64 * 1024, MOST_GROUPS = 65536 };

/* A number, or the name of a user or group. */
static bool look_up(const char *text, bool group, uint32_t *id) {
    uint64_t number;
    struct passwd user, *found_user = NULL;
    struct group members, *found_group = NULL;
    if (cr_digits(text, strlen(text), 10, &number)) {
        *id = (uint32_t)number;
        return number < UINT32_MAX;
    }
    char *room = malloc(LOOKED_UP_BYTES);
    if (!room) return false;
    if (group)
        getgrnam_r(text, &members, room, LOOKED_UP_BYTES, &found_group);
    else
        getpwnam_r(text, &user, room, LOOKED_UP_BYTES, &found_user);
    if (found_group) *id = found_group->gr_gid;
    if (found_user) *id = found_user->pw_uid;
    free(room);
    return found_group || found_user;
}

static cr_status look_all_up(const char *option, const cr_config_list *list, bool group, cr_ids *ids, cr_error *error) {
    char shown[80];
    for (ids->count = 0; ids->count < list->count; ids->count++)
        if (!look_up(list->items[ids->count], group, &ids->ids[ids->count]))
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: this machine knows no %s \"%s\"", option,
                           group ? "group" : "user", cr_log_quote(shown, sizeof shown, list->items[ids->count]));
    return CR_OK;
}

bool cr_ids_have(const cr_ids *ids, uint32_t id) {
    for (uint32_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id) return true;
    return false;
}

/* Of the process that connected, as it was then. */
static bool in_groups(const cr_ids *groups, int socket) {
    struct ucred process;
    socklen_t length = sizeof process;
    bool found =
        getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process, &length) == 0 && cr_ids_have(groups, process.gid);
    length = 0;
    if (found || getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) == 0 || errno != ERANGE) return found;
    gid_t *more = length <= MOST_GROUPS * sizeof *more ? malloc(length) : NULL;
    if (more && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, more, &length) == 0)
        for (socklen_t i = 0; i < length / sizeof *more; i++) found |= cr_ids_have(groups, more[i]);
    free(more);
    return found;
}

bool cr_secrets_allow(const cr_secrets *s, int socket, uint32_t uid) {
    if (!s->users.count && !s->groups.count) return true;
    return cr_ids_have(&s->users, uid) || (s->groups.count && in_groups(&s->groups, socket));
}

cr_status cr_secrets_open(const cr_config *config, cr_secrets *secrets, cr_error *error) {
    cr_status status = CR_OK;
    const char *ca = config->tls_client_ca.count ? config->tls_client_ca.items[0] : NULL;
    *secrets = (cr_secrets){0};
    if (config->tokens.count) status = cr_tokens_open(config->tokens.items[0], &secrets->tokens, error);
    if (status == CR_OK && config->tls_certificate.count)
        status =
            cr_identity_open(config->tls_certificate.items[0], config->tls_key.items[0], ca, &secrets->identity, error);
    if (status == CR_OK) status = look_all_up("allow_users", &config->allow_users, false, &secrets->users, error);
    if (status == CR_OK) status = look_all_up("allow_groups", &config->allow_groups, true, &secrets->groups, error);
    if (status == CR_OK) status = look_all_up("admin_users", &config->admin_users, false, &secrets->admins, error);
    secrets->names = config->tls_client_names;
    if (status != CR_OK) cr_secrets_free(secrets);
    return status;
}

void cr_secrets_free(cr_secrets *secrets) {
    cr_identity_free(secrets->identity);
    cr_tokens_free(secrets->tokens);
    *secrets = (cr_secrets){0};
}
