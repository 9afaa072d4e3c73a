/* ids: users and groups of this machine, by number or name.
 *
 * Thread: any; a look-up may take as long as the machine's name service does. Owner: the caller. */
#ifndef CURED_SERVER_SOCKET_IDS_H
#define CURED_SERVER_SOCKET_IDS_H

#include "base/config.h"
#include "proto/status.h"

/* Numbers of users or groups. */
typedef struct cr_ids {
    uint32_t count, ids[CR_CONFIG_LIST_MAX];
} cr_ids;

/* A number, or the name of a user or group. False: this machine knows none. */
bool cr_ids_look_up(const char *text, bool group, uint32_t *id);
/* Those of an option's list. INVALID_ARGUMENT names the option and what is not known. */
cr_status cr_ids_of(const char *option, const cr_config_list *list, bool group, cr_ids *ids, cr_error *error);
bool cr_ids_have(const cr_ids *ids, uint32_t id);
/* The groups of the process that connected to a Unix socket, as they were then; the caller frees them. NULL: there is no memory, or they
 * are not known. */
uint32_t *cr_ids_groups(int socket, uint32_t *count);

#endif
