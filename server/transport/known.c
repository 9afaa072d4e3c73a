/* known: see known.h. Thread: the loop's. Owner: nobody. */
#include "server/transport/known.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/socket/ids.h"

static const cr_principal *line_of_process(const cr_principals *p, uint32_t uid, int socket) {
    char name[16];
    uint32_t count = 0;
    snprintf(name, sizeof name, "%u", uid);
    const cr_principal *line = cr_principals_first(p, &cr_principal_plain, CR_KNOWN_user, name);
    line = cr_principals_first(p, line, CR_KNOWN_user, "*");
    uint32_t *groups = p->of[CR_KNOWN_group] ? cr_ids_groups(socket, &count) : NULL;
    for (uint32_t i = 0; groups && i < count; i++) {
        snprintf(name, sizeof name, "%u", groups[i]);
        line = cr_principals_first(p, line, CR_KNOWN_group, name);
    }
    free(groups);
    return line;
}

void cr_known_at_first(const cr_calls *calls, const cr_secrets *secrets, cr_peer *peer, int socket) {
    const cr_principals *p = &calls->admission.principals;
    if (peer->has_uid && cr_ids_have(&secrets->admins, peer->uid)) peer->may = CR_MAY_ALL;
    cr_peer_goes_by(peer, peer->has_uid ? line_of_process(p, peer->uid, socket)
                                        : cr_principals_first(p, &cr_principal_plain, CR_KNOWN_address, "*"));
}

cr_status cr_known_process(const cr_secrets *secrets, const cr_peer *peer, int socket, cr_error *error) {
    if (peer->may & CR_MAY_admin || cr_secrets_allow(secrets, socket, peer->uid)) return CR_OK;
    return cr_fail(error, CR_PERMISSION_DENIED, "this user may not connect (allow_users and allow_groups say who may)");
}

/* ---- certificates ---- */

typedef struct shown {
    const cr_principals *principals;
    const cr_config_list *names;
    const cr_principal *line;
    bool taken;
    char name[CR_NAME_MAX_BYTES + 1]; /* with its kind: that of the line, or the first; "": it has none */
} shown;

static void take_name(void *argument, cr_known_by by, const char *name) {
    shown *s = argument;
    const cr_principal *line = cr_principals_first(s->principals, s->line, by, name);
    if ((line != s->line || !*s->name) &&
        (size_t)snprintf(s->name, sizeof s->name, "%s%s", cr_known_words[by], name) >= sizeof s->name)
        *s->name = '\0'; /* too long for a name */
    s->line = line;
    for (uint32_t i = 0; by == CR_KNOWN_CN && i < s->names->count; i++)
        s->taken |= strcmp(s->names->items[i], name) == 0;
}

cr_status cr_known_certificate(cr_calls *calls, const cr_secrets *secrets, const cr_tls *tls, cr_peer *peer,
                               cr_error *error) {
    const cr_principals *p = &calls->admission.principals;
    shown s = {.principals = p, .names = &secrets->names, .taken = !secrets->names.count};
    s.line = cr_principals_first(p, &cr_principal_plain, CR_KNOWN_certificate, "*");
    cr_tls_client_names(tls, take_name, &s);
    if (!s.taken)
        return cr_fail(
            error, CR_PERMISSION_DENIED,
            "TLS: clients with the name of this certificate may not connect (tls_client_names says who may)");
    peer->until_s = cr_tls_client_until_s(tls);
    if (*s.name) return cr_admit_become(&calls->admission, peer, s.line, s.name, error);
    cr_peer_goes_by(peer, s.line); /* it counts by its address */
    return CR_OK;
}
