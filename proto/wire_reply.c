/* wire_reply: what the server sends, and HELLO, WELCOME and CREDIT: mostly what their rows say.
 *
 * Thread: any; nothing here holds state. Owner: the caller owns every struct and buffer. */
#include <string.h>

#include "proto/wire_stats.h"
#include "proto/wire_table.h"

#define PACKS(name, id, T)                                             \
    size_t cr_wire_pack_##name(const T *m, uint8_t *out, size_t cap) { \
        return cr_wire_write(&cr_message_##id, m, NULL, out, cap);     \
    }
#define UNPACKS(name, id, T)                                                                \
    cr_status cr_wire_unpack_##name(const uint8_t *in, size_t len, T *m, cr_error *error) { \
        return cr_wire_read(&cr_message_##id, CR_READ_ANY, in, len, m, NULL, error);        \
    }
PACKS(hello, hello, cr_wire_hello)
PACKS(welcome, welcome, cr_wire_welcome)
PACKS(result, reduce_response, cr_wire_result)
PACKS(info, info_response, cr_wire_info)
UNPACKS(info, info_response, cr_wire_info)
PACKS(registered, register_response, cr_wire_registered)
UNPACKS(registered, register_response, cr_wire_registered)
PACKS(status, status, cr_wire_status)
UNPACKS(status, status, cr_wire_status)
PACKS(progress, progress, cr_wire_progress)
UNPACKS(progress, progress, cr_wire_progress)
PACKS(reloaded, reload_response, cr_wire_reloaded)
UNPACKS(reloaded, reload_response, cr_wire_reloaded)
PACKS(settings, config_response, cr_wire_settings)
UNPACKS(settings, config_response, cr_wire_settings)
PACKS(stats, stats_response, cr_wire_stats)
UNPACKS(stats, stats_response, cr_wire_stats)
PACKS(slow_log, slow_log_response, cr_wire_slow_log)
UNPACKS(slow_log, slow_log_response, cr_wire_slow_log)

_Static_assert((int)CR_WIRE_FEATURES <= (int)CR_WIRE_MAX_FEATURES, "HELLO has room for all features");
const char *const cr_wire_features[CR_WIRE_FEATURES] = {
#define CR_FEATURE(name, NAME, sentence) #name,
#include "proto/feature.def"
#undef CR_FEATURE
#define CR_BESIDE(field, KIND, message, name) #field,
#include "proto/beside.def"
#undef CR_BESIDE
};

const char *const cr_wire_feature_lacks[CR_FEATURE_BESIDE] = {
#define CR_FEATURE(name, NAME, sentence) sentence,
#include "proto/feature.def"
#undef CR_FEATURE
};

bool cr_wire_has_feature(const char features[][CR_NAME_MAX_BYTES + 1], uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count && i < CR_WIRE_MAX_FEATURES; i++)
        if (strcmp(features[i], name) == 0) return true;
    return false;
}

cr_status cr_wire_unpack_hello(const uint8_t *in, size_t len, cr_wire_hello *m, cr_error *error) {
    const cr_status status = cr_wire_read(&cr_message_hello, CR_READ_ANY, in, len, m, NULL, error);
    if (status != CR_OK) return status;
    if (m->version_min == 0 || m->version_min > m->version_max)
        return cr_fail(error, CR_INVALID_ARGUMENT,
                       "Hello.version_min is %u and version_max %u, must be 1 <= min <= max", m->version_min,
                       m->version_max);
    const cr_status fits = cr_wire_check_text("Hello.token", m->token_bytes, CR_TOKEN_MAX_BYTES, error);
    return fits == CR_OK ? cr_wire_check_text("Hello.client", m->client_bytes, CR_NAME_MAX_BYTES, error) : fits;
}

cr_status cr_wire_unpack_welcome(const uint8_t *in, size_t len, cr_wire_welcome *m, cr_error *error) {
    const cr_status status = cr_wire_read(&cr_message_welcome, CR_READ_ANY, in, len, m, NULL, error);
    return status == CR_OK ? cr_wire_check_text("Welcome.server", m->server_bytes, CR_NAME_MAX_BYTES, error) : status;
}

cr_status cr_wire_unpack_result(const uint8_t *in, size_t len, cr_wire_result *m, cr_error *error) {
    const cr_status status = cr_wire_read(&cr_message_reduce_response, CR_READ_ANY, in, len, m, NULL, error);
    if (status != CR_OK) return status;
    if (m->result_count > CR_CALL_MAX_OPS)
        return cr_fail(error, CR_INVALID_ARGUMENT, "ReduceResponse.results has %u entries, limit is %d",
                       m->result_count, CR_CALL_MAX_OPS);
    for (uint32_t i = 0; i < m->result_count; i++) {
        const cr_wire_op_result *r = &m->results[i];
        if (r->value_len > sizeof r->value)
            return cr_fail(error, CR_INVALID_ARGUMENT, "OpResult.value has %u bytes, limit is %zu", r->value_len,
                           sizeof r->value);
        if (r->at_len > sizeof r->at)
            return cr_fail(error, CR_INVALID_ARGUMENT, "OpResult.at has %u bytes, limit is %zu", r->at_len,
                           sizeof r->at);
    }
    return CR_OK;
}

size_t cr_wire_pack_credit(uint64_t bytes, uint8_t *out, size_t cap) {
    return cr_wire_write(&cr_message_credit, &(cr_wire_credit){bytes}, NULL, out, cap);
}

cr_status cr_wire_unpack_credit(const uint8_t *in, size_t len, uint64_t *bytes, cr_error *error) {
    cr_wire_credit m;
    const cr_status status = cr_wire_read(&cr_message_credit, CR_READ_ANY, in, len, &m, NULL, error);
    if (status == CR_OK) *bytes = m.bytes;
    return status;
}

cr_status cr_wire_unpack_part(const uint8_t *in, size_t len, cr_wire_part *m, cr_error *error) {
    const cr_status status = cr_wire_read(&cr_message_array_part, CR_READ_ANY, in, len, m, NULL, error);
    if (status != CR_OK || m->op < CR_CALL_MAX_OPS) return status;
    return cr_fail(error, CR_INVALID_ARGUMENT, "ArrayPart.op is beyond %d, the most a call has", CR_CALL_MAX_OPS);
}
