/* secrets: see secrets.h. Thread: any. Owner: see secrets.h. */
#include "server/socket/secrets.h"

#include <stdlib.h>

#include "server/socket/principals.h"

bool cr_secrets_allow(const cr_secrets *s, int socket, uint32_t uid) {
    uint32_t count;
    bool allowed = (!s->users.count && !s->groups.count) || cr_ids_have(&s->users, uid);
    if (allowed || !s->groups.count) return allowed;
    uint32_t *groups = cr_ids_groups(socket, &count);
    for (uint32_t i = 0; groups && i < count; i++) allowed |= cr_ids_have(&s->groups, groups[i]);
    free(groups);
    return allowed;
}

static cr_status open_principals(const cr_config *config, cr_secrets *secrets, cr_error *error) {
    cr_principals *principals = malloc(sizeof *principals);
    if (!principals) return cr_fail(error, CR_RESOURCE_EXHAUSTED, "no memory for principals");
    cr_principals_init(principals);
    secrets->principals = principals;
    return config->principals.count ? cr_principals_read(config->principals.items[0], principals, error) : CR_OK;
}

cr_status cr_secrets_open(const cr_config *config, cr_secrets *secrets, cr_error *error) {
    const char *ca = config->tls_client_ca.count ? config->tls_client_ca.items[0] : NULL;
    *secrets = (cr_secrets){0};
    cr_status status = open_principals(config, secrets, error);
    if (status == CR_OK && config->tls_certificate.count)
        status =
            cr_identity_open(config->tls_certificate.items[0], config->tls_key.items[0], ca, &secrets->identity, error);
    if (status == CR_OK) status = cr_ids_of("allow_users", &config->allow_users, false, &secrets->users, error);
    if (status == CR_OK) status = cr_ids_of("allow_groups", &config->allow_groups, true, &secrets->groups, error);
    if (status == CR_OK) status = cr_ids_of("admin_users", &config->admin_users, false, &secrets->admins, error);
    secrets->names = config->tls_client_names;
    if (status != CR_OK) cr_secrets_free(secrets);
    return status;
}

void cr_secrets_free(cr_secrets *secrets) {
    cr_identity_free(secrets->identity);
    if (secrets->principals) cr_principals_free(secrets->principals);
    free(secrets->principals);
    *secrets = (cr_secrets){0};
}
