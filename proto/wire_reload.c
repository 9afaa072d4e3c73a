/* wire_reload: ReloadResponse and ConfigResponse between protobuf and plain structs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire_internal.h"

size_t cr_wire_pack_reloaded(const cr_wire_reloaded *m, uint8_t *out, size_t cap) {
    char *names[CR_WIRE_MAX_OPTIONS];
    Cured__V1__ReloadResponse p = CURED__V1__RELOAD_RESPONSE__INIT;
    for (uint32_t i = 0; i < m->count; i++) names[i] = (char *)(uintptr_t)m->names[i];
    p.changed = names;
    p.n_changed = m->changed_count;
    p.restart = names + m->changed_count;
    p.n_restart = m->count - m->changed_count;
    return cr_wire_emit(&p.base, out, cap);
}

/* More than there is room for are left out. */
cr_status cr_wire_unpack_reloaded(const uint8_t *in, size_t len, cr_wire_reloaded *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__ReloadResponse *p =
        cr_wire_parse(&scratch, &cured__v1__reload_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    m->count = 0;
    for (size_t i = 0; i < p->n_changed && m->count < CR_WIRE_MAX_OPTIONS; i++)
        cr_wire_copy_text(m->names[m->count++], CR_WIRE_OPTION_BYTES, p->changed[i]);
    m->changed_count = m->count;
    for (size_t i = 0; i < p->n_restart && m->count < CR_WIRE_MAX_OPTIONS; i++)
        cr_wire_copy_text(m->names[m->count++], CR_WIRE_OPTION_BYTES, p->restart[i]);
    return CR_OK;
}

size_t cr_wire_pack_settings(const cr_wire_settings *m, uint8_t *out, size_t cap) {
    Cured__V1__Setting rows[CR_WIRE_MAX_OPTIONS], *pointers[CR_WIRE_MAX_OPTIONS];
    Cured__V1__ConfigResponse p = CURED__V1__CONFIG_RESPONSE__INIT;
    for (uint32_t i = 0; i < m->count; i++) {
        const cr_wire_setting *from = &m->items[i];
        pointers[i] = &rows[i];
        cured__v1__setting__init(&rows[i]);
        rows[i].key = (char *)(uintptr_t)from->key;
        rows[i].value = (char *)(uintptr_t)from->value;
        rows[i].origin = (char *)(uintptr_t)from->origin;
        rows[i].reloads = from->reloads;
        rows[i].pending = from->pending;
    }
    p.settings = pointers;
    p.n_settings = m->count;
    return cr_wire_emit(&p.base, out, cap);
}

cr_status cr_wire_unpack_settings(const uint8_t *in, size_t len, cr_wire_settings *m, cr_error *error) {
    cr_wire_scratch scratch;
    const Cured__V1__ConfigResponse *p =
        cr_wire_parse(&scratch, &cured__v1__config_response__descriptor, in, len, error);
    if (p == NULL) return CR_INVALID_ARGUMENT;
    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < p->n_settings && m->count < CR_WIRE_MAX_OPTIONS; i++) {
        const Cured__V1__Setting *from = p->settings[i];
        cr_wire_setting *to = &m->items[m->count++];
        cr_wire_copy_text(to->key, sizeof to->key, from->key);
        cr_wire_copy_text(to->value, sizeof to->value, from->value);
        cr_wire_copy_text(to->origin, sizeof to->origin, from->origin);
        to->reloads = from->reloads;
        to->pending = from->pending;
    }
    return CR_OK;
}
