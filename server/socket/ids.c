/* ids: see ids.h. Thread: see ids.h. Owner: see ids.h. */
#include "server/socket/ids.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/units.h"

enum { LOOKED_UP_BYTES = 64 * 1024, MOST_GROUPS = 65536 };

bool cr_ids_look_up(const char *text, bool group, uint32_t *id) {
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

cr_status cr_ids_of(const char *option, const cr_config_list *list, bool group, cr_ids *ids, cr_error *error) {
    char shown[80];
    for (ids->count = 0; ids->count < list->count; ids->count++)
        if (!cr_ids_look_up(list->items[ids->count], group, &ids->ids[ids->count]))
            return cr_fail(error, CR_INVALID_ARGUMENT, "%s: this machine knows no %s \"%s\"", option,
                           group ? "group" : "user", cr_log_quote(shown, sizeof shown, list->items[ids->count]));
    return CR_OK;
}

bool cr_ids_have(const cr_ids *ids, uint32_t id) {
    for (uint32_t i = 0; i < ids->count; i++)
        if (ids->ids[i] == id) return true;
    return false;
}

uint32_t *cr_ids_groups(int socket, uint32_t *count) {
    struct ucred process;
    socklen_t length = sizeof process, bytes = 0;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &process, &length) != 0) return NULL;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) != 0 && errno != ERANGE) bytes = 0;
    if (bytes > MOST_GROUPS * sizeof(gid_t)) return NULL;
    _Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are numbers of 32 bits");
    uint32_t *groups = malloc(bytes + sizeof *groups);
    if (!groups) return NULL;
    groups[0] = process.gid;
    if (bytes && getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &bytes) != 0) bytes = 0;
    *count = 1 + (uint32_t)(bytes / sizeof *groups);
    return groups;
}
