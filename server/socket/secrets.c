/* secrets: see secrets.h. Thread: any. Owner: see secrets.h. */
#include "server/socket/secrets.h"

cr_status cr_secrets_open(const cr_config *config, cr_secrets *secrets, cr_error *error) {
    cr_status status = CR_OK;
    const char *ca = config->tls_client_ca.count ? config->tls_client_ca.items[0] : NULL;
    *secrets = (cr_secrets){0};
    if (config->tokens.count) status = cr_tokens_open(config->tokens.items[0], &secrets->tokens, error);
    if (status == CR_OK && config->tls_certificate.count)
        status =
            cr_identity_open(config->tls_certificate.items[0], config->tls_key.items[0], ca, &secrets->identity, error);
    if (status != CR_OK) cr_secrets_free(secrets);
    return status;
}

void cr_secrets_free(cr_secrets *secrets) {
    cr_identity_free(secrets->identity);
    cr_tokens_free(secrets->tokens);
    *secrets = (cr_secrets){0};
}
