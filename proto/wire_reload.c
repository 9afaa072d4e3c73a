/* wire_reload: ReloadResponse between protobuf and plain structs.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
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
